//! Owns the export of a run in other tools' JSON layouts, for dashboards that read those.
//!
//! Figures follow that tool's own definitions, so that they may stand beside its numbers: rates
//! over the whole run, time per token to the end. But a response that did not stream gives no
//! time to first token and none per token, a quantile needs its n, and what is not known is null.

use serde_json::{Map, Value, json};

use crate::basis::Loop;
use crate::judge::{Flag, Judged, Outcome, Shape};
use crate::level::{self, LevelReport};
use crate::quantile::{self, Quantile};
use crate::record::{Header, Level, Run};
use crate::time::Length;

/// Whose layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `vllm bench serve --save-result`.
    Vllm,
    /// AIPerf's `profile_export_aiperf.json`.
    Aiperf,
}

/// One object a level, in the order they ran. `began` is the run's start as text.
pub fn export(run: &Run, layout: Layout, began: &str) -> Vec<Value> {
    let guards = run.header.guards();
    let of = |level: &Level| {
        let (report, _) = level::report(level, guards, None);
        let facts = Facts::of(level);
        match layout {
            Layout::Vllm => vllm(&run.header, level, &report, &facts, began),
            Layout::Aiperf => aiperf(run, level, &report, &facts, began),
        }
    };
    run.levels
        .iter()
        .filter(|level| !level.requests.is_empty())
        .map(of)
        .collect()
}

/// Values of single requests, each sorted, and the whole run's sums.
struct Facts {
    ttft: Vec<f64>,
    tpot: Vec<f64>,
    itl: Vec<f64>,
    e2e: Vec<f64>,
    inverse_tpot: Vec<f64>,
    e2e_rate: Vec<f64>,
    output: Vec<f64>,
    input: Vec<f64>,
    completed: u64,
    failed: u64,
    /// First send to last end, in seconds.
    duration: Option<f64>,
}

impl Facts {
    fn of(level: &Level) -> Self {
        let member = |request: &&Judged| !request.trace.warmup;
        let members: Vec<&Judged> = level.requests.iter().filter(member).collect();
        let ok: Vec<&Judged> = members
            .iter()
            .copied()
            .filter(|request| request.outcome == Outcome::Ok)
            .collect();
        let values = |value: &dyn Fn(&Judged) -> Option<f64>| {
            let mut found: Vec<f64> = ok.iter().filter_map(|request| value(request)).collect();
            found.sort_by(f64::total_cmp);
            found
        };
        Facts {
            ttft: values(&first_content),
            tpot: values(&time_per_token),
            itl: gaps(&ok),
            e2e: values(&|request| latency(request).map(Length::as_secs_f64)),
            inverse_tpot: values(&|request| time_per_token(request).map(|time| 1.0 / time)),
            e2e_rate: values(&|request| Some(counted(request)? / latency(request)?.as_secs_f64())),
            output: values(&counted),
            input: values(&|request| request.tokens.input.map(|tokens| tokens as f64)),
            completed: ok.len() as u64,
            failed: (members.len() - ok.len()) as u64,
            duration: duration(&members),
        }
    }

    /// A sum over completed requests ÷ the run; none unless each of them has its count.
    fn per_second(&self, values: &[f64]) -> Option<f64> {
        Some(self.sum(values)? / self.duration?)
    }

    fn sum(&self, values: &[f64]) -> Option<f64> {
        let all = values.len() as u64 == self.completed && self.completed > 0;
        all.then(|| values.iter().sum())
    }

    fn requests_per_second(&self) -> Option<f64> {
        Some(self.completed as f64 / self.duration?)
    }
}

fn duration(members: &[&Judged]) -> Option<f64> {
    let first = members
        .iter()
        .filter_map(|request| request.trace.sent)
        .min()?;
    let last = members
        .iter()
        .filter_map(|request| request.trace.end)
        .max()?;
    let length = last.since(first).filter(|length| !length.is_zero())?;
    Some(length.as_secs_f64())
}

fn counted(request: &Judged) -> Option<f64> {
    request.tokens.visible.map(|tokens| tokens as f64)
}

fn first_content(request: &Judged) -> Option<f64> {
    let first = request.trace.first_content?.since(request.trace.sent?)?;
    is_streamed(request).then(|| first.as_secs_f64())
}

