//! Owns the test of a claim: which of its readings a measured run agrees with, by the model's rule.

use serde::Serialize;

use super::{Claim, Fields};
use crate::basis::{Loop, Rule};
use crate::claim::{Bound, Class};
use crate::figure::{Dist, Figure, Withheld};
use crate::level::LevelReport;
use crate::report::Report;
use crate::stated::{Scope, number};

/// A measured figure may be this far from the value, as a share of it, and still agree.
const TOLERANCE: f64 = 0.1;

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

/// What a run has to measure for a claim.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Question {
    accepted: (f64, Option<f64>),
    value: f64,
    what: What,
    wait: Option<bool>,
    scope: Option<Scope>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Output,
    Input,
    Total,
    Requests,
}

/// Whether a run can speak to a claim at all; what is asked before anything is sent.
///
/// # Errors
/// With a sentence on what is missing.
pub fn testable(claim: &Claim) -> Result<(), String> {
    question(&claim.fields).map(|_| ())
}

fn question(fields: &Fields) -> Result<Question, String> {
    let per_second = fields
        .per_second
        .ok_or("the claim is no rate: there is no number with a base of time to test")?;
    let what = match (
        fields
            .unit
            .as_deref()
            .and_then(|unit| unit.split('/').next()),
        fields.counted.as_deref(),
    ) {
        (Some("tok"), Some("input")) => What::Input,
        (Some("tok"), Some("total")) => What::Total,
        (Some("tok"), _) => What::Output,
        (Some("req"), _) => What::Requests,
        (unit, _) => {
            return Err(format!(
                "a run counts tokens and requests, not {}: such a claim can be read, and a log of the work tallied, but not tested against an endpoint",
                unit.unwrap_or("a thing without unit")
            ));
        }
    };
    let machines = match (fields.per.map(|per| per.class), fields.devices) {
        (Some(Class::Cost), _) => {
            return Err("the claim is per cost or power, which a run does not measure".into());
        }
        (Some(Class::Machine), Some(count)) => count,
        (Some(Class::Machine), None) => {
            return Err("the claim is per machine and does not say how many there are: add that to the text".into());
        }
        _ => 1.0,
    };
    let value = per_second * machines;
    let high = fields
        .value_to
        .zip(fields.value)
        .map_or(value, |(high, low)| value * high / low);
    Ok(Question {
        accepted: accepted(value, high, fields.bound.unwrap_or(Bound::Point)),
        value,
        what,
        wait: fields.ttft_included,
        scope: fields.scope,
    })
}

