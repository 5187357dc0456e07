//! Owns the way from stamped bytes to a trace: which event each read completed, and what it held.

use std::sync::Arc;

use crate::api::{Api, Event, clip};
use crate::scrub::Scrub;
use crate::sse;
use crate::stamp::Stamp;
use crate::time::Instant;
use crate::trace::{Body, Oddity, Read, ServerError, Trace, Transport};

/// Most bytes kept of a body that is not a stream.
const WHOLE_LIMIT: usize = 16 << 20;
/// Most bytes of a whole stream.
const STREAM_LIMIT: u64 = 256 << 20;
/// Most reads with content of one stream.
const READS_LIMIT: usize = 1_000_000;
/// Most bytes of text kept, where text is kept.
const TEXT_LIMIT: usize = 4 << 20;
/// Most bytes kept of a server's message.
const MESSAGE_LIMIT: usize = 200;

/// How to decode a response.
#[derive(Debug, Clone)]
pub struct Options {
    /// The API spoken.
    pub api: Api,
    /// Keep the text that arrives.
    pub keep_text: bool,
    /// Takes secrets out of a server's messages.
    pub scrub: Arc<Scrub>,
}

/// What a piece of the body did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// It brought content.
    pub content: bool,
    /// The API's terminal event has come.
    pub terminal: bool,
    /// A limit was reached: read no further.
    pub stop: bool,
}

/// Decodes one response. It sees bytes and stamps, never a clock.
#[derive(Debug)]
pub struct Decoder {
    parser: sse::Parser,
    mode: Mode,
    whole: Vec<u8>,
    reading: Reading,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing of the body has come.
    Undecided,
    /// Events.
    Events,
    /// One body, read at its end.
    Whole,
    /// Of no use.
    Other,
}

#[derive(Debug)]
struct Reading {
    options: Options,
    trace: Trace,
    current: Option<(Stamp, Read)>,
    last: Option<Instant>,
    stated: u64,
    limit: Option<String>,
    event_stream: bool,
    progress: Progress,
}

impl Decoder {
    /// A decoder that fills in `trace`.
    pub fn new(options: Options, mut trace: Trace) -> Self {
        trace.text = options.keep_text.then(String::new);
        Decoder {
            parser: sse::Parser::new(sse::Limits::default()),
            mode: Mode::Undecided,
            whole: Vec::new(),
            reading: Reading {
                options,
                trace,
                current: None,
                last: None,
                stated: 0,
                limit: None,
                event_stream: false,
                progress: Progress::default(),
            },
        }
    }

    /// Takes the response's head.
    pub fn head(&mut self, stamp: Stamp, status: u16, content_type: Option<&str>, encoded: bool) {
        let reading = &mut self.reading;
        reading.see(stamp);
        reading.trace.head = Some(stamp.at);
        reading.trace.status = Some(status);
        let kind = content_type.unwrap_or("").trim().to_ascii_lowercase();
        reading.event_stream = kind.starts_with("text/event-stream");
        if encoded && status == 200 {
            reading.trace.note(Oddity::Compressed);
            reading.malformed(
                "the body is compressed although none was asked for, and cannot be read",
            );
            self.mode = Mode::Other;
        }
        if status != 200 {
            self.mode = Mode::Whole;
        }
    }

    /// Takes a piece of the body that arrived with this stamp.
    pub fn data(&mut self, stamp: Stamp, bytes: &[u8]) -> Progress {
        let reading = &mut self.reading;
        reading.progress = Progress {
            terminal: reading.trace.sentinel,
            ..Progress::default()
        };
        reading.see(stamp);
        reading.begin_read(stamp, bytes.len());
        if reading.trace.bytes > STREAM_LIMIT {
            reading.over("the response is longer than 256 MiB");
        }
        if self.mode == Mode::Undecided {
            self.mode = reading.sniff(bytes);
        }
        match self.mode {
            Mode::Events => {
                let fed = self.parser.feed(bytes, |item| reading.item(stamp, item));
                if let Err(long) = fed {
                    reading.over(&long.to_string());
                }
            }
            Mode::Whole if self.whole.len() + bytes.len() > WHOLE_LIMIT => {
                reading.over("the body is longer than 16 MiB");
            }
            Mode::Whole => self.whole.extend_from_slice(bytes),
            Mode::Other | Mode::Undecided => {}
        }
        self.reading.progress
    }

    /// What is to be said of a limit that was reached.
    pub fn limit(&self) -> Option<&str> {
        self.reading.limit.as_deref()
    }