/// (latency − time to first token) ÷ (tokens − 1), of a response that streamed.
fn time_per_token(request: &Judged) -> Option<f64> {
    let rest = latency(request)?.as_secs_f64() - first_content(request)?;
    let after = request
        .tokens
        .visible?
        .checked_sub(1)
        .filter(|after| *after > 0)?;
    (rest > 0.0).then_some(rest / after as f64)
}

fn latency(request: &Judged) -> Option<Length> {
    let latency = request.trace.end?.since(request.trace.sent?)?;
    (!latency.is_zero()).then_some(latency)
}

fn is_streamed(request: &Judged) -> bool {
    request.shape.is_some_and(Shape::supports_stream_figures)
        && !request.flags.contains(&Flag::LateBurst)
}

/// Gaps between neighbouring arrivals of one token, of requests in which nearly all are such.
fn gaps(ok: &[&Judged]) -> Vec<f64> {
    let one = |arrival: &crate::arrival::Arrival| {
        arrival.chunks == 1 && arrival.tokens == Some(crate::count::Count::whole(1))
    };
    let mut found = Vec::new();
    for request in ok {
        let single = request.arrivals.iter().filter(one).count();
        let mostly = single * 10 >= request.arrivals.len() * 9;
        if request.shape != Some(Shape::Streamed) || !mostly || !is_streamed(request) {
            continue;
        }
        for (before, arrival) in request.arrivals.pairs().filter(|(_, next)| one(next)) {
            found.push(arrival.at.since_or_zero(before.at).as_secs_f64());
        }
    }
    found.sort_by(f64::total_cmp);
    found
}

fn mean(sorted: &[f64]) -> Option<f64> {
    (!sorted.is_empty()).then(|| sorted.iter().sum::<f64>() / sorted.len() as f64)
}

fn std(sorted: &[f64]) -> Option<f64> {
    let mean = mean(sorted)?;
    let squares = sorted.iter().map(|value| (value - mean).powi(2));
    Some((squares.sum::<f64>() / sorted.len() as f64).sqrt())
}

/// The observed value at the quantile's rank; none below the n it needs.
fn point(sorted: &[f64], q: Quantile) -> Option<f64> {
    let ranks = quantile::ranks(q, sorted.len() as u64).ok()?;
    sorted
        .get(usize::try_from(ranks.point).ok()?.checked_sub(1)?)
        .copied()
}

/// What every export says of itself.
fn of_denom(header: &Header, report: &LevelReport) -> Value {
    json!({
        "version": header.version,
        "run": header.run,
        "held": report.load.held,
        "steady": { "window": report.window, "output": report.system.output },
        "requests": report.requests,
        "valid": report.verdict.valid,
        "meaning": "layout and definitions are another tool's: rates are over the whole run; times to and per token are of responses that streamed; null is withheld; held and steady are denom's own",
    })
}

fn vllm(header: &Header, level: &Level, report: &LevelReport, facts: &Facts, began: &str) -> Value {
    let target = level.plan.target_milli as f64 / 1e3;
    let closed = level.plan.kind == Loop::Closed;
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.into(), value);
    put("date", json!(began));
    put("endpoint_type", json!(header.api.name()));
    put("backend", json!(header.api.name()));
    put("label", json!(format!("denom {}", header.run)));
    put("model_id", json!(header.model));
    put("tokenizer_id", Value::Null);
    put("num_prompts", json!(facts.completed + facts.failed));
    put(
        "request_rate",
        if closed { json!("inf") } else { json!(target) },
    );
    put("burstiness", json!(1.0));
    put(
        "max_concurrency",
        if closed { json!(target) } else { Value::Null },
    );
    put("duration", json!(facts.duration));
    put("completed", json!(facts.completed));
    put("failed", json!(facts.failed));
    put("total_input_tokens", json!(facts.sum(&facts.input)));
    put("total_output_tokens", json!(facts.sum(&facts.output)));
    put(
        "request_throughput",
        json!(facts.requests_per_second().unwrap_or(0.0)),
    );
    put("request_goodput", Value::Null);
    let (output, input) = (
        facts.per_second(&facts.output),
        facts.per_second(&facts.input),
    );
    put("output_throughput", json!(output));
    let total = output.zip(input).map(|(output, input)| output + input);
    put("total_token_throughput", json!(total));
    put("max_output_tokens_per_s", Value::Null);
    put("max_concurrent_requests", Value::Null);
    times(&mut out, facts);
    out.insert("denom".into(), of_denom(header, report));
    Value::Object(out)
}

