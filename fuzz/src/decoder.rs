//! Owns the targets of the whole decoder: head and body to a trace, judged; plain and compressed.

use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use measure::api::Api;
use measure::decode::{Decoder, Options};
use measure::judge::{Guards, Judged, Outcome, judge};
use measure::scrub::Scrub;
use measure::stamp::{Stamp, StampSource};
use measure::time::{Instant, Length};
use measure::trace::{Oddity, Trace, Transport};

use crate::adapter::picked;
use crate::pieces;

const TYPES: [Option<&str>; 6] = [
    Some("text/event-stream"),
    Some("text/event-stream; charset=utf-8"),
    Some("application/json"),
    Some("application/x-ndjson"),
    Some("text/html"),
    None,
];
const ENCODINGS: [Option<&str>; 8] = [
    None,
    None,
    None,
    Some("identity"),
    Some("gzip"),
    Some("deflate"),
    Some("br"),
    Some("zstd"),
];
const STATUSES: [u16; 8] = [200, 200, 200, 200, 200, 204, 429, 503];

/// What comes before a body.
struct Head {
    api: Api,
    status: u16,
    content_type: Option<&'static str>,
    encoding: Option<&'static str>,
    transport: Transport,
}

fn at(millis: u64) -> Stamp {
    Stamp {
        at: Instant::from_nanos(millis * 1_000_000),
        source: StampSource::Read,
        lag_low: None,
        lag_high: Length::from_micros(20),
        clamped: false,
    }
}

/// The trace of a body that came in these pieces, each at its own time or all at the same.
fn trace<'p>(
    head: &Head,
    pieces: impl IntoIterator<Item = &'p [u8]>,
    apart: bool,
    keep_text: bool,
) -> Trace {
    let options = Options {
        api: head.api,
        keep_text,
        scrub: Arc::new(Scrub::default()),
    };
    let mut begun = Trace::begun(0, 0, 0, false, Instant::ORIGIN);
    begun.sent = Some(Instant::ORIGIN);
    let mut decoder = Decoder::new(options, begun);
    decoder.head(at(1), head.status, head.content_type, head.encoding);
    let mut now = 2;
    for piece in pieces {
        if decoder.data(at(now), piece).stop {
            break;
        }
        now += u64::from(apart) * 7;
    }
    decoder.close(head.transport.clone(), Some(at(now).at))
}

/// What must hold of any request, whatever came.
fn holds(head: &Head, trace: Trace) -> Judged {
    let judged = judge(trace, &Guards::default(), head.api.has_sentinel());
    let trace = &judged.trace;
    assert_eq!(judged.shape.is_some(), judged.outcome == Outcome::Ok);
    if judged.outcome == Outcome::Ok {
        assert!(trace.finish_reason.is_some(), "ok without a finish marker");
        assert!(trace.first_content.is_some(), "ok without content");
        assert!(trace.error.is_none(), "ok with an error");
        assert!(matches!(
            trace.transport,
            Transport::Complete | Transport::Closed | Transport::Lingered
        ));
    }
    assert!(trace.first_content <= trace.last_content);
    assert_eq!(trace.first_content.is_some(), !judged.arrivals.is_empty());
    judged
}

/// A head, then a body in pieces.
pub fn decoder(data: &[u8]) {
    let [api, kind, coding, status, seed, body @ ..] = data else {
        return;
    };
    let pick = |byte: &u8, of: usize| usize::from(*byte) % of;
    let head = Head {
        api: picked(*api),
        status: STATUSES[pick(status, STATUSES.len())],
        content_type: TYPES[pick(kind, TYPES.len())],
        encoding: ENCODINGS[pick(coding, ENCODINGS.len())],
        transport: match seed % 4 {
            0 => Transport::Closed,
            1 => Transport::Broken {
                text: "reset".into(),
            },
            _ => Transport::Complete,
        },
    };
    let whole = trace(&head, [body], false, true);
    let mut cut = trace(&head, pieces(*seed, body), false, true);
    if matches!(cut.transport, Transport::Limit { .. }) {
        // Where a limit is met, no more is taken: how much that leaves is up to the cuts.
        cut.bytes = whole.bytes;
    }
    // How much of a broken compression can be had depends on where it was cut.
    if !whole.oddities.contains(&Oddity::Undecodable) {
        assert_eq!(cut, whole, "cuts change nothing");
    }
    holds(&head, whole);
    if seed & 0x80 != 0 {
        holds(&head, trace(&head, pieces(*seed, body), true, false));
    }
}

/// Compressed bodies: noise, and text that must come out as it went in, whole or spoilt.
pub fn inflate(data: &[u8]) {
    let [how, seed, body @ ..] = data else { return };
    let (encoding, mut packed) = match how % 6 {
        0 => ("gzip", body.to_vec()),
        1 => ("deflate", body.to_vec()),
        2 => ("br", body.to_vec()),
        3 => (
            "gzip",
            write(
                GzEncoder::new(Vec::new(), Compression::fast()),
                body,
                GzEncoder::finish,
            ),
        ),
        4 => (
            "deflate",
            write(
                ZlibEncoder::new(Vec::new(), Compression::fast()),
                body,
                ZlibEncoder::finish,
            ),
        ),
        _ => (
            "deflate",
            write(
                DeflateEncoder::new(Vec::new(), Compression::fast()),
                body,
                DeflateEncoder::finish,
            ),
        ),
    };
    let is_whole = how % 6 > 2 && how & 0x80 == 0;
    if !is_whole && let Some(byte) = packed.len().checked_sub(1 + usize::from(*seed)) {
        packed[byte] ^= how | 1;
    }
    let head = Head {
        api: Api::OpenaiChat,
        status: 200,
        content_type: Some("text/event-stream"),
        encoding: Some(encoding),
        transport: Transport::Complete,
    };
    let came = trace(&head, pieces(*seed, &packed), false, true);
    holds(&head, came.clone());
    if is_whole {
        let plain = Head {
            encoding: None,
            ..head
        };
        assert_eq!(said(came), said(trace(&plain, [body], false, true)));
    }
}

fn write<W: Write>(mut packer: W, body: &[u8], end: fn(W) -> std::io::Result<Vec<u8>>) -> Vec<u8> {
    packer
        .write_all(body)
        .and_then(|()| end(packer))
        .expect("memory")
}

/// A trace without what the compression itself leaves in it.
fn said(mut trace: Trace) -> Trace {
    trace.bytes = 0;
    trace
        .oddities
        .retain(|oddity| *oddity != Oddity::Compressed);
    trace.reads.iter_mut().for_each(|read| read.bytes = 0);
    trace
}
