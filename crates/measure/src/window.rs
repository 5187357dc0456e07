//! Owns the window of a level: which stretch of time counts, and how much load was held in it.

use crate::basis::{Interval, Loop, Rule};
use crate::judge::{Judged, Outcome};
use crate::plan::LevelPlan;
use crate::record::{Gap, Level};
use crate::time::{Instant, Length};

/// A steady window must be this many times the median end-to-end latency.
const STEADY_MEDIANS: u64 = 3;

/// The stretch of a level that its system figures rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window<'a> {
    /// Its first instant.
    pub start: Instant,
    /// The first instant after it.
    pub end: Instant,
    /// Start to end without the pauses in it, with the rule.
    pub interval: Interval,
    /// The pauses of the level, one after another.
    pauses: &'a [Gap],
}

impl<'a> Window<'a> {
    fn between(start: Instant, end: Instant, rule: Rule, pauses: &'a [Gap]) -> Option<Self> {
        let mut window = Window {
            start,
            end,
            interval: Interval::between(start, end, rule)?,
            pauses,
        };
        window.interval = Interval::of(window.overlap(start, end), rule)?;
        Some(window)
    }

    /// The time inside that was paused and does not count.
    pub fn paused(&self) -> Length {
        self.end
            .since_or_zero(self.start)
            .less(self.interval.length())
    }

    /// Whether an instant lies inside. A whole run's window ends with its last arrival, which is
    /// part of it; a steady one ends where the next instant begins another stretch.
    pub fn holds(&self, at: Instant) -> bool {
        let last = self.interval.rule() == Rule::Run && at == self.end;
        let paused = |pause: &Gap| (pause.from..pause.to).contains(&at);
        let inside = (self.start..self.end).contains(&at) || last;
        inside && !self.pauses.iter().any(paused)
    }

    /// The part of `from`..`to` inside, without pauses.
    pub fn overlap(&self, from: Instant, to: Instant) -> Length {
        let (from, to) = (from.max(self.start), to.min(self.end));
        let paused = |pause: &Gap| pause.to.min(to).since_or_zero(pause.from.max(from));
        let whole = to.since_or_zero(from);
        self.pauses.iter().map(paused).fold(whole, Length::less)
    }
}

/// The window of a level, by the model's rule, or none where nothing was sent.
pub fn choose<'a>(level: &Level, pauses: &'a [Gap]) -> Option<Window<'a>> {
    let requests = &level.requests;
    let ends = match level.plan.kind {
        Loop::Closed => all_busy(requests, &level.plan),
        Loop::Open => on_plan(requests, level.end.is_none()),
    };
    let steady = || {
        let (start, end) = ends?;
        let window = Window::between(start, end, Rule::Steady, pauses)?;
        let least = median_e2e(requests)?.nanos().saturating_mul(STEADY_MEDIANS);
        (window.interval.length().nanos() >= least).then_some(window)
    };
    steady().or_else(|| whole_run(requests, pauses))
}

/// Open loop: from the first planned instant after the warm-up until the last one, or until the
/// last record of a run that was cut short.
fn on_plan(requests: &[Judged], cut_short: bool) -> Option<(Instant, Instant)> {
    let members = || requests.iter().filter(|request| !request.trace.warmup);
    let planned = |request: &Judged| request.trace.planned;
    let start = members().map(planned).min()?;
    let end = match cut_short {
        false => members().map(planned).max()?,
        true => members().map(|request| request.trace.finish).max()?,
    };
    Some((start, end))
}