/// Mean, spread, median and tail of each time, in milliseconds.
fn times(out: &mut Map<String, Value>, facts: &Facts) {
    let mut put = |key: String, value: Option<f64>| {
        out.insert(key, json!(value.map(|seconds| seconds * 1e3)));
    };
    for (name, values) in [
        ("ttft", &facts.ttft),
        ("tpot", &facts.tpot),
        ("itl", &facts.itl),
        ("e2el", &facts.e2e),
    ] {
        put(format!("mean_{name}_ms"), mean(values));
        put(format!("std_{name}_ms"), std(values));
        put(format!("median_{name}_ms"), point(values, Quantile::MEDIAN));
        for q in [Quantile::P90, Quantile::P95, Quantile::P99] {
            put(format!("{}_{name}_ms", q.name()), point(values, q));
        }
    }
}

/// A metric object with AIPerf's statistics; null where there are no values.
fn metric(unit: &str, sorted: &[f64], scale: f64) -> Value {
    if sorted.is_empty() {
        return Value::Null;
    }
    let scaled = |value: Option<f64>| json!(value.map(|value| value * scale));
    let mut out = Map::new();
    out.insert("unit".into(), json!(unit));
    out.insert("avg".into(), scaled(mean(sorted)));
    for q in Quantile::ALL {
        let name = format!("p{}", q.name().trim_start_matches(['p', '0']));
        out.insert(name, scaled(point(sorted, q)));
    }
    out.insert("min".into(), scaled(sorted.first().copied()));
    out.insert("max".into(), scaled(sorted.last().copied()));
    out.insert("std".into(), scaled(std(sorted)));
    out.insert("count".into(), json!(sorted.len()));
    out.insert("sum".into(), scaled(Some(sorted.iter().sum())));
    Value::Object(out)
}

fn single(unit: &str, value: Option<f64>) -> Value {
    value.map_or(Value::Null, |value| json!({ "unit": unit, "avg": value }))
}

fn aiperf(run: &Run, level: &Level, report: &LevelReport, facts: &Facts, began: &str) -> Value {
    let header = &run.header;
    let target = level.plan.target_milli as f64 / 1e3;
    let closed = level.plan.kind == Loop::Closed;
    let cut_short = run.footer.is_none_or(|footer| footer.interrupted);
    let all = facts.completed + facts.failed;
    let load = match closed {
        true => {
            json!({ "name": "profiling", "kind": "profiling", "type": "concurrency", "requests": all, "concurrency": target })
        }
        false => {
            json!({ "name": "profiling", "kind": "profiling", "type": "poisson", "requests": all, "rate": target })
        }
    };
    json!({
        "schema_version": "1.4",
        "request_throughput": single("requests/sec", facts.requests_per_second()),
        "request_latency": metric("ms", &facts.e2e, 1e3),
        "request_count": single("requests", Some(facts.completed as f64)),
        "error_request_count": single("requests", Some(facts.failed as f64)),
        "time_to_first_token": metric("ms", &facts.ttft, 1e3),
        "inter_token_latency": metric("ms", &facts.tpot, 1e3),
        "output_token_throughput": single("tokens/sec", facts.per_second(&facts.output)),
        "output_token_throughput_per_user": metric("tokens/sec/user", &facts.inverse_tpot, 1.0),
        "e2e_output_token_throughput": metric("tokens/sec/user", &facts.e2e_rate, 1.0),
        "output_sequence_length": metric("tokens", &facts.output, 1.0),
        "input_sequence_length": metric("tokens", &facts.input, 1.0),
        "total_osl": single("tokens", facts.sum(&facts.output)),
        "benchmark_duration": single("sec", facts.duration),
        "effective_concurrency": single("requests", facts.per_second(&facts.e2e)),
        "input_config": {
            "models": { "items": [{ "name": header.model }] },
            "endpoint": { "urls": [header.url], "type": header.api.name(), "streaming": header.stream },
            "phases": [load],
        },
        "was_cancelled": cut_short,
        "is_complete": !cut_short,
        "start_time": began,
        "denom": of_denom(header, report),
    })
}
