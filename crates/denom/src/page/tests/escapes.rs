//! Owns the tests of what strangers' strings may not do.

use measure::judge::Guards;
use measure::report::build;

use super::make::{STREAMED, level, run};
use crate::page::{Style, csv, escape, markdown, text};

#[test]
fn a_terminal_is_sent_no_control_or_direction_character() {
    let shown = escape::terminal("a\u{1b}]52;c;aGk=\u{7}b\u{202e}c\u{85}\u{7f}\n");
    assert_eq!(
        shown,
        "a\\u{1b}]52;c;aGk=\\u{7}b\\u{202e}c\\u{85}\\u{7f}\\u{a}"
    );
}

#[test]
fn a_megabyte_takes_two_hundred_columns() {
    for c in ["x", "\u{1b}", "漢", "\u{301}"] {
        let shown = escape::terminal(&c.repeat(1 << 20));
        assert!(unicode_width::UnicodeWidthStr::width(shown.as_str()) <= escape::MOST_COLUMNS);
        assert!(
            shown.ends_with('…') && shown.len() < 2_000,
            "{}",
            shown.len()
        );
    }
    let just = "x".repeat(escape::MOST_COLUMNS);
    assert_eq!(escape::terminal(&just), just);
}

#[test]
fn markdown_is_no_markup() {
    assert_eq!(
        escape::markdown("a|b`c`</script>\n"),
        "a\\|b\\`c\\`&lt;/script>\\u{a}"
    );
}

#[test]
fn a_spreadsheet_is_given_no_formula() {
    for bad in ["=cmd()", "+1", "-1", "@x", "＝cmd()"] {
        assert_eq!(escape::csv(bad), format!("'{bad}"));
    }
    assert_eq!(escape::csv("\t=x"), "'\\u{9}=x");
    assert_eq!(escape::csv("\0=x"), "'\\u{0}=x");
    assert_eq!(escape::csv("tiny"), "tiny");
}

#[test]
fn a_hostile_model_name_obeys_every_page() {
    let mut hostile = run(vec![level(0, 1, 12, STREAMED)]);
    hostile.header.model = "=cmd()|</script>\u{1b}]52;c;aGk=\u{7}\u{202e}".into();
    let report = build(&hostile, Guards::default());
    let style = Style {
        color: false,
        width: 100,
    };
    for page in [text(&report, style), markdown(&report)] {
        assert!(!page.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{page}");
    }
    assert!(!markdown(&report).contains("</script>"));
    assert!(csv(&report).contains(",'=cmd()"));
    assert!(!csv(&report).contains('\u{1b}'));
}

#[test]
fn json_holds_nothing_a_terminal_obeys_and_says_the_same() {
    let text = "a\u{1b}\u{7f}\u{9b}31m\u{202e}\u{2028}\0\n é漢";
    let json = escape::json(serde_json::json!({ "text": text }).to_string());
    assert!(
        !json.contains(|c: char| c.is_control() || ('\u{2000}'..'\u{2070}').contains(&c)),
        "{json}"
    );
    assert!(json.contains("é漢"), "{json}");
    let read: serde_json::Value = serde_json::from_str(&json).expect("still JSON");
    assert_eq!(read["text"], text);
    assert_eq!(escape::json("{\n}".into()), "{\n}");
}
