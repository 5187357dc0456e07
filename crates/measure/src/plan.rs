//! Owns the plan: load levels as data, decided before anything is sent.

use serde::{Deserialize, Serialize};

use crate::basis::Loop;
use crate::time::Length;

/// When a level stops starting requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this many measured requests.
    Requests(u64),
    /// After this long, counted from the end of the warm-up.
    Duration(Length),
}

/// What is sent before the measurement begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// This many requests.
    Requests(u64),
    /// Whatever is sent within this long.
    Duration(Length),
}

/// How the planned instants of an open loop lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// As of many users who know nothing of each other: exponential gaps, by the seed.
    Poisson,
    /// Equally far apart.
    Constant,
}

impl Arrivals {
    /// `poisson` or `constant`.
    pub fn name(self) -> &'static str {
        match self {
            Arrivals::Poisson => "poisson",
            Arrivals::Constant => "constant",
        }
    }
}

/// One level of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelPlan {
    /// Its position in the run, from 0.
    pub index: u32,
    /// Open or closed loop.
    pub kind: Loop,
    /// The target in thousandths: of streams, or of requests a second.
    pub target_milli: u64,
    /// How planned instants lie; `None` in a closed loop, which has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Streams to use: the concurrency in a closed loop, the most in flight in an open one.
    pub streams: u32,
    /// It is there for others to be compared with.
    pub baseline: bool,
    /// When it stops.
    pub stop: Stop,
    /// Its warm-up.
    pub warmup: Warmup,
    /// The longest it may take, where it has such a limit.
    pub limit: Option<Length>,
}

/// Requests a stream gets unless the user says otherwise: enough for a steady window.
pub const REQUESTS_A_STREAM: u64 = 6;
/// Fewest requests of a level unless the user says otherwise.
pub const LEAST_REQUESTS: u64 = 12;
/// The longest a baseline may take.
pub const BASELINE_LIMIT: Length = Length::from_secs(60);

/// What the user wants of the closed-loop levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Concurrency of each level, in order.
    pub concurrency: Vec<u32>,
    /// Put concurrency 1 first, unless it is there.
    pub baseline: bool,
    /// Most requests of that baseline.
    pub baseline_requests: u64,
    /// When a level stops; by default six requests a stream, at least twelve.
    pub stop: Option<Stop>,
    /// By default one request a stream.
    pub warmup: Option<Warmup>,
}

/// Closed-loop levels, the baseline first.
pub fn closed(want: &Closed) -> Vec<LevelPlan> {
    let mut levels = Vec::new();
    let mut add = |streams: u32, baseline: bool| {
        let usual = Stop::Requests((u64::from(streams) * REQUESTS_A_STREAM).max(LEAST_REQUESTS));
        let stop = want.stop.unwrap_or(usual);
        levels.push(LevelPlan {
            index: levels.len() as u32,
            kind: Loop::Closed,
            target_milli: u64::from(streams) * 1_000,
            arrivals: None,
            streams,
            baseline,
            stop: if baseline {
                shorter(stop, want.baseline_requests)
            } else {
                stop
            },
            warmup: want.warmup.unwrap_or(Warmup::Requests(u64::from(streams))),
            limit: baseline.then_some(BASELINE_LIMIT),
        });
    };
    let others: Vec<u32> = match want.baseline {
        true => {
            add(1, true);
            want.concurrency
                .iter()
                .copied()
                .filter(|c| *c != 1)
                .collect()
        }
        false => want.concurrency.clone(),
    };
    for streams in others {
        add(streams, false);
    }
    levels
}

/// Time that an open level's requests are planned over unless the user says otherwise.
const OPEN_SPAN_S: u64 = 30;
/// Time that its warm-up is planned over unless the user says otherwise.
const OPEN_WARMUP_S: u64 = 5;

