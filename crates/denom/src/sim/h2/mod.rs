//! Owns HTTP/2 as the server speaks it: one stream at a time on a connection, by its own reading of
//! RFC 9113, so that it shares no code with the client that is measured against it.

pub mod frame;
pub mod heads;
mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

use super::connection::Incoming;
use super::http::{BODY_LIMIT, Request};
use frame::{Code, Frame, LARGEST_WINDOW, setting};
use heads::{Blocks, LIST_LIMIT};
use outgoing::Queue;

/// The window that every connection and stream begins with.
const FIRST_WINDOW: u32 = 65_535;
/// The window a client is given for a request: a body too long is seen as one, not stopped by it.
const GIVEN_WINDOW: u32 = BODY_LIMIT as u32 + FIRST_WINDOW;
/// Bytes of answers to frames that wait for the socket at most.
const CONTROL_LIMIT: usize = 64 * 1024;
/// Frames in a row, from one the server sends for an answer to the next, that bring no body.
const BARREN_LIMIT: u32 = 10_000;

/// One connection.
pub struct Http2 {
    /// Bytes that are no whole frame yet.
    inbox: Vec<u8>,
    /// Whether the client's settings came, which must be its first frame.
    greeted: bool,
    blocks: Blocks,
    /// The header block in the middle of which the client is.
    block: Option<Block>,
    stream: Option<Stream>,
    /// The highest stream that the client opened.
    newest: u32,
    /// The highest stream that was taken on.
    taken_on: u32,
    /// Frames that brought no body since the last one of an answer.
    barren: u32,
    /// What the client may still send on the connection.
    room: i64,
    /// What it sent since it was last given room.
    owed: u32,
    /// What may be sent on the connection.
    window: i64,
    /// What may be sent on a new stream.
    stream_window: i64,
    /// The longest payload that the client takes.
    most: usize,
    /// Frames for the connection that wait for the socket.
    controls: Queue,
    /// Frames of the answer that wait for it, in front of those.
    staged: Queue,
}

/// A header block of which a part came.
struct Block {
    stream: u32,
    ends_stream: bool,
    bytes: Vec<u8>,
}

/// The stream that is being served.
struct Stream {
    id: u32,
    /// The request, until it is answered.
    request: Option<Request>,
    /// The length that it states for its body.
    length: Option<usize>,
    body: Vec<u8>,
    /// Whether all of it came.
    whole: bool,
    /// Whether the client took it back while it was being answered.
    cancelled: bool,
    /// What may be sent on it; below zero if the client made it smaller.
    window: i64,
}

/// What first bytes are.
#[derive(Debug, PartialEq, Eq)]
pub enum Opening {
    /// HTTP/2: what follows the preface is frames.
    Http2,
    /// Too few to tell.
    Unclear,
    /// Something else.
    Other,
}

/// What the first bytes of a connection say that it speaks.
pub fn opening(bytes: &[u8]) -> Opening {
    let length = bytes.len().min(frame::PREFACE.len());
    if bytes[..length] != frame::PREFACE[..length] {
        return Opening::Other;
    }
    match length < frame::PREFACE.len() {
        true => Opening::Unclear,
        false => Opening::Http2,
    }
}

impl Http2 {
    /// A connection whose preface was read: what the server allows is the first that it sends.
    pub fn new() -> Self {
        let mut http2 = Http2 {
            inbox: Vec::new(),
            greeted: false,
            blocks: Blocks::new(),
            block: None,
            stream: None,
            newest: 0,
            taken_on: 0,
            barren: 0,
            room: i64::from(GIVEN_WINDOW),
            owed: 0,
            window: i64::from(FIRST_WINDOW),
            stream_window: i64::from(FIRST_WINDOW),
            most: frame::MOST,
            controls: Queue::default(),
            staged: Queue::default(),
        };
        let allowed = [
            (setting::MAX_CONCURRENT_STREAMS, 1),
            (setting::INITIAL_WINDOW_SIZE, GIVEN_WINDOW),
            (setting::MAX_HEADER_LIST_SIZE, LIST_LIMIT as u32),
        ];
        frame::settings(http2.controls.end(), &allowed);
        frame::window(http2.controls.end(), 0, GIVEN_WINDOW - FIRST_WINDOW);
        http2
    }

    /// Takes in what came. An error ends the connection: its GOAWAY then waits to be sent.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Code> {
        let outcome = self.frames(bytes);
        if let Err(code) = outcome {
            frame::goaway(self.controls.end(), self.taken_on, code);
        }
        outcome
    }

    fn frames(&mut self, bytes: &[u8]) -> Result<(), Code> {
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.extend_from_slice(bytes);
        let mut read = 0;
        while let Some((frame, length)) = Frame::first(&inbox[read..])? {
            read += length;
            self.frame(&frame)?;
            if self.controls.len() > CONTROL_LIMIT {
                return Err(Code::EnhanceYourCalm);
            }
        }
        inbox.drain(..read);
        self.inbox = inbox;
        Ok(())
    }

    /// Whether a request waits to be answered.
    pub fn is_ready(&self) -> bool {
        let waits = |stream: &Stream| stream.whole && stream.request.is_some();
        self.stream.as_ref().is_some_and(waits)
    }

    /// Whether the client took back the request that is being answered.
    pub fn is_cancelled(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.cancelled)
    }

    /// The request that waits, if one does.
    pub fn next_request(&mut self) -> Option<Incoming> {
        let stream = self.stream.as_mut().filter(|stream| stream.whole)?;
        let request = stream.request.take()?;
        Some(Incoming::Request(request, std::mem::take(&mut stream.body)))
    }

    /// The answer is over: another stream may be opened.
    pub fn finish(&mut self) {
        self.stream = None;
    }

    /// Makes the stream's window, or the connection's, so much larger.
    fn widened(window: i64, by: i64) -> Option<i64> {
        Some(window + by).filter(|wide| *wide <= LARGEST_WINDOW)
    }
}
