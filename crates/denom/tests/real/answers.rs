//! Owns what holds for each answer of the real server, whatever lies in between.

use crate::parts;
use crate::report::{Level, Row};

/// Every request of the level ended well, and the books say so.
pub fn all_ok(level: &Level) {
    assert!(level.ok() > 0, "the level has no request");
    assert_eq!(level.ok(), level.issued(), "failures: {}", level.failed());
}

/// The row's token count is the server's, and nothing speaks against it.
pub fn counted_by_the_server(row: &Row) {
    assert_eq!(row.outcome(), "ok", "{row}");
    assert_eq!(row.token_source(), "server", "{row}");
    assert!(!row.has_flag("usage_inconsistent"), "{row}");
    assert!(row.input_tokens() > 0, "{row}");
}

/// The server's tokenizer, given the texts, counts as many tokens as arrived.
///
/// A model now and then writes a word in other pieces than the tokenizer would cut it into (seen in 1 of 40 answers,
/// by one token). A stop token counted as visible would shift every row, so most must be exact and none far off.
pub fn agree_with_the_tokenizer(rows: &[Row]) {
    let differences: Vec<i64> = rows.iter().map(difference).collect();
    let exact = differences
        .iter()
        .filter(|difference| **difference == 0)
        .count();
    assert!(
        exact * 4 >= rows.len() * 3,
        "tokenizer minus arrived: {differences:?}"
    );
    assert!(
        differences.iter().all(|difference| difference.abs() <= 3),
        "tokenizer minus arrived: {differences:?}"
    );
}

fn difference(row: &Row) -> i64 {
    let counted = parts::tokenize(row.text());
    i64::try_from(counted).expect("a count") - i64::try_from(row.output_tokens()).expect("a count")
}