/// Closed loop: from the instant every stream has ended its first request until the first stream
/// finds none left.
fn all_busy(requests: &[Judged], plan: &LevelPlan) -> Option<(Instant, Instant)> {
    let streams = usize::try_from(plan.streams).ok()?;
    let mut firsts: Vec<Option<(Instant, Instant)>> = vec![None; streams];
    let mut lasts: Vec<Option<Instant>> = vec![None; streams];
    for request in requests {
        let stream = usize::try_from(request.trace.stream)
            .ok()
            .filter(|s| *s < streams)?;
        let (start, finish) = (request.trace.start, request.trace.finish);
        if firsts[stream].is_none_or(|(first, _)| start < first) {
            firsts[stream] = Some((start, finish));
        }
        lasts[stream] = lasts[stream].max(Some(finish));
    }
    let start = firsts
        .iter()
        .copied()
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .map(|(_, end)| end)
        .max()?;
    let end = lasts
        .into_iter()
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .min()?;
    Some((start, end))
}

/// From the first `sent` to the last `end`, ramp and drain included.
fn whole_run<'a>(requests: &[Judged], pauses: &'a [Gap]) -> Option<Window<'a>> {
    let members = || requests.iter().filter(|request| !request.trace.warmup);
    let start = members().filter_map(|request| request.trace.sent).min()?;
    let end = members()
        .filter_map(|r| r.trace.sent.map(|_| flight_end(r)))
        .max()?;
    Window::between(start, end, Rule::Run, pauses)
}

/// When a request left the air: its end, else when the driver was done with it.
fn flight_end(request: &Judged) -> Instant {
    request.trace.end.unwrap_or(request.trace.finish)
}

fn median_e2e(requests: &[Judged]) -> Option<Length> {
    let ok = requests
        .iter()
        .filter(|r| !r.trace.warmup && r.outcome == Outcome::Ok);
    let mut all: Vec<Length> = ok
        .filter_map(|r| r.trace.end?.since(r.trace.sent?))
        .collect();
    all.sort_unstable();
    all.get(all.len().checked_sub(1)? / 2).copied()
}

/// Requests that would make the window steady, in about; `None` for an open loop in which no
/// request ended ok, so that nobody knows how long they take.
pub fn requests_for_steady(level: &Level) -> Option<u64> {
    let plan = &level.plan;
    match plan.kind {
        Loop::Closed => Some(u64::from(plan.streams) * crate::plan::REQUESTS_A_STREAM),
        Loop::Open => {
            let span = u128::from(median_e2e(&level.requests)?.nanos()) * 3;
            let requests = (span * u128::from(plan.target_milli)).div_ceil(1_000_000_000_000);
            u64::try_from(requests).ok()?.checked_add(1)
        }
    }
}

/// Time in flight inside the window, summed over all requests.
pub fn in_flight(requests: &[Judged], window: &Window) -> Length {
    let each = requests.iter().filter_map(|request| {
        let sent = request.trace.sent?;
        Some(window.overlap(sent, flight_end(request)))
    });
    each.fold(Length::ZERO, |sum, part| sum + part)
}

/// Requests in flight on average over the window, in thousandths.
pub fn held_milli(in_flight: Length, window: &Window) -> u64 {
    let milli =
        u128::from(in_flight.nanos()) * 1_000 / u128::from(window.interval.length().nanos());
    u64::try_from(milli).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::GapKind;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Length::from_millis(ms)
    }

    #[test]
    fn pauses_are_no_part_of_a_window_wherever_they_lie() {
        let gap = |from, to| Gap {
            level: 0,
            kind: GapKind::Pause,
            from: at(from),
            to: at(to),
        };
        let pauses = [gap(50, 120), gap(300, 400), gap(900, 2_000)];
        let window = Window::between(at(100), at(1_000), Rule::Steady, &pauses);
        let window = window.expect("some of it is left");
        assert_eq!(
            window.interval.length(),
            Length::from_millis(900 - 20 - 100 - 100)
        );
        assert_eq!(window.paused(), Length::from_millis(220));
        assert_eq!(window.overlap(at(0), at(350)), Length::from_millis(180));
        let held: Vec<bool> = [110, 120, 299, 300, 399, 400, 950]
            .map(|ms| window.holds(at(ms)))
            .into();
        assert_eq!(held, [false, true, true, false, false, true, false]);
        assert_eq!(Window::between(at(310), at(390), Rule::Run, &pauses), None);
    }
}
