//! Owns the check of HTTP/2's state on bare bytes, without a socket.

mod hostile;

use super::frame::{flag, kind, put, settings};
use super::*;
use crate::sim::http::Version;
use crate::sim::script::{Framing, Head, Script};

/// A request's head: POST /a with these further literals.
fn head(more: &[(&str, &str)]) -> Vec<u8> {
    // Of the static table: POST, http.
    let mut block = vec![0x83, 0x86];
    for (name, value) in [(":path", "/a")].iter().chain(more) {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("a short text"));
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn frames(all: &[(u8, u8, u32, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, flags, stream, payload) in all {
        put(&mut out, *kind, *flags, *stream, payload);
    }
    out
}

const END: u8 = flag::END_HEADERS | flag::END_STREAM;

/// A connection behind its greeting.
fn greeted() -> Http2 {
    let mut http2 = Http2::new();
    let mut bytes = Vec::new();
    settings(&mut bytes, &[]);
    http2.receive(&bytes).expect("a greeting is legal");
    http2
}

/// All that waits to be sent, frame by frame.
fn sent(http2: &mut Http2) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut out = Vec::new();
    http2.send_all(&mut out).expect("a vector takes all");
    let mut all = Vec::new();
    let mut rest = out.as_slice();
    while let Some((frame, length)) = Frame::first(rest).expect("its own frames") {
        all.push((
            frame.kind,
            frame.flags,
            frame.stream,
            frame.payload.to_vec(),
        ));
        rest = &rest[length..];
    }
    assert!(rest.is_empty());
    all
}

fn asked(http2: &mut Http2) -> (Request, Vec<u8>) {
    match http2.next_request() {
        Some(Incoming::Request(request, body)) => (request, body),
        _ => panic!("no request"),
    }
}

/// A connection that answers a request on stream 1, and has sent all else.
fn answering() -> Http2 {
    let mut http2 = greeted();
    http2
        .receive(&frames(&[(kind::HEADERS, END, 1, &head(&[]))]))
        .expect("a request is legal");
    asked(&mut http2);
    sent(&mut http2);
    http2
}

#[test]
fn a_preface_is_one_at_its_last_byte() {
    for end in 0..frame::PREFACE.len() {
        assert_eq!(opening(&frame::PREFACE[..end]), Opening::Unclear, "{end}");
    }
    assert_eq!(opening(frame::PREFACE), Opening::Http2);
    assert_eq!(opening(b"POST / HTTP/1.1"), Opening::Other);
    assert_eq!(opening(b"PRI * HTTP/1.1\r\n"), Opening::Other);
}

#[test]
fn the_server_greets_with_one_stream_and_room_for_a_body() {
    let sent = sent(&mut Http2::new());
    let kinds: Vec<u8> = sent.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, [kind::SETTINGS, kind::WINDOW_UPDATE]);
    assert_eq!(sent[0].3[..6], [0, 3, 0, 0, 0, 1]);
}

/// In pieces of any length: head, continuation, padding, priority, body, an update of the window.
#[test]
fn a_request_is_whole_at_its_last_byte_and_not_before() {
    let block = head(&[("x-request-id", "r1"), ("authorization", "Bearer k")]);
    let mut first = vec![3, 0, 0, 0, 0, 9];
    first.extend_from_slice(&block[..10]);
    first.extend_from_slice(&[0; 3]);
    let padded = flag::PADDED | flag::PRIORITY;
    let bytes = frames(&[
        (kind::HEADERS, padded, 1, &first),
        (kind::CONTINUATION, 0, 1, &block[10..12]),
        (kind::CONTINUATION, flag::END_HEADERS, 1, &block[12..]),
        (kind::PRIORITY, 0, 1, &[0; 5]),
        (kind::DATA, flag::PADDED, 1, b"\x02body\0\0"),
        (99, 0, 7, b"unknown"),
        (kind::DATA, flag::END_STREAM, 1, b"!"),
    ]);
    for piece in [1, 2, 7, bytes.len()] {
        let mut http2 = greeted();
        for part in bytes.chunks(piece) {
            assert!(!http2.is_ready());
            http2.receive(part).expect("it is legal");
        }
        let (request, body) = asked(&mut http2);
        assert_eq!(body, b"body!");
        assert_eq!(
            (request.method.as_str(), request.path.as_str()),
            ("POST", "/a")
        );
        assert_eq!(request.version, Version::Http2 { stream: 1 });
        assert_eq!(request.id.as_deref(), Some("r1"));
        assert_eq!(request.key.as_deref(), Some("k"));
    }
}

/// What the table keeps of one request counts for the next, also if that one is refused.
#[test]
fn a_second_stream_is_refused_and_its_head_read() {
    let mut http2 = greeted();
    // A literal that is to be indexed: x-request-id is "kept", and then it has number 62.
    let mut kept = head(&[]);
    kept.extend_from_slice(b"\x40\x0cx-request-id\x04kept");
    let mut by_number = head(&[]);
    by_number.push(0x80 | 62);
    http2
        .receive(&frames(&[
            (kind::HEADERS, END, 1, &head(&[])),
            (kind::HEADERS, flag::END_HEADERS, 3, &kept),
            (kind::DATA, flag::END_STREAM, 3, b"late"),
        ]))
        .expect("it is legal");
    asked(&mut http2);
    let refused = (kind::RST_STREAM, 0, 3, vec![0, 0, 0, 7]);
    assert!(sent(&mut http2).contains(&refused));
    http2.finish();
    let next = frames(&[(kind::HEADERS, END, 5, &by_number)]);
    http2.receive(&next).expect("it is legal");
    assert_eq!(asked(&mut http2).0.id.as_deref(), Some("kept"));
}

