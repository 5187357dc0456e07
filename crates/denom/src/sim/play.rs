//! Owns the playing of one script: framed once, then written step by step when each is due.

use std::io::{self, ErrorKind, Write};

use measure::time::Length;

use super::clock::monotonic_nanos;
use super::http;
use super::ledger::{End, Record, Sent};
use super::routes::Answer;
use super::script::{Act, Ending, Framing, Head, Script, Step, When};

/// Writes of one request before others have their turn.
const WRITES_A_TURN: usize = 16;
/// Writes of one request that its record holds; one more, and the request is cut.
const MOST_WRITES: usize = 2_000_000;

/// What is left to do after a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// The next step is due at this time of the monotonic clock.
    Due(u64),
    /// The socket takes no more for now.
    Blocked,
    /// The script stays silent from here on.
    Stalled,
    /// The request is over.
    Over(End),
}

/// One step with its bytes framed.
#[derive(Debug)]
struct Framed {
    when: When,
    /// The place of the step's bytes among the play's.
    from: usize,
    until: usize,
    tokens: u32,
    ending: Option<Ending>,
    /// How the same bytes are written again, if they are.
    again: Option<Again>,
}

/// What is left of a repeat.
#[derive(Debug)]
struct Again {
    every: Length,
    /// Further writes; `None` for no end.
    left: Option<u64>,
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
            chunks,
            keep,
            mut record,
        } = answer;
        let framing = match script.framing {
            Framing::Chunked if !chunks => Framing::UntilClose,
            framing => framing,
        };
        let keep = keep && framing != Framing::UntilClose;
        let most_at_once = script.most_at_once.unwrap_or(usize::MAX).max(1);
        let (bytes, steps) = frame(script, framing, keep);
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

    /// Whether the connection may serve another request once this one is done.
    pub fn keeps(&self) -> bool {
        self.keep
    }

    /// Does what is due, up to a fair number of writes.
    pub fn turn(&mut self, out: &mut impl Write, active: u64) -> Turn {
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
            if let Some(turn) = self.proceed(active) {
                return turn;
            }
        }
        Turn::Due(self.origin + self.planned.nanos())
    }

    /// One write of what the step has left, if anything, and whatever waits below it.
    fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        let until = self.steps[self.step].until;
        if self.written < until {
            let most = self.written.saturating_add(self.most_at_once);
            let now = monotonic_nanos();
            match out.write(&self.bytes[self.written..until.min(most)])? {
                0 => return Err(ErrorKind::WriteZero.into()),
                bytes => self.wrote(now, bytes),
            }
        }
        out.flush()
    }

    fn wrote(&mut self, at: u64, bytes: usize) {
        self.written += bytes;
        let step = &self.steps[self.step];
        let whole = self.written == step.until;
        if let Some(record) = &mut self.record {
            record.writes.push(Sent {
                at,
                bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
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
            Some(Ending::Proper) => return Some(Turn::Over(End::Done)),
            Some(Ending::Cut) => return Some(Turn::Over(End::Cut)),
            Some(Ending::Reset) => return Some(Turn::Over(End::Reset)),
            Some(Ending::Stall) => return Some(Turn::Stalled),
            Some(Ending::Stale) => return Some(Turn::Over(End::Done)),
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
        self.steps.last().and_then(|step| step.ending) == Some(Ending::Stale)
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

/// All bytes of the response, and the steps that cut them.
fn frame(script: Script, framing: Framing, keep: bool) -> (Vec<u8>, Vec<Framed>) {
    let stated: u64 = script.steps.iter().map(|step| step.act.bytes()).sum();
    let held: u64 = script.steps.iter().map(|step| step.act.held()).sum();
    let room = usize::try_from(held).unwrap_or(0) + 512 + 16 * script.steps.len();
    let mut bytes = Vec::with_capacity(room);
    let mut steps = Vec::with_capacity(script.steps.len() + 1);
    http::head(&mut bytes, &script, framing, stated, keep);
    let mut from = 0;
    if let Head::Own(at) = script.head {
        steps.push(head_alone(When::At(at), bytes.len()));
        from = bytes.len();
    }
    for Step { when, act } in script.steps {
        if matches!(act, Act::Repeat { .. }) && steps.is_empty() {
            // The head in front of it is written once.
            steps.push(head_alone(when, bytes.len()));
            from = bytes.len();
        }
        let (tokens, ending, again) = put(&mut bytes, act, framing);
        let until = bytes.len();
        steps.push(Framed {
            when,
            from,
            until,
            tokens,
            ending,
            again,
        });
        from = until;
    }
    (bytes, steps)
}

/// The step that writes the first `until` bytes, which are the head.
fn head_alone(when: When, until: usize) -> Framed {
    Framed {
        when,
        from: 0,
        until,
        tokens: 0,
        ending: None,
        again: None,
    }
}

/// Appends what one step writes.
fn put(bytes: &mut Vec<u8>, act: Act, framing: Framing) -> (u32, Option<Ending>, Option<Again>) {
    let (body, tokens, again) = match act {
        Act::Write {
            bytes: body,
            tokens,
        } => (body, tokens, None),
        Act::Repeat {
            bytes: body,
            tokens,
            every,
            count,
        } => {
            let left = count.map(|count| count.saturating_sub(1));
            (body, tokens, Some(Again { every, left }))
        }
        Act::End(ending) => {
            let proper = matches!(ending, Ending::Proper | Ending::Stale);
            if framing == Framing::Chunked && proper {
                bytes.extend_from_slice(http::LAST_CHUNK);
            }
            return (0, Some(ending), None);
        }
    };
    match framing {
        Framing::Chunked => http::chunk(bytes, &body),
        Framing::ContentLength | Framing::UntilClose => bytes.extend(body),
    }
    (tokens, None, again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::ask::Ask;
    use crate::sim::dialect::Dialect;
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
                    chunks: true,
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
