//! Owns the record file's lines: what is written as a run goes, and how a reader takes them in.

use serde::{Deserialize, Serialize};

use crate::api::Api;
use crate::judge::{Flag, Guards, Judged, judge};
use crate::plan::LevelPlan;
use crate::schedule::Fates;
use crate::time::{Instant, Length};
use crate::trace::Trace;

/// The version of the format that this program writes and reads.
pub const FORMAT: &str = "denom.record/1";

/// One line of a record file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// The first line.
    Header(Box<Header>),
    /// Something that happened and that a reader of the page should know.
    Note(Note),
    /// A request is about to be sent.
    Sent(Sent),
    /// A request has ended.
    Ended(Box<Trace>),
    /// A stretch of a level in which requests were held back.
    Gap(Gap),
    /// A level has ended.
    Level(LevelEnd),
    /// The last line of a run that was not killed.
    Footer(Footer),
}

/// How stamps are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampMode {
    /// The kernel's receive stamps where there are any.
    #[default]
    Kernel,
    /// A clock read after each read.
    Read,
}

/// Which of the two rates leads on a page; neither is ever dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lead {
    /// The system's.
    #[default]
    System,
    /// One stream's.
    PerStream,
}

/// What a run was, decided before it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// The program's version.
    pub version: String,
    /// A random name, the same in each of the run's request ids.
    pub run: String,
    /// When it began: nanoseconds since 1970, by the wall clock, for people only.
    pub began_unix_ns: u64,
    /// The origin of its instants on the machine's monotonic clock.
    pub origin_monotonic_ns: u64,
    /// How stamps were to be made.
    pub stamp: StampMode,
    /// The endpoint, without credentials.
    pub url: String,
    /// What was taken out of the URL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redactions: Vec<String>,
    /// The API spoken.
    pub api: Api,
    /// The model asked for.
    pub model: String,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// HTTP version.
    pub http: String,
    /// How TLS was done: `off`, `verified`, `insecure`.
    pub tls: String,
    /// Guard: least chunks and arrivals.
    pub min_chunks: u64,
    /// Guard: least interval.
    pub min_interval: Length,
    /// Seed of everything random in the plan.
    pub seed: u64,
    /// Input tokens asked for, as given.
    pub input_tokens: String,
    /// Output tokens asked for, as given.
    pub output_tokens: String,
    /// A hash over the plan: equal plans send equal requests.
    pub plan_hash: String,
    /// The vocabulary by which tokens were counted after the run, where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<String>,
    /// What the client found of its own limit before the run.
    #[serde(default, skip_serializing_if = "SelfCheck::is_not_due")]
    pub self_check: SelfCheck,
    /// The levels.
    pub levels: Vec<LevelPlan>,
    /// Which rate leads on the page.
    pub lead: Lead,
    /// Limits, defaults and settings not named above, for people.
    pub settings: std::collections::BTreeMap<String, String>,
    /// The machine, for people.
    pub environment: std::collections::BTreeMap<String, String>,
}

/// What the client found of its own limit before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelfCheck {
    /// Nothing: no level is large enough to need it.
    #[default]
    NotDue,
    /// Nothing: it was due, and the user did without.
    Skipped,
    /// The most chunks a second that it took in from a server that does not pace.
    Ceiling(u64),
}

impl SelfCheck {
    /// Whether there was no need for it.
    pub fn is_not_due(&self) -> bool {
        *self == SelfCheck::NotDue
    }

    /// The most chunks a second, where it is known.
    pub fn ceiling(self) -> Option<u64> {
        match self {
            SelfCheck::Ceiling(chunks) => Some(chunks),
            SelfCheck::NotDue | SelfCheck::Skipped => None,
        }
    }
}

impl Header {
    /// The guards that its shapes are judged by.
    pub fn guards(&self) -> Guards {
        Guards {
            min_chunks: self.min_chunks,
            min_interval: self.min_interval,
        }
    }
}

/// Something that happened during a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// A short name that scripts may test for.
    pub code: String,
    /// One sentence.
    pub text: String,
}

/// A request that is about to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its number.
    pub id: u64,
    /// Its level.
    pub level: u32,
    /// Its stream.
    pub stream: u32,
    /// Sent before the measurement began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warmup: bool,
    /// The driver's clock read when it took the request up.
    pub start: Instant,
    /// When the plan wanted it sent, in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Instant>,
}

/// What the driver itself counted over a level: the other side of the books.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelEnd {
    /// Which level.
    pub index: u32,
    /// Requests issued, warm-up included.
    pub issued: u64,
    /// The driver's running integral of requests in flight over time.
    pub in_flight: Length,
    /// What became of the planned requests of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Fates>,
    /// When it ended.
    pub at: Instant,
    /// Processor time of this process during the level.
    pub cpu: Option<Length>,
    /// Wall time of the level.
    pub wall: Length,
    /// Jumps of the wall clock against the monotonic one.
    pub clock_steps: u32,
    /// Times the machine was suspended.
    pub suspends: u32,
    /// Times a worker had to wait for the record file.
    pub recorder_waits: u64,
    /// The level was stopped before its plan was done.
    pub interrupted: bool,
    /// How the workers fared, by the worst of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Workers>,
}

