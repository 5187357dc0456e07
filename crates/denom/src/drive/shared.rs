//! Owns what all workers share: the job, what is left to start, and the wish to end.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hyper::header::{HeaderName, HeaderValue};
use measure::api::{Api, LimitField};
use measure::plan::{LevelPlan, Stop, Warmup};
use measure::prompt::Prompts;
use measure::record::{Note, Workers};
use measure::schedule::Fates;
use measure::scrub::Scrub;
use measure::time::{Instant, Length};
use serde_json::{Map, Value};

use super::gate::Gate;
use super::heart;
use super::holds::Holds;
use super::live::Live;
use crate::clock::RunClock;
use crate::net::{Cancel, Canceller, ConnectOptions, Target, Timeouts};
use crate::recorder::Recorder;

/// What every request of a run has in common.
#[derive(Debug, Clone)]
pub struct Job {
    /// The run's clock.
    pub clock: RunClock,
    /// Where requests go.
    pub target: Target,
    /// Path and query.
    pub path: String,
    /// The whole address, for sentences.
    pub shown_url: String,
    /// The API.
    pub api: Api,
    /// The model.
    pub model: String,
    /// A stream is asked for.
    pub stream: bool,
    /// Merged into each body.
    pub body: Map<String, Value>,
    /// Headers of each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What requests say.
    pub prompts: Prompts,
    /// Takes secrets out of server texts.
    pub scrub: Arc<Scrub>,
    /// Keep prompts and answers.
    pub keep_text: bool,
    /// How long the first request may find the server not ready, and be asked again.
    pub wait_ready: Option<Length>,
    /// Pause all requests when a server asks for it with a 429.
    pub pauses: bool,
    /// How long an exchange may take.
    pub timeouts: Timeouts,
    /// How connections are opened.
    pub connect: ConnectOptions,
    /// The run's random name.
    pub run: String,
}

/// The optional parts of a request that some servers refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Ask for token counts inside the stream.
    pub usage: bool,
    /// How the limit of output is named.
    pub limit_field: LimitField,
}

/// What all workers share over a run.
#[derive(Debug)]
pub(super) struct Shared {
    pub job: Job,
    pub recorder: Recorder,
    pub gate: Gate,
    pub live: Live,
    pub endings: Endings,
    pub holds: Holds,
    /// The server was seen to close a connection after an answer.
    pub closes: AtomicBool,
    form: Mutex<Form>,
    notes: Mutex<Vec<Note>>,
    next_id: AtomicU64,
}

impl Shared {
    pub fn new(job: Job, recorder: Recorder) -> Self {
        Shared {
            job,
            recorder,
            gate: Gate::shut(),
            live: Live::default(),
            endings: Endings::new(),
            holds: Holds::default(),
            closes: AtomicBool::new(false),
            form: Mutex::new(Form {
                usage: true,
                limit_field: LimitField::MaxTokens,
            }),
            notes: Mutex::default(),
            next_id: AtomicU64::new(0),
        }
    }

    /// The next request's number.
    pub fn take_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// Nothing new is to be started.
    pub fn is_stopping(&self) -> bool {
        self.endings.is_asked() || self.recorder.has_failed() || self.gate.ended().is_some()
    }

    pub fn form(&self) -> Form {
        *self.form.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks in another form from now on, and says so on the page.
    pub fn set_form(&self, form: Form, why: Note) {
        *self.form.lock().unwrap_or_else(PoisonError::into_inner) = form;
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(why);
    }

    /// Something that the page says.
    pub fn note(&self, note: Note) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(note);
    }

