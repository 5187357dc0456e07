//! Owns the planned instants of an open loop: made from the seed before anything is sent, and the
//! count of what became of them.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, Exp1};
use serde::{Deserialize, Serialize};

use crate::basis::Loop;
use crate::plan::{Arrivals, LevelPlan, Stop, Warmup};
use crate::time::Length;

/// The most requests that a level may plan.
pub const MOST_PLANNED: u64 = 1_000_000;
/// Nanoseconds between two requests at a thousandth of a request a second.
const NANOS_AT_A_MILLI: u64 = 1_000_000_000_000;

/// When each request of a level is to be sent, counted from the level's first instant. In order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    offsets: Vec<Length>,
    warm: usize,
}

impl Schedule {
    /// The schedule of an open loop, at most [`MOST_PLANNED`] requests long; `None` for a closed
    /// one, whose requests wait for answers. The same plan and seed give the same instants.
    pub fn of(plan: &LevelPlan, seed: u64) -> Option<Self> {
        let arrivals = plan.arrivals.filter(|_| plan.kind == Loop::Open)?;
        let mut offsets = Offsets::new(arrivals, plan, seed);
        let mut schedule = Schedule {
            offsets: Vec::new(),
            warm: 0,
        };
        let mut measured_from = None;
        let most = usize::try_from(MOST_PLANNED).unwrap_or(usize::MAX);
        while schedule.offsets.len() < most {
            let at = offsets.following();
            let warm = measured_from.is_none()
                && match plan.warmup {
                    Warmup::Requests(n) => (schedule.warm as u64) < n,
                    Warmup::Duration(length) => at < length,
                };
            if warm {
                schedule.warm += 1;
            } else {
                let from = *measured_from.get_or_insert(match plan.warmup {
                    Warmup::Requests(_) => at,
                    Warmup::Duration(length) => length,
                });
                let measured = (schedule.offsets.len() - schedule.warm) as u64;
                let over = match plan.stop {
                    Stop::Requests(n) => measured >= n,
                    Stop::Duration(length) => at.less(from) >= length,
                };
                if over {
                    break;
                }
            }
            schedule.offsets.push(at);
        }
        Some(schedule)
    }

    /// The planned instants, from the level's first instant on.
    pub fn offsets(&self) -> &[Length] {
        &self.offsets
    }

    /// How many of them, from the first on, are the warm-up's.
    pub fn warmup(&self) -> usize {
        self.warm
    }
}

/// Requests that `plan` comes to, about: what a Poisson plan by time holds is known by its seed.
pub fn expected(plan: &LevelPlan) -> u64 {
    let within = |length: Length| {
        let requests = u128::from(length.nanos()) * u128::from(plan.target_milli);
        u64::try_from(requests.div_ceil(u128::from(NANOS_AT_A_MILLI))).unwrap_or(u64::MAX)
    };
    let warm = match plan.warmup {
        Warmup::Requests(n) => n,
        Warmup::Duration(length) => within(length),
    };
    let measured = match plan.stop {
        Stop::Requests(n) => n,
        Stop::Duration(length) => within(length),
    };
    warm.saturating_add(measured)
}

/// One offset after another, without an end.
enum Offsets {
    /// Equally far apart, the first at once: exact, since each is counted from the start.
    Constant { milli: u64, next: u64 },
    /// Exponential gaps, the first of them before the first request.
    Poisson {
        milli: u64,
        rng: Box<ChaCha8Rng>,
        at: Length,
    },
}

impl Offsets {
    fn new(arrivals: Arrivals, plan: &LevelPlan, seed: u64) -> Self {
        let milli = plan.target_milli.max(1);
        match arrivals {
            Arrivals::Constant => Offsets::Constant { milli, next: 0 },
            Arrivals::Poisson => {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                // Prompts take the streams from 0 up, each level the ones from the other end.
                rng.set_stream(u64::MAX - u64::from(plan.index));
                Offsets::Poisson {
                    milli,
                    rng: Box::new(rng),
                    at: Length::ZERO,
                }
            }
        }
    }

    fn following(&mut self) -> Length {
        match self {
            Offsets::Constant { milli, next } => {
                let nanos = u128::from(*next) * u128::from(NANOS_AT_A_MILLI) / u128::from(*milli);
                *next += 1;
                Length::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            Offsets::Poisson { milli, rng, at } => {
                let unit: f64 = Exp1.sample(rng);
                let gap = unit * NANOS_AT_A_MILLI as f64 / *milli as f64;
                *at += Length::from_nanos(gap.round() as u64);
                *at
            }
        }
    }
}

/// What became of the planned requests of a level, counted by its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fates {
    /// Sent alone before the plan began, to learn whether the server takes requests at all. They
    /// are no part of the plan, and of the warm-up.
    pub before: u64,
    /// Of the warm-up.
    pub warmup: Fate,
    /// After the warm-up.
    pub measured: Fate,
}

