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
        json!({"rule": "steady", "paused_s": 0.0, "start_s": 0.9, "end_s": 6.9})
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

/// The run of `rounds` requests a stream whose traces `alter` may change.
fn altered(rounds: u64, alter: impl Fn(&mut Trace)) -> Run {
    run(rounds, |lines| {
        for line in lines.iter_mut().filter(|line| line["line"] == "ended") {
            let mut trace: Trace = serde_json::from_value(line.clone()).expect("a trace");
            alter(&mut trace);
            *line = serde_json::to_value(Line::Ended(Box::new(trace))).expect("a line");
        }
    })
}

/// Gives an answer another pace, from the same first token.
fn pace(trace: &mut Trace, step_ms: u64) {
    let first = trace.first_content.expect("it brings content");
    for (k, read) in (0..).zip(&mut trace.reads) {
        read.at = first + Length::from_millis(k * step_ms);
    }
    trace.last_content = trace.reads.last().map(|read| read.at);
    trace.end = trace.last_content;
}

/// Moves a request in time.
fn delay(trace: &mut Trace, length: Length) {
    let later = |at: &mut Option<Instant>| *at = at.map(|at| at + length);
    trace.planned = trace.planned + length;
    trace.start = trace.start + length;
    trace.finish = trace.finish + length;
    for read in &mut trace.reads {
        read.at = read.at + length;
    }
    later(&mut trace.sent);
    later(&mut trace.head);
    later(&mut trace.first_content);
    later(&mut trace.first_answer);
    later(&mut trace.last_content);
    later(&mut trace.end);
}

#[test]
fn the_window_waits_for_the_last_first_end_and_ends_with_the_first_last_one() {
    // The second stream runs half a second behind the first.
    let level = report(&altered(7, |trace| {
        if trace.stream == 1 {
            delay(trace, Length::from_millis(500));
        }
    }));
    assert_eq!(
        level["window"],
        json!({"rule": "steady", "paused_s": 0.0, "start_s": 1.4, "end_s": 6.9})
    );
    // First stream: 7 of round 1 (from 1.42 s), 44 of rounds 2 to 5, 10 of round 6. Second: the last
    // of round 0 (at 1.4 s), 55 of rounds 1 to 5, 4 of round 6 (to 6.84 s).
    let inside = (7 + 44 + 10 + 1 + 55 + 4) as f64;
    assert_eq!(level["system"]["output"]["numerator"]["count"], inside);
    assert_eq!(level["system"]["output"]["value"], inside / 5.5);
    // In flight for 5.0 s of it and for 4.9 s of it.
    assert_eq!(level["load"]["held"], 1.8);
    assert_eq!(
        level["per_stream"]["ratio_of_sums"]["interval"]["seconds"],
        9.9
    );
}

#[test]
fn medians_are_observed_values_of_single_streams() {
    // Rounds 1 to 6 at 75, 76, ... 80 ms a token, both streams alike: twelve rates in six pairs.
    let level = report(&altered(7, |trace| pace(trace, 74 + trace.id / 2)));
    let generation = &level["per_stream"]["generation"];
    // From the slow end, the sixth of twelve is one of the pair at 78 ms.
    assert_eq!(generation["p50"]["value"], 10.0 * 1e3 / 780.0);
    assert_eq!(generation["min"], 12.5);
    assert_eq!(generation["max"], 10.0 * 1e3 / 750.0);
    assert_eq!(generation["n"], 12);
    let slowest = TOKENS as f64 / 0.9;
    assert_eq!(level["per_stream"]["end_to_end"]["min"], slowest);
    assert_eq!(level["latency"]["e2e"]["p50"]["value"], 0.87);
}

/// A level's figures where `short` of the ten measured requests end their answer within 0.1 s.
fn with_short(short: u64) -> Value {
    report(&altered(6, |trace| {
        if (2..2 + short).contains(&trace.id) {
            pace(trace, 10);
        }
    }))
}

