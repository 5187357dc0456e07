//! No file makes the audit panic or state a number that is none.

use std::sync::LazyLock;

use measure::audit::audit;
use measure::audit::report::{FileReport, Report};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::samples;

/// Audits and serialises, as the program does; every number in it must be finite.
fn survives(bytes: &[u8]) {
    let report = Report::new(vec![FileReport::new("f".into(), audit(bytes))], Vec::new());
    let value = serde_json::to_value(&report).expect("a report serialises");
    assert!(no_strange_number(&value), "{value}");
    for finding in report.files.iter().flat_map(|file| &file.findings) {
        let strange = finding
            .text
            .split(' ')
            .any(|word| word == "inf" || word == "-inf");
        assert!(!strange, "{}", finding.text);
    }
}

/// The samples' texts, made once: some hold hundreds of requests.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    samples::all()
        .into_iter()
        .map(|sample| sample.text)
        .collect()
});

/// serde writes what is no finite number as null; −1 would be a marker.
fn no_strange_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64() != Some(-1.0),
        Value::Array(items) => items.iter().all(no_strange_number),
        Value::Object(members) => members.values().all(no_strange_number),
        _ => true,
    }
}

/// Values that a number may be replaced by.
fn strange() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(0)),
        Just(json!(-1)),
        Just(json!(-0.0)),
        Just(json!(1e308)),
        Just(json!(5e-324)),
        Just(json!(-1e308)),
        Just(json!(u64::MAX)),
        Just(json!("inf")),
        Just(json!("1e400")),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null, -5, 1e300, "x"])),
        Just(json!(true)),
    ]
}

/// Pointers to every member of a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                found.push(place.clone());
                places(member, &place, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().take(3) {
                let place = format!("{at}/{index}");
                found.push(place.clone());
                places(item, &place, found);
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn members_of_any_form_may_be_replaced(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), strange()), 1..6),
    ) {
        let text: &String = which.get(TEXTS.as_slice());
        let Ok(mut value) = serde_json::from_str::<Value>(text) else {
            return Ok(());
        };
        let mut found = Vec::new();
        places(&value, "", &mut found);
        for (place, new) in changes {
            if let Some(member) = value.pointer_mut(place.get(&found[..]).as_str()) {
                *member = new;
            }
        }
        survives(value.to_string().as_bytes());
    }

    #[test]
    fn bytes_of_any_form_may_be_changed_cut_or_doubled(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..8),
        cut in any::<bool>(),
    ) {
        let mut text = which.get(TEXTS.as_slice()).clone().into_bytes();
        let at = at.index(text.len());
        match cut {
            true => text.truncate(at),
            false => text.splice(at..at, bytes).for_each(drop),
        }
        survives(&text);
    }

    #[test]
    fn any_bytes_at_all(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        survives(&bytes);
    }
}

#[test]
fn depth_length_and_count_are_bounded() {
    survives("[".repeat(200_000).as_bytes());
    survives("{\"a\":".repeat(200_000).as_bytes());
    survives(&vec![b'9'; 1_000_000]);
    let many = "{\"avg_ts\":1,\"n_gen\":1}\n".repeat(measure::audit::MOST_RUNS + 5);
    let audit = audit(many.as_bytes()).expect("imported");
    assert_eq!(audit.runs, measure::audit::MOST_RUNS);
    assert!(
        audit
            .left_out
            .iter()
            .any(|left| left.contains("only the first")),
        "{:?}",
        audit.left_out
    );
    let wide = format!(
        "============ Serving Benchmark Result ============\n{}: 1\n",
        "x".repeat(500_000)
    );
    survives(wide.as_bytes());
}
