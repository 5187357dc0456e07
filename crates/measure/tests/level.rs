//! The figures of a level, by hand: two streams of seven requests whose instants are all known.

use measure::judge::Guards;
use measure::record::{Line, Reader, Run};
use measure::report::{Report, build};
use measure::time::{Instant, Length};
use measure::trace::{Body, Finish, Read, Trace, Transport, Usage};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
/// From one request's start to the next one's on a stream.
const PERIOD_MS: u64 = 1_000;
/// From `sent` to the first of eleven tokens, and from one token to the next.
const FIRST_MS: u64 = 100;
const STEP_MS: u64 = 80;
const TOKENS: u64 = 11;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * MS)
}

/// Request `n` of a stream: sent at n seconds, its last token and its end at n + 0.9 s.
fn trace(id: u64, stream: u32, n: u64) -> Trace {
    let sent = n * PERIOD_MS;
    let mut trace = Trace::begun(id, 0, stream, n == 0, at(sent));
    trace.sent = Some(at(sent));
    trace.head = Some(at(sent));
    trace.finish = at(sent + 900);
    trace.status = Some(200);
    trace.transport = Transport::Complete;
    trace.body = Body::Stream;
    trace.finish_reason = Some(Finish::Length);
    trace.sentinel = true;
    trace.usage = Some(Usage {
        input: Some(5),
        output: Some(TOKENS),
        total: Some(5 + TOKENS),
        ..Usage::default()
    });
    trace.reads = (0..TOKENS)
        .map(|k| read(at(sent + FIRST_MS + k * STEP_MS)))
        .collect();
    trace.first_content = Some(at(sent + FIRST_MS));
    trace.first_answer = trace.first_content;
    trace.last_content = Some(at(sent + 900));
    trace.end = Some(at(sent + 900));
    trace
}

fn read(at: Instant) -> Read {
    Read {
        at,
        bytes: 50,
        chunks: 1,
        bare: 0,
        chars: 4,
        answer_chunks: 1,
        answer_chars: 4,
        tokens: None,
        lag_low: None,
        lag_high: Length::from_micros(20),
    }
}

fn header() -> Value {
    json!({
        "line": "header", "format": "denom.record/1", "version": "0", "run": "r", "began_unix_ns": 0,
        "origin_monotonic_ns": 0, "stamp": "read", "url": "http://x/v1", "api": "openai-chat", "model": "m",
        "stream": true, "http": "1.1", "tls": "off", "min_chunks": 3, "min_interval": 200 * MS, "seed": 1,
        "input_tokens": "5", "output_tokens": "11", "plan_hash": "h", "lead": "system",
        "settings": {}, "environment": {},
        "levels": [{"index": 0, "kind": "closed", "target_milli": 2000, "streams": 2, "baseline": false,
                    "stop": {"requests": 12}, "warmup": {"requests": 2}, "limit": null}]
    })
}

/// The run of `rounds` requests a stream, with lines taken out or doubled by `change`.
fn run(rounds: u64, change: impl Fn(&mut Vec<Value>)) -> Run {
    let mut lines = vec![header()];
    for n in 0..rounds {
        for stream in 0..2 {
            let id = n * 2 + u64::from(stream);
            let start = n * PERIOD_MS * MS;
            lines.push(json!({"line": "sent", "id": id, "level": 0, "stream": stream, "warmup": n == 0, "start": start}));
            let ended = Line::Ended(Box::new(trace(id, stream, n)));
            lines.push(serde_json::to_value(ended).expect("a line"));
        }
    }
    let flight = 2 * rounds * 900 * MS;
    lines.push(json!({"line": "level", "index": 0, "issued": 2 * rounds, "in_flight": flight, "at": rounds * 1_000 * MS,
                      "cpu": null, "wall": rounds * 1_000 * MS, "clock_steps": 0, "suspends": 0,
                      "recorder_waits": 0, "interrupted": false}));
    lines.push(
        json!({"line": "footer", "issued": 2 * rounds, "ended": 2 * rounds, "interrupted": false}),
    );
    change(&mut lines);
    let mut reader = Reader::new(None);
    for line in lines {
        reader
            .line(line.to_string().as_bytes())
            .expect("a line of the format");
    }
    reader.finish().expect("a run")
}

fn report(run: &Run) -> Value {
    let report: Report = build(run, Guards::default());
    serde_json::to_value(report).expect("JSON")["levels"][0].clone()
}

#[test]
fn a_steady_level_is_what_hand_and_paper_say() {
    let level = report(&run(7, |_| {}));
    // From the end of the slowest first request to the first stream's last end: 0.9 s to 6.9 s.
    assert_eq!(
        level["window"],
        json!({"rule": "steady", "start_s": 0.9, "end_s": 6.9})
    );
    // In flight for 0.9 of each second of the six, on both streams.
    assert_eq!(level["load"]["held"], 1.8);
    assert_eq!(level["requests"]["issued"], 12);
    assert_eq!(level["requests"]["warmup"], 2);
    // The last token of round 0 lies at the window's first instant; that of round 6 just beyond it.
    let inside = 2 * (1 + 5 * TOKENS + (TOKENS - 1));
    assert_eq!(
        level["system"]["output"]["numerator"]["count"],
        inside as f64
    );
    assert_eq!(level["system"]["output"]["value"], inside as f64 / 6.0);
    assert_eq!(
        level["per_stream"]["ratio_of_sums"]["value"],
        inside as f64 / (6.0 * 1.8)
    );
    assert_eq!(level["per_stream"]["generation"]["p50"]["value"], 12.5);
    assert_eq!(
        level["per_stream"]["end_to_end"]["p50"]["value"],
        TOKENS as f64 / 0.9
    );
    assert_eq!(level["latency"]["ttft"]["p50"]["value"], 0.1);
    assert_eq!(level["latency"]["itl"]["p50"]["value"], 0.08);
    assert_eq!(
        level["latency"]["ttft"]["p90"]["withheld"]["code"],
        "too_few"
    );
    assert_eq!(level["verdict"], json!({"valid": true, "reasons": []}));
}

#[test]
fn too_few_rounds_have_no_steady_window_and_ask_for_more_than_the_plan_had() {
    let level = report(&run(4, |_| {}));
    assert_eq!(level["window"]["rule"], "steady");
    let level = report(&run(3, |_| {}));
    assert_eq!(level["window"]["rule"], "run");
    let warning = &level["warnings"][0];
    assert_eq!(warning["code"], "no_steady_window");
    assert!(
        warning["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("--requests 24")),
        "{warning}"
    );
}

fn codes(level: &Value) -> Vec<&str> {
    let reasons = level["verdict"]["reasons"].as_array().expect("a list");
    reasons
        .iter()
        .filter_map(|reason| reason["code"].as_str())
        .collect()
}

#[test]
fn a_lost_or_doubled_record_breaks_the_books() {
    // Lines 5 and 6 are a request's start and end.
    let lost_end = report(&run(7, |lines| drop(lines.remove(6))));
    assert!(codes(&lost_end).contains(&"books"), "{lost_end}");
    let lost_both = report(&run(7, |lines| drop(lines.drain(5..7))));
    assert!(codes(&lost_both).contains(&"books"), "{lost_both}");
    let doubled = report(&run(7, |lines| {
        let line = lines[6].clone();
        lines.insert(7, line);
    }));
    assert!(codes(&doubled).contains(&"books"), "{doubled}");
}
