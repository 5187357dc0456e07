//! Owns one request: its body and headers, its exchange, and the trace it leaves.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Request};
use measure::api::{Ask, Framing, Messages, clip};
use measure::decode::{Decoder, Options};
use measure::prompt::{Given, Prompt};
use measure::record::{Line, Sent};
use measure::scrub::Scrub;
use measure::time::Length;
use measure::trace::{self, Phase, ServerError, Trace, Transport};
use serde_json::{Map, Value};

use super::shared::{Form, Job, Shared};
use super::sink::Taker;
use crate::clock::RunClock;
use crate::net::{self, BodyEnd, ConnectError, Connection, Exchanged, RequestFault, Waiting};

/// Most bytes kept of what is said of a redirect.
const MESSAGE_LIMIT: usize = 200;

/// The body of a request in `form`.
pub fn body(job: &Job, prompt: &Prompt, form: Form) -> Value {
    let messages = match &prompt.given {
        Given::Text(text) => Messages::User(text),
        Given::Messages(turns) => Messages::Given(turns),
    };
    let mut body = job.api.ask(&Ask {
        path: &job.path,
        model: &job.model,
        messages,
        output_tokens: prompt.output_tokens,
        limit_field: form.limit_field,
        stream: job.stream,
        usage: form.usage,
    });
    merge(&mut body, &job.body);
    Value::Object(body)
}

/// Puts what the user gave over what is there; inside objects it is done member by member, since
/// some APIs keep the limit of output in one together with what users set.
fn merge(body: &mut Map<String, Value>, given: &Map<String, Value>) {
    for (name, value) in given {
        match (body.get_mut(name), value) {
            (Some(Value::Object(inside)), Value::Object(given)) => merge(inside, given),
            _ => {
                body.insert(name.clone(), value.clone());
            }
        }
    }
}

/// A request with every header it needs.
pub(super) fn build(
    job: &Job,
    id: u64,
    body: &Value,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let text = Bytes::from(body.to_string());
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(&job.path)
        .header(HOST, job.target.host_header())
        .header(USER_AGENT, concat!("denom/", env!("CARGO_PKG_VERSION")))
        .header(
            ACCEPT,
            match (job.stream, job.api.dialect().framing) {
                (false, _) => "application/json",
                (true, Framing::Ndjson) => "application/x-ndjson, application/json",
                (true, _) => "text/event-stream, application/json",
            },
        )
        .header(ACCEPT_ENCODING, "identity")
        .header(CONTENT_TYPE, "application/json")
        .header(CONTENT_LENGTH, text.len())
        .header("x-request-id", format!("denom-{}-{id}", job.run));
    for (name, value) in &job.headers {
        request = request.header(name, value);
    }
    request.body(Full::new(text))
}

/// Sends a request and fills its trace.
pub(super) async fn exchange(
    shared: &Shared,
    connection: &mut Connection<RunClock>,
    request: Request<Full<Bytes>>,
    trace: Trace,
    first: bool,
) -> Trace {
    let job = &shared.job;
    let options = Options {
        api: job.api,
        keep_text: job.keep_text,
        scrub: job.scrub.clone(),
    };
    let gate = first.then_some(&shared.gate);
    let mut taker = Taker {
        gate,
        pauses: job.pauses.then_some((&shared.holds, job.clock)),
        ..Taker::of(Decoder::new(options, trace))
    };
    let done = connection
        .exchange(request, &job.timeouts, &mut taker, shared.endings.cancel())
        .await;
    finish(taker, &done, &job.scrub, shared.endings.is_drain())
}

/// A redirect in words: it is never followed, and of its address only the origin is kept, since keys
/// may stand in the rest.
fn redirected(origin: &str) -> String {
    format!("a redirect to {origin}, which is not followed: measure that address")
}

