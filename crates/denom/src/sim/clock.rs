//! Owns the server's one clock: the system's monotonic clock, as bare nanoseconds.

use nix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds, comparable between processes of one machine. Zero only if the
/// system has no such clock, which no supported system does.
pub fn monotonic_nanos() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec()).unwrap_or(0);
        seconds * 1_000_000_000 + nanos
    })
}
