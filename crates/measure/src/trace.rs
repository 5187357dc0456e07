//! Owns the trace: everything observed of one request, from which every figure is made.

use serde::{Deserialize, Serialize};

use crate::probe::head::Head;
use crate::stamp::StampSource;
use crate::time::{Instant, Length};

/// One return of the socket that brought content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The stamp its bytes share.
    pub at: Instant,
    /// Body bytes it brought.
    pub bytes: u32,
    /// Protocol events with content that it completed.
    pub chunks: u32,
    /// Of these, events that bring only a tool's name: content, but no token of their own.
    pub bare: u32,
    /// Characters of content.
    pub chars: u32,
    /// Of the chunks, those with answer text or a tool call.
    pub answer_chunks: u32,
    /// Of the characters, those of answer text or a tool call.
    pub answer_chars: u32,
    /// Tokens as the server stated them per chunk, where it did.
    pub tokens: Option<u32>,
    /// At least so late was this client; `None` without a kernel stamp.
    pub lag_low: Option<Length>,
    /// At most so late was this client.
    pub lag_high: Length,
}

/// How the trace's stamps were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stamps {
    /// No read yet.
    #[default]
    None,
    /// All by the kernel.
    Kernel,
    /// All by a clock read after the read.
    Read,
    /// Some of each.
    Mixed,
}

impl Stamps {
    /// What a trace's stamps are once one of `source` is added.
    pub fn with(self, source: StampSource) -> Self {
        match (self, source) {
            (Stamps::None | Stamps::Kernel, StampSource::Kernel) => Stamps::Kernel,
            (Stamps::None | Stamps::Read, StampSource::Read) => Stamps::Read,
            _ => Stamps::Mixed,
        }
    }
}

/// The phase of a request in which a wait ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Looking the name up.
    Dns,
    /// Opening the connection.
    Connect,
    /// The TLS handshake.
    Tls,
    /// No content yet.
    First,
    /// No further content.
    Idle,
    /// The whole request.
    Total,
}

/// How the exchange ended, below the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Transport {
    /// The body's legal end: its last chunk, or its stated length.
    Complete,
    /// The end of a body that only the close of its connection ends: cannot prove completeness.
    Closed,
    /// The terminal event came and the body stayed open for another second.
    Lingered,
    /// Cut: no last chunk, too few bytes, or a reset.
    Broken {
        /// What the connection said.
        text: String,
    },
    /// A wait ran out.
    Timeout {
        /// Which.
        phase: Phase,
    },
    /// A limit of this client was reached; the text names it.
    Limit {
        /// Which.
        text: String,
    },
    /// No connection.
    NoConnection {
        /// Which phase failed.
        phase: Phase,
        /// Whether this machine, not the other, was out of something.
        local: bool,
        /// Why.
        text: String,
    },
    /// A kept connection was closed before any byte of the response.
    Stale,
    /// The request could not be exchanged for another reason, before a response.
    NoResponse {
        /// Why.
        text: String,
    },
    /// Still running when the run ended.
    Drained,
    /// Stopped by the user.
    Cancelled,
}

/// What kind of body came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// None, or nothing of it yet.
    #[default]
    None,
    /// A stream of events.
    Stream,
    /// One whole body of the API.
    Whole,
    /// Something that is no answer of the API.
    Other,
}

/// Why the model stopped, over all APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// A natural end or a stop word.
    Stop,
    /// A tool is to be called.
    Tool,
    /// The limit of output tokens.
    Length,
    /// A filter.
    Filter,
    /// An error, given as a reason to finish.
    Error,
    /// Any other reason.
    Other,
}

impl Finish {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::Tool => "tool",
            Finish::Length => "length",
            Finish::Filter => "filter",
            Finish::Error => "error",
            Finish::Other => "other",
        }
    }

    /// Whether an answer that ends so is none.
    pub fn fails(self) -> bool {
        matches!(self, Finish::Filter | Finish::Error)
    }

    /// The end of an answer that gave this one and gives another: a failing end holds, whatever
    /// stands beside it or comes later, and of two that fail the error. Else the later one counts.
    pub fn and(self, later: Finish) -> Finish {
        match (self, later) {
            (Finish::Error, _) | (_, Finish::Error) => Finish::Error,
            (Finish::Filter, _) | (_, Finish::Filter) => Finish::Filter,
            _ => later,
        }
    }
}

/// Token counts as the server gave them. Absent is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Prompt tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Output tokens, with or without reasoning: the sums tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// The stated total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Reasoning tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// Prompt tokens served from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Predicted tokens that were rejected: billed, never sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<u64>,
    /// A count was negative, fractional or too large.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bad: bool,
}

