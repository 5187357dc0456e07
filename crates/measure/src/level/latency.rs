//! Owns the times of a level: first content, gaps, end to end, connections, what is declared.

use serde::Serialize;

use super::{Counted, Scene, Selection, h2, streams};
use crate::arrival::Arrival;
use crate::basis::{Interval, Load, Loop, PerStream, Rule};
use crate::count::{Count, Token};
use crate::figure::{Dist, Evidence, Withheld, of_one};
use crate::judge::{Judged, Outcome, Shape};
use crate::rate::{Generation, Rate};
use crate::time::{Instant, Length};
use crate::tokens::Source;

/// Share of arrivals, in percent, that must be one chunk of one token before gaps are per token.
const ONE_TOKEN_ARRIVALS_PERCENT: u64 = 90;

/// The times of a level.
#[derive(Debug, Clone, Serialize)]
pub struct Latency {
    /// Sent to first content.
    pub ttft: Dist,
    /// Planned to first content, in an open loop.
    pub ttft_from_plan: Dist,
    /// Sent to first answer text or tool call.
    pub first_answer: Dist,
    /// Time between arrivals, over all streams.
    pub arrival_gap: Dist,
    /// The longest gap of each request.
    pub gap_max: Dist,
    /// Time between tokens.
    pub itl: Dist,
    /// Sent to end.
    pub e2e: Dist,
    /// Planned to end, in an open loop.
    pub e2e_from_plan: Dist,
}

/// Times in which failed requests count as the worst.
#[derive(Debug, Clone, Serialize)]
pub struct FailuresIncluded {
    /// Sent to first content.
    pub ttft: Dist,
    /// Sent to end.
    pub e2e: Dist,
}

/// What the server says of its own timing; never mixed with what was observed.
#[derive(Debug, Clone, Serialize)]
pub struct Declared {
    /// Output tokens over the time the server gives for them.
    pub generation: Dist,
    /// The time it gives for the prompt.
    pub prompt: Dist,
    /// The time it gives for waiting.
    pub queue: Dist,
    /// The time it gives to the first token.
    pub ttft: Dist,
    /// The time it gives for loading the model.
    pub load: Dist,
    /// The time it gives for the whole request.
    pub total: Dist,
}

/// How the connections of a level's requests came about.
#[derive(Debug, Clone, Serialize)]
pub struct Connection {
    /// Looking the name up.
    pub dns: Dist,
    /// Opening the connection.
    pub tcp: Dist,
    /// The TLS handshake.
    pub tls: Dist,
    /// From there to the server's settings, of HTTP/2.
    pub http2: Dist,
    /// What requests waited in the client for the server to admit a stream, of HTTP/2.
    pub h2_wait: Dist,
    /// Time to first content with that wait, which `ttft` is without.
    pub ttft_with_h2_wait: Dist,
    /// Requests on a connection that had carried one before.
    pub reused: u64,
}

fn span(from: Option<Instant>, to: Option<Instant>) -> Option<Length> {
    to?.since(from?)
}

fn ttft(request: &Judged) -> Option<Length> {
    span(request.trace.sent, request.trace.first_content)
}

fn e2e(request: &Judged) -> Option<Length> {
    span(request.trace.sent, request.trace.end)
}

pub(super) fn figures(scene: &Scene<'_>) -> Latency {
    let why = streams::why_not_streamed(scene);
    let selected = Selection::of(scene).is_partial();
    let streamed = |metric, rule, of: &dyn Fn(&Judged) -> Option<Length>| {
        let all: Vec<Length> = scene.streamed().filter_map(of).collect();
        let basis = scene.basis(rule, all.len() as u64);
        let dist = Dist::of_lengths(metric, all, 0, basis).mark_selected(selected);
        why.clone().map_or(dist.clone(), |why| dist.withhold(why))
    };
    let closed = || {
        Withheld::new(
            "closed_loop",
            "in a closed loop a request is planned when it is sent",
        )
    };
    let open_only = |dist: Dist| match scene.load.kind {
        Loop::Closed => dist.withhold(closed()),
        Loop::Open => dist,
    };
    let ended = |metric, rule, of: &dyn Fn(&Judged) -> Option<Length>| {
        let all: Vec<Length> = scene.ok().filter_map(of).collect();
        let why = Withheld::new("no_ok_request", "no request ended ok");
        let basis = scene.basis(rule, scene.ok_count());
        Dist::of_lengths(metric, all, 0, basis).unless_empty(why)
    };
    Latency {
        ttft: streamed("ttft", Rule::SentToFirstContent, &ttft),
        ttft_from_plan: open_only(streamed(
            "ttft_from_plan",
            Rule::PlannedToFirstContent,
            &|request| span(Some(request.trace.planned), request.trace.first_content),
        )),
        first_answer: streamed("first_answer", Rule::SentToFirstAnswer, &|r| {
            span(r.trace.sent, r.trace.first_answer)
        }),
        arrival_gap: arrival_gap(scene, why.clone(), selected),
        gap_max: gap_max(scene, why.clone(), selected),
        itl: itl(scene, why.clone(), selected),
        e2e: ended("e2e", Rule::SentToEnd, &e2e),
        e2e_from_plan: open_only(ended("e2e_from_plan", Rule::PlannedToEnd, &|request| {
            span(Some(request.trace.planned), request.trace.end)
        })),
    }
}

