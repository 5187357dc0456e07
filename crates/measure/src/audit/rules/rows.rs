//! Owns the rule on a summary and the single requests of one file that contradict each other.

use super::{Found, Scene};
use crate::audit::form::{Metric, Stat, Tool};
use crate::audit::observe::Request;
use crate::stated::number;

/// How far sums and means of the same requests may be apart: by rounding, and by clocks.
const NEAR: f64 = 0.1;

/// The requests of a file whose tool writes every one of them beside its summary.
pub(super) fn all_rows<'a>(scene: &Scene<'a>) -> Option<&'a [Request]> {
    let all = matches!(
        scene.tool,
        Tool::VllmBench | Tool::VllmBenchRust | Tool::SglangBench | Tool::Servebench
    );
    (all && !scene.requests.is_empty()).then_some(scene.requests)
}

pub fn rows_disagree(scene: &Scene<'_>) -> Option<Found> {
    let rows = all_rows(scene)?;
    let ok: Vec<&Request> = rows.iter().filter(|request| request.ok).collect();
    fewer(scene, rows.len())
        .or_else(|| other_tokens(scene, &ok))
        .or_else(|| other_ttft(scene, &ok))
}

fn fewer(scene: &Scene<'_>, rows: usize) -> Option<Found> {
    let books = &scene.run.books;
    let told = books.completed? + books.failed.unwrap_or(0.0);
    if rows as f64 >= told {
        return None;
    }
    let text = format!(
        "the summary is of {} requests, and the file holds {rows}: the others were taken out",
        number(told)
    );
    Found::new(text, [])
}

fn other_tokens(scene: &Scene<'_>, ok: &[&Request]) -> Option<Found> {
    let run = scene.run;
    let counts: Option<Vec<u64>> = ok.iter().map(|request| request.output).collect();
    let own = counts?.iter().map(|count| *count as f64).sum::<f64>();
    let mean = run.value(Metric::OutputLength, Stat::Mean);
    let by_mean = || mean.map(|mean| mean * ok.len() as f64);
    let stated = run.totals.output.or_else(by_mean)?;
    if !apart(stated, own) {
        return None;
    }
    let text = format!(
        "the summary counts {} output tokens, and its requests have {} together",
        number(stated),
        number(own)
    );
    Found::new(text, [run.field(Metric::OutputLength, Stat::Mean)])
}

fn other_ttft(scene: &Scene<'_>, ok: &[&Request]) -> Option<Found> {
    let stated = scene.run.number(Metric::Ttft, Stat::Mean)?;
    let mean = stated.known().filter(|mean| *mean > 0.0)?;
    let measured = |request: &&Request| request.ttft.filter(|ttft| *ttft > 0.0);
    let own: Vec<f64> = ok.iter().filter_map(measured).collect();
    let own = own.iter().sum::<f64>() / own.len().max(1) as f64;
    if own <= 0.0 || !apart(mean, own) {
        return None;
    }
    let text = format!(
        "the summary states a mean time to first token of {} ms, and its requests have {} ms",
        number(mean * 1e3),
        number(own * 1e3)
    );
    Found::new(text, [Some(stated.field.clone())])
}

fn apart(stated: f64, own: f64) -> bool {
    (stated - own).abs() > NEAR * stated.max(own)
}
