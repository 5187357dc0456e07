//! Owns llama-benchy's results: JSON, and the Markdown table that people keep.

use serde_json::Value;

use super::fields::{believed, kind, list, millis, num, text};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Stat, Tool};

/// The most rows of a Markdown table that are read.
const MOST_ROWS: usize = 10_000;

/// Whether a value is llama-benchy's result.
pub fn claims(value: &Value) -> Option<Tool> {
    list(value, "/benchmarks")
        .iter()
        .any(|row| row.get("tg_throughput").is_some())
        .then_some(Tool::LlamaBenchy)
}

/// One run a row.
pub fn import(values: &[Value]) -> Vec<Run> {
    let of = |value: &Value| {
        let model = text(value, "/model");
        let rows = list(value, "/benchmarks").iter();
        rows.map(|one| row(one, model.clone())).collect::<Vec<_>>()
    };
    values.iter().flat_map(of).collect()
}

fn row(row: &Value, model: Option<String>) -> Run {
    let mut run = Run::new();
    let size = |path| num(row, path).unwrap_or(0.0);
    run.label = Some(format!(
        "pp{} tg{}",
        size("/prompt_size"),
        size("/response_size")
    ));
    run.config.model = model;
    run.config.concurrency = num(row, "/concurrency");
    run.config.unlimited = true;
    run.config.output_limit = num(row, "/response_size");
    for (name, of) in [
        (
            "tg_throughput",
            kind(Metric::SystemOutput, means::OUTPUT_FIRST_TO_LAST_TOKEN),
        ),
        (
            "tg_req_throughput",
            kind(Metric::StreamGeneration, means::USER_AFTER_FIRST),
        ),
        (
            "peak_throughput",
            kind(Metric::SystemPeak, means::PEAK_BUCKET),
        ),
        ("pp_throughput", kind(Metric::SystemInput, means::INPUT_RUN)),
        (
            "pp_req_throughput",
            kind(Metric::StreamPrompt, means::USER_PROMPT),
        ),
        ("e2e_ttft", millis(Metric::Ttft, means::TTFT_CONTENT)),
    ] {
        run.family(row, &format!("/{name}"), of);
    }
    run
}

/// The tables of llama-benchy in a text.
pub fn from_markdown(text: &str) -> Option<(Tool, Vec<Run>)> {
    let mut runs = Vec::new();
    let mut header: Option<Vec<&str>> = None;
    for line in text.lines() {
        let line = line.trim();
        if !line.starts_with('|') {
            header = None;
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match &header {
            _ if cells.contains(&"t/s (total)") || cells.contains(&"t/s (req)") => {
                header = Some(cells);
            }
            Some(_)
                if cells
                    .iter()
                    .all(|cell| cell.trim_matches(['-', ':']).is_empty()) => {}
            Some(names) if runs.len() < MOST_ROWS => runs.push(table_row(names, &cells)),
            _ => {}
        }
    }
    (!runs.is_empty()).then_some((Tool::LlamaBenchy, runs))
}

fn table_row(names: &[&str], cells: &[&str]) -> Run {
    let mut run = Run::new();
    let cell = |name: &str| {
        let index = names.iter().position(|found| *found == name)?;
        cells.get(index).copied().filter(|cell| !cell.is_empty())
    };
    let test = cell("test").unwrap_or_default();
    run.label = Some(test.to_owned());
    run.config.model = cell("model").map(str::to_owned);
    let streams = test
        .split_once("(c")
        .and_then(|(_, rest)| rest.split_once(')'));
    run.config.concurrency = streams.and_then(|(digits, _)| digits.trim().parse().ok());
    run.config.unlimited = true;
    let prompt = test.starts_with("pp") || test.starts_with("ctx_pp");
    let (total, each) = match prompt {
        true => (
            kind(Metric::SystemInput, means::INPUT_RUN),
            kind(Metric::StreamPrompt, means::USER_PROMPT),
        ),
        false => (
            kind(Metric::SystemOutput, means::OUTPUT_FIRST_TO_LAST_TOKEN),
            kind(Metric::StreamGeneration, means::USER_AFTER_FIRST),
        ),
    };
    for (name, of) in [
        ("t/s (total)", total),
        ("t/s (req)", each),
        ("t/s", each),
        ("peak t/s", kind(Metric::SystemPeak, means::PEAK_BUCKET)),
        ("e2e_ttft (ms)", millis(Metric::Ttft, means::TTFT_CONTENT)),
    ] {
        let Some(cell) = cell(name) else { continue };
        let (mean, spread) = match cell.split_once('±') {
            Some((mean, spread)) => (mean, Some(spread)),
            None => (cell, None),
        };
        let number = |text: &str| text.trim().parse::<f64>().ok().and_then(believed);
        run.state(of, Stat::Mean, name, number(mean));
        run.state(of, Stat::Std, name, spread.and_then(number));
    }
    run
}
