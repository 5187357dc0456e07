//! Each script, fed as instants and bytes through decoder and judge, gives its truth to the
//! nanosecond; and again through hyper over a stream in memory, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use denom::clock::VirtualClock;
use denom::net::{BodyEnd, Canceller, HttpVersion, Sink, Timeouts, Wake, connect::connect_over};
use denom::sim::ask::Ask;
use denom::sim::script::{Ending, Script};
use denom::sim::scripts::script;
use http_body_util::Full;
use measure::api::Api;
use measure::basis::{Load, Loop};
use measure::decode::{Decoder, Options, Progress};
use measure::judge::{Guards, Judged, judge};
use measure::plan::{LevelPlan, Stop, Warmup};
use measure::record::Level;
use measure::rows::{Row, rows};
use measure::stamp::{Stamp, StampSource};
use measure::time::{Instant, Length};
use measure::trace::{Trace, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What a script must come to. Times in milliseconds from `sent`; `None` where it must be withheld.
struct Expect {
    outcome: &'static str,
    shape: Option<&'static str>,
    reasons: &'static [&'static str],
    flags: &'static [&'static str],
    chunks: u64,
    arrivals: u64,
    ttft_ms: Option<u64>,
    e2e_ms: Option<u64>,
    visible: Option<u64>,
    /// Name of the rate, its count and its interval in milliseconds.
    rate: Option<(&'static str, u64, u64)>,
}

const STREAMED: Expect = Expect {
    outcome: "ok",
    shape: Some("streamed"),
    reasons: &[],
    flags: &[],
    chunks: 64,
    arrivals: 64,
    ttft_ms: Some(60),
    e2e_ms: Some(690),
    visible: Some(64),
    rate: Some(("generation_rate", 63, 630)),
};

const BURST: Expect = Expect {
    shape: Some("buffered"),
    reasons: &["few_arrivals", "one_burst", "short"],
    arrivals: 1,
    ttft_ms: None,
    rate: Some(("e2e_rate", 64, 690)),
    ..STREAMED
};

const FAILED: Expect = Expect {
    outcome: "truncated",
    shape: None,
    chunks: 10,
    arrivals: 10,
    ttft_ms: None,
    e2e_ms: None,
    visible: None,
    rate: None,
    ..STREAMED
};

fn expectations() -> Vec<(&'static str, Expect)> {
    vec![
        ("normal", STREAMED),
        ("nospace", STREAMED),
        ("crlf", STREAMED),
        ("reason", STREAMED),
        (
            "nodone",
            Expect {
                flags: &["unterminated"],
                ..STREAMED
            },
        ),
        ("burst", BURST),
        ("roleburst", BURST),
        (
            "firstlate",
            Expect {
                arrivals: 2,
                e2e_ms: Some(692),
                rate: Some(("e2e_rate", 64, 692)),
                ..BURST
            },
        ),
        (
            "twoclump",
            Expect {
                reasons: &["few_arrivals"],
                arrivals: 2,
                ..BURST
            },
        ),
        (
            "empty",
            Expect {
                outcome: "empty",
                chunks: 0,
                arrivals: 0,
                visible: None,
                ..FAILED
            },
        ),
        (
            "miderror",
            Expect {
                outcome: "server_error",
                ..FAILED
            },
        ),
        ("truncated", FAILED),
    ]
}

pub(super) fn ask(model: &str) -> Script {
    script(model, &Ask::of(model)).expect("a script of this name")
}

fn options() -> Options {
    Options {
        api: Api::OpenaiChat,
        keep_text: false,
        scrub: Arc::default(),
    }
}

fn begun() -> Trace {
    Trace::begun(0, 0, 0, false, Instant::ORIGIN)
}

fn stamp(at: Length) -> Stamp {
    Stamp {
        at: Instant::ORIGIN + at,
        source: StampSource::Read,
        lag_low: None,
        lag_high: Length::ZERO,
        clamped: false,
    }
}

/// The script's own instants and bytes, each write cut into pieces of at most `cut` bytes.
pub(super) fn fed(script: &Script, cut: usize) -> Trace {
    fed_in_pieces(script, |left| left.min(cut))
}

