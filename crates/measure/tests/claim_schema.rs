//! Holds the published schema of a claim against every claim of the test texts, and a tested one.

mod checker;

use checker::faults;
use measure::basis::Rule;
use measure::claim::judge::{Answer, Rests, Tested};
use measure::claim::{Given, read};
use measure::figure::Withheld;
use measure::stated::Scope;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../docs/schema/claim-1.json");
const TEXTS: &str = include_str!("claims.txt");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema is JSON")
}

#[test]
fn claims_of_every_kind_fit_and_all_of_them_is_described() {
    for line in TEXTS.lines().filter(|line| !line.starts_with('#')) {
        let text = line.split('|').next().expect("a text");
        let claim = read(text, Given::default()).expect("a claim");
        let value = serde_json::to_value(&claim).expect("JSON");
        assert_eq!(
            faults(&schema(), &value, true),
            Vec::<String>::new(),
            "{text}"
        );
    }
}

#[test]
fn a_tested_claim_fits() {
    let rests = |value: Option<f64>| Rests {
        reading: Scope::System,
        metric: "system_throughput",
        unit: "tok/s".into(),
        value,
        interval: value.map(|value| [value, value]),
        seconds: Some(5.0),
        rule: Some(Rule::Steady),
        kept: 96,
        of: 96,
        concurrency: 16.0,
        held: Some(15.8),
        agrees: value.map(|_| true),
        withheld: value
            .is_none()
            .then(|| Withheld::new("few_chunks", "came at once")),
    };
    let mut claim = read("over 500 tok/s with 16 users", Given::default()).expect("a claim");
    claim.tested = Some(Tested {
        interrupted: false,
        answer: Answer::Aggregate,
        text: "It agrees.".into(),
        accepted: (450.0, None),
        rests_on: vec![rests(Some(512.0))],
        alone: vec![rests(None)],
        alone_refutes_per_stream: true,
        holds: Some(true),
    });
    let mut value = serde_json::to_value(&claim).expect("JSON");
    assert_eq!(faults(&schema(), &value, true), Vec::<String>::new());
    value["tested"]["answer"] = "perhaps".into();
    assert!(!faults(&schema(), &value, true).is_empty());
}