/// What an exchange came to.
pub(super) fn finish(taker: Taker<'_>, done: &Exchanged, scrub: &Scrub, drain: bool) -> Trace {
    let Taker {
        decoder,
        moved,
        failed,
        ..
    } = taker;
    let said = moved.map(|origin| redirected(&origin)).or(failed);
    let error = said.map(|text| ServerError {
        code: None,
        message: clip(&scrub.apply(&text), MESSAGE_LIMIT),
    });
    let at = done.last_stamp.map(|stamp| stamp.at);
    let mut malformed = None;
    let transport = match &done.end {
        Ok(BodyEnd::Complete) => Transport::Complete,
        Ok(BodyEnd::Closed) => Transport::Closed,
        Ok(BodyEnd::Lingered) => Transport::Lingered,
        Ok(BodyEnd::Broken { text, .. }) => Transport::Broken { text: text.clone() },
        Ok(BodyEnd::Timeout(waiting)) => Transport::Timeout {
            phase: match waiting {
                Waiting::First => Phase::First,
                Waiting::Idle => Phase::Idle,
                Waiting::Total => Phase::Total,
            },
        },
        Ok(BodyEnd::Stopped) => Transport::Limit {
            text: decoder
                .limit()
                .unwrap_or("the client wanted no more")
                .to_owned(),
        },
        Ok(BodyEnd::Cancelled) if drain => Transport::Drained,
        Ok(BodyEnd::Cancelled) => Transport::Cancelled,
        Err(error) if error.stale => Transport::Stale,
        Err(error) => match error.fault {
            RequestFault::HeadTooLarge => Transport::Limit {
                text: error.text.clone(),
            },
            RequestFault::NotHttp => {
                malformed = Some(error.text.clone());
                Transport::Broken {
                    text: error.text.clone(),
                }
            }
            RequestFault::Refused => Transport::NoResponse {
                text: error.text.clone(),
            },
            RequestFault::Closed | RequestFault::Reset | RequestFault::Unprocessed => {
                Transport::Broken {
                    text: error.text.clone(),
                }
            }
        },
    };
    let mut trace = decoder.close(transport, at);
    trace.malformed = trace.malformed.or(malformed);
    trace.error = error.or(trace.error);
    trace.sent = done.sent;
    trace.written = done.written;
    trace.connection.h2_wait = done.h2_wait;
    trace.socket_reads = done.reads;
    trace
}

/// A trace of a request that got no connection.
pub(super) fn unconnected(mut trace: Trace, error: &ConnectError, scrub: &Scrub) -> Trace {
    let phase = match error.phase {
        net::Phase::Dns => Phase::Dns,
        net::Phase::Connect => Phase::Connect,
        net::Phase::Tls => Phase::Tls,
    };
    trace.transport = match error.timeout {
        true => Transport::Timeout { phase },
        false => Transport::NoConnection {
            phase,
            local: error.local_resource,
            // A certificate's names are the server's text.
            text: scrub.apply(&error.text),
        },
    };
    trace
}

/// Records that a request is about to be sent, and begins its trace.
pub(super) fn begun(shared: &Shared, sent: Sent, prompt: &Prompt) -> Trace {
    shared.recorder.record(Line::Sent(sent));
    let mut trace = Trace::begun(sent.id, sent.level, sent.stream, sent.warmup, sent.start);
    trace.asked_output = Some(prompt.output_tokens);
    trace.asked_input = prompt.input_tokens;
    let job = &shared.job;
    trace.prompt = job.keep_text.then(|| {
        job.scrub.apply(&match &prompt.given {
            Given::Text(text) => text.clone(),
            Given::Messages(turns) => turns.to_string(),
        })
    });
    trace
}

/// How a connection came about that was just opened; `dns` where its name was looked up for it.
pub(super) fn opened(connection: &Connection<RunClock>, dns: Option<Length>) -> trace::Connection {
    trace::Connection {
        reused: false,
        dns,
        tcp: Some(connection.opened.tcp),
        tls: connection.opened.tls,
        http2: connection.opened.http2,
        h2_wait: None,
    }
}

/// Takes how the connection of a request came about; from then on it has carried one.
pub(super) fn used(how: &mut trace::Connection) -> trace::Connection {
    let reused = trace::Connection {
        reused: true,
        ..trace::Connection::default()
    };
    std::mem::replace(how, reused)
}

/// What becomes of a request that cannot be put together.
pub(super) fn unbuilt(mut trace: Trace, error: &hyper::http::Error) -> Trace {
    trace.transport = Transport::Broken {
        text: error.to_string(),
    };
    trace
}