/// The script's own instants and bytes; `next` says how long the next piece of a write is, of the
/// bytes that are left of it.
pub(super) fn fed_in_pieces(script: &Script, mut next: impl FnMut(usize) -> usize) -> Trace {
    let mut decoder = Decoder::new(options(), begun());
    let kind = script
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    decoder.head(
        stamp(script.head_at()),
        script.status,
        kind.map(|(_, value)| value.as_str()),
        None,
    );
    for (at, mut left) in script.timeline() {
        while !left.is_empty() {
            let (piece, rest) = left.split_at(next(left.len()));
            decoder.data(stamp(at), piece);
            left = rest;
        }
    }
    let (at, ending) = script.ending().expect("it ends");
    let transport = match ending {
        Ending::Proper => Transport::Complete,
        _ => Transport::Broken { text: "cut".into() },
    };
    let mut trace = decoder.close(transport, Some(Instant::ORIGIN + at));
    trace.sent = Some(Instant::ORIGIN);
    trace
}

pub(super) fn row_of(trace: Trace) -> (Row, Judged) {
    let judged = judge(trace, &Guards::default(), true);
    let plan = LevelPlan {
        index: 0,
        kind: Loop::Closed,
        arrivals: None,
        target_milli: 1_000,
        streams: 1,
        baseline: false,
        stop: Stop::Requests(1),
        warmup: Warmup::Requests(0),
        limit: None,
    };
    let level = Level {
        plan,
        requests: vec![judged.clone()],
        end: None,
        open: 0,
        unmatched: 0,
        gaps: Vec::new(),
        ceiling: None,
    };
    let load = Load {
        kind: Loop::Closed,
        target_milli: 1_000,
        held_milli: None,
    };
    (rows(&level, load).remove(0), judged)
}

fn seconds(millis: u64) -> f64 {
    Length::from_millis(millis).as_secs_f64()
}

fn check(name: &str, trace: Trace, expect: &Expect) {
    let (row, judged) = row_of(trace);
    assert_eq!(row.outcome, expect.outcome, "{name}");
    assert_eq!(row.shape, expect.shape, "{name}");
    assert_eq!(row.reasons, expect.reasons, "{name}");
    assert_eq!(row.flags, expect.flags, "{name}");
    assert_eq!(
        (row.chunks, row.arrivals),
        (expect.chunks, expect.arrivals),
        "{name}"
    );
    assert_eq!(row.ttft_s, expect.ttft_ms.map(seconds), "{name}");
    assert_eq!(row.e2e_s, expect.e2e_ms.map(seconds), "{name}");
    assert_eq!(row.output_tokens, expect.visible, "{name}");
    assert_eq!(
        row.rate_used,
        expect.rate.map(|(used, _, _)| used),
        "{name}"
    );
    let value = row.rate.as_ref().and_then(measure::figure::Figure::value);
    let exact = expect.rate.map(|(_, count, millis)| {
        // As a rate is printed: millionths over nanoseconds.
        (count * 1_000_000) as f64 * 1e3 / (millis * 1_000_000) as f64
    });
    assert_eq!(value, exact, "{name}");
    assert_eq!(
        judged.trace.first_content.is_some(),
        expect.chunks > 0,
        "{name}"
    );
}

#[test]
fn each_script_gives_its_truth_to_the_nanosecond_at_any_cut() {
    for (name, expect) in expectations() {
        let script = ask(name);
        let whole = fed(&script, usize::MAX);
        for cut in [1, 2, 3, 7, 64, 1_000] {
            assert_eq!(fed(&script, cut), whole, "{name} cut every {cut} bytes");
        }
        check(name, whole, &expect);
    }
}

#[test]
fn a_thought_is_content_and_the_answer_comes_later() {
    let trace = fed(&ask("reason"), usize::MAX);
    let ms = |millis| Some(Instant::ORIGIN + Length::from_millis(millis));
    assert_eq!(
        (trace.first_content, trace.first_answer),
        (ms(60), ms(60 + 48 * 10))
    );
}

#[test]
fn a_body_that_is_no_stream_supports_end_to_end_only() {
    let (row, _) = row_of(fed(&ask("plainjson"), usize::MAX));
    assert_eq!(
        (row.outcome, row.shape, row.ttft_s),
        ("ok", Some("whole"), None)
    );
    assert_eq!(
        (row.e2e_s, row.rate_used),
        (Some(seconds(690)), Some("e2e_rate"))
    );
}

#[test]
fn several_tokens_a_chunk_are_apportioned_and_keep_the_rate() {
    let (row, _) = row_of(fed(&ask("spec4"), usize::MAX));
    assert_eq!(
        (row.shape, row.chunks, row.output_tokens),
        (Some("streamed"), 16, Some(63))
    );
    assert_eq!(row.flags, ["stop_token", "apportioned", "coalesced"]);
    assert!(row.rate.is_some_and(|rate| rate.range().is_some()));
}

