//! Owns the rules on the load: what was asked for against what was held.

use super::{Found, Scene};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Stat};
use crate::stated::number;

/// Held below this share of the target is not held.
const HELD: f64 = 0.9;
/// A mean delay before sending up to this is a timer's.
const TIMER: f64 = 0.01;
/// A mean delay up to this share of the time to first token is small.
const SMALL: f64 = 0.01;
/// One-second buckets count each slot twice where a request ends inside: more is another thing.
const BUCKETS: f64 = 2.0;
/// Streams × their rate may exceed the system's by waiting; from here on waiting is most of it.
const MOSTLY_WAITING: f64 = 1.75;

pub fn load_not_held(scene: &Scene<'_>) -> Option<Found> {
    late_sends(scene).or_else(|| rate_missed(scene))
}

fn late_sends(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let delay = run.value(Metric::ScheduleDelay, Stat::Mean)?;
    let ttft = run.value(Metric::Ttft, Stat::Mean).unwrap_or(0.0);
    if delay <= TIMER.max(SMALL * ttft) {
        return None;
    }
    let most = run
        .value(Metric::ScheduleDelay, Stat::Max)
        .map(|most| format!(", up to {} s", number((most * 1e3).round() / 1e3)))
        .unwrap_or_default();
    let text = format!(
        "requests were sent {} s later than planned on average{most}, and no latency holds that wait: the planned load was not offered",
        number((delay * 1e3).round() / 1e3)
    );
    Found::new(text, [run.field(Metric::ScheduleDelay, Stat::Mean)])
}

/// Offered requests a second against completed ones. The last requests' own time is granted, and
/// what chance does to the planned instants of few requests.
fn rate_missed(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let offered = run.config.request_rate.filter(|rate| *rate > 0.0)?;
    let achieved = run.rate(Metric::Requests).filter(|_| run.has_result())?;
    let n = run.books.completed.or(run.config.requests)?;
    let latency = scene.central(Metric::E2e).map_or(0.0, |(_, value)| value);
    let expected = n / (n / offered + latency);
    let chance = (1.0 - HELD).max(2.0 / n.sqrt());
    let missed = achieved < expected * (1.0 - chance);
    let exceeded = achieved > offered * (1.0 + chance);
    if !missed && !exceeded {
        return None;
    }
    let cap = match run.config.cap {
        Some(cap) if missed => format!("; at most {} were let in at once", number(cap)),
        _ => String::new(),
    };
    let text = format!(
        "{} requests a second were offered by the file's own words, and {} were completed{cap}: the figures are not of the load they are labelled with",
        number(offered),
        number((achieved * 1e4).round() / 1e4)
    );
    Found::new(text, [scene.field(Metric::Requests)])
}

pub fn concurrency_not_held(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let target = run.config.concurrency.filter(|target| *target > 0.0)?;
    let (held, how) = match (run.held(), scene.held) {
        (Some(held), _) => (held.value, held.how),
        (None, Some(held)) => (held, "from the requests' own times"),
        (None, None) => return None,
    };
    if !run.has_result() || held >= HELD * target {
        return None;
    }
    let few = run
        .books
        .completed
        .filter(|completed| *completed < 4.0 * target)
        .map(|completed| {
            format!(
                "; {} requests on {} slots leave them empty at the end",
                number(completed),
                number(target)
            )
        })
        .unwrap_or_default();
    let text = format!(
        "{} streams were configured and {} held on average ({how}){few}",
        number(target),
        number((held * 10.0).round() / 10.0)
    );
    Found::new(
        text,
        [scene.field(Metric::Requests), scene.field(Metric::E2e)],
    )
}

pub fn peak_over_cap(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let cap = run.config.concurrency.or(run.config.cap)?;
    let peak = run.rate(Metric::PeakInFlight)?;
    if cap <= 0.0 || peak <= BUCKETS * cap {
        return None;
    }
    let text = format!(
        "up to {} requests at once are stated with a cap of {}: each counts that touched the same second",
        number(peak),
        number(cap)
    );
    Found::new(text, [scene.field(Metric::PeakInFlight)])
}

pub fn wait_left_out(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    if run.number(Metric::StreamEndToEnd, Stat::Mean).is_some() {
        return None;
    }
    let after_first = [means::USER_AFTER_FIRST, means::USER_INVERSE];
    let stream = run
        .number(Metric::StreamGeneration, Stat::Mean)
        .filter(|number| after_first.contains(&number.definition))?;
    let streams = run
        .held()
        .map(|held| held.value)
        .or(run.config.concurrency)?;
    let (rate, system) = (stream.known()?, run.rate(Metric::SystemOutput)?);
    if system <= 0.0 || streams * rate <= MOSTLY_WAITING * system {
        return None;
    }
    let text = format!(
        "{} streams × {} tok/s make {}, and the system does {}: the wait for the first token is outside a stream's rate, and most of its time",
        number((streams * 10.0).round() / 10.0),
        number(rate),
        number(streams * rate),
        number(system)
    );
    Found::new(
        text,
        [
            Some(stream.field.clone()),
            scene.field(Metric::SystemOutput),
        ],
    )
}
