//! Owns the driving of a run: levels in order, workers by core, one task a stream, signals.

mod books;
mod gate;
mod heart;
mod holds;
mod live;
mod open;
pub mod probe;
mod request;
mod shared;
mod sink;
mod stream;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use measure::basis::Loop;
use measure::plan::LevelPlan;
use measure::record::{Footer, Gap, GapKind, LevelEnd, Line, Note};
use measure::time::Length;
use tokio::sync::mpsc;

use crate::clock::{self, Clock, ClockWatch};
use crate::config::GRACE;
use crate::exit::Failure;
use crate::net::wake::Worker;
use crate::recorder::Recorder;

pub use live::{Live, Shown};
pub use request::body;
pub use shared::{Form, Job};

use shared::{LevelWork, Shared, Totals};

/// Streams that one worker carries before another core is used.
const STREAMS_A_WORKER: u32 = 32;
/// A beat that stays away for longer means that this process did not run.
const STALL: Length = Length::from_secs(1);
/// How often progress is shown and clocks are watched.
const TICK: Duration = Duration::from_millis(100);

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driven {
    /// The user stopped it.
    pub interrupted: bool,
    /// The first request's answer ended the run; the sentence says why.
    pub ended: Option<String>,
}

/// Drives every level of `job` and records it. `show` is told how it goes, ten times a second.
///
/// # Errors
/// Where a worker cannot be started.
pub fn drive(
    job: Job,
    levels: &[LevelPlan],
    recorder: Recorder,
    show: &mut dyn FnMut(&Shown),
) -> Result<Driven, Failure> {
    let shared = Arc::new(Shared::new(job, recorder));
    let main = Worker::new(shared.job.clock).map_err(|error| no_worker(&error))?;
    let driven = main.run(async {
        let mut signals = Signals::listen()?;
        for level in levels {
            if shared.is_stopping() {
                break;
            }
            let end = run_level(&shared, *level, levels.len(), &mut signals, show).await?;
            for gap in shared.holds.close(level.index, end.at) {
                shared.recorder.record(Line::Gap(gap));
            }
            shared.recorder.record(Line::Level(end));
        }
        Ok(Driven {
            interrupted: shared.endings.is_asked(),
            ended: shared.gate.ended(),
        })
    })?;
    for note in shared.notes() {
        shared.recorder.record(Line::Note(note));
    }
    shared.recorder.record(Line::Footer(Footer {
        issued: shared.live.issued.load(Ordering::Relaxed),
        ended: shared.live.ended.load(Ordering::Relaxed),
        interrupted: driven.interrupted,
    }));
    Ok(driven)
}

fn no_worker(error: &std::io::Error) -> Failure {
    Failure::local(format!(
        "no worker could be started: {error}; nothing was measured"
    ))
}

async fn run_level(
    shared: &Arc<Shared>,
    plan: LevelPlan,
    levels: usize,
    signals: &mut Signals,
    show: &mut dyn FnMut(&Shown),
) -> Result<LevelEnd, Failure> {
    let clock = shared.job.clock;
    let (began, cpu) = (clock.now(), clock::cpu_time());
    let mut watch = ClockWatch::start(clock);
    let work = Arc::new(LevelWork::new(plan, began));
    shared.live.level_ended.store(0, Ordering::Relaxed);
    let (done, mut finished) = mpsc::channel(64);
    let workers = start_workers(shared, &work, &done).map_err(|error| no_worker(&error))?;
    drop(done);
    let (mut steps, mut suspends) = (0, 0);
    let mut tick = tokio::time::interval(TICK);
    let mut grace: Option<measure::time::Instant> = None;
    let mut beat = began;
    loop {
        tokio::select! {
            ended = finished.recv() => if ended.is_none() { break },
            () = signals.next() => {
                grace = grace.or(Some(clock.now() + GRACE));
                shared.endings.ask();
            }
            _ = tick.tick() => {
                note_stall(shared, plan.index, beat);
                if let Some(jump) = watch.check() {
                    steps += u32::from(jump.step_ns.is_some());
                    suspends += u32::from(jump.suspended.is_some());
                }
                if grace.is_some_and(|grace| clock.now() >= grace) {
                    shared.endings.drain();
                }
                show(&shared.live.shown(&plan, levels, shared.endings.is_asked()));
                // A terminal that takes no more text is no stall: workers go on.
                beat = clock.now();
            }
        }
    }
    let mut totals = Totals::default();
    for worker in workers {
        match worker.join() {
            Ok(Ok(found)) => totals.add(found),
            Ok(Err(error)) => return Err(no_worker(&error)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let at = clock.now();
    Ok(LevelEnd {
        index: plan.index,
        issued: totals.issued,
        in_flight: totals.in_flight,
        planned: totals.planned,
        at,
        cpu: clock::cpu_time()
            .zip(cpu)
            .map(|(after, before)| after.less(before)),
        wall: at.since_or_zero(began),
        clock_steps: steps,
        suspends,
        recorder_waits: shared.recorder.take_waits(),
        interrupted: shared.is_stopping(),
        workers: totals.workers,
    })
}

/// Records that this process stood still, where its last beat was too long ago.
fn note_stall(shared: &Shared, level: u32, beat: measure::time::Instant) {
    let now = shared.job.clock.now();
    if now.since_or_zero(beat) > STALL {
        shared.recorder.record(Line::Gap(Gap {
            level,
            kind: GapKind::Stall,
            from: beat,
            to: now,
        }));
    }
}

type Joined = std::thread::JoinHandle<std::io::Result<Totals>>;

/// One thread a core at most, with the streams dealt out evenly.
fn start_workers(
    shared: &Arc<Shared>,
    work: &Arc<LevelWork>,
    done: &mpsc::Sender<()>,
) -> std::io::Result<Vec<Joined>> {
    if work.plan.kind == Loop::Open {
        return Ok(vec![start_plan(shared, work.plan, done.clone())?]);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let streams = work.plan.streams;
    let wanted = streams.div_ceil(STREAMS_A_WORKER).max(1);
    let workers = wanted.min(u32::try_from(cores).unwrap_or(1));
    (0..workers)
        .map(|worker| {
            let (shared, work, done) = (Arc::clone(shared), Arc::clone(work), done.clone());
            let mine: Vec<u32> = (worker..streams).step_by(workers as usize).collect();
            std::thread::Builder::new()
                .name(format!("worker-{worker}"))
                .spawn(move || {
                    let totals = stream::run_all(&shared, &work, &mine);
                    // Held until here, so that the last of these to go ends the level.
                    drop(done);
                    totals
                })
        })
        .collect()
}

/// The thread that keeps to an open loop's plan; its workers are its own.
fn start_plan(
    shared: &Arc<Shared>,
    plan: LevelPlan,
    done: mpsc::Sender<()>,
) -> std::io::Result<Joined> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name("plan".into())
        .spawn(move || {
            let totals = open::run(&shared, plan);
            drop(done);
            totals
        })
}

/// SIGINT, SIGTERM and SIGHUP, each of which asks the run to end.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind).map_err(|error| {
                Failure::local(format!(
                    "signals cannot be heard: {error}; nothing was sent"
                ))
            })
        };
        // A file over the limit of its size is an error of the write then, and no end of the process.
        drop(listen(SignalKind::from_raw(
            nix::sys::signal::Signal::SIGXFSZ as i32,
        ))?);
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// A note for the page.
fn note(code: &str, text: String) -> Note {
    Note {
        code: code.into(),
        text,
    }
}