/// How the workers of a level fared: of each figure, that of the worker that fared worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workers {
    /// How many there were.
    pub count: u32,
    /// The latest beat of a worker's heart, behind its planned instant.
    pub late_max: Length,
    /// When that one came.
    pub late_at: Instant,
    /// The 99th percentile of the beats' lateness.
    pub late_p99: Length,
    /// Time on a processor; none where the system does not tell.
    pub cpu: Option<Length>,
    /// Time ready to run and without a processor; none where the system does not tell.
    pub waited: Option<Length>,
    /// The most bytes that one look found unread in sockets with a request on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_max: Option<u64>,
    /// The most bytes in sockets that one look found unread, and the next as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_stayed_max: Option<u64>,
}

/// Why requests were held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapKind {
    /// The server asked for it, and the user wanted that heeded: no part of a window.
    Pause,
    /// The server took no connections: a part of the window like any other.
    Outage,
    /// This process did not run: it was stopped, or got no processor.
    Stall,
}

/// A stretch of a level in which requests were held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The level.
    pub level: u32,
    /// Why.
    pub kind: GapKind,
    /// When it began.
    pub from: Instant,
    /// When requests went out again, or the level ended.
    pub to: Instant,
}

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    /// Requests issued.
    pub issued: u64,
    /// Requests with an end in the file.
    pub ended: u64,
    /// The user stopped it.
    pub interrupted: bool,
}

/// A run as its file tells it.
#[derive(Debug)]
pub struct Run {
    /// Its header.
    pub header: Header,
    /// Notes, in order.
    pub notes: Vec<Note>,
    /// Its requests by level, judged; those without an end are drained.
    pub levels: Vec<Level>,
    /// Its footer; none means that the run was cut short.
    pub footer: Option<Footer>,
    /// The last line was torn.
    pub torn: bool,
}

/// One level as the file tells it.
#[derive(Debug)]
pub struct Level {
    /// Its plan.
    pub plan: LevelPlan,
    /// Its requests, in order of their ids.
    pub requests: Vec<Judged>,
    /// The driver's own count; none where the run was killed before the level's end.
    pub end: Option<LevelEnd>,
    /// Requests that the file says were sent and never ended.
    pub open: u64,
    /// Requests with more than one end, or with an end and no start.
    pub unmatched: u64,
    /// Stretches in which requests were held back, by their start.
    pub gaps: Vec<Gap>,
    /// The most chunks a second that this client takes in, where it was measured before the run.
    pub ceiling: Option<u64>,
}

impl Level {
    /// Flags the requests during which the driver stood still.
    fn flag_stalls(&mut self) {
        let stalls: Vec<Gap> = self.gaps(GapKind::Stall).copied().collect();
        for request in &mut self.requests {
            let (from, to) = (request.trace.start, request.trace.finish);
            if stalls
                .iter()
                .any(|stall| stall.from < to && from < stall.to)
            {
                request.flags.push(Flag::ClientStalled);
                request.flags.sort_unstable();
            }
        }
    }

    /// The stretches of one kind.
    pub fn gaps(&self, kind: GapKind) -> impl Iterator<Item = &Gap> {
        self.gaps.iter().filter(move |gap| gap.kind == kind)
    }
}

/// Why a record file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The first line is no header of this format.
    NoHeader(String),
    /// Written by another version of the format.
    Version(String),
    /// A line other than the last is damaged.
    Line {
        /// Which, from 1.
        number: u64,
        /// What is wrong with it.
        text: String,
    },
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unreadable::NoHeader(text) => {
                write!(
                    f,
                    "this is no record file of denom: its first line is no header ({text})"
                )
            }
            Unreadable::Version(found) => write!(
                f,
                "the file is of format {found:?} and this version reads {FORMAT:?}: use the denom that wrote it"
            ),
            Unreadable::Line { number, text } => write!(
                f,
                "line {number} is damaged ({text}): only the last line of a killed run may be, so the file was changed"
            ),
        }
    }
}

impl std::error::Error for Unreadable {}

/// Takes a record file in line by line, judging each request as it comes.
#[derive(Debug, Default)]
pub struct Reader {
    header: Option<Header>,
    guards: Option<Guards>,
    notes: Vec<Note>,
    levels: Vec<Level>,
    sent: std::collections::BTreeMap<u64, Sent>,
    ended: std::collections::BTreeSet<u64>,
    footer: Option<Footer>,
    last: Option<Instant>,
    number: u64,
    damaged: Option<(u64, String)>,
}

impl Reader {
    /// A reader that judges by the header's guards, or by `guards` where given.
    pub fn new(guards: Option<Guards>) -> Self {
        Reader {
            guards,
            ..Reader::default()
        }
    }

