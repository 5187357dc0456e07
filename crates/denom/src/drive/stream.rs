//! Owns one stream: a connection of its own, and one request after another until none is left.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use measure::api::{LimitField, clip};
use measure::judge::{Failure as Kind, Outcome, outcome};
use measure::record::{Line, Sent};
use measure::time::Length;
use measure::trace::{self, Trace};

use super::books::Books;
use super::heart::Heart;
use super::shared::{Form, LevelWork, Shared, Ticket, Totals};
use super::{note, request};
use crate::clock::{Clock, RunClock};
use crate::net::{Connection, Wake, connect::connect, wake::Worker};

/// The first wait after a refused request; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Length = Length::from_millis(50);
/// A stream that is refused again and again tries once a second.
const LONGEST_PAUSE: Length = Length::from_secs(1);

/// Most bytes of the model's name in a sentence.
const SHOWN_MODEL: usize = 200;

/// Runs `streams` of a level on this thread; what its books come to.
pub(super) fn run_all(
    shared: &Arc<Shared>,
    work: &Arc<LevelWork>,
    streams: &[u32],
) -> std::io::Result<Totals> {
    let worker = Worker::new(shared.job.clock)?;
    let books = Rc::new(RefCell::new(Books::open(shared.job.clock.now())));
    let wake = worker.wake().clone();
    let heart = Heart::new(shared.job.clock);
    worker.run(async {
        let beats = tokio::task::spawn_local(Heart::beat(Rc::clone(&heart)));
        let tasks: Vec<_> = streams
            .iter()
            .map(|number| {
                let stream = Stream {
                    shared: Arc::clone(shared),
                    work: Arc::clone(work),
                    books: Rc::clone(&books),
                    wake: wake.clone(),
                    number: *number,
                    connection: None,
                    fresh: trace::Connection::default(),
                    pause: FIRST_PAUSE,
                };
                tokio::task::spawn_local(stream.run())
            })
            .collect();
        for task in tasks {
            if let Err(error) = task.await
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        beats.abort();
    });
    let (issued, in_flight) = books.borrow().totals();
    Ok(Totals {
        issued,
        in_flight,
        planned: None,
        workers: Some(heart.borrow().fared()),
    })
}

/// How often a stream that is held back looks whether the run goes on at all.
const LOOK: Length = Length::from_millis(100);
/// Looks for a close after the first answer on a connection, and the time between two.
const SETTLE_LOOKS: u32 = 20;
const SETTLE_LOOK: Length = Length::from_millis(1);

struct Stream {
    shared: Arc<Shared>,
    work: Arc<LevelWork>,
    books: Rc<RefCell<Books>>,
    wake: Wake,
    number: u32,
    connection: Option<Connection<RunClock>>,
    /// How the open connection came about, until its first request has taken note of it.
    fresh: trace::Connection,
    pause: Length,
}

impl Stream {
    async fn run(mut self) {
        // Connections first: handshakes inside the burst would bend the first latencies.
        let opened = match self.shared.holds.wait(self.shared.job.clock.now()) {
            Some(_) => Ok(()),
            None => self.open().await,
        };
        self.work.ready.wait().await;
        let leads = self.number == 0 && self.work.plan.index == 0;
        if !leads && !self.shared.gate.pass().await {
            return;
        }
        let mut failed = opened.err();
        while self.has_leave().await {
            if failed.is_none() && !self.is_ready() {
                failed = self.open().await.err();
            }
            let Some(ticket) = self.work.take(self.shared.job.clock.now()) else {
                break;
            };
            let alone = leads && !self.shared.gate.is_open();
            let trace = self.request(ticket, alone, failed.take()).await;
            if alone && self.is_asked_again(&trace) {
                self.work.give_back(ticket);
            }
            if alone {
                self.weigh_first(&trace);
            }
            self.rest_after(&trace).await;
            self.settle(&trace).await;
        }
    }

    /// Whether to go on, once requests are no longer held back. Not while the run is to end; and
    /// not for longer than the level has time.
    async fn has_leave(&self) -> bool {
        let shared = &self.shared;
        let now = || shared.job.clock.now();
        while !shared.is_stopping() && !self.work.is_over(now()) {
            match shared.holds.wait(now()) {
                None => return true,
                Some(wait) => tokio::time::sleep(wait.min(LOOK).into()).await,
            }
        }
        false
    }

    /// Whether there is an open connection that may carry a request.
    fn is_ready(&mut self) -> bool {
        let open = self.connection.as_mut().is_some_and(Connection::is_open);
        open && (!self.fresh.reused || !self.shared.closes.load(Relaxed))
    }

    /// Some servers close a connection after an answer without saying so in it: the close comes a
    /// moment later. After the first answer on a connection it is waited for, once, so that no
    /// request is sent into it; where it comes, every request gets a connection of its own.
    async fn settle(&mut self, trace: &Trace) {
        // What stays open behind its terminal event is closed from here.
        if trace.transport == trace::Transport::Lingered {
            let text = "the server leaves the body open after its terminal event: after each answer its stream waited a second for the end, and then took a new connection";
            self.shared.note_once(note("body_left_open", text.into()));
            return;
        }
        if trace.connection.reused || self.shared.closes.load(Relaxed) || self.work.is_all_taken() {
            return;
        }
        // Behind an answer that ended otherwise the connection was closed from here.
        use trace::Transport::{Closed, Complete};
        if !matches!(trace.transport, Complete | Closed) {
            return;
        }
        if let Some(connection) = self.connection.as_mut() {
            wait_for_close(&self.shared, connection).await;
        }
    }

    /// Opens a connection; how it came about is kept for the request that uses it first.
    async fn open(&mut self) -> Result<(), crate::net::ConnectError> {
        let job = &self.shared.job;
        let cancel = self.shared.endings.cancel();
        let opening = connect(&job.target, &job.connect, &job.clock, &self.wake);
        let connection = tokio::select! {
            connection = opening => connection?,
            () = cancel.cancelled() => return Ok(()),
        };
        // The name was looked up once, before the first connection.
        let is_first = self.number == 0 && self.work.plan.index == 0;
        self.fresh = request::opened(&connection, job.target.dns.filter(|_| is_first));
        self.connection = Some(connection);
        Ok(())
    }

    /// Sends one request and records it; its trace, without the reads.
    async fn request(
        &mut self,
        ticket: Ticket,
        alone: bool,
        failed: Option<crate::net::ConnectError>,
    ) -> Trace {
        let shared = Arc::clone(&self.shared);
        let job = &shared.job;
        let id = shared.take_id();
        let prompt = job.prompts.prompt(id);
        let body = request::body(job, &prompt, shared.form());
        let warmup = ticket.warmup;
        let start = job.clock.now();
        self.books.borrow_mut().begin(start);
        shared.live.issued.fetch_add(1, Relaxed);
        let sent = Sent {
            id,
            level: self.work.plan.index,
            stream: self.number,
            warmup,
            start,
            planned: None,
        };
        let trace = request::begun(&shared, sent, &prompt);
        let mut trace = self.send(trace, id, &body, alone, failed).await;
        trace.start = start;
        trace.planned = trace.sent.unwrap_or(start);
        trace.finish = job.clock.now();
        // A first request that is asked again is not measured.
        trace.warmup |= alone && self.is_asked_again(&trace);
        self.books.borrow_mut().end(trace.finish);
        shared.live.count(&trace);
        shared.holds.learn(&trace);
        // What follows from its end needs no reads, which are nearly all of it.
        let reads = std::mem::take(&mut trace.reads);
        let end = trace.clone();
        trace.reads = reads;
        shared.recorder.record(Line::Ended(Box::new(trace)));
        end
    }

    async fn send(
        &mut self,
        mut trace: Trace,
        id: u64,
        body: &serde_json::Value,
        alone: bool,
        failed: Option<crate::net::ConnectError>,
    ) -> Trace {
        if let Some(error) = failed {
            return request::unconnected(trace, &error, &self.shared.job.scrub);
        }
        let Some(connection) = self.connection.as_mut() else {
            trace.transport = trace::Transport::Cancelled;
            return trace;
        };
        trace.connection = request::used(&mut self.fresh);
        match request::build(&self.shared.job, id, body) {
            Ok(request) => request::exchange(&self.shared, connection, request, trace, alone).await,
            Err(error) => request::unbuilt(trace, &error),
        }
    }

    /// Whether the first request of a run is to be asked again: in another form, or since the server
    /// is not ready yet and the user would wait for it.
    fn is_asked_again(&self, trace: &Trace) -> bool {
        let shared = &self.shared;
        let spent = trace.finish.since_or_zero(measure::time::Instant::ORIGIN);
        let waits = shared.job.wait_ready.is_some_and(|limit| spent < limit);
        refused_form(shared.form(), trace).is_some() || (waits && trace.status == Some(503))
    }

    /// What the first answer of a run means: others may go, it is asked in another form, or the
    /// run ends here.
    fn weigh_first(&self, trace: &Trace) {
        let shared = &self.shared;
        let said = trace
            .error
            .as_ref()
            .map_or(String::new(), |error| error.message.clone());
        if let Some((form, what)) = refused_form(shared.form(), trace) {
            shared.set_form(
                form,
                note(
                    "retried_form",
                    format!("the server refused {what}; requests go without it, in the other form"),
                ),
            );
            return;
        }
        if self.is_asked_again(trace) {
            return;
        }
        match why_end(shared, trace, &said) {
            Some(why) => shared.gate.end(why),
            None => shared.gate.open(),
        }
    }

    /// A stream that is refused must not spin.
    async fn rest_after(&mut self, trace: &Trace) {
        let refused = matches!(
            outcome(trace),
            Outcome::Failed(
                Kind::ConnectError
                    | Kind::LocalResource
                    | Kind::RateLimited
                    | Kind::HttpError(_)
                    | Kind::StaleConn
            )
        );
        if !refused {
            self.pause = FIRST_PAUSE;
            return;
        }
        let cancel = self.shared.endings.cancel();
        tokio::select! {
            () = tokio::time::sleep(self.pause.into()) => {}
            () = cancel.cancelled() => {}
        }
        self.pause = (self.pause + self.pause).min(LONGEST_PAUSE);
    }
}

/// Waits a moment for a close after an answer, and remembers for the run that there was one.
pub(super) async fn wait_for_close(shared: &Shared, connection: &mut Connection<RunClock>) {
    for _ in 0..SETTLE_LOOKS {
        if !connection.is_open() {
            if !shared.closes.swap(true, Relaxed) {
                let text = "the server closes each connection after its answer: each request had a new one";
                shared.note(note("no_keep_alive", text.into()));
            }
            return;
        }
        tokio::time::sleep(SETTLE_LOOK.into()).await;
    }
}

/// The other form to ask in, where a refusal names what it minds.
pub(super) fn refused_form(form: Form, trace: &Trace) -> Option<(Form, &'static str)> {
    let error = trace.error.as_ref().filter(|_| trace.status == Some(400))?;
    other_form(form, &error.message)
}

fn other_form(form: Form, said: &str) -> Option<(Form, &'static str)> {
    if form.usage && (said.contains("stream_options") || said.contains("include_usage")) {
        return Some((
            Form {
                usage: false,
                ..form
            },
            "stream_options",
        ));
    }
    if form.limit_field == LimitField::MaxTokens && said.contains("max_tokens") {
        return Some((
            Form {
                limit_field: LimitField::MaxCompletionTokens,
                ..form
            },
            "max_tokens",
        ));
    }
    None
}

/// Why a run cannot go on after its first answer, and what to do.
pub(super) fn why_end(shared: &Shared, trace: &Trace, said: &str) -> Option<String> {
    use measure::trace::Transport;
    let url = &shared.job.shown_url;
    let quoted = if said.is_empty() {
        String::new()
    } else {
        format!(" (the server says: {said})")
    };
    match (trace.status, &trace.transport) {
        (Some(401 | 403), _) => Some(format!(
            "{url} refuses the key with status {}{quoted}: put the right key into the environment variable of --api-key-env",
            trace.status.unwrap_or(401)
        )),
        (Some(404), _) => Some(format!(
            "{url} answers 404{quoted}: check the path, and the model {:?} with -m",
            clip(&shared.job.model, SHOWN_MODEL)
        )),
        (Some(status @ (400 | 422)), _) => Some(format!(
            "{url} refuses the request with status {status}{quoted}: check --body and the model, see --dry-run for what is sent"
        )),
        // What this machine lacks is no answer of the server: the level says so.
        (_, Transport::NoConnection { local: true, .. }) => None,
        (_, Transport::NoConnection { text, .. }) => Some(format!("{text}: {}", shared.job.connect.http.what_to_check())),
        (_, Transport::Timeout { phase: trace::Phase::Dns | trace::Phase::Connect | trace::Phase::Tls }) => {
            Some(format!("{url} did not let us connect in time: {}", shared.job.connect.http.what_to_check()))
        }
        _ => trace.malformed.as_ref().filter(|_| trace.first_content.is_none()).map(|text| {
            format!("{url} does not answer as this API does: {text}; check the path, or name the API with --api")
        }),
    }
}
