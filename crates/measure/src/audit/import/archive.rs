//! Owns the archive of runs on four RTX 3090: labelled scopes and a curve over concurrency.

use serde_json::Value;

use super::fields::{Kind, has, kind, list, millis, num, text};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Stat, Tool};

/// Whether a value is a measurement of the archive.
pub fn claims(value: &Value) -> Option<Tool> {
    (has(value, "/output_tps_kind") && has(value, "/output_tok_s")).then_some(Tool::Archive4x3090)
}

/// One run a measurement, and one a further point of its curve.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().flat_map(measurement).collect()
}

fn measurement(value: &Value) -> Vec<Run> {
    let label = text(value, "/run_id").unwrap_or_default();
    let at = num(value, "/concurrency");
    let mut runs = vec![point(value, value, label.clone())];
    for other in list(value, "/curve") {
        let streams = num(other, "/concurrency");
        if streams != at {
            let shown = streams.map_or_else(|| "?".into(), |streams| streams.to_string());
            runs.push(point(value, other, format!("{label} at {shown}")));
        }
    }
    runs
}

fn point(whole: &Value, value: &Value, label: String) -> Run {
    let mut run = Run::new();
    run.label = Some(label);
    run.config.model = text(whole, "/model");
    run.config.concurrency = num(value, "/concurrency");
    run.config.unlimited = true;
    run.books.failed = num(value, "/errors");
    let kind_of_rate = text(whole, "/output_tps_kind").unwrap_or_default();
    let alone = kind_of_rate.starts_with("single_stream");
    let rate = match alone {
        true => Metric::StreamEndToEnd,
        false => Metric::SystemOutput,
    };
    for (names, stat, of) in [
        (
            ["/output_tok_s", "/output_tok_s"],
            Stat::Value,
            kind(rate, means::OUTPUT_LABELLED),
        ),
        (
            ["/total_tok_s", "/total_tok_s"],
            Stat::Value,
            kind(Metric::SystemTotal, means::TOTAL_RUN),
        ),
        (
            ["/req_s", "/req_s"],
            Stat::Value,
            kind(Metric::Requests, means::REQUESTS_COMPLETED),
        ),
        (["/ttft_p50_ms", "/ttft_p50"], Stat::Median, ttft()),
        (
            ["/ttft_p99_ms", "/ttft_p99"],
            Stat::Quantile(99_000),
            ttft(),
        ),
        (
            ["/itl_p50_ms", "/itl_p50"],
            Stat::Median,
            millis(Metric::Itl, means::ITL_UNSAID),
        ),
        (
            ["/e2e_p99_ms", "/e2e_p99"],
            Stat::Quantile(99_000),
            millis(Metric::E2e, means::E2E_UNSAID),
        ),
    ] {
        let found = names.iter().find(|path| has(value, path));
        if let Some(path) = found {
            run.state(of, stat, path.trim_start_matches('/'), num(value, path));
        }
    }
    run
}

const fn ttft() -> Kind {
    millis(Metric::Ttft, means::TTFT_UNSAID)
}