#[test]
fn a_fifth_too_short_withholds_the_generation_rate_and_fewer_mark_it() {
    let generation = |level: &Value| level["per_stream"]["generation"].clone();
    let none = generation(&with_short(0));
    assert_eq!((&none["selected"], &none["n"]), (&json!(false), &json!(10)));
    let one = with_short(1);
    assert_eq!(generation(&one)["selected"], true);
    assert_eq!(generation(&one)["p50"]["value"], 12.5);
    assert_eq!(
        generation(&one)["population"],
        json!({"kept": 9, "of": 10, "what": "ok requests"})
    );
    assert_eq!(one["requests"]["reasons"], json!({"short": 1}));
    assert_eq!(one["latency"]["ttft"]["selected"], true);
    let two = generation(&with_short(2));
    assert_eq!(two["p50"]["value"], Value::Null);
    assert_eq!(two["withheld"]["code"], "selected_short");
    assert_eq!(two["max"], Value::Null);
}

/// A level of which, among the twelve measured requests, `cut` broke off at their last token and
/// `refused` brought nothing.
fn with_failures(cut: u64, refused: u64) -> Value {
    report(&altered(7, |trace| {
        if (2..2 + cut).contains(&trace.id) {
            trace.finish_reason = None;
        }
        if (2 + cut..2 + cut + refused).contains(&trace.id) {
            let plain = Trace::begun(trace.id, 0, trace.stream, false, trace.start);
            *trace = Trace {
                sent: trace.sent,
                finish: trace.finish,
                status: Some(500),
                transport: Transport::Complete,
                ..plain
            };
        }
    }))
}

#[test]
fn failed_requests_stand_as_the_worst_beside_the_others() {
    let level = with_failures(2, 1);
    assert_eq!(
        level["requests"]["failed"],
        json!({"truncated": 2, "http_error": 1})
    );
    assert_eq!(level["latency"]["e2e"]["n"], 9);
    assert_eq!(level["latency"]["e2e"]["max"], 0.9);
    assert_eq!(level["latency"]["ttft"]["n"], 9);
    let e2e = &level["failures_included"]["e2e"];
    assert_eq!(
        (&e2e["n"], &e2e["failed_as_worst"]),
        (&json!(12), &json!(3))
    );
    assert_eq!(
        (&e2e["p50"]["value"], &e2e["max"]),
        (&json!(0.9), &Value::Null)
    );
    // A broken answer's first content was seen: only the refused one counts as longer than any.
    let ttft = &level["failures_included"]["ttft"];
    assert_eq!(
        (&ttft["n"], &ttft["failed_as_worst"]),
        (&json!(12), &json!(1))
    );
    assert_eq!(ttft["p50"]["value"], 0.1);
    // What a failed request delivered counts: of three, the refused one's tokens are missing.
    let inside = 2 * (1 + 5 * TOKENS + (TOKENS - 1)) - TOKENS;
    assert_eq!(
        level["system"]["output"]["numerator"]["count"],
        inside as f64
    );
    assert_eq!(codes(&level), Vec::<&str>::new());
    let most = with_failures(0, 7);
    assert_eq!(
        most["failures_included"]["e2e"]["p50"]["withheld"]["code"],
        "failures"
    );
    assert!(codes(&most).contains(&"failures") && codes(&most).contains(&"too_few_ok"));
}

/// The run with a baseline in front: one stream of seven requests at 40 ms a token.
fn with_baseline(measured: u64) -> Value {
    let two = run(7, |lines| {
        let plan = lines[0]["levels"][0].clone();
        let mut first = plan.clone();
        first["streams"] = json!(1);
        first["target_milli"] = json!(1_000);
        first["baseline"] = json!(true);
        let mut second = plan;
        second["index"] = json!(1);
        lines[0]["levels"] = json!([first, second]);
        for line in &mut lines[1..] {
            match line["line"].as_str() {
                Some("level") => line["index"] = json!(1),
                Some("footer") => {}
                _ => line["level"] = json!(1),
            }
        }
        for n in 0..=measured {
            let mut alone = trace(100 + n, 0, n);
            pace(&mut alone, 40);
            let sent = json!({"line": "sent", "id": alone.id, "level": 0, "stream": 0,
                              "warmup": n == 0, "start": alone.start});
            let ended = serde_json::to_value(Line::Ended(Box::new(alone))).expect("a line");
            lines.extend([sent, ended]);
        }
    });
    let report = build(&two, Guards::default());
    serde_json::to_value(report).expect("JSON")["levels"].clone()
}