/// What the user wants of the open-loop levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// Requests a second of each level in order, in thousandths.
    pub rates_milli: Vec<u64>,
    /// How the planned instants lie.
    pub arrivals: Arrivals,
    /// The most requests in flight.
    pub most_in_flight: u32,
    /// When a level stops; by default after what its rate sends in 30 s, at least twelve requests.
    pub stop: Option<Stop>,
    /// By default what its rate sends in 5 s, at least one request.
    pub warmup: Option<Warmup>,
    /// The first level's position in the run.
    pub first_index: u32,
}

/// Open-loop levels, in the order of their rates.
pub fn open(want: &Open) -> Vec<LevelPlan> {
    let sent_in = |milli: u64, seconds: u64| milli.saturating_mul(seconds).div_ceil(1_000);
    let level = |(index, milli): (u32, &u64)| {
        let usual = Stop::Requests(sent_in(*milli, OPEN_SPAN_S).max(LEAST_REQUESTS));
        LevelPlan {
            index,
            kind: Loop::Open,
            target_milli: *milli,
            arrivals: Some(want.arrivals),
            streams: want.most_in_flight,
            baseline: false,
            stop: want.stop.unwrap_or(usual),
            warmup: want
                .warmup
                .unwrap_or(Warmup::Requests(sent_in(*milli, OPEN_WARMUP_S).max(1))),
            limit: None,
        }
    };
    (want.first_index..)
        .zip(&want.rates_milli)
        .map(level)
        .collect()
}

fn shorter(stop: Stop, most: u64) -> Stop {
    match stop {
        Stop::Requests(n) => Stop::Requests(n.min(most)),
        Stop::Duration(length) => Stop::Duration(length.min(BASELINE_LIMIT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(concurrency: &[u32]) -> Closed {
        Closed {
            concurrency: concurrency.to_vec(),
            baseline: true,
            baseline_requests: 12,
            stop: None,
            warmup: None,
        }
    }

    fn outline(want: &Closed) -> Vec<(u32, bool, Stop)> {
        closed(want)
            .iter()
            .map(|level| (level.streams, level.baseline, level.stop))
            .collect()
    }

    #[test]
    fn concurrency_1_goes_first_unless_told_not_to() {
        let found = outline(&want(&[16, 4]));
        assert_eq!(
            found,
            [
                (1, true, Stop::Requests(12)),
                (16, false, Stop::Requests(96)),
                (4, false, Stop::Requests(24)),
            ]
        );
        assert_eq!(outline(&want(&[1, 4])).len(), 2);
        let without = Closed {
            baseline: false,
            ..want(&[16])
        };
        assert_eq!(outline(&without), [(16, false, Stop::Requests(96))]);
    }

    #[test]
    fn a_baseline_is_never_longer_than_its_limit() {
        let long = Closed {
            stop: Some(Stop::Duration(Length::from_secs(600))),
            ..want(&[4])
        };
        assert_eq!(outline(&long)[0].2, Stop::Duration(BASELINE_LIMIT));
        let many = Closed {
            stop: Some(Stop::Requests(96)),
            ..want(&[16])
        };
        assert_eq!(
            outline(&many),
            [
                (1, true, Stop::Requests(12)),
                (16, false, Stop::Requests(96))
            ]
        );
    }

    #[test]
    fn open_levels_follow_the_baseline_and_plan_half_a_minute() {
        let levels = open(&Open {
            rates_milli: vec![2_000, 250],
            arrivals: Arrivals::Poisson,
            most_in_flight: 100,
            stop: None,
            warmup: None,
            first_index: 1,
        });
        let outline: Vec<_> = levels
            .iter()
            .map(|l| (l.index, l.kind, l.target_milli, l.stop, l.warmup))
            .collect();
        assert_eq!(
            outline,
            [
                (
                    1,
                    Loop::Open,
                    2_000,
                    Stop::Requests(60),
                    Warmup::Requests(10)
                ),
                (2, Loop::Open, 250, Stop::Requests(12), Warmup::Requests(2)),
            ]
        );
    }
}
