//! Owns the denominator: interval, scope, population and load, without which no rate exists.

use serde::{Deserialize, Serialize};

use crate::time::{Instant, Length};

/// What a figure is summed over, as a type.
pub trait Scope: Copy + std::fmt::Debug + 'static {
    /// `system` or `per_stream`.
    const NAME: &'static str;
}

/// Summed over all streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {}
/// One stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PerStream {}

impl Scope for System {
    const NAME: &'static str = "system";
}
impl Scope for PerStream {
    const NAME: &'static str = "per_stream";
}

/// The rule by which an interval was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// From the instant every stream ended its first request until the first found none left; in an
    /// open loop from the first planned instant after the warm-up until the last.
    Steady,
    /// From the first `sent` to the last `end`: ramp and drain included.
    Run,
    /// From the first content to the last content of one request.
    FirstToLastContent,
    /// From the first answer to the last content of one request (reasoning came as a summary).
    FirstAnswerToLastContent,
    /// From `sent` to `end` of one request.
    SentToEnd,
    /// From `sent` to the first content of one request.
    SentToFirstContent,
    /// From the planned instant to the first content of one request.
    PlannedToFirstContent,
    /// From `sent` to the first answer text or tool call of one request.
    SentToFirstAnswer,
    /// From the planned instant to `end` of one request.
    PlannedToEnd,
    /// From one arrival to the next.
    BetweenArrivals,
    /// The time that requests spent in flight, summed over the window.
    InFlight,
    /// The slope of sent-to-end over output, times the output between the outer lengths.
    SlopeOfSentToEnd,
    /// From a first content to the end: the formula that fails on a burst, shown as a warning.
    FirstContentToEnd,
    /// The time the server itself gives.
    Declared,
    /// One phase of opening a connection.
    Connecting,
    /// From the arrival of bytes to the read that took them.
    ArrivalToRead,
    /// From the planned instant to `sent`.
    PlannedToSent,
    /// From all being ready for a request to `sent`: the server admits no further stream yet.
    ReadyToSent,
    /// From all being ready for a request to its first content.
    ReadyToFirstContent,
}

impl Rule {
    /// The rule in words, for a page.
    pub fn words(self) -> &'static str {
        match self {
            Rule::Steady => "steady window",
            Rule::Run => "whole run, ramp and drain included",
            Rule::FirstToLastContent => "first to last content",
            Rule::FirstAnswerToLastContent => "first answer to last content",
            Rule::SentToEnd => "sent to end",
            Rule::SentToFirstContent => "sent to first content",
            Rule::PlannedToFirstContent => "planned to first content",
            Rule::SentToFirstAnswer => "sent to first answer",
            Rule::PlannedToEnd => "planned to end",
            Rule::BetweenArrivals => "arrival to arrival",
            Rule::InFlight => "time in flight inside the window",
            Rule::SlopeOfSentToEnd => "slope of sent to end over output",
            Rule::FirstContentToEnd => "first content to end",
            Rule::Declared => "as the server declares it",
            Rule::Connecting => "opening the connection",
            Rule::ArrivalToRead => "arrival to read",
            Rule::PlannedToSent => "planned to sent",
            Rule::ReadyToSent => "ready to sent",
            Rule::ReadyToFirstContent => "ready to first content",
        }
    }
}

/// What was timed: a length above zero and the rule that chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Interval {
    length: Length,
    rule: Rule,
}

impl Interval {
    /// The interval from `start` to `end`; `None` unless `end` is later.
    pub fn between(start: Instant, end: Instant, rule: Rule) -> Option<Self> {
        Interval::of(end.since(start)?, rule)
    }

    /// An interval of this length; `None` if it is zero.
    pub fn of(length: Length, rule: Rule) -> Option<Self> {
        (!length.is_zero()).then_some(Interval { length, rule })
    }

    /// How long it is.
    pub fn length(self) -> Length {
        self.length
    }

    /// By which rule.
    pub fn rule(self) -> Rule {
        self.rule
    }
}

/// Which part of which whole a figure rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Population {
    /// How many were used.
    pub kept: u64,
    /// Of how many.
    pub of: u64,
    /// What they are.
    pub what: &'static str,
}

/// Closed loop: a number of streams, each sending as the last one ends. Open: planned instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loop {
    /// A fixed number of streams.
    Closed,
    /// A planned arrival rate.
    Open,
}

/// The load a figure was measured under. Thousandths, so that it stays an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Open or closed.
    pub kind: Loop,
    /// Target in thousandths: of streams in a closed loop, of requests a second in an open one.
    pub target_milli: u64,
    /// Requests in flight on average over the window, in thousandths; `None` where no window is.
    pub held_milli: Option<u64>,
}

impl Load {
    /// The target, for printing.
    pub fn target(self) -> f64 {
        self.target_milli as f64 / 1e3
    }

    /// The held concurrency, for printing.
    pub fn held(self) -> Option<f64> {
        self.held_milli.map(|held| held as f64 / 1e3)
    }
}

/// The whole denominator of a rate. Each part has to be given:
///
/// ```
/// use measure::basis::*;
/// use measure::time::Length;
/// let interval = Interval::of(Length::from_secs(2), Rule::Steady).unwrap();
/// let load = Load { kind: Loop::Closed, target_milli: 16_000, held_milli: Some(15_800) };
/// let population = Population { kept: 96, of: 96, what: "requests" };
/// let basis = Basis::new(interval, population, load);
/// ```
/// ```compile_fail
/// use measure::basis::*;
/// use measure::time::Length;
/// let interval = Interval::of(Length::from_secs(2), Rule::Steady).unwrap();
/// let load = Load { kind: Loop::Closed, target_milli: 16_000, held_milli: Some(15_800) };
/// let population = Population { kept: 96, of: 96, what: "requests" };
/// let basis = Basis::new(interval, population);
/// ```
/// ```compile_fail
/// use measure::basis::*;
/// use measure::time::Length;
/// let interval = Interval::of(Length::from_secs(2), Rule::Steady).unwrap();
/// let load = Load { kind: Loop::Closed, target_milli: 16_000, held_milli: Some(15_800) };
/// let population = Population { kept: 96, of: 96, what: "requests" };
/// let basis = Basis::new(population, load);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    interval: Interval,
    population: Population,
    load: Load,
}

impl Basis {
    /// All three; the scope is a type of the rate.
    pub fn new(interval: Interval, population: Population, load: Load) -> Self {
        Basis {
            interval,
            population,
            load,
        }
    }

    /// What was timed.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Which requests.
    pub fn population(&self) -> &Population {
        &self.population
    }

    /// Under which load.
    pub fn load(&self) -> Load {
        self.load
    }
}
