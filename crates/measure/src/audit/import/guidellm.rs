//! Owns GuideLLM's `benchmarks.json`: one run a benchmark of the list.

use serde_json::Value;

use super::fields::{Kind, as_num, first_num, has, kind, list, millis, num, text};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Stat, Tool};

/// Whether a value is a report.
pub fn claims(value: &Value) -> Option<Tool> {
    let is = has(value, "/metadata/guidellm_version")
        || list(value, "/benchmarks").iter().any(|benchmark| {
            has(benchmark, "/metrics/request_totals")
                || has(benchmark, "/metrics/time_to_first_token_ms")
        });
    (is && value.get("benchmarks").is_some_and(Value::is_array)).then_some(Tool::Guidellm)
}

/// One run a benchmark.
pub fn import(values: &[Value]) -> Vec<Run> {
    values
        .iter()
        .flat_map(|value| list(value, "/benchmarks"))
        .map(run)
        .collect()
}

fn run(benchmark: &Value) -> Run {
    let mut run = Run::new();
    strategy(&mut run, benchmark);
    run.config.model = text(benchmark, "/config/backend/model");
    run.books.completed = num(benchmark, "/metrics/request_totals/successful");
    run.books.failed = num(benchmark, "/metrics/request_totals/errored");
    run.totals.duration = num(benchmark, "/duration");
    run.totals.output = num(
        benchmark,
        "/metrics/output_token_count/successful/total_sum",
    );
    run.totals.input = num(
        benchmark,
        "/metrics/prompt_token_count/successful/total_sum",
    );
    for (name, of) in [
        ("request_latency", kind(Metric::E2e, means::E2E)),
        (
            "time_to_first_token_ms",
            millis(Metric::Ttft, means::TTFT_CONTENT),
        ),
        (
            "inter_token_latency_ms",
            millis(Metric::Tpot, means::TPOT_TO_LAST),
        ),
        (
            "time_per_output_token_ms",
            millis(Metric::NormalizedTpot, means::TPOT_WITH_WAIT),
        ),
        (
            "output_token_count",
            kind(Metric::OutputLength, means::LENGTH_OUTPUT),
        ),
        (
            "prompt_token_count",
            kind(Metric::InputLength, means::LENGTH_INPUT),
        ),
    ] {
        successes(&mut run, benchmark, name, of);
    }
    // Of rates only the mean: their quantiles are of a rate from instant to instant.
    for (name, of) in [
        (
            "requests_per_second",
            kind(Metric::Requests, means::REQUESTS_COMPLETED),
        ),
        (
            "output_tokens_per_second",
            kind(Metric::SystemOutput, means::OUTPUT_INSTANT),
        ),
        (
            "tokens_per_second",
            kind(Metric::SystemTotal, means::TOTAL_RUN),
        ),
        (
            "request_concurrency",
            kind(Metric::InFlight, means::IN_FLIGHT),
        ),
    ] {
        let path = format!("/metrics/{name}/successful/mean");
        run.total(benchmark, &path, of);
    }
    run
}

/// Statistics of the successes, with quantiles under GuideLLM's own names.
fn successes(run: &mut Run, benchmark: &Value, name: &str, of: Kind) {
    let path = format!("/metrics/{name}/successful");
    run.family(benchmark, &path, of);
    let quantiles = format!("{path}/percentiles");
    let Some(members) = benchmark.pointer(&quantiles).and_then(Value::as_object) else {
        return;
    };
    for (key, value) in members {
        if let Some(stat) = quantile(key) {
            let field = format!("metrics.{name}.successful.percentiles.{key}");
            run.state(of, stat, &field, as_num(value));
        }
    }
}

/// `p001` is 0.1 %, `p05` is 5 %, `p50` is 50 %, `p999` is 99.9 %.
fn quantile(key: &str) -> Option<Stat> {
    let digits = key.strip_prefix('p').filter(|digits| digits.len() <= 3)?;
    let value: f64 = digits.parse().ok()?;
    match digits.len() {
        3 => Stat::quantile(value / 10.0),
        _ => Stat::quantile(value),
    }
}

/// The load of a benchmark: streams, or a rate.
fn strategy(run: &mut Run, benchmark: &Value) {
    let given = benchmark
        .pointer("/config/strategy")
        .or_else(|| benchmark.pointer("/args/strategy"))
        .unwrap_or(&Value::Null);
    let name = text(given, "/type_").unwrap_or_default();
    match name.as_str() {
        "synchronous" => run.config.concurrency = Some(1.0),
        "concurrent" => {
            run.config.concurrency = first_num(given, &["/streams", "/max_concurrency"]);
        }
        "constant" | "poisson" | "async" => {
            run.config.request_rate = num(given, "/rate");
            run.config.cap = num(given, "/max_concurrency");
        }
        _ => run.config.concurrency = None,
    }
    run.config.unlimited = run.config.request_rate.is_none();
    let load = run.config.concurrency.or(run.config.request_rate);
    run.label = Some(match load {
        Some(load) => format!("{name} {load}"),
        None => name,
    });
}
