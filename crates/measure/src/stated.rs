//! Owns the stated number: what a person or a file says, as an aggregate and as a per-stream rate.
//!
//! A stated number is not an observed one, so it has a type of its own: nothing here can be put
//! into a ratio, a mean or a table with a [`crate::rate::Rate`].

use serde::{Serialize, Serializer};

use crate::figure::{Evidence, Withheld};
use crate::rate::grouped;

/// The largest and the smallest number that is taken as stated: beyond it a product of two could
/// leave what JSON can say.
const LARGEST: f64 = 1e15;
const SMALLEST: f64 = 1e-12;

/// A stated number as exactly as it was stated: a point, a range, or a range without upper end.
/// Both ends are above zero and finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    low: f64,
    high: Option<f64>,
}

impl Span {
    /// One value; `None` unless it is from 1e-12 to 1e15.
    pub fn exactly(value: f64) -> Option<Self> {
        Span::between(value, value)
    }

    /// Both ends known; `None` unless they are in order and each from 1e-12 to 1e15.
    pub fn between(low: f64, high: f64) -> Option<Self> {
        let usable = SMALLEST <= low && low <= high && high <= LARGEST;
        usable.then_some(Span {
            low,
            high: Some(high),
        })
    }

    /// No upper end known; `None` unless `low` is from 1e-12 to 1e15.
    pub fn at_least(low: f64) -> Option<Self> {
        (SMALLEST..=LARGEST)
            .contains(&low)
            .then_some(Span { low, high: None })
    }

    /// The span of `factor` times as much; `None` where that leaves what a span can hold.
    pub fn times(self, factor: f64) -> Option<Self> {
        let low = self.low * factor;
        match self.high {
            Some(high) => Span::between(low, high * factor),
            None => Span::at_least(low),
        }
    }

    /// The value, where it is one.
    pub fn point(self) -> Option<f64> {
        self.high.filter(|high| *high == self.low)
    }

    /// The lower end.
    pub fn low(self) -> f64 {
        self.low
    }

    /// The upper end, where there is one.
    pub fn high(self) -> Option<f64> {
        self.high
    }
}

impl std::fmt::Display for Span {
    /// `16`, `4 to 8`, `at least 1`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.point(), self.high) {
            (Some(point), _) => f.write_str(&number(point)),
            (None, Some(high)) => write!(f, "{} to {}", number(self.low), number(high)),
            (None, None) => write!(f, "at least {}", number(self.low)),
        }
    }
}

impl Serialize for Span {
    /// `[low, high]`, where `high` is null if there is no upper end.
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        (self.low, self.high).serialize(out)
    }
}

/// Little's law: requests in flight on average = requests a second × mean seconds a request.
/// `None` where either is not a positive number, or the product cannot be used.
///
/// ```
/// use measure::stated::little;
/// let held = little(81.68, 43.58).unwrap().point().unwrap();
/// assert!((held - 3_559.6).abs() < 0.1);
/// assert_eq!(little(0.0, 2.0), None);
/// ```
pub fn little(requests_per_second: f64, mean_latency_s: f64) -> Option<Span> {
    (requests_per_second > 0.0 && mean_latency_s > 0.0)
        .then(|| Span::exactly(requests_per_second * mean_latency_s))
        .flatten()
}

/// How many streams there were at once, and how that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Streams {
    /// As configured, or as a person says.
    Target(Span),
    /// As held on average, by Little's law or by the file's own figure.
    Held(Span),
    /// Nobody said.
    Unknown,
}

impl Streams {
    fn span(self) -> Option<Span> {
        match self {
            Streams::Target(span) | Streams::Held(span) => Some(span),
            Streams::Unknown => None,
        }
    }
}

/// What a stated figure is summed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Summed over all streams.
    System,
    /// One stream.
    PerStream,
}

impl Scope {
    /// `system` or `per_stream`.
    pub fn name(self) -> &'static str {
        match self {
            Scope::System => "system",
            Scope::PerStream => "per_stream",
        }
    }
}

