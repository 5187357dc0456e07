//! Owns the proof that names and definitions of the code stand in the documents.

use std::path::Path;

use measure::audit::definition;
use measure::audit::rules::{RULES, Severity};

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_rule_has_its_page_and_its_row() {
    let index = read("docs/audit/README.md");
    for rule in RULES {
        let head = format!("# {} ({})\n\n", rule.id, rule.severity.name());
        assert!(rule.page.starts_with(&head), "{}", rule.id);
        for part in [
            "**How it is computed.**",
            "**When it can be a false alarm.**",
        ] {
            assert!(rule.page.contains(part), "{} lacks {part}", rule.id);
        }
        let row = format!(
            "| [{0}]({0}.md) | {1} | {2} |",
            rule.id,
            rule.severity.name(),
            rule.summary()
        );
        assert!(index.contains(&row), "docs/audit/README.md lacks {row}");
        assert!(!rule.summary().is_empty());
    }
    let pages = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/audit"));
    assert_eq!(
        pages.expect("a folder").count(),
        RULES.len() + 1,
        "a page without a rule"
    );
}

#[test]
fn only_what_may_stand_on_a_clean_file_is_a_note() {
    let notes = RULES.iter().filter(|rule| rule.severity == Severity::Note);
    let notes: Vec<&str> = notes.map(|rule| rule.id).collect();
    assert_eq!(
        notes,
        [
            "no_concurrency",
            "per_stream_missing",
            "few_samples",
            "p99_from_too_few",
            "ramp_and_drain"
        ]
    );
}

#[test]
fn every_definition_stands_in_metrics_md_once() {
    let metrics = read("METRICS.md");
    for definition in definition::ALL {
        let row = format!("| `{}` | {} |", definition.id, definition.text);
        assert_eq!(metrics.matches(&row).count(), 1, "METRICS.md lacks {row}");
    }
    let mut ids: Vec<&str> = definition::ALL.iter().map(|one| one.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), definition::ALL.len());
}
