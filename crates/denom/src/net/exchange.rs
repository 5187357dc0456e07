//! Owns one HTTP exchange: a request out, its answer in, and how it ended.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::HeaderMap;
pub use measure::decode::Progress;
use measure::stamp::Stamp;
use measure::time::{Instant, Length};

use super::answer;
use super::cancel::Cancel;
use super::connect::Connection;
use super::deadline::{Alarm, Deadlines};
use super::http::Sender;
use super::tap::Tap;
use super::turns::{self, Turns};
use crate::clock::Clock;

/// Takes an answer as it comes.
pub trait Sink {
    /// The response head, with the stamp of the read that ended it. Heads of 1xx never come here.
    fn head(&mut self, stamp: Stamp, status: u16, headers: &HeaderMap);

    /// The HTTP version of the response head, told before the head. Few need it.
    fn version(&mut self, _version: hyper::Version) {}

    /// A piece of the body, never empty, with the stamp of the read that brought its last byte.
    /// Pieces of one read share a stamp.
    fn data(&mut self, stamp: Stamp, bytes: &[u8]) -> Progress;

    /// Headers behind the body. Few need them.
    fn trailers(&mut self, _headers: &HeaderMap) {}
}

/// How long an exchange may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The longest without output: to the first, and from one to the next.
    pub first_or_idle: Length,
    /// The longest from start to end; `None` for no limit.
    pub total: Option<Length>,
    /// The longest from the terminal event to the end of the body.
    pub linger: Length,
}

/// What an exchange waited for when its time was up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// The first output.
    First,
    /// More output.
    Idle,
    /// Its end.
    Total,
}

/// How a body broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// The connection was reset.
    Reset,
    /// The connection ended inside a chunk, between chunks, or short of the stated length; or TLS
    /// ended without saying so.
    Cut,
    /// What came is not a body in chunks.
    Framing,
}

/// How an exchange ended that was not refused an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyEnd {
    /// The last chunk came, or the stated length was met.
    Complete,
    /// The connection closed, which is how this body was to end.
    Closed,
    /// The body broke off.
    Broken {
        /// By what.
        how: Break,
        /// In a sentence without a full stop.
        text: String,
    },
    /// Its time was up, before or after the head.
    Timeout(Waiting),
    /// The sink wanted no more.
    Stopped,
    /// The terminal event came, and the body stayed open for longer than allowed.
    Lingered,
    /// The run was told to stop.
    Cancelled,
}

/// What kept a request from an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFault {
    /// The connection closed.
    Closed,
    /// The connection was reset.
    Reset,
    /// What came was not the version of HTTP that is spoken.
    NotHttp,
    /// The response head was larger than the limit.
    HeadTooLarge,
    /// The server refused the stream before it did anything of it, of HTTP/2.
    Refused,
    /// The server was ending the connection and did nothing of the request, of HTTP/2.
    Unprocessed,
}

/// A request that got no response head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestError {
    /// The connection had been used before and closed before a byte of this answer came: most
    /// likely the server ended it just as the request was on its way. Or the server says so.
    pub stale: bool,
    /// What happened.
    pub fault: RequestFault,
    /// In a sentence without a full stop.
    pub text: String,
}

impl RequestError {
    fn not_open(stale: bool) -> Self {
        RequestError {
            stale,
            fault: RequestFault::Closed,
            text: "the connection was closed before the request".to_owned(),
        }
    }
}

/// Everything that an exchange came to, beside what its sink took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchanged {
    /// The clock before anything was done.
    pub started: Instant,
    /// Directly before the request's first byte was written; `None` if none was.
    pub sent: Option<Instant>,
    /// Directly after the last of the request's bytes so far was handed to the system.
    pub written: Option<Instant>,
    /// How long the request waited here until the server admitted another stream; `None` where
    /// there are no streams.
    pub h2_wait: Option<Length>,
    /// The clock after everything was done.
    pub finished: Instant,
    /// How it ended.
    pub end: Result<BodyEnd, RequestError>,
    /// The last read's stamp, the read that found the end of the connection included.
    pub last_stamp: Option<Stamp>,
    /// Reads that brought bytes.
    pub reads: u64,
    /// Bytes read from the socket: heads, framing and encryption included.
    pub bytes: u64,
    /// The connection can carry another exchange. It is closed already if not.
    pub reusable: bool,
}

