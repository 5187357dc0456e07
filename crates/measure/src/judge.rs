//! Owns the two questions asked of a trace, each answered in one function: outcome and shape.

use serde::Serialize;

use crate::arrival::{self, Arrival, Arrivals};
use crate::time::Length;
use crate::tokens::{self, Tokens};
use crate::trace::{Body, Finish, Oddity, Phase, Trace, Transport};

/// No span this long may hold more than three quarters of a streamed answer.
pub const BURST_SPAN: Length = Length::from_millis(20);
/// Chunks an arrival, on average, from which a response is clumped.
pub const CLUMPED_FROM: u64 = 4;
/// Silence from which an answer that comes at the very end is a late burst.
const LATE_SILENCE: Length = Length::from_secs(1);
/// A client's lag bound below this never makes an arrival its own bundle.
const BUNDLING_LAG: Length = Length::from_millis(1);

/// The thresholds a response must pass to count as streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guards {
    /// Least number of chunks, and of arrivals.
    pub min_chunks: u64,
    /// Least time from the first to the last content.
    pub min_interval: Length,
}

impl Default for Guards {
    fn default() -> Self {
        Guards {
            min_chunks: 3,
            min_interval: Length::from_millis(200),
        }
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// A finish marker, a legal end and content.
    Ok,
    /// Still running when the run ended.
    Drained,
    /// A failure of this kind.
    Failed(Failure),
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// It ended well and brought no output.
    Empty,
    /// It ended without its finish marker, or its body was cut.
    Truncated,
    /// An error inside the stream.
    ServerError,
    /// A status other than 200.
    HttpError(u16),
    /// Status 429.
    RateLimited,
    /// A filter held the answer back.
    Blocked,
    /// What came is not what the API sends.
    ProtocolError,
    /// The body could not be decoded.
    DecodeError,
    /// A limit of this client was reached.
    LimitExceeded,
    /// A wait ran out in this phase.
    Timeout(Phase),
    /// No connection.
    ConnectError,
    /// A kept connection was closed before the response began.
    StaleConn,
    /// This machine was out of something.
    LocalResource,
    /// Stopped by the user.
    Cancelled,
}

impl Failure {
    /// Its name in JSON and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Failure::Empty => "empty",
            Failure::Truncated => "truncated",
            Failure::ServerError => "server_error",
            Failure::HttpError(_) => "http_error",
            Failure::RateLimited => "rate_limited",
            Failure::Blocked => "blocked",
            Failure::ProtocolError => "protocol_error",
            Failure::DecodeError => "decode_error",
            Failure::LimitExceeded => "limit_exceeded",
            Failure::Timeout(_) => "timeout",
            Failure::ConnectError => "connect_error",
            Failure::StaleConn => "stale_conn",
            Failure::LocalResource => "local_resource",
            Failure::Cancelled => "cancelled",
        }
    }
}

impl Outcome {
    /// Its name in JSON and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Drained => "drained",
            Outcome::Failed(failure) => failure.name(),
        }
    }
}

/// What an ok response can support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Every metric.
    Streamed,
    /// All but per-token gaps: several chunks an arrival.
    Clumped,
    /// End-to-end only: a guard failed.
    Buffered,
    /// End-to-end only: the body was no stream.
    Whole,
}

impl Shape {
    /// Its name in JSON and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Streamed => "streamed",
            Shape::Clumped => "clumped",
            Shape::Buffered => "buffered",
            Shape::Whole => "whole",
        }
    }

    /// Whether first-content time and generation rate can be had.
    pub fn supports_stream_figures(self) -> bool {
        matches!(self, Shape::Streamed | Shape::Clumped)
    }
}

/// Why a response is buffered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Fewer chunks than the guard.
    FewChunks,
    /// Fewer arrivals than the guard.
    FewArrivals,
    /// More than three quarters of the characters within 20 ms.
    OneBurst,
    /// Less time from first to last content than the guard.
    Short,
}

impl Reason {
    /// Its name in JSON and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Reason::FewChunks => "few_chunks",
            Reason::FewArrivals => "few_arrivals",
            Reason::OneBurst => "one_burst",
            Reason::Short => "short",
        }
    }
}