    /// Ends the response, whose last byte or end came at `at`, and hands the trace out.
    pub fn close(mut self, transport: Transport, at: Option<Instant>) -> Trace {
        if self.mode == Mode::Events {
            let reading = &mut self.reading;
            let stamp = reading.current.as_ref().map(|(stamp, _)| *stamp);
            if let Some(stamp) = stamp
                && let Err(long) = self.parser.finish(|item| reading.item(stamp, item))
            {
                reading.over(&long.to_string());
            }
        }
        if self.mode == Mode::Whole {
            self.reading.whole(&self.whole);
        }
        self.reading.close(transport, at)
    }
}

impl Reading {
    fn see(&mut self, stamp: Stamp) {
        self.trace.stamps = self.trace.stamps.with(stamp.source);
        self.last = Some(stamp.at);
        if stamp.clamped {
            self.trace.note(Oddity::StampClamped);
        }
    }

    fn over(&mut self, text: &str) {
        self.limit.get_or_insert_with(|| text.to_owned());
        self.progress.stop = true;
    }

    /// Whether a body is a stream of events, one whole body, or neither.
    fn sniff(&mut self, bytes: &[u8]) -> Mode {
        let start = bytes
            .strip_prefix(b"\xEF\xBB\xBF")
            .unwrap_or(bytes)
            .trim_ascii_start();
        let event_like = [&b"data"[..], b"event", b":", b"id", b"retry", b"error"];
        match start.first() {
            None if bytes.is_empty() => Mode::Undecided,
            Some(b'{' | b'[') => Mode::Whole,
            Some(b'<') => {
                self.malformed("the body is a page in HTML, not a stream: something between here and the server answered");
                Mode::Other
            }
            _ if self.event_stream => {
                self.trace.body = Body::Stream;
                Mode::Events
            }
            _ if event_like.iter().any(|name| start.starts_with(name)) => {
                self.trace.note(Oddity::ContentType);
                self.trace.body = Body::Stream;
                Mode::Events
            }
            _ => {
                self.malformed("the body is neither a stream of events nor JSON");
                Mode::Other
            }
        }
    }

    fn malformed(&mut self, text: &str) {
        if self.trace.body != Body::Stream {
            self.trace.body = Body::Other;
        }
        if self.trace.malformed.is_none() {
            self.trace.malformed = Some(clip(&self.options.scrub.apply(text), MESSAGE_LIMIT));
        }
    }

    /// Reads with one stamp are one; a new stamp ends the read before it.
    fn begin_read(&mut self, stamp: Stamp, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.trace.bytes = self.trace.bytes.saturating_add(u64::from(bytes));
        if let Some((current, read)) = &mut self.current
            && *current == stamp
        {
            read.bytes = read.bytes.saturating_add(bytes);
            return;
        }
        self.end_read();
        let read = Read {
            at: stamp.at,
            bytes,
            chunks: 0,
            bare: 0,
            chars: 0,
            answer_chunks: 0,
            answer_chars: 0,
            tokens: None,
            lag_low: stamp.lag_low,
            lag_high: stamp.lag_high,
        };
        self.current = Some((stamp, read));
    }

    fn end_read(&mut self) {
        if let Some((_, read)) = self.current.take()
            && read.chunks > 0
        {
            self.trace.reads.push(read);
            if self.trace.reads.len() >= READS_LIMIT {
                self.over("more than 1,000,000 reads brought content");
            }
        }
    }

    fn item(&mut self, stamp: Stamp, item: sse::Item<'_>) {
        self.trace.first_event.get_or_insert(stamp.at);
        match item {
            sse::Item::Comment => self.trace.comments += 1,
            sse::Item::ErrorField(value) => {
                let text = String::from_utf8_lossy(value);
                let error = crate::api::error_body(&text).unwrap_or(ServerError {
                    code: None,
                    message: text.into_owned(),
                });
                self.error(error);
            }
            sse::Item::Event {
                name,
                data,
                terminated,
            } => {
                self.trace.events += 1;
                self.event(stamp, name, data, terminated);
            }
        }
    }

