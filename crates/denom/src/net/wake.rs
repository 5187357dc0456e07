//! Owns what a worker knows of its own lateness: when it last woke from waiting for something to do.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use measure::time::{Instant, Length};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::clock::{Clock, RunClock};

/// Where the system keeps no count of a thread's turns on a processor, so long a wait was a sleep.
const SURELY_SLEPT: Length = Length::from_micros(50);
/// Sockets the system may report in one poll. Beyond it a socket that was not reported could still
/// have had bytes.
const EVENTS_A_POLL: usize = 16_384;

/// When this thread's worker last woke from waiting. Bytes that it reads now came after that: it
/// waits only once every socket it was told of is empty.
#[derive(Debug, Clone, Default)]
pub struct Wake(Arc<AtomicU64>);

impl Wake {
    /// For a stream that no worker waits for: it never woke.
    pub fn never() -> Self {
        Wake::default()
    }

    /// The instant of the last wake; the origin before the first.
    pub fn last(&self) -> Instant {
        Instant::from_nanos(self.0.load(Relaxed))
    }

    fn set(&self, at: Instant) {
        self.0.fetch_max(at.nanos(), Relaxed);
    }
}

/// One thread's runtime, which knows when it woke.
#[derive(Debug)]
pub struct Worker {
    runtime: Runtime,
    wake: Wake,
}

impl Worker {
    /// A worker for the thread that calls this, and no other.
    ///
    /// # Errors
    /// When the system gives no event queue.
    pub fn new(clock: RunClock) -> io::Result<Self> {
        let wake = Wake::default();
        let turns = Arc::new(Turns::new(clock, wake.clone()));
        let also = Arc::clone(&turns);
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_io_events_per_tick(EVENTS_A_POLL)
            .on_thread_park(move || turns.wait_begins())
            .on_thread_unpark(move || also.wait_ended())
            .build()?;
        Ok(Worker { runtime, wake })
    }

    /// When the worker last woke; for the connections that it reads.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Runs `main` and the local tasks it spawns, until `main` ends.
    pub fn run<F: Future>(&self, main: F) -> F::Output {
        LocalSet::new().block_on(&self.runtime, main)
    }
}

/// A worker's turns of waiting.
#[derive(Debug)]
struct Turns {
    clock: RunClock,
    wake: Wake,
    schedstat: Option<File>,
    began: AtomicU64,
    began_delay: AtomicU64,
    began_turns: AtomicU64,
    ended: AtomicU64,
}

/// What the system counts of this thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scheduled {
    /// How long it has had a processor, ever, in nanoseconds.
    ran: u64,
    /// How long it has waited for a processor, ever, in nanoseconds.
    delay: u64,
    /// How often it was given one.
    turns: u64,
}

impl Turns {
    fn new(clock: RunClock, wake: Wake) -> Self {
        Turns {
            clock,
            wake,
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            began: AtomicU64::new(0),
            began_delay: AtomicU64::new(0),
            began_turns: AtomicU64::new(0),
            ended: AtomicU64::new(clock.now().nanos()),
        }
    }

    fn wait_begins(&self) {
        self.began.store(self.clock.now().nanos(), Relaxed);
        if let Some(scheduled) = self.scheduled() {
            self.began_delay.store(scheduled.delay, Relaxed);
            self.began_turns.store(scheduled.turns, Relaxed);
        }
    }

    fn wait_ended(&self) {
        let now = self.clock.now();
        let began = Instant::from_nanos(self.began.load(Relaxed));
        let before = Instant::from_nanos(self.ended.swap(now.nanos(), Relaxed));
        let slept = match self.scheduled() {
            Some(after) => (after.turns != self.began_turns.load(Relaxed))
                .then(|| after.delay.saturating_sub(self.began_delay.load(Relaxed))),
            None => (now.since_or_zero(began) >= SURELY_SLEPT).then_some(0),
        };
        self.wake
            .set(woke(now, slept.map(Length::from_nanos), before));
    }

    fn scheduled(&self) -> Option<Scheduled> {
        let mut text = [0; 96];
        let bytes = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        parse(text.get(..bytes)?)
    }
}

/// Bytes read after a wait that ended `now` came no earlier than this. A worker that slept was told
/// as soon as they came, but for its wait for a processor (`slept`). One that did not was told of
/// bytes that had come since the wait before, which ended at `before`.
fn woke(now: Instant, slept: Option<Length>, before: Instant) -> Instant {
    slept.map_or(before, |delay| now - delay)
}

/// The three numbers of a thread's `schedstat`: time on a processor, waiting for one, and turns.
fn parse(text: &[u8]) -> Option<Scheduled> {
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let ran = numbers.next()?.parse().ok()?;
    let delay = numbers.next()?.parse().ok()?;
    let turns = numbers.next()?.parse().ok()?;
    Some(Scheduled { ran, delay, turns })
}

/// Time that the calling thread has had a processor, and has waited for one, ever. `None` where the
/// system does not tell.
pub fn processor() -> Option<(Length, Length)> {
    let text = std::fs::read("/proc/thread-self/schedstat").ok()?;
    let scheduled = parse(&text)?;
    let lengths = [scheduled.ran, scheduled.delay].map(Length::from_nanos);
    Some((lengths[0], lengths[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_sleeper_woke_when_it_was_called_not_when_it_got_a_processor() {
        assert_eq!(
            woke(at(1_000), Some(Length::from_nanos(300)), at(100)),
            at(700)
        );
        assert_eq!(woke(at(1_000), Some(Length::ZERO), at(100)), at(1_000));
    }

    #[test]
    fn who_did_not_sleep_may_be_late_since_the_wait_before() {
        assert_eq!(woke(at(1_000), None, at(100)), at(100));
    }

    #[test]
    fn what_the_system_counts_of_a_thread_is_read() {
        let counted = Scheduled {
            ran: 259_594_934,
            delay: 73_292_391,
            turns: 139,
        };
        assert_eq!(parse(b"259594934 73292391 139\n"), Some(counted));
        assert_eq!(parse(b"259594934 73292391\n"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn a_worker_that_sleeps_wakes_after_it_fell_asleep() {
        let clock = RunClock::start();
        let worker = Worker::new(clock).expect("a worker");
        let before = worker.run(async {
            let before = clock.now();
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            before
        });
        assert!(worker.wake().last() > before);
    }
}
