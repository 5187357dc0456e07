//! Owns the stated number as JSON and pages show it: its definition, its basis and both readings.

use serde::Serialize;

use super::definition::Definition;
use super::form::{Metric, Number, Run, Scope, Stat};
use crate::figure::{Evidence, Withheld};
use crate::stated::{Reading, Span, Stated, Streams, readings};

/// A number that a file states, with everything the file says it rests on.
#[derive(Debug, Clone, Serialize)]
pub struct StatedShown {
    /// Which of the file's runs.
    pub run: Option<String>,
    /// What it is of.
    pub metric: Metric,
    /// Which statistic: `value`, `mean`, `p50`, …
    pub stat: String,
    /// Where it stands in the file.
    pub field: String,
    /// The value in [`unit`](Self::unit).
    pub value: Option<f64>,
    /// Its unit.
    pub unit: &'static str,
    /// Why there is no value.
    pub withheld: Option<Withheld>,
    /// What was timed, where the file says how long.
    pub interval: Option<Timed>,
    /// What it is summed over.
    pub scope: Scope,
    /// Requests it rests on.
    pub population: Option<Population>,
    /// Streams at once.
    pub concurrency: Concurrency,
    /// What was counted, where the file says how many.
    pub numerator: Option<Numerator>,
    /// Always `stated`.
    pub evidence: Evidence,
    /// What its tool means by it.
    pub definition: Definition,
    /// What it would be as the system's and as a stream's, for rates.
    pub readings: Option<[Reading; 2]>,
    /// As it was imported, for tables over several files.
    #[serde(skip)]
    pub number: Number,
}

/// How long was timed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Timed {
    /// Seconds.
    pub seconds: f64,
    /// Always `stated`: the tool's own rule stands in the definition.
    pub rule: &'static str,
}

/// Requests that a number rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Population {
    /// Completed.
    pub kept: u64,
    /// Completed and failed, where both are told.
    pub of: Option<u64>,
    /// What they are.
    pub what: &'static str,
}

/// Streams at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Concurrency {
    /// As configured.
    pub target: Option<f64>,
    /// As held on average.
    pub held: Option<f64>,
    /// How the held one was found.
    pub how: Option<&'static str>,
}

/// What stands above the line of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Numerator {
    /// How many.
    pub count: f64,
    /// Always `file`: the tool's definition says who counted.
    pub source: &'static str,
}

/// The numbers that a run states, with its basis.
pub fn stated(run: &Run) -> Vec<StatedShown> {
    let of = |number: &Number| shown(run, number);
    run.numbers.iter().map(of).collect()
}

fn shown(run: &Run, number: &Number) -> StatedShown {
    let held = run.held().filter(|_| run.has_result());
    let over_run = number.metric.scope() != Scope::PerStream;
    let completed = run.books.completed;
    StatedShown {
        run: run.label.clone(),
        metric: number.metric,
        stat: number.stat.name(),
        field: number.field.clone(),
        value: number.known(),
        unit: number.metric.unit(),
        withheld: number.value.as_ref().err().cloned(),
        interval: run
            .totals
            .duration
            .filter(|_| over_run)
            .map(|seconds| Timed {
                seconds,
                rule: "stated",
            }),
        scope: number.metric.scope(),
        population: completed.map(|kept| Population {
            kept: kept.max(0.0) as u64,
            of: run
                .books
                .failed
                .map(|failed| (kept + failed).max(0.0) as u64),
            what: "requests",
        }),
        concurrency: Concurrency {
            target: run.config.concurrency,
            held: held.map(|held| held.value),
            how: held.map(|held| held.how),
        },
        numerator: run
            .totals
            .output
            .filter(|_| number.metric == Metric::SystemOutput)
            .map(|count| Numerator {
                count,
                source: "file",
            }),
        evidence: Evidence::Stated,
        definition: number.definition,
        readings: both(run, number),
        number: number.clone(),
    }
}

/// Both readings of a rate, by the concurrency that the file held, else by the configured one.
fn both(run: &Run, number: &Number) -> Option<[Reading; 2]> {
    let rate = matches!(
        number.metric,
        Metric::SystemOutput
            | Metric::StreamGeneration
            | Metric::StreamEndToEnd
            | Metric::OtherRate
    );
    let central = matches!(number.stat, Stat::Value | Stat::Mean | Stat::Median);
    let value = number.known().filter(|_| rate && central)?;
    let mut stated = Stated::new(Span::exactly(value)?, number.metric.unit());
    stated.seconds = run.totals.duration;
    Some(readings(&stated, streams(run)))
}

/// How many streams there were at once, as far as the file tells.
pub fn streams(run: &Run) -> Streams {
    let held = run.held().filter(|_| run.has_result());
    let held = held.and_then(|held| Span::exactly(held.value));
    let target = run.config.concurrency.and_then(Span::exactly);
    match (held, target) {
        (Some(held), _) => Streams::Held(held),
        (None, Some(target)) => Streams::Target(target),
        (None, None) => Streams::Unknown,
    }
}
