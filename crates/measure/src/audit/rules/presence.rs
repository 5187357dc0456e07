//! Owns the five rules that may stand on a clean file: something a reader needs is not there.

use super::{Found, Scene};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Stat};
use crate::stated::number;

/// Requests below which no tail can be stated: the n that p90 needs.
const FEW: f64 = 36.0;
/// The share of a run from which its ramp and drain are worth a word.
const EDGES: f64 = 0.02;

pub fn no_concurrency(scene: &Scene<'_>) -> Option<Found> {
    let config = &scene.run.config;
    let measured = scene.run.rate(Metric::InFlight);
    let stated = config.concurrency.or(config.cap).or(measured);
    if stated.is_some() || scene.run.numbers.is_empty() && scene.requests.is_empty() {
        return None;
    }
    let held = scene.run.held().map(|held| held.value).or(scene.held);
    let text = match held {
        Some(held) => format!(
            "the file does not say how many streams there were at once; by its own figures {} were in flight on average",
            number(held)
        ),
        None => "the file does not say how many streams there were at once, and nothing in it tells: a rate of the system cannot be turned into one of a stream".into(),
    };
    Found::new(text, [scene.field(Metric::SystemOutput)])
}

pub fn per_stream_missing(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let system = [Metric::SystemOutput, Metric::OtherRate]
        .into_iter()
        .find_map(|metric| run.rate(metric).map(|rate| (metric, rate)));
    let (metric, rate) = system.filter(|(_, rate)| *rate > 0.0)?;
    if run.has_stream_rate() {
        return None;
    }
    let unit = metric.unit();
    let held = run.held().map(|held| held.value).or(run.config.concurrency);
    let text = match held.filter(|held| *held > 0.0) {
        Some(held) => format!(
            "{} {unit} is the whole system's and no rate of one stream stands beside it; with {} in flight it is {} for each, waiting included",
            number(rate),
            number(held),
            number(rate / held)
        ),
        None => format!(
            "{} {unit} is the whole system's, and no rate of one stream stands beside it",
            number(rate)
        ),
    };
    Found::new(text, [scene.field(metric)])
}

pub fn few_samples(scene: &Scene<'_>) -> Option<Found> {
    let n = scene.completed().filter(|n| *n > 0.0 && *n < FEW)?;
    let text = format!(
        "{} completed requests: too few for any tail (p90 needs 36, a median 6)",
        number(n)
    );
    Found::new(text, [])
}

/// Least n for a two-sided 95 % interval of a quantile given in thousandths of a percent.
fn least_n(thousandths: u32) -> f64 {
    let p = f64::from(thousandths) / 1e5;
    (0.025_f64.ln() / p.ln()).ceil()
}

pub fn p99_from_too_few(scene: &Scene<'_>) -> Option<Found> {
    let n = scene.completed().filter(|n| *n > 0.0)?;
    let pooled = |metric| matches!(metric, Metric::Itl | Metric::ChunkGap);
    let mut unsupported: Vec<(u32, &str)> = scene
        .run
        .numbers
        .iter()
        .filter(|number| number.metric.is_time() && !pooled(number.metric))
        .filter_map(|number| match number.stat {
            Stat::Quantile(q) if q > 50_000 && least_n(q) > n => Some((q, number.field.as_str())),
            _ => None,
        })
        .collect();
    unsupported.sort_unstable();
    let (lowest, _) = unsupported.first()?;
    let (highest, _) = unsupported.last()?;
    let name = |q: u32| format!("p{}", f64::from(q) / 1e3);
    let which = match lowest == highest {
        true => name(*lowest),
        false => format!("{} to {}", name(*lowest), name(*highest)),
    };
    let text = format!(
        "{which} from {} requests: {} needs {}",
        number(n),
        name(*lowest),
        least_n(*lowest)
    );
    let fields = unsupported.iter().take(8);
    Found::new(text, fields.map(|(_, field)| Some((*field).to_owned())))
}

pub fn ramp_and_drain(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let whole_run = [
        means::OUTPUT_RUN,
        means::OUTPUT_VALID,
        means::OUTPUT_WITH_FAILURES,
        means::OUTPUT_RECEIVED,
        means::OUTPUT_FIRST_TO_LAST_TOKEN,
        means::OUTPUT_LONGEST,
    ];
    let rate = [Stat::Value, Stat::Mean]
        .into_iter()
        .find_map(|stat| run.number(Metric::SystemOutput, stat))?;
    if !whole_run.contains(&rate.definition) || rate.known().is_none_or(|rate| rate <= 0.0) {
        return None;
    }
    let (_, latency) = scene.central(Metric::E2e).unzip();
    let share = latency
        .zip(run.totals.duration)
        .filter(|(_, duration)| *duration > 0.0)
        .map(|(latency, duration)| latency / duration);
    if share.is_some_and(|share| share < EDGES) {
        return None;
    }
    let edges = match share {
        Some(share) => format!(
            "; one request takes {:.0} % of it, and about as much is filling up and emptying",
            (share * 100.0).min(100.0)
        ),
        None => String::new(),
    };
    let text = format!(
        "{} tok/s is over the whole run, ramp and drain included{edges}: the rate at full load is higher",
        number(rate.known()?)
    );
    Found::new(text, [Some(rate.field.clone())])
}