/// A stated rate, before it is known what it is summed over.
#[derive(Debug, Clone, PartialEq)]
pub struct Stated {
    /// The value or its range.
    pub value: Span,
    /// It is a limit from above: the rate itself may be any lower one.
    pub at_most: bool,
    /// Its unit, such as `tok/s`.
    pub unit: String,
    /// What it was timed over, in seconds, where that was said.
    pub seconds: Option<f64>,
    /// Used, of how many, and what they are, where that was said.
    pub population: Option<StatedPopulation>,
    /// The count above the line, where that was said; it belongs to the rate as stated, not to
    /// what is derived of it.
    pub numerator: Option<StatedNumerator>,
}

impl Stated {
    /// A value with its unit and nothing else said.
    pub fn new(value: Span, unit: impl Into<String>) -> Self {
        Stated {
            value,
            at_most: false,
            unit: unit.into(),
            seconds: None,
            population: None,
            numerator: None,
        }
    }
}

/// Which part of which whole a stated figure rests on, as far as it was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatedPopulation {
    /// How many were used.
    pub kept: u64,
    /// Of how many; null where that was not said.
    pub of: Option<u64>,
    /// What they are.
    pub what: String,
}

/// A stated figure, in the shape that every figure has in JSON; what was not said is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatedFigure {
    value: Option<f64>,
    unit: String,
    withheld: Option<Withheld>,
    interval: Option<StatedInterval>,
    scope: Scope,
    population: Option<StatedPopulation>,
    concurrency: StatedConcurrency,
    numerator: Option<StatedNumerator>,
    ci95: Option<[f64; 2]>,
    range: Option<(f64, Option<f64>)>,
    evidence: Evidence,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct StatedInterval {
    seconds: f64,
    rule: &'static str,
}

/// What was counted above the line, where that was said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatedNumerator {
    /// How many.
    pub count: f64,
    /// Who counted, in the file's own words.
    pub source: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct StatedConcurrency {
    target: Option<f64>,
    held: Option<f64>,
    range: Option<Span>,
}

impl StatedFigure {
    /// The value, where it is one number.
    pub fn value(&self) -> Option<f64> {
        self.value
    }

    /// The range it lies in where it is not one number: the upper end is none where it is open.
    pub fn range(&self) -> Option<(f64, Option<f64>)> {
        self.range
    }

    /// Why it is not one number.
    pub fn reason(&self) -> Option<&Withheld> {
        self.withheld.as_ref()
    }

    /// The unit.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// What it is summed over.
    pub fn scope(&self) -> Scope {
        self.scope
    }
}

impl std::fmt::Display for StatedFigure {
    /// `31.25 tok/s`, `50 to 100 tok/s`, `500 tok/s or more`, `500 tok/s or less`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = &self.unit;
        match (self.value, self.range) {
            (Some(value), _) => write!(f, "{} {unit}", number(value)),
            (_, Some((low, None))) if low <= 0.0 => f.write_str("not bounded"),
            (_, Some((low, None))) => write!(f, "{} {unit} or more", number(low)),
            (_, Some((low, Some(high)))) if low <= 0.0 => {
                write!(f, "{} {unit} or less", number(high))
            }
            (_, Some((low, Some(high)))) => {
                write!(f, "{} to {} {unit}", number(low), number(high))
            }
            (None, None) => f.write_str("unknown"),
        }
    }
}

/// What a stated number means for the system and for one stream, if it is of one scope.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    /// The scope that the number is taken to have.
    #[serde(rename = "if")]
    pub given: Scope,
    /// Then one stream has this.
    pub per_stream: StatedFigure,
    /// And the system this.
    pub system: StatedFigure,
}

