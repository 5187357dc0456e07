//! The audit of result files: every form is read, sound ones raise no fault, and each rule finds
//! what it is named for.

#[path = "../documents/check.rs"]
mod check;
mod hostile;
mod names;
mod observed;
mod planted;
mod rules;
mod samples;
mod schema;
mod tools;

use measure::audit::{Audit, audit};
use serde_json::Value;

/// The audit of a value written as JSON.
fn of(value: &Value) -> Audit {
    audit(value.to_string().as_bytes()).expect("imported")
}

/// The rules that found something, notes apart.
fn faults(audit: &Audit) -> Vec<&'static str> {
    audit
        .findings
        .iter()
        .filter(|finding| finding.severity > measure::audit::rules::Severity::Note)
        .map(|finding| finding.rule)
        .collect()
}

/// All rules that found something.
fn rules_of(audit: &Audit) -> Vec<&'static str> {
    audit.findings.iter().map(|finding| finding.rule).collect()
}
