//! Owns the test of a claim: which of its readings a measured run agrees with, by the model's rule.

mod question;
mod rests;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::basis::{Loop, Rule};
use crate::claim::Claim;
use crate::figure::Withheld;
use crate::level::LevelReport;
use crate::report::Report;
use crate::stated::{Scope, number};

pub use question::testable;

use question::{Question, What, question};
use rests::{of_stream, of_system};

/// What the run says of the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The value is what the system did, summed over all streams.
    Aggregate,
    /// The value is what one stream did.
    PerStream,
    /// It is both: the two are not told apart here.
    Both,
    /// Only a formula that fails on answers that come at once makes such a value.
    BurstArtefact,
    /// Neither the system nor a stream did that.
    Neither,
    /// Not enough was observed.
    CannotTell,
}

/// One figure that the answer rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rests {
    /// The reading that it speaks to.
    pub reading: Scope,
    /// The metric.
    pub metric: &'static str,
    /// The unit.
    pub unit: String,
    /// The value; of a stream's rates the median.
    pub value: Option<f64>,
    /// Its 95 % interval; of a sum over the window the value itself, twice.
    pub interval: Option<[f64; 2]>,
    /// Seconds that were timed; of a distribution the sum over its requests.
    pub seconds: Option<f64>,
    /// How they were timed.
    pub rule: Option<Rule>,
    /// Requests it rests on.
    pub kept: u64,
    /// Of how many.
    pub of: u64,
    /// The concurrency it was measured at.
    pub concurrency: f64,
    /// The concurrency that was held.
    pub held: Option<f64>,
    /// Whether its interval meets what the claim allows; null where it cannot be said.
    pub agrees: Option<bool>,
    /// Why there is no value.
    pub withheld: Option<Withheld>,
}

/// A claim, tested.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tested {
    /// What the run says.
    pub answer: Answer,
    /// That, in a sentence.
    pub text: String,
    /// Values that agree with the claim, in its unit for one second: from, and to where it has an
    /// upper end.
    pub accepted: (f64, Option<f64>),
    /// The run was stopped before its plan was done: the answer rests on a part of it.
    pub interrupted: bool,
    /// At the stated concurrency.
    pub rests_on: Vec<Rests>,
    /// At concurrency 1.
    pub alone: Vec<Rests>,
    /// Whether concurrency 1 rules the per-stream reading out; it never confirms one.
    pub alone_refutes_per_stream: bool,
    /// Whether the claim holds: with the scope that it states, or, where it states none, with
    /// either. Null where the run cannot tell.
    pub holds: Option<bool>,
}

/// Tests a claim against the report of a run at concurrency 1 and at `streams`.
///
/// # Errors
/// With a sentence, where no run can speak to the claim.
pub fn judge(claim: &Claim, report: &Report, streams: u32) -> Result<Tested, String> {
    let question = question(&claim.fields)?;
    let level = |target: u32| {
        let of = |level: &&LevelReport| {
            level.load.kind == Loop::Closed && level.load.target == f64::from(target)
        };
        report.levels.iter().find(of)
    };
    let (stated, alone) = (level(streams), level(1));
    let system = stated.map(|level| of_system(level, &question));
    let mut rests_on: Vec<Rests> = system.into_iter().collect();
    rests_on.extend(stated.iter().flat_map(|level| of_stream(level, &question)));
    let alone_rests = alone
        .map(|level| of_stream(level, &question))
        .unwrap_or_default();
    let seen = Seen {
        interrupted: report.run.interrupted,
        invalid: invalid(stated, streams),
        refuted: alone.is_some_and(|level| level.verdict.valid)
            && refutes(&alone_rests, question.accepted.0),
        burst: stated.and_then(|level| burst(level, question.accepted.0)),
    };
    let answer = answer(&rests_on, &seen);
    Ok(Tested {
        text: sentence(answer, &question, &rests_on, &seen, streams),
        interrupted: seen.interrupted,
        holds: holds(answer, question.scope),
        answer,
        accepted: question.accepted,
        rests_on,
        alone: alone_rests,
        alone_refutes_per_stream: seen.refuted,
    })
}

/// What the levels show beside their figures.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    interrupted: bool,
    invalid: Option<String>,
    refuted: bool,
    burst: Option<String>,
}

fn holds(answer: Answer, scope: Option<Scope>) -> Option<bool> {
    match answer {
        Answer::CannotTell => None,
        Answer::Both => Some(true),
        Answer::Aggregate => Some(scope != Some(Scope::PerStream)),
        Answer::PerStream => Some(scope != Some(Scope::System)),
        Answer::BurstArtefact | Answer::Neither => Some(false),
    }
}

/// Why the level that decides cannot be used.
fn invalid(stated: Option<&LevelReport>, streams: u32) -> Option<String> {
    let Some(level) = stated else {
        return Some(format!(
            "the run did not reach the level with {streams} streams"
        ));
    };
    let reasons: Vec<&str> = level
        .verdict
        .reasons
        .iter()
        .map(|reason| reason.text.as_str())
        .collect();
    (!level.verdict.valid).then(|| {
        format!(
            "the level with {streams} streams is invalid ({})",
            reasons.join("; ")
        )
    })
}