    /// As [`Shared::note`], the first time.
    pub fn note_once(&self, note: Note) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.iter().any(|known| known.code == note.code) {
            notes.push(note);
        }
    }

    pub fn notes(&self) -> Vec<Note> {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The user's wish to end, and how far it goes.
#[derive(Debug)]
pub struct Endings {
    asked: AtomicU8,
    drained: AtomicBool,
    canceller: Canceller,
    cancel: Cancel,
}

impl Endings {
    fn new() -> Self {
        let (canceller, cancel) = Canceller::new();
        Endings {
            asked: AtomicU8::new(0),
            drained: AtomicBool::new(false),
            canceller,
            cancel,
        }
    }

    /// Asked once, nothing new starts; asked twice, everything stops at once.
    pub fn ask(&self) {
        if self.asked.fetch_add(1, Relaxed) >= 1 {
            self.canceller.cancel();
        }
    }

    /// What still runs is cut off and counts as drained.
    pub fn drain(&self) {
        self.drained.store(true, Relaxed);
        self.canceller.cancel();
    }

    /// Whether it was asked to end.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Relaxed) > 0
    }

    /// Whether what is cut off counts as drained, not as cancelled.
    pub fn is_drain(&self) -> bool {
        self.drained.load(Relaxed)
    }

    /// Hears that running requests are to stop.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

/// A level while it runs: what is left to start.
#[derive(Debug)]
pub(super) struct LevelWork {
    pub plan: LevelPlan,
    began: Instant,
    warm: AtomicU64,
    measured: AtomicU64,
    measured_from: OnceLock<Instant>,
    /// Holds streams back until all have their connection.
    pub ready: tokio::sync::Barrier,
}

impl LevelWork {
    pub fn new(plan: LevelPlan, began: Instant) -> Self {
        LevelWork {
            plan,
            began,
            warm: AtomicU64::new(0),
            measured: AtomicU64::new(0),
            measured_from: OnceLock::new(),
            ready: tokio::sync::Barrier::new(plan.streams as usize),
        }
    }

    /// Whether its time is up, so that it starts nothing more.
    pub fn is_over(&self, now: Instant) -> bool {
        let spent = |from: &Instant| now.since_or_zero(*from);
        let limit = self
            .plan
            .limit
            .is_some_and(|limit| spent(&self.began) >= limit);
        let stop = match self.plan.stop {
            Stop::Requests(_) => false,
            Stop::Duration(length) => self
                .measured_from
                .get()
                .is_some_and(|from| spent(from) >= length),
        };
        limit || stop
    }

    /// Whether every request of its number has been started.
    pub fn is_all_taken(&self) -> bool {
        match self.plan.stop {
            Stop::Requests(n) => self.measured.load(Relaxed) >= n,
            Stop::Duration(_) => false,
        }
    }

    /// Whether there is another request to start, and whether it belongs to the warm-up.
    pub fn take(&self, now: Instant) -> Option<Ticket> {
        let spent = now.since_or_zero(self.began);
        if self.plan.limit.is_some_and(|limit| spent >= limit) {
            return None;
        }
        let warm = match self.plan.warmup {
            Warmup::Requests(n) => self.warm.fetch_add(1, Relaxed) < n,
            Warmup::Duration(length) => spent < length,
        };
        if warm {
            return Some(Ticket { warmup: true });
        }
        let from = *self.measured_from.get_or_init(|| now);
        let left = match self.plan.stop {
            Stop::Requests(n) => self.measured.fetch_add(1, Relaxed) < n,
            Stop::Duration(length) => now.since_or_zero(from) < length,
        };
        left.then_some(Ticket { warmup: false })
    }

    /// A request that is asked again has not used its right to be started.
    pub fn give_back(&self, ticket: Ticket) {
        let count = match ticket.warmup {
            true => &self.warm,
            false => &self.measured,
        };
        count.fetch_sub(1, Relaxed);
    }
}

/// What the books of a level, or of a part of it, come to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    /// Requests issued.
    pub issued: u64,
    /// The integral of requests in flight.
    pub in_flight: Length,
    /// What became of the plan of an open loop.
    pub planned: Option<Fates>,
    /// How the worst worker fared.
    pub workers: Option<Workers>,
}

impl Totals {
    /// Takes in what another part comes to.
    pub fn add(&mut self, other: Totals) {
        self.issued += other.issued;
        self.in_flight += other.in_flight;
        self.planned = self.planned.or(other.planned);
        self.workers = heart::worst(self.workers.into_iter().chain(other.workers));
    }
}

/// The right to start one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    pub warmup: bool,
}
