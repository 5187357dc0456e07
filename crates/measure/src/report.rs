//! Owns the report: one object made from a record file, the same for every page and for JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::judge::Guards;
use crate::level::{self, LevelReport};
use crate::record::{Lead, Note, Run, SelfCheck, StampMode};

/// The schema's name and version.
pub const SCHEMA: &str = "denom.report/1";

/// Everything a page shows of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The program.
    pub tool: Tool,
    /// What was measured.
    pub target: Target,
    /// How times were made.
    pub clock: Clock,
    /// The run as a whole.
    pub run: RunShown,
    /// One entry a level, in the order they ran.
    pub levels: Vec<LevelReport>,
}

/// The program that made the records.
#[derive(Debug, Clone, Serialize)]
pub struct Tool {
    /// `denom`
    pub name: &'static str,
    /// The version that made the records.
    pub version: String,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Target {
    /// The endpoint, without credentials.
    pub url: String,
    /// The API spoken.
    pub api: &'static str,
    /// The model asked for.
    pub model: String,
    /// HTTP version.
    pub http: String,
    /// How TLS was done.
    pub tls: String,
    /// The vocabulary by which tokens were counted here, where they were.
    pub vocabulary: Option<String>,
    /// What was taken out of the URL.
    pub redactions: Vec<String>,
}

/// How times were made.
#[derive(Debug, Clone, Serialize)]
pub struct Clock {
    /// `kernel`, `read` or `mixed`, as it was; as asked for where nothing arrived.
    pub stamp: &'static str,
    /// As asked for.
    pub asked: StampMode,
    /// The origin of the run's instants on the machine's monotonic clock.
    pub origin_monotonic_ns: u64,
}

/// The run as a whole.
#[derive(Debug, Clone, Serialize)]
pub struct RunShown {
    /// Its random name.
    pub id: String,
    /// When it began, in seconds since 1970.
    pub began_unix_s: f64,
    /// A stream was asked for.
    pub stream: bool,
    /// Seed of the plan.
    pub seed: u64,
    /// Hash of the plan.
    pub plan_hash: String,
    /// Input tokens asked for.
    pub input_tokens: String,
    /// Output tokens asked for.
    pub output_tokens: String,
    /// The user stopped it.
    pub interrupted: bool,
    /// The file ends before the run does.
    pub cut_short: bool,
    /// What the client found of its own limit before the run.
    pub self_check: SelfCheck,
    /// Things that happened.
    pub notes: Vec<Note>,
    /// Limits, defaults and settings.
    pub settings: BTreeMap<String, String>,
    /// The machine.
    pub environment: BTreeMap<String, String>,
    /// Which rate leads on a page.
    #[serde(skip)]
    pub lead: Lead,
    /// The endpoint ended with the run: no command can ask it again, so the page names none.
    #[serde(skip)]
    pub endpoint_gone: bool,
}

/// How a run ended, as an exit code sees it; the worst decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Numbers valid.
    Done,
    /// A level is invalid.
    Invalid,
    /// Every request failed.
    NoResult,
    /// The client or this machine was the limit.
    ClientLimited,
    /// The user stopped it.
    Interrupted,
}

/// Makes the report of a run. Shapes were judged by `guards`.
pub fn build(run: &Run, guards: Guards) -> Report {
    let mut baseline = None;
    let mut levels = Vec::new();
    for level in run
        .levels
        .iter()
        .filter(|level| level.end.is_some() || !level.requests.is_empty())
    {
        let (mut report, medians) = level::report(level, guards, baseline.as_ref());
        if level.plan.baseline
            || (baseline.is_none()
                && level.plan.kind == crate::basis::Loop::Closed
                && level.plan.target_milli == 1_000)
        {
            report.baseline = true;
            baseline = Some(medians);
        }
        levels.push(report);
    }
    let header = &run.header;
    Report {
        schema: SCHEMA,
        tool: Tool {
            name: "denom",
            version: header.version.clone(),
        },
        target: Target {
            url: header.url.clone(),
            api: header.api.name(),
            model: header.model.clone(),
            http: header.http.clone(),
            tls: header.tls.clone(),
            vocabulary: header.vocabulary.clone(),
            redactions: header.redactions.clone(),
        },
        clock: Clock {
            stamp: stamp(&levels, header.stamp),
            asked: header.stamp,
            origin_monotonic_ns: header.origin_monotonic_ns,
        },
        run: RunShown {
            id: header.run.clone(),
            began_unix_s: header.began_unix_ns as f64 / 1e9,
            stream: header.stream,
            seed: header.seed,
            plan_hash: header.plan_hash.clone(),
            input_tokens: header.input_tokens.clone(),
            output_tokens: header.output_tokens.clone(),
            interrupted: run.footer.is_some_and(|footer| footer.interrupted),
            cut_short: run.footer.is_none(),
            self_check: header.self_check,
            notes: run.notes.clone(),
            settings: header.settings.clone(),
            environment: header.environment.clone(),
            lead: header.lead,
            endpoint_gone: false,
        },
        levels,
    }
}

fn stamp(levels: &[LevelReport], asked: StampMode) -> &'static str {
    use crate::trace::Stamps;
    let mut seen: Vec<Stamps> = levels.iter().map(|level| level.client.stamps).collect();
    seen.retain(|stamps| *stamps != Stamps::None);
    match seen.split_first() {
        Some((Stamps::Kernel, rest)) if rest.iter().all(|s| *s == Stamps::Kernel) => "kernel",
        Some((Stamps::Read, rest)) if rest.iter().all(|s| *s == Stamps::Read) => "read",
        Some(_) => "mixed",
        None if asked == StampMode::Kernel => "kernel",
        None => "read",
    }
}

impl Report {
    /// How the run ended: the worst of its levels decides.
    pub fn ending(&self) -> Ending {
        if self.run.interrupted {
            return Ending::Interrupted;
        }
        let of_level = |level: &LevelReport| {
            let all_failed =
                level.requests.issued > 0 && level.requests.failures() == level.requests.issued;
            match () {
                () if level.verdict.is_client_limited() => Ending::ClientLimited,
                () if all_failed => Ending::NoResult,
                () if !level.verdict.valid => Ending::Invalid,
                () => Ending::Done,
            }
        };
        self.levels
            .iter()
            .map(of_level)
            .max()
            .unwrap_or(Ending::NoResult)
    }
}
