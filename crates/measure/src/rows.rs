//! Owns the rows: single requests with the evidence for each figure.

use serde::Serialize;

use crate::basis::{Load, Loop};
use crate::count::{Chunk, Token};
use crate::figure::Figure;
use crate::judge::{Judged, Outcome, Shape};
use crate::level::{self, streams_of};
use crate::time::{Instant, Length};
use crate::tokens::Source;
use crate::trace::{Phase, Stamps};

/// One request with its evidence.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Its number within the run.
    pub id: u64,
    /// Its level.
    pub level: u32,
    /// Target of its level: streams in a closed loop, requests a second in an open one.
    pub target: f64,
    /// The loop of its level.
    #[serde(rename = "loop")]
    pub kind: Loop,
    /// Its stream.
    pub stream: u32,
    /// Sent before the measurement began.
    pub warmup: bool,
    /// What became of it.
    pub outcome: &'static str,
    /// What a failed one said.
    pub detail: Option<String>,
    /// HTTP status.
    pub status: Option<u16>,
    /// What it supports.
    pub shape: Option<&'static str>,
    /// Why it is buffered.
    pub reasons: Vec<&'static str>,
    /// Remarks.
    pub flags: Vec<&'static str>,
    /// When the plan of an open loop wanted it sent, from the run's origin.
    pub planned_s: Option<f64>,
    /// When it was sent, from the run's origin.
    pub sent_s: Option<f64>,
    /// Total duration.
    pub e2e_s: Option<f64>,
    /// Sent to first content, where the shape supports it.
    pub ttft_s: Option<f64>,
    /// Sent to first content as it was seen here, whatever it means.
    pub first_content_seen_s: Option<f64>,
    /// Sent to first answer, where the shape supports it.
    pub first_answer_s: Option<f64>,
    /// First to last content.
    pub content_s: Option<f64>,
    /// The longest gap between arrivals.
    pub gap_max_s: Option<f64>,
    /// Chunks.
    pub chunks: u64,
    /// Arrivals.
    pub arrivals: u64,
    /// Characters.
    pub chars: u64,
    /// Output tokens that arrived.
    pub output_tokens: Option<u64>,
    /// Output tokens that are billed.
    pub billed_tokens: Option<u64>,
    /// Output tokens that never arrived.
    pub hidden_tokens: Option<u64>,
    /// Prompt tokens.
    pub input_tokens: Option<u64>,
    /// Prompt tokens from a cache.
    pub cached_tokens: Option<u64>,
    /// Who counted.
    pub token_source: Source,
    /// Why the counts cannot be believed.
    pub usage_inconsistent: Option<String>,
    /// Why the model stopped.
    pub finish: Option<&'static str>,
    /// The name of the rate used for it.
    pub rate_used: Option<&'static str>,
    /// That rate.
    pub rate: Option<Figure>,
    /// Its end-to-end rate.
    pub e2e_rate: Option<Figure>,
    /// The rate the server declares.
    pub declared_rate: Option<Figure>,
    /// What tokens ÷ (end − first content) would have printed.
    pub naive: Option<Figure>,
    /// The largest lower end of the client's lag.
    pub lag_low_s: Option<f64>,
    /// The largest upper end of the client's lag.
    pub lag_high_s: Option<f64>,
    /// How its stamps were made.
    pub stamps: Stamps,
    /// The connection had carried a request before.
    pub reused: bool,
    /// The text that arrived, where it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The rows of a level, warm-up included, in order of their ids.
pub fn rows(level: &crate::record::Level, load: Load) -> Vec<Row> {
    level
        .requests
        .iter()
        .map(|request| row(request, load))
        .collect()
}

fn since_origin(at: Instant) -> f64 {
    at.since_or_zero(Instant::ORIGIN).as_secs_f64()
}

fn row(request: &Judged, load: Load) -> Row {
    let trace = &request.trace;
    let ok = request.outcome == Outcome::Ok;
    let supports = request.supports_stream_figures();
    let from_sent = |to: Option<Instant>| Some(to?.since(trace.sent?)?.as_secs_f64());
    let source = request.tokens.source;
    let (rate_used, rate) = rate_used(request, load);
    let seconds = |length: Option<Length>| length.map(Length::as_secs_f64);
    Row {
        id: trace.id,
        level: trace.level,
        target: load.target(),
        kind: load.kind,
        stream: trace.stream,
        warmup: trace.warmup,
        outcome: request.outcome.name(),
        detail: (!ok).then(|| level::failure_text(request)),
        status: trace.status,
        shape: request.shape.map(Shape::name),
        reasons: request.reasons.iter().map(|reason| reason.name()).collect(),
        flags: request.flags.iter().map(|flag| flag.name()).collect(),
        planned_s: (load.kind == Loop::Open).then(|| since_origin(trace.planned)),
        sent_s: trace.sent.map(since_origin),
        e2e_s: from_sent(trace.end).filter(|_| ok),
        ttft_s: from_sent(trace.first_content).filter(|_| supports),
        first_content_seen_s: from_sent(trace.first_content),
        first_answer_s: from_sent(trace.first_answer).filter(|_| supports),
        content_s: (!request.arrivals.is_empty()).then(|| request.arrivals.span().as_secs_f64()),
        gap_max_s: seconds(request.arrivals.gaps().max()).filter(|_| supports),
        chunks: request.arrivals.chunks(),
        arrivals: request.arrivals.len() as u64,
        chars: request.arrivals.chars(),
        output_tokens: request.tokens.visible,
        billed_tokens: request.tokens.billed,
        hidden_tokens: request.tokens.hidden,
        input_tokens: request.tokens.input,
        cached_tokens: request.tokens.cached,
        token_source: source,
        usage_inconsistent: request.tokens.inconsistent.clone(),
        finish: trace.finish_reason.map(|finish| finish.name()),
        rate_used,
        rate,
        e2e_rate: e2e(request, load),
        declared_rate: streams_of::declared(request, load),
        naive: streams_of::naive(request, load),
        lag_low_s: seconds(
            request
                .arrivals
                .iter()
                .filter_map(|arrival| arrival.lag_low)
                .max(),
        ),
        lag_high_s: seconds(
            request
                .arrivals
                .iter()
                .map(|arrival| arrival.lag_high)
                .max(),
        ),
        stamps: trace.stamps,
        reused: trace.connection.reused,
        text: trace.text.clone(),
    }
}

/// The rate that the request's shape supports, by name.
fn rate_used(request: &Judged, load: Load) -> (Option<&'static str>, Option<Figure>) {
    let generation = match request.tokens.source {
        Source::None => streams_of::generation::<Chunk>(request, load),
        _ => streams_of::generation::<Token>(request, load),
    };
    match generation {
        Some(figure) => (Some("generation_rate"), Some(figure)),
        None => match e2e(request, load) {
            Some(figure) => (Some("e2e_rate"), Some(figure)),
            None => (None, None),
        },
    }
}

fn e2e(request: &Judged, load: Load) -> Option<Figure> {
    if request.outcome != Outcome::Ok {
        return None;
    }
    match request.tokens.source {
        Source::None => streams_of::end_to_end::<Chunk>(request, load),
        _ => streams_of::end_to_end::<Token>(request, load),
    }
}

/// The name of a phase.
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Dns => "dns",
        Phase::Connect => "connect",
        Phase::Tls => "tls",
        Phase::First => "first",
        Phase::Idle => "idle",
        Phase::Total => "total",
    }
}
