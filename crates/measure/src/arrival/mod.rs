//! Owns arrivals: content that reached this machine together.

mod packed;

use crate::count::{Count, Token};
use crate::time::{Instant, Length};
use crate::trace::Read;

pub use packed::{Arrivals, Unfold};

/// Reads stamped within this of the first of them are one arrival.
pub const ARRIVAL_SPAN: Length = Length::from_micros(200);

/// Content that reached this machine together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The stamp of its first read.
    pub at: Instant,
    /// Its chunks.
    pub chunks: u64,
    /// Of these, chunks that bring only a tool's name.
    pub bare: u64,
    /// Its characters.
    pub chars: u64,
    /// Chunks with answer text or a tool call.
    pub answer_chunks: u64,
    /// Characters of answer text or tool calls.
    pub answer_chars: u64,
    /// Tokens the server stated with its chunks; `None` unless for each read.
    pub stated: Option<u64>,
    /// Its tokens, once they are known.
    pub tokens: Option<Count<Token>>,
    /// The largest lower end of its reads' lag; `None` unless every read has one.
    pub lag_low: Option<Length>,
    /// The largest upper end of its reads' lag.
    pub lag_high: Length,
    /// The client may have put it together by reading late.
    pub client_bundled: bool,
}

impl Arrival {
    fn of(read: &Read) -> Self {
        Arrival {
            at: read.at,
            chunks: u64::from(read.chunks),
            bare: u64::from(read.bare),
            chars: u64::from(read.chars),
            answer_chunks: u64::from(read.answer_chunks),
            answer_chars: u64::from(read.answer_chars),
            stated: read.tokens.map(u64::from),
            tokens: None,
            lag_low: read.lag_low,
            lag_high: read.lag_high,
            client_bundled: false,
        }
    }

    fn join(&mut self, read: &Read) {
        self.chunks += u64::from(read.chunks);
        self.bare += u64::from(read.bare);
        self.chars += u64::from(read.chars);
        self.answer_chunks += u64::from(read.answer_chunks);
        self.answer_chars += u64::from(read.answer_chars);
        self.stated = self
            .stated
            .zip(read.tokens)
            .map(|(sum, more)| sum + u64::from(more));
        self.lag_low = self
            .lag_low
            .zip(read.lag_low)
            .map(|(one, other)| one.max(other));
        self.lag_high = self.lag_high.max(read.lag_high);
    }
}

/// Joins reads into arrivals: those stamped within 0.2 ms of the first of them are one.
pub fn join(reads: &[Read]) -> Vec<Arrival> {
    let mut found: Vec<Arrival> = Vec::with_capacity(reads.len());
    for read in reads {
        match found.last_mut() {
            Some(last) if read.at.since_or_zero(last.at) <= ARRIVAL_SPAN => last.join(read),
            _ => found.push(Arrival::of(read)),
        }
    }
    found
}

/// Time from the first to the last of them.
pub(crate) fn span(arrivals: &[Arrival]) -> Length {
    match (arrivals.first(), arrivals.last()) {
        (Some(first), Some(last)) => last.at.since_or_zero(first.at),
        _ => Length::ZERO,
    }
}