impl Usage {
    /// With each count that `later` gives in the place of the one before: what a server leaves out
    /// it does not take back.
    pub fn updated(self, later: Usage) -> Usage {
        Usage {
            input: later.input.or(self.input),
            output: later.output.or(self.output),
            total: later.total.or(self.total),
            reasoning: later.reasoning.or(self.reasoning),
            cached: later.cached.or(self.cached),
            rejected: later.rejected.or(self.rejected),
            bad: self.bad || later.bad,
        }
    }

    /// With the output of another choice added; both had the same prompt.
    pub fn with_output_of(self, other: Usage) -> Usage {
        let add = |one: Option<u64>, more: Option<u64>| match (one, more) {
            (Some(one), Some(more)) => Some(one.saturating_add(more)),
            (one, more) => one.or(more),
        };
        Usage {
            output: add(self.output, other.output),
            total: add(self.total, other.output),
            reasoning: add(self.reasoning, other.reasoning),
            rejected: add(self.rejected, other.rejected),
            bad: self.bad || other.bad,
            ..self
        }
    }
}

/// What the server said of its own timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Declared {
    /// Time for the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Length>,
    /// Prompt tokens that took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Time for the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Length>,
    /// Output tokens that took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Time waiting in the server's queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Length>,
    /// Time to the first token, as the server counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Length>,
    /// Time to load the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Length>,
    /// Time of the whole request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Length>,
}

impl Declared {
    /// With each time that `later` gives in the place of the one before.
    pub fn updated(self, later: Declared) -> Declared {
        Declared {
            prompt: later.prompt.or(self.prompt),
            prompt_tokens: later.prompt_tokens.or(self.prompt_tokens),
            output: later.output.or(self.output),
            output_tokens: later.output_tokens.or(self.output_tokens),
            queue: later.queue.or(self.queue),
            first: later.first.or(self.first),
            load: later.load.or(self.load),
            total: later.total.or(self.total),
        }
    }
}

/// An error the server reported, in a status or inside a stream. Already scrubbed of keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerError {
    /// Its type or code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Its text, at most 200 bytes.
    pub message: String,
}

/// How the connection of a request came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Connection {
    /// It had carried a request before.
    pub reused: bool,
    /// Time to look the name up, for a new connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<Length>,
    /// Time to open it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Length>,
    /// Time for the TLS handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Length>,
    /// Time from there to the server's settings, of HTTP/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2: Option<Length>,
    /// How long this request waited in the client until the server admitted another stream, of
    /// HTTP/2: before `sent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub h2_wait: Option<Length>,
}

/// Oddities met while reading the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Oddity {
    /// The last event lacked its blank line.
    UnterminatedTail,
    /// Content after the sentinel; it was not counted.
    PostDoneData,
    /// Text held bytes or escapes that are no characters.
    TextRepaired,
    /// The body was compressed.
    Compressed,
    /// The body was compressed, and could not be decompressed.
    Undecodable,
    /// The content type was not that of an event stream.
    ContentType,
    /// A second start of a message inside one stream.
    RestartedStream,
    /// The events' own numbers jump or repeat.
    SeqGap,
    /// A JSON array whose closing bracket never came.
    OpenArray,
    /// The kernel's stamps ran backwards, or past their own read, and were clamped.
    StampClamped,
    /// Only the close of the connection ended the body.
    CloseDelimited,
}

