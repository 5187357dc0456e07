//! Owns AIPerf's summary and per-request lines, and GenAI-Perf's summary, which has the same form.

use serde_json::Value;

use super::fields::{
    Kind, as_num, count, first_num, has, kind, length, list, num, seconds_per, text,
};
use super::rows;
use crate::audit::definition as means;
use crate::audit::form::{Metric, Row, Run, Seen, Tool};
use crate::tokens::Source;

/// Whether a value is a summary.
pub fn claims(value: &Value) -> Option<Tool> {
    let is = [
        "time_to_first_token",
        "request_throughput",
        "request_latency",
    ]
    .iter()
    .any(|name| has(value, &format!("/{name}/avg")));
    let aiperf = has(value, "/aiperf_version")
        || has(value, "/input_config/loadgen")
        || has(value, "/input_config/phases")
        || has(value, "/benchmark_duration")
        || value.get("error_summary").is_some();
    is.then_some(match aiperf {
        true => Tool::Aiperf,
        false => Tool::GenaiPerf,
    })
}

/// Whether a value is one request's line.
pub fn claims_row(value: &Value) -> Option<Tool> {
    let is = has(value, "/metadata/request_start_ns")
        && (has(value, "/metrics") || has(value, "/error"));
    is.then_some(Tool::Aiperf)
}

/// One run a summary.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().map(run).collect()
}

fn run(value: &Value) -> Run {
    let mut run = Run::new();
    let genai_perf = claims(value) == Some(Tool::GenaiPerf);
    config(&mut run, value);
    let metric = |name: &str| num(value, &format!("/{name}/avg"));
    run.books.completed = metric("request_count");
    run.books.failed = metric("error_request_count");
    run.books.error_rate = metric("request_error_rate").map(|rate| match rate > 1.0 {
        true => rate / 100.0,
        false => rate,
    });
    run.books.cut_short = value.get("was_cancelled").and_then(Value::as_bool) == Some(true)
        || value.get("is_complete").and_then(Value::as_bool) == Some(false);
    run.totals.duration = timed(value, "benchmark_duration");
    run.totals.output = metric("total_osl").or_else(|| metric("total_output_tokens"));
    run.totals.input = metric("total_isl");
    times(&mut run, value, genai_perf);
    rates(&mut run, value, genai_perf);
    run
}

fn timed(value: &Value, name: &str) -> Option<f64> {
    let unit = text(value, &format!("/{name}/unit"))?;
    Some(num(value, &format!("/{name}/avg"))? * seconds_per(&unit)?)
}

fn times(run: &mut Run, value: &Value, genai_perf: bool) {
    let first = match genai_perf {
        true => means::TTFT_NON_EMPTY,
        false => means::TTFT_CONTENT,
    };
    for (name, metric, definition) in [
        ("request_latency", Metric::E2e, means::E2E),
        ("time_to_first_token", Metric::Ttft, first),
        ("inter_token_latency", Metric::Tpot, means::TPOT_TO_END),
        ("inter_chunk_latency", Metric::ChunkGap, means::CHUNK_GAP),
    ] {
        let unit = text(value, &format!("/{name}/unit"));
        if let Some(scale) = unit.as_deref().and_then(seconds_per) {
            let of = Kind {
                metric,
                scale,
                definition,
            };
            run.family(value, &format!("/{name}"), of);
        }
    }
}

fn rates(run: &mut Run, value: &Value, genai_perf: bool) {
    let requests = match genai_perf {
        true => means::REQUESTS_ALL,
        false => means::REQUESTS_COMPLETED,
    };
    // What denom exports in this layout holds its own measure of the load.
    run.total(
        value,
        "/denom/held",
        kind(Metric::InFlight, means::IN_FLIGHT),
    );
    for (name, of) in [
        ("request_throughput", kind(Metric::Requests, requests)),
        (
            "output_token_throughput",
            kind(Metric::SystemOutput, means::OUTPUT_VALID),
        ),
        (
            "total_token_throughput",
            kind(Metric::SystemTotal, means::TOTAL_RUN),
        ),
        (
            "input_token_throughput",
            kind(Metric::SystemInput, means::INPUT_RUN),
        ),
        (
            "effective_concurrency",
            kind(Metric::InFlight, means::IN_FLIGHT),
        ),
    ] {
        let path = format!("/{name}/avg");
        run.total(value, &path, of);
    }
    for (name, of) in [
        (
            "output_token_throughput_per_user",
            kind(Metric::StreamGeneration, means::USER_INVERSE),
        ),
        (
            "e2e_output_token_throughput",
            kind(Metric::StreamEndToEnd, means::USER_E2E),
        ),
        (
            "output_sequence_length",
            kind(Metric::OutputLength, means::LENGTH_OUTPUT),
        ),
        (
            "input_sequence_length",
            kind(Metric::InputLength, means::LENGTH_INPUT),
        ),
    ] {
        run.family(value, &format!("/{name}"), of);
    }
}

