//! Owns the probe: an experiment over output lengths, and what it says of a path, from traces alone.

pub mod bundle;
pub mod compare;
pub mod counted;
pub mod head;
pub mod inferred;
pub mod plan;
pub mod records;
pub mod rows;
pub mod sample;
pub mod slope;
pub mod supports;
#[cfg(test)]
mod tests;
pub mod verdict;

use std::collections::BTreeMap;

use serde::Serialize;

use self::compare::Change;
use self::counted::{Counted, Lengthened};
use self::head::Said;
use self::inferred::{Declared, Inferred};
use self::plan::{Cost, Lengths};
use self::rows::Row;
use self::sample::Sample;
use self::supports::Ability;
use self::verdict::{Evidence, Fits, Kind, Verdict};
use crate::judge::{Guards, Judged, Outcome};
use crate::report::Tool;
use crate::trace::Trace;

/// The schema's name and version.
pub const SCHEMA: &str = "denom.probe/1";

/// Which way to the server a side of the experiment takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The URL, asked as denom asks.
    Path,
    /// The URL, asked with the headers that SDKs send.
    AsSdk,
    /// The other URL.
    Direct,
}

impl Way {
    /// Its name in JSON and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Way::Path => "path",
            Way::AsSdk => "as_sdk",
            Way::Direct => "direct",
        }
    }
}

/// One side of the experiment, as its records tell it.
#[derive(Debug, Clone)]
pub struct Side {
    /// Which way it took.
    pub way: Way,
    /// Its address, without credentials.
    pub url: String,
    /// Its requests, in the order in which they were sent.
    pub traces: Vec<Trace>,
}

/// How the experiment was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The program's version.
    pub version: String,
    /// The model asked for.
    pub model: String,
    /// The API spoken.
    pub api: &'static str,
    /// The API ends its streams with a sentinel.
    pub sentinel: bool,
    /// Output lengths asked for.
    pub lengths: Lengths,
    /// Output lengths planned before the server's speed was known.
    pub planned: Lengths,
    /// The seed of their order.
    pub seed: u64,
    /// The user stopped it.
    pub interrupted: bool,
    /// Things that happened.
    pub notes: Vec<String>,
}

/// What the experiment says.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The program.
    pub tool: Tool,
    /// The model asked for.
    pub model: String,
    /// The API spoken.
    pub api: &'static str,
    /// Output lengths asked for, in tokens.
    pub lengths: Lengths,
    /// Output lengths planned before the server's speed was known.
    pub planned_lengths: Lengths,
    /// The seed of their order.
    pub seed: u64,
    /// What the plan cost at most.
    pub cost: Cost,
    /// The user stopped it.
    pub interrupted: bool,
    /// What the URL does.
    pub verdict: Kind,
    /// The numbers behind that.
    pub evidence: Vec<Evidence>,
    /// The speed behind the URL, inferred.
    pub inferred: Inferred,
    /// The speed behind the URL, as the server declares it; none where it declares nothing.
    pub declared: Option<Declared>,
    /// Each side by itself, the URL first.
    pub paths: Vec<Path>,
    /// The URL against each other side.
    pub comparisons: Vec<Comparison>,
    /// Things that happened.
    pub notes: Vec<String>,
}

/// What was found of one side.
#[derive(Debug, Clone, Serialize)]
pub struct Path {
    /// Which way it took.
    pub way: Way,
    /// Its address.
    pub url: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The numbers behind it.
    pub evidence: Vec<Evidence>,
    /// What output was counted in.
    pub counted: Counted,
    /// How the lengths asked for were obeyed.
    pub lengths: Lengthened,
    /// The lines through first content and end over output; none where there is no slope.
    pub fits: Option<Fits>,
    /// What was observed, by length.
    pub observed: Vec<Row>,
    /// The speed behind the path, inferred.
    pub inferred: Inferred,
    /// The speed behind the path, as the server declares it.
    pub declared: Option<Declared>,
    /// What the path says of itself.
    pub says: Vec<Said>,
    /// What to change, where it does not stream.
    pub changes: Vec<head::Change>,
    /// What the API can do.
    pub supports: Vec<Ability>,
    /// Its requests.
    pub requests: Requests,
}

/// The requests of one side.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// Measured.
    pub measured: u64,
    /// Ok among them.
    pub ok: u64,
    /// Discarded: sent first, or refused for their form.
    pub discarded: u64,
    /// Failures among the measured, by kind.
    pub failed: BTreeMap<&'static str, u64>,
    /// What servers said of failures, each once, at most three.
    pub failure_texts: Vec<String>,
}

/// The URL against another side, asked in turns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The other side.
    pub with: Way,
    /// The two sides have different verdicts: a finding.
    pub differs: bool,
    /// What that means, in a sentence.
    pub text: String,
    /// The URL's times less the other side's, by length.
    pub changes: Vec<Change>,
}

