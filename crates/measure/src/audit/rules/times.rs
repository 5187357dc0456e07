//! Owns the rules on times that cannot be: zero, or not adding up to the whole request.

use super::{Found, Scene};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Stat, Tool};
use crate::stated::number;

/// First content this near to the end is the end.
const SAME: f64 = 0.98;
/// The share of requests from which it is a finding.
const MANY: f64 = 0.1;
/// A prediction below this share of the latency leaves time unexplained.
const EXPLAINED: f64 = 0.75;

pub fn zero_latency(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let central = |stat| matches!(stat, Stat::Mean | Stat::Median);
    let of_whole = |metric| matches!(metric, Metric::Ttft | Metric::E2e);
    let zero = |number: &&crate::audit::form::Number| {
        let any_time = number.metric.is_time() && !run.has_result();
        let whole = of_whole(number.metric) && central(number.stat);
        number.known().is_some_and(|value| value <= 0.0) && (any_time || whole)
    };
    let fields: Vec<String> = run
        .numbers
        .iter()
        .filter(zero)
        .map(|number| number.field.clone())
        .collect();
    let rows = scene
        .requests
        .iter()
        .filter(|request| request.ok || !run.has_result())
        .filter(|request| {
            let first = request.ttft.is_some_and(|ttft| ttft <= 0.0);
            first || request.e2e.is_some_and(|e2e| e2e.is_zero())
        })
        .count();
    if fields.is_empty() && rows == 0 {
        return None;
    }
    let text = match (run.has_result(), fields.is_empty()) {
        (false, _) => format!(
            "no request completed ({} failed), and times are written as 0: there is no result",
            run.books.failed.map_or_else(|| "some".into(), number)
        ),
        (true, false) => format!(
            "{} times are written as 0 or below: they were not measured",
            fields.len()
        ),
        (true, true) => format!(
            "{rows} completed requests have a time to first token, or a latency, of 0 or below"
        ),
    };
    Found::new(text, fields.into_iter().take(8).map(Some))
}

pub fn ttft_is_e2e(scene: &Scene<'_>) -> Option<Found> {
    summary_is_e2e(scene).or_else(|| rows_are_e2e(scene))
}

fn summary_is_e2e(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let several = run.mean_output().is_none_or(|tokens| tokens > 1.0);
    let streams = run.config.streaming != Some(false);
    for stat in [Stat::Median, Stat::Mean] {
        let Some(first) = run.number(Metric::Ttft, stat) else {
            continue;
        };
        let pair = first.known().zip(run.value(Metric::E2e, stat));
        let Some((ttft, e2e)) = pair.filter(|(_, e2e)| *e2e > 0.0) else {
            continue;
        };
        let byte = first.definition == means::TTFT_BYTE;
        if byte || !several || ttft < SAME * e2e {
            return None;
        }
        let why = match streams {
            true => "nothing streamed, or everything came at once",
            false => "streaming was not asked for",
        };
        let text = format!(
            "{} time to first token is {} ms, and the whole request takes {} ms: {why}",
            stat.name(),
            number(ttft * 1e3),
            number(e2e * 1e3)
        );
        let both = [Metric::Ttft, Metric::E2e];
        return Found::new(text, both.map(|metric| run.field(metric, stat)));
    }
    None
}

fn rows_are_e2e(scene: &Scene<'_>) -> Option<Found> {
    // denom withholds these itself.
    if scene.tool == Tool::Denom {
        return None;
    }
    let with: Vec<(f64, f64)> = scene
        .requests
        .iter()
        .filter(|request| request.ok && request.output.is_some_and(|tokens| tokens > 1))
        .filter_map(|request| Some((request.ttft?, request.e2e?.as_secs_f64())))
        .collect();
    let same = with
        .iter()
        .filter(|(ttft, e2e)| *e2e > 0.0 && *ttft >= SAME * e2e)
        .count();
    if same == 0 || (same as f64) < MANY * with.len() as f64 {
        return None;
    }
    let text = format!(
        "{same} of {} requests have their first token within 2 % of their end, with more than one token",
        with.len()
    );
    Found::new(text, [])
}

pub fn prediction_below_e2e(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let of = |metric| run.value(metric, Stat::Mean);
    let (ttft, token, e2e) = (of(Metric::Ttft)?, of(Metric::Tpot)?, of(Metric::E2e)?);
    let tokens = run.mean_output().filter(|tokens| *tokens >= 2.0)?;
    let predicted = ttft + (tokens - 1.0) * token;
    if e2e <= 0.0 || !run.has_result() || predicted >= EXPLAINED * e2e {
        return None;
    }
    let text = format!(
        "TTFT + (tokens − 1) × time per token makes {} s, {:.0} % of the stated latency of {} s",
        number(predicted),
        predicted / e2e * 100.0,
        number(e2e)
    );
    let all = [Metric::Ttft, Metric::Tpot, Metric::E2e];
    Found::new(text, all.map(|metric| run.field(metric, Stat::Mean)))
}
