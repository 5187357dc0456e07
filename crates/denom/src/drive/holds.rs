//! Owns what holds requests back: a pause the server asked for, and a server that takes no
//! connections, of which only a probe a second is asked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use measure::record::{Gap, GapKind};
use measure::time::{Instant, Length};
use measure::trace::{Phase, Trace, Transport};

/// So many refused connections in a row mean that the server is away;
const REFUSED: u32 = 50;
/// or refused connections, and nothing else, for so long.
const REFUSED_FOR: Length = Length::from_secs(5);
/// The time between two probes of a server that is away.
const PROBE: Length = Length::from_secs(1);
/// The longest that a server's word is heeded.
pub(super) const LONGEST_PAUSE: Length = Length::from_secs(3_600);
/// The pause where a server gives no time that can be read.
const USUAL_PAUSE: Length = Length::from_secs(1);

/// What holds all streams of a run back.
#[derive(Debug, Default)]
pub(super) struct Holds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// From and until when requests are paused.
    pause: Option<(Instant, Instant)>,
    /// Connections refused in a row, and since when.
    refused: u32,
    refused_since: Option<Instant>,
    /// When the next probe is due, while the server is away.
    probe: Option<Instant>,
    /// Where the last pause and the last outage ended.
    pause_end: Option<Instant>,
    outage_end: Option<Instant>,
    /// What is over.
    gaps: Vec<(GapKind, Instant, Instant)>,
}

impl Holds {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server wants no request for so long from `at` on; by default a second, at most an hour.
    pub fn pause(&self, at: Instant, length: Option<Length>) {
        let until = at + length.unwrap_or(USUAL_PAUSE).min(LONGEST_PAUSE);
        let mut state = self.state();
        state.end_pause(at);
        state.pause = match state.pause {
            Some((from, before)) => Some((from, before.max(until))),
            None => Some((at, until)),
        };
    }

    /// What a request says of the server: whether it took the connection.
    pub fn learn(&self, trace: &Trace) {
        let mut state = self.state();
        match &trace.transport {
            Transport::NoConnection { local: false, .. }
            | Transport::Timeout {
                phase: Phase::Dns | Phase::Connect | Phase::Tls,
            } => state.refused(trace.start, trace.finish),
            // These say nothing of the server.
            Transport::NoConnection { local: true, .. } | Transport::Cancelled => {}
            _ => state.taken(trace.sent.unwrap_or(trace.start)),
        }
    }

    /// How long a stream has to wait at `now`; none if it may go. Who may go while the server is
    /// away is its probe.
    pub fn wait(&self, now: Instant) -> Option<Length> {
        let mut state = self.state();
        state.end_pause(now);
        if let Some((_, until)) = state.pause {
            return Some(until.since_or_zero(now));
        }
        let probe = state.probe?;
        if now < probe {
            return Some(probe.since_or_zero(now));
        }
        state.probe = Some(now + PROBE);
        None
    }

    /// All that was held back in a level that ends at `at`. What lasts on counts anew from there.
    pub fn close(&self, level: u32, at: Instant) -> Vec<Gap> {
        let mut state = self.state();
        state.end_pause(at);
        if let Some((from, until)) = state.pause.filter(|(from, _)| *from < at) {
            state.add_pause(from, at);
            state.pause = Some((at, until));
        }
        if state.probe.is_some() {
            state.end_outage(at);
            state.refused_since = Some(at);
        }
        let gap = |(kind, from, to)| Gap {
            level,
            kind,
            from,
            to,
        };
        let mut gaps: Vec<Gap> = state.gaps.drain(..).map(gap).collect();
        gaps.sort_by_key(|gap| gap.from);
        gaps
    }
}

impl State {
    fn end_pause(&mut self, now: Instant) {
        if let Some((from, until)) = self.pause.filter(|(_, until)| *until <= now) {
            self.add_pause(from, until);
            self.pause = None;
        }
    }

    /// Stamps of different streams need not come in order, and gaps may not overlap.
    fn add_pause(&mut self, from: Instant, to: Instant) {
        let from = self.pause_end.map_or(from, |end| from.max(end));
        if from < to {
            self.gaps.push((GapKind::Pause, from, to));
            self.pause_end = Some(to);
        }
    }

    fn refused(&mut self, start: Instant, now: Instant) {
        self.refused = self.refused.saturating_add(1);
        let since = *self.refused_since.get_or_insert(start);
        let away = self.refused >= REFUSED || now.since_or_zero(since) >= REFUSED_FOR;
        if away && self.probe.is_none() {
            self.probe = Some(now + PROBE);
        }
    }

    fn taken(&mut self, at: Instant) {
        if self.probe.take().is_some() {
            self.end_outage(at);
        }
        (self.refused, self.refused_since) = (0, None);
    }

    fn end_outage(&mut self, at: Instant) {
        let since = self.refused_since.max(self.outage_end);
        if let Some(since) = since.filter(|since| *since < at) {
            self.gaps.push((GapKind::Outage, since, at));
            self.outage_end = Some(at);
        }
    }
}