/// A remark on a request that its reader should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// Finish marker, but no sentinel.
    Unterminated,
    /// Billed tokens that never arrived.
    HiddenReasoning,
    /// Token counts that contradict each other or the text.
    UsageInconsistent,
    /// The stop token is billed and never arrives.
    StopToken,
    /// Tokens were spread over arrivals by characters.
    Apportioned,
    /// More than one token a chunk.
    Coalesced,
    /// The client read late and may have merged arrivals.
    ClientBundled,
    /// This process stood still for more than a second while it ran.
    ClientStalled,
    /// All content in the last tenth, after at least a second of silence.
    LateBurst,
    /// Content after the sentinel, not counted.
    PostDoneData,
    /// Text with bytes or escapes that are no characters.
    TextRepaired,
    /// The body was compressed.
    Compressed,
    /// The body was compressed, and could not be decompressed.
    Undecodable,
    /// The content type was not that of an event stream.
    ContentType,
    /// A message began twice.
    RestartedStream,
    /// The events' own numbers jump or repeat.
    SeqGap,
    /// A JSON array without its closing bracket.
    OpenArray,
    /// The last event lacked its blank line.
    UnterminatedTail,
    /// Stamps of the kernel were clamped.
    StampClamped,
    /// Only the close of the connection ended the body.
    CloseDelimited,
    /// Prompt tokens came from a cache.
    CachedPrompt,
}

impl Flag {
    /// Its name in JSON and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Flag::Unterminated => "unterminated",
            Flag::HiddenReasoning => "hidden_reasoning",
            Flag::UsageInconsistent => "usage_inconsistent",
            Flag::StopToken => "stop_token",
            Flag::Apportioned => "apportioned",
            Flag::Coalesced => "coalesced",
            Flag::ClientBundled => "client_bundled",
            Flag::ClientStalled => "client_stalled",
            Flag::LateBurst => "late_burst",
            Flag::PostDoneData => "post_done_data",
            Flag::TextRepaired => "text_repaired",
            Flag::Compressed => "compressed",
            Flag::Undecodable => "undecodable",
            Flag::ContentType => "content_type",
            Flag::RestartedStream => "restarted_stream",
            Flag::SeqGap => "seq_gap",
            Flag::OpenArray => "open_array",
            Flag::UnterminatedTail => "unterminated_tail",
            Flag::StampClamped => "stamp_clamped",
            Flag::CloseDelimited => "close_delimited",
            Flag::CachedPrompt => "cached_prompt",
        }
    }
}

/// A trace with its verdicts. Its reads have become arrivals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The trace, its reads taken out.
    pub trace: Trace,
    /// What became of it.
    pub outcome: Outcome,
    /// What it supports, if ok.
    pub shape: Option<Shape>,
    /// Why it is buffered, all reasons.
    pub reasons: Vec<Reason>,
    /// Its content by arrival.
    pub arrivals: Arrivals,
    /// Its tokens.
    pub tokens: Tokens,
    /// Remarks, sorted.
    pub flags: Vec<Flag>,
}

impl Judged {
    /// Whether first-content time and generation rate can be had of it: its shape supports them,
    /// and its stream was one stream, in order.
    pub fn supports_stream_figures(&self) -> bool {
        let spoiled = [Flag::RestartedStream, Flag::SeqGap];
        self.shape.is_some_and(Shape::supports_stream_figures)
            && !spoiled.iter().any(|flag| self.flags.contains(flag))
    }
}

/// Judges one trace.
pub fn judge(mut trace: Trace, guards: &Guards, sentinel: bool) -> Judged {
    let outcome = outcome(&trace);
    let mut arrivals = arrival::join(&trace.reads);
    let (shape, reasons) = match outcome {
        Outcome::Ok => {
            let (shape, reasons) = shape(&trace, &arrivals, guards);
            (Some(shape), reasons)
        }
        _ => (None, Vec::new()),
    };
    let tokens = tokens::count(&trace, &mut arrivals, outcome == Outcome::Ok);
    mark_client_bundles(&mut arrivals, guards.min_interval);
    // Arrivals say all that reads did: a long run must not hold both.
    trace.reads = Vec::new();
    let mut judged = Judged {
        trace,
        outcome,
        shape,
        reasons,
        arrivals: Arrivals::pack(&arrivals),
        tokens,
        flags: Vec::new(),
    };
    judged.flags = flags(&judged, sentinel);
    judged
}

