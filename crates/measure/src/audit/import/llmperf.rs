//! Owns llmperf's summary and its list of individual responses.

use serde_json::Value;

use super::fields::{Kind, as_num, count, has, kind, length, num, text};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Row, Run, Seen, Stat, Tool};
use crate::tokens::Source;

/// How near to a whole number rate × latency must be to be a count of chunks.
const WHOLE: f64 = 0.02;

const FAMILIES: [(&str, Kind); 6] = [
    ("ttft_s", kind(Metric::Ttft, means::TTFT_ANSWER)),
    (
        "inter_token_latency_s",
        kind(Metric::Itl, means::ITL_WITH_WAIT),
    ),
    ("end_to_end_latency_s", kind(Metric::E2e, means::E2E)),
    (
        "request_output_throughput_token_per_s",
        kind(Metric::StreamEndToEnd, means::USER_AS_FIELD),
    ),
    (
        "number_output_tokens",
        kind(Metric::OutputLength, means::LENGTH_OUTPUT),
    ),
    (
        "number_input_tokens",
        kind(Metric::InputLength, means::LENGTH_INPUT),
    ),
];

/// Whether a value is a summary.
pub fn claims(value: &Value) -> Option<Tool> {
    let is = value.as_object().is_some_and(|members| {
        members.contains_key("num_concurrent_requests")
            || members.contains_key("results_num_requests_started")
            || members.contains_key("results_error_rate")
    });
    is.then_some(Tool::Llmperf)
}

/// Whether a value is one response of the list.
pub fn claims_row(value: &Value) -> Option<Tool> {
    let is = value.get("number_total_tokens").is_some()
        && (has(value, "/end_to_end_latency_s") || value.get("error_code").is_some());
    is.then_some(Tool::Llmperf)
}

/// One run a summary.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().map(run).collect()
}

fn run(value: &Value) -> Run {
    let mut run = Run::new();
    run.label = text(value, "/name");
    run.config.model = text(value, "/model");
    run.config.concurrency = num(value, "/num_concurrent_requests");
    run.config.unlimited = true;
    let fixed = num(value, "/stddev_output_tokens") == Some(0.0);
    run.config.output_limit = num(value, "/mean_output_tokens").filter(|_| fixed);
    run.config.requests = num(value, "/results_num_requests_started");
    run.books.completed = num(value, "/results_num_completed_requests");
    run.books.failed = num(value, "/results_number_errors");
    run.books.error_rate = num(value, "/results_error_rate");
    let minutes = num(value, "/results_num_completed_requests_per_min");
    run.state(
        Kind {
            metric: Metric::Requests,
            scale: 1.0 / 60.0,
            definition: means::REQUESTS_COMPLETED,
        },
        Stat::Value,
        "results_num_completed_requests_per_min",
        minutes,
    );
    run.total(
        value,
        "/results_mean_output_throughput_token_per_s",
        kind(Metric::SystemOutput, means::OUTPUT_RUN),
    );
    for (key, member) in value.as_object().into_iter().flatten() {
        let Some(rest) = key.strip_prefix("results_") else {
            continue;
        };
        for (name, of) in FAMILIES {
            let stat = rest
                .strip_prefix(name)
                .and_then(|stat| stat.strip_prefix('_'))
                .map(|stat| stat.trim_start_matches("quantiles_"));
            if let Some(stat) = stat.and_then(Stat::of_key) {
                run.state(of, stat, key, as_num(member));
            }
        }
    }
    run
}

/// All responses are requests of one run.
pub fn import_rows(values: &[Value]) -> Vec<Run> {
    let rows: Vec<Row> = values.iter().map(row).collect();
    vec![Run::of_rows(rows)]
}

fn row(value: &Value) -> Row {
    let ttft = num(value, "/ttft_s");
    let latency = num(value, "/end_to_end_latency_s");
    let rate = num(value, "/request_output_throughput_token_per_s");
    Row {
        start: None,
        ok: !has(value, "/error_code"),
        seen: seen(value, ttft, latency, rate).unwrap_or(Seen::Nothing),
        ttft,
        e2e: latency.and_then(length),
        output: count(value, "/number_output_tokens"),
        source: Source::Tokenizer,
        input: count(value, "/number_input_tokens"),
        limit: None,
        stated_rate: rate,
    }
}

/// Where rate × latency is a whole number other than the tokens, it is the count of chunks, and
/// mean gap × tokens is when the last of them came. Otherwise the file tells neither.
fn seen(value: &Value, ttft: Option<f64>, latency: Option<f64>, rate: Option<f64>) -> Option<Seen> {
    let (ttft, latency) = (ttft?, latency?);
    let tokens = num(value, "/number_output_tokens")?;
    let chunks = rate? * latency;
    let whole = (chunks - chunks.round()).abs() < WHOLE && chunks.round() >= 1.0;
    if !whole || chunks.round() == tokens || ttft <= 0.0 {
        return None;
    }
    let last = num(value, "/inter_token_latency_s")? * tokens;
    let last = last.clamp(ttft, latency.max(ttft));
    Some(Seen::Ends {
        first: length(ttft)?,
        last: length(last)?,
        chunks: chunks.round() as u64,
    })
}
