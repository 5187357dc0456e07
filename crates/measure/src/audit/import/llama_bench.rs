//! Owns llama-bench's rows: JSON, a list or one a line.

use serde_json::Value;

use super::fields::{has, kind, list, num, text};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Stat, Tool};

/// Whether a value is a row of llama-bench.
pub fn claims(value: &Value) -> Option<Tool> {
    (has(value, "/avg_ts") && has(value, "/n_gen")).then_some(Tool::LlamaBench)
}

/// One run a row: batch 1, inside the engine.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().map(row).collect()
}

fn row(value: &Value) -> Run {
    let mut run = Run::new();
    let whole = |path| num(value, path).unwrap_or(0.0);
    let (prompt, output) = (whole("/n_prompt"), whole("/n_gen"));
    run.label = Some(format!(
        "pp{prompt} tg{output} at depth {}",
        whole("/n_depth")
    ));
    run.config.model = text(value, "/model_type").or_else(|| text(value, "/model_filename"));
    run.config.concurrency = Some(1.0);
    run.config.unlimited = true;
    let rate = match output > 0.0 {
        true => kind(Metric::StreamGeneration, means::OUTPUT_BATCH_ONE),
        false => kind(Metric::StreamPrompt, means::PROMPT_ENGINE),
    };
    run.state(rate, Stat::Mean, "avg_ts", num(value, "/avg_ts"));
    run.state(rate, Stat::Std, "stddev_ts", num(value, "/stddev_ts"));
    let samples = list(value, "/samples_ns").len();
    run.books.completed = (samples > 0).then_some(samples as f64);
    let seconds = num(value, "/avg_ns").map(|nanos| nanos / 1e9);
    run.totals.duration = seconds;
    run.totals.output = (prompt == 0.0 && output > 0.0).then_some(output);
    run
}
