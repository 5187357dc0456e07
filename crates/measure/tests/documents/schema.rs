//! Owns the proof that every report fits the published schema, and that the schema can refuse.

use serde_json::{Value, json};

use crate::check::{Undescribed, check};
use crate::runs::{File, closed, connected, micros, steady, stream, usage};
use measure::basis::Loop;
use measure::time::Length;
use measure::trace::{
    Body, Declared, Finish, Oddity, Phase, Read, ServerError, Stamps, Trace, Transport,
};

fn schema() -> Value {
    let text = include_str!("../../../../docs/schema/report-1.json");
    serde_json::from_str(text).expect("the schema is JSON")
}

/// A level each of: all well; every shape; every failure; no token counts; two token sources.
fn finished() -> Value {
    let plans = (0..5).map(|i| closed(i, if i == 0 { 1 } else { 4 }, i == 0));
    let mut file = File::new(plans.collect());
    file.note("retried", "the first request was sent again without usage");
    let mut at = 0;
    for i in 0..13 {
        let mut trace = connected(steady(at, 60_000, 10_000, 40));
        trace.warmup = i == 0;
        trace.connection.reused = i > 0;
        trace.declared = Some(Declared {
            prompt: Some(Length::from_millis(50)),
            output: Some(Length::from_millis(390)),
            output_tokens: Some(40),
            ..Declared::default()
        });
        at = trace.finish.nanos() / 1_000;
        file.add(0, 0, trace);
    }
    every_shape(&mut file, at);
    every_failure(&mut file, at + 10_000_000);
    for i in 0..8 {
        let mut trace = steady(at + i * 500_000, 60_000, 10_000, 40);
        trace.usage = None;
        file.add(3, (i % 4) as u32, trace.clone());
        trace.usage = (i % 2 == 0).then(|| usage(40, 40));
        file.add(4, (i % 4) as u32, trace);
    }
    file.amend(4, |end| (end.suspends, end.clock_steps) = (1, 2));
    serde_json::to_value(file.finished()).expect("a report serialises")
}

/// Streamed, apportioned, with a stop token, clumped, buffered for each reason, whole, a late
/// burst, hidden reasoning, contradicting counts, a cached prompt, an upload, oddities.
fn every_shape(file: &mut File, at: u64) {
    let clumps: Vec<_> = (0..10).map(|i| (80_000 + i * 40_000, 4, 16)).collect();
    let burst: Vec<_> = (0..4).map(|i| (1_000_000 + i * 300, 250, 1_000)).collect();
    let mut apportioned = steady(at, 60_000, 10_000, 40);
    apportioned.usage = Some(usage(40, 60));
    let mut stopped = steady(at, 60_000, 10_000, 40);
    stopped.finish_reason = Some(Finish::Stop);
    stopped.usage = Some(usage(40, 41));
    let mut whole = stream(at, &[(700_000, 1, 200)]);
    whole.body = Body::Whole;
    whole.usage = Some(usage(40, 50));
    let mut hidden = steady(at, 60_000, 10_000, 40);
    hidden.usage = Some(usage(40, 104));
    if let Some(usage) = &mut hidden.usage {
        (usage.reasoning, usage.cached) = (Some(64), Some(8));
    }
    let mut absurd = steady(at, 60_000, 10_000, 40);
    absurd.usage = Some(usage(40, 5_000));
    let mut upload = steady(at, 60_000, 10_000, 40);
    upload.written = Some(micros(at + 20_000));
    upload.oddities = vec![Oddity::TextRepaired, Oddity::StampClamped];
    let fast = steady(at, 60_000, 2_000, 200);
    let late = steady(at, 3_000_000, 8_000, 30);
    let few = stream(at, &[(60_000, 1, 4), (400_000, 1, 4)]);
    let short = steady(at, 60_000, 5_000, 30);
    let made = [
        stream(at, &clumps),
        stream(at, &burst),
        apportioned,
        stopped,
        whole,
        hidden,
        absurd,
        upload,
        fast,
        late,
        few,
        short,
    ];
    for (i, trace) in made.into_iter().enumerate() {
        file.add(1, i as u32 % 4, trace);
    }
}

