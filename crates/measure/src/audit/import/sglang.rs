//! Owns SGLang's results: JSONL, and the console text that people keep.

use serde_json::Value;

use super::console::{self, Block};
use super::fields::{Kind, first_num, has, kind, millis, num, text};
use super::{rows, vllm};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Stat, Tool};

/// The line that a summary begins with, rules around it apart.
pub const TITLE: &str = "Serving Benchmark Result";

const TIMES: [(&str, Kind); 4] = [
    ("ttft_ms", millis(Metric::Ttft, means::TTFT_CONTENT)),
    ("tpot_ms", millis(Metric::Tpot, means::TPOT_TO_END)),
    ("itl_ms", millis(Metric::Itl, means::ITL_CHUNK_GAPS)),
    ("e2e_latency_ms", millis(Metric::E2e, means::E2E)),
];

/// Whether a value is a line of SGLang's result file.
pub fn claims(value: &Value) -> Option<Tool> {
    let is = has(value, "/completed")
        && has(value, "/request_throughput")
        && [
            "/server_info",
            "/dataset_name",
            "/total_throughput",
            "/sharegpt_output_len",
            "/total_output_tokens_retokenized",
        ]
        .iter()
        .any(|path| has(value, path));
    is.then_some(Tool::SglangBench)
}

/// One run a value.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().map(run).collect()
}

fn run(value: &Value) -> Run {
    let mut run = Run::new();
    run.label = text(value, "/tag");
    run.config.model = text(value, "/server_info/model_path").or_else(|| text(value, "/model"));
    vllm::common(&mut run, value);
    run.config.output_limit = first_num(value, &["/sharegpt_output_len", "/random_output_len"]);
    run.totals.retokenized = num(value, "/total_output_tokens_retokenized");
    run.total(
        value,
        "/total_throughput",
        kind(Metric::SystemTotal, means::TOTAL_RUN),
    );
    run.total(
        value,
        "/concurrency",
        kind(Metric::InFlight, means::IN_FLIGHT),
    );
    run.flat(value, &TIMES);
    run.rows = rows::detailed(value);
    run
}

/// The console summaries in a text, of SGLang or of vLLM, whose form it took.
pub fn from_text(text: &str) -> Option<(Tool, Vec<Run>)> {
    let blocks = console::blocks(text, TITLE);
    if blocks.is_empty() {
        return None;
    }
    let sglang = blocks.iter().any(|block| {
        block.number("Traffic request rate").is_some() || block.word("Backend").is_some()
    });
    let tool = match sglang {
        true => Tool::SglangBench,
        false => Tool::VllmBench,
    };
    Some((
        tool,
        blocks.iter().map(|block| of_block(block, tool)).collect(),
    ))
}

fn of_block(block: &Block, tool: Tool) -> Run {
    let mut run = Run::new();
    run.label = block.before.clone();
    run.books.completed = block.number("Successful requests");
    run.books.failed = block.number("Failed requests");
    run.totals.duration = block.number("Benchmark duration (s)");
    run.totals.input = block.number("Total input tokens");
    run.totals.output = block.number("Total generated tokens");
    run.totals.retokenized = block.number("Total generated tokens (retokenized)");
    run.config.request_rate = block
        .number("Traffic request rate")
        .or_else(|| block.number("Request rate configured (RPS)"));
    run.config.unlimited = run.config.request_rate.is_none();
    let at_once = block
        .number("Max request concurrency")
        .or_else(|| block.number("Maximum request concurrency"));
    match run.config.request_rate {
        Some(_) => run.config.cap = at_once,
        None => run.config.concurrency = at_once,
    }
    for (label, of) in [
        (
            "Request throughput (req/s)",
            kind(Metric::Requests, means::REQUESTS_COMPLETED),
        ),
        (
            "Output token throughput (tok/s)",
            kind(Metric::SystemOutput, means::OUTPUT_RUN),
        ),
        (
            "Input token throughput (tok/s)",
            kind(Metric::SystemInput, means::INPUT_RUN),
        ),
        (
            "Total throughput (tok/s)",
            kind(Metric::SystemTotal, means::TOTAL_RUN),
        ),
        (
            "Total token throughput (tok/s)",
            kind(Metric::SystemTotal, means::TOTAL_RUN),
        ),
        (
            "Peak output token throughput (tok/s)",
            kind(Metric::SystemPeak, means::PEAK_BUCKET),
        ),
        (
            "Peak concurrent requests",
            kind(Metric::PeakInFlight, means::PEAK_INFLIGHT),
        ),
        ("Concurrency", kind(Metric::InFlight, means::IN_FLIGHT)),
    ] {
        run.state(of, Stat::Value, label, block.number(label));
    }
    times(&mut run, block, tool);
    run
}

/// Lines such as `Median TTFT (ms): 606.88`.
fn times(run: &mut Run, block: &Block, tool: Tool) {
    let ttft = match tool {
        Tool::SglangBench => means::TTFT_CONTENT,
        _ => means::TTFT_CHOICES,
    };
    for (label, value) in &block.numbers {
        let Some((stat, name)) = label.split_once(' ') else {
            continue;
        };
        let of = match name {
            "TTFT (ms)" => millis(Metric::Ttft, ttft),
            "TPOT (ms)" => millis(Metric::Tpot, means::TPOT_TO_END),
            "ITL (ms)" => millis(Metric::Itl, means::ITL_CHUNK_GAPS),
            "E2E Latency (ms)" | "E2EL (ms)" => millis(Metric::E2e, means::E2E),
            _ => continue,
        };
        if let Some(stat) = Stat::of_key(&stat.to_ascii_lowercase()) {
            run.state(of, stat, label, Some(*value));
        }
    }
}
