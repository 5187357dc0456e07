//! Owns made-up runs: traces by hand, written as record lines and read back as any file would be.

use measure::api::Api;
use measure::basis::Loop;
use measure::judge::Guards;
use measure::plan::{LevelPlan, Stop, Warmup};
use measure::record::{
    FORMAT, Footer, Header, Lead, LevelEnd, Line, Note, Reader, Run, SelfCheck, Sent, StampMode,
};
use measure::report::{self, Report};
use measure::time::{Instant, Length};
use measure::trace::{Body, Connection, Finish, Read, Stamps, Trace, Transport, Usage};

/// One arrival of a made-up stream: microseconds after `sent`, chunks, characters.
pub type Came = (u64, u32, u32);

pub fn micros(at: u64) -> Instant {
    Instant::from_nanos(at * 1_000)
}

pub fn read(at: u64, chunks: u32, chars: u32) -> Read {
    Read {
        at: micros(at),
        bytes: chars + 200 * chunks,
        chunks,
        bare: 0,
        chars,
        answer_chunks: chunks,
        answer_chars: chars,
        tokens: None,
        lag_low: Some(Length::from_micros(20)),
        lag_high: Length::from_micros(60),
    }
}

pub fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input: Some(input),
        output: Some(output),
        total: Some(input + output),
        ..Usage::default()
    }
}

/// An ok stream sent at `sent` (microseconds), one token a chunk, ended with its last content.
pub fn stream(sent: u64, came: &[Came]) -> Trace {
    let mut trace = Trace::begun(0, 0, 0, false, micros(sent));
    trace.reads = came
        .iter()
        .map(|(at, chunks, chars)| read(sent + at, *chunks, *chars))
        .collect();
    trace.sent = Some(micros(sent));
    trace.written = Some(micros(sent + 30));
    trace.head = Some(micros(sent + 4_000));
    trace.first_event = Some(micros(sent + 5_000));
    trace.first_content = trace.reads.first().map(|read| read.at);
    trace.first_answer = trace.first_content;
    trace.last_content = trace.reads.last().map(|read| read.at);
    trace.end = trace.last_content;
    trace.finish = trace.end.unwrap_or(micros(sent + 6_000));
    trace.stamps = Stamps::Kernel;
    trace.status = Some(200);
    trace.transport = Transport::Complete;
    trace.body = Body::Stream;
    trace.finish_reason = Some(Finish::Length);
    trace.sentinel = true;
    trace.usage = Some(usage(40, trace.chunks()));
    trace.socket_reads = came.len() as u64 + 1;
    trace.bytes = trace.reads.iter().map(|read| u64::from(read.bytes)).sum();
    trace.events = trace.chunks() + 3;
    trace.asked_output = Some(trace.chunks());
    trace.asked_input = Some(40);
    trace
}

/// A steady stream: the first of `n` one-token chunks after `first`, then one each `gap`.
pub fn steady(sent: u64, first: u64, gap: u64, n: u64) -> Trace {
    let came: Vec<Came> = (0..n).map(|i| (first + i * gap, 1, 4)).collect();
    stream(sent, &came)
}

pub fn connected(mut trace: Trace) -> Trace {
    trace.connection = Connection {
        reused: false,
        dns: Some(Length::from_micros(300)),
        tcp: Some(Length::from_micros(90)),
        tls: Some(Length::from_micros(900)),
        http2: Some(Length::from_micros(200)),
        h2_wait: Some(Length::from_micros(5)),
    };
    trace
}

pub fn closed(index: u32, streams: u32, baseline: bool) -> LevelPlan {
    LevelPlan {
        index,
        kind: Loop::Closed,
        arrivals: None,
        target_milli: u64::from(streams) * 1_000,
        streams,
        baseline,
        stop: Stop::Requests(12),
        warmup: Warmup::Requests(u64::from(streams)),
        limit: baseline.then_some(Length::from_secs(60)),
    }
}

