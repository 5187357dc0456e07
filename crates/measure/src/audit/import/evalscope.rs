//! Owns evalscope's `benchmark_summary.json`, whose keys are the names on its page.

use serde_json::Value;

use super::fields::{Kind, as_num, kind, millis};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Stat, Tool};

/// Whether a value is a summary: several of its page's names are keys.
pub fn claims(value: &Value) -> Option<Tool> {
    let names = [
        "Test Duration (s)",
        "Time taken for tests (s)",
        "Output Throughput (tok/s)",
        "Output token throughput (tok/s)",
        "Avg TTFT (ms)",
        "Average time to first token (s)",
        "Success Requests",
        "Succeed requests",
    ];
    let found = names.iter().filter(|name| named(value, name).is_some());
    (found.count() >= 3).then_some(Tool::Evalscope)
}

/// The value under a key, whatever its letters' case.
fn named<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let members = value.as_object()?;
    members.get(name).or_else(|| {
        members
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    })
}

/// A number under the first of these names; −1 says that the tool has none.
fn first(value: &Value, names: &[&str]) -> Option<(String, f64)> {
    let found = names.iter().find_map(|name| {
        let number = named(value, name).and_then(as_num)?;
        Some(((*name).to_owned(), number))
    });
    found.filter(|(_, number)| *number != -1.0)
}

/// One run a value.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().map(run).collect()
}

fn run(value: &Value) -> Run {
    let mut run = Run::new();
    let number = |names: &[&str]| first(value, names).map(|(_, number)| number);
    run.config.concurrency = number(&["Concurrency", "Number of concurrency"]);
    run.config.request_rate = number(&["Request Rate (req/s)"]).filter(|rate| *rate > 0.0);
    if run.config.request_rate.is_some() {
        run.config.cap = run.config.concurrency.take();
    }
    run.config.unlimited = run.config.request_rate.is_none();
    run.config.requests = number(&["Total Requests", "Total requests"]);
    run.books.completed = number(&["Success Requests", "Succeed Requests", "Succeed requests"]);
    run.books.failed = number(&["Failed Requests", "Failed requests"]);
    run.totals.duration = number(&["Test Duration (s)", "Time taken for tests (s)"]);
    let streams = number(&["Stream Requests"]);
    run.config.streaming = streams.map(|streams| streams > 0.0);
    for (names, stat, of) in numbers() {
        if let Some((field, number)) = first(value, names) {
            run.state(of, stat, &field, Some(number));
        }
    }
    run
}

type Named = (&'static [&'static str], Stat, Kind);

fn numbers() -> [Named; 12] {
    use Metric::*;
    let seconds = |metric, definition| kind(metric, definition);
    [
        (
            &["Request Throughput (req/s)"],
            Stat::Value,
            kind(Requests, means::REQUESTS_COMPLETED),
        ),
        (
            &[
                "Output Throughput (tok/s)",
                "Output token throughput (tok/s)",
            ],
            Stat::Value,
            kind(SystemOutput, means::OUTPUT_RUN),
        ),
        (
            &["Total Throughput (tok/s)", "Total token throughput (tok/s)"],
            Stat::Value,
            kind(SystemTotal, means::TOTAL_RUN),
        ),
        (
            &["Avg Latency (s)", "Average latency (s)"],
            Stat::Mean,
            seconds(E2e, means::E2E),
        ),
        (&["Avg Latency (ms)"], Stat::Mean, millis(E2e, means::E2E)),
        (
            &["Avg TTFT (ms)"],
            Stat::Mean,
            millis(Ttft, means::TTFT_CONTENT),
        ),
        (
            &["Avg TTFT (s)", "Average time to first token (s)"],
            Stat::Mean,
            seconds(Ttft, means::TTFT_CONTENT),
        ),
        (
            &["Avg TPOT (ms)"],
            Stat::Mean,
            millis(Tpot, means::TPOT_TO_END),
        ),
        (
            &["Avg TPOT (s)", "Average time per output token (s)"],
            Stat::Mean,
            seconds(Tpot, means::TPOT_TO_END),
        ),
        (
            &["Avg ITL (ms)"],
            Stat::Mean,
            millis(Itl, means::ITL_CHUNK_GAPS),
        ),
        (
            &["Decode Throughput (tok/s)", "Decode tok/s"],
            Stat::Mean,
            kind(StreamGeneration, means::USER_INVERSE),
        ),
        (
            &["Avg Output Tokens", "Average output tokens per request"],
            Stat::Mean,
            kind(OutputLength, means::LENGTH_OUTPUT),
        ),
    ]
}
