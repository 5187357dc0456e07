//! Owns what this client may have added: its lag at both ends, the send lag, its own load.

use serde::Serialize;

use super::Scene;
use crate::basis::{Loop, Rule};
use crate::figure::{Dist, Withheld};
use crate::time::Length;
use crate::trace::Stamps;

/// What the client may have added.
#[derive(Debug, Clone, Serialize)]
pub struct Client {
    /// At least so late: read − kernel stamp.
    pub read_lag: Dist,
    /// At most so late: read − the later of the last wake and the previous look.
    pub read_lag_bound: Dist,
    /// Planned to sent.
    pub send_lag: Dist,
    /// Processor time of this process over the level's wall time; above 1 with several cores.
    pub cpu_share: Option<f64>,
    /// Arrivals that this client may have merged.
    pub bundled_arrivals: u64,
    /// All arrivals of the level.
    pub arrivals: u64,
    /// How the stamps were made.
    pub stamps: Stamps,
    /// Times a worker waited for the record file.
    pub recorder_waits: Option<u64>,
}

pub(super) fn figures(scene: &Scene<'_>) -> Client {
    let arrivals = || {
        scene
            .level
            .requests
            .iter()
            .flat_map(|request| &request.arrivals)
    };
    let count = arrivals().count() as u64;
    let lag = |metric, all: Vec<Length>| {
        let mut basis = scene.basis(Rule::ArrivalToRead, all.len() as u64);
        basis.population.of = count;
        basis.population.what = "arrivals, warm-up included";
        Dist::of_lengths(metric, all, 0, basis)
    };
    let low: Vec<Length> = arrivals().filter_map(|arrival| arrival.lag_low).collect();
    let high: Vec<Length> = arrivals().map(|arrival| arrival.lag_high).collect();
    let nothing = Withheld::new("nothing_arrived", "no content arrived");
    let read_lag = match low.is_empty() {
        true if count > 0 => lag("read_lag", low).withhold(Withheld::new(
            "clock_after_read",
            "stamps are clock reads after each read: only the upper end is known",
        )),
        true => lag("read_lag", low).withhold(nothing.clone()),
        false => lag("read_lag", low),
    };
    let read_lag_bound = match high.is_empty() {
        true => lag("read_lag_bound", high).withhold(nothing),
        false => lag("read_lag_bound", high),
    };
    let stamps = scene
        .level
        .requests
        .iter()
        .fold(Stamps::None, |all, request| {
            match (all, request.trace.stamps) {
                (one, Stamps::None) | (Stamps::None, one) => one,
                (one, other) if one == other => one,
                _ => Stamps::Mixed,
            }
        });
    let end = scene.level.end.as_ref();
    Client {
        read_lag,
        read_lag_bound,
        send_lag: send_lag(scene),
        cpu_share: end.and_then(|end| {
            let wall = Some(end.wall.as_secs_f64()).filter(|wall| *wall > 0.0)?;
            Some(end.cpu?.as_secs_f64() / wall)
        }),
        bundled_arrivals: arrivals().filter(|arrival| arrival.client_bundled).count() as u64,
        arrivals: count,
        stamps,
        recorder_waits: end.map(|end| end.recorder_waits),
    }
}

/// Planned to sent of each request that was sent after the warm-up.
pub(super) fn send_lags(scene: &Scene<'_>) -> impl Iterator<Item = Length> {
    let sent = |r: &crate::judge::Judged| Some(r.trace.sent?.since_or_zero(r.trace.planned));
    scene.members().filter_map(sent)
}

fn send_lag(scene: &Scene<'_>) -> Dist {
    let lags: Vec<Length> = send_lags(scene).collect();
    let mut basis = scene.basis(Rule::PlannedToSent, lags.len() as u64);
    basis.population.of = scene.members().count() as u64;
    basis.population.what = "issued requests";
    let dist = Dist::of_lengths("send_lag", lags, 0, basis);
    match scene.load.kind {
        Loop::Open => dist,
        Loop::Closed => dist.withhold(Withheld::new(
            "closed_loop",
            "in a closed loop a request is planned when it is sent",
        )),
    }
}
