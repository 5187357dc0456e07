//! Owns when an exchange has waited long enough, and for what.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use measure::time::{Instant, Length};
use tokio::time::Sleep;

use super::exchange::{BodyEnd, Timeouts, Waiting};
use crate::clock::Clock;

/// The longest that an alarm is set for; it is set anew as long as needed.
const LONGEST_ALARM: Length = Length::from_secs(3_600);

/// The instants from which an exchange waits, and how long.
#[derive(Debug)]
pub(super) struct Deadlines {
    limits: Timeouts,
    started: Instant,
    last_content: Option<Instant>,
    terminal: Option<Instant>,
}

impl Deadlines {
    pub(super) fn new(limits: Timeouts, started: Instant) -> Self {
        Deadlines {
            limits,
            started,
            last_content: None,
            terminal: None,
        }
    }

    /// Output came: the wait for more begins anew.
    pub(super) fn content(&mut self, at: Instant) {
        self.last_content = Some(at);
    }

    /// The terminal event came: from the first one on only the end of the body is waited for.
    pub(super) fn terminal(&mut self, at: Instant) {
        self.terminal.get_or_insert(at);
    }

    /// The next instant to give up at, and how the exchange then ends.
    pub(super) fn next(&self) -> (Instant, BodyEnd) {
        if let Some(terminal) = self.terminal {
            return (terminal + self.limits.linger, BodyEnd::Lingered);
        }
        let (since, waiting) = match self.last_content {
            Some(content) => (content, Waiting::Idle),
            None => (self.started, Waiting::First),
        };
        let idle = since + self.limits.first_or_idle;
        let total = self
            .limits
            .total
            .map_or(Instant::ORIGIN + Length::MAX, |total| self.started + total);
        if total < idle {
            (total, BodyEnd::Timeout(Waiting::Total))
        } else {
            (idle, BodyEnd::Timeout(waiting))
        }
    }
}

/// Wakes an exchange at its deadline. A deadline that moves later costs nothing until the alarm
/// goes off at the old one: every arrival moves it.
pub(super) struct Alarm<'a> {
    sleep: Pin<&'a mut Sleep>,
    set_for: Instant,
}

impl<'a> Alarm<'a> {
    pub(super) fn new<C: Clock>(
        sleep: Pin<&'a mut Sleep>,
        clock: &C,
        deadlines: &Deadlines,
    ) -> Self {
        let set_for = Instant::ORIGIN;
        let mut alarm = Alarm { sleep, set_for };
        alarm.set(clock, deadlines.next().0);
        alarm
    }

    /// How the exchange ends, once its deadline has passed.
    pub(super) fn poll<C: Clock>(
        &mut self,
        cx: &mut Context<'_>,
        clock: &C,
        deadlines: &Deadlines,
    ) -> Poll<BodyEnd> {
        let (deadline, end) = deadlines.next();
        if deadline < self.set_for {
            self.set(clock, deadline);
        }
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            if clock.now() >= deadline {
                return Poll::Ready(end);
            }
            self.set(clock, deadline);
        }
    }

    fn set<C: Clock>(&mut self, clock: &C, deadline: Instant) {
        let now = clock.now();
        let wait = deadline.since_or_zero(now).min(LONGEST_ALARM);
        self.set_for = now + wait;
        let wait = Duration::from(wait);
        self.sleep
            .as_mut()
            .reset(tokio::time::Instant::now() + wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ORIGIN + Length::from_secs(secs)
    }

    fn deadlines(total: Option<u64>) -> Deadlines {
        let limits = Timeouts {
            first_or_idle: Length::from_secs(60),
            total: total.map(Length::from_secs),
            linger: Length::from_secs(1),
        };
        Deadlines::new(limits, at(100))
    }

    #[test]
    fn content_moves_the_wait_and_gives_it_another_name() {
        let mut waits = deadlines(None);
        assert_eq!(waits.next(), (at(160), BodyEnd::Timeout(Waiting::First)));
        waits.content(at(130));
        assert_eq!(waits.next(), (at(190), BodyEnd::Timeout(Waiting::Idle)));
    }

    #[test]
    fn the_total_counts_from_the_start_whatever_comes() {
        let mut waits = deadlines(Some(70));
        assert_eq!(waits.next(), (at(160), BodyEnd::Timeout(Waiting::First)));
        waits.content(at(130));
        assert_eq!(waits.next(), (at(170), BodyEnd::Timeout(Waiting::Total)));
    }

    #[test]
    fn after_the_terminal_event_only_the_end_is_waited_for() {
        let mut waits = deadlines(Some(70));
        waits.terminal(at(130));
        waits.terminal(at(131));
        assert_eq!(waits.next(), (at(131), BodyEnd::Lingered));
    }
}
