//! Owns the doubts about this client's own running: that it stood still, was behind with reading,
//! waited for a processor, or had little of one left.

use super::{Client, Warning};

/// A worker whose beat came later than this, in seconds, read nothing meanwhile: longer than the
/// gap between two tokens of most models, and seen in the longest gap, if in no median.
const BEAT_LATE: f64 = 0.05;
/// The share of a level's time without a processor from which on many reads were late.
const WAITED: f64 = 0.01;
/// The share of its processor from which on a worker has no room for a burst.
const BUSY: f64 = 0.8;

/// Adds what is to be doubted.
pub(super) fn of(client: &Client, warnings: &mut Vec<Warning>) {
    let mut doubt = |code, text: String, hint: &str| {
        warnings.push(Warning {
            code,
            text,
            hint: hint.into(),
        });
    };
    if let Some(late) = client.beat_late_max.filter(|late| *late > BEAT_LATE) {
        doubt(
            "client_stalled",
            format!(
                "this client stood still for up to {:.0} ms: what arrived meanwhile was read late, and the longest times and gaps may be its own",
                late * 1e3
            ),
            "was it stopped, or the machine busy? run it again with nothing else on its cores",
        );
    }
    if let Some(bytes) = client.unread_stayed_max.filter(|bytes| *bytes > 0) {
        doubt(
            "client_behind",
            format!(
                "{bytes} bytes lay unread in sockets of this client from one look to the next, 10 ms or more later: arrivals waited for it"
            ),
            "use fewer streams, or give the client more cores",
        );
    }
    if let Some(share) = client.waited_share.filter(|share| *share > WAITED) {
        doubt(
            "client_starved",
            format!(
                "a worker of this client was ready and without a processor for {:.1} % of the level",
                share * 100.0
            ),
            "other programs take its cores: stop them, or give the client cores of its own (taskset)",
        );
    }
    if let Some(share) = client.busy_share.filter(|share| *share > BUSY) {
        doubt(
            "client_busy",
            format!(
                "a worker of this client was at work for {:.0} % of the level: bursts wait for it",
                share * 100.0
            ),
            "use fewer streams, or give the client more cores",
        );
    }
}
