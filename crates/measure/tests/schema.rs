//! Holds the published schema of the report against reports made from record lines.

mod checker;

use checker::faults;
use measure::api::Api;
use measure::basis::Loop;
use measure::plan::{LevelPlan, Stop, Warmup};
use measure::record::{
    FORMAT, Header, Lead, LevelEnd, Line, Note, Reader, SelfCheck, Sent, StampMode,
};
use measure::report;
use measure::time::{Instant, Length};
use measure::trace::{Body, Finish, Read, ServerError, Stamps, Trace, Transport, Usage};
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../../../docs/schema/report-1.json");
/// Requests of each level; a quantile of 6 has a median.
const REQUESTS: u64 = 8;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema is JSON")
}

fn micros(at: u64) -> Instant {
    Instant::from_nanos(at * 1_000)
}

fn plan(index: u32, streams: u32) -> LevelPlan {
    LevelPlan {
        index,
        kind: Loop::Closed,
        arrivals: None,
        target_milli: u64::from(streams) * 1_000,
        streams,
        baseline: index == 0,
        stop: Stop::Requests(REQUESTS),
        warmup: Warmup::Requests(0),
        limit: None,
    }
}

fn header() -> Header {
    Header {
        format: FORMAT.into(),
        version: "0.1.0".into(),
        run: "r".into(),
        began_unix_ns: 1,
        origin_monotonic_ns: 2,
        stamp: StampMode::Kernel,
        url: "http://localhost/v1/chat/completions".into(),
        redactions: vec!["password".into()],
        api: Api::OpenaiChat,
        model: "m".into(),
        stream: true,
        http: "1.1".into(),
        tls: "off".into(),
        min_chunks: 3,
        min_interval: Length::from_millis(200),
        seed: 1,
        input_tokens: "9".into(),
        output_tokens: "8".into(),
        plan_hash: "h".into(),
        vocabulary: None,
        self_check: SelfCheck::NotDue,
        levels: vec![plan(0, 1), plan(1, 2), plan(2, 1), plan(3, 1)],
        lead: Lead::System,
        settings: [("timeout".to_owned(), "60s".to_owned())].into(),
        environment: [("cores".to_owned(), "2".to_owned())].into(),
    }
}

/// An answer of eight chunks, `step` microseconds apart, after 100 ms.
fn answer(id: u64, level: u32, start: u64, step: u64) -> Trace {
    let stamp = |i: u64| micros(start + 100_000 + i * step);
    let mut trace = Trace::begun(id, level, 0, false, micros(start));
    trace.sent = Some(trace.start);
    (trace.first_content, trace.first_answer) = (Some(stamp(0)), Some(stamp(0)));
    (trace.last_content, trace.end) = (Some(stamp(7)), Some(stamp(7)));
    (trace.head, trace.first_event) = (Some(stamp(0)), Some(stamp(0)));
    trace.finish = stamp(7);
    trace.status = Some(200);
    trace.transport = Transport::Complete;
    trace.finish_reason = Some(Finish::Length);
    (trace.body, trace.sentinel, trace.stamps) = (Body::Stream, true, Stamps::Kernel);
    trace.usage = Some(Usage {
        input: Some(9),
        output: Some(8),
        total: Some(17),
        ..Usage::default()
    });
    trace.reads = (0..8)
        .map(|i| Read {
            at: stamp(i),
            bytes: 200,
            chunks: 1,
            bare: 0,
            chars: 4,
            answer_chunks: 1,
            answer_chars: 4,
            tokens: None,
            lag_low: Some(Length::from_micros(20)),
            lag_high: Length::from_micros(40),
        })
        .collect();
    trace
}

/// Four levels: all stream; bursts, failures and hidden tokens; no counts and no end; nothing ok.
fn traces() -> Vec<Trace> {
    let mut all = Vec::new();
    for id in 0..REQUESTS {
        all.push(answer(id, 0, id * 1_000_000, 50_000));
        let mut mixed = answer(100 + id, 1, 10_000_000 + id * 1_000_000, 50_000);
        match id {
            0 | 1 => mixed = answer(100 + id, 1, 10_000_000 + id * 1_000_000, 10),
            2 => {
                mixed.status = Some(500);
                mixed.error = Some(ServerError {
                    code: None,
                    message: "died".into(),
                });
            }
            3 => mixed.transport = Transport::Drained,
            4 => mixed.body = Body::Whole,
            _ => mixed.usage = mixed.usage.map(hidden),
        }
        all.push(mixed);
        let mut uncounted = answer(200 + id, 2, 20_000_000 + id * 1_000_000, 50_000);
        (uncounted.usage, uncounted.stamps) = (None, Stamps::Read);
        all.push(uncounted);
    }
    let mut refused = Trace::begun(300, 3, 0, false, micros(30_000_000));
    refused.transport = Transport::NoConnection {
        phase: measure::trace::Phase::Connect,
        local: false,
        text: "refused".into(),
    };
    all.push(refused);
    all
}

