//! Owns servebench's `run.json`: one run a level, with every chunk's time.

use serde_json::Value;

use super::fields::{as_num, count, has, kind, length, list, num, text};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Row, Rows, Run, Seen, Tool};
use crate::tokens::Source;

/// Whether a value is a run.
pub fn claims(value: &Value) -> Option<Tool> {
    let levels = list(value, "/levels");
    let is = has(value, "/environment/servebench_version")
        || levels.iter().any(|level| {
            has(level, "/requests/0/chunk_times") && has(level, "/requests/0/token_source")
        });
    (is && !levels.is_empty()).then_some(Tool::Servebench)
}

/// One run a level.
pub fn import(values: &[Value]) -> Vec<Run> {
    let of = |value: &Value| {
        let levels = list(value, "/levels").iter();
        levels.map(|level| run(value, level)).collect::<Vec<_>>()
    };
    values.iter().flat_map(of).collect()
}

fn run(value: &Value, level: &Value) -> Run {
    let mut run = Run::new();
    let mode = text(level, "/mode").unwrap_or_default();
    let load = num(level, "/value");
    match mode.as_str() {
        "concurrency" => run.config.concurrency = load,
        _ => {
            run.config.request_rate = load;
            run.config.cap = num(value, "/config/max_concurrency");
        }
    }
    run.label = load.map(|load| format!("{mode} {load}"));
    run.config.unlimited = run.config.request_rate.is_none();
    run.config.model = text(value, "/config/model");
    run.config.output_limit =
        num(value, "/config/output_len").filter(|_| !has(value, "/config/output_dist"));
    run.books.completed = num(level, "/summary/completed");
    run.books.failed = num(level, "/summary/failed");
    run.totals.duration = run.sum(level, "/duration");
    for (name, of) in [
        ("ttft", kind(Metric::Ttft, means::TTFT_CONTENT)),
        ("tpot", kind(Metric::Tpot, means::TPOT_TO_LAST)),
        ("itl", kind(Metric::Itl, means::ITL_CHUNK_GAPS)),
        ("e2e", kind(Metric::E2e, means::E2E)),
    ] {
        run.family(level, &format!("/summary/{name}"), of);
    }
    for (name, of) in [
        (
            "request_throughput",
            kind(Metric::Requests, means::REQUESTS_COMPLETED),
        ),
        (
            "output_throughput",
            kind(Metric::SystemOutput, means::OUTPUT_RUN),
        ),
        (
            "input_throughput",
            kind(Metric::SystemInput, means::INPUT_RUN),
        ),
    ] {
        run.total(level, &format!("/summary/{name}"), of);
    }
    let mean = num(level, "/summary/output_tokens_mean");
    run.state(
        kind(Metric::OutputLength, means::LENGTH_OUTPUT),
        crate::audit::form::Stat::Mean,
        "summary.output_tokens_mean",
        mean,
    );
    run.rows = Rows::Written(list(level, "/requests").iter().map(row).collect());
    run
}

fn row(value: &Value) -> Row {
    let stamps: Option<Vec<_>> = list(value, "/chunk_times")
        .iter()
        .map(|at| as_num(at).and_then(length))
        .collect();
    let stamps = stamps.filter(|stamps| !stamps.is_empty() && stamps.is_sorted());
    Row {
        start: num(value, "/start").and_then(length),
        ok: value.get("ok").and_then(Value::as_bool) == Some(true),
        seen: stamps.map_or(Seen::Nothing, Seen::All),
        ttft: num(value, "/ttft"),
        e2e: num(value, "/e2e").and_then(length),
        // A count of chunks is no count of tokens.
        output: count(value, "/output_tokens")
            .filter(|_| text(value, "/token_source").as_deref() != Some("chunks")),
        source: match text(value, "/token_source").as_deref() {
            Some("usage") => Source::Server,
            Some("tokenizer") => Source::Tokenizer,
            _ => Source::None,
        },
        input: count(value, "/prompt_tokens"),
        limit: None,
        stated_rate: None,
    }
}
