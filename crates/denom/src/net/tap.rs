//! Owns what the layers of one connection share: the gate before the socket, the stamp of the last
//! read, and the instants of writing.

use std::cell::Cell;

use measure::stamp::{Stamp, StampSource};
use measure::time::{Instant, Length};

/// A kernel stamp may be moved by so much without a word: below this the clock conversion itself
/// is not surer.
const SILENT_CLAMP: Length = Length::from_micros(1);

/// Whether the layers above may read the socket now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    /// As often as they like: while a TLS handshake runs.
    Open,
    /// Once; the read shuts the gate.
    Once,
    /// Not at all.
    Shut,
}

/// The shared state, behind an `Rc`: it sits below TLS and is looked at from above hyper.
#[derive(Debug)]
pub(super) struct Tap {
    gate: Cell<Gate>,
    stamp: Cell<Option<Stamp>>,
    last_look: Cell<Instant>,
    in_exchange: Cell<bool>,
    reads: Cell<u64>,
    bytes: Cell<u64>,
    writing: Cell<bool>,
    sent: Cell<Option<Instant>>,
    written: Cell<Option<Instant>>,
}

/// What one read of the socket found out, before anything looked at its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadFacts {
    /// The clock, read directly after the socket was.
    pub read_at: Instant,
    /// The kernel's receive stamp on the run's clock.
    pub kernel: Option<Instant>,
    /// The bytes cannot have been here earlier than this, as far as the worker knows.
    pub not_before: Instant,
    /// How many bytes came; zero is the end of the stream.
    pub bytes: usize,
}

impl Tap {
    /// A tap with an open gate on a socket that exists since `opened`.
    pub(super) fn new(opened: Instant) -> Self {
        Tap {
            gate: Cell::new(Gate::Open),
            stamp: Cell::new(None),
            last_look: Cell::new(opened),
            in_exchange: Cell::new(false),
            reads: Cell::new(0),
            bytes: Cell::new(0),
            writing: Cell::new(false),
            sent: Cell::new(None),
            written: Cell::new(None),
        }
    }

    pub(super) fn set_gate(&self, gate: Gate) {
        self.gate.set(gate);
    }

    pub(super) fn gate(&self) -> Gate {
        self.gate.get()
    }

    /// Forgets the previous exchange. Nothing of the next one can arrive before it is `started`.
    pub(super) fn begin(&self, started: Instant) {
        self.gate.set(Gate::Shut);
        self.stamp.set(None);
        self.last_look.set(started);
        self.in_exchange.set(true);
        self.reads.set(0);
        self.bytes.set(0);
        self.writing.set(false);
        self.sent.set(None);
        self.written.set(None);
    }

    /// The exchange is over: until the next, nobody wants what comes.
    pub(super) fn end(&self) {
        self.in_exchange.set(false);
    }

    /// The last read of the exchange that is on, or its begin.
    pub(super) fn reading_since(&self) -> Option<Instant> {
        self.in_exchange.get().then(|| self.last_look.get())
    }

    /// Takes down a read and shuts a gate that was open for one.
    pub(super) fn read(&self, facts: ReadFacts) {
        self.use_grant();
        let previous = self.stamp.get().map(|stamp| stamp.at);
        self.stamp
            .set(Some(make_stamp(facts, self.last_look.get(), previous)));
        self.last_look.set(facts.read_at);
        if facts.bytes > 0 {
            self.reads.set(self.reads.get() + 1);
            self.bytes.set(self.bytes.get() + facts.bytes as u64);
        }
    }

    /// Takes down a read that ended in an error: the gate shuts all the same.
    pub(super) fn read_failed(&self) {
        self.use_grant();
    }

    fn use_grant(&self) {
        if self.gate.get() == Gate::Once {
            self.gate.set(Gate::Shut);
        }
    }

    /// The stamp of the last read of this exchange, the one that found the end of the stream
    /// included.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        self.stamp.get()
    }

    /// Reads of this exchange that brought bytes, and the bytes.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.reads.get(), self.bytes.get())
    }

    /// Says that the bytes written from here on are the request's.
    pub(super) fn request_bytes_begin(&self) {
        self.writing.set(true);
    }

    /// Says that the request's bytes so far are with the system: what is written after this, until
    /// more of them come, is TLS talking to itself.
    pub(super) fn request_bytes_flushed(&self) {
        self.writing.set(false);
    }

    /// Whether a write just ahead is the request's first.
    pub(super) fn first_write_is_ahead(&self) -> bool {
        self.writing.get() && self.sent.get().is_none()
    }

    /// Takes down the instant directly before the request's first write.
    pub(super) fn write_begins(&self, now: Instant) {
        self.sent.set(Some(now));
    }

    /// Whether bytes that the system just took are the request's.
    pub(super) fn is_writing(&self) -> bool {
        self.writing.get()
    }

    /// Takes down the instant directly after a write of the request's bytes.
    pub(super) fn write_returned(&self, now: Instant) {
        self.written.set(Some(now));
    }

    /// When writing the request began, and when its last byte was handed to the system.
    pub(super) fn sent_and_written(&self) -> (Option<Instant>, Option<Instant>) {
        (self.sent.get(), self.written.get())
    }
}