#[test]
fn shares_of_the_baseline_are_of_medians_of_one_metric() {
    let levels = with_baseline(6);
    let (alone, shared) = (&levels[0]["per_stream"], &levels[1]["per_stream"]);
    assert_eq!(alone["generation"]["p50"]["value"], 25.0);
    assert_eq!(alone["end_to_end"]["p50"]["value"], 22.0);
    assert_eq!(shared["share_of_baseline"]["value"], 0.5);
    assert_eq!(
        shared["e2e_share_of_baseline"]["value"],
        TOKENS as f64 / 0.9 / 22.0
    );
    assert_eq!(shared["share_of_baseline"]["unit"], "share");
}

#[test]
fn a_baseline_without_a_median_gives_no_share() {
    let levels = with_baseline(5);
    let share = &levels[1]["per_stream"]["share_of_baseline"];
    assert_eq!(share["value"], Value::Null);
    assert_eq!(share["withheld"]["code"], "baseline_withheld");
}

#[test]
fn row_36_what_requests_waited_for_a_stream_stands_apart_from_their_times() {
    // The second stream's requests waited 248 ms each before they were sent.
    let level = report(&altered(7, |trace| {
        let waited = if trace.stream == 1 { 248 } else { 0 };
        trace.connection.h2_wait = Some(Length::from_millis(waited));
    }));
    let connection = &level["connection"];
    assert_eq!(connection["h2_wait"]["n"], 12);
    assert_eq!(connection["h2_wait"]["min"], 0.0);
    assert_eq!(connection["h2_wait"]["max"], 0.248);
    assert_eq!(level["latency"]["ttft"]["max"], 0.1);
    assert_eq!(connection["ttft_with_h2_wait"]["min"], 0.1);
    assert_eq!(connection["ttft_with_h2_wait"]["max"], 0.348);
    let warnings = level["warnings"].as_array().expect("a list");
    let waited = warnings.iter().find(|warning| warning["code"] == "h2_wait");
    let text = waited.expect("a warning")["text"].as_str().expect("text");
    assert!(text.starts_with("6 requests waited"), "{text}");
}

#[test]
fn over_http_1_nothing_waits_for_a_stream() {
    let level = report(&run(7, |_| ()));
    for figure in ["h2_wait", "ttft_with_h2_wait", "http2"] {
        let withheld = &level["connection"][figure]["withheld"]["code"];
        assert_eq!(withheld, "not_observed", "{figure}");
    }
}

/// The answer in reads of four chunks, so long from one to the next, each so late at most.
fn in_bundles(trace: &mut Trace, step_ms: u64, lag: impl Fn(u64) -> u64) {
    let first = trace.first_content.expect("it brings content");
    trace.reads = (0..3)
        .map(|k| {
            let mut read = read(first + Length::from_millis(k * step_ms));
            (read.chunks, read.answer_chunks) = (4, 4);
            read.lag_high = Length::from_millis(lag(k));
            read
        })
        .collect();
    trace.last_content = trace.reads.last().map(|read| read.at);
    trace.end = trace.last_content;
}

#[test]
fn a_burst_that_takes_long_to_read_is_the_paths_and_not_the_clients() {
    // All of it came in 10 ms: the second and third read waited for the first.
    let burst = report(&altered(7, |trace| in_bundles(trace, 5, |k| 4 * k)));
    assert_eq!(burst["client"]["bundled_arrivals"], 0);
    assert_eq!(burst["requests"]["shapes"]["buffered"], 12);
    assert!(!codes(&burst).contains(&"client_limited"), "{burst}");
    // The first read was up to 300 ms late: what it brought may have been a stream.
    let late = report(&altered(7, |trace| in_bundles(trace, 5, |_| 300)));
    assert_eq!(
        late["client"]["bundled_arrivals"],
        late["client"]["arrivals"]
    );
    assert!(codes(&late).contains(&"client_limited"), "{late}");
}

#[test]
fn a_stream_read_in_one_piece_by_a_client_that_slept_is_the_clients_bundle() {
    let level = report(&altered(7, |trace| {
        in_bundles(trace, 5, |_| 800);
        trace.reads.truncate(1);
    }));
    assert_eq!(
        level["client"]["bundled_arrivals"],
        level["client"]["arrivals"]
    );
    assert!(codes(&level).contains(&"client_limited"), "{level}");
}
