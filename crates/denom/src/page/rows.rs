//! rows
#![allow(missing_docs)]
use measure::rows::Row;
pub enum Order {
    Slowest(usize),
    Fastest(usize),
    All,
}
pub fn select(r: Vec<Row>, _o: Order) -> Vec<Row> {
    r
}
pub fn json(r: &[Row]) -> String {
    serde_json::to_string_pretty(&serde_json::json!({"schema":"denom.rows/1","rows":r}))
        .unwrap_or_default()
}
pub fn text(r: &[Row], _s: super::Style) -> String {
    json(r)
}
pub fn markdown(r: &[Row]) -> String {
    json(r)
}
pub fn csv(r: &[Row]) -> String {
    json(r)
}
