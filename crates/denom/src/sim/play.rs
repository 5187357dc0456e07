//! Owns the playing of one script: framed once, then written step by step when each is due.

use std::io::{self, ErrorKind};

use measure::time::Length;

use super::clock::monotonic_nanos;
use super::framed::{Framed, Wrapping, frame};
use super::ledger::{End, Record, Sent};
use super::outlet::{Outlet, Written};
use super::routes::Answer;
use super::script::{Ending, Framing, When};

/// Writes of one request before others have their turn.
const WRITES_A_TURN: usize = 16;
/// Writes of one request that its record holds; one more, and the request is cut.
const MOST_WRITES: usize = 2_000_000;

/// What is left to do after a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// The next step is due at this time of the monotonic clock.
    Due(u64),
    /// The socket, or the window of an HTTP/2 client, takes no more for now.
    Blocked,
    /// The script stays silent from here on.
    Stalled,
    /// The request is over.
    Over(End),
}

/// A script being played to one client.
#[derive(Debug)]
pub struct Play {
    /// All bytes of the response, in order.
    bytes: Vec<u8>,
    steps: Vec<Framed>,
    /// The step in turn.
    step: usize,
    /// The place of the next byte to write.
    written: usize,
    most_at_once: usize,
    origin: u64,
    planned: Length,
    keep: bool,
    record: Option<Record>,
}

impl Play {
    /// Frames the script of `answer` for a request read whole at `origin`, in nanoseconds of the
    /// monotonic clock, while `active` requests are being answered, this one included.
    pub fn new(answer: Answer, origin: u64, active: u64) -> Self {
        let Answer {
            script,
            version,
            keep,
            mut record,
        } = answer;
        let wrapping = Wrapping::of(script.framing, version);
        let closes = script.framing == Framing::UntilClose || wrapping == Wrapping::UntilClose;
        let last = matches!(script.ending(), Some((_, Ending::LastStream)));
        let keep = keep && !closes && !last;
        let most_at_once = script.most_at_once.unwrap_or(usize::MAX).max(1);
        let (bytes, steps) = frame(script, wrapping, keep);
        if let Some(record) = &mut record {
            record.writes.reserve_exact(steps.len());
        }
        let first = steps
            .first()
            .map_or(When::At(Length::ZERO), |step| step.when);
        Play {
            bytes,
            steps,
            step: 0,
            written: 0,
            most_at_once,
            origin,
            planned: first.planned(Length::ZERO, active),
            keep,
            record,
        }
    }

    /// Memory held for this play, in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.steps.len() * (size_of::<Framed>() + size_of::<Sent>())
    }

    /// Whether the connection may serve another request once this one has ended so.
    pub fn goes_on(&self, end: End) -> bool {
        match end {
            End::Done => self.keep,
            End::Reset => self.ending() != Some(Ending::Reset),
            End::Cut | End::ClientGone => false,
        }
    }

    fn ending(&self) -> Option<Ending> {
        self.steps.last().and_then(|step| step.ending)
    }

    /// Does what is due, up to a fair number of writes.
    pub fn turn(&mut self, out: &mut Outlet<'_>, active: u64) -> Turn {
        for _ in 0..WRITES_A_TURN {
            if self.step >= self.steps.len() {
                return Turn::Over(End::Done);
            }
            let due = self.origin + self.planned.nanos();
            if monotonic_nanos() < due {
                return Turn::Due(due);
            }
            match self.write(out) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Turn::Blocked,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Turn::Over(End::ClientGone),
            }
            if !out.owes()
                && let Some(turn) = self.proceed(active)
            {
                return turn;
            }
        }
        Turn::Due(self.origin + self.planned.nanos())
    }

    /// One write of what the step has left, if anything, and whatever waits below it.
    fn write(&mut self, out: &mut Outlet<'_>) -> io::Result<()> {
        let step = &self.steps[self.step];
        if self.written < step.until || out.owes() {
            let body = step.body.max(self.written);
            let framed = &self.bytes[self.written..body];
            let written = out.write(framed, &self.bytes[body..step.until], self.most_at_once)?;
            self.wrote(&written, out.owes());
        }
        out.flush()
    }

    fn wrote(&mut self, written: &Written, owes: bool) {
        self.written += written.taken;
        let step = &self.steps[self.step];
        let whole = self.written == step.until && !owes;
        if let Some(record) = self.record.as_mut().filter(|_| written.sent > 0) {
            record.writes.push(Sent {
                at: written.at,
                bytes: u32::try_from(written.sent).unwrap_or(u32::MAX),
                tokens: if whole { step.tokens } else { 0 },
            });
        }
    }

    /// Goes on to the next step if this one is done.
    fn proceed(&mut self, active: u64) -> Option<Turn> {
        let step = &mut self.steps[self.step];
        if self.written < step.until {
            return None;
        }
        match step.ending {
            Some(Ending::Proper | Ending::Stale | Ending::LastStream | Ending::Pause) => {
                return Some(Turn::Over(End::Done));
            }
            Some(Ending::Cut | Ending::GoneAway) => return Some(Turn::Over(End::Cut)),
            Some(Ending::Reset | Ending::RefusedStream | Ending::ResetStream) => {
                return Some(Turn::Over(End::Reset));
            }
            Some(Ending::Stall) => return Some(Turn::Stalled),
            None => {}
        }
        let full = |record: &Record| record.writes.len() >= MOST_WRITES;
        if self.record.as_ref().is_some_and(full) {
            return Some(Turn::Over(End::Cut));
        }
        if let Some(again) = &mut step.again
            && again.left != Some(0)
        {
            again.left = again.left.map(|left| left - 1);
            self.planned += again.every;
            self.written = step.from;
            return None;
        }
        self.step += 1;
        if let Some(next) = self.steps.get(self.step) {
            self.planned = next.when.planned(self.planned, active);
        }
        None
    }

    /// Whether the connection only seems to stay open for another request.
    pub fn leaves_stale(&self) -> bool {
        self.ending() == Some(Ending::Stale)
    }

    /// The ledger's record of it, ended now and so; `None` if it has none.
    pub fn into_record(self, end: End) -> Option<Record> {
        let end_ns = monotonic_nanos();
        self.record.map(|record| Record {
            end,
            end_ns,
            ..record
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::ask::Ask;
    use crate::sim::dialect::Dialect;
    use crate::sim::http::Version;
    use crate::sim::routes::BYTES_A_TOKEN;
    use crate::sim::scripts::script;

    /// What is set aside for a script before it is made is enough for it.
    #[test]
    fn a_play_holds_no_more_than_was_set_aside() {
        const TOKENS: usize = 2_000;
        for &dialect in Dialect::ALL {
            for name in ["normal", "reason", "tool", "spec4", "vllm-counts", "br"] {
                let ask = Ask {
                    dialect,
                    max_tokens: Some(TOKENS as u64),
                    ..Ask::of(name)
                };
                let answer = Answer {
                    script: script(name, &ask).expect("a script of this name"),
                    version: Version::Http11,
                    keep: true,
                    record: None,
                };
                let size = Play::new(answer, 0, 1).size();
                let most = TOKENS * BYTES_A_TOKEN;
                assert!(size <= most, "{name} in {dialect:?}: {size} over {most}");
            }
        }
    }
}