/// The load is in the last phase that counts, or, in older files, in `loadgen`.
fn config(run: &mut Run, value: &Value) {
    let empty = Value::Null;
    let given = value.get("input_config").unwrap_or(&empty);
    let counts = |phase: &&Value| {
        phase.get("exclude_from_results").and_then(Value::as_bool) != Some(true)
            && phase.get("kind").and_then(Value::as_str) != Some("warmup")
            && phase.get("name").and_then(Value::as_str) != Some("warmup")
    };
    let phases: Vec<&Value> = list(given, "/phases").iter().filter(counts).collect();
    let load = phases
        .last()
        .copied()
        .or_else(|| given.get("loadgen"))
        .or_else(|| given.pointer("/perf_analyzer/stimulus"))
        .unwrap_or(given);
    let at_once = num(load, "/concurrency");
    run.config.request_rate = first_num(load, &["/rate", "/request_rate"]);
    match run.config.request_rate {
        Some(_) => run.config.cap = at_once,
        None => run.config.concurrency = at_once,
    }
    run.config.unlimited = run.config.request_rate.is_none();
    run.config.requests = first_num(load, &["/requests", "/request_count"]);
    run.config.model = text(given, "/models/items/0/name")
        .or_else(|| text(given, "/endpoint/model_names/0"))
        .or_else(|| text(given, "/model_names/0"));
    run.config.streaming = given
        .pointer("/endpoint/streaming")
        .and_then(Value::as_bool);
    run.config.output_limit = limit(given);
}

/// The output length asked for, where it is one for all requests.
fn limit(given: &Value) -> Option<f64> {
    let osl = given
        .pointer("/datasets/0/prompts/osl")
        .or_else(|| given.pointer("/input/prompt/output_tokens"))?;
    let spread = num(osl, "/stddev").unwrap_or(0.0);
    num(osl, "/mean").filter(|_| spread == 0.0)
}

/// All lines are requests of one run; warm-up phases are left out.
pub fn import_rows(values: &[Value]) -> Vec<Run> {
    let counts = |value: &&Value| {
        text(value, "/metadata/benchmark_phase").is_none_or(|phase| phase == "profiling")
    };
    let kept: Vec<&Value> = values.iter().filter(counts).collect();
    // Nanoseconds since 1970 do not fit a float: they are subtracted as integers.
    let start = |value: &Value| value.pointer("/metadata/request_start_ns")?.as_u64();
    let origin = kept.iter().filter_map(|value| start(value)).min();
    let rows: Vec<Row> = kept
        .iter()
        .map(|value| {
            let after = start(value).zip(origin).map(|(at, origin)| at - origin);
            row(value, after.map(crate::time::Length::from_nanos))
        })
        .collect();
    vec![Run::of_rows(rows)]
}

fn row(value: &Value, start: Option<crate::time::Length>) -> Row {
    let metrics = value.get("metrics").unwrap_or(&Value::Null);
    let seconds = |name: &str| {
        let unit = text(metrics, &format!("/{name}/unit"))?;
        Some(num(metrics, &format!("/{name}/value"))? * seconds_per(&unit)?)
    };
    let cancelled = value
        .pointer("/metadata/was_cancelled")
        .and_then(Value::as_bool)
        == Some(true);
    let ttft = seconds("time_to_first_token");
    let scale = text(metrics, "/inter_chunk_latency/unit")
        .as_deref()
        .and_then(seconds_per)
        .unwrap_or(1e-3);
    let gaps = list(metrics, "/inter_chunk_latency/value")
        .iter()
        .map(|gap| as_num(gap).map(|gap| gap * scale));
    let seen = ttft
        .and_then(length)
        .and_then(|first| rows::run_up(first, gaps))
        .map_or(Seen::Nothing, Seen::All);
    let counted_by_server = has(metrics, "/usage_completion_tokens");
    Row {
        start,
        ok: !has(value, "/error") && !cancelled,
        seen,
        ttft,
        e2e: seconds("request_latency").and_then(length),
        output: count(metrics, "/output_sequence_length/value"),
        source: match counted_by_server {
            true => Source::Server,
            false => Source::Tokenizer,
        },
        input: count(metrics, "/input_sequence_length/value"),
        limit: None,
        stated_rate: num(metrics, "/e2e_output_token_throughput/value"),
    }
}