/// Everything observed of one request. Instants count from the run's origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Its number within the run.
    pub id: u64,
    /// Its load level, by position in the run.
    pub level: u32,
    /// Its stream within the level.
    pub stream: u32,
    /// Sent before the measurement began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warmup: bool,
    /// When the plan wanted it sent; in a closed loop equal to `sent`, kept as the driver's start.
    pub planned: Instant,
    /// The driver's own clock read when it took the request up.
    pub start: Instant,
    /// The driver's own clock read when it was done with it.
    pub finish: Instant,
    /// Writing the request began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<Instant>,
    /// Its last byte was handed to the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<Instant>,
    /// The response head arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<Instant>,
    /// The first event or comment of any kind arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_event: Option<Instant>,
    /// The first content arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_content: Option<Instant>,
    /// The first answer text or tool call arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_answer: Option<Instant>,
    /// The last content arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_content: Option<Instant>,
    /// The stream ended: its terminal event, else the end of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Instant>,
    /// How the stamps were made.
    pub stamps: Stamps,
    /// How its connection came about.
    pub connection: Connection,
    /// HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How the exchange ended.
    pub transport: Transport,
    /// What kind of body came.
    pub body: Body,
    /// Why the model stopped, if it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<Finish>,
    /// The API's sentinel (`[DONE]`) came.
    pub sentinel: bool,
    /// Token counts as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The largest running count of output tokens, where a later one was below one before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_fell_from: Option<u64>,
    /// The server's own timing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<Declared>,
    /// An error the server reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ServerError>,
    /// What could not be understood of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
    /// Reasoning was streamed only as a summary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reasoning_summary: bool,
    /// Oddities, sorted, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<Oddity>,
    /// Socket reads of the response, with content or not.
    pub socket_reads: u64,
    /// Body bytes received.
    pub bytes: u64,
    /// Protocol events, with content or not.
    pub events: u64,
    /// Comments.
    pub comments: u64,
    /// Chunks whose tokens the server stated with them.
    pub stated_chunks: u64,
    /// Output tokens the request asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_output: Option<u64>,
    /// Input tokens the plan aimed at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_input: Option<u64>,
    /// The reads that brought content, in order.
    #[serde(with = "columns")]
    pub reads: Vec<Read>,
    /// Tokens of the text that arrived, counted after the run by the header's vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// What the head of the answer says of the path; noted by a probe only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Box<Head>>,
    /// The text that arrived, where it was to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The prompt, where it was to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

impl Trace {
    /// A trace of which only the numbers and the driver's start are known.
    pub fn begun(id: u64, level: u32, stream: u32, warmup: bool, planned: Instant) -> Self {
        Trace {
            id,
            level,
            stream,
            warmup,
            planned,
            start: planned,
            finish: planned,
            sent: None,
            written: None,
            head: None,
            first_event: None,
            first_content: None,
            first_answer: None,
            last_content: None,
            end: None,
            stamps: Stamps::None,
            connection: Connection::default(),
            status: None,
            transport: Transport::Drained,
            body: Body::None,
            finish_reason: None,
            sentinel: false,
            usage: None,
            output_fell_from: None,
            declared: None,
            error: None,
            malformed: None,
            reasoning_summary: false,
            oddities: Vec::new(),
            socket_reads: 0,
            bytes: 0,
            events: 0,
            comments: 0,
            stated_chunks: 0,
            asked_output: None,
            asked_input: None,
            reads: Vec::new(),
            counted: None,
            path: None,
            text: None,
            prompt: None,
        }
    }

    /// Chunks over all reads.
    pub fn chunks(&self) -> u64 {
        self.reads.iter().map(|read| u64::from(read.chunks)).sum()
    }

    /// Characters over all reads.
    pub fn chars(&self) -> u64 {
        self.reads.iter().map(|read| u64::from(read.chars)).sum()
    }

    /// Takes counts as stated later: each that they give replaces the one before. A running count of
    /// output only grows; where it falls, that is kept.
    pub fn update_usage(&mut self, later: Usage, runs: bool) {
        let before = self.usage.unwrap_or_default();
        if let (Some(most), Some(output), true) = (before.output, later.output, runs)
            && output < most
        {
            self.output_fell_from = self.output_fell_from.max(Some(most));
        }
        self.usage = Some(before.updated(later));
    }

    /// Notes an oddity once.
    pub fn note(&mut self, oddity: Oddity) {
        if let Err(place) = self.oddities.binary_search(&oddity) {
            self.oddities.insert(place, oddity);
        }
    }
}

/// Reads as columns with their stamps as deltas: a third of the size of rows.
mod columns {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::{Instant, Length, Read};

