//! Owns the proof that every audit fits the published schema, and that the schema can refuse.

use measure::audit::audit;
use measure::audit::report::{FileReport, Report};
use serde_json::{Value, json};

use crate::check::{Undescribed, check};
use crate::samples;

fn schema() -> Value {
    let text = include_str!("../../../../docs/schema/audit-1.json");
    serde_json::from_str(text).expect("the schema is JSON")
}

/// One file of each form, one with single requests that burst, one refused, one cut short.
fn every_form() -> Value {
    let mut files: Vec<FileReport> = samples::all()
        .iter()
        .map(|sample| FileReport::new(sample.tool.into(), audit(sample.text.as_bytes())))
        .collect();
    let mut burst = samples::vllm_detailed();
    burst["itls"] = Value::Array(vec![json!(vec![0.000_01; 63]); 400]);
    burst["completed"] = json!(12);
    let text = format!("{burst}\n{{\"torn");
    files.push(FileReport::new("b".into(), audit(text.as_bytes())));
    files.push(FileReport::new("c".into(), audit(b"{\"completed\": 1}")));
    let report = Report::new(files, vec!["a folder".into()]);
    serde_json::to_value(&report).expect("an audit serialises")
}

#[test]
fn every_member_of_an_audit_is_described_and_of_its_kind() {
    let audit = every_form();
    assert_eq!(check(&schema(), &audit, Undescribed::Refused), [""; 0]);
    let burst = &audit["files"][samples::all().len()];
    assert_eq!(burst["left_out"].as_array().map(Vec::len), Some(1));
    assert_eq!(audit["summary"]["imported"], samples::all().len() + 1);
}

#[test]
fn the_schema_refuses_what_an_audit_must_not_be() {
    for (place, wrong) in [
        ("/schema", json!("denom.audit/2")),
        ("/files/0/findings/0/severity", json!("bad")),
        ("/files/0/stated/0/evidence", json!("observed")),
        ("/files/0/stated/0/definition", json!("ttft")),
        ("/summary/files", json!(-1)),
    ] {
        let mut audit = every_form();
        *audit.pointer_mut(place).expect(place) = wrong;
        assert_ne!(
            check(&schema(), &audit, Undescribed::Refused),
            [""; 0],
            "{place}"
        );
    }
}