impl<C: Clock> Connection<C> {
    /// Sends `request`, with every header it needs, and gives the answer to `sink`. Nothing is
    /// retried, no redirect is followed.
    pub async fn exchange<S: Sink>(
        &mut self,
        request: Request<Full<Bytes>>,
        limits: &Timeouts,
        sink: &mut S,
        cancel: &Cancel,
    ) -> Exchanged {
        let started = self.clock.now();
        self.tap.begin(started);
        self.exchanges += 1;
        let deadlines = Deadlines::new(*limits, started);
        let mut held = Held::default();
        let (end, reusable) = self
            .drive(request, deadlines, sink, cancel, &mut held)
            .await;
        self.tap.end();
        if !reusable {
            self.http = None;
        }
        let (sent, written) = self.tap.sent_and_written();
        let (reads, bytes) = self.tap.counts();
        let finished = self.clock.now();
        Exchanged {
            started,
            sent,
            written,
            h2_wait: held.until(sent.unwrap_or(finished)),
            finished,
            end,
            last_stamp: self.tap.stamp(),
            reads,
            bytes,
            reusable,
        }
    }

    /// Whether another exchange may begin: false once an exchange closed the connection, or the
    /// worker heard that the server did.
    pub fn is_open(&mut self) -> bool {
        let open = self.http.as_mut().is_some_and(|http| {
            turns::look_once(&mut http.driver, &self.tap);
            http.driver.is_some() && !http.sender.is_closed()
        });
        if !open {
            self.http = None;
        }
        open
    }

    /// How the exchange ended, and whether the connection can carry another.
    async fn drive<S: Sink>(
        &mut self,
        request: Request<Full<Bytes>>,
        deadlines: Deadlines,
        sink: &mut S,
        cancel: &Cancel,
        held: &mut Held,
    ) -> (Result<BodyEnd, RequestError>, bool) {
        let reused = self.exchanges > 1;
        let Some(http) = self.http.as_mut() else {
            return (Err(RequestError::not_open(reused)), false);
        };
        held.streams = matches!(http.sender, Sender::Two { .. });
        let (end, at_rest) = {
            let response = pin!(http.sender.send(request));
            let mut turns = Turns::new(response, &mut http.driver, &self.tap, sink, deadlines);
            let sleep = pin!(tokio::time::sleep(Duration::ZERO));
            let mut alarm = Alarm::new(sleep, &self.clock, turns.deadlines());
            let mut cancelled = pin!(cancel.cancelled());
            let end = poll_fn(|cx| {
                // Before all else, and before the wait for it: a flood of bytes must not outrun it.
                if cancel.is_cancelled() {
                    return Poll::Ready(Ok(BodyEnd::Cancelled));
                }
                if let Poll::Ready(end) = turns.poll(cx) {
                    return Poll::Ready(end);
                }
                held.look(&self.tap, &self.clock);
                if cancelled.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Ok(BodyEnd::Cancelled));
                }
                alarm.poll(cx, &self.clock, turns.deadlines()).map(Ok)
            })
            .await;
            (end, turns.come_to_rest())
        };
        match end {
            Ok(end) => {
                let whole = end == BodyEnd::Complete && at_rest;
                (Ok(end), whole && http.sender.is_ready())
            }
            Err(error) => {
                let (_, bytes) = self.tap.counts();
                (Err(answer::no_answer(&error, reused, bytes)), false)
            }
        }
    }
}

/// What keeps a request of HTTP/2 from being sent: the server admits no further stream yet.
#[derive(Debug, Default)]
struct Held {
    /// There are streams.
    streams: bool,
    /// All had been done to send it, and it was not sent.
    since: Option<Instant>,
}

impl Held {
    /// Looks whether a request that had its turn is on its way.
    fn look<C: Clock>(&mut self, tap: &Tap, clock: &C) {
        if self.streams && self.since.is_none() && tap.sent_and_written().0.is_none() {
            self.since = Some(clock.now());
        }
    }

    /// How long that was, for a request that was sent, or given up, at `at`.
    fn until(&self, at: Instant) -> Option<Length> {
        let waited = |since| at.since_or_zero(since);
        self.streams
            .then(|| self.since.map_or(Length::ZERO, waited))
    }
}
