//! Owns what requests of HTTP/2 waited in the client: a server admits so many streams at once.

use super::{Scene, Warning};
use crate::basis::Rule;
use crate::figure::{Dist, DistBasis, Withheld};
use crate::judge::Judged;
use crate::rate::significant;
use crate::time::Length;

/// A wait below this is the price of asking.
const WAITED: Length = Length::from_millis(1);

fn waited(request: &Judged) -> Option<Length> {
    request.trace.connection.h2_wait
}

/// From all being ready to `sent`.
pub(super) fn wait(scene: &Scene<'_>) -> Dist {
    let all: Vec<Length> = scene.members().filter_map(waited).collect();
    let basis = scene.issued_basis(Rule::ReadyToSent, all.len() as u64);
    shown("h2_wait", all, basis)
}

/// Time to first content with the wait, which `ttft` is without.
pub(super) fn ttft_with_wait(scene: &Scene<'_>) -> Dist {
    let with = |request: &Judged| {
        let trace = &request.trace;
        Some(trace.first_content?.since(trace.sent?)? + waited(request)?)
    };
    let all: Vec<Length> = scene.streamed().filter_map(with).collect();
    let basis = scene.basis(Rule::ReadyToFirstContent, all.len() as u64);
    shown("ttft_with_h2_wait", all, basis)
}

fn shown(metric: &'static str, all: Vec<Length>, basis: DistBasis) -> Dist {
    let why = Withheld::new("not_observed", "no request went over HTTP/2");
    Dist::of_lengths(metric, all, 0, basis).unless_empty(why)
}

/// That requests waited for the server to admit them.
pub(super) fn warning(scene: &Scene<'_>) -> Option<Warning> {
    let long = |length: &Length| *length >= WAITED;
    let waits = || scene.members().filter_map(waited).filter(long);
    let longest = waits().max()?;
    let with = ttft_with_wait(scene).median().value;
    let with = with.map_or(String::new(), |median| {
        format!("; with it the median of TTFT is {} s", significant(median))
    });
    Some(Warning {
        code: "h2_wait",
        text: format!(
            "{} requests waited in this client, up to {} s, until the server admitted another HTTP/2 stream{with}",
            waits().count(),
            significant(longest.as_secs_f64()),
        ),
        hint: "no other figure from sending on holds that wait; the server's limit of streams on a connection makes it"
            .into(),
    })
}
