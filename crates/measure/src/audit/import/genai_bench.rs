//! Owns genai-bench's result of one concurrency.

use serde_json::Value;

use super::fields::{Kind, count, first_num, has, kind, length, list, num, text};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Row, Rows, Run, Seen, Stat, Tool};
use crate::tokens::Source;

/// Whether a value is a result.
pub fn claims(value: &Value) -> Option<Tool> {
    has(value, "/aggregated_metrics/stats").then_some(Tool::GenaiBench)
}

/// One run a value.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().map(run).collect()
}

fn run(value: &Value) -> Run {
    let mut run = Run::new();
    let all = &value["aggregated_metrics"];
    let scale = match text(value, "/_time_unit")
        .or_else(|| text(all, "/_time_unit"))
        .as_deref()
    {
        Some("ms") => 1e-3,
        _ => 1.0,
    };
    run.label = text(all, "/scenario");
    run.config.concurrency = num(all, "/num_concurrency");
    run.config.unlimited = true;
    run.config.output_limit = run.label.as_deref().and_then(fixed_output);
    run.config.requests = num(all, "/num_requests");
    run.books.completed = num(all, "/num_completed_requests");
    run.books.failed = num(all, "/num_error_requests");
    run.books.error_rate = num(all, "/error_rate");
    run.totals.duration = num(all, "/run_duration");
    run.totals.output = num(all, "/stats/num_output_tokens/sum");
    let per_minute = num(all, "/requests_per_minute").map(|rate| rate / 60.0);
    let rate = first_num(all, &["/requests_per_second"]).or(per_minute);
    run.state(
        kind(Metric::Requests, means::REQUESTS_COMPLETED),
        Stat::Value,
        "aggregated_metrics.requests_per_second",
        rate,
    );
    totals(&mut run, value);
    families(&mut run, value, scale);
    run.rows = rows(value, scale);
    run
}

fn totals(run: &mut Run, value: &Value) {
    for (name, of) in [
        (
            "mean_output_throughput_tokens_per_s",
            kind(Metric::SystemOutput, means::OUTPUT_TRIMMED),
        ),
        (
            "mean_input_throughput_tokens_per_s",
            kind(Metric::SystemInput, means::INPUT_RUN),
        ),
        (
            "mean_total_tokens_throughput_tokens_per_s",
            kind(Metric::SystemTotal, means::TOTAL_RUN),
        ),
    ] {
        run.total(value, &format!("/aggregated_metrics/{name}"), of);
    }
}

fn families(run: &mut Run, value: &Value, scale: f64) {
    let time = |metric, definition| Kind {
        metric,
        scale,
        definition,
    };
    for (name, of) in [
        ("ttft", time(Metric::Ttft, means::TTFT_CONTENT)),
        ("tpot", time(Metric::Tpot, means::TPOT_TO_END)),
        ("e2e_latency", time(Metric::E2e, means::E2E)),
        (
            "output_throughput",
            kind(Metric::StreamGeneration, means::USER_AFTER_FIRST),
        ),
        (
            "output_inference_speed",
            kind(Metric::StreamGeneration, means::USER_INVERSE),
        ),
        (
            "num_output_tokens",
            kind(Metric::OutputLength, means::LENGTH_OUTPUT),
        ),
        (
            "num_input_tokens",
            kind(Metric::InputLength, means::LENGTH_INPUT),
        ),
    ] {
        run.family(value, &format!("/aggregated_metrics/stats/{name}"), of);
    }
}

/// `D(in,out)` asks every request for the same output length.
fn fixed_output(scenario: &str) -> Option<f64> {
    let inner = scenario.strip_prefix("D(")?.strip_suffix(')')?;
    inner.split_once(',')?.1.trim().parse().ok()
}

/// Rows without stamps between first content and end: only first and whole are known.
fn rows(value: &Value, scale: f64) -> Rows {
    let written = list(value, "/individual_request_metrics");
    if written.is_empty() {
        return Rows::None;
    }
    let row = |value: &Value| Row {
        start: None,
        ok: !has(value, "/error_code"),
        seen: Seen::Nothing,
        ttft: num(value, "/ttft").map(|ttft| ttft * scale),
        e2e: num(value, "/e2e_latency").and_then(|latency| length(latency * scale)),
        output: count(value, "/num_output_tokens"),
        source: Source::Server,
        input: count(value, "/num_input_tokens"),
        limit: None,
        stated_rate: None,
    };
    Rows::Written(written.iter().map(row).collect())
}