/// Judges the experiment. The first side is the URL's.
pub fn judge(setup: Setup, sides: Vec<Side>) -> Option<Report> {
    let cost = plan::cost(setup.planned, sides.len() as u64);
    let mut paths = Vec::new();
    let mut all_turns = Vec::new();
    for side in sides {
        let (path, turns) = path(side, &setup);
        paths.push(path);
        all_turns.push(turns);
    }
    let (first, others) = paths.split_first()?;
    let (own, others_turns) = all_turns.split_first()?;
    let comparisons = others
        .iter()
        .zip(others_turns)
        .map(|(other, turns)| Comparison {
            with: other.way,
            differs: first.verdict.kind != other.verdict.kind,
            text: compare_text(first, other),
            changes: compare::changes(own, turns, setup.lengths),
        })
        .collect();
    Some(Report {
        schema: SCHEMA,
        tool: Tool {
            name: "denom",
            version: setup.version,
        },
        model: setup.model,
        api: setup.api,
        lengths: setup.lengths,
        planned_lengths: setup.planned,
        seed: setup.seed,
        cost,
        interrupted: setup.interrupted,
        verdict: first.verdict.kind,
        evidence: first.evidence.clone(),
        inferred: first.inferred.clone(),
        declared: first.declared.clone(),
        comparisons,
        notes: setup.notes,
        paths,
    })
}

/// One side's findings, and its samples with their turn in the order of asking.
fn path(side: Side, setup: &Setup) -> (Path, Vec<(u64, Sample)>) {
    let mut requests = Requests::default();
    let mut turns = Vec::new();
    let (discarded, measured): (Vec<Trace>, Vec<Trace>) =
        side.traces.into_iter().partition(|trace| trace.warmup);
    requests.discarded = discarded.len() as u64;
    for (turn, trace) in measured.into_iter().enumerate() {
        requests.measured += 1;
        match Sample::of(trace, setup.lengths, &Guards::default(), setup.sentinel) {
            Ok(sample) => turns.push((turn as u64, sample)),
            Err(judged) => requests.failed(&judged),
        }
    }
    requests.ok = turns.len() as u64;
    let samples: Vec<Sample> = turns.iter().map(|(_, sample)| sample.clone()).collect();
    let heads = head::heads(&samples);
    let counted = Counted::of(&samples);
    let lengthened = counted::lengthened(&samples, counted);
    let fits = verdict::fits(&samples, counted);
    let verdict = verdict::verdict(&samples, &lengthened, fits.as_ref());
    let path = Path {
        way: side.way,
        url: side.url,
        evidence: verdict::evidence(&samples, counted, fits.as_ref()),
        counted,
        fits,
        observed: rows::rows(&samples, setup.lengths, counted),
        inferred: inferred::infer(
            &samples,
            counted,
            &lengthened,
            fits.as_ref(),
            requests.measured,
        ),
        declared: inferred::declared(&samples, requests.measured),
        says: head::said(&heads, &samples),
        changes: head::changes(verdict.kind, &heads),
        supports: supports::abilities(&samples, &heads, counted, &lengthened),
        lengths: lengthened,
        verdict,
        requests,
    };
    (path, turns)
}

impl Requests {
    fn failed(&mut self, judged: &Judged) {
        let name = match judged.outcome {
            Outcome::Ok => "other_length",
            outcome => outcome.name(),
        };
        *self.failed.entry(name).or_default() += 1;
        let trace = &judged.trace;
        let said = trace.error.as_ref().map(|error| error.message.clone());
        let said = said.or(trace.malformed.clone());
        if let Some(said) = said.filter(|said| !self.failure_texts.contains(said))
            && self.failure_texts.len() < 3
        {
            self.failure_texts.push(said);
        }
    }
}

fn compare_text(first: &Path, other: &Path) -> String {
    let (here, there) = (first.verdict.kind, other.verdict.kind);
    let (shown_here, shown_there) = (words(here), words(there));
    let url = &other.url;
    match (other.way, here, there) {
        (_, Kind::CannotTell, _) | (_, _, Kind::CannotTell) => {
            "one of the two sides cannot be told, so nothing is said of the way between them".into()
        }
        (Way::AsSdk, _, _) if here == there => {
            format!("asked as SDKs ask, it {shown_there} too")
        }
        (Way::AsSdk, Kind::Streams, _) => format!(
            "FINDING: it streams to denom and {shown_there} for an SDK, which offers compression: look at what compresses"
        ),
        (Way::AsSdk, _, _) => format!(
            "FINDING: it {shown_here} for denom and {shown_there} for an SDK: the headers of a request change what the path does"
        ),
        (_, Kind::Streams, Kind::Streams) => {
            "both stream: nothing between the two holds content back".into()
        }
        (_, _, Kind::Streams) => format!(
            "{url} streams and the URL {shown_here}: what stands between the two holds content back"
        ),
        (_, Kind::Streams, _) => {
            format!("the URL streams and {url} {shown_there}: the other route holds content back")
        }
        _ if here == there => {
            format!("both {shown_here}: look behind {url}, at the server or a hop in front of it")
        }
        _ => format!(
            "{url} {shown_there} already and the URL {shown_here}: both the way behind and the way between change the shape"
        ),
    }
}

/// A verdict as a verb.
fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::Streams => "streams",
        Kind::BundlesBySize => "bundles by size",
        Kind::BundlesByTime => "bundles by time",
        Kind::Buffers => "buffers",
        Kind::CannotTell => "cannot be told",
    }
}
