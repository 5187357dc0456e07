//! Owns the figures of ok requests of which only the whole was observed: buffered and whole ones.

use serde::Serialize;

use super::streams::e2e_rate;
use super::streams_of::naive_rate;
use super::system::OfArrival;
use super::{Counted, Scene};
use crate::basis::Rule;
use crate::count::{Chunk, Token};
use crate::figure::{Dist, Withheld};
use crate::judge::{Judged, Reason, Shape};
use crate::time::Length;
use crate::tokens::Source;

/// Figures of the ok requests whose shape is `buffered` or `whole`.
#[derive(Debug, Clone, Serialize)]
pub struct EndToEndOnly {
    /// How many.
    pub n: u64,
    /// Of these, bodies that were no stream.
    pub whole: u64,
    /// Of these, answers that failed no guard but the interval: short, or held back, which only
    /// an experiment tells apart.
    pub too_short: u64,
    /// The longest time from first to last content among those too short, in seconds.
    pub too_short_longest_s: Option<f64>,
    /// Visible output over sent to end.
    pub e2e_rate: Dist,
    /// Sent to end.
    pub e2e: Dist,
    /// What output tokens over (end − first content) would have printed: a warning, no figure.
    pub naive: Dist,
    /// Requests for which that formula divides by zero.
    pub naive_divides_by_zero: u64,
}

pub(super) fn figures(scene: &Scene<'_>) -> EndToEndOnly {
    let all: Vec<&Judged> = scene
        .ok()
        .filter(|request| matches!(request.shape, Some(Shape::Buffered | Shape::Whole)))
        .collect();
    let short: Vec<&&Judged> = all
        .iter()
        .filter(|request| is_only_short(request))
        .collect();
    let longest = short.iter().map(|request| request.arrivals.span()).max();
    EndToEndOnly {
        n: all.len() as u64,
        whole: count(&all, |request| request.shape == Some(Shape::Whole)),
        too_short: short.len() as u64,
        too_short_longest_s: longest.map(Length::as_secs_f64),
        e2e_rate: match scene.counted {
            Counted::Tokens(source) => rates::<Token>(scene, &all, source),
            Counted::Chunks => rates::<Chunk>(scene, &all, Source::None),
        },
        e2e: times(scene, &all),
        naive: naive(scene, &all),
        naive_divides_by_zero: count(&all, divides_by_zero),
    }
}

fn count(all: &[&Judged], is: impl Fn(&Judged) -> bool) -> u64 {
    all.iter().filter(|request| is(request)).count() as u64
}

/// No guard failed but the interval: the page never calls such an answer buffered.
fn is_only_short(request: &Judged) -> bool {
    matches!(request.reasons.as_slice(), [Reason::Short])
}

/// Tokens are known, and no time passes between the first content and the end.
fn divides_by_zero(request: &Judged) -> bool {
    let trace = &request.trace;
    let ends = trace.first_content.zip(trace.end);
    request.tokens.visible.is_some() && ends.is_some_and(|(first, end)| end <= first)
}

fn rates<U: OfArrival>(scene: &Scene<'_>, all: &[&Judged], source: Source) -> Dist {
    let rates: Vec<_> = all
        .iter()
        .filter_map(|request| e2e_rate::<U>(request, scene.load))
        .collect();
    let basis = scene.basis(Rule::SentToEnd, rates.len() as u64);
    none_of(Dist::of_rates(&rates, source, basis), all)
}

fn times(scene: &Scene<'_>, all: &[&Judged]) -> Dist {
    let lengths: Vec<Length> = all
        .iter()
        .filter_map(|request| request.trace.end?.since(request.trace.sent?))
        .collect();
    let basis = scene.basis(Rule::SentToEnd, lengths.len() as u64);
    none_of(Dist::of_lengths("e2e", lengths, 0, basis), all)
}

fn naive(scene: &Scene<'_>, all: &[&Judged]) -> Dist {
    let rates: Vec<_> = all
        .iter()
        .filter_map(|request| naive_rate(request, scene.load))
        .collect();
    let basis = scene.basis(Rule::FirstContentToEnd, rates.len() as u64);
    let source = match scene.counted {
        Counted::Tokens(source) => source,
        Counted::Chunks => Source::None,
    };
    none_of(Dist::of_rates(&rates, source, basis), all)
}

fn none_of(dist: Dist, all: &[&Judged]) -> Dist {
    match (dist.n(), all.is_empty()) {
        (0, true) => dist.withhold(Withheld::new(
            "none_such",
            "every ok request supports stream figures, or none ended ok",
        )),
        (0, false) => dist.withhold(Withheld::new(
            "no_count",
            "no token count, or no time to divide by",
        )),
        _ => dist,
    }
}
