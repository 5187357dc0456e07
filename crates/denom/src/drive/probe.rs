//! Owns the driving of a probe: one request after another, the sides in turns, and what heads say.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Request, Version};
use measure::api::clip;
use measure::decode::{Decoder, Options, Progress};
use measure::judge::{Guards, Judged, Outcome, judge, outcome};
use measure::probe::head::{Head, NAMES};
use measure::probe::plan::Lengths;
use measure::record::{Footer, LevelEnd, Line, Sent};
use measure::stamp::Stamp;
use measure::time::Length;
use measure::trace::{self, Trace};

use super::books::Books;
use super::shared::{Job, Shared};
use super::sink::Taker;
use super::stream::{refused_form, why_end};
use super::{Signals, no_worker, request};
use crate::clock::{self, Clock, RunClock};
use crate::exit::Failure;
use crate::net::connect::connect;
use crate::net::wake::Worker;
use crate::net::{ConnectError, Connection, Sink, Wake};
use crate::recorder::Recorder;

/// What SDKs offer: their HTTP libraries take any of these and unpack it unseen.
const SDK_ENCODINGS: &str = "gzip, deflate, br";
/// The user agent of the commonest SDK.
const SDK_AGENT: &str = "OpenAI/Python 1.109.1";
/// Between two requests, so that a server's close of the connection is heard before the next.
const PAUSE: Length = Length::from_millis(20);
/// Failures in a row from which no more is asked.
const MOST_FAILURES: u32 = 4;
/// Most bytes kept of a header's value.
const VALUE_LIMIT: usize = 200;
/// Times that a refused form is asked in another.
const FORMS: u32 = 3;

/// One side: how its server is asked.
#[derive(Debug)]
pub struct Route {
    /// Where, and in which API.
    pub job: Job,
    /// With the headers that SDKs send.
    pub as_sdk: bool,
}

/// What is to be asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Output lengths.
    pub lengths: Lengths,
    /// They may be made shorter for a slow server.
    pub may_shrink: bool,
    /// Places of the lengths, in order.
    pub order: Vec<usize>,
}

/// How a probe goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Going {
    /// Requests done with.
    pub done: u64,
    /// Of how many.
    pub of: u64,
    /// Failures among them.
    pub failed: u64,
    /// Chunks that came.
    pub chunks: u64,
    /// It was asked to end.
    pub ending: bool,
}

/// How a probe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// Output lengths that were asked for.
    pub lengths: Lengths,
    /// The user stopped it.
    pub interrupted: bool,
    /// A first answer ended it; the sentence says why.
    pub ended: Option<String>,
}

/// Asks every side, in turns, and records it. `show` is told how it goes after each request.
///
/// # Errors
/// Where this machine cannot drive it.
pub fn drive(
    routes: Vec<Route>,
    asked: &Asked,
    recorder: &Recorder,
    show: &mut dyn FnMut(&Going),
) -> Result<Probed, Failure> {
    let clock = match routes.first() {
        Some(route) => route.job.clock,
        None => return Err(Failure::usage("there is no side to probe")),
    };
    let worker = Worker::new(clock).map_err(|error| no_worker(&error))?;
    let wake = worker.wake().clone();
    let sides: Vec<Side> = routes
        .into_iter()
        .zip(0..)
        .map(|(route, level)| Side::new(route, level, recorder, wake.clone()))
        .collect();
    let probed = worker.run(async {
        let turns = asked.order.len() as u64 + 1;
        let going = Going {
            done: 0,
            of: sides.len() as u64 * turns,
            failed: 0,
            chunks: 0,
            ending: false,
        };
        let signals = Signals::listen()?;
        Ok(Table {
            sides,
            signals,
            next_id: 0,
            going,
            show,
        }
        .run(asked)
        .await)
    })?;
    Ok(probed)
}

/// Everyone at the table is asked in turn.
struct Table<'a> {
    sides: Vec<Side>,
    signals: Signals,
    next_id: u64,
    going: Going,
    show: &'a mut dyn FnMut(&Going),
}

