//! Owns how a streamed body is cut into events: one parser a framing, and what all of them hand out.

mod depth;
pub mod json_array;
mod limits;
pub mod ndjson;
pub mod sse;

pub use depth::nesting;
pub use limits::{Limits, Part, TooLong};

/// A buffer that one large event made grow is given back down to this many bytes, so that a
/// thousand streams do not each keep their largest event.
const KEPT: usize = 16 * 1024;

/// What a body may start with before its first byte of text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What a stream said, in the order in which it said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item<'a> {
    /// An event: in server-sent events one with at least one data line, even if that line was
    /// empty; a line of NDJSON; an element of an array.
    Event {
        /// The value of its `event` field; empty where there was none.
        name: &'a [u8],
        /// Its data as it came: not checked for UTF-8.
        data: &'a [u8],
        /// Whether its end came. Without it the stream ended first, so the data may be cut
        /// anywhere: look only for what ends an answer, never for content.
        terminated: bool,
    },
    /// A comment line: the server lives, but says nothing.
    Comment,
    /// The value of a field named `error`. The standard knows no such field, but some servers
    /// report a failed generation by it and by nothing else. Belongs to no event.
    ErrorField(&'a [u8]),
    /// JSON between events, framed as none, or the first line of a page in HTML: where it is no
    /// error, the standard ignores it.
    Loose(&'a [u8]),
    /// The array is closed: nothing may follow.
    End,
    /// Bytes where none may be: the body is not what its start promised.
    Stray(&'a [u8]),
}

/// A parser of one body, in any framing.
#[derive(Debug)]
pub enum Frames {
    /// Server-sent events.
    Sse(sse::Parser),
    /// One JSON object a line.
    Ndjson(ndjson::Parser),
    /// One JSON array, an element an event.
    Array(json_array::Parser),
}

impl Frames {
    /// Reads the next piece of the body and hands each item it completes to `on`, in order.
    ///
    /// # Errors
    /// A line, event or element is over its limit; the parser is then fit only to be dropped.
    pub fn feed<F: FnMut(Item<'_>)>(&mut self, piece: &[u8], on: F) -> Result<(), TooLong> {
        match self {
            Frames::Sse(parser) => parser.feed(piece, on),
            Frames::Ndjson(parser) => parser.feed(piece, on),
            Frames::Array(parser) => parser.feed(piece, on),
        }
    }

    /// The body is over: hands out what is still open.
    ///
    /// # Errors
    /// What is still open is over its limit.
    pub fn finish<F: FnMut(Item<'_>)>(&mut self, on: F) -> Result<(), TooLong> {
        match self {
            Frames::Sse(parser) => parser.finish(on),
            Frames::Ndjson(parser) => {
                parser.finish(on);
                Ok(())
            }
            Frames::Array(parser) => {
                parser.finish(on);
                Ok(())
            }
        }
    }
}
