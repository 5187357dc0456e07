//! Owns the script: what the server writes for one request, and when, as pure data.

use measure::time::Length;

/// How the body is delimited on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Each write is one HTTP chunk; a proper end sends the zero chunk.
    Chunked,
    /// The head states the length of all writes together.
    ContentLength,
    /// The body ends where the connection does.
    UntilClose,
}

/// When the response head leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// In a write of its own, so long after the request was fully read.
    Own(Length),
    /// In front of the first step's bytes, in the same write.
    WithFirst,
}

/// When a step is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So long after the request was fully read. A step planned before the one in front of it
    /// follows that one at once.
    At(Length),
    /// After the previous step's planned time, by `base` plus `each` for every request the server
    /// is answering at that moment, this one included.
    Paced {
        /// The part that does not depend on load.
        base: Length,
        /// The part added for each active request.
        each: Length,
    },
}

/// How a response stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As the framing demands: the body is complete.
    Proper,
    /// The connection closes without the body's proper end.
    Cut,
    /// The connection is reset.
    Reset,
    /// Never: the connection stays open and silent.
    Stall,
    /// As the framing demands, and the connection seems to stay open; it is closed as soon as a
    /// byte of another request comes.
    Stale,
    /// HTTP/2: no answer at all. The connection goes away, as of a stream below this one.
    GoneAway,
    /// HTTP/2: no answer at all. The stream is refused, the connection stays.
    RefusedStream,
    /// HTTP/2: the stream is reset by an error, the connection stays.
    ResetStream,
    /// HTTP/2: complete, announced behind the head as the connection's last; then it closes.
    LastStream,
    /// HTTP/2: complete; before its end the client is told to open no further stream, and 300 ms
    /// later that it may.
    Pause,
}

impl Ending {
    /// Whether the body is complete.
    pub fn is_proper(self) -> bool {
        match self {
            Ending::Proper | Ending::Stale | Ending::LastStream | Ending::Pause => true,
            Ending::Cut | Ending::Reset | Ending::Stall => false,
            Ending::GoneAway | Ending::RefusedStream | Ending::ResetStream => false,
        }
    }
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// One write of body bytes.
    Write {
        /// Body bytes, before framing.
        bytes: Vec<u8>,
        /// Output tokens whose text these bytes bring.
        tokens: u32,
    },
    /// The same write again and again, which holds its bytes once.
    Repeat {
        /// Body bytes of one write, before framing.
        bytes: Vec<u8>,
        /// Output tokens that each write brings.
        tokens: u32,
        /// From one write to the next.
        every: Length,
        /// How many writes; `None` for no end.
        count: Option<u64>,
    },
    /// The last step of every script.
    End(Ending),
}

/// One step of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// When it is due.
    pub when: When,
    /// What it does.
    pub act: Act,
}

/// Everything the server does for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// HTTP status.
    pub status: u16,
    /// Header names and values, without those of the framing.
    pub headers: Vec<(String, String)>,
    /// How the body is delimited.
    pub framing: Framing,
    /// When the head leaves.
    pub head: Head,
    /// Writes in order, then one ending.
    pub steps: Vec<Step>,
    /// Bytes that one write to the socket takes at most, if there is such a limit: a step of more
    /// bytes becomes several writes.
    pub most_at_once: Option<usize>,
}

/// Of a repeat without end, the writes that a timeline shows.
const SHOWN: u64 = 1_000;

impl When {
    /// The planned time of a step: lengths since the request was fully read. `previous` is the
    /// planned time of the step in front, `active` the requests being answered.
    pub fn planned(self, previous: Length, active: u64) -> Length {
        match self {
            When::At(length) => length.max(previous),
            When::Paced { base, each } => previous + base + times(each, active),
        }
    }
}

impl Script {
    /// Every write of the body with its planned time since the request was fully read, for a
    /// server that answers nothing else; of a repeat without end, the first 1,000. Bytes are those
    /// before framing.
    pub fn timeline(&self) -> Vec<(Length, &[u8])> {
        let mut writes = Vec::with_capacity(self.steps.len());
        for (at, step) in self.planned() {
            match &step.act {
                Act::Write { bytes, .. } => writes.push((at, bytes.as_slice())),
                Act::Repeat {
                    bytes,
                    every,
                    count,
                    ..
                } => {
                    let times_of = 0..count.unwrap_or(SHOWN);
                    writes.extend(times_of.map(|n| (at + times(*every, n), bytes.as_slice())));
                }
                Act::End(_) => {}
            }
        }
        writes
    }