#[test]
fn an_answer_waits_for_the_windows_of_its_client() {
    let mut http2 = answering();
    let body = vec![7; 100_000];
    // The connection's first window, in frames that the client takes.
    assert_eq!(http2.stage(b"", &body), 65_535);
    let lengths: Vec<usize> = sent(&mut http2)
        .iter()
        .map(|(.., data)| data.len())
        .collect();
    assert_eq!(lengths, [16_384, 16_384, 16_384, 16_383]);
    assert_eq!(http2.stage(b"", &body), 0);
    let more =
        |stream: u32, by: u32| frames(&[(kind::WINDOW_UPDATE, 0, stream, &by.to_be_bytes())]);
    http2.receive(&more(0, 500)).expect("it is legal");
    assert_eq!(http2.stage(b"", &body), 0);
    http2.receive(&more(1, 300)).expect("it is legal");
    assert_eq!(http2.stage(b"", &body), 300);
    sent(&mut http2);
    // A larger first window counts for a stream that is open, a smaller one takes away.
    let mut setting = Vec::new();
    settings(&mut setting, &[(setting::INITIAL_WINDOW_SIZE, 65_635)]);
    http2.receive(&setting).expect("it is legal");
    assert_eq!(http2.stage(b"", &body), 100);
    sent(&mut http2);
    let mut setting = Vec::new();
    settings(&mut setting, &[(setting::INITIAL_WINDOW_SIZE, 0)]);
    http2.receive(&setting).expect("it is legal");
    http2.receive(&more(1, 65_000)).expect("it is legal");
    assert_eq!(http2.stage(b"", &body), 0);
}

#[test]
fn a_client_may_take_its_request_back() {
    let mut http2 = answering();
    let reset = frames(&[(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8])]);
    http2.receive(&reset).expect("it is legal");
    assert!(http2.is_cancelled());
    let mut unread = greeted();
    let both = [frames(&[(kind::HEADERS, END, 1, &head(&[]))]), reset].concat();
    unread.receive(&both).expect("it is legal");
    assert!(!unread.is_ready() && !unread.is_cancelled());
}

/// Frames of the connection never stand inside one of an answer.
#[test]
fn a_ping_is_answered_between_frames() {
    let mut http2 = answering();
    http2.stage(b"", b"body");
    let mut out = Vec::new();
    http2.send(&mut out, 5).expect("a vector takes all");
    let ping = frames(&[(kind::PING, 0, 0, b"12345678")]);
    http2.receive(&ping).expect("it is legal");
    http2.send_controls(&mut out).expect("a vector takes all");
    assert_eq!(out.len(), 5);
    http2.send_all(&mut out).expect("a vector takes all");
    let expected = [
        (kind::DATA, 0, 1, b"body".as_slice()),
        (kind::PING, flag::ACK, 0, b"12345678"),
    ];
    assert_eq!(out, frames(&expected));
}

#[test]
fn a_malformed_request_ends_its_stream_alone() {
    let blocks = [
        head(&[("Upper", "case")]),
        head(&[("connection", "close")]),
        head(&[(":path", "/twice")]),
        head(&[(":unknown", "a")]),
        head(&[("a", "b"), (":authority", "late")]),
        head(&[("content-length", "x")]),
        head(&[("content-length", "4")]),
        vec![0x83, 0x86],
    ];
    let mut http2 = greeted();
    for (stream, block) in (1..).step_by(2).zip(&blocks) {
        let bytes = frames(&[(kind::HEADERS, END, stream, block)]);
        http2.receive(&bytes).expect("the connection goes on");
        assert!(!http2.is_ready());
        let reset = (kind::RST_STREAM, 0, stream, vec![0, 0, 0, 1]);
        assert!(sent(&mut http2).contains(&reset), "{stream}");
    }
}

/// A head longer than a frame goes on in another, and any length of a value is written so that a
/// decoder of another make reads it.
#[test]
fn a_response_head_is_read_by_a_decoder() {
    for length in [0, 126, 127, 254, 255, 300, 40_000] {
        let value = "v".repeat(length);
        let script = Script {
            status: 200,
            headers: vec![
                ("X-Long".to_owned(), value.clone()),
                ("keep-alive".to_owned(), "timeout=5".to_owned()),
            ],
            framing: Framing::ContentLength,
            head: Head::WithFirst,
            steps: Vec::new(),
            most_at_once: None,
        };
        let mut out = Vec::new();
        heads::response(&mut out, &script, 7, 1);
        let mut block = Vec::new();
        let mut rest = out.as_slice();
        while let Some((frame, length)) = Frame::first(rest).expect("its own frames") {
            block.extend_from_slice(frame.payload);
            rest = &rest[length..];
            assert_eq!(frame.has(flag::END_HEADERS), rest.is_empty());
        }
        let fields = Blocks::new().read(&block).expect("it is a block");
        let expected = [
            (":status", "200"),
            ("server", "denom-sim"),
            ("x-long", value.as_str()),
            ("content-length", "7"),
        ];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(fields, expected);
    }
}
