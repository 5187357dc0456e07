//! Owns the pages.
#![allow(missing_docs)]
pub mod escape;
pub mod rows;
use measure::report::Report;
#[derive(Clone, Copy)]
pub struct Style {
    pub color: bool,
    pub width: usize,
}
impl Style {
    pub fn bold(self, t: &str) -> String {
        t.to_owned()
    }
}
pub fn text(r: &Report, _s: Style) -> String {
    json(r)
}
pub fn json(r: &Report) -> String {
    serde_json::to_string_pretty(r).unwrap_or_default()
}
pub fn markdown(r: &Report) -> String {
    json(r)
}
pub fn csv(r: &Report) -> String {
    json(r)
}