/// What became of a request: success needs a finish marker, a legal end and content.
pub fn outcome(trace: &Trace) -> Outcome {
    use Outcome::Failed;
    match &trace.transport {
        Transport::Drained => return Outcome::Drained,
        Transport::Cancelled => return Failed(Failure::Cancelled),
        Transport::NoConnection { local: true, .. } => return Failed(Failure::LocalResource),
        Transport::NoConnection { .. } | Transport::NoResponse { .. } => {
            return Failed(Failure::ConnectError);
        }
        Transport::Stale => return Failed(Failure::StaleConn),
        Transport::Timeout {
            phase: phase @ (Phase::Dns | Phase::Connect | Phase::Tls),
        } => {
            return Failed(Failure::Timeout(*phase));
        }
        _ => {}
    }
    match trace.status {
        Some(200) | None => {}
        Some(429) => return Failed(Failure::RateLimited),
        Some(status) => return Failed(Failure::HttpError(status)),
    }
    if trace.error.is_some() {
        return Failed(Failure::ServerError);
    }
    let has_content = trace.first_content.is_some();
    match &trace.transport {
        Transport::Limit { .. } => return Failed(Failure::LimitExceeded),
        Transport::Timeout { phase } => return Failed(Failure::Timeout(*phase)),
        _ if trace.oddities.contains(&Oddity::Undecodable) => {
            return Failed(Failure::DecodeError);
        }
        _ if trace.malformed.is_some() => return Failed(Failure::ProtocolError),
        Transport::Broken { .. } => return Failed(Failure::Truncated),
        _ if trace.oddities.contains(&Oddity::OpenArray) => return Failed(Failure::Truncated),
        _ => {}
    }
    match trace.finish_reason {
        None => Failed(Failure::Truncated),
        Some(Finish::Error) => Failed(Failure::ServerError),
        Some(Finish::Filter) => Failed(Failure::Blocked),
        Some(_) if !has_content => Failed(Failure::Empty),
        Some(_) => Outcome::Ok,
    }
}

/// What an ok response supports, with every guard that failed.
pub fn shape(trace: &Trace, arrivals: &[Arrival], guards: &Guards) -> (Shape, Vec<Reason>) {
    if trace.body == Body::Whole {
        return (Shape::Whole, Vec::new());
    }
    let chunks: u64 = arrivals.iter().map(|arrival| arrival.chunks).sum();
    let count = arrivals.len() as u64;
    let interval = arrival::span(arrivals);
    let mut reasons = Vec::new();
    let mut fails = |failed: bool, reason| {
        if failed {
            reasons.push(reason);
        }
    };
    fails(chunks < guards.min_chunks, Reason::FewChunks);
    fails(count < guards.min_chunks, Reason::FewArrivals);
    fails(has_burst(arrivals), Reason::OneBurst);
    fails(interval < guards.min_interval, Reason::Short);
    match reasons.is_empty() {
        false => (Shape::Buffered, reasons),
        true if chunks >= CLUMPED_FROM * count => (Shape::Clumped, reasons),
        true => (Shape::Streamed, reasons),
    }
}

/// Whether some 20 ms hold more than three quarters of the content, by characters (by chunks
/// where the content has no characters).
fn has_burst(arrivals: &[Arrival]) -> bool {
    let by_chars = arrivals.iter().any(|arrival| arrival.chars > 0);
    let weight = |arrival: &Arrival| {
        if by_chars {
            arrival.chars
        } else {
            arrival.chunks
        }
    };
    let total: u64 = arrivals.iter().map(weight).sum();
    let mut first = 0;
    let mut inside = 0;
    for arrival in arrivals {
        inside += weight(arrival);
        while arrival.at.since_or_zero(arrivals[first].at) > BURST_SPAN {
            inside -= weight(&arrivals[first]);
            first += 1;
        }
        if u128::from(inside) * 4 > u128::from(total) * 3 {
            return true;
        }
    }
    false
}