fn every_failure(file: &mut File, at: u64) {
    let text = || "made up".to_owned();
    let none = |transport| {
        let mut trace = Trace::begun(0, 0, 0, false, micros(at));
        trace.finish = micros(at + 1_000);
        trace.transport = transport;
        trace
    };
    let cut = |change: &dyn Fn(&mut Trace)| {
        let mut trace = steady(at, 60_000, 10_000, 10);
        change(&mut trace);
        trace
    };
    let error = || {
        Some(ServerError {
            code: Some("server_error".into()),
            message: text(),
        })
    };
    let phase = Phase::Connect;
    let no_connection = |local| Transport::NoConnection {
        phase,
        local,
        text: text(),
    };
    let made = [
        none(no_connection(true)),
        none(no_connection(false)),
        none(Transport::Stale),
        none(Transport::Timeout { phase }),
        none(Transport::Cancelled),
        cut(&|t| t.transport = Transport::Limit { text: text() }),
        cut(&|t| t.transport = Transport::Broken { text: text() }),
        cut(&|t| t.error = error()),
        cut(&|t| t.malformed = Some(text())),
        cut(&|t| t.transport = Transport::Drained),
        cut(&|t| t.status = Some(429)),
        cut(&|t| t.status = Some(503)),
        cut(&|t| (t.first_content, t.reads) = (None, Vec::<Read>::new())),
        cut(&|t| {
            (t.first_content, t.reads) = (None, Vec::new());
            t.finish_reason = Some(Finish::Filter);
        }),
    ];
    for trace in made {
        file.add(2, 0, trace);
    }
}

/// A killed run: an open loop, clock reads as stamps, one request without an end.
fn cut_short() -> Value {
    let mut open = closed(0, 4, false);
    (open.kind, open.target_milli) = (Loop::Open, 2_500);
    let mut file = File::new(vec![open]);
    for i in 0..8 {
        let mut trace = steady(i * 400_000, 60_000, 10_000, 40);
        trace.sent = Some(trace.planned + Length::from_millis(3));
        trace.stamps = Stamps::Read;
        for read in &mut trace.reads {
            read.lag_low = None;
        }
        file.add(0, (i % 4) as u32, trace);
    }
    file.open(0, 0, micros(3_500_000));
    serde_json::to_value(file.cut_short()).expect("a report serialises")
}

/// Nothing was sent at all.
fn nothing() -> Value {
    let report = File::new(vec![closed(0, 1, true)]).finished();
    serde_json::to_value(report).expect("a report serialises")
}

#[test]
fn every_report_fits_the_schema_and_is_wholly_described() {
    let schema = schema();
    for report in [finished(), cut_short(), nothing()] {
        assert_eq!(check(&schema, &report, Undescribed::Refused), [""; 0]);
    }
}

#[test]
fn the_made_up_reports_hold_what_the_schema_is_to_be_tried_on() {
    let report = finished();
    let level = |i: usize| &report["levels"][i];
    let shapes = level(1)["requests"]["shapes"].as_object().expect("shapes");
    assert!(shapes.values().all(|n| n.as_u64() > Some(0)), "{shapes:?}");
    let reasons = level(1)["requests"]["reasons"].as_object();
    assert_eq!(reasons.map(|kinds| kinds.len()), Some(4), "{reasons:?}");
    let kinds = level(2)["requests"]["failed"].as_object();
    assert_eq!(kinds.map(|kinds| kinds.len()), Some(13), "{kinds:?}");
    assert_eq!(level(0)["verdict"]["valid"], true);
    assert_eq!(level(0)["window"]["rule"], "steady");
    assert_eq!(level(3)["per_stream"]["generation"]["unit"], "chunk/s");
    assert!(level(1)["per_stream"]["billed"].is_object());
    assert_eq!(cut_short()["run"]["cut_short"], true);
    assert!(nothing()["levels"][0]["window"].is_null());
}

#[test]
fn the_schema_refuses_a_report_with_any_fault() {
    let (schema, right) = (schema(), finished());
    for (place, wrong) in [
        ("/schema", json!("denom.report/2")),
        ("/clock/stamp", json!("none")),
        ("/levels/0/load/loop", json!("half-open")),
        ("/levels/0/window/rule", json!("declared")),
        ("/levels/0/requests/ok", json!(-1)),
        ("/levels/0/requests/shapes", json!({"streamed": 12})),
        ("/levels/0/system/output", json!(31.2)),
        ("/levels/0/system/output/value", Value::Null),
        ("/levels/0/system/output/unit", json!("tokens")),
        ("/levels/0/system/output/population", Value::Null),
        ("/levels/0/per_stream/share_of_baseline/value", json!(1.0)),
        ("/levels/0/latency/ttft/p50/value", json!(-1)),
        ("/levels/0/latency/ttft/p99/withheld", Value::Null),
        ("/levels/0/latency/ttft/interval/rule", json!("guessed")),
        ("/levels/0/latency/ttft/p50/ci95", json!([1.0])),
        ("/levels/0/verdict/valid", json!("yes")),
        ("/levels/2/warnings/0", json!({"code": "failures"})),
    ] {
        let mut report = right.clone();
        let spot = report.pointer_mut(place);
        *spot.unwrap_or_else(|| panic!("{place} is not there")) = wrong;
        let complaints = check(&schema, &report, Undescribed::Allowed);
        assert!(!complaints.is_empty(), "{place} may be anything");
    }
}