    /// Takes one line, without its line feed. A damaged line is an error once another follows.
    pub fn line(&mut self, text: &[u8]) -> Result<(), Unreadable> {
        self.number += 1;
        if let Some((number, text)) = self.damaged.take() {
            return Err(Unreadable::Line { number, text });
        }
        let line: Line = match serde_json::from_slice(text) {
            Ok(line) => line,
            Err(error) if self.header.is_none() => return Err(self.no_header(text, &error)),
            Err(error) => {
                self.damaged = Some((self.number, error.to_string()));
                return Ok(());
            }
        };
        self.take(line)
    }

    fn no_header(&self, text: &[u8], error: &serde_json::Error) -> Unreadable {
        #[derive(Deserialize)]
        struct Format {
            format: String,
        }
        match serde_json::from_slice::<Format>(text) {
            Ok(found) if found.format != FORMAT && found.format.starts_with("denom.record/") => {
                Unreadable::Version(found.format)
            }
            _ => Unreadable::NoHeader(error.to_string()),
        }
    }

    fn take(&mut self, line: Line) -> Result<(), Unreadable> {
        if self.header.is_none() {
            return match line {
                Line::Header(header) if header.format == FORMAT => {
                    self.levels = header
                        .levels
                        .iter()
                        .map(|plan| Level {
                            plan: *plan,
                            requests: Vec::new(),
                            end: None,
                            open: 0,
                            unmatched: 0,
                            gaps: Vec::new(),
                            ceiling: header.self_check.ceiling(),
                        })
                        .collect();
                    self.header = Some(*header);
                    Ok(())
                }
                Line::Header(header) => Err(Unreadable::Version(header.format)),
                _ => Err(Unreadable::NoHeader("another line stands there".into())),
            };
        }
        match line {
            Line::Header(_) => return Err(self.bad("a second header")),
            Line::Note(note) => self.notes.push(note),
            Line::Sent(sent) => {
                self.last = self.last.max(Some(sent.start));
                if self.sent.insert(sent.id, sent).is_some() {
                    self.level(sent.level)?.unmatched += 1;
                }
            }
            Line::Ended(trace) => self.ended(*trace)?,
            Line::Gap(gap) => self.gap(gap)?,
            Line::Level(end) => self.level(end.index)?.end = Some(end),
            Line::Footer(footer) => self.footer = Some(footer),
        }
        Ok(())
    }

    /// Gaps of one kind follow one another: what overlaps would be taken out of a window twice.
    fn gap(&mut self, gap: Gap) -> Result<(), Unreadable> {
        let level = self.level(gap.level)?;
        let before = level.gaps(gap.kind).last().map(|last| last.to);
        if gap.to < gap.from || before.is_some_and(|before| gap.from < before) {
            return Err(self.bad("a gap ends before it begins, or begins inside another"));
        }
        level.gaps.push(gap);
        Ok(())
    }

    fn ended(&mut self, trace: Trace) -> Result<(), Unreadable> {
        self.last = self.last.max(Some(trace.finish));
        let known = self.sent.contains_key(&trace.id);
        let first = self.ended.insert(trace.id);
        let Some(header) = &self.header else {
            return Err(self.bad("no header"));
        };
        let guards = self.guards.unwrap_or(header.guards());
        let judged = judge(trace, &guards, header.api.has_sentinel());
        let level = self.level(judged.trace.level)?;
        level.unmatched += u64::from(!known || !first);
        level.requests.push(judged);
        Ok(())
    }

    fn level(&mut self, index: u32) -> Result<&mut Level, Unreadable> {
        let number = self.number;
        let place = usize::try_from(index)
            .ok()
            .and_then(|index| self.levels.get_mut(index));
        place.ok_or(Unreadable::Line {
            number,
            text: format!("no level {index} in the plan"),
        })
    }

    fn bad(&self, text: &str) -> Unreadable {
        Unreadable::Line {
            number: self.number,
            text: text.into(),
        }
    }

    /// The whole run. Requests without an end count as drained, up to the last record.
    pub fn finish(mut self) -> Result<Run, Unreadable> {
        let Some(header) = self.header.take() else {
            return Err(Unreadable::NoHeader("the file is empty".into()));
        };
        let guards = self.guards.unwrap_or(header.guards());
        let last = self.last.unwrap_or(Instant::ORIGIN);
        let open: Vec<Sent> = self
            .sent
            .values()
            .filter(|sent| !self.ended.contains(&sent.id))
            .copied()
            .collect();
        for sent in open {
            let mut trace = Trace::begun(sent.id, sent.level, sent.stream, sent.warmup, sent.start);
            (trace.sent, trace.finish) = (Some(sent.start), last);
            trace.planned = sent.planned.unwrap_or(sent.start);
            let level = self.level(sent.level)?;
            level.open += 1;
            level
                .requests
                .push(judge(trace, &guards, header.api.has_sentinel()));
        }
        for level in &mut self.levels {
            level.requests.sort_by_key(|request| request.trace.id);
            level.flag_stalls();
        }
        Ok(Run {
            header,
            notes: self.notes,
            levels: self.levels,
            footer: self.footer,
            torn: self.damaged.is_some(),
        })
    }
}