/// The time a server asks for in `Retry-After`: seconds, or a date, which counts from the answer's
/// own `Date` where it has one, else from `unix_now` in seconds. `None` for what cannot be read or
/// has passed.
pub(super) fn retry_after(given: &str, date: Option<&str>, unix_now: u64) -> Option<Length> {
    let given = given.trim();
    let seconds = match given.bytes().all(|byte| byte.is_ascii_digit()) {
        true if given.is_empty() => return None,
        // More digits than a number holds are more than the longest pause.
        true => given.parse().unwrap_or(u64::MAX),
        false => {
            let unix = |text: &str| {
                let at = httpdate::parse_http_date(text).ok()?;
                let since = at.duration_since(std::time::UNIX_EPOCH).ok()?;
                Some(since.as_secs())
            };
            let now = date.and_then(unix).unwrap_or(unix_now);
            unix(given)?.checked_sub(now).filter(|left| *left > 0)?
        }
    };
    Some(Length::from_secs(
        seconds.min(LONGEST_PAUSE.nanos() / 1_000_000_000),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Length::from_millis(ms)
    }

    fn ended(ms: u64, refused: bool) -> Trace {
        let mut trace = Trace::begun(0, 0, 0, false, at(ms));
        trace.finish = at(ms + 1);
        trace.transport = match refused {
            true => Transport::NoConnection {
                phase: Phase::Connect,
                local: false,
                text: String::new(),
            },
            false => Transport::Complete,
        };
        trace
    }

    fn spans(gaps: &[Gap]) -> Vec<(GapKind, Instant, Instant)> {
        gaps.iter()
            .map(|gap| (gap.kind, gap.from, gap.to))
            .collect()
    }

    #[test]
    fn row_28_the_time_a_server_asks_for_is_read_in_every_form_and_capped() {
        let read = |given| retry_after(given, Some("Tue, 01 Dec 2026 04:00:00 GMT"), 0);
        let secs = |n| Some(Length::from_secs(n));
        assert_eq!(read("7"), secs(7));
        assert_eq!(read(" 0 "), secs(0));
        assert_eq!(read("1000000000"), secs(3_600));
        assert_eq!(read("99999999999999999999999"), secs(3_600));
        assert_eq!(read("Tue, 01 Dec 2026 04:00:09 GMT"), secs(9));
        assert_eq!(read("Tue, 01 Dec 2099 04:00:09 GMT"), secs(3_600));
        assert_eq!(read("Tue, 01 Dec 2026 03:59:00 GMT"), None);
        for junk in ["", "soon", "-1", "1.5", "7s", "\u{661}"] {
            assert_eq!(read(junk), None, "{junk}");
        }
        let own = retry_after("Thu, 01 Jan 1970 00:01:00 GMT", Some("never"), 50);
        assert_eq!(own, secs(10));
    }

    #[test]
    fn row_28_pauses_join_and_end_by_themselves() {
        let holds = Holds::default();
        assert_eq!(holds.wait(at(0)), None);
        holds.pause(at(100), Some(Length::from_secs(2)));
        holds.pause(at(500), None);
        assert_eq!(holds.wait(at(600)), Some(Length::from_millis(1_500)));
        assert_eq!(holds.wait(at(2_100)), None);
        holds.pause(at(3_000), Some(Length::MAX));
        assert_eq!(holds.wait(at(3_000)), Some(LONGEST_PAUSE));
        let closed = spans(&holds.close(0, at(5_000)));
        assert_eq!(
            closed,
            [
                (GapKind::Pause, at(100), at(2_100)),
                (GapKind::Pause, at(3_000), at(5_000))
            ]
        );
        let closed = spans(&holds.close(1, at(6_000)));
        assert_eq!(closed, [(GapKind::Pause, at(5_000), at(6_000))]);
    }

    #[test]
    fn row_32_a_server_that_refuses_is_probed_once_a_second_until_it_is_back() {
        let holds = Holds::default();
        for n in 0..u64::from(REFUSED) {
            assert_eq!(holds.wait(at(n)), None);
            holds.learn(&ended(n, true));
        }
        let opened = at(50);
        assert_eq!(holds.wait(opened), Some(PROBE));
        assert_eq!(holds.wait(at(1_050)), None, "the probe");
        assert_eq!(
            holds.wait(at(1_051)),
            Some(Length::from_millis(999)),
            "the others"
        );
        holds.learn(&ended(1_050, true));
        assert_eq!(
            spans(&holds.close(0, at(1_500))),
            [(GapKind::Outage, at(0), at(1_500))]
        );
        assert_eq!(holds.wait(at(2_050)), None, "the next probe");
        holds.learn(&ended(2_050, false));
        assert_eq!(holds.wait(at(2_051)), None, "the others go too");
        assert_eq!(
            spans(&holds.close(1, at(3_000))),
            [(GapKind::Outage, at(1_500), at(2_050))]
        );
    }

    #[test]
    fn row_32_few_streams_find_out_by_time() {
        let holds = Holds::default();
        for second in 0..5 {
            assert_eq!(holds.wait(at(second * 1_000)), None);
            holds.learn(&ended(second * 1_000, true));
        }
        holds.learn(&ended(5_000, true));
        assert_eq!(holds.wait(at(5_100)), Some(Length::from_millis(901)));
        holds.learn(&ended(6_000, false));
        holds.learn(&ended(6_100, true));
        assert_eq!(holds.wait(at(6_200)), None, "one refusal is no outage");
    }
}
