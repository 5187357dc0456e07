//! Owns the way from stamped bytes to a trace: which event each read completed, and what it held.

use std::borrow::Cow;
use std::sync::Arc;

use crate::api::{self, Api, Event, Framing, Reader, clip};
use crate::frames::{BYTE_ORDER_MARK, Frames, Item, Limits, json_array, ndjson, nesting, sse};
use crate::inflate::{Fault, Inflater};
use crate::scrub::Scrub;
use crate::stamp::Stamp;
use crate::time::Instant;
use crate::trace::{Body, Oddity, Read, ServerError, Trace, Transport};

/// Most bytes kept of a body that is not a stream.
const WHOLE_LIMIT: usize = 16 << 20;
/// Most bytes of a whole stream.
const STREAM_LIMIT: u64 = 256 << 20;
/// Reads that room is made for at once, where as many tokens were asked for: lists of a thousand
/// streams that double in step leave holes in memory as large as themselves.
const READS_AHEAD: u64 = 1_024;
/// Most reads with content of one stream.
const READS_LIMIT: usize = 1_000_000;
/// Most bytes of text kept, where text is kept.
const TEXT_LIMIT: usize = 4 << 20;
/// Most bytes kept of a server's message.
const MESSAGE_LIMIT: usize = 200;
/// Bytes of an event from which its nesting is looked at before it is parsed: what is shorter
/// cannot nest deep enough to cost anything.
const LARGE: usize = 16 << 10;
/// Bytes at the start of a body that decide what it is.
const SNIFFED: usize = 4096;
/// How a stream of events may start.
const EVENT_LIKE: [&[u8]; 6] = [b"data", b"event", b":", b"id", b"retry", b"error"];
/// Deepest nesting of an event's JSON that is read.
const NESTING_LIMIT: u32 = 128;

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
    mode: Mode,
    inflater: Option<Inflater>,
    reading: Reading,
}

#[derive(Debug)]
enum Mode {
    /// Not enough of the body has come to tell what it is: what has come.
    Undecided(Vec<u8>),
    /// Events.
    Events(Frames),
    /// One body, read at its end.
    Whole(Vec<u8>),
    /// Of no use.
    Other,
}

#[derive(Debug)]
struct Reading {
    options: Options,
    reader: Box<dyn Reader>,
    trace: Trace,
    current: Option<(Stamp, Read)>,
    last: Option<Instant>,
    stated: u64,
    limit: Option<String>,
    kind: Kind,
    progress: Progress,
}

/// What the content type says of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Server-sent events.
    EventStream,
    /// One JSON text.
    Json,
    /// Anything else, or nothing.
    Unnamed,
}

impl Kind {
    fn of(content_type: Option<&str>) -> Self {
        let kind = content_type.unwrap_or("").trim().to_ascii_lowercase();
        match kind.split(';').next().unwrap_or_default().trim_end() {
            "text/event-stream" => Kind::EventStream,
            "application/json" => Kind::Json,
            _ => Kind::Unnamed,
        }
    }
}

impl Decoder {
    /// A decoder that fills in `trace`.
    pub fn new(options: Options, mut trace: Trace) -> Self {
        trace.text = options.keep_text.then(String::new);
        Decoder {
            mode: Mode::Undecided(Vec::new()),
            inflater: None,
            reading: Reading {
                reader: (options.api.dialect().reader)(),
                options,
                trace,
                current: None,
                last: None,
                stated: 0,
                limit: None,
                kind: Kind::Unnamed,
                progress: Progress::default(),
            },
        }
    }

    /// Takes the response's head: its status, `Content-Type` and `Content-Encoding`.
    pub fn head(
        &mut self,
        stamp: Stamp,
        status: u16,
        content_type: Option<&str>,
        encoding: Option<&str>,
    ) {
        let reading = &mut self.reading;
        reading.see(stamp);
        reading.trace.head = Some(stamp.at);
        reading.trace.status = Some(status);
        reading.kind = Kind::of(content_type);
        if status != 200 {
            self.mode = Mode::Whole(Vec::new());
        }
        let Some(encoding) = encoding.filter(|name| !name.eq_ignore_ascii_case("identity")) else {
            return;
        };
        reading.trace.note(Oddity::Compressed);
        self.inflater = Inflater::of(encoding);
        if self.inflater.is_none() {
            let name = clip(encoding, 40);
            reading.undecodable(&format!(
                "the body is compressed as {name:?}, which is not read here"
            ));
            self.mode = Mode::Other;
        }
    }