/// Both readings: the number as an aggregate, then as a per-stream rate.
///
/// ```
/// use measure::stated::{Span, Stated, Streams, readings};
/// let stated = Stated::new(Span::exactly(500.0).unwrap(), "tok/s");
/// let sixteen = Streams::Target(Span::exactly(16.0).unwrap());
/// let [aggregate, per_stream] = readings(&stated, sixteen);
/// assert_eq!(aggregate.per_stream.value(), Some(31.25));
/// assert_eq!(per_stream.system.value(), Some(8_000.0));
/// ```
pub fn readings(stated: &Stated, streams: Streams) -> [Reading; 2] {
    let value = (stated.value.low, stated.value.high);
    let (least, most) = match streams.span() {
        Some(span) => (span.low, span.high),
        None => (1.0, None),
    };
    let divided = (
        most.map_or(0.0, |most| value.0 / most),
        value.1.map(|high| high / least),
    );
    // At most 20 each for 50 or more: nothing bounds the sum.
    let sum_from = if stated.at_most && most.is_none() {
        0.0
    } else {
        value.0 * least
    };
    let multiplied = (sum_from, value.1.zip(most).map(|(v, n)| v * n));
    let as_is = |scope| figure(stated, scope, value, streams, false);
    let derived = |scope, ends| figure(stated, scope, ends, streams, true);
    [
        Reading {
            given: Scope::System,
            per_stream: derived(Scope::PerStream, divided),
            system: as_is(Scope::System),
        },
        Reading {
            given: Scope::PerStream,
            per_stream: as_is(Scope::PerStream),
            system: derived(Scope::System, multiplied),
        },
    ]
}

fn figure(
    stated: &Stated,
    scope: Scope,
    ends: (f64, Option<f64>),
    streams: Streams,
    derived: bool,
) -> StatedFigure {
    let point = ends.1.filter(|high| *high == ends.0);
    let streams_point = streams.span().and_then(Span::point);
    StatedFigure {
        value: point,
        unit: stated.unit.clone(),
        withheld: point.is_none().then(|| why_no_point(streams, derived)),
        interval: stated.seconds.map(|seconds| StatedInterval {
            seconds,
            rule: "stated",
        }),
        scope,
        population: stated.population.clone(),
        concurrency: StatedConcurrency {
            target: streams_point.filter(|_| matches!(streams, Streams::Target(_))),
            held: streams_point.filter(|_| matches!(streams, Streams::Held(_))),
            range: streams.span().filter(|span| span.point().is_none()),
        },
        numerator: stated.numerator.clone().filter(|_| !derived),
        ci95: None,
        range: point.is_none().then_some(ends),
        evidence: Evidence::Stated,
    }
}

fn why_no_point(streams: Streams, derived: bool) -> Withheld {
    match streams.span() {
        None if derived => Withheld::new(
            "no_concurrency",
            "the number of streams at once was not stated: only a range follows",
        ),
        Some(span) if derived && span.point().is_none() => Withheld::new(
            "concurrency_range",
            format!("the number of streams was stated as {span}: a range follows"),
        ),
        _ => Withheld::new("value_range", "the value was stated as a range"),
    }
}

/// A stated number as it is printed: four significant digits or all whole ones, without zeros at
/// the end, thousands apart.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 999.95 => 0,
        v if v >= 99.995 => 1,
        v if v >= 9.9995 => 2,
        v if v >= 0.99995 => 3,
        v if v >= 0.001 => 5,
        _ => 9,
    };
    // A value that was stated with decimals keeps them: 24,593.77 is not 24,594.
    let digits = if digits < 2 && is_decimal(value, 2) {
        2
    } else {
        digits
    };
    let plain = format!("{value:.digits$}");
    let plain = match plain.contains('.') {
        true => plain.trim_end_matches('0').trim_end_matches('.'),
        false => &plain,
    };
    grouped(plain)
}