/// The rule: the stated concurrency decides, concurrency 1 can only refute.
fn answer(rests: &[Rests], seen: &Seen) -> Answer {
    let of = |scope: Scope| {
        let all: Vec<Option<bool>> = rests
            .iter()
            .filter(|r| r.reading == scope)
            .map(|r| r.agrees)
            .collect();
        match () {
            () if all.contains(&Some(true)) => Some(true),
            () if all.is_empty() || all.contains(&None) => None,
            () => Some(false),
        }
    };
    let stream = if seen.refuted {
        Some(false)
    } else {
        of(Scope::PerStream)
    };
    match (of(Scope::System), stream) {
        _ if seen.invalid.is_some() => Answer::CannotTell,
        (Some(true), Some(true)) => Answer::Both,
        (Some(true), _) => Answer::Aggregate,
        (_, Some(true)) => Answer::PerStream,
        _ if seen.burst.is_some() => Answer::BurstArtefact,
        (Some(false), Some(false)) => Answer::Neither,
        _ => Answer::CannotTell,
    }
}

/// Every rate of a stream that the claim may mean lies below what it allows.
fn refutes(alone: &[Rests], least: f64) -> bool {
    let below = |r: &Rests| r.interval.is_some_and(|[_, high]| high < least);
    !alone.is_empty() && alone.iter().all(below)
}

/// Most answers came at once, and the formula that fails on them gives the value or more.
fn burst(level: &LevelReport, least: f64) -> Option<String> {
    let only = &level.end_to_end_only;
    let held_back = only.n.saturating_sub(only.whole + only.too_short);
    if held_back * 2 <= level.requests.ok || least <= 0.0 {
        return None;
    }
    let naive = only.naive.median().value.or(only.naive.max());
    match naive {
        Some(naive) if naive >= least => Some(format!(
            "{held_back} of {} answers came at once, and output over the time from first content to end would read {} {}",
            level.requests.ok,
            number(naive),
            only.naive.unit()
        )),
        None if only.naive_divides_by_zero > 0 => Some(format!(
            "{held_back} of {} answers came at once, and output over the time from first content to end divides by zero",
            level.requests.ok
        )),
        _ => None,
    }
}

fn sentence(
    answer: Answer,
    question: &Question,
    rests: &[Rests],
    seen: &Seen,
    streams: u32,
) -> String {
    let unit = match question.what {
        What::Requests => "req/s",
        _ => "tok/s",
    };
    let value = match question.high > question.value {
        true => format!(
            "{} to {} {unit}",
            number(question.value),
            number(question.high)
        ),
        false => format!("{} {unit}", number(question.value)),
    };
    let both = format!(
        "with {streams} streams the system {} and one stream {}",
        shown(rests, Scope::System),
        shown(rests, Scope::PerStream)
    );
    let verdict = match (answer, question.scope) {
        (Answer::Aggregate, Some(Scope::PerStream)) => {
            format!("{value} is claimed of one stream and agrees with the aggregate reading only")
        }
        (Answer::PerStream, Some(Scope::System)) => {
            format!("{value} is claimed of the system and agrees with the per-stream reading only")
        }
        (Answer::Aggregate, _) => format!("{value} agrees with the aggregate reading"),
        (Answer::PerStream, _) => format!("{value} agrees with the per-stream reading"),
        (Answer::Both, _) => {
            format!("{value} agrees with both readings, which are not told apart here")
        }
        (Answer::BurstArtefact, _) => {
            let burst = seen.burst.as_deref().unwrap_or("the answers came at once");
            format!("{value} is a burst artefact: {burst}")
        }
        (Answer::Neither, _) => format!("{value} agrees with neither reading"),
        (Answer::CannotTell, _) => {
            let why = seen.invalid.as_deref();
            let why = why.unwrap_or("one of the two readings was not observed well enough");
            format!("cannot tell: {why}")
        }
    };
    let refuted = match seen.refuted {
        true => {
            " Concurrency 1 rules the per-stream reading out: a stream alone is slower than that."
        }
        false => "",
    };
    let partial = match seen.interrupted {
        true => "INTERRUPTED, so on a part of the run only: ",
        false => "",
    };
    format!("{partial}{verdict}; {both}.{refuted}")
}

/// The figure of one reading that agrees, else the first that was observed.
fn shown(rests: &[Rests], scope: Scope) -> String {
    rests
        .iter()
        .filter(|r| r.reading == scope)
        .filter_map(|r| Some((r.agrees != Some(true), r.value?, &r.unit)))
        .min_by_key(|(differs, ..)| *differs)
        .map_or("was not observed".into(), |(_, value, unit)| {
            format!("made {} {unit}", crate::rate::significant(value))
        })
}
