//! Owns the audit as SARIF 2.1.0, for hosts that annotate a repository's own result files.

use measure::audit::report::{FileReport, Report};
use measure::audit::rules::{RULES, Rule, Severity};
use serde_json::{Value, json};

use super::escape::line;
use super::indented;

/// The audit as one SARIF log with one run.
pub fn sarif(report: &Report) -> String {
    let results: Vec<Value> = report.files.iter().flat_map(results).collect();
    let refused: Vec<Value> = report.files.iter().filter_map(refused).collect();
    indented(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "denom audit",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": RULES.iter().map(rule).collect::<Vec<_>>(),
            }},
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": refused,
            }],
            "results": results,
        }],
    }))
}

fn level(severity: Severity) -> &'static str {
    severity.name()
}

fn rule(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.summary() },
        "help": { "text": rule.page, "markdown": rule.page },
        "defaultConfiguration": { "level": level(rule.severity) },
    })
}

fn results(file: &FileReport) -> Vec<Value> {
    let of = |finding: &measure::audit::Finding| {
        let runs = match (finding.count, finding.of) {
            (_, 1) => String::new(),
            (count, of) => format!(" ({count} of {of} runs)"),
        };
        json!({
            "ruleId": finding.rule,
            "ruleIndex": RULES.iter().position(|rule| rule.id == finding.rule),
            "level": level(finding.severity),
            "message": { "text": format!("{}{runs}", line(&finding.text)) },
            "locations": [location(&file.file, finding.line.unwrap_or(1))],
        })
    };
    file.findings.iter().map(of).collect()
}

/// A file that was not imported is no finding, but its reader must see it.
fn refused(file: &FileReport) -> Option<Value> {
    let why = file.not_imported.as_ref()?;
    Some(json!({
        "level": "note",
        "message": { "text": format!("not imported: {}", line(why)) },
        "locations": [location(&file.file, 1)],
    }))
}

fn location(file: &str, row: usize) -> Value {
    json!({ "physicalLocation": {
        "artifactLocation": { "uri": uri(file) },
        "region": { "startLine": row },
    }})
}

/// A path as a relative URI: whatever is no plain character is percent-encoded.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.trim_start_matches("./").replace('\\', "/").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