/// Whether a value has at most `digits` decimals, as those have that people type.
fn is_decimal(value: f64, digits: i32) -> bool {
    let scaled = value * 10_f64.powi(digits);
    scaled.abs() < 1e12 && (scaled - scaled.round()).abs() < 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(low: f64, high: f64) -> Span {
        Span::between(low, high).expect("a span")
    }

    fn of(value: f64, streams: Streams) -> [Reading; 2] {
        readings(&Stated::new(span(value, value), "tok/s"), streams)
    }

    #[test]
    fn a_range_of_streams_gives_a_range_and_no_value() {
        let [aggregate, stream] = of(400.0, Streams::Target(span(4.0, 8.0)));
        assert_eq!(aggregate.per_stream.value(), None);
        assert_eq!(aggregate.per_stream.range(), Some((50.0, Some(100.0))));
        assert_eq!(aggregate.per_stream.to_string(), "50 to 100 tok/s");
        assert_eq!(stream.system.range(), Some((1_600.0, Some(3_200.0))));
        let code = aggregate.per_stream.reason().map(|why| why.code);
        assert_eq!(code, Some("concurrency_range"));
    }

    #[test]
    fn at_most_each_of_an_open_number_bounds_no_sum() {
        let stated = Stated {
            at_most: true,
            ..Stated::new(span(20.0, 20.0), "tok/s")
        };
        let fifty_or_more = Span::at_least(50.0).expect("a span");
        for streams in [Streams::Unknown, Streams::Target(fifty_or_more)] {
            let [_, stream] = readings(&stated, streams);
            assert_eq!(stream.system.range(), Some((0.0, None)));
            assert_eq!(stream.system.to_string(), "not bounded");
        }
        let [_, stream] = readings(&stated, Streams::Target(span(8.0, 8.0)));
        assert_eq!(stream.system.value(), Some(160.0));
    }

    #[test]
    fn unknown_streams_leave_one_end_open() {
        let [aggregate, stream] = of(500.0, Streams::Unknown);
        assert_eq!(aggregate.system.value(), Some(500.0));
        assert_eq!(aggregate.per_stream.to_string(), "500 tok/s or less");
        assert_eq!(stream.system.to_string(), "500 tok/s or more");
        let json = serde_json::to_value(&stream.system).expect("json");
        assert_eq!(json["range"], serde_json::json!([500.0, null]));
        assert_eq!(json["withheld"]["code"], "no_concurrency");
        assert_eq!(json["evidence"], "stated");
        assert_eq!(json["concurrency"]["target"], serde_json::Value::Null);
    }

    #[test]
    fn held_and_target_streams_are_told_apart() {
        let held = Streams::Held(little(2.0, 8.0).expect("held"));
        let json = serde_json::to_value(of(500.0, held)).expect("json");
        assert_eq!(json[0]["per_stream"]["concurrency"]["held"], 16.0);
        assert_eq!(
            json[0]["per_stream"]["concurrency"]["target"],
            serde_json::Value::Null
        );
        assert_eq!(json[0]["if"], "system");
    }

    #[test]
    fn nothing_that_is_no_number_becomes_one() {
        for bad in [f64::NAN, f64::INFINITY, 0.0, -3.0, 1e300] {
            assert_eq!(Span::exactly(bad), None, "{bad}");
            assert_eq!(little(bad, 1.0), None, "{bad}");
        }
        assert_eq!(Span::between(8.0, 4.0), None);
    }

    #[test]
    fn numbers_print_as_they_were_stated() {
        let shown = [
            31.25,
            8_000.0,
            24_593.77,
            11.718_75,
            1_500_000.0,
            0.0625,
            5_388.43,
        ];
        assert_eq!(
            shown.map(number),
            [
                "31.25",
                "8,000",
                "24,593.77",
                "11.72",
                "1,500,000",
                "0.0625",
                "5,388.43"
            ]
        );
    }

    proptest! {
        #[test]
        fn the_two_readings_undo_each_other(value in 0.001..1e9_f64, streams in 1.0..1e5_f64) {
            let streams = Streams::Target(span(streams, streams));
            let [aggregate, _] = of(value, streams);
            let stream = aggregate.per_stream.value().expect("one number");
            let [_, back] = of(stream, streams);
            let again = back.system.value().expect("one number");
            prop_assert!((again - value).abs() <= value * 1e-12);
        }
    }
}
