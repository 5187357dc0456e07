//! Owns denom's own files: the record of a run, and the JSON report made of one.

use serde_json::Value;

use super::fields::{Kind, has, kind, list, num, text};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Rows, Run, Stat, Tool};
use crate::basis::Loop;
use crate::judge::Outcome;
use crate::record::{self, Reader};

/// Whether a value is the first line of a record file.
pub fn is_header(value: &Value) -> bool {
    value.get("line").and_then(Value::as_str) == Some("header")
        && text(value, "/format").is_some_and(|format| format.starts_with("denom.record/"))
}

/// The levels of a record file, each judged by its own stamps.
///
/// # Errors
/// Where a line of the file is damaged.
pub fn from_record(bytes: &[u8]) -> Result<Vec<Run>, String> {
    let mut reader = Reader::new(None);
    for line in bytes.split(|byte| *byte == b'\n') {
        if !line.is_empty() {
            reader.line(line).map_err(|error| error.to_string())?;
        }
    }
    let read = reader.finish().map_err(|error| error.to_string())?;
    let model = read.header.model.clone();
    let cut_short = read.footer.is_none_or(|footer| footer.interrupted);
    let levels = read.levels.into_iter();
    Ok(levels
        .map(|level| of_level(level, &model, cut_short))
        .collect())
}

fn of_level(level: record::Level, model: &str, cut_short: bool) -> Run {
    let mut run = Run::new();
    let target = level.plan.target_milli as f64 / 1e3;
    run.config.model = Some(model.to_owned());
    match level.plan.kind {
        Loop::Closed => {
            run.label = Some(format!("concurrency {target}"));
            run.config.concurrency = Some(target);
        }
        Loop::Open => {
            run.label = Some(format!("rate {target}/s"));
            run.config.request_rate = Some(target);
        }
    }
    run.config.unlimited = level.plan.kind == Loop::Closed;
    run.config.streaming = Some(true);
    let mut members = level.requests;
    members.retain(|request| !request.trace.warmup);
    let ok = members.iter().filter(|r| r.outcome == Outcome::Ok).count();
    let failed = |r: &&crate::judge::Judged| matches!(r.outcome, Outcome::Failed(_));
    let failed = members.iter().filter(failed).count();
    run.books.completed = Some(ok as f64);
    run.books.failed = Some(failed as f64);
    run.books.cut_short = cut_short;
    run.rows = Rows::Own(members);
    run
}

/// Whether a value is a report.
pub fn claims(value: &Value) -> Option<Tool> {
    let is = text(value, "/schema").is_some_and(|schema| schema.starts_with("denom.report/"));
    is.then_some(Tool::Denom)
}

/// One run a level.
pub fn import(values: &[Value]) -> Vec<Run> {
    let of = |value: &Value| {
        let model = text(value, "/target/model");
        let cut = ["/run/cut_short", "/run/interrupted"]
            .iter()
            .any(|path| value.pointer(path).and_then(Value::as_bool) == Some(true));
        let levels = list(value, "/levels").iter();
        levels
            .map(|level| reported(level, model.clone(), cut))
            .collect::<Vec<_>>()
    };
    values.iter().flat_map(of).collect()
}

fn reported(level: &Value, model: Option<String>, cut_short: bool) -> Run {
    let mut run = Run::new();
    let target = num(level, "/load/target");
    run.config.model = model;
    match text(level, "/load/loop").as_deref() {
        Some("open") => run.config.request_rate = target,
        _ => run.config.concurrency = target,
    }
    run.config.unlimited = run.config.request_rate.is_none();
    run.label = target.map(|target| format!("load {target}"));
    run.books.completed = num(level, "/requests/ok");
    let failed = level.pointer("/requests/failed").and_then(Value::as_object);
    run.books.failed = failed.map(|kinds| kinds.values().filter_map(Value::as_f64).sum());
    run.books.cut_short = cut_short;
    run.total(
        level,
        "/load/held",
        kind(Metric::InFlight, means::IN_FLIGHT),
    );
    for (path, of) in [
        (
            "/system/output",
            kind(Metric::SystemOutput, means::OUTPUT_STEADY_DENOM),
        ),
        (
            "/system/requests",
            kind(Metric::Requests, means::REQUESTS_COMPLETED),
        ),
    ] {
        run.total(level, &format!("{path}/value"), of);
    }
    for (path, of) in [
        (
            "/per_stream/generation",
            kind(Metric::StreamGeneration, means::USER_DENOM),
        ),
        (
            "/per_stream/end_to_end",
            kind(Metric::StreamEndToEnd, means::USER_E2E),
        ),
        ("/latency/ttft", kind(Metric::Ttft, means::TTFT_DENOM)),
        ("/latency/e2e", kind(Metric::E2e, means::E2E)),
    ] {
        points(&mut run, level, path, of);
    }
    run
}

/// A distribution's quantiles, each an object with its value.
fn points(run: &mut Run, level: &Value, path: &str, of: Kind) {
    let members = level.pointer(path).and_then(Value::as_object);
    for (key, member) in members.into_iter().flatten() {
        if let Some(stat) = Stat::of_key(key).filter(|_| has(member, "/value")) {
            let field = format!("{}.{key}", super::fields::dotted(path));
            run.state(of, stat, &field, num(member, "/value"));
        }
    }
}
