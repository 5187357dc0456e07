//! Owns oha's JSON summary.

use serde_json::Value;

use super::fields::{as_num, first_num, has, kind, num};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Stat, Tool};

/// What oha writes of a request that the end of the test cut off.
const CUT_OFF: &str = "aborted due to deadline";

/// Whether a value is a summary.
pub fn claims(value: &Value) -> Option<Tool> {
    let is = has(value, "/summary/requestsPerSec") && has(value, "/summary/successRate");
    is.then_some(Tool::Oha)
}

/// One run a value.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().map(run).collect()
}

fn run(value: &Value) -> Run {
    let mut run = Run::new();
    run.config.unlimited = true;
    let (mut good, mut bad) = (0.0, 0.0);
    for (status, count) in members(value, "/statusCodeDistribution") {
        match status.starts_with('2') || status.starts_with('3') {
            true => good += count,
            false => bad += count,
        }
    }
    let mut cut_off = 0.0;
    for (error, count) in members(value, "/errorDistribution") {
        bad += count;
        if error.contains(CUT_OFF) {
            cut_off += count;
        }
    }
    run.books.completed = has(value, "/statusCodeDistribution").then_some(good);
    run.books.failed = (has(value, "/statusCodeDistribution")).then_some(bad);
    run.books.left_out = (cut_off > 0.0).then_some(cut_off);
    run.books.error_rate = num(value, "/summary/successRate").map(|rate| 1.0 - rate);
    run.totals.duration = num(value, "/summary/total");
    run.total(
        value,
        "/summary/requestsPerSec",
        kind(Metric::Requests, means::REQUESTS_ALL),
    );
    let e2e = kind(Metric::E2e, means::E2E_ITERATION);
    run.family(value, "/summary", e2e);
    run.family(value, "/latencyPercentiles", e2e);
    let first_byte = first_num(value, &["/details/firstByte/average", "/firstByte/average"]);
    run.state(
        kind(Metric::Ttft, means::TTFT_BYTE),
        Stat::Mean,
        "details.firstByte.average",
        first_byte,
    );
    run
}

fn members<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = (&'a String, f64)> {
    let found = value.pointer(path).and_then(Value::as_object);
    found
        .into_iter()
        .flatten()
        .filter_map(|(key, count)| Some((key, as_num(count)?)))
}