    #[derive(Default, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Columns {
        at: Vec<u64>,
        bytes: Vec<u32>,
        chunks: Vec<u32>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        bare: Vec<u32>,
        chars: Vec<u32>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        answer_chunks: Vec<u32>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        answer_chars: Vec<u32>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tokens: Vec<Option<u32>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        lag_low: Vec<Option<u64>>,
        lag_high: Vec<u64>,
    }

    /// A column is left out when each of its values is the one a reader would assume.
    fn unless<T>(
        reads: &[Read],
        assumed: impl Fn(&Read) -> bool,
        value: impl Fn(&Read) -> T,
    ) -> Vec<T> {
        if reads.iter().all(assumed) {
            Vec::new()
        } else {
            reads.iter().map(value).collect()
        }
    }

    pub fn serialize<S: Serializer>(reads: &[Read], out: S) -> Result<S::Ok, S::Error> {
        let mut before = 0;
        let at = reads.iter().map(|read| {
            let delta = read.at.nanos().saturating_sub(before);
            before = read.at.nanos();
            delta
        });
        Columns {
            at: at.collect(),
            bytes: reads.iter().map(|read| read.bytes).collect(),
            chunks: reads.iter().map(|read| read.chunks).collect(),
            bare: unless(reads, |read| read.bare == 0, |read| read.bare),
            chars: reads.iter().map(|read| read.chars).collect(),
            answer_chunks: unless(reads, |r| r.answer_chunks == r.chunks, |r| r.answer_chunks),
            answer_chars: unless(reads, |r| r.answer_chars == r.chars, |r| r.answer_chars),
            tokens: unless(reads, |read| read.tokens.is_none(), |read| read.tokens),
            lag_low: unless(
                reads,
                |r| r.lag_low.is_none(),
                |r| r.lag_low.map(Length::nanos),
            ),
            lag_high: reads.iter().map(|read| read.lag_high.nanos()).collect(),
        }
        .serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Read>, D::Error> {
        let columns = Columns::deserialize(from)?;
        let n = columns.at.len();
        let whole = [
            columns.bytes.len(),
            columns.chunks.len(),
            columns.chars.len(),
            columns.lag_high.len(),
        ];
        let optional = [
            columns.bare.len(),
            columns.answer_chunks.len(),
            columns.answer_chars.len(),
            columns.tokens.len(),
            columns.lag_low.len(),
        ];
        if whole.iter().any(|len| *len != n) || optional.iter().any(|len| *len != n && *len != 0) {
            return Err(D::Error::custom(
                "the columns of the reads differ in length",
            ));
        }
        let mut at = 0u64;
        (0..n)
            .map(|i| {
                at = at
                    .checked_add(columns.at[i])
                    .ok_or_else(|| D::Error::custom("a stamp overflows"))?;
                Ok(Read {
                    at: Instant::from_nanos(at),
                    bytes: columns.bytes[i],
                    chunks: columns.chunks[i],
                    bare: columns.bare.get(i).copied().unwrap_or(0),
                    chars: columns.chars[i],
                    answer_chunks: columns
                        .answer_chunks
                        .get(i)
                        .copied()
                        .unwrap_or(columns.chunks[i]),
                    answer_chars: columns
                        .answer_chars
                        .get(i)
                        .copied()
                        .unwrap_or(columns.chars[i]),
                    tokens: columns.tokens.get(i).copied().flatten(),
                    lag_low: columns
                        .lag_low
                        .get(i)
                        .copied()
                        .flatten()
                        .map(Length::from_nanos),
                    lag_high: Length::from_nanos(columns.lag_high[i]),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(at: u64, tokens: Option<u32>) -> Read {
        Read {
            at: Instant::from_nanos(at),
            bytes: 9,
            chunks: 2,
            bare: 0,
            chars: 7,
            answer_chunks: 2,
            answer_chars: 7,
            tokens,
            lag_low: None,
            lag_high: Length::from_nanos(5),
        }
    }

    #[test]
    fn reads_survive_the_file_and_assumed_columns_are_left_out() {
        let mut trace = Trace::begun(1, 0, 0, false, Instant::ORIGIN);
        trace.reads = vec![read(10, None), read(25, None)];
        let line = serde_json::to_string(&trace).expect("writes");
        assert!(line.contains(r#""reads":{"at":[10,15],"bytes":[9,9],"chunks":[2,2],"chars":[7,7],"lag_high":[5,5]}"#), "{line}");
        assert_eq!(serde_json::from_str::<Trace>(&line).expect("reads"), trace);
        trace.reads.push(read(30, Some(4)));
        let line = serde_json::to_string(&trace).expect("writes");
        assert_eq!(serde_json::from_str::<Trace>(&line).expect("reads"), trace);
    }

    #[test]
    fn a_failing_end_holds_whatever_stands_beside_it() {
        use Finish::{Error, Filter, Length, Stop};
        assert_eq!((Stop.and(Length), Length.and(Stop)), (Length, Stop));
        for failing in [Error, Filter] {
            assert_eq!((failing.and(Stop), Stop.and(failing)), (failing, failing));
            assert!(failing.fails() && !Stop.fails());
        }
        assert_eq!((Filter.and(Error), Error.and(Filter)), (Error, Error));
    }

    #[test]
    fn columns_of_different_length_are_refused() {
        let mut trace = Trace::begun(1, 0, 0, false, Instant::ORIGIN);
        trace.reads = vec![read(10, None)];
        let line = serde_json::to_string(&trace)
            .expect("writes")
            .replace("\"chars\":[7]", "\"chars\":[7,8]");
        assert!(serde_json::from_str::<Trace>(&line).is_err());
    }
}
