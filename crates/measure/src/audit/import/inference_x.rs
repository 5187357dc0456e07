//! Owns InferenceX's processed results: rates per GPU, and reciprocals of vLLM's statistics.

use serde_json::Value;

use super::fields::{Kind, first_num, has, kind, num, text};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Tool};

const FAMILIES: [(&str, Kind); 5] = [
    ("ttft", kind(Metric::Ttft, means::TTFT_CHOICES)),
    ("tpot", kind(Metric::Tpot, means::TPOT_TO_END)),
    ("itl", kind(Metric::Itl, means::ITL_CHUNK_GAPS)),
    ("e2el", kind(Metric::E2e, means::E2E)),
    (
        "intvty",
        kind(
            Metric::StreamGeneration,
            means::USER_RECIPROCAL_OF_STATISTIC,
        ),
    ),
];

/// Whether a value is a result.
pub fn claims(value: &Value) -> Option<Tool> {
    (has(value, "/tput_per_gpu") && has(value, "/conc")).then_some(Tool::InferenceX)
}

/// One run a value.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().map(run).collect()
}

fn run(value: &Value) -> Run {
    let mut run = Run::new();
    run.config.model = text(value, "/model");
    run.config.concurrency = num(value, "/conc");
    run.config.unlimited = true;
    let both = num(value, "/num_prefill_gpu").zip(num(value, "/num_decode_gpu"));
    run.totals.gpus = both
        .map(|(prefill, decode)| prefill + decode)
        .or_else(|| first_num(value, &["/num_gpus", "/tp"]));
    for (name, of) in [
        ("tput_per_gpu", kind(Metric::GpuTotal, means::GPU_TOTAL)),
        (
            "output_tput_per_gpu",
            kind(Metric::GpuOutput, means::GPU_OUTPUT),
        ),
        (
            "input_tput_per_gpu",
            kind(Metric::GpuInput, means::GPU_INPUT),
        ),
    ] {
        run.total(value, &format!("/{name}"), of);
    }
    run.flat(value, &FAMILIES);
    run
}
