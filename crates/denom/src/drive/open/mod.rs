//! Owns the driving of an open loop: the plan's thread, its workers, and what became of the plan.

mod pace;
mod pool;
mod sender;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc as plain;
use std::thread::JoinHandle;

use measure::basis::Loop;
use measure::plan::{LevelPlan, Stop, Warmup};
use measure::schedule::{Fates, Schedule};
use measure::time::Length;
use tokio::sync::mpsc;

use super::shared::{LevelWork, Shared, Totals};
use super::stream;
use crate::clock::Clock;
use pace::Dispatch;
use sender::Duty;

/// A request that the server refuses for its form is asked again in another; there are two to try.
const MOST_ALONE: u32 = 3;
/// Requests a second that one worker carries before another core is used, in thousandths.
const RATE_A_WORKER_MILLI: u64 = 8_000;
/// Connections that are kept ready ahead of need carry a second's requests, at least and at most so
/// many a worker.
const LEAST_SPARE: u64 = 2;
const MOST_SPARE: u64 = 256;

/// Drives an open level from its first planned instant until its last answer, on this thread and
/// workers of its own.
pub(super) fn run(shared: &Arc<Shared>, plan: LevelPlan) -> io::Result<Totals> {
    let Some(schedule) = Schedule::of(&plan, shared.job.prompts.seed) else {
        return Ok(Totals::default());
    };
    let mut totals = alone(shared, plan)?;
    let before = totals.issued;
    let crew = Crew::start(shared, plan)?;
    let fates = pace::run(shared, &schedule, &crew);
    totals.add(crew.join()?);
    totals.planned = Some(Fates { before, ..fates });
    Ok(totals)
}

/// The first request of a run goes alone until its head arrives: in an open loop before the plan
/// begins, which must not wait for it.
fn alone(shared: &Arc<Shared>, plan: LevelPlan) -> io::Result<Totals> {
    let mut totals = Totals::default();
    let one = LevelPlan {
        kind: Loop::Closed,
        streams: 1,
        warmup: Warmup::Requests(1),
        stop: Stop::Requests(0),
        ..plan
    };
    for _ in 0..MOST_ALONE {
        if shared.gate.is_open() || shared.is_stopping() {
            return Ok(totals);
        }
        let work = Arc::new(LevelWork::new(one, shared.job.clock.now()));
        totals.add(stream::run_all(shared, &work, &[0])?);
    }
    if !shared.is_stopping() {
        shared.gate.open();
    }
    Ok(totals)
}

/// The workers of a level, and the requests in flight among them.
struct Crew {
    queues: Vec<mpsc::Sender<Dispatch>>,
    handles: Vec<JoinHandle<io::Result<Totals>>>,
    in_flight: Arc<AtomicU32>,
    most: u32,
}

impl Crew {
    /// Starts workers, and returns once each has its spare connections or could not get them.
    fn start(shared: &Arc<Shared>, plan: LevelPlan) -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let workers = plan
            .target_milli
            .div_ceil(RATE_A_WORKER_MILLI)
            .clamp(1, cores);
        let most = plan.streams.max(1);
        let spare = plan.target_milli.div_ceil(1_000).div_ceil(workers);
        let spare = spare
            .clamp(LEAST_SPARE, MOST_SPARE)
            .min(u64::from(most).div_ceil(workers));
        let mut crew = Crew {
            queues: Vec::new(),
            handles: Vec::new(),
            in_flight: Arc::default(),
            most,
        };
        let (ready, wait) = plain::channel();
        for number in 0..workers {
            // Never full: what is queued is in flight, and of that there are at most so many.
            let (queue, dispatches) = mpsc::channel(most as usize);
            let duty = Duty {
                shared: Arc::clone(shared),
                level: plan.index,
                number: u32::try_from(number).unwrap_or(0),
                workers: u32::try_from(workers).unwrap_or(1),
                spare: usize::try_from(spare).unwrap_or(1),
                in_flight: Arc::clone(&crew.in_flight),
            };
            let ready = ready.clone();
            let handle = std::thread::Builder::new()
                .name(format!("sender-{number}"))
                .spawn(move || sender::run(duty, dispatches, ready))?;
            crew.queues.push(queue);
            crew.handles.push(handle);
        }
        drop(ready);
        // Each says so once, or goes: then there is nobody left to wait for.
        while wait.recv().is_ok() {}
        Ok(crew)
    }

    /// Room for one more request in flight, which is then taken.
    fn take_room(&self) -> bool {
        let room = self.in_flight.load(Relaxed) < self.most;
        if room {
            self.in_flight.fetch_add(1, Relaxed);
        }
        room
    }

    /// Hands a request to a worker; `false` if that worker is gone.
    fn hand(&self, turn: usize, dispatch: Dispatch) -> bool {
        let queue = &self.queues[turn % self.queues.len()];
        let handed = queue.try_send(dispatch).is_ok();
        if !handed {
            self.in_flight.fetch_sub(1, Relaxed);
        }
        handed
    }

    /// Waits until every request handed over has ended.
    fn join(self) -> io::Result<Totals> {
        drop(self.queues);
        let mut totals = Totals::default();
        for handle in self.handles {
            match handle.join() {
                Ok(found) => totals.add(found?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(totals)
    }
}

/// The time between two looks at whether the run goes on.
const LOOK: Length = Length::from_millis(100);