    fn event(&mut self, stamp: Stamp, name: &[u8], data: &[u8], terminated: bool) {
        let text = String::from_utf8_lossy(data);
        if matches!(text, std::borrow::Cow::Owned(_)) {
            self.trace.note(Oddity::TextRepaired);
        }
        let counts = terminated && !self.trace.sentinel;
        let kept = self
            .trace
            .text
            .as_mut()
            .filter(|text| counts && text.len() < TEXT_LIMIT);
        match self.options.api.read(name, &text, kept) {
            Ok(event) if terminated => self.take(stamp, event),
            // Cut off before its blank line: only what ends an answer is taken from it.
            Ok(event) => {
                self.trace.note(Oddity::UnterminatedTail);
                self.take(
                    stamp,
                    Event {
                        usage: event.usage,
                        finish: event.finish,
                        sentinel: event.sentinel,
                        error: event.error,
                        declared: event.declared,
                        ..Event::default()
                    },
                );
            }
            Err(_) if !terminated => self.trace.note(Oddity::UnterminatedTail),
            Err(text) => self.malformed(&text),
        }
    }

    fn error(&mut self, error: ServerError) {
        if self.trace.error.is_none() {
            let clean = |text: &str| clip(&self.options.scrub.apply(text), MESSAGE_LIMIT);
            let error = ServerError {
                code: error.code.as_deref().map(clean),
                message: clean(&error.message),
            };
            self.trace.error = Some(error);
        }
    }

    fn take(&mut self, stamp: Stamp, event: Event) {
        if self.trace.sentinel {
            // The answer is over: what follows is noted and changes nothing.
            if event.is_content() {
                self.trace.note(Oddity::PostDoneData);
            }
            return;
        }
        if event.is_content() {
            self.content(stamp, &event);
        }
        if let Some(error) = event.error {
            self.error(error);
        }
        if event.repaired {
            self.trace.note(Oddity::TextRepaired);
        }
        if event.restarted {
            self.trace.note(Oddity::RestartedStream);
        }
        self.trace.usage = event.usage.or(self.trace.usage);
        self.trace.finish_reason = event.finish.or(self.trace.finish_reason);
        self.trace.declared = event.declared.or(self.trace.declared);
        if event.sentinel {
            self.trace.sentinel = true;
            self.trace.end = Some(stamp.at);
            self.progress.terminal = true;
        }
    }

    fn content(&mut self, stamp: Stamp, event: &Event) {
        self.progress.content = true;
        let trace = &mut self.trace;
        trace.first_content.get_or_insert(stamp.at);
        trace.last_content = Some(stamp.at);
        if event.is_answer() {
            trace.first_answer.get_or_insert(stamp.at);
        }
        let stated = event.usage.and_then(|usage| usage.output);
        let tokens = stated.map(|total| total.saturating_sub(self.stated));
        self.stated = stated.unwrap_or(self.stated);
        trace.stated_chunks += u64::from(stated.is_some());
        let Some((_, read)) = &mut self.current else {
            return;
        };
        let chars = event.answer_chars.saturating_add(event.reasoning_chars);
        if let Some(tokens) = tokens {
            let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
            read.tokens = Some(read.tokens.unwrap_or(0).saturating_add(tokens));
        }
        read.chunks += 1;
        read.bare += u32::from(event.is_bare());
        read.chars = read.chars.saturating_add(chars);
        read.answer_chunks += u32::from(event.is_answer());
        read.answer_chars = read.answer_chars.saturating_add(event.answer_chars);
    }

    /// Reads a whole body at its end: an error, or an answer that was no stream.
    fn whole(&mut self, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        if self.trace.status != Some(200) {
            let plain = || ServerError {
                code: None,
                message: text.trim().to_owned(),
            };
            let error = crate::api::error_body(&text).unwrap_or_else(plain);
            if !error.message.is_empty() {
                self.error(error);
            }
            return;
        }
        let kept = self.trace.text.as_mut();
        match self.options.api.read(b"", &text, kept) {
            Ok(event) => {
                self.trace.body = Body::Whole;
                self.trace.events += 1;
                if let Some((stamp, _)) = self.current {
                    self.trace.first_event.get_or_insert(stamp.at);
                    self.take(stamp, event);
                }
            }
            Err(text) => self.malformed(&text),
        }
    }

    fn close(mut self, transport: Transport, at: Option<Instant>) -> Trace {
        self.end_read();
        let ended = matches!(
            transport,
            Transport::Complete | Transport::Closed | Transport::Lingered
        );
        if matches!(transport, Transport::Closed) {
            self.trace.note(Oddity::CloseDelimited);
        }
        if ended && self.trace.end.is_none() {
            self.trace.end = at.or(self.last);
        }
        self.trace.transport = match self.limit {
            Some(text) => Transport::Limit { text },
            None => transport,
        };
        self.trace
    }
}
