//! Owns the pages: a report and its rows, rendered for people and for scripts. No number is made here.

pub mod audit;
pub mod audit_sarif;
mod cells;
pub mod claim;
mod csv;
pub mod escape;
mod facts;
mod grid;
mod markdown;
pub mod probe;
pub mod rows;
pub mod tally;
#[cfg(test)]
mod tests;
mod text;

use measure::report::Report;

pub use csv::csv;
pub use markdown::markdown;
pub use text::text;

/// How a text page is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Bold is allowed; without it the page is plain text.
    pub color: bool,
    /// Columns to fill at most.
    pub width: usize,
}

impl Style {
    /// The text in bold, or as it is on a plain page. It is not escaped here.
    pub fn bold(self, text: &str) -> String {
        match self.color && !text.is_empty() {
            true => format!("\u{1b}[1m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

/// The report as one JSON object, indented, with a line feed at its end.
pub fn json(report: &Report) -> String {
    indented(report)
}

/// Serde's maps with string keys and finite numbers always serialize; should that ever change,
/// the object says so instead of a page being half written.
fn indented<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_string_pretty(value) {
        Ok(text) => escape::json(text) + "\n",
        Err(error) => {
            format!("{}\n", serde_json::json!({ "error": error.to_string() }))
        }
    }
}
