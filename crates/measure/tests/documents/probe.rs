//! Owns the proof that every report of a probe fits its published schema, and that the schema can refuse.

use serde_json::{Value, json};

use crate::check::{Undescribed, check};
use crate::runs::{steady, stream, usage};
use measure::probe::head::Head;
use measure::probe::plan::{self, Lengths};
use measure::probe::{self, Setup, Side, Way};
use measure::time::Length;
use measure::trace::{Declared, ServerError, Trace};

fn schema() -> Value {
    let text = include_str!("../../../../docs/schema/probe-1.json");
    serde_json::from_str(text).expect("the schema is JSON")
}

/// How the answers of a side come.
#[derive(Clone, Copy)]
enum Coming {
    AsMade,
    AtOnce,
    InFours,
    Never,
    Uncounted,
    TooShort,
}

/// Eighteen requests in microseconds: 60 ms to the first token, 12 ms a token.
fn side(way: Way, coming: Coming) -> Side {
    let mut at = 0;
    let mut traces = Vec::new();
    for place in plan::order(7) {
        let tokens = Lengths::default().tokens()[place];
        let mut trace = answer(coming, at, tokens);
        trace.id = traces.len() as u64;
        trace.asked_output = Some(tokens);
        at += 5_000_000;
        traces.push(trace);
    }
    Side {
        way,
        url: "http://127.0.0.1:8000/v1/chat/completions".into(),
        traces,
    }
}

fn answer(coming: Coming, at: u64, tokens: u64) -> Trace {
    let last = 60_000 + 12_000 * tokens;
    let mut trace = match coming {
        Coming::AtOnce => stream(at, &[(last, tokens as u32, 4 * tokens as u32)]),
        Coming::InFours => {
            let fours: Vec<_> = (1..=tokens / 4)
                .map(|i| (60_000 + 48_000 * i, 4, 16))
                .collect();
            stream(at, &fours)
        }
        Coming::TooShort => steady(at, 60_000, 12_000, 9),
        Coming::AsMade | Coming::Uncounted | Coming::Never => steady(at, 60_000, 12_000, tokens),
    };
    trace.usage = match coming {
        Coming::Uncounted => None,
        Coming::TooShort => Some(usage(20, 9)),
        _ => Some(usage(20, tokens)),
    };
    if let Coming::Never = coming {
        trace.status = Some(500);
        trace.error = Some(ServerError {
            code: None,
            message: "died".into(),
        });
    }
    trace.declared = Some(Declared {
        output: Some(Length::from_micros(12_000 * tokens)),
        output_tokens: Some(tokens),
        ..Declared::default()
    });
    trace.path = Some(Box::new(Head {
        http: "1.1".into(),
        headers: [("server".to_owned(), "nginx".to_owned())].into(),
        reasoning_inside: false,
    }));
    trace
}

fn report(coming: Coming, other: Coming) -> Value {
    let setup = Setup {
        version: "0".into(),
        model: "m".into(),
        api: "openai-chat",
        sentinel: true,
        lengths: Lengths::default(),
        planned: Lengths::default(),
        seed: 7,
        interrupted: false,
        notes: vec!["n".into()],
    };
    let sides = vec![side(Way::Path, coming), side(Way::Direct, other)];
    let report = probe::judge(setup, sides).expect("a side");
    serde_json::to_value(&report).expect("a report serialises")
}

#[test]
fn every_report_of_a_probe_fits_its_schema() {
    for (coming, other, verdict) in [
        (Coming::AsMade, Coming::AtOnce, "streams"),
        (Coming::AtOnce, Coming::AsMade, "buffers"),
        (Coming::InFours, Coming::Uncounted, "bundles_by_time"),
        (Coming::Uncounted, Coming::AsMade, "streams"),
        (Coming::TooShort, Coming::AsMade, "cannot_tell"),
        (Coming::Never, Coming::AsMade, "cannot_tell"),
    ] {
        let report = report(coming, other);
        let complaints = check(&schema(), &report, Undescribed::Refused);
        assert!(complaints.is_empty(), "{complaints:#?}");
        assert_eq!(
            report["verdict"], verdict,
            "{}",
            report["paths"][0]["verdict"]
        );
    }
}

#[test]
fn the_schema_refuses_what_no_probe_says() {
    let mut wrong = report(Coming::AsMade, Coming::AtOnce);
    wrong["inferred"]["generation"]["evidence"] = json!("observed");
    assert!(!check(&schema(), &wrong, Undescribed::Allowed).is_empty());
    let mut wrong = report(Coming::AsMade, Coming::AtOnce);
    wrong["verdict"] = json!("maybe");
    assert!(!check(&schema(), &wrong, Undescribed::Allowed).is_empty());
    let mut wrong = report(Coming::AsMade, Coming::AtOnce);
    wrong["inferred"]["time_per_token"]["value"] = Value::Null;
    assert!(!check(&schema(), &wrong, Undescribed::Allowed).is_empty());
}