/// The value ± 10 %; a bound is open to its side.
fn accepted(low: f64, high: f64, bound: Bound) -> (f64, Option<f64>) {
    let from = low * (1.0 - TOLERANCE);
    let to = high * (1.0 + TOLERANCE);
    match bound {
        Bound::Point | Bound::Range => (from, Some(to)),
        Bound::AtLeast => (from, None),
        Bound::AtMost => (0.0, Some(to)),
    }
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
        invalid: invalid(stated, streams),
        refuted: alone.is_some_and(|level| level.verdict.valid)
            && refutes(&alone_rests, question.accepted.0),
        burst: stated.and_then(|level| burst(level, question.accepted.0)),
    };
    let answer = answer(&rests_on, &seen);
    Ok(Tested {
        text: sentence(answer, &question, &rests_on, &seen, streams),
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

fn of_system(level: &LevelReport, question: &Question) -> Rests {
    let system = &level.system;
    let figure = match question.what {
        What::Output | What::Total => &system.output,
        What::Input => &system.input,
        What::Requests => &system.requests,
    };
    let mut rests = of_figure(level, figure, question);
    if question.what == What::Total {
        let both = figure
            .value()
            .zip(system.input.value())
            .map(|(output, input)| output + input);
        rests.metric = "system_throughput of output and input";
        rests.unit = "tok/s".into();
        rests.value = both;
        rests.interval = both.map(|value| [value, value]);
        rests.withheld = both.is_none().then(|| no_input(system.input.reason()));
    }
    settle(rests, question)
}

fn no_input(reason: Option<&Withheld>) -> Withheld {
    reason
        .cloned()
        .unwrap_or_else(|| Withheld::new("no_count", "output or input tokens are not known"))
}

fn of_figure(level: &LevelReport, figure: &Figure, question: &Question) -> Rests {
    let population = figure.population();
    Rests {
        reading: Scope::System,
        metric: figure.metric(),
        unit: question.unit(figure.unit()),
        value: figure.value(),
        interval: figure.value().map(|value| [value, value]),
        seconds: figure.timed().and_then(|timed| timed.seconds()),
        rule: figure.timed().map(|timed| timed.rule()),
        kept: population.kept,
        of: population.of,
        concurrency: level.load.target,
        held: level.load.held,
        agrees: None,
        withheld: figure.reason().cloned(),
    }
}

/// The rates of one stream that the claim may mean: with the wait, without it, or, where it does
/// not say, either.
fn of_stream(level: &LevelReport, question: &Question) -> Vec<Rests> {
    let (generation, whole) = (&level.per_stream.generation, &level.per_stream.end_to_end);
    let dists = match (question.what, question.wait) {
        (What::Output, Some(true)) => vec![whole],
        (What::Output, Some(false)) => vec![generation],
        (What::Output, None) => vec![generation, whole],
        _ => vec![whole],
    };
    dists
        .into_iter()
        .map(|dist| settle(of_dist(level, dist, question), question))
        .collect()
}

fn of_dist(level: &LevelReport, dist: &Dist, question: &Question) -> Rests {
    let median = dist.median();
    let mut rests = Rests {
        reading: Scope::PerStream,
        metric: dist.metric(),
        unit: question.unit(dist.unit()),
        value: median.value,
        interval: median.ci95,
        seconds: dist.timed().seconds(),
        rule: Some(dist.timed().rule()),
        kept: dist.population().kept,
        of: dist.population().of,
        concurrency: level.load.target,
        held: level.load.held,
        agrees: None,
        withheld: median.withheld,
    };
    if question.what != What::Output {
        rests.value = None;
        rests.interval = None;
        rests.withheld = Some(Withheld::new(
            "no_such_metric",
            "a run has no rate of one stream for input, for all tokens or for requests",
        ));
    }
    rests
}

/// Answers whether a figure agrees; one in another unit is withheld.
fn settle(mut rests: Rests, question: &Question) -> Rests {
    let wanted = if question.what == What::Requests {
        "req/s"
    } else {
        "tok/s"
    };
    if rests.value.is_some() && rests.unit != wanted {
        rests.withheld = Some(Withheld::new(
            "no_tokens",
            format!(
                "the endpoint's rate is in {}: nobody counted tokens, so it cannot stand beside tok/s",
                rests.unit
            ),
        ));
        (rests.value, rests.interval) = (None, None);
    }
    let (from, to) = question.accepted;
    rests.agrees = rests
        .interval
        .map(|[low, high]| high >= from && to.is_none_or(|to| low <= to));
    rests
}

impl Question {
    /// Input tokens are tokens here: the claim says which it counts.
    fn unit(&self, unit: &str) -> String {
        let input = matches!(self.what, What::Input | What::Total);
        unit.strip_prefix("input ")
            .filter(|_| input)
            .unwrap_or(unit)
            .to_owned()
    }
}

fn sentence(
    answer: Answer,
    question: &Question,
    rests: &[Rests],
    seen: &Seen,
    streams: u32,
) -> String {
    let unit = if question.what == What::Requests {
        "req/s"
    } else {
        "tok/s"
    };
    let value = format!("{} {unit}", number(question.value));
    let of = |scope: Scope| {
        let chosen = rests
            .iter()
            .filter(|r| r.reading == scope && r.value.is_some())
            .min_by_key(|r| r.agrees != Some(true))?;
        Some(format!(
            "{} {}",
            crate::rate::significant(chosen.value?),
            chosen.unit
        ))
    };
    let (system, stream) = (of(Scope::System), of(Scope::PerStream));
    let shown = |found: Option<String>| found.unwrap_or_else(|| "not observed".into());
    let both = format!(
        "with {streams} streams the system made {} and one stream {}",
        shown(system),
        shown(stream)
    );
    let verdict = match answer {
        Answer::Aggregate if question.scope == Some(Scope::PerStream) => format!(
            "{value} is claimed of one stream and agrees with the aggregate reading only: {both}."
        ),
        Answer::PerStream if question.scope == Some(Scope::System) => format!(
            "{value} is claimed of the system and agrees with the per-stream reading only: {both}."
        ),
        Answer::Aggregate => format!("{value} agrees with the aggregate reading: {both}."),
        Answer::PerStream => format!("{value} agrees with the per-stream reading: {both}."),
        Answer::Both => {
            format!("{value} agrees with both readings, which are not told apart here: {both}.")
        }
        Answer::BurstArtefact => format!(
            "{value} is a burst artefact: {}; {both}.",
            seen.burst.as_deref().unwrap_or("the answers came at once")
        ),
        Answer::Neither => format!("{value} agrees with neither reading: {both}."),
        Answer::CannotTell => {
            let why = seen
                .invalid
                .as_deref()
                .unwrap_or("one of the two was not observed well enough");
            format!("Cannot tell: {why}; {both}.")
        }
    };
    match seen.refuted {
        true => format!(
            "{verdict} Concurrency 1 rules the per-stream reading out: a stream alone is slower than that."
        ),
        false => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{Given, read};

    fn asked(text: &str) -> Question {
        let claim = read(text, Given::default()).expect("a claim");
        question(&claim.fields).expect("a question")
    }

    fn rests(reading: Scope, interval: Option<[f64; 2]>, question: &Question) -> Rests {
        let rests = Rests {
            reading,
            metric: "a_rate",
            unit: "tok/s".into(),
            value: interval.map(|[low, _]| low),
            interval,
            seconds: Some(10.0),
            rule: Some(Rule::Steady),
            kept: 96,
            of: 96,
            concurrency: 16.0,
            held: Some(15.9),
            agrees: None,
            withheld: interval
                .is_none()
                .then(|| Withheld::new("few_chunks", "came at once")),
        };
        settle(rests, question)
    }

    const VALID: Seen = Seen {
        invalid: None,
        refuted: false,
        burst: None,
    };

    fn answered(text: &str, system: f64, stream: Option<[f64; 2]>, seen: &Seen) -> Answer {
        let question = asked(text);
        let all = [
            rests(Scope::System, Some([system, system]), &question),
            rests(Scope::PerStream, stream, &question),
        ];
        answer(&all, seen)
    }

    #[test]
    fn the_stated_concurrency_decides() {
        let claim = "500 tok/s with 16 streams";
        let at = |system, stream| answered(claim, system, Some(stream), &VALID);
        assert_eq!(at(512.0, [31.0, 32.0]), Answer::Aggregate);
        assert_eq!(at(8_000.0, [480.0, 510.0]), Answer::PerStream);
        assert_eq!(at(200.0, [12.0, 13.0]), Answer::Neither);
        assert_eq!(at(500.0, [460.0, 470.0]), Answer::Both);
        assert_eq!(answered(claim, 512.0, None, &VALID), Answer::Aggregate);
        assert_eq!(answered(claim, 200.0, None, &VALID), Answer::CannotTell);
        let invalid = Seen {
            invalid: Some("client-limited".into()),
            ..VALID
        };
        assert_eq!(answered(claim, 512.0, None, &invalid), Answer::CannotTell);
    }

    #[test]
    fn ten_percent_on_either_side_and_bounds_on_one() {
        let system = |text: &str, value| answered(text, value, Some([1.0, 1.0]), &VALID);
        assert_eq!(system("500 tok/s", 451.0), Answer::Aggregate);
        assert_eq!(system("500 tok/s", 449.0), Answer::Neither);
        assert_eq!(system("500 tok/s", 549.0), Answer::Aggregate);
        assert_eq!(system("500 tok/s", 551.0), Answer::Neither);
        assert_eq!(system("500 tok/s plus", 9_000.0), Answer::Aggregate);
        assert_eq!(system("500 tok/s plus", 449.0), Answer::Neither);
        assert_eq!(system("up to 500 tok/s", 551.0), Answer::PerStream);
        assert_eq!(system("300-500 tok/s", 271.0), Answer::Aggregate);
        assert_eq!(system("30k tokens per minute", 500.0), Answer::Aggregate);
    }

    #[test]
    fn an_interval_that_meets_the_value_agrees() {
        let stream = |interval| answered("500 tok/s", 8_000.0, Some(interval), &VALID);
        assert_eq!(stream([300.0, 450.0]), Answer::PerStream);
        assert_eq!(stream([300.0, 449.0]), Answer::Neither);
        assert_eq!(stream([550.0, 700.0]), Answer::PerStream);
    }

    #[test]
    fn concurrency_1_can_only_refute() {
        let question = asked("500 tok/s");
        let alone = |interval| rests(Scope::PerStream, interval, &question);
        let least = question.accepted.0;
        assert!(refutes(&[alone(Some([90.0, 101.0]))], least));
        assert!(!refutes(&[alone(Some([440.0, 460.0]))], least));
        assert!(
            !refutes(&[alone(Some([90.0, 101.0])), alone(None)], least),
            "one was not observed"
        );
        assert!(!refutes(&[], least));
        let refuted = Seen {
            refuted: true,
            ..VALID
        };
        assert_eq!(
            answered("500 tok/s", 200.0, Some([480.0, 520.0]), &refuted),
            Answer::Neither
        );
        assert!(!refutes(
            &[alone(Some([90.0, 101.0]))],
            asked("up to 500 tok/s").accepted.0
        ));
    }

    #[test]
    fn a_burst_explains_only_what_nothing_else_does() {
        let burst = Seen {
            burst: Some("all came at once".into()),
            ..VALID
        };
        assert_eq!(
            answered("90,000 tok/s", 900.0, None, &burst),
            Answer::BurstArtefact
        );
        assert_eq!(
            answered("900 tok/s", 900.0, None, &burst),
            Answer::Aggregate
        );
    }

    #[test]
    fn a_scope_that_was_stated_has_to_be_the_one_that_agrees() {
        assert_eq!(
            holds(Answer::Aggregate, Some(Scope::PerStream)),
            Some(false)
        );
        assert_eq!(holds(Answer::Aggregate, Some(Scope::System)), Some(true));
        assert_eq!(holds(Answer::Aggregate, None), Some(true));
        assert_eq!(holds(Answer::PerStream, Some(Scope::System)), Some(false));
        assert_eq!(holds(Answer::Neither, None), Some(false));
        assert_eq!(holds(Answer::CannotTell, None), None);
    }

    #[test]
    fn what_no_run_can_speak_to() {
        for text in [
            "34 pages/s",
            "3x faster",
            "900 tok/s/MW",
            "900 tok/s per GPU",
            "30,000 tokens per GPU",
        ] {
            let claim = read(text, Given::default()).expect("read");
            assert!(testable(&claim).is_err(), "{text}");
        }
        let eight = asked("900 tok/s per GPU on 8 GPUs");
        assert_eq!(eight.value, 7_200.0);
    }
}
