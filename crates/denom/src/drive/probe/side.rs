//! Owns one side of a probe: its connection, its requests, and what the heads of answers say.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Request, Version};
use measure::api::clip;
use measure::decode::{Decoder, Options, Progress};
use measure::probe::head::{Head, NAMES};
use measure::record::{LevelEnd, Line, Sent};
use measure::stamp::Stamp;
use measure::time::Length;
use measure::trace::{self, Trace};

use super::super::books::Books;
use super::super::shared::{Job, Shared};
use super::super::sink::Taker;
use super::super::{note, request};
use super::Route;
use crate::clock::{self, Clock, ClockWatch, RunClock};
use crate::net::connect::connect;
use crate::net::{ConnectError, Connection, Sink, Wake};
use crate::recorder::Recorder;

/// What SDKs offer: their HTTP libraries take any of these and unpack it unseen.
const SDK_ENCODINGS: &str = "gzip, deflate, br";
/// The user agent of the commonest SDK.
const SDK_AGENT: &str = "OpenAI/Python 1.109.1";
/// Between two requests, so that a server's close of the connection is heard before the next.
const PAUSE: Length = Length::from_millis(20);
/// Most bytes kept of a header's value.
const VALUE_LIMIT: usize = 200;

/// One way to the server, with a connection of its own.
pub(super) struct Side {
    pub(super) shared: Arc<Shared>,
    wake: Wake,
    level: u32,
    as_sdk: bool,
    books: Books,
    connection: Option<Connection<RunClock>>,
    fresh: trace::Connection,
    began: measure::time::Instant,
    cpu: Option<Length>,
    watch: ClockWatch,
    clock_steps: u32,
    suspends: u32,
}

impl Side {
    pub(super) fn new(route: Route, level: u32, recorder: &Recorder, wake: Wake) -> Self {
        let clock = route.job.clock;
        let began = clock.now();
        Side {
            shared: Arc::new(Shared::new(route.job, recorder.clone())),
            wake,
            level,
            as_sdk: route.as_sdk,
            books: Books::open(began),
            connection: None,
            fresh: trace::Connection::default(),
            began,
            cpu: clock::cpu_time(),
            watch: ClockWatch::start(clock),
            clock_steps: 0,
            suspends: 0,
        }
    }

    pub(super) async fn ask(&mut self, id: u64, tokens: u64, discard: bool) -> Trace {
        tokio::time::sleep(PAUSE.into()).await;
        let failed = self.open().await.err();
        let shared = Arc::clone(&self.shared);
        let job = &shared.job;
        let mut prompt = job.prompts.prompt(id);
        prompt.output_tokens = tokens;
        let body = request::body(job, &prompt, shared.form());
        let start = job.clock.now();
        self.books.begin(start);
        let sent = Sent {
            id,
            level: self.level,
            stream: 0,
            warmup: discard,
            start,
            planned: None,
        };
        let trace = request::begun(&shared, sent, &prompt);
        let mut trace = match failed {
            Some(error) => request::unconnected(trace, &error, &job.scrub),
            None => self.send(trace, id, &body).await,
        };
        trace.start = start;
        trace.planned = trace.sent.unwrap_or(start);
        trace.finish = job.clock.now();
        self.books.end(trace.finish);
        self.watch_clocks();
        shared.recorder.record(Line::Ended(Box::new(trace.clone())));
        trace
    }

    /// Opens a connection unless one is open.
    async fn open(&mut self) -> Result<(), ConnectError> {
        if self.connection.as_mut().is_some_and(Connection::is_open) {
            return Ok(());
        }
        let job = &self.shared.job;
        let cancel = self.shared.endings.cancel();
        let opening = connect(&job.target, &job.connect, &job.clock, &self.wake);
        let connection = tokio::select! {
            connection = opening => connection?,
            () = cancel.cancelled() => return Ok(()),
        };
        let is_first = self.books.totals().0 == 0;
        self.fresh = request::opened(&connection, job.target.dns.filter(|_| is_first));
        self.connection = Some(connection);
        Ok(())
    }

    async fn send(&mut self, mut trace: Trace, id: u64, body: &serde_json::Value) -> Trace {
        let Some(connection) = self.connection.as_mut() else {
            trace.transport = trace::Transport::Cancelled;
            return trace;
        };
        trace.connection = request::used(&mut self.fresh);
        let mut request = match request::build(&self.shared.job, id, body) {
            Ok(request) => request,
            Err(error) => return request::unbuilt(trace, &error),
        };
        if self.as_sdk {
            dress(&mut request);
        }
        exchange(&self.shared, connection, request, trace).await
    }

