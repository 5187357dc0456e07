//! Owns the clock: nothing else in the program reads the time.

use measure::time::{Instant, Length};
use nix::time::{ClockId, clock_gettime};

/// A jump of the wall clock against the monotonic one from here on is a step, not a correction.
const STEP: u64 = 100_000_000;
/// Time that passed while the monotonic clock stood still, from here on a suspend.
const SUSPEND: u64 = 10_000_000;

/// The one monotonic clock of a run.
pub trait Clock: Clone + Unpin + 'static {
    /// Now, in nanoseconds since the origin of the run.
    fn now(&self) -> Instant;

    /// `wall_ns` (nanoseconds since the Unix epoch) as an instant of this clock, by pairs of clock
    /// reads made now, the first of which opens with `read_at`. `None` where this clock knows no
    /// wall clock. An instant before the origin becomes the origin.
    fn at_wall(&self, read_at: Instant, wall_ns: u64) -> Option<Instant>;
}

/// The system's monotonic clock, counted from the start of the run.
#[derive(Debug, Clone, Copy)]
pub struct RunClock {
    origin_monotonic_ns: u64,
    realtime_at_start_ns: u64,
}

impl RunClock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        let origin_monotonic_ns = system(ClockId::CLOCK_MONOTONIC);
        let zero = RunClock {
            origin_monotonic_ns,
            realtime_at_start_ns: 0,
        };
        let ahead = tightest(
            zero.now(),
            || zero.now(),
            || system(ClockId::CLOCK_REALTIME),
        );
        RunClock {
            realtime_at_start_ns: u64::try_from(ahead).unwrap_or(0),
            ..zero
        }
    }

    /// The origin on the system's monotonic clock, in nanoseconds.
    pub fn origin_monotonic_ns(&self) -> u64 {
        self.origin_monotonic_ns
    }

    /// The origin on the wall clock as it stood at the start, in nanoseconds since the Unix epoch.
    pub fn realtime_at_start_ns(&self) -> u64 {
        self.realtime_at_start_ns
    }

    /// An instant of the run on the wall clock as it stood at the start: a wall clock that is set
    /// during a run moves nothing.
    pub fn unix_at(&self, at: Instant) -> u64 {
        let run = at.since_or_zero(Instant::ORIGIN).nanos();
        self.realtime_at_start_ns.saturating_add(run)
    }

    /// How far another clock of the system is ahead of this one now, in nanoseconds.
    fn behind(&self, other: ClockId) -> i64 {
        tightest(self.now(), || self.now(), || system(other))
    }
}

impl Clock for RunClock {
    fn now(&self) -> Instant {
        let monotonic = system(ClockId::CLOCK_MONOTONIC);
        Instant::from_nanos(monotonic.saturating_sub(self.origin_monotonic_ns))
    }

    fn at_wall(&self, read_at: Instant, wall_ns: u64) -> Option<Instant> {
        let ahead = tightest(read_at, || self.now(), || system(ClockId::CLOCK_REALTIME));
        let at = signed(wall_ns).saturating_sub(ahead);
        Some(Instant::from_nanos(u64::try_from(at).unwrap_or(0)))
    }
}

/// Watches for what would bend a run's times: steps of the wall clock and suspends.
#[derive(Debug)]
pub struct ClockWatch {
    clock: RunClock,
    last: Ahead,
}

/// What happened to the clocks between two checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockJump {
    /// The wall clock was set by this many nanoseconds against the monotonic one, forwards or
    /// backwards.
    pub step_ns: Option<i64>,
    /// The machine slept for so long. `None` also where the system has no clock that tells.
    pub suspended: Option<Length>,
}

/// How far the other clocks are ahead of the run's, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    real: i64,
    boot: Option<i64>,
}

impl ClockWatch {
    /// Starts to watch: the first check looks back to here.
    pub fn start(clock: RunClock) -> Self {
        let last = Ahead::read(&clock);
        ClockWatch { clock, last }
    }

    /// What happened since the last check, or `None` if nothing did. Costs about ten clock reads.
    pub fn check(&mut self) -> Option<ClockJump> {
        let now = Ahead::read(&self.clock);
        let before = std::mem::replace(&mut self.last, now);
        jump(before, now)
    }
}

impl Ahead {
    fn read(clock: &RunClock) -> Self {
        Ahead {
            real: clock.behind(ClockId::CLOCK_REALTIME),
            #[cfg(target_os = "linux")]
            boot: Some(clock.behind(ClockId::CLOCK_BOOTTIME)),
            #[cfg(not(target_os = "linux"))]
            boot: None,
        }
    }
}

fn jump(before: Ahead, now: Ahead) -> Option<ClockJump> {
    let asleep = now
        .boot
        .zip(before.boot)
        .map_or(0, |(now, before)| now.saturating_sub(before));
    // The wall clock goes on through a suspend, so only what is beyond it was a step.
    let step = now.real.saturating_sub(before.real).saturating_sub(asleep);
    let found = ClockJump {
        step_ns: (step.unsigned_abs() > STEP).then_some(step),
        suspended: u64::try_from(asleep)
            .ok()
            .filter(|&ns| ns > SUSPEND)
            .map(Length::from_nanos),
    };
    (found.step_ns.is_some() || found.suspended.is_some()).then_some(found)
}

/// How far `other` is ahead of `own`, by the tightest of three readings between two of `own`: a
/// thread that loses its processor in one of them does not spoil the answer.
fn tightest(first: Instant, own: impl Fn() -> Instant, other: impl Fn() -> u64) -> i64 {
    let (mut width, mut ahead, mut before) = (u64::MAX, 0, first);
    for _ in 0..3 {
        let there = other();
        let after = own();
        let this = after.since_or_zero(before).nanos();
        if this < width {
            width = this;
            ahead = signed(there).saturating_sub(signed(before.nanos() + this / 2));
        }
        before = after;
    }
    ahead
}

fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

/// One read of a clock of the system, in nanoseconds; zero for a clock set before its epoch.
fn system(id: ClockId) -> u64 {
    let now = clock_gettime(id).expect("the clocks named here exist wherever this compiles");
    let secs = u64::try_from(now.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec()).unwrap_or(0);
    secs.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Processor time that this process has used; `None` where the system does not tell.
pub fn cpu_time() -> Option<Length> {
    let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok()?;
    let secs = u64::try_from(used.tv_sec()).ok()?;
    let nanos = u64::try_from(used.tv_nsec()).ok()?;
    Some(Length::from_nanos(
        secs.checked_mul(1_000_000_000)?.checked_add(nanos)?,
    ))
}

/// Makes this thread's sleeps end as near to their time as the system can: it may otherwise let them
/// run up to 50 µs longer, to wake several threads at once. Without effect where there is no such
/// slack to give up.
pub fn sharpen_sleep() {
    #[cfg(target_os = "linux")]
    {
        // Refused, sleeps are 50 µs longer, and the send lag says so.
        let _ = nix::sys::prctl::set_timerslack(1);
    }
}

/// A clock that follows tokio's: exact, and under a test's hand while that one is paused.
#[derive(Debug, Clone, Copy)]
pub struct VirtualClock {
    origin: tokio::time::Instant,
}

impl VirtualClock {
    /// A clock whose origin is tokio's now.
    pub fn start() -> Self {
        VirtualClock {
            origin: tokio::time::Instant::now(),
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        Instant::ORIGIN + Length::from(self.origin.elapsed())
    }

    fn at_wall(&self, _read_at: Instant, _wall_ns: u64) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const fn ahead(real: i64, boot: i64) -> Ahead {
        Ahead {
            real,
            boot: Some(boot),
        }
    }

    #[test]
    fn a_step_and_a_suspend_are_told_apart() {
        let check =
            |now: Ahead| jump(ahead(5_000_000_000, 1_000), now).map(|j| (j.step_ns, j.suspended));
        assert_eq!(check(ahead(5_000_000_000, 1_000)), None);
        assert_eq!(
            check(ahead(5_100_000_000, 10_001_000)),
            None,
            "at the limits"
        );
        assert_eq!(
            check(ahead(1_400_000_000, 1_000)),
            Some((Some(-3_600_000_000), None))
        );
        let asleep = 60_000_000_000;
        assert_eq!(
            check(ahead(5_000_000_000 + asleep, 1_000 + asleep)),
            Some((None, Some(Length::from_secs(60))))
        );
    }

    #[test]
    fn the_tightest_of_three_pairs_decides() {
        // Own reads at 0, 900, 1000, 1500; the second pair is the tightest, its middle is 950.
        let own = [900, 1_000, 1_500];
        let there = [10_000, 20_950, 30_000];
        let (i, k) = (Cell::new(0), Cell::new(0));
        let next = |cell: &Cell<usize>| cell.replace(cell.get() + 1);
        let ahead = tightest(
            Instant::ORIGIN,
            || Instant::from_nanos(own[next(&i)]),
            || there[next(&k)],
        );
        assert_eq!(ahead, 20_000);
    }

    /// All of the program's own source, without tests and without the simulated server, whose clock
    /// is another.
    fn sources(folder: &std::path::Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).expect("a folder of the source") {
            let path = entry.expect("an entry").path();
            let name = path.display().to_string();
            if path.is_dir() && !name.ends_with("tests") && !name.ends_with("sim") {
                sources(&path, found);
            } else if name.ends_with(".rs") {
                let text = std::fs::read_to_string(&path).expect("a text");
                found.push((name, text));
            }
        }
    }

    #[test]
    fn row_37_nothing_but_this_file_knows_of_the_wall_clock_and_intervals_know_none() {
        let mut found = Vec::new();
        let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        sources(&here.join("src"), &mut found);
        sources(&here.join("../measure/src"), &mut found);
        assert!(found.len() > 50, "{} files", found.len());
        for (name, text) in &found {
            let own = name.ends_with("src/clock.rs");
            for wall in [
                "SystemTime::now",
                "CLOCK_REALTIME",
                "Utc::now",
                "Local::now",
            ] {
                assert!(own || !text.contains(wall), "{name} names {wall}");
            }
        }
        // What every interval is the difference of counts on the monotonic clock alone.
        let clock = RunClock {
            origin_monotonic_ns: system(ClockId::CLOCK_MONOTONIC),
            realtime_at_start_ns: u64::MAX,
        };
        let (first, second) = (clock.now(), clock.now());
        assert!(first <= second && second < Instant::ORIGIN + Length::from_secs(3_600));
    }

    #[test]
    fn a_wall_instant_before_the_run_becomes_the_origin() {
        let clock = RunClock::start();
        let long_ago = clock.at_wall(clock.now(), 1);
        assert_eq!(long_ago, Some(Instant::ORIGIN));
    }

    #[test]
    fn the_wall_clock_at_the_start_is_the_origin() {
        let clock = RunClock::start();
        let at = clock.at_wall(clock.now(), clock.realtime_at_start_ns());
        // Two conversions of one instant differ by no more than their own pairs are wide, unless
        // the wall clock is being set meanwhile; a second is far beyond both and far below an epoch.
        assert!(at.is_some_and(|at| at.since_or_zero(Instant::ORIGIN) < Length::from_secs(1)));
    }
}