fn arrival_gap(scene: &Scene<'_>, why: Option<Withheld>, selected: bool) -> Dist {
    let all = scene.streamed().flat_map(|request| request.arrivals.gaps());
    let basis = scene.basis(Rule::BetweenArrivals, scene.streamed().count() as u64);
    let dist = Dist::of_lengths("arrival_gap", all, 0, basis).mark_selected(selected);
    why.map_or(dist.clone(), |why| dist.withhold(why))
}

fn gap_max(scene: &Scene<'_>, why: Option<Withheld>, selected: bool) -> Dist {
    let all: Vec<Length> = scene
        .streamed()
        .filter_map(|r| r.arrivals.gaps().max())
        .collect();
    let basis = scene.basis(Rule::BetweenArrivals, all.len() as u64);
    let dist = Dist::of_lengths("gap_max", all, 0, basis).mark_selected(selected);
    why.map_or(dist.clone(), |why| dist.withhold(why))
}

fn is_one_token(arrival: &Arrival) -> bool {
    arrival.chunks == 1 && arrival.tokens == Some(Count::<Token>::whole(1))
}

/// Gaps between neighbouring arrivals of one chunk that is one token each.
fn itl(scene: &Scene<'_>, why: Option<Withheld>, selected: bool) -> Dist {
    let apportioned = |r: &&Judged| r.tokens.apportioned;
    let requests: Vec<&Judged> = scene
        .streamed()
        .filter(|r| streams::enters_per_token(r))
        .collect();
    let all: u64 = requests
        .iter()
        .map(|request| request.arrivals.len() as u64)
        .sum();
    let single = requests
        .iter()
        .filter(|r| !apportioned(r))
        .flat_map(|request| &request.arrivals);
    let single = single.filter(is_one_token).count() as u64;
    let pairs = requests
        .iter()
        .filter(|r| !apportioned(r))
        .flat_map(|r| r.arrivals.pairs());
    let gaps = pairs
        .filter(|(one, next)| is_one_token(one) && is_one_token(next))
        .filter_map(|(one, next)| next.at.since(one.at));
    let basis = scene.basis(Rule::BetweenArrivals, requests.len() as u64);
    let dist = Dist::of_lengths("itl", gaps, 0, basis).mark_selected(selected);
    if let Some(why) = why {
        return dist.withhold(why);
    }
    if matches!(scene.counted, Counted::Chunks) {
        return dist.withhold(Withheld::new(
            "no_tokens",
            "nobody counted tokens: see the arrival gap",
        ));
    }
    if all == 0 {
        return dist.withhold(
            match scene.streamed().all(|r| r.shape == Some(Shape::Clumped)) {
                true => Withheld::new(
                    "clumped",
                    "several chunks came with each arrival: see the arrival gap",
                ),
                false => Withheld::new(
                    "client_bundled",
                    "every streamed response may have been merged by this client reading late",
                ),
            },
        );
    }
    if single * 100 < all * ONE_TOKEN_ARRIVALS_PERCENT {
        let text = format!(
            "{single} of {all} arrivals are one chunk of one token, and 90 % would be needed: see the arrival gap"
        );
        return dist.withhold(Withheld::new("not_one_token", text));
    }
    dist
}