    /// Looks whether the clocks held since the request before, and says so where they did not: an
    /// experiment has no verdict on its own times.
    fn watch_clocks(&mut self) {
        let Some(jump) = self.watch.check() else {
            return;
        };
        if jump.step_ns.is_some() {
            self.clock_steps += 1;
            let text = "the wall clock jumped during the experiment, and kernel stamps count by it: run it again";
            self.shared.note_once(note("clock_step", text.into()));
        }
        if jump.suspended.is_some() {
            self.suspends += 1;
            let text = "this machine was suspended during the experiment: run it again";
            self.shared.note_once(note("suspended", text.into()));
        }
    }

    /// Writes the side's books; how many requests it issued.
    pub(super) fn end(&self, interrupted: bool) -> u64 {
        let (issued, in_flight) = self.books.totals();
        let at = self.shared.job.clock.now();
        self.shared.recorder.record(Line::Level(LevelEnd {
            index: self.level,
            issued,
            in_flight,
            planned: None,
            at,
            cpu: clock::cpu_time()
                .zip(self.cpu)
                .map(|(after, before)| after.less(before)),
            wall: at.since_or_zero(self.began),
            clock_steps: self.clock_steps,
            suspends: self.suspends,
            recorder_waits: self.shared.recorder.take_waits(),
            interrupted,
            workers: None,
        }));
        issued
    }
}

/// Puts an SDK's headers in the place of denom's own.
fn dress<B>(request: &mut Request<B>) {
    let headers = request.headers_mut();
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(SDK_ENCODINGS));
    headers.insert(USER_AGENT, HeaderValue::from_static(SDK_AGENT));
}

/// Hears what the head says of the path, and hands everything on.
struct Listener<'a> {
    taker: Taker<'a>,
    http: &'static str,
    headers: Option<HeaderMap>,
}

impl Sink for Listener<'_> {
    fn version(&mut self, version: Version) {
        self.http = match version {
            Version::HTTP_09 => "0.9",
            Version::HTTP_10 => "1.0",
            Version::HTTP_2 => "2",
            Version::HTTP_3 => "3",
            _ => "1.1",
        };
    }

    fn head(&mut self, stamp: Stamp, status: u16, headers: &HeaderMap) {
        self.headers = Some(headers.clone());
        self.taker.head(stamp, status, headers);
    }

    fn data(&mut self, stamp: Stamp, bytes: &[u8]) -> Progress {
        self.taker.data(stamp, bytes)
    }
}

async fn exchange(
    shared: &Shared,
    connection: &mut Connection<RunClock>,
    request: Request<http_body_util::Full<bytes::Bytes>>,
    trace: Trace,
) -> Trace {
    let job = &shared.job;
    let options = Options {
        api: job.api,
        // How the text begins tells reasoning inside it; it is let go of again below.
        keep_text: true,
        scrub: job.scrub.clone(),
    };
    let mut listener = Listener {
        taker: Taker {
            decoder: Decoder::new(options, trace),
            gate: None,
            pauses: None,
            moved: None,
        },
        http: "1.1",
        headers: None,
    };
    let done = connection
        .exchange(
            request,
            &job.timeouts,
            &mut listener,
            shared.endings.cancel(),
        )
        .await;
    let (http, headers) = (listener.http, listener.headers);
    let moved = listener.taker.moved;
    let moved = moved.map(|origin| request::redirected(&origin, &job.scrub));
    let drain = shared.endings.is_drain();
    let mut trace = request::finish(listener.taker.decoder, &done, moved, drain);
    let begins = trace.text.as_deref().map(str::trim_start).unwrap_or("");
    let reasoning_inside = ["<think", "<reasoning", "<thought"]
        .iter()
        .any(|tag| begins.starts_with(tag));
    trace.text = trace.text.filter(|_| job.keep_text);
    trace.path = headers.map(|headers| {
        Box::new(Head {
            http: http.to_owned(),
            headers: named(&headers, job),
            reasoning_inside,
        })
    });
    trace
}

/// The headers that say something of the path.
fn named(headers: &HeaderMap, job: &Job) -> BTreeMap<String, String> {
    let of = |name: &&str| {
        let values = headers.get_all(*name).iter();
        let texts: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
        let text = clip(&job.scrub.apply(&texts.join(", ")), VALUE_LIMIT);
        (!texts.is_empty()).then(|| ((*name).to_owned(), text))
    };
    NAMES.iter().filter_map(of).collect()
}