/// An arrival of several chunks may be the client's own bundle where the upper end of the lag
/// exceeds 1 ms and half the median gap. An answer that had all come within `min_interval`, however
/// late it was read, supports no stream figure with or without that, so nothing of it is marked.
fn mark_client_bundles(arrivals: &mut [Arrival], min_interval: Length) {
    if most_spread(arrivals) < min_interval {
        return;
    }
    let gaps = arrivals
        .windows(2)
        .map(|pair| pair[1].at.since_or_zero(pair[0].at));
    let mut all: Vec<Length> = gaps.collect();
    let middle = all.len().saturating_sub(1) / 2;
    let median = match all.is_empty() {
        true => Length::ZERO,
        false => *all.select_nth_unstable(middle).1,
    };
    for arrival in arrivals {
        let lag = arrival.lag_high;
        arrival.client_bundled =
            arrival.chunks > 1 && lag > BUNDLING_LAG && lag.nanos() > median.nanos() / 2;
    }
}

/// The longest that lay between the first byte and the last, if the first came as early as it can
/// have.
fn most_spread(arrivals: &[Arrival]) -> Length {
    let waited = arrivals.first().map_or(Length::ZERO, |first| {
        first.lag_high.less(first.lag_low.unwrap_or(Length::ZERO))
    });
    arrival::span(arrivals) + waited
}

fn flags(judged: &Judged, sentinel: bool) -> Vec<Flag> {
    let (trace, tokens, ok) = (&judged.trace, &judged.tokens, judged.outcome == Outcome::Ok);
    let chunks = judged.arrivals.chunks();
    let coalesced = tokens.visible.is_some_and(|visible| visible > chunks + 1);
    let mut flags: Vec<Flag> = trace
        .oddities
        .iter()
        .map(|oddity| flag_of(*oddity))
        .collect();
    let mut set = |on: bool, flag| {
        if on {
            flags.push(flag);
        }
    };
    set(
        ok && sentinel && trace.body == Body::Stream && !trace.sentinel,
        Flag::Unterminated,
    );
    set(
        tokens.hidden.is_some_and(|hidden| hidden > 0),
        Flag::HiddenReasoning,
    );
    set(tokens.inconsistent.is_some(), Flag::UsageInconsistent);
    set(tokens.stop_token, Flag::StopToken);
    set(tokens.apportioned, Flag::Apportioned);
    set(
        ok && tokens.inconsistent.is_none() && coalesced,
        Flag::Coalesced,
    );
    set(
        judged.arrivals.iter().any(|arrival| arrival.client_bundled),
        Flag::ClientBundled,
    );
    set(ok && is_late_burst(judged), Flag::LateBurst);
    set(
        tokens.cached.is_some_and(|cached| cached > 0),
        Flag::CachedPrompt,
    );
    flags.sort_unstable();
    flags
}

fn flag_of(oddity: Oddity) -> Flag {
    match oddity {
        Oddity::UnterminatedTail => Flag::UnterminatedTail,
        Oddity::PostDoneData => Flag::PostDoneData,
        Oddity::TextRepaired => Flag::TextRepaired,
        Oddity::Compressed => Flag::Compressed,
        Oddity::Undecodable => Flag::Undecodable,
        Oddity::ContentType => Flag::ContentType,
        Oddity::RestartedStream => Flag::RestartedStream,
        Oddity::SeqGap => Flag::SeqGap,
        Oddity::OpenArray => Flag::OpenArray,
        Oddity::StampClamped => Flag::StampClamped,
        Oddity::CloseDelimited => Flag::CloseDelimited,
    }
}

/// All content in the last tenth of the duration, after at least a second of silence.
fn is_late_burst(judged: &Judged) -> bool {
    let trace = &judged.trace;
    let (Some(sent), Some(first), Some(end)) = (trace.sent, trace.first_content, trace.end) else {
        return false;
    };
    let (silence, duration) = (first.since_or_zero(sent), end.since_or_zero(sent));
    judged.shape.is_some_and(Shape::supports_stream_figures)
        && silence >= LATE_SILENCE
        && u128::from(silence.nanos()) * 10 >= u128::from(duration.nanos()) * 9
}
