//! Owns the waiting of the server's loop: for a socket to stir, or for a time that a poll alone misses.

use std::io;
use std::time::Duration;

use mio::{Events, Poll};

use super::clock::monotonic_nanos;

const MILLISECOND: u64 = 1_000_000;
/// The longest sleep without a look at the sockets, in nanoseconds.
const SLICE: u64 = MILLISECOND / 10;

/// Waits for events, at most until `until` on the monotonic clock, in nanoseconds; may return early
/// with no events. A poll counts in milliseconds, rounded up; so it waits for the whole ones only,
/// and short sleeps, which are about 0.1 ms late at most, bridge the rest. That is as punctual here
/// as a timer of the kernel's own, and works on every system.
pub fn wait(poll: &mut Poll, events: &mut Events, until: u64) -> io::Result<()> {
    let left = until.saturating_sub(monotonic_nanos());
    if left >= MILLISECOND {
        return poll.poll(events, Some(Duration::from_millis(left / MILLISECOND)));
    }
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left.min(SLICE)));
    }
    poll.poll(events, Some(Duration::ZERO))
}
