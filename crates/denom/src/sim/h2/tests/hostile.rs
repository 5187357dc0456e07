//! Owns the check of what a client may not do, or does with bytes that mean nothing.

use std::io;

use super::*;

#[test]
fn what_breaks_the_rules_ends_the_connection_with_its_code() {
    let huge = [0xff, 0xff, 0xff, 0xff];
    let long = vec![b'a'; 16_384];
    let flood: Vec<_> = (0..5)
        .map(|n| match n {
            0 => (kind::HEADERS, 0, 1, long.as_slice()),
            _ => (kind::CONTINUATION, 0, 1, long.as_slice()),
        })
        .collect();
    let bomb: Vec<u8> = [
        head(&[]),
        b"\x40\x01a\x7e".to_vec(),
        vec![b'v'; 126],
        vec![0xbe; 500],
    ]
    .concat();
    let open = (kind::HEADERS, flag::END_HEADERS, 1, head(&[]));
    let open = (open.0, open.1, open.2, open.3.as_slice());
    let cases: Vec<(&str, Code, Vec<u8>)> = vec![
        (
            "continuation from nowhere",
            Code::Protocol,
            frames(&[(kind::CONTINUATION, 4, 1, b"")]),
        ),
        (
            "a frame inside a block",
            Code::Protocol,
            frames(&[(kind::HEADERS, 0, 1, b""), (kind::PING, 0, 0, b"12345678")]),
        ),
        (
            "an even stream",
            Code::Protocol,
            frames(&[(kind::HEADERS, END, 2, b"")]),
        ),
        (
            "no stream",
            Code::Protocol,
            frames(&[(kind::DATA, 0, 0, b"a")]),
        ),
        (
            "a stream for settings",
            Code::Protocol,
            frames(&[(kind::SETTINGS, 0, 1, b"")]),
        ),
        (
            "a stream never opened",
            Code::Protocol,
            frames(&[(kind::DATA, 0, 5, b"a")]),
        ),
        (
            "padding above the payload",
            Code::Protocol,
            frames(&[open, (kind::DATA, flag::PADDED, 1, b"\x09a")]),
        ),
        (
            "a push",
            Code::Protocol,
            frames(&[(kind::PUSH_PROMISE, 0, 1, b"")]),
        ),
        (
            "no bytes in the window",
            Code::Protocol,
            frames(&[(kind::WINDOW_UPDATE, 0, 0, &[0; 4])]),
        ),
        (
            "a window without end",
            Code::FlowControl,
            frames(&[(kind::WINDOW_UPDATE, 0, 0, &huge)]),
        ),
        (
            "a first window without end",
            Code::FlowControl,
            frames(&[(kind::SETTINGS, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff])]),
        ),
        (
            "frames too small",
            Code::Protocol,
            frames(&[(kind::SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1])]),
        ),
        (
            "half a setting",
            Code::FrameSize,
            frames(&[(kind::SETTINGS, 0, 0, b"abc")]),
        ),
        (
            "a long ping",
            Code::FrameSize,
            frames(&[(kind::PING, 0, 0, b"123456789")]),
        ),
        (
            "a long frame",
            Code::FrameSize,
            vec![0, 0x40, 1, 0, 0, 0, 0, 0, 1],
        ),
        (
            "a block that is none",
            Code::Compression,
            frames(&[(kind::HEADERS, END, 1, &huge)]),
        ),
        ("a block without end", Code::EnhanceYourCalm, frames(&flood)),
        (
            "a long list",
            Code::EnhanceYourCalm,
            frames(&[(kind::HEADERS, END, 1, &bomb)]),
        ),
        (
            "pings without end",
            Code::EnhanceYourCalm,
            frames(&[(kind::PING, 0, 0, b"12345678".as_slice()); 4_000]),
        ),
        (
            "nothing without end",
            Code::EnhanceYourCalm,
            frames(&[(99, 0, 0, b"".as_slice()); 10_001]),
        ),
        (
            "data behind the end",
            Code::StreamClosed,
            frames(&[open, (kind::DATA, 1, 1, b""), (kind::DATA, 0, 1, b"a")]),
        ),
        (
            "a head behind the end",
            Code::StreamClosed,
            frames(&[open, (kind::DATA, 1, 1, b""), open]),
        ),
    ];
    for (what, code, bytes) in cases {
        let mut http2 = greeted();
        assert_eq!(http2.receive(&bytes), Err(code), "{what}");
        let last = sent(&mut http2).pop().expect("it says why");
        assert_eq!(
            (last.0, &last.3[4..]),
            (kind::GOAWAY, &[0, 0, 0, code as u8][..]),
            "{what}"
        );
    }
    let early = frames(&[(kind::PING, 0, 0, b"12345678")]);
    assert_eq!(Http2::new().receive(&early), Err(Code::Protocol));
}

#[test]
fn a_body_over_its_limit_ends_the_connection() {
    let mut http2 = greeted();
    let open = frames(&[(kind::HEADERS, flag::END_HEADERS, 1, &head(&[]))]);
    http2.receive(&open).expect("it is legal");
    let piece = frames(&[(kind::DATA, 0, 1, &vec![0; frame::MOST])]);
    for _ in 0..BODY_LIMIT / frame::MOST {
        http2.receive(&piece).expect("it is within the limit");
    }
    assert_eq!(http2.receive(&piece), Err(Code::EnhanceYourCalm));
}

/// A generator of the xorshift family: the same bytes each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap_or(0)
    }
}

/// A legal conversation with some of its bytes changed, cut out or doubled, in pieces: whatever it
/// becomes, the state goes on or says why not, and holds no more than it may.
#[test]
fn hostile_bytes_do_no_harm() {
    let mut legal = frames(&[
        (kind::SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]),
        (
            kind::HEADERS,
            flag::END_HEADERS,
            1,
            &head(&[("x-request-id", "r")]),
        ),
        (kind::DATA, flag::PADDED, 1, b"\x02body\0\0"),
        (kind::DATA, flag::END_STREAM, 1, b"{}"),
        (kind::WINDOW_UPDATE, 0, 1, &[0, 0, 1, 0]),
        (kind::PING, 0, 0, b"12345678"),
        (kind::RST_STREAM, 0, 1, &[0, 0, 0, 8]),
        (
            kind::HEADERS,
            END,
            3,
            b"\x83\x86\x44\x01/\x40\x83\x94\xe7\x82\x94\xe7",
        ),
        (kind::GOAWAY, 0, 0, &[0; 8]),
    ]);
    let plain = legal.clone();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..20_000 {
        legal.clone_from(&plain);
        for _ in 0..=dice.below(6) {
            let at = dice.below(legal.len());
            match dice.below(4) {
                0 => legal[at] = u8::try_from(dice.below(256)).unwrap_or(0),
                1 => legal[at] ^= 1 << dice.below(8),
                2 => legal.truncate(at.max(1)),
                _ => legal.extend_from_within(at..),
            }
        }
        conversation(&legal, 1 + dice.below(40));
    }
}

fn conversation(bytes: &[u8], piece: usize) {
    let mut http2 = Http2::new();
    for part in bytes.chunks(piece) {
        if http2.receive(part).is_err() {
            break;
        }
        let taken = http2.next_request().is_some();
        http2.stage(b"", b"an answer");
        if taken && http2.is_cancelled() {
            http2.finish();
        }
        assert!(http2.inbox.len() <= frame::MOST + 9);
        assert!(http2.controls.len() <= CONTROL_LIMIT);
    }
    http2.send_all(&mut io::sink()).expect("a sink takes all");
}
