//! Holds the published schema of a tally against tallies with and without workers, long and short.

mod checker;

use checker::faults;
use measure::tally::{Excluded, Options, Row, Tally};
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../docs/schema/tally-1.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema is JSON")
}

/// `rows` pieces of work of three seconds by two workers, one a second.
fn tallied(rows: u32, by_worker: bool) -> Value {
    let mut tally = Tally::new(Options {
        by_worker,
        unit: "pages".into(),
        ..Options::default()
    });
    tally.exclude(Excluded::Malformed);
    for row in 0..rows {
        let (start, end, worker) = (
            row.to_string(),
            (row + 3).to_string(),
            (row % 2).to_string(),
        );
        tally.add(&Row {
            start: Some(&start),
            end: Some(&end),
            worker: Some(&worker),
            ..Row::default()
        });
    }
    serde_json::to_value(tally.finish().expect("a report")).expect("JSON")
}

#[test]
fn tallies_fit_and_all_of_them_is_described() {
    for (rows, by_worker) in [(1, false), (5, true), (400, true), (400, false)] {
        let value = tallied(rows, by_worker);
        assert_eq!(
            faults(&schema(), &value, true),
            Vec::<String>::new(),
            "{rows} {by_worker}"
        );
    }
    let long = tallied(400, true);
    assert_eq!(long["durations"]["p99"]["withheld"], Value::Null);
    assert_eq!(
        long["per_worker"]["rate"]["p50"]["withheld"]["code"],
        "too_few"
    );
    assert_eq!(long["books"]["excluded"]["malformed"], 1);
}

#[test]
fn what_does_not_fit_is_found() {
    let mut value = tallied(5, true);
    value["readings"][0]["if"] = "both".into();
    value["peak"]
        .as_object_mut()
        .expect("an object")
        .remove("window_s");
    assert_eq!(faults(&schema(), &value, true).len(), 2);
}
