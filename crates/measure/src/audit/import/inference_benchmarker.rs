//! Owns the results of Hugging Face's inference-benchmarker: one run an entry.

use serde_json::Value;

use super::fields::{has, kind, list, millis, num, text};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Stat, Tool};

/// Whether a value is a result.
pub fn claims(value: &Value) -> Option<Tool> {
    list(value, "/results")
        .iter()
        .any(|entry| has(entry, "/executor_type") && has(entry, "/token_throughput_secs"))
        .then_some(Tool::InferenceBenchmarker)
}

/// One run an entry.
pub fn import(values: &[Value]) -> Vec<Run> {
    values
        .iter()
        .flat_map(|value| list(value, "/results"))
        .map(run)
        .collect()
}

fn run(entry: &Value) -> Run {
    let mut run = Run::new();
    run.label = text(entry, "/id");
    run.config.request_rate = num(entry, "/config/rate");
    match run.config.request_rate {
        Some(_) => run.config.cap = num(entry, "/config/max_vus"),
        None => run.config.concurrency = num(entry, "/config/max_vus"),
    }
    run.config.unlimited = run.config.request_rate.is_none();
    run.books.completed = num(entry, "/successful_requests");
    run.books.failed = num(entry, "/failed_requests");
    run.totals.duration = num(entry, "/duration_ms").map(|millis| millis / 1e3);
    run.totals.output = num(entry, "/total_tokens");
    run.total(
        entry,
        "/request_rate",
        kind(Metric::Requests, means::REQUESTS_COMPLETED),
    );
    run.total(
        entry,
        "/token_throughput_secs",
        kind(Metric::SystemOutput, means::OUTPUT_RECEIVED),
    );
    for (name, of) in [
        (
            "time_to_first_token_ms",
            millis(Metric::Ttft, means::TTFT_CONTENT),
        ),
        (
            "inter_token_latency_ms",
            millis(Metric::Itl, means::ITL_MEAN_GAP),
        ),
        ("e2e_latency_ms", millis(Metric::E2e, means::E2E)),
    ] {
        let path = format!("/{name}");
        run.family(entry, &path, of);
        // Older files hold the mean alone.
        run.state(of, Stat::Mean, name, num(entry, &path));
    }
    run
}