    /// Takes the server's own time to the first token, in seconds, from a header.
    pub fn declare_first(&mut self, seconds: &str) {
        let first = seconds
            .trim()
            .parse::<f64>()
            .ok()
            .and_then(api::timing::length);
        if let Some(first) = first {
            let declared = self.reading.trace.declared.get_or_insert_default();
            declared.first = Some(first);
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
        match &mut self.inflater {
            None => self.plain(stamp, bytes),
            Some(inflater) => {
                let inflated = inflater.feed(bytes);
                let (plain, fault) = match inflated {
                    Ok(plain) => (plain, None),
                    Err((plain, fault)) => (plain, Some(fault)),
                };
                self.plain(stamp, &plain);
                if let Some(fault) = fault {
                    self.inflater = None;
                    self.mode = Mode::Other;
                    self.reading.not_inflated(&fault);
                }
            }
        }
        self.reading.progress
    }

    fn plain(&mut self, stamp: Stamp, bytes: &[u8]) {
        let reading = &mut self.reading;
        if let Mode::Undecided(held) = &mut self.mode {
            let start = match held.is_empty() {
                true => Cow::Borrowed(bytes),
                false => Cow::Owned([held, bytes].concat()),
            };
            match reading.sniff(&start, false) {
                Some(mode) => {
                    self.mode = mode;
                    self.decided(stamp, &start);
                }
                None => *held = start.into_owned(),
            }
            return;
        }
        self.decided(stamp, bytes);
    }

    fn decided(&mut self, stamp: Stamp, bytes: &[u8]) {
        let reading = &mut self.reading;
        match &mut self.mode {
            Mode::Events(frames) => {
                let fed = frames.feed(bytes, |item| reading.item(stamp, item));
                if let Err(long) = fed {
                    reading.over(&long.to_string());
                }
            }
            Mode::Whole(whole) if whole.len() + bytes.len() > WHOLE_LIMIT => {
                reading.over("the body is longer than 16 MiB");
            }
            Mode::Whole(whole) => whole.extend_from_slice(bytes),
            Mode::Other if reading.trace.bytes > WHOLE_LIMIT as u64 => {
                reading.over("the body is of no use, and longer than 16 MiB");
            }
            Mode::Other | Mode::Undecided(_) => {}
        }
    }

    /// What is to be said of a limit that was reached.
    pub fn limit(&self) -> Option<&str> {
        self.reading.limit.as_deref()
    }

    /// Ends the response, whose last byte or end came at `at`, and hands the trace out.
    pub fn close(mut self, transport: Transport, at: Option<Instant>) -> Trace {
        let reading = &mut self.reading;
        let stamp = reading.current.as_ref().map(|(stamp, _)| *stamp);
        if let (Mode::Undecided(held), Some(stamp)) = (&mut self.mode, stamp)
            && !held.is_empty()
        {
            let held = std::mem::take(held);
            self.mode = reading.sniff(&held, true).unwrap_or(Mode::Other);
            self.decided(stamp, &held);
        }
        let reading = &mut self.reading;
        match &mut self.mode {
            Mode::Events(frames) => {
                if let Some(stamp) = stamp
                    && let Err(long) = frames.finish(|item| reading.item(stamp, item))
                {
                    reading.over(&long.to_string());
                }
                if matches!(frames, Frames::Array(_)) && !reading.trace.sentinel {
                    reading.trace.note(Oddity::OpenArray);
                }
            }
            Mode::Whole(whole) => reading.whole(whole),
            Mode::Undecided(_) | Mode::Other => {}
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

    /// Whether a body is a stream of events, one whole body, or neither; `None` while more of it
    /// could still decide. However the body is cut, the same bytes decide.
    fn sniff(&mut self, bytes: &[u8], is_all: bool) -> Option<Mode> {
        let more_may_come = !is_all && bytes.len() < SNIFFED;
        let bytes = &bytes[..bytes.len().min(SNIFFED)];
        let start = bytes
            .strip_prefix(BYTE_ORDER_MARK)
            .unwrap_or(bytes)
            .trim_ascii_start();
        let begins = |word: &[u8]| start.len() < word.len() && word.starts_with(start);
        let is_open = begins(BYTE_ORDER_MARK)
            || (self.kind != Kind::EventStream && EVENT_LIKE.iter().any(|name| begins(name)));
        if more_may_come && is_open {
            return None;
        }
        Some(self.mode(start))
    }

    fn mode(&mut self, start: &[u8]) -> Mode {
        let limits = Limits::default();
        let framing = self.options.api.dialect().framing;
        match (start.first(), framing) {
            (Some(b'{'), Framing::Ndjson) => {
                self.trace.body = Body::Stream;
                Mode::Events(Frames::Ndjson(ndjson::Parser::new(limits)))
            }
            (Some(b'['), Framing::SseOrArray) => {
                self.trace.body = Body::Stream;
                Mode::Events(Frames::Array(json_array::Parser::new(limits)))
            }
            (Some(b'{' | b'['), _) if self.kind != Kind::EventStream => Mode::Whole(Vec::new()),
            (Some(b'<'), _) => {
                self.malformed("the body is a page in HTML, not a stream: something between here and the server answered");
                Mode::Other
            }
            _ if self.kind == Kind::EventStream => self.events(limits),
            _ if EVENT_LIKE.iter().any(|name| start.starts_with(name)) => {
                self.trace.note(Oddity::ContentType);
                self.events(limits)
            }
            _ => {
                self.malformed("the body is neither a stream of events nor JSON");
                Mode::Other
            }
        }
    }

    fn events(&mut self, limits: Limits) -> Mode {
        self.trace.body = Body::Stream;
        Mode::Events(Frames::Sse(sse::Parser::new(limits)))
    }

    fn malformed(&mut self, text: &str) {
        if self.trace.body != Body::Stream {
            self.trace.body = Body::Other;
        }
        if self.trace.malformed.is_none() {
            self.trace.malformed = Some(clip(&self.options.scrub.apply(text), MESSAGE_LIMIT));
        }
    }

    fn undecodable(&mut self, text: &str) {
        self.trace.note(Oddity::Undecodable);
        self.malformed(text);
    }

    fn not_inflated(&mut self, fault: &Fault) {
        match fault {
            Fault::Bomb => self.over(&fault.to_string()),
            Fault::Broken => {
                self.undecodable(&fault.to_string());
                self.progress.stop = true;
            }
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
            if self.trace.reads.is_empty() {
                let ahead = self.trace.asked_output.unwrap_or(0).min(READS_AHEAD);
                self.trace.reads.reserve_exact(ahead as usize);
            }
            self.trace.reads.push(read);
            if self.trace.reads.len() >= READS_LIMIT {
                self.over("more than 1,000,000 reads brought content");
            }
        }
    }

    fn item(&mut self, stamp: Stamp, item: Item<'_>) {
        // Past a limit nothing counts, whether or not the same read brought more.
        if self.limit.is_some() {
            return;
        }
        self.trace.first_event.get_or_insert(stamp.at);
        match item {
            Item::Comment => self.trace.comments += 1,
            Item::ErrorField(value) => {
                let text = String::from_utf8_lossy(value);
                let error = api::error_body(&text).unwrap_or(ServerError {
                    code: None,
                    message: text.into_owned(),
                });
                self.error(error);
            }
            // The standard ignores what is framed as nothing, and so is it here unless it fails.
            Item::Loose(value) => {
                let text = String::from_utf8_lossy(value);
                match text.starts_with('<') {
                    true if self.trace.sentinel => self.trace.note(Oddity::PostDoneData),
                    true => self.malformed("a page in HTML stands among the events: something between here and the server answered"),
                    false => {}
                }
                let may_fail = api::text::may_hold(&text, "error");
                if let Some(error) = may_fail.then(|| api::error_body(&text)).flatten() {
                    self.error(error);
                }
            }
            Item::End => self.take(
                stamp,
                Event {
                    sentinel: true,
                    ..Event::default()
                },
            ),
            Item::Stray(_) if self.trace.sentinel => self.trace.note(Oddity::PostDoneData),
            Item::Stray(_) => self.malformed(
                "something other than one comma stands between the elements of the array",
            ),
            Item::Event {
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
        if data.len() > LARGE && nesting(data) > NESTING_LIMIT {
            return self.over("the JSON of an event is nested deeper than 128 brackets");
        }
        let text = String::from_utf8_lossy(data);
        if matches!(text, Cow::Owned(_)) {
            self.trace.note(Oddity::TextRepaired);
        }
        let counts = terminated && !self.trace.sentinel;
        let kept = self
            .trace
            .text
            .as_mut()
            .filter(|text| counts && text.len() < TEXT_LIMIT);
        match api::read(self.reader.as_mut(), name, &text, kept) {
            Ok(event) if terminated => self.take(stamp, event),
            // Cut off before its end: only what ends an answer is taken from it.
            Ok(event) => {
                self.trace.note(Oddity::UnterminatedTail);
                self.take(stamp, event.ending_only());
            }
            Err(_) if !terminated => self.trace.note(Oddity::UnterminatedTail),
            Err(_) if self.trace.sentinel => self.trace.note(Oddity::PostDoneData),
            Err(_) if nesting(data) > NESTING_LIMIT => {
                self.over("the JSON of an event is nested deeper than 128 brackets");
            }
            Err(text) => self.malformed(&text),
        }
    }

    fn error(&mut self, error: ServerError) {
        if self.trace.sentinel {
            // The answer is over, and an error behind it is not the answer's.
            self.trace.note(Oddity::PostDoneData);
            return;
        }
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
            if event.is_content() || event.error.is_some() || event.gap || event.restarted {
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
        if event.gap {
            self.trace.note(Oddity::SeqGap);
        }
        if let Some(text) = event.lost {
            self.malformed(&text);
        }
        self.trace.reasoning_summary |= event.summary;
        if let Some(later) = event.usage {
            self.trace.update_usage(later, self.reader.counts_run());
        }
        self.trace.finish_reason = match (self.trace.finish_reason, event.finish) {
            (Some(before), Some(later)) => Some(before.and(later)),
            (before, later) => later.or(before),
        };
        self.trace.declared = match (self.trace.declared, event.declared) {
            (Some(before), Some(later)) => Some(before.updated(later)),
            (before, later) => later.or(before),
        };
        if event.sentinel {
            self.trace.sentinel = true;
            self.unless_finished();
            self.trace.end = Some(stamp.at);
            self.progress.terminal = true;
        }
    }

    /// A good finish counts only where all that began has one, when the answer is over: what comes
    /// behind its terminal event changes nothing.
    fn unless_finished(&mut self) {
        if !self.reader.is_finished() {
            self.trace.finish_reason = self.trace.finish_reason.filter(|finish| finish.fails());
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
            let error = api::error_body(&text).unwrap_or_else(plain);
            if !error.message.is_empty() {
                self.error(error);
            }
            return;
        }
        let kept = self.trace.text.as_mut();
        match api::read_whole(self.reader.as_mut(), &text, kept) {
            Ok(event) => {
                self.trace.body = Body::Whole;
                self.trace.events += 1;
                if let Some((stamp, _)) = self.current {
                    self.trace.first_event.get_or_insert(stamp.at);
                    self.take(stamp, event);
                }
            }
            Err(_) if nesting(body) > NESTING_LIMIT => {
                self.over("the body's JSON is nested deeper than 128 brackets");
            }
            Err(text) => self.malformed(&text),
        }
    }

    /// One line of JSON, and said to be JSON: a whole answer of an API whose streams are lines.
    fn whole_line(&mut self) {
        let lines = self.options.api.dialect().framing == Framing::Ndjson;
        if lines && self.kind == Kind::Json && self.trace.events == 1 {
            self.trace.body = Body::Whole;
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
        if !self.trace.sentinel {
            self.unless_finished();
        }
        self.whole_line();
        self.trace.text = self.trace.text.map(|text| self.options.scrub.apply(&text));
        self.trace.transport = match self.limit {
            Some(text) => Transport::Limit { text },
            None => transport,
        };
        self.trace
    }
}