/// Planned = started + all that were not started, by the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fate {
    /// In the plan.
    pub planned: u64,
    /// Handed to a worker at their instant.
    pub started: u64,
    /// Not started: as many as allowed were in flight.
    pub in_flight_limit: u64,
    /// Not started: the run was told to end.
    pub stopped: u64,
}

impl Fate {
    /// Planned, by everyone's count.
    pub fn accounted(&self) -> u64 {
        self.started + self.in_flight_limit + self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Open, open};

    fn level(arrivals: Arrivals, milli: u64, stop: Stop, warmup: Warmup) -> LevelPlan {
        let levels = open(&Open {
            rates_milli: vec![milli],
            arrivals,
            most_in_flight: 8,
            stop: Some(stop),
            warmup: Some(warmup),
            first_index: 0,
        });
        levels[0]
    }

    fn nanos(plan: &LevelPlan, seed: u64) -> Vec<u64> {
        let schedule = Schedule::of(plan, seed).expect("an open loop");
        schedule.offsets().iter().map(|at| at.nanos()).collect()
    }

    #[test]
    fn constant_arrivals_are_exact_and_do_not_drift() {
        let warm = Warmup::Requests(1);
        let plan = level(Arrivals::Constant, 3_000, Stop::Requests(6), warm);
        let found = nanos(&plan, 1);
        assert_eq!(
            found,
            [
                0,
                333_333_333,
                666_666_666,
                1_000_000_000,
                1_333_333_333,
                1_666_666_666,
                2_000_000_000
            ]
        );
        assert_eq!(Schedule::of(&plan, 1).map(|s| s.warmup()), Some(1));
    }

    #[test]
    fn a_duration_begins_where_the_warmup_ends() {
        let second = Length::from_secs(1);
        let of = |warmup, stop| {
            let plan = level(Arrivals::Constant, 4_000, stop, warmup);
            let schedule = Schedule::of(&plan, 1).expect("an open loop");
            (schedule.warmup(), schedule.offsets().len())
        };
        // At 4 a second: 0 to 750 ms are the warm-up; 1 s to 2.75 s are measured.
        assert_eq!(
            of(
                Warmup::Duration(second),
                Stop::Duration(Length::from_secs(2))
            ),
            (4, 12)
        );
        // Two requests, then one second from the third on: 500, 750, 1,000 and 1,250 ms.
        assert_eq!(of(Warmup::Requests(2), Stop::Duration(second)), (2, 6));
        assert_eq!(of(Warmup::Requests(0), Stop::Requests(5)), (0, 5));
    }

    /// The largest distance between the gaps' distribution and the exponential one.
    fn kolmogorov(gaps: &[f64], rate: f64) -> f64 {
        let mut sorted = gaps.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let each = sorted.iter().enumerate().map(|(i, gap)| {
            let law = 1.0 - (-gap * rate).exp();
            (law - i as f64 / n)
                .abs()
                .max(((i + 1) as f64 / n - law).abs())
        });
        each.fold(0.0, f64::max)
    }

    #[test]
    fn poisson_gaps_are_exponential_and_depend_on_the_seed_alone() {
        let stop = Stop::Requests(4_000);
        let plan = level(Arrivals::Poisson, 20_000, stop, Warmup::Requests(0));
        for seed in [1, 2, 3, 99] {
            let at = nanos(&plan, seed);
            assert_eq!(at, nanos(&plan, seed));
            assert!(at.is_sorted(), "in order");
            let mut gaps = vec![at[0] as f64 / 1e9];
            gaps.extend(at.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9));
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            // Four standard errors of the mean of 4,000 gaps; the 1 % point of the statistic.
            assert!((mean - 0.05).abs() < 4.0 * 0.05 / 4_000f64.sqrt(), "{mean}");
            let distance = kolmogorov(&gaps, 20.0);
            assert!(distance < 1.63 / 4_000f64.sqrt(), "{seed}: {distance}");
            assert!(kolmogorov(&gaps, 22.0) > 1.63 / 4_000f64.sqrt());
        }
        assert_ne!(nanos(&plan, 1), nanos(&plan, 2));
        let mut second = plan;
        second.index = 1;
        assert_ne!(nanos(&plan, 1), nanos(&second, 1), "levels differ");
    }

    #[test]
    fn a_closed_loop_has_no_schedule_and_no_plan_is_endless() {
        let year = Stop::Duration(Length::from_secs(31_536_000));
        let mut plan = level(Arrivals::Constant, 1_000_000, year, Warmup::Requests(0));
        assert_eq!(nanos(&plan, 1).len() as u64, MOST_PLANNED);
        assert_eq!(expected(&plan), 31_536_000_000);
        plan.kind = Loop::Closed;
        assert_eq!(Schedule::of(&plan, 1), None);
    }
}