pub fn header(levels: Vec<LevelPlan>) -> Header {
    Header {
        format: FORMAT.into(),
        version: "0.1.0".into(),
        run: "q7d2mk40".into(),
        began_unix_ns: 1_700_000_000_000_000_000,
        origin_monotonic_ns: 86_400_000_000_000,
        stamp: StampMode::Kernel,
        url: "http://127.0.0.1:8000/v1/chat/completions".into(),
        redactions: Vec::new(),
        api: Api::OpenaiChat,
        model: "small".into(),
        stream: true,
        http: "1.1".into(),
        tls: "off".into(),
        min_chunks: 3,
        min_interval: Length::from_millis(200),
        seed: 7,
        input_tokens: "40".into(),
        output_tokens: "128".into(),
        plan_hash: "5f1c".into(),
        vocabulary: None,
        self_check: SelfCheck::NotDue,
        levels,
        lead: Lead::System,
        settings: [("timeout".to_owned(), "60 s".to_owned())].into(),
        environment: [("cpus".to_owned(), "2".to_owned())].into(),
    }
}

/// The lines of a record file, with books that balance.
pub struct File {
    lines: Vec<Line>,
    ends: Vec<LevelEnd>,
    next: u64,
}

impl File {
    pub fn new(levels: Vec<LevelPlan>) -> Self {
        let end = |plan: &LevelPlan| LevelEnd {
            index: plan.index,
            issued: 0,
            in_flight: Length::ZERO,
            planned: None,
            at: Instant::ORIGIN,
            cpu: Some(Length::from_millis(5)),
            wall: Length::from_secs(20),
            clock_steps: 0,
            suspends: 0,
            recorder_waits: 0,
            interrupted: false,
            workers: None,
        };
        File {
            ends: levels.iter().map(end).collect(),
            lines: vec![Line::Header(Box::new(header(levels)))],
            next: 0,
        }
    }

    fn level(&mut self, index: u32) -> &mut LevelEnd {
        &mut self.ends[index as usize]
    }

    /// A request of which the file tells only that it was sent.
    pub fn open(&mut self, level: u32, stream: u32, start: Instant) {
        self.lines.push(Line::Sent(Sent {
            id: self.next,
            level,
            stream,
            warmup: false,
            start,
            planned: None,
        }));
        self.next += 1;
        self.level(level).issued += 1;
    }

    /// A request with its end.
    pub fn add(&mut self, level: u32, stream: u32, mut trace: Trace) {
        (trace.id, trace.level, trace.stream) = (self.next, level, stream);
        self.open(level, stream, trace.start);
        if let Some(Line::Sent(sent)) = self.lines.last_mut() {
            sent.warmup = trace.warmup;
        }
        let end = self.level(level);
        end.in_flight += trace.finish.since_or_zero(trace.start);
        end.at = end.at.max(trace.finish);
        self.lines.push(Line::Ended(Box::new(trace)));
    }

    pub fn note(&mut self, code: &str, text: &str) {
        let (code, text) = (code.into(), text.into());
        self.lines.push(Line::Note(Note { code, text }));
    }

    /// Changes what the driver counted over a level.
    pub fn amend(&mut self, level: u32, change: impl FnOnce(&mut LevelEnd)) {
        change(self.level(level));
    }

    /// The file's lines, with each level's end and the footer.
    pub fn texts(mut self) -> Vec<String> {
        let issued = self.ends.iter().map(|end| end.issued).sum();
        self.lines.extend(self.ends.drain(..).map(Line::Level));
        self.lines.push(Line::Footer(Footer {
            issued,
            ended: issued,
            interrupted: false,
        }));
        self.lines.iter().map(json).collect()
    }

    /// Read back with each level's end and the footer.
    pub fn finished(self) -> Report {
        let texts = self.texts().into_iter().map(String::into_bytes);
        report::build(&read_back(texts), Guards::default())
    }

    /// Read back as a killed run would have left it.
    pub fn cut_short(self) -> Report {
        let texts = self.lines.iter().map(|line| json(line).into_bytes());
        report::build(&read_back(texts), Guards::default())
    }
}

pub fn json(line: &Line) -> String {
    serde_json::to_string(line).expect("a line serialises")
}

pub fn read_back(lines: impl Iterator<Item = Vec<u8>>) -> Run {
    let mut reader = Reader::new(None);
    for line in lines {
        reader.line(&line).expect("a line of this format");
    }
    reader.finish().expect("a run")
}
