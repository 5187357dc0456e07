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
    /// The most chunks a second that this client takes in, where it was measured before the run.
    pub ceiling: Option<u64>,
    /// Chunks a second that arrived in the window, as a share of that.
    pub ceiling_share: Option<f64>,
    /// The latest beat of a worker's heart behind its planned instant, in seconds.
    pub beat_late_max: Option<f64>,
    /// The 99th percentile of the beats' lateness, in seconds, of the worker that fared worst.
    pub beat_late_p99: Option<f64>,
    /// Processor time of the busiest worker over the level's wall time.
    pub busy_share: Option<f64>,
    /// Time that a worker was ready and had no processor, over the level's wall time; the worst.
    pub waited_share: Option<f64>,
    /// The most bytes that one look at a worker's sockets found unread.
    pub unread_max: Option<u64>,
    /// The most bytes in sockets that one look found unread, and the next as they were.
    pub unread_stayed_max: Option<u64>,
}

pub(super) fn figures(scene: &Scene<'_>) -> Client {
    let arrivals = || {
        scene
            .level
            .requests
            .iter()
            .flat_map(|request| &request.arrivals)
    };
    let requests = scene.level.requests.iter();
    let count = requests.map(|r| r.arrivals.len() as u64).sum();
    let basis = |kept| {
        let mut basis = scene.basis(Rule::ArrivalToRead, kept);
        basis.population.of = count;
        basis.population.what = "arrivals, warm-up included";
        basis
    };
    let low = || arrivals().filter_map(|arrival| arrival.lag_low);
    let high = arrivals().map(|arrival| arrival.lag_high);
    let nothing = Withheld::new("nothing_arrived", "no content arrived");
    let lows = low().count() as u64;
    let read_lag = Dist::of_lengths("read_lag", low(), 0, basis(lows));
    let read_lag = match lows {
        0 if count > 0 => read_lag.withhold(Withheld::new(
            "clock_after_read",
            "stamps are clock reads after each read: only the upper end is known",
        )),
        0 => read_lag.withhold(nothing.clone()),
        _ => read_lag,
    };
    let read_lag_bound = Dist::of_lengths("read_lag_bound", high, 0, basis(count));
    let read_lag_bound = read_lag_bound.unless_empty(nothing);
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
    let workers = end.and_then(|end| end.workers);
    let of_wall = |length: Length| {
        let wall = end.map(|end| end.wall.as_secs_f64());
        let wall = wall.filter(|wall| *wall > 0.0)?;
        Some(length.as_secs_f64() / wall)
    };
    Client {
        read_lag,
        read_lag_bound,
        send_lag: send_lag(scene),
        cpu_share: end.and_then(|end| of_wall(end.cpu?)),
        bundled_arrivals: arrivals().filter(|arrival| arrival.client_bundled).count() as u64,
        arrivals: count,
        stamps,
        recorder_waits: end.map(|end| end.recorder_waits),
        ceiling: scene.level.ceiling,
        ceiling_share: ceiling_share(scene),
        beat_late_max: workers.map(|workers| workers.late_max.as_secs_f64()),
        beat_late_p99: workers.map(|workers| workers.late_p99.as_secs_f64()),
        busy_share: workers.and_then(|workers| of_wall(workers.cpu?)),
        waited_share: workers.and_then(|workers| of_wall(workers.waited?)),
        unread_max: workers.and_then(|workers| workers.unread_max),
        unread_stayed_max: workers.and_then(|workers| workers.unread_stayed_max),
    }
}

/// How much of what this client could take in the window brought.
fn ceiling_share(scene: &Scene<'_>) -> Option<f64> {
    let (ceiling, window) = (scene.level.ceiling?, scene.window.as_ref()?);
    let length = window.interval.length().as_secs_f64();
    let all = scene.level.requests.iter().flat_map(|r| &r.arrivals);
    let inside = all.filter(|arrival| window.holds(arrival.at));
    let chunks: u64 = inside.map(|arrival| arrival.chunks).sum();
    (length > 0.0 && ceiling > 0).then(|| chunks as f64 / length / ceiling as f64)
}

/// Planned to sent of each request that was sent after the warm-up, less what it waited for the
/// server to admit a stream: that is no lateness of this client.
pub(super) fn send_lags(scene: &Scene<'_>) -> impl Iterator<Item = Length> {
    let sent = |r: &crate::judge::Judged| {
        let waited = r.trace.connection.h2_wait.unwrap_or(Length::ZERO);
        Some(r.trace.sent?.since_or_zero(r.trace.planned).less(waited))
    };
    scene.members().filter_map(sent)
}

fn send_lag(scene: &Scene<'_>) -> Dist {
    let lags: Vec<Length> = send_lags(scene).collect();
    let basis = scene.issued_basis(Rule::PlannedToSent, lags.len() as u64);
    let dist = Dist::of_lengths("send_lag", lags, 0, basis);
    match scene.load.kind {
        Loop::Open => dist,
        Loop::Closed => dist.withhold(Withheld::new(
            "closed_loop",
            "in a closed loop a request is planned when it is sent",
        )),
    }
}