fn hidden(usage: Usage) -> Usage {
    Usage {
        output: Some(18),
        total: Some(27),
        reasoning: Some(10),
        cached: Some(5),
        ..usage
    }
}

fn level_end(index: u32, issued: u64) -> Line {
    Line::Level(LevelEnd {
        index,
        issued,
        in_flight: Length::from_millis(1),
        planned: None,
        at: micros(40_000_000),
        cpu: Some(Length::from_millis(3)),
        wall: Length::from_secs(9),
        clock_steps: 1,
        suspends: 0,
        recorder_waits: 0,
        interrupted: false,
        workers: None,
    })
}

fn report_of(traces: Vec<Trace>) -> Value {
    let mut lines = vec![Line::Header(Box::new(header()))];
    lines.push(Line::Note(Note {
        code: "n".into(),
        text: "t".into(),
    }));
    for trace in traces {
        lines.push(Line::Sent(Sent {
            id: trace.id,
            level: trace.level,
            stream: trace.stream,
            warmup: trace.warmup,
            start: trace.start,
            planned: None,
        }));
        lines.push(Line::Ended(Box::new(trace)));
    }
    lines.extend([level_end(0, REQUESTS), level_end(1, REQUESTS)]);
    let mut reader = Reader::new(None);
    for line in lines {
        let text = serde_json::to_vec(&line).expect("writes");
        reader.line(&text).expect("reads");
    }
    let run = reader.finish().expect("a run");
    let report = report::build(&run, run.header.guards());
    serde_json::to_value(&report).expect("writes")
}

#[test]
fn reports_of_every_kind_fit_and_all_of_them_is_described() {
    let report = report_of(traces());
    assert_eq!(report["levels"].as_array().map(Vec::len), Some(4));
    assert_eq!(faults(&schema(), &report, true), Vec::<String>::new());
}

#[test]
fn the_reports_hold_values_and_reasons_for_the_schema_to_describe() {
    let report = report_of(traces());
    let at = |path: &str| report.pointer(path).cloned().unwrap_or_default();
    assert!(at("/levels/0/per_stream/generation/p50/value").is_number());
    assert!(at("/levels/0/per_stream/generation/p99/withheld/code") == json!("too_few"));
    assert!(at("/levels/1/per_stream/billed").is_object());
    assert_eq!(at("/levels/1/requests/failed"), json!({"http_error": 1}));
    assert_eq!(at("/levels/2/system/output/unit"), json!("chunk/s"));
    assert!(at("/levels/3/window").is_null());
}

#[test]
fn a_run_of_which_nothing_is_known_fits() {
    let report = report_of(Vec::new());
    assert_eq!(faults(&schema(), &report, true), Vec::<String>::new());
}

#[test]
fn what_does_not_fit_is_found() {
    let good = report_of(traces());
    let broken = |path: &str, value: Value| {
        let mut report = good.clone();
        *report.pointer_mut(path).expect("it is there") = value;
        faults(&schema(), &report, false)
    };
    for (path, value) in [
        ("/schema", json!("denom.report/2")),
        ("/levels/0/load/target", json!("16")),
        ("/levels/0/system/output/scope", json!("both")),
        ("/levels/0/system/output/interval/rule", json!("guess")),
        ("/levels/0/system/output", json!({"value": 31.2})),
        ("/levels/0/latency/ttft/p50/ci95", json!(["a", "b"])),
        ("/levels/1/requests/failed/http_error", json!(0.5)),
        ("/levels/1/requests/ok", json!(-1)),
        ("/levels/0/latency/ttft/p50/ci95", json!([1.0])),
        ("/levels/1/verdict/reasons/0", json!("clock_step")),
    ] {
        assert!(!broken(path, value).is_empty(), "{path} passed");
    }
    assert!(broken("/run/notes", json!([])).is_empty());
}

#[test]
fn further_members_are_allowed() {
    let mut report = report_of(traces());
    report["levels"][0]["later"] = json!(1);
    assert!(faults(&schema(), &report, false).is_empty());
    assert!(!faults(&schema(), &report, true).is_empty());
}
