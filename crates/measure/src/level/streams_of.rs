//! Owns the figures of one request, for its row.

use super::latency::declared_rate;
use super::streams::{e2e_rate, generation_rate};
use super::system::OfArrival;
use crate::basis::{Interval, Load, PerStream, Rule};
use crate::count::{Count, Token};
use crate::figure::{Evidence, Figure, of_one};
use crate::judge::{Judged, Outcome};
use crate::rate::{Naive, Rate};
use crate::tokens::Source;

/// Its generation rate, where its shape supports one.
pub(crate) fn generation<U: OfArrival>(request: &Judged, load: Load) -> Option<Figure> {
    let (rate, range) = generation_rate::<U>(request, load)?;
    Some(Figure::of(&rate, request.tokens.source).with_range(range))
}

/// Its end-to-end rate.
pub(crate) fn end_to_end<U: OfArrival>(request: &Judged, load: Load) -> Option<Figure> {
    Some(Figure::of(
        &e2e_rate::<U>(request, load)?,
        request.tokens.source,
    ))
}

/// The generation rate that the server declares.
pub(crate) fn declared(request: &Judged, load: Load) -> Option<Figure> {
    let rate = declared_rate(request, load)?;
    Some(Figure::of(&rate, Source::Server).as_evidence(Evidence::Declared))
}

/// What dividing all output by (end − first content) gives: the formula that fails on a burst.
pub(crate) fn naive_rate(request: &Judged, load: Load) -> Option<Rate<Token, PerStream, Naive>> {
    let trace = &request.trace;
    let interval = Interval::between(trace.first_content?, trace.end?, Rule::FirstContentToEnd)?;
    Some(Rate::new(
        Count::whole(request.tokens.visible?),
        of_one(interval, load),
    ))
}

/// The naive rate of a buffered request, as a figure to warn with.
pub(crate) fn naive(request: &Judged, load: Load) -> Option<Figure> {
    let believed = request.tokens.inconsistent.is_none();
    if request.outcome != Outcome::Ok || request.reasons.is_empty() || !believed {
        return None;
    }
    Some(Figure::of(
        &naive_rate(request, load)?,
        request.tokens.source,
    ))
}
