//! Owns the rules on spreads and quantiles that are none.

use super::{Found, Scene};
use crate::audit::form::{Metric, Number, Run, Stat};
use crate::stated::number;

/// How near a spread must be to the reciprocal of another to be one.
const EQUAL: f64 = 0.01;
/// How far a quantile must be on the wrong side of the median: rounding is no finding.
const WRONG_SIDE: f64 = 0.995;

pub fn inverted_spread(scene: &Scene<'_>) -> Option<Found> {
    match (reciprocal(scene.run), wrong_side(scene.run)) {
        (Some(spread), Some(side)) => Some(Found {
            text: format!("{}; {}", spread.text, side.text),
            fields: spread.fields.into_iter().chain(side.fields).collect(),
        }),
        (spread, side) => spread.or(side),
    }
}

/// A spread of a rate that is 1 ÷ the spread of the time.
fn reciprocal(run: &Run) -> Option<Found> {
    let rate = run.number(Metric::StreamGeneration, Stat::Std)?;
    let (spread, time) = (rate.known()?, run.value(Metric::Tpot, Stat::Std)?);
    if time <= 0.0 || (spread * time - 1.0).abs() > EQUAL {
        return None;
    }
    let mean = run
        .value(Metric::StreamGeneration, Stat::Mean)
        .map(|mean| format!(" (the mean is {})", number(mean)))
        .unwrap_or_default();
    let text = format!(
        "the spread of {} tok/s{mean} is 1 ÷ the spread of the time per token: a reciprocal, no spread",
        number(spread)
    );
    Found::new(text, [Some(rate.field.clone())])
}

/// A high quantile of a rate or a time below its median, or a low one above it.
fn wrong_side(run: &Run) -> Option<Found> {
    let rates = run
        .numbers
        .iter()
        .filter(|number| number.metric.is_stream_rate() || number.metric.is_time());
    for number in rates {
        let Stat::Quantile(q) = number.stat else {
            continue;
        };
        let same = |other: &&Number| {
            other.metric == number.metric
                && other.definition == number.definition
                && other.stat == Stat::Median
        };
        let median = run.numbers.iter().find(same).and_then(Number::known);
        let Some((value, median)) = number.known().zip(median) else {
            continue;
        };
        let inverted = match q > 50_000 {
            true => value < median * WRONG_SIDE,
            false => value * WRONG_SIDE > median,
        };
        if inverted && median > 0.0 {
            let why = match number.metric.is_time() {
                true => "the two cannot be of the same requests",
                false => "it was taken of the reciprocal",
            };
            let text = format!(
                "{} of {} is {}, on the wrong side of the median {}: {why}",
                number.stat.name(),
                number.metric.name(),
                crate::stated::number(value),
                crate::stated::number(median)
            );
            return Found::new(text, [Some(number.field.clone())]);
        }
    }
    None
}

pub fn wide_spread(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let rates = [
        Metric::StreamGeneration,
        Metric::StreamEndToEnd,
        Metric::StreamPrompt,
        Metric::SystemOutput,
        Metric::SystemInput,
    ];
    if reciprocal(run).is_some() {
        return None;
    }
    rates.into_iter().find_map(|metric| {
        let spread = run.number(metric, Stat::Std)?;
        let (std, mean) = (spread.known()?, run.value(metric, Stat::Mean)?);
        (std > mean && mean > 0.0).then_some(())?;
        let text = format!(
            "{} of {} {} has a spread of {}, larger than itself: its mean describes no stream",
            metric.name(),
            number(mean),
            metric.unit(),
            number(std)
        );
        Found::new(text, [Some(spread.field.clone())])
    })
}