    /// When the head leaves, by the same rule as [`Script::timeline`].
    pub fn head_at(&self) -> Length {
        match self.head {
            Head::Own(length) => length,
            Head::WithFirst => self.planned().next().map_or(Length::ZERO, |(at, _)| at),
        }
    }

    /// How the response stops and when, by the same rule as [`Script::timeline`]. `None` for a
    /// script without an ending, which [`scripts`](super::scripts) never makes.
    pub fn ending(&self) -> Option<(Length, Ending)> {
        self.planned().find_map(|(at, step)| match step.act {
            Act::End(ending) => Some((at, ending)),
            Act::Write { .. } | Act::Repeat { .. } => None,
        })
    }

    /// Output tokens that all writes bring together; those of a repeat without end are left out.
    pub fn tokens(&self) -> u64 {
        let of = |step: &Step| match step.act {
            Act::Write { tokens, .. } => u64::from(tokens),
            Act::Repeat { tokens, count, .. } => u64::from(tokens) * count.unwrap_or(0),
            Act::End(_) => 0,
        };
        self.steps.iter().map(of).sum()
    }

    fn planned(&self) -> impl Iterator<Item = (Length, &Step)> {
        self.steps.iter().scan(Length::ZERO, |previous, step| {
            let at = step.when.planned(*previous, 1);
            *previous = at + step.act.lasts();
            Some((at, step))
        })
    }
}

impl Act {
    /// From the planned time of its first write to that of its last.
    fn lasts(&self) -> Length {
        match self {
            Act::Repeat { every, count, .. } => {
                times(*every, count.unwrap_or(u64::MAX).saturating_sub(1))
            }
            Act::Write { .. } | Act::End(_) => Length::ZERO,
        }
    }

    /// Bytes that it holds, whatever becomes of them.
    pub fn held(&self) -> u64 {
        match self {
            Act::Write { bytes, .. } | Act::Repeat { bytes, .. } => bytes.len() as u64,
            Act::End(_) => 0,
        }
    }

    /// Bytes of all its writes, before framing; those of a repeat without end count once.
    pub fn bytes(&self) -> u64 {
        match self {
            Act::Write { bytes, .. } => bytes.len() as u64,
            Act::Repeat { bytes, count, .. } => bytes.len() as u64 * count.unwrap_or(1),
            Act::End(_) => 0,
        }
    }
}

/// `count` lengths one after the other; the longest length if that is too long to say.
pub fn times(length: Length, count: u64) -> Length {
    Length::from_nanos(length.nanos().saturating_mul(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(when: When, bytes: &[u8], tokens: u32) -> Step {
        let act = Act::Write {
            bytes: bytes.to_vec(),
            tokens,
        };
        Step { when, act }
    }

    #[test]
    fn a_timeline_follows_plans_not_writes() {
        let millis = Length::from_millis;
        let paced = When::Paced {
            base: millis(7),
            each: millis(3),
        };
        let script = Script {
            status: 200,
            headers: Vec::new(),
            framing: Framing::Chunked,
            head: Head::WithFirst,
            steps: vec![
                write(When::At(millis(50)), b"a", 1),
                write(paced, b"b", 2),
                write(When::At(millis(20)), b"c", 0),
                Step {
                    when: paced,
                    act: Act::End(Ending::Cut),
                },
            ],
            most_at_once: None,
        };
        let expected: Vec<(Length, &[u8])> =
            vec![(millis(50), b"a"), (millis(60), b"b"), (millis(60), b"c")];
        assert_eq!(script.timeline(), expected);
        assert_eq!(script.ending(), Some((millis(70), Ending::Cut)));
        assert_eq!(script.head_at(), millis(50));
        assert_eq!(script.tokens(), 3);
        assert_eq!(paced.planned(millis(50), 16), millis(50 + 7 + 48));
    }
}