#[test]
fn a_stop_token_is_billed_and_never_arrives() {
    let (row, _) = row_of(fed(&ask("stoptoken"), usize::MAX));
    assert_eq!(
        (row.billed_tokens, row.output_tokens, row.chunks),
        (Some(64), Some(63), 63)
    );
    assert_eq!(row.flags, ["stop_token"]);
}

#[test]
fn without_usage_there_are_chunks_and_no_tokens() {
    let (row, _) = row_of(fed(&ask("nousage"), usize::MAX));
    assert_eq!((row.output_tokens, row.shape), (None, Some("streamed")));
    assert_eq!(
        row.rate.map(|rate| rate.unit().to_owned()),
        Some("chunk/s".into())
    );
}

struct Taker(Decoder);

impl Sink for Taker {
    fn head(&mut self, stamp: Stamp, status: u16, headers: &hyper::HeaderMap) {
        let kind = headers
            .get("content-type")
            .and_then(|value| value.to_str().ok());
        self.0.head(stamp, status, kind, None);
    }

    fn data(&mut self, stamp: Stamp, bytes: &[u8]) -> Progress {
        self.0.data(stamp, bytes)
    }
}

/// The script as a server would write it, at its instants, over a stream in memory.
async fn serve(mut stream: tokio::io::DuplexStream, script: Script) {
    let mut asked = vec![0; 4_096];
    let read = stream.read(&mut asked).await.expect("a request comes");
    assert!(read > 0, "a request comes");
    let origin = tokio::time::Instant::now();
    let mut head = format!(
        "HTTP/1.1 {} OK\r\ntransfer-encoding: chunked\r\n",
        script.status
    );
    for (name, value) in script
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let until = |at: Length| tokio::time::sleep_until(origin + Duration::from_nanos(at.nanos()));
    until(script.head_at()).await;
    stream.write_all(head.as_bytes()).await.expect("written");
    for (at, bytes) in script.timeline() {
        until(at).await;
        stream
            .write_all(format!("{:x}\r\n", bytes.len()).as_bytes())
            .await
            .expect("written");
        stream.write_all(bytes).await.expect("written");
        stream.write_all(b"\r\n").await.expect("written");
    }
    until(script.ending().expect("it ends").0).await;
    stream.write_all(b"0\r\n\r\n").await.expect("written");
    // Held open until the client has read it all.
    let _ = stream.read(&mut asked).await;
}

pub(super) async fn exchanged(script: Script) -> Trace {
    let (client, server) = tokio::io::duplex(256 << 10);
    let clock = VirtualClock::start();
    let mut connection = connect_over(client, HttpVersion::One, &clock, &Wake::never())
        .await
        .expect("opens");
    let request = hyper::Request::post("/v1/chat/completions")
        .header("host", "script")
        .body(Full::new(Bytes::from_static(b"{}")))
        .expect("a request");
    let limits = Timeouts {
        first_or_idle: Length::from_secs(60),
        total: None,
        linger: Length::from_secs(1),
    };
    let (_canceller, cancel) = Canceller::new();
    let mut taker = Taker(Decoder::new(options(), begun()));
    let asking = async {
        let done = connection
            .exchange(request, &limits, &mut taker, &cancel)
            .await;
        drop(connection);
        done
    };
    let (done, ()) = tokio::join!(asking, serve(server, script));
    assert_eq!(done.end, Ok(BodyEnd::Complete));
    let mut trace = taker
        .0
        .close(Transport::Complete, done.last_stamp.map(|stamp| stamp.at));
    trace.sent = done.sent;
    trace
}

#[tokio::test(start_paused = true)]
async fn through_hyper_in_virtual_time_each_script_gives_the_same_truth() {
    for (name, expect) in expectations() {
        let mut trace = exchanged(ask(name)).await;
        // Each exchange has its own clock, whose origin is when it was sent.
        assert_eq!(trace.sent, Some(Instant::ORIGIN), "{name}");
        // How late a paused clock's client looked says nothing.
        trace
            .reads
            .iter_mut()
            .for_each(|read| read.lag_high = Length::ZERO);
        check(name, trace, &expect);
    }
}

#[test]
fn the_terminal_event_ends_a_stream_whose_body_stays_open() {
    let mut decoder = Decoder::new(options(), begun());
    let script = ask("normal");
    decoder.head(
        stamp(script.head_at()),
        200,
        Some("text/event-stream"),
        None,
    );
    for (at, bytes) in script.timeline() {
        decoder.data(stamp(at), bytes);
    }
    let ms = |millis| Some(Instant::ORIGIN + Length::from_millis(millis));
    let trace = decoder.close(Transport::Complete, ms(900));
    assert_eq!(trace.end, ms(690));
}