impl Table<'_> {
    async fn run(mut self, asked: &Asked) -> Probed {
        let mut lengths = asked.lengths;
        let mut ended = None;
        for place in 0..self.sides.len() {
            let [_, middle, _] = asked.lengths.tokens();
            match self.first(place, middle).await {
                Ok(speed) if asked.may_shrink => {
                    let fits = |(first, each)| asked.lengths.within_budget(first, each);
                    lengths = shorter(lengths, speed.map_or(lengths, fits));
                }
                Ok(_) => {}
                Err(why) => {
                    ended = Some(why);
                    break;
                }
            }
        }
        if ended.is_none() {
            self.measure(lengths, &asked.order).await;
        }
        self.close();
        Probed {
            lengths,
            interrupted: self.going.ending,
            ended,
        }
    }

    /// A side's first request, which is discarded: it may be cold, and shows the server's speed.
    async fn first(
        &mut self,
        place: usize,
        tokens: u64,
    ) -> Result<Option<(Length, Length)>, String> {
        for _ in 0..=FORMS {
            let Some(trace) = self.ask(place, tokens, true).await else {
                return Ok(None);
            };
            let shared = &self.sides[place].shared;
            if let Some((form, what)) = refused_form(shared.form(), &trace) {
                let text =
                    format!("the server refused {what}; requests go without it, in the other form");
                shared.set_form(form, super::note("retried_form", text));
                continue;
            }
            let said = trace.error.as_ref().map(|error| error.message.clone());
            if let Some(why) = why_end(shared, &trace, &said.unwrap_or_default()) {
                return Err(why);
            }
            let guards = Guards::default();
            return Ok(speed(&judge(trace, &guards, shared.job.api.has_sentinel())));
        }
        Ok(None)
    }

    async fn measure(&mut self, lengths: Lengths, order: &[usize]) {
        let tokens = lengths.tokens();
        let count = self.sides.len();
        let mut failures = vec![0; count];
        for (turn, length) in order.iter().enumerate() {
            for step in 0..count {
                // Whoever begins changes from turn to turn, so no side always goes second.
                let place = (turn + step) % count;
                if failures.iter().any(|failed| *failed >= MOST_FAILURES) {
                    return;
                }
                let Some(trace) = self.ask(place, tokens[*length], false).await else {
                    return;
                };
                let failed = outcome(&trace) != Outcome::Ok;
                failures[place] = if failed { failures[place] + 1 } else { 0 };
            }
        }
    }

    /// One request of a side; none once the user has asked for the end.
    async fn ask(&mut self, place: usize, tokens: u64, discard: bool) -> Option<Trace> {
        if self.going.ending || self.sides[place].shared.recorder.has_failed() {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        let endings: Vec<Arc<Shared>> = self.sides.iter().map(|s| Arc::clone(&s.shared)).collect();
        let (side, signals) = (&mut self.sides[place], &mut self.signals);
        let going = &mut self.going;
        let mut asking = pin!(side.ask(id, tokens, discard));
        let trace = loop {
            tokio::select! {
                trace = &mut asking => break trace,
                () = signals.next() => {
                    going.ending = true;
                    (self.show)(going);
                    endings.iter().for_each(|shared| shared.endings.ask());
                }
            }
        };
        going.done += 1;
        going.failed += u64::from(outcome(&trace) != Outcome::Ok);
        going.chunks += trace.chunks();
        (self.show)(going);
        Some(trace)
    }

    /// Writes each side's books, and the end.
    fn close(&self) {
        let Some(first) = self.sides.first() else {
            return;
        };
        let mut issued = 0;
        for side in &self.sides {
            issued += side.end(self.going.ending);
            for note in side.shared.notes() {
                side.shared.recorder.record(Line::Note(note));
            }
        }
        first.shared.recorder.record(Line::Footer(Footer {
            issued,
            ended: issued,
            interrupted: self.going.ending,
        }));
    }
}

