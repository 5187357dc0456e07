//! Owns what the experiment takes from one request: its instants, counts and bundles.

use crate::judge::{Guards, Judged, Outcome, judge};
use crate::time::{Instant, Length};
use crate::tokens::Source;
use crate::trace::{Body, Read, Trace};

use super::plan::Lengths;

/// Content that came within so long of its first read is one bundle.
pub(super) const BUNDLE_SPAN: Length = Length::from_millis(20);

/// Content that came together, whoever bundled it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bundle {
    /// Its first read.
    pub at: Instant,
    /// Its last read.
    pub last: Instant,
    /// Bytes of body in its reads.
    pub bytes: u64,
    /// Events with content.
    pub chunks: u64,
    /// Characters of content.
    pub chars: u64,
}

/// An ok request of the experiment.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Which of the lengths was asked for.
    pub group: usize,
    /// That length.
    pub asked: u64,
    /// When it was sent.
    pub sent: Instant,
    /// From `sent` to the response head.
    pub head: Option<Length>,
    /// From `sent` to the first content.
    pub first: Length,
    /// From `sent` until a quarter of the characters had come.
    pub quarter: Length,
    /// From the first to the last content.
    pub spread: Length,
    /// From `sent` to the end.
    pub total: Length,
    /// The body was no stream.
    pub whole: bool,
    /// Bytes of the whole body.
    pub body_bytes: u64,
    /// Content by bundle.
    pub bundles: Vec<Bundle>,
    /// The request with its arrivals and tokens.
    pub judged: Judged,
}

impl Sample {
    /// What the experiment takes from `trace`; `Err` holds the request where it is not ok, or
    /// has no length of this experiment.
    pub fn of(
        trace: Trace,
        lengths: Lengths,
        guards: &Guards,
        sentinel: bool,
    ) -> Result<Self, Box<Judged>> {
        let reads = trace.reads.clone();
        let judged = judge(trace, guards, sentinel);
        let trace = &judged.trace;
        let place = trace.asked_output.and_then(|asked| lengths.place(asked));
        let (Outcome::Ok, Some(group), Some(sent), Some(first), Some(last), Some(end)) = (
            judged.outcome,
            place,
            trace.sent,
            trace.first_content,
            trace.last_content,
            trace.end,
        ) else {
            return Err(Box::new(judged));
        };
        Ok(Sample {
            group,
            asked: trace.asked_output.unwrap_or_default(),
            sent,
            head: trace.head.map(|head| head.since_or_zero(sent)),
            first: first.since_or_zero(sent),
            quarter: quarter(&reads).unwrap_or(first).since_or_zero(sent),
            spread: last.since_or_zero(first),
            total: end.since_or_zero(sent),
            whole: trace.body == Body::Whole,
            body_bytes: trace.bytes,
            bundles: bundles(&reads),
            judged,
        })
    }

    /// Output tokens as the server counts them, hidden ones included: all of them took time.
    pub fn tokens(&self) -> Option<u64> {
        let tokens = &self.judged.tokens;
        let sound = tokens.source == Source::Server && tokens.inconsistent.is_none();
        tokens.billed.filter(|_| sound)
    }

    /// Events with content.
    pub fn chunks(&self) -> u64 {
        self.judged.arrivals.chunks()
    }

    /// Characters of content.
    pub fn chars(&self) -> u64 {
        self.judged.arrivals.chars()
    }

    /// Times between arrivals, in order.
    pub fn gaps(&self) -> Vec<Length> {
        self.judged.arrivals.gaps().collect()
    }

    /// Whether this client may have put together more than a tenth of the content itself.
    pub fn client_bundled(&self) -> bool {
        let arrivals = self.judged.arrivals.iter();
        let late = arrivals.filter(|arrival| arrival.client_bundled);
        10 * late.map(|arrival| arrival.chunks).sum::<u64>() > self.chunks()
    }

    /// Whether content came over at least half of the time the answer took, and its first quarter
    /// in the first half of that.
    pub fn is_spread(&self) -> bool {
        let early = self.quarter.less(self.first).nanos();
        let (spread, total) = (self.spread.nanos(), self.total.nanos());
        early <= spread / 2 && spread >= total / 2
    }

    /// Whether at least three quarters of the content came in one bundle, or all of it within the
    /// last tenth of the time it took.
    pub fn is_burst(&self) -> bool {
        let most = self.bundles.iter().map(|bundle| bundle.chars).max();
        let chars: u64 = self.bundles.iter().map(|bundle| bundle.chars).sum();
        let together = most.is_some_and(|most| 4 * most >= 3 * chars);
        let tenth = u128::from(self.spread.nanos()) * 10 <= u128::from(self.total.nanos());
        together || tenth
    }
}

/// When a quarter of the characters had come.
fn quarter(reads: &[Read]) -> Option<Instant> {
    let chars: u64 = reads.iter().map(|read| u64::from(read.chars)).sum();
    let mut seen = 0;
    let reached = reads.iter().find(|read| {
        seen += u64::from(read.chars);
        4 * seen >= chars
    });
    reached.map(|read| read.at)
}

/// Joins reads that came within 20 ms of the first of them.
pub fn bundles(reads: &[Read]) -> Vec<Bundle> {
    let mut found: Vec<Bundle> = Vec::new();
    for read in reads {
        let (bytes, chunks) = (u64::from(read.bytes), u64::from(read.chunks));
        let chars = u64::from(read.chars);
        match found.last_mut() {
            Some(last) if read.at.since_or_zero(last.at) <= BUNDLE_SPAN => {
                last.last = read.at;
                last.bytes += bytes;
                last.chunks += chunks;
                last.chars += chars;
            }
            _ => found.push(Bundle {
                at: read.at,
                last: read.at,
                bytes,
                chunks,
                chars,
            }),
        }
    }
    found
}
