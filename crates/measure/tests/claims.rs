//! Reads claims of our own making and holds precision and recall of each field above a floor.

use std::collections::BTreeMap;

use measure::claim::{Claim, Given, read};
use measure::stated::number;

const TEXTS: &str = include_str!("claims.txt");
const FIELDS: [&str; 11] = [
    "value",
    "unit",
    "counted",
    "per",
    "scope",
    "concurrency",
    "time_base",
    "statistic",
    "ttft_included",
    "bound",
    "note",
];

/// What a field should be and what it is, both as shown; none is "-".
struct Score {
    right: u32,
    said: u32,
    wanted: u32,
}

fn shown<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value).expect("a field is JSON") {
        serde_json::Value::String(text) => text,
        serde_json::Value::Bool(true) => "yes".into(),
        serde_json::Value::Bool(false) => "no".into(),
        serde_json::Value::Null => "-".into(),
        other => other.to_string(),
    }
}

fn found(claim: &Claim, field: &str, want: &str) -> String {
    let fields = &claim.fields;
    match field {
        "value" => match (fields.value, fields.value_to) {
            (Some(low), Some(high)) => format!("{low} to {high}"),
            (value, _) => value.map_or("-".into(), |v| v.to_string()),
        },
        "unit" => shown(&fields.unit),
        "counted" => shown(&fields.counted),
        "per" => fields.per.map_or("-".into(), |per| per.name.into()),
        "scope" => shown(&fields.scope),
        "concurrency" => match (fields.concurrency, fields.concurrency_range) {
            (Some(n), _) => number(n),
            (_, Some(span)) => span.to_string(),
            _ => "-".into(),
        },
        "time_base" => fields.time_base.map_or("-".into(), |time| time.name.into()),
        "statistic" => shown(&fields.statistic),
        "ttft_included" => shown(&fields.ttft_included),
        "bound" => shown(&fields.bound),
        _ => {
            let named = claim.notes.iter().any(|note| note.code == want);
            if named { want.into() } else { "-".into() }
        }
    }
}

#[test]
fn precision_and_recall_of_each_field_stay_above_their_floors() {
    let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
    let mut texts = 0;
    for line in TEXTS.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('|');
        let text = columns.next().expect("a text");
        let claim = read(text, Given::default()).expect("a claim of usual length");
        texts += 1;
        for field in FIELDS {
            let want = columns
                .next()
                .unwrap_or_else(|| panic!("{text}: no {field}"));
            let want = if want.is_empty() { "-" } else { want };
            let have = found(&claim, field, want);
            let score = scores.entry(field).or_insert(Score {
                right: 0,
                said: 0,
                wanted: 0,
            });
            score.wanted += u32::from(want != "-");
            score.said += u32::from(have != "-");
            score.right += u32::from(want != "-" && have == want);
            if have != want {
                println!("{field}: want {want}, have {have}: {text}");
            }
        }
    }
    assert!(texts >= 60, "{texts} texts");
    for (
        field,
        Score {
            right,
            said,
            wanted,
        },
    ) in &scores
    {
        let (precision, recall) = (
            f64::from(*right) / f64::from(*said),
            f64::from(*right) / f64::from(*wanted),
        );
        println!(
            "{field:14} precision {precision:.3} recall {recall:.3} ({right} right, {said} said, {wanted} wanted)"
        );
        // A field that is wrong is worse than one that is missing.
        assert!(precision >= 0.97, "{field}: precision {precision}");
        assert!(recall >= 0.95, "{field}: recall {recall}");
    }
}