/// The stamp of a read, after the last look at its socket and the stamp before it.
///
/// A kernel stamp past its own read becomes the read's instant, and one before the stamp of the
/// previous read becomes that one.
fn make_stamp(facts: ReadFacts, last_look: Instant, previous: Option<Instant>) -> Stamp {
    let read_at = facts.read_at;
    let bound = read_at.since_or_zero(facts.not_before.max(last_look));
    let Some(kernel) = facts.kernel else {
        return Stamp {
            at: read_at,
            source: StampSource::Read,
            lag_low: None,
            lag_high: bound,
            clamped: false,
        };
    };
    let at = kernel.max(previous.unwrap_or(Instant::ORIGIN)).min(read_at);
    let moved = at.since_or_zero(kernel).max(kernel.since_or_zero(at));
    let lag_low = read_at.since_or_zero(at);
    Stamp {
        at,
        source: StampSource::Kernel,
        lag_low: Some(lag_low),
        // The kernel saw the bytes before the worker was told: what it saw outweighs the bound.
        lag_high: bound.max(lag_low),
        clamped: moved > SILENT_CLAMP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn facts(read_at: u64, kernel: Option<u64>, not_before: u64) -> ReadFacts {
        ReadFacts {
            read_at: at(read_at),
            kernel: kernel.map(at),
            not_before: at(not_before),
            bytes: 1,
        }
    }

    #[test]
    fn a_read_without_a_kernel_stamp_takes_the_clock() {
        let stamp = make_stamp(facts(1_000, None, 300), at(200), None);
        assert_eq!((stamp.at, stamp.source), (at(1_000), StampSource::Read));
        assert_eq!(
            (stamp.lag_low, stamp.lag_high),
            (None, Length::from_nanos(700))
        );
    }

    #[test]
    fn the_later_of_wake_and_last_look_bounds_the_lag() {
        let lag = |not_before, look| {
            make_stamp(facts(1_000, None, not_before), at(look), None)
                .lag_high
                .nanos()
        };
        assert_eq!(lag(300, 200), 700);
        assert_eq!(lag(300, 900), 100);
    }

    #[test]
    fn a_kernel_stamp_is_clamped_between_the_one_before_and_its_own_read() {
        let check = |kernel, expect: u64, lag_low: u64, clamped| {
            let stamp = make_stamp(facts(10_000, Some(kernel), 9_000), at(0), Some(at(5_000)));
            assert_eq!(stamp.at, at(expect), "kernel {kernel}");
            assert_eq!(stamp.lag_low, Some(Length::from_nanos(lag_low)));
            assert_eq!(stamp.clamped, clamped, "kernel {kernel}");
        };
        check(7_000, 7_000, 3_000, false);
        check(10_400, 10_000, 0, false);
        check(11_000, 10_000, 0, false);
        check(11_001, 10_000, 0, true);
        check(4_000, 5_000, 5_000, false);
        check(3_999, 5_000, 5_000, true);
    }

    #[test]
    fn row_37_a_wall_clock_set_under_a_stamp_moves_it_no_further_than_its_neighbours() {
        const HOUR: u64 = 3_600_000_000_000;
        let check = |kernel, expect: u64| {
            let facts = facts(2 * HOUR + 9, Some(kernel), 2 * HOUR);
            let stamp = make_stamp(facts, at(0), Some(at(2 * HOUR + 5)));
            assert_eq!((stamp.at, stamp.clamped), (at(expect), true));
        };
        // Set back by an hour between stamp and read, a stamp comes out an hour late; set forward,
        // an hour early.
        check(3 * HOUR + 7, 2 * HOUR + 9);
        check(HOUR + 7, 2 * HOUR + 5);
    }

    #[test]
    fn the_upper_bound_is_never_below_the_lower() {
        let stamp = make_stamp(facts(10_000, Some(7_000), 9_000), at(0), None);
        assert_eq!(stamp.lag_high, Length::from_nanos(3_000));
    }

    #[test]
    fn one_read_shuts_a_gate_that_was_open_for_one() {
        let tap = Tap::new(Instant::ORIGIN);
        tap.read(facts(1, None, 0));
        assert_eq!(tap.gate(), Gate::Open);
        tap.set_gate(Gate::Once);
        tap.read(facts(2, None, 0));
        assert_eq!(tap.gate(), Gate::Shut);
    }
}
