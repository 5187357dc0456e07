//! Owns inference-perf's lifecycle metrics: of a run, or of one of its stages.

use serde_json::Value;

use super::fields::{has, kind, num};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Tool};

/// Whether a value is such a summary.
pub fn claims(value: &Value) -> Option<Tool> {
    let is = has(value, "/load_summary")
        && (has(value, "/successes/throughput") || has(value, "/successes/latency"));
    is.then_some(Tool::InferencePerf)
}

/// One run a value.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().map(run).collect()
}

fn run(value: &Value) -> Run {
    let mut run = Run::new();
    run.config.requests = num(value, "/load_summary/count");
    run.config.request_rate = num(value, "/load_summary/requested_rate");
    run.config.unlimited = run.config.request_rate.is_none();
    match run.config.request_rate {
        Some(_) => run.config.cap = num(value, "/load_summary/concurrency"),
        None => run.config.concurrency = num(value, "/load_summary/concurrency"),
    }
    run.books.completed =
        num(value, "/successes/count").or_else(|| num(value, "/load_summary/count"));
    run.books.failed = num(value, "/failures/count");
    for (path, of) in [
        (
            "/successes/latency/request_latency",
            kind(Metric::E2e, means::E2E),
        ),
        (
            "/successes/latency/time_to_first_token",
            kind(Metric::Ttft, means::TTFT_ANSWER),
        ),
        (
            "/successes/latency/time_per_output_token",
            kind(Metric::Tpot, means::TPOT_TO_LAST),
        ),
        (
            "/successes/latency/normalized_time_per_output_token",
            kind(Metric::NormalizedTpot, means::TPOT_WITH_WAIT),
        ),
        (
            "/successes/latency/inter_token_latency",
            kind(Metric::Itl, means::ITL_SPREAD),
        ),
        (
            "/successes/output_len",
            kind(Metric::OutputLength, means::LENGTH_OUTPUT),
        ),
        (
            "/successes/prompt_len",
            kind(Metric::InputLength, means::LENGTH_INPUT),
        ),
        (
            "/load_summary/schedule_delay",
            kind(Metric::ScheduleDelay, means::SCHEDULE_DELAY),
        ),
    ] {
        run.family(value, path, of);
    }
    for (name, of) in [
        (
            "requests_per_sec",
            kind(Metric::Requests, means::REQUESTS_COMPLETED),
        ),
        (
            "output_tokens_per_sec",
            kind(Metric::SystemOutput, means::OUTPUT_WITH_FAILURES),
        ),
        (
            "input_tokens_per_sec",
            kind(Metric::SystemInput, means::INPUT_RUN),
        ),
        (
            "total_tokens_per_sec",
            kind(Metric::SystemTotal, means::TOTAL_RUN),
        ),
    ] {
        run.total(value, &format!("/successes/throughput/{name}"), of);
    }
    run
}
