//! Owns a worker's heart: it beats on the worker's own thread, and what it misses the streams miss.

use std::cell::RefCell;
use std::rc::Rc;

use measure::record::Workers;
use measure::time::{Instant, Length};

use crate::clock::{Clock, RunClock};
use crate::net::{Looks, Unread, wake};

/// From one beat to the next.
const BEAT: Length = Length::from_millis(10);
/// Bounds of the lateness that is told apart, in steps of [`STEP`]: later beats count as this late.
const STEPS: usize = 1_000;
/// The fineness of a beat's lateness.
const STEP: Length = Length::from_micros(100);

/// The beats of one worker over a level.
#[derive(Debug)]
pub(super) struct Heart {
    clock: RunClock,
    began: Option<(Length, Length)>,
    /// Beats by lateness.
    late: Vec<u64>,
    worst: Length,
    worst_at: Instant,
    looks: Looks,
    /// The most that a look found of each, once there was one.
    unread: Option<Unread>,
}

impl Heart {
    /// A heart for the thread that calls this.
    pub fn new(clock: RunClock) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Heart {
            clock,
            began: wake::processor(),
            late: vec![0; STEPS],
            worst: Length::ZERO,
            worst_at: clock.now(),
            looks: Looks::default(),
            unread: None,
        }))
    }

    /// Beats until it is dropped.
    pub async fn beat(heart: Rc<RefCell<Self>>) {
        let clock = heart.borrow().clock;
        loop {
            let due = clock.now() + BEAT;
            tokio::time::sleep(BEAT.into()).await;
            let now = clock.now();
            let mut heart = heart.borrow_mut();
            let late = now.since_or_zero(due);
            heart.note(late, now);
            let seen = heart.looks.look();
            heart.note_unread(seen);
            if late >= BEAT {
                // What had piled up by then says no more than that the beat was late.
                heart.looks.forget();
            }
        }
    }

    fn note(&mut self, late: Length, at: Instant) {
        let step = usize::try_from(late.nanos() / STEP.nanos()).unwrap_or(usize::MAX);
        self.late[step.min(STEPS - 1)] += 1;
        if late > self.worst {
            (self.worst, self.worst_at) = (late, at);
        }
    }

    fn note_unread(&mut self, seen: Option<Unread>) {
        let Some(seen) = seen else { return };
        let most = self.unread.unwrap_or_default();
        self.unread = Some(Unread {
            waiting: most.waiting.max(seen.waiting),
            stayed: most.stayed.max(seen.stayed),
        });
    }

    /// How this worker fared. To be called on its thread.
    pub fn fared(&self) -> Workers {
        let used = wake::processor().zip(self.began);
        Workers {
            count: 1,
            late_max: self.worst,
            late_at: self.worst_at,
            late_p99: self.p99(),
            cpu: used.map(|((ran, _), (before, _))| ran.less(before)),
            waited: used.map(|((_, waited), (_, before))| waited.less(before)),
            unread_max: self.unread.map(|unread| unread.waiting),
            unread_stayed_max: self.unread.map(|unread| unread.stayed),
        }
    }

    /// The upper end of the step that holds the 99th percentile; none later than the worst.
    fn p99(&self) -> Length {
        let rank = (self.late.iter().sum::<u64>() * 99).div_ceil(100);
        let mut seen = 0;
        let step = self.late.iter().position(|count| {
            seen += count;
            seen >= rank.max(1)
        });
        let step = step.map_or(0, |step| step as u64 + 1);
        Length::from_nanos(step * STEP.nanos()).min(self.worst)
    }
}

/// Of each figure, that of the worker that fared worst.
pub(super) fn worst(all: impl IntoIterator<Item = Workers>) -> Option<Workers> {
    all.into_iter().reduce(|one, other| {
        let later = if other.late_max > one.late_max {
            other
        } else {
            one
        };
        Workers {
            count: one.count + other.count,
            late_max: later.late_max,
            late_at: later.late_at,
            late_p99: one.late_p99.max(other.late_p99),
            cpu: one.cpu.max(other.cpu),
            waited: one.waited.max(other.waited),
            unread_max: one.unread_max.max(other.unread_max),
            unread_stayed_max: one.unread_stayed_max.max(other.unread_stayed_max),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fared(beats: &[u64]) -> Workers {
        let heart = Heart::new(RunClock::start());
        let mut heart = heart.borrow_mut();
        for micros in beats {
            heart.note(Length::from_micros(*micros), Instant::from_nanos(*micros));
        }
        heart.fared()
    }

    #[test]
    fn the_latest_beat_is_kept_whole_and_the_99th_percentile_by_steps() {
        let mut beats = vec![1_150; 98];
        beats.extend([3_020, 250_000]);
        let all = fared(&beats);
        assert_eq!(all.late_max, Length::from_millis(250));
        assert_eq!(all.late_at, Instant::from_nanos(250_000));
        assert_eq!(all.late_p99, Length::from_micros(3_100));
        assert_eq!(fared(&[40]).late_p99, Length::from_micros(40));
        assert_eq!(fared(&[]).late_p99, Length::ZERO);
    }

    #[test]
    fn of_all_looks_the_most_unread_is_kept_and_none_is_not_zero() {
        let heart = Heart::new(RunClock::start());
        let mut heart = heart.borrow_mut();
        heart.note_unread(None);
        assert_eq!(heart.fared().unread_max, None);
        let seen = |waiting, stayed| Some(Unread { waiting, stayed });
        heart.note_unread(seen(900, 0));
        heart.note_unread(seen(400, 300));
        let fared = heart.fared();
        assert_eq!(
            (fared.unread_max, fared.unread_stayed_max),
            (Some(900), Some(300))
        );
    }

    #[test]
    fn of_two_workers_the_worse_counts_for_each_figure() {
        let one = Workers {
            cpu: Some(Length::from_millis(7)),
            waited: None,
            ..fared(&[900])
        };
        let other = Workers {
            cpu: Some(Length::from_millis(5)),
            waited: Some(Length::from_millis(1)),
            ..fared(&[400])
        };
        let both = worst([one, other]).expect("two fared");
        assert_eq!((both.count, both.late_max), (2, one.late_max));
        assert_eq!((both.cpu, both.waited), (one.cpu, other.waited));
        assert_eq!(worst([]), None);
    }
}