/// The shorter of two sets of lengths.
fn shorter(one: Lengths, other: Lengths) -> Lengths {
    match one.tokens()[2] <= other.tokens()[2] {
        true => one,
        false => other,
    }
}

/// Time to first content and time a token, as one answer shows them: at most so fast.
fn speed(judged: &Judged) -> Option<(Length, Length)> {
    let trace = &judged.trace;
    let sent = trace.sent.filter(|_| judged.outcome == Outcome::Ok)?;
    let (first, last) = (trace.first_content?, trace.last_content?);
    let chunks: u64 = judged.arrivals.iter().map(|arrival| arrival.chunks).sum();
    let tokens = judged.tokens.billed.unwrap_or(chunks).max(1);
    let spread = last.since_or_zero(first);
    let total = trace.end?.since_or_zero(sent);
    // Where the answer came in a piece, all of its time may be the tokens'.
    let (first, all) = match spread.nanos() * 2 >= total.nanos() {
        true => (first.since_or_zero(sent), spread),
        false => (Length::ZERO, total),
    };
    Some((first, Length::from_nanos(all.nanos() / tokens)))
}

/// One way to the server, with a connection of its own.
struct Side {
    shared: Arc<Shared>,
    wake: Wake,
    level: u32,
    as_sdk: bool,
    books: Books,
    connection: Option<Connection<RunClock>>,
    fresh: trace::Connection,
    began: measure::time::Instant,
    cpu: Option<Length>,
}

impl Side {
    fn new(route: Route, level: u32, recorder: &Recorder, wake: Wake) -> Self {
        let began = route.job.clock.now();
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
        }
    }

    async fn ask(&mut self, id: u64, tokens: u64, discard: bool) -> Trace {
        tokio::time::sleep(PAUSE.into()).await;
        let failed = self.open().await.err();
        let shared = Arc::clone(&self.shared);
        let job = &shared.job;
        let mut prompt = job.prompts.prompt(id);
        prompt.output_tokens = tokens;
        let body = request::body(job, &prompt, shared.form());
        let start = job.clock.now();
        self.books.begin(start);
        let level = self.level;
        shared.recorder.record(Line::Sent(Sent {
            id,
            level,
            stream: 0,
            warmup: discard,
            start,
            planned: None,
        }));
        let trace = request::begun(id, level, 0, discard, start, &prompt, job.keep_text);
        let mut trace = match failed {
            Some(error) => request::unconnected(trace, &error, &job.scrub),
            None => self.send(trace, id, &body).await,
        };
        trace.start = start;
        trace.planned = trace.sent.unwrap_or(start);
        trace.finish = job.clock.now();
        self.books.end(trace.finish);
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
        self.fresh = trace::Connection {
            reused: false,
            dns: job.target.dns.filter(|_| self.books.totals().0 == 0),
            tcp: Some(connection.opened.tcp),
            tls: connection.opened.tls,
        };
        self.connection = Some(connection);
        Ok(())
    }

    async fn send(&mut self, mut trace: Trace, id: u64, body: &serde_json::Value) -> Trace {
        let Some(connection) = self.connection.as_mut() else {
            trace.transport = trace::Transport::Cancelled;
            return trace;
        };
        let used = trace::Connection {
            reused: true,
            ..trace::Connection::default()
        };
        trace.connection = std::mem::replace(&mut self.fresh, used);
        let mut request = match request::build(&self.shared.job, id, body) {
            Ok(request) => request,
            Err(error) => {
                let text = error.to_string();
                trace.transport = trace::Transport::Broken { text };
                return trace;
            }
        };
        if self.as_sdk {
            dress(&mut request);
        }
        exchange(&self.shared, connection, request, trace).await
    }

    /// Writes the side's books; how many requests it issued.
    fn end(&self, interrupted: bool) -> u64 {
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
            clock_steps: 0,
            suspends: 0,
            recorder_waits: self.shared.recorder.take_waits(),
            interrupted,
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
