//! Owns the framing of a script: all bytes of its answer as they go over the wire, and the steps
//! that cut them.

use measure::time::Length;

use super::h2::frame::{self, Code, flag, kind, setting};
use super::h2::heads;
use super::http::{self, Version};
use super::script::{Act, Ending, Framing, Head, Script, Step, When};

/// From the end of an answer that pauses the connection to the end of the pause.
const PAUSE: Length = Length::from_millis(300);

/// What stands around the writes of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapping {
    /// Each write is a chunk.
    Chunks,
    /// Nothing: the head states the length of all.
    Stated,
    /// Nothing: the body ends with the connection.
    UntilClose,
    /// Frames of this stream, of which those with the body are made when it is written: the client's
    /// windows cut it.
    Frames(u32),
}

/// One step with its bytes framed.
#[derive(Debug)]
pub struct Framed {
    /// When it is due.
    pub when: When,
    /// The place of its bytes among all.
    pub from: usize,
    /// The place from which on they are yet to be put in frames.
    pub body: usize,
    /// The place behind them.
    pub until: usize,
    /// Output tokens that they bring.
    pub tokens: u32,
    /// How the answer ends behind them, if it does.
    pub ending: Option<Ending>,
    /// How the same bytes are written again, if they are.
    pub again: Option<Again>,
}

/// What is left of a repeat.
#[derive(Debug)]
pub struct Again {
    /// From one write to the next.
    pub every: Length,
    /// Further writes; `None` for no end.
    pub left: Option<u64>,
}

impl Wrapping {
    /// What a script's framing becomes for a request that came so.
    pub fn of(framing: Framing, version: Version) -> Self {
        match (version, framing) {
            (Version::Http2 { stream }, _) => Wrapping::Frames(stream),
            (Version::Http11, Framing::Chunked) => Wrapping::Chunks,
            (_, Framing::ContentLength) => Wrapping::Stated,
            (_, Framing::Chunked | Framing::UntilClose) => Wrapping::UntilClose,
        }
    }
}

/// All bytes of the response, and the steps that cut them.
pub fn frame(script: Script, wrapping: Wrapping, keep: bool) -> (Vec<u8>, Vec<Framed>) {
    let held: u64 = script.steps.iter().map(|step| step.act.held()).sum();
    let room = usize::try_from(held).unwrap_or(0) + 512 + 16 * script.steps.len();
    let mut bytes = Vec::with_capacity(room);
    let mut steps = Vec::with_capacity(script.steps.len() + 1);
    head(&mut bytes, &script, wrapping, keep);
    let mut from = 0;
    if let Head::Own(at) = script.head {
        steps.push(bare(When::At(at), 0..bytes.len()));
        from = bytes.len();
    }
    for Step { when, act } in script.steps {
        if matches!(act, Act::Repeat { .. }) && steps.is_empty() {
            // The head in front of it is written once.
            steps.push(bare(when, 0..bytes.len()));
            from = bytes.len();
        }
        let mut step = bare(when, from..bytes.len());
        put(&mut bytes, &mut step, act, wrapping);
        from = step.until;
        let pauses = step.ending == Some(Ending::Pause);
        steps.push(step);
        if let (Wrapping::Frames(_), true) = (wrapping, pauses) {
            pause(&mut bytes, &mut steps);
        }
    }
    (bytes, steps)
}

/// A step of these bytes, which are framed, and of nothing else.
fn bare(when: When, place: std::ops::Range<usize>) -> Framed {
    Framed {
        when,
        from: place.start,
        body: place.end,
        until: place.end,
        tokens: 0,
        ending: None,
        again: None,
    }
}

/// Appends the head, if the answer has one.
fn head(bytes: &mut Vec<u8>, script: &Script, wrapping: Wrapping, keep: bool) {
    let length = script.steps.iter().map(|step| step.act.bytes()).sum();
    let Wrapping::Frames(stream) = wrapping else {
        return http::head(bytes, script, wrapping, length, keep);
    };
    let ending = script.ending().map(|(_, ending)| ending);
    if matches!(ending, Some(Ending::GoneAway | Ending::RefusedStream)) {
        return;
    }
    heads::response(bytes, script, length, stream);
    if ending == Some(Ending::LastStream) {
        frame::goaway(bytes, stream, Code::NoError);
    }
}

/// Appends what one step writes.
fn put(bytes: &mut Vec<u8>, step: &mut Framed, act: Act, wrapping: Wrapping) {
    let body = match act {
        Act::Write {
            bytes: body,
            tokens,
        } => {
            step.tokens = tokens;
            body
        }
        Act::Repeat {
            bytes: body,
            tokens,
            every,
            count,
        } => {
            let left = count.map(|count| count.saturating_sub(1));
            step.tokens = tokens;
            step.again = Some(Again { every, left });
            body
        }
        Act::End(ending) => {
            end(bytes, ending, wrapping);
            step.ending = Some(ending);
            Vec::new()
        }
    };
    match wrapping {
        _ if body.is_empty() => {}
        Wrapping::Chunks => http::chunk(bytes, &body),
        Wrapping::Stated | Wrapping::UntilClose | Wrapping::Frames(_) => bytes.extend(body),
    }
    step.until = bytes.len();
    let is_body = step.ending.is_none() && matches!(wrapping, Wrapping::Frames(_));
    if !is_body {
        step.body = step.until;
    }
}

/// Appends what ends a body so.
fn end(bytes: &mut Vec<u8>, ending: Ending, wrapping: Wrapping) {
    let stream = match wrapping {
        Wrapping::Frames(stream) => stream,
        Wrapping::Chunks if ending.is_proper() => {
            return bytes.extend_from_slice(http::LAST_CHUNK);
        }
        _ => return,
    };
    match ending {
        // The stream below this one: none that a client could have opened lies between them.
        Ending::GoneAway => frame::goaway(bytes, stream.saturating_sub(2), Code::NoError),
        Ending::RefusedStream => frame::reset(bytes, stream, Code::RefusedStream),
        Ending::ResetStream => frame::reset(bytes, stream, Code::Internal),
        Ending::Pause => frame::settings(bytes, &[(setting::MAX_CONCURRENT_STREAMS, 0)]),
        _ => {}
    }
    if ending.is_proper() {
        frame::put(bytes, kind::DATA, flag::END_STREAM, stream, &[]);
    }
}

/// Appends the end of a pause that begins with the last step: the answer is over behind it only.
fn pause(bytes: &mut Vec<u8>, steps: &mut Vec<Framed>) {
    let from = bytes.len();
    frame::settings(bytes, &[(setting::MAX_CONCURRENT_STREAMS, 1)]);
    let when = When::Paced {
        base: PAUSE,
        each: Length::ZERO,
    };
    let mut step = bare(when, from..bytes.len());
    step.ending = steps.last_mut().and_then(|last| last.ending.take());
    steps.push(step);
}
