//! Owns the files of `vllm bench serve`, in Python and in Rust.

use serde_json::Value;

use super::fields::{Kind, first_num, has, kind, millis, num, text};
use super::rows;
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Tool};

/// Families by their flat key's end.
pub(super) const TIMES: [(&str, Kind); 4] = [
    ("ttft_ms", millis(Metric::Ttft, means::TTFT_CHOICES)),
    ("tpot_ms", millis(Metric::Tpot, means::TPOT_TO_END)),
    ("itl_ms", millis(Metric::Itl, means::ITL_CHUNK_GAPS)),
    ("e2el_ms", millis(Metric::E2e, means::E2E)),
];

/// Whether a value is a result of the Python or the Rust client.
pub fn claims(value: &Value) -> Option<Tool> {
    let is = has(value, "/completed")
        && has(value, "/request_throughput")
        && ["/model_id", "/endpoint_type", "/failed"]
            .iter()
            .any(|path| has(value, path));
    let rust = has(value, "/steady_state") || value.get("max_model_len").is_some();
    is.then_some(match rust {
        true => Tool::VllmBenchRust,
        false => Tool::VllmBench,
    })
}

/// One run a value.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().map(run).collect()
}

fn run(value: &Value) -> Run {
    let mut run = Run::new();
    run.label = text(value, "/label").or_else(|| text(value, "/date"));
    run.config.model = text(value, "/model_id");
    common(&mut run, value);
    run.books.failed = num(value, "/failed");
    run.config.output_limit = first_num(value, &["/random_output_len", "/output_len"]);
    run.total(
        value,
        "/total_token_throughput",
        kind(Metric::SystemTotal, means::TOTAL_RUN),
    );
    run.flat(value, &TIMES);
    run.total(
        value,
        "/denom/held",
        kind(Metric::InFlight, means::IN_FLIGHT),
    );
    run.total(
        value,
        "/steady_state/output_throughput",
        kind(Metric::SystemSteadyOutput, means::OUTPUT_STEADY_CHUNKS),
    );
    run.rows = rows::detailed(value);
    run
}

/// What vLLM's and SGLang's flat results have in common.
pub(super) fn common(run: &mut Run, value: &Value) {
    run.config.requests = num(value, "/num_prompts");
    run.config.request_rate = num(value, "/request_rate");
    run.config.unlimited = run.config.request_rate.is_none();
    let at_once = num(value, "/max_concurrency");
    match run.config.request_rate {
        Some(_) => run.config.cap = at_once,
        None => run.config.concurrency = at_once,
    }
    run.books.completed = num(value, "/completed");
    run.totals.duration = run.sum(value, "/duration");
    run.totals.output = run.sum(value, "/total_output_tokens");
    run.totals.input = run.sum(value, "/total_input_tokens");
    for (path, of) in [
        (
            "/request_throughput",
            kind(Metric::Requests, means::REQUESTS_COMPLETED),
        ),
        (
            "/output_throughput",
            kind(Metric::SystemOutput, means::OUTPUT_RUN),
        ),
        (
            "/input_throughput",
            kind(Metric::SystemInput, means::INPUT_RUN),
        ),
        (
            "/max_output_tokens_per_s",
            kind(Metric::SystemPeak, means::PEAK_BUCKET),
        ),
        (
            "/max_concurrent_requests",
            kind(Metric::PeakInFlight, means::PEAK_INFLIGHT),
        ),
    ] {
        run.total(value, path, of);
    }
}
