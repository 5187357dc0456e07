//! A client of bare frames.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use denom::sim::server::Running;

use super::super::PATIENCE;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// Settings as a client sends them first: none.
pub const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// One connection.
pub struct Frames(TcpStream);

/// What came for one request.
#[derive(Debug, Default)]
pub struct Answer {
    /// The fields of its head, as `name: value` lines.
    pub head: String,
    pub body: Vec<u8>,
    /// Lengths of its frames with a body.
    pub lengths: Vec<usize>,
    /// The code by which it was reset.
    pub reset: Option<u8>,
    /// Other frames, those that every connection has left out.
    pub others: Vec<Frame>,
    /// Whether the connection closed in front of an end.
    pub closed: bool,
    /// Bytes of its own frames, whole.
    pub bytes: u64,
}

impl Frames {
    pub fn of(server: &Running) -> Self {
        let stream = TcpStream::connect(server.addr()).expect("the server listens");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout above zero is legal");
        let mut frames = Frames(stream);
        frames.write(GREETING);
        frames
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("the server reads");
    }

    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a short frame");
        let mut frame = length.to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.write(&frame);
    }

    /// Asks for a chat of this body.
    pub fn ask(&mut self, stream: u32, body: &str) {
        // POST and http of the static table, then literals.
        let mut block = vec![0x83, 0x86];
        for (name, value) in [(":path", "/v1/chat/completions"), ("x-request-id", "r-7")] {
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).expect("a short text"));
                block.extend_from_slice(text.as_bytes());
            }
        }
        self.send(HEADERS, END_HEADERS, stream, &block);
        self.send(DATA, END_STREAM, stream, body.as_bytes());
    }

    /// The next frame; `None` once the connection is closed.
    pub fn frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        match self.0.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return None,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            Err(error) => panic!("no frame: {error}"),
        }
        let [a, b, c, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]);
        let mut payload = vec![0; usize::try_from(length).expect("24 bits")];
        self.0.read_exact(&mut payload).expect("a frame is whole");
        Some(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            payload,
        })
    }

    /// All that comes until the stream ends, or the connection.
    pub fn answer(&mut self, stream: u32) -> Answer {
        let mut answer = Answer::default();
        loop {
            let Some(frame) = self.frame() else {
                answer.closed = true;
                return answer;
            };
            let own = frame.stream == stream;
            answer.bytes += if own {
                frame.payload.len() as u64 + 9
            } else {
                0
            };
            match (frame.kind, own) {
                (HEADERS, true) => answer.head = fields(&frame.payload),
                (DATA, true) => {
                    answer.lengths.push(frame.payload.len());
                    answer.body.extend(&frame.payload);
                    if frame.flags & END_STREAM != 0 {
                        return answer;
                    }
                }
                (RST_STREAM, true) => {
                    answer.reset = frame.payload.last().copied();
                    return answer;
                }
                (SETTINGS, _) if frame.payload.is_empty() || frame.payload.len() > 6 => {}
                (WINDOW_UPDATE, _) => {}
                _ => answer.others.push(frame),
            }
        }
    }

    /// The next frame of this type.
    pub fn next(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.frame().expect("the connection stays open");
            if frame.kind == kind {
                return frame;
            }
        }
    }
}

/// The fields of a block of short literals.
fn fields(mut block: &[u8]) -> String {
    let mut lines = String::new();
    while let [0, rest @ ..] = block {
        block = rest;
        let mut text = || {
            let (length, rest) = block.split_first().expect("a length");
            let (text, rest) = rest.split_at(usize::from(*length));
            block = rest;
            String::from_utf8(text.to_vec()).expect("it is text")
        };
        lines += &format!("{}: {}\n", text(), text());
    }
    assert!(block.is_empty());
    lines
}