pub(super) fn failures_included(scene: &Scene<'_>) -> FailuresIncluded {
    let failed: Vec<&Judged> = scene
        .members()
        .filter(|r| matches!(r.outcome, Outcome::Failed(_)))
        .collect();
    let mut first: Vec<Length> = scene.streamed().filter_map(ttft).collect();
    let had_content = |r: &&Judged| r.outcome != Outcome::Ok && r.trace.first_content.is_some();
    first.extend(scene.members().filter(had_content).filter_map(ttft));
    let without = failed.iter().filter(|r| ttft(r).is_none()).count() as u64;
    let whole: Vec<Length> = scene.ok().filter_map(e2e).collect();
    let basis = |rule, kept: u64| scene.issued_basis(rule, kept);
    let none =
        |dist: Dist| dist.unless_empty(Withheld::new("nothing_observed", "no request supports it"));
    let unseen = streams::why_not_streamed(scene).filter(|_| scene.ok_count() > 0);
    let kept = first.len() as u64 + without;
    let ended = whole.len() as u64 + failed.len() as u64;
    // With nothing streamed, a distribution of failed requests alone would say nothing of the rest.
    let hidden = |dist: Dist| match unseen {
        Some(why) => dist.withhold(why),
        None => dist,
    };
    FailuresIncluded {
        ttft: hidden(none(Dist::of_lengths(
            "ttft",
            first,
            without,
            basis(Rule::SentToFirstContent, kept),
        ))),
        e2e: none(Dist::of_lengths(
            "e2e",
            whole,
            failed.len() as u64,
            basis(Rule::SentToEnd, ended),
        )),
    }
}

pub(super) fn declared(scene: &Scene<'_>) -> Declared {
    let rates: Vec<_> = scene
        .ok()
        .filter_map(|request| declared_rate(request, scene.load))
        .collect();
    let none = || Withheld::new("not_declared", "the server declares no such time");
    let or_none = |dist: Dist| match dist.n() {
        0 => dist.withhold(none()),
        _ => dist,
    };
    let basis = scene.basis(Rule::Declared, rates.len() as u64);
    let generation = Dist::of_rates(&rates, Source::Server, basis);
    let times = |metric, of: &dyn Fn(&crate::trace::Declared) -> Option<Length>| {
        let all: Vec<Length> = scene
            .ok()
            .filter_map(|request| of(request.trace.declared.as_ref()?))
            .collect();
        let basis = scene.basis(Rule::Declared, all.len() as u64);
        or_none(Dist::of_lengths(metric, all, 0, basis)).as_evidence(Evidence::Declared)
    };
    Declared {
        generation: or_none(generation).as_evidence(Evidence::Declared),
        prompt: times("declared_prompt", &|declared| declared.prompt),
        queue: times("declared_queue", &|declared| declared.queue),
        ttft: times("declared_ttft", &|declared| declared.first),
        load: times("declared_load", &|declared| declared.load),
        total: times("declared_total", &|declared| declared.total),
    }
}

pub(crate) fn declared_rate(
    request: &Judged,
    load: Load,
) -> Option<Rate<Token, PerStream, Generation>> {
    let declared = request.trace.declared?;
    let interval = Interval::of(declared.output?, Rule::Declared)?;
    Some(Rate::new(
        Count::whole(declared.output_tokens?),
        of_one(interval, load),
    ))
}

pub(super) fn connection(scene: &Scene<'_>) -> Connection {
    let fresh = || {
        scene
            .level
            .requests
            .iter()
            .filter(|request| !request.trace.connection.reused)
    };
    let phase = |metric, of: &dyn Fn(&Judged) -> Option<Length>| {
        let all: Vec<Length> = fresh().filter_map(of).collect();
        let mut basis = scene.basis(Rule::Connecting, all.len() as u64);
        basis.population.of = fresh().count() as u64;
        basis.population.what = "new connections, warm-up included";
        let why = Withheld::new("not_observed", "no connection had this phase");
        Dist::of_lengths(metric, all, 0, basis).unless_empty(why)
    };
    Connection {
        dns: phase("dns", &|request| request.trace.connection.dns),
        tcp: phase("tcp", &|request| request.trace.connection.tcp),
        tls: phase("tls", &|request| request.trace.connection.tls),
        http2: phase("http2", &|request| request.trace.connection.http2),
        h2_wait: h2::wait(scene),
        ttft_with_h2_wait: h2::ttft_with_wait(scene),
        reused: scene
            .members()
            .filter(|request| request.trace.connection.reused)
            .count() as u64,
    }
}

/// Whether the time to write the request is over 5 % of the time to first content.
pub(crate) fn slow_write(request: &Judged) -> bool {
    let written = span(request.trace.sent, request.trace.written);
    let supported = request.supports_stream_figures();
    supported
        && written
            .zip(ttft(request))
            .is_some_and(|(written, ttft)| written.nanos() > ttft.nanos() / 20)
}
