//! Owns the synthetic runs that the pages are tested with.

use measure::api::Api;
use measure::basis::{Load, Loop};
use measure::judge::{Guards, judge};
use measure::plan::{LevelPlan, Stop, Warmup};
use measure::record::{FORMAT, Footer, Header, Lead, Level, LevelEnd, Run, SelfCheck, StampMode};
use measure::report::{Report, build};
use measure::rows::{Row, rows};
use measure::time::{Instant, Length};
use measure::trace::{Body, Finish, Read, Stamps, Trace, Transport, Usage};

/// How an answer of 64 tokens arrives.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// Milliseconds to the first content.
    pub first: u64,
    /// Milliseconds between contents.
    pub gap: u64,
    /// Arrivals that bring the 64 tokens.
    pub arrivals: u64,
}

pub const STREAMED: Answer = Answer {
    first: 200,
    gap: 20,
    arrivals: 64,
};
pub const BUFFERED: Answer = Answer {
    first: 1_400,
    gap: 0,
    arrivals: 64,
};
pub const SHORT: Answer = Answer {
    first: 900,
    gap: 10,
    arrivals: 16,
};

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// One answered request, begun at `begun` milliseconds.
pub fn answered(id: u64, level: u32, stream: u32, begun: u64, answer: Answer) -> Trace {
    let mut trace = Trace::begun(id, level, stream, false, at(begun));
    let first = begun + answer.first;
    let last = first + answer.gap * (answer.arrivals - 1);
    let chunks = (64 / answer.arrivals) as u32;
    trace.sent = Some(at(begun));
    trace.head = Some(at(begun + 5));
    trace.first_content = Some(at(first));
    trace.first_answer = Some(at(first));
    trace.last_content = Some(at(last));
    trace.end = Some(at(last + 1));
    trace.finish = at(last + 1);
    trace.stamps = Stamps::Kernel;
    trace.status = Some(200);
    trace.transport = Transport::Complete;
    trace.body = Body::Stream;
    trace.finish_reason = Some(Finish::Length);
    trace.sentinel = true;
    trace.usage = Some(Usage {
        input: Some(512),
        output: Some(64),
        total: Some(576),
        ..Usage::default()
    });
    trace.reads = (0..answer.arrivals)
        .map(|index| Read {
            at: at(first + index * answer.gap),
            bytes: 200 * chunks,
            chunks,
            bare: 0,
            chars: 4 * chunks,
            answer_chunks: chunks,
            answer_chars: 4 * chunks,
            tokens: None,
            lag_low: Some(Length::from_micros(30)),
            lag_high: Length::from_micros(80),
        })
        .collect();
    trace
}

/// A level of `streams` streams with `each` requests on every one.
pub fn level(index: u32, streams: u32, each: u64, answer: Answer) -> Level {
    let mut requests = Vec::new();
    let mut last = 0;
    for stream in 0..streams {
        let mut begun = 1_000 + u64::from(stream) * 3;
        for _ in 0..each {
            let slower = Answer {
                gap: answer.gap + u64::from(stream % 3) * u64::from(answer.gap > 0),
                ..answer
            };
            let id = requests.len() as u64 + u64::from(index) * 1_000;
            let trace = answered(id, index, stream, begun, slower);
            begun = trace.finish.nanos() / 1_000_000 + 1;
            last = last.max(begun);
            requests.push(trace);
        }
    }
    of(index, streams, requests, last)
}

/// A level of these traces.
pub fn of(index: u32, streams: u32, traces: Vec<Trace>, last: u64) -> Level {
    let issued = traces.len() as u64;
    let in_flight = traces.iter().fold(Length::ZERO, |sum, trace| {
        sum + trace.finish.since_or_zero(trace.start)
    });
    Level {
        plan: LevelPlan {
            index,
            kind: Loop::Closed,
            arrivals: None,
            target_milli: u64::from(streams) * 1_000,
            streams,
            baseline: streams == 1,
            stop: Stop::Requests(issued),
            warmup: Warmup::Requests(0),
            limit: None,
        },
        requests: traces
            .into_iter()
            .map(|trace| judge(trace, &Guards::default(), true))
            .collect(),
        end: Some(LevelEnd {
            index,
            issued,
            in_flight,
            planned: None,
            at: at(last),
            cpu: Some(Length::from_millis(20)),
            wall: Length::from_millis(last.max(1)),
            clock_steps: 0,
            suspends: 0,
            recorder_waits: 0,
            interrupted: false,
            workers: None,
        }),
        open: 0,
        unmatched: 0,
        gaps: Vec::new(),
        ceiling: None,
    }
}

/// The run of these levels, to be changed before its report is made.
pub fn run(levels: Vec<Level>) -> Run {
    let issued = levels.iter().map(|level| level.requests.len() as u64).sum();
    Run {
        header: Header {
            format: FORMAT.into(),
            version: "0.1.0".into(),
            run: "run".into(),
            began_unix_ns: 0,
            origin_monotonic_ns: 0,
            stamp: StampMode::Kernel,
            url: "http://localhost:8000/v1/chat/completions".into(),
            redactions: Vec::new(),
            api: Api::OpenaiChat,
            model: "tiny".into(),
            stream: true,
            http: "1.1".into(),
            tls: "off".into(),
            min_chunks: 3,
            min_interval: Length::from_millis(200),
            seed: 1,
            input_tokens: "512".into(),
            output_tokens: "64".into(),
            plan_hash: "0".into(),
            vocabulary: None,
            self_check: SelfCheck::NotDue,
            levels: levels.iter().map(|level| level.plan).collect(),
            lead: Lead::System,
            settings: std::collections::BTreeMap::new(),
            environment: std::collections::BTreeMap::new(),
        },
        notes: Vec::new(),
        levels,
        footer: Some(Footer {
            issued,
            ended: issued,
            interrupted: false,
        }),
        torn: false,
    }
}

/// The report of these levels.
pub fn report(levels: Vec<Level>) -> Report {
    build(&run(levels), Guards::default())
}

/// The rows of a level.
pub fn rows_of(level: &Level) -> Vec<Row> {
    let load = Load {
        kind: level.plan.kind,
        target_milli: level.plan.target_milli,
        held_milli: None,
    };
    rows(level, load)
}
