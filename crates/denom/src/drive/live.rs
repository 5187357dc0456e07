//! Owns the live counts of a run, for its progress only: no figure is made of them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use measure::basis::Loop;
use measure::judge::{Outcome, outcome};
use measure::plan::{LevelPlan, Stop};
use measure::trace::Trace;

/// Counts that any thread adds to.
#[derive(Debug, Default)]
pub struct Live {
    /// Requests taken up in the run.
    pub issued: AtomicU64,
    /// Requests done with in the run.
    pub ended: AtomicU64,
    /// Requests done with that failed.
    pub failed: AtomicU64,
    /// Chunks of the requests done with.
    pub chunks: AtomicU64,
    /// Requests of the level done with.
    pub level_ended: AtomicU64,
}

/// How a run goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The level, from 1.
    pub level: usize,
    /// Of how many.
    pub levels: usize,
    /// Its target.
    pub target: String,
    /// Its requests done with, warm-up included.
    pub done: u64,
    /// Of how many, where the plan counts requests.
    pub of: Option<u64>,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests that failed in the run.
    pub failed: u64,
    /// Chunks that came in the run.
    pub chunks: u64,
    /// The run was asked to end.
    pub ending: bool,
}

impl Live {
    /// Counts a request that has ended.
    pub fn count(&self, trace: &Trace) {
        self.ended.fetch_add(1, Relaxed);
        self.level_ended.fetch_add(1, Relaxed);
        self.chunks.fetch_add(trace.chunks(), Relaxed);
        if matches!(outcome(trace), Outcome::Failed(_)) {
            self.failed.fetch_add(1, Relaxed);
        }
    }

    /// How it goes.
    pub fn shown(&self, plan: &LevelPlan, levels: usize, ending: bool) -> Shown {
        let (issued, ended) = (self.issued.load(Relaxed), self.ended.load(Relaxed));
        let warm = match plan.warmup {
            measure::plan::Warmup::Requests(n) => n,
            measure::plan::Warmup::Duration(_) => 0,
        };
        Shown {
            level: plan.index as usize + 1,
            levels,
            target: match plan.kind {
                Loop::Closed => format!("concurrency {}", plan.streams),
                Loop::Open => format!("{} req/s", plan.target_milli as f64 / 1e3),
            },
            done: self.level_ended.load(Relaxed),
            of: match plan.stop {
                Stop::Requests(n) => Some(n + warm),
                Stop::Duration(_) => None,
            },
            in_flight: issued.saturating_sub(ended),
            failed: self.failed.load(Relaxed),
            chunks: self.chunks.load(Relaxed),
            ending,
        }
    }
}
