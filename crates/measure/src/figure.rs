//! Owns the figure: a value as pages and JSON show it, never without its basis; and distributions.

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::basis::{Basis, Interval, Load, Population, Rule, Scope};
use crate::count::{Count, Unit};
use crate::quantile::{self, Quantile, Sorted};
use crate::rate::{Metric, Rate, Share, per_second};
use crate::time::Length;
use crate::tokens::Source;

/// Why a value is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Withheld {
    /// A short name that scripts may test for.
    pub code: &'static str,
    /// One sentence for a person.
    pub text: String,
}

impl Withheld {
    /// A reason with its code.
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Withheld {
            code,
            text: text.into(),
        }
    }
}

/// What kind of evidence a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// From arrivals here.
    Observed,
    /// From an experiment over several requests.
    Inferred,
    /// The server said so of itself.
    Declared,
    /// A file or a person said so.
    Stated,
}

/// What a figure was timed over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Timed {
    seconds: Option<f64>,
    rule: Rule,
}

impl Timed {
    /// How long, in seconds: of a distribution the sum over its values; none where it has none.
    pub fn seconds(&self) -> Option<f64> {
        self.seconds
    }

    /// By which rule.
    pub fn rule(&self) -> Rule {
        self.rule
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Concurrency {
    target: f64,
    held: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Numerator {
    count: f64,
    source: Source,
}

/// A value or the reason there is none, with everything it rests on. Made of a typed rate or of
/// a reason, never of a bare number:
///
/// ```compile_fail
/// let figure = measure::figure::Figure { value: Some(31.2) };
/// ```
/// ```compile_fail
/// let figure: measure::figure::Figure = 31.2.into();
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    metric: &'static str,
    value: Option<f64>,
    unit: String,
    withheld: Option<Withheld>,
    interval: Option<Timed>,
    scope: &'static str,
    population: Population,
    concurrency: Concurrency,
    numerator: Option<Numerator>,
    ci95: Option<[f64; 2]>,
    range: Option<[f64; 2]>,
    evidence: Evidence,
}

fn unit_per_second<U: Unit>() -> String {
    format!("{}/s", U::NAME)
}

fn concurrency(load: Load) -> Concurrency {
    Concurrency {
        target: load.target(),
        held: load.held(),
    }
}

impl Figure {
    /// An observed rate.
    pub fn of<U: Unit, S: Scope, M: Metric>(rate: &Rate<U, S, M>, source: Source) -> Self {
        let basis = rate.basis();
        Figure {
            metric: M::NAME,
            value: Some(rate.per_second()),
            unit: unit_per_second::<U>(),
            withheld: None,
            interval: Some(timed(basis.interval())),
            scope: S::NAME,
            population: basis.population().clone(),
            concurrency: concurrency(basis.load()),
            numerator: Some(Numerator {
                count: rate.count().as_f64(),
                source,
            }),
            ci95: None,
            range: None,
            evidence: Evidence::Observed,
        }
    }

    /// No rate, and why.
    pub fn withheld<U: Unit, S: Scope, M: Metric>(
        why: Withheld,
        interval: Option<Interval>,
        population: Population,
        load: Load,
    ) -> Self {
        Figure {
            metric: M::NAME,
            value: None,
            unit: unit_per_second::<U>(),
            withheld: Some(why),
            interval: interval.map(timed),
            scope: S::NAME,
            population,
            concurrency: concurrency(load),
            numerator: None,
            ci95: None,
            range: None,
            evidence: Evidence::Observed,
        }
    }

    /// A share of another rate of the same kind: `basis` is that of the rate above the line.
    pub fn share<S: Scope, M: Metric>(share: Result<Share, Withheld>, basis: ShareBasis) -> Self {
        let (value, withheld) = match share {
            Ok(share) => (Some(share.value()), None),
            Err(why) => (None, Some(why)),
        };
        Figure {
            metric: M::NAME,
            value,
            unit: "share".into(),
            withheld,
            interval: basis.interval,
            scope: S::NAME,
            population: basis.population,
            concurrency: concurrency(basis.load),
            numerator: None,
            ci95: None,
            range: None,
            evidence: Evidence::Observed,
        }
    }

    /// The time that one unit of a rate takes, in seconds: the rate upside down, on its basis.
    pub fn time_each<U: Unit, S: Scope, M: Metric>(
        metric: &'static str,
        rate: &Rate<U, S, M>,
        source: Source,
    ) -> Self {
        let figure = Figure::of(rate, source);
        Figure {
            metric,
            value: figure.value.map(|value| 1.0 / value),
            unit: format!("s/{}", U::NAME),
            ..figure
        }
    }

    /// No time for one unit, and why.
    pub fn time_each_withheld<U: Unit, S: Scope, M: Metric>(
        metric: &'static str,
        why: Withheld,
        population: Population,
        load: Load,
    ) -> Self {
        Figure {
            metric,
            unit: format!("s/{}", U::NAME),
            ..Figure::withheld::<U, S, M>(why, None, population, load)
        }
    }

    /// With its interval, in the unit of the value.
    pub fn with_interval(mut self, ci95: Option<[f64; 2]>) -> Self {
        self.ci95 = ci95;
        self
    }

    /// With the range that apportioned tokens leave open.
    pub fn with_range(mut self, range: Option<[f64; 2]>) -> Self {
        self.range = range;
        self
    }

    /// As evidence of another kind.
    pub fn as_evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = evidence;
        self
    }

    /// The value, for a cell whose table carries the basis.
    pub fn value(&self) -> Option<f64> {
        self.value
    }

    /// Why there is no value.
    pub fn reason(&self) -> Option<&Withheld> {
        self.withheld.as_ref()
    }

    /// The unit.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// The range that apportioned tokens leave open.
    pub fn range(&self) -> Option<[f64; 2]> {
        self.range
    }

    /// Its 95 % interval.
    pub fn interval95(&self) -> Option<[f64; 2]> {
        self.ci95
    }

    /// What kind of evidence it is.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// The metric's name.
    pub fn metric(&self) -> &'static str {
        self.metric
    }

    /// What was timed; none where nothing was.
    pub fn timed(&self) -> Option<Timed> {
        self.interval
    }

    /// The requests it rests on.
    pub fn population(&self) -> &Population {
        &self.population
    }

    /// What was counted and by whom; none where there is no value, and for a share.
    pub fn numerator(&self) -> Option<(f64, Source)> {
        self.numerator
            .map(|numerator| (numerator.count, numerator.source))
    }
}

/// The basis of a share.
#[derive(Debug, Clone)]
pub struct ShareBasis {
    /// What the rate above the line was timed over.
    pub interval: Option<Timed>,
    /// The requests above the line.
    pub population: Population,
    /// The load above the line.
    pub load: Load,
}

fn timed(interval: Interval) -> Timed {
    Timed {
        seconds: Some(interval.length().as_secs_f64()),
        rule: interval.rule(),
    }
}

/// One quantile of a distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The observed value at the quantile's rank.
    pub value: Option<f64>,
    /// Its distribution-free 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// Why it is not shown.
    pub withheld: Option<Withheld>,
}

/// A distribution of one metric over requests: the basis once, then its quantiles. Of its values
/// only those that a quantile or its interval stands on are kept: a long run has millions.
#[derive(Debug, Clone, PartialEq)]
pub struct Dist {
    metric: &'static str,
    unit: String,
    withheld: Option<Withheld>,
    interval: Timed,
    scope: &'static str,
    population: Population,
    concurrency: Concurrency,
    source: Option<Source>,
    selected: bool,
    observed: u64,
    worst: u64,
    evidence: Evidence,
    /// Of each of [`Quantile::ALL`], what stands at its ranks, or the n that it needs.
    at: [Result<Ranked, u64>; Quantile::ALL.len()],
    min: Option<f64>,
    max: Option<f64>,
}

/// The values at a quantile's ranks; none where the rank lies among the failed requests.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ranked {
    point: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

/// What a distribution's values have in common.
#[derive(Debug, Clone)]
pub struct DistBasis {
    /// How each value was timed.
    pub rule: Rule,
    /// The requests it rests on.
    pub population: Population,
    /// The load.
    pub load: Load,
}

/// The values of a distribution, in order.
struct Values<'a> {
    /// Their sum, as a length of time.
    timed: Length,
    /// How many were observed.
    observed: u64,
    /// How many more count as worse than any of these.
    worst: u64,
    /// The value at a place, from 0.
    at: &'a dyn Fn(usize) -> Option<f64>,
}

impl Dist {
    /// Of single requests' rates.
    pub fn of_rates<U: Unit, S: Scope, M: Metric>(
        rates: &[Rate<U, S, M>],
        source: Source,
        basis: DistBasis,
    ) -> Self {
        let mut ordered: Vec<&Rate<U, S, M>> = rates.iter().collect();
        ordered.sort_by(|one, other| one.compare(other));
        let timed: Length = rates
            .iter()
            .map(|rate| rate.basis().interval().length())
            .fold(Length::ZERO, |a, b| a + b);
        let values = Values {
            timed,
            observed: ordered.len() as u64,
            worst: 0,
            at: &|place| ordered.get(place).map(|rate| rate.per_second()),
        };
        let unit = unit_per_second::<U>();
        Dist {
            source: Some(source),
            ..Dist::new(M::NAME, unit, S::NAME, values, basis)
        }
    }

    /// Of lengths of time, in seconds; `worst` more requests failed and count as longer than any.
    pub fn of_lengths(
        metric: &'static str,
        lengths: impl IntoIterator<Item = Length>,
        worst: u64,
        basis: DistBasis,
    ) -> Self {
        let sorted = Sorted::of(lengths);
        let values = Values {
            timed: sorted.sum(),
            observed: sorted.len() as u64,
            worst,
            at: &|place| sorted.at(place).map(Length::as_secs_f64),
        };
        Dist::new(metric, "s".into(), "per_stream", values, basis)
    }

    fn new(
        metric: &'static str,
        unit: String,
        scope: &'static str,
        values: Values<'_>,
        basis: DistBasis,
    ) -> Self {
        let Values {
            timed,
            observed,
            worst,
            at,
        } = values;
        let ranked = |rank: u64| at(usize::try_from(rank.checked_sub(1)?).ok()?);
        let all = observed + worst;
        Dist {
            metric,
            unit,
            withheld: None,
            interval: Timed {
                seconds: (observed > 0).then(|| timed.as_secs_f64()),
                rule: basis.rule,
            },
            scope,
            population: basis.population,
            concurrency: concurrency(basis.load),
            source: None,
            selected: false,
            observed,
            worst,
            evidence: Evidence::Observed,
            at: Quantile::ALL.map(|q| {
                quantile::ranks(q, all).map(|ranks| Ranked {
                    point: ranked(ranks.point),
                    low: ranked(ranks.low),
                    high: ranked(ranks.high),
                })
            }),
            min: ranked(1),
            max: ranked(observed),
        }
    }

    /// The same basis without values, and why.
    pub fn withhold(mut self, why: Withheld) -> Self {
        self.withheld = Some(why);
        (self.observed, self.min, self.max) = (0, None, None);
        self
    }

    /// The same, withheld for this reason where it rests on nothing.
    pub fn unless_empty(self, why: Withheld) -> Self {
        match self.n() {
            0 => self.withhold(why),
            _ => self,
        }
    }

    /// Marked as resting on a part of the ok requests that the guards selected.
    pub fn mark_selected(mut self, selected: bool) -> Self {
        self.selected = selected;
        self
    }

    /// As evidence of another kind.
    pub fn as_evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = evidence;
        self
    }

    /// Whether the guards selected its requests.
    pub fn is_selected(&self) -> bool {
        self.selected
    }

    /// How many values, failed ones that count as worst included.
    pub fn n(&self) -> u64 {
        self.observed + self.worst
    }

    /// The quantile, or the reason it has none.
    pub fn point(&self, q: Quantile) -> Point {
        let none = |why| Point {
            value: None,
            ci95: None,
            withheld: Some(why),
        };
        if let Some(why) = &self.withheld {
            return none(why.clone());
        }
        let found = Quantile::ALL
            .iter()
            .zip(self.at)
            .find(|(one, _)| **one == q);
        let n = self.n();
        let needs = |needed: u64| {
            let text = format!("{} of n {n}: needs {needed}", q.name());
            none(Withheld::new("too_few", text))
        };
        match found.map_or(Err(q.least_n()), |(_, ranked)| ranked) {
            Err(needed) => needs(needed),
            Ok(Ranked { point: None, .. }) => none(Withheld::new(
                "failures",
                format!("{} lies among the failed requests", q.name()),
            )),
            Ok(ranked) => Point {
                value: ranked.point,
                ci95: ranked.low.zip(ranked.high).map(|(low, high)| [low, high]),
                withheld: None,
            },
        }
    }

    /// The median, or the reason it has none.
    pub fn median(&self) -> Point {
        self.point(Quantile::MEDIAN)
    }

    /// The metric's name.
    pub fn metric(&self) -> &'static str {
        self.metric
    }

    /// The smallest value.
    pub fn min(&self) -> Option<f64> {
        self.min
    }

    /// The largest value; none where failed requests count as larger than any.
    pub fn max(&self) -> Option<f64> {
        self.max.filter(|_| self.worst == 0)
    }

    /// Why there are no values.
    pub fn reason(&self) -> Option<&Withheld> {
        self.withheld.as_ref()
    }

    /// The unit of its values.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Who counted, for a distribution of rates.
    pub fn source(&self) -> Option<Source> {
        self.source
    }

    /// How its values were timed, for a share's basis.
    pub fn timed(&self) -> Timed {
        self.interval
    }

    /// The requests it rests on.
    pub fn population(&self) -> &Population {
        &self.population
    }

    /// The furthest quantile on the slow side that its n supports, with its name.
    pub fn slow_tail(&self, slow_is_low: bool) -> Option<(Quantile, f64)> {
        let supported = |q: &Quantile| self.point(*q).value.map(|value| (*q, value));
        let beyond = |q: &&Quantile| {
            if slow_is_low {
                **q < Quantile::MEDIAN
            } else {
                **q > Quantile::MEDIAN
            }
        };
        let candidates: Vec<_> = Quantile::ALL.iter().filter(beyond).collect();
        match slow_is_low {
            true => candidates.into_iter().find_map(supported),
            false => candidates.into_iter().rev().find_map(supported),
        }
    }
}

impl Serialize for Dist {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("metric", self.metric)?;
        map.serialize_entry("unit", &self.unit)?;
        map.serialize_entry("withheld", &self.withheld)?;
        map.serialize_entry("interval", &self.interval)?;
        map.serialize_entry("scope", self.scope)?;
        map.serialize_entry("population", &self.population)?;
        map.serialize_entry("concurrency", &self.concurrency)?;
        map.serialize_entry("source", &self.source)?;
        map.serialize_entry("selected", &self.selected)?;
        map.serialize_entry("evidence", &self.evidence)?;
        map.serialize_entry("n", &self.n())?;
        map.serialize_entry("failed_as_worst", &self.worst)?;
        for q in Quantile::ALL {
            map.serialize_entry(&q.name(), &self.point(q))?;
        }
        map.serialize_entry("min", &self.min())?;
        map.serialize_entry("max", &self.max())?;
        map.end()
    }
}

/// The ends of a range of counts over one length, as ones per second.
pub(crate) fn range_per_second<U: Unit>(
    range: (Count<U>, Count<U>),
    length: Length,
) -> Option<[f64; 2]> {
    (!length.is_zero()).then(|| {
        [
            per_second(range.0.millionths(), length.nanos()),
            per_second(range.1.millionths(), length.nanos()),
        ]
    })
}

/// The basis of one request's figure.
pub(crate) fn of_one(interval: Interval, load: Load) -> Basis {
    Basis::new(
        interval,
        Population {
            kept: 1,
            of: 1,
            what: "request",
        },
        load,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis::Loop;

    fn basis() -> DistBasis {
        DistBasis {
            rule: Rule::SentToEnd,
            population: Population {
                kept: 6,
                of: 6,
                what: "requests",
            },
            load: Load {
                kind: Loop::Closed,
                target_milli: 1_000,
                held_milli: Some(990),
            },
        }
    }

    fn seconds(values: &[u64]) -> Vec<Length> {
        values.iter().map(|v| Length::from_secs(*v)).collect()
    }

    #[test]
    fn a_quantile_needs_its_n_and_min_and_max_do_not() {
        let six = Dist::of_lengths("e2e", seconds(&[3, 1, 2, 6, 5, 4]), 0, basis());
        assert_eq!(six.median().value, Some(3.0));
        assert_eq!(six.median().ci95, Some([1.0, 6.0]));
        assert_eq!(
            six.point(Quantile::ALL[5]).withheld.map(|w| w.code),
            Some("too_few")
        );
        assert_eq!((six.min(), six.max()), (Some(1.0), Some(6.0)));
        let five = Dist::of_lengths("e2e", seconds(&[1, 2, 3, 4, 5]), 0, basis());
        assert_eq!(five.median().value, None);
        assert_eq!(five.max(), Some(5.0));
    }

    #[test]
    fn failed_requests_count_as_the_worst() {
        let mixed = Dist::of_lengths("e2e", seconds(&[1, 2, 3]), 4, basis());
        assert_eq!(mixed.n(), 7);
        assert_eq!(mixed.median().withheld.map(|w| w.code), Some("failures"));
        let mostly = Dist::of_lengths("e2e", seconds(&[1, 2, 3, 4, 5, 6]), 1, basis());
        assert_eq!(mostly.median().value, Some(4.0));
        assert_eq!(
            mostly.median().ci95,
            None,
            "its upper end lies among the failed"
        );
        assert_eq!(mostly.max(), None);
    }

    #[test]
    fn json_of_an_empty_distribution_holds_nulls_and_a_reason() {
        let none = Dist::of_lengths("ttft", Vec::new(), 0, basis())
            .withhold(Withheld::new("buffered", "held back"));
        let json = serde_json::to_value(&none).expect("json");
        assert_eq!(json["p50"]["value"], serde_json::Value::Null);
        assert_eq!(json["p50"]["withheld"]["code"], "buffered");
        assert_eq!(json["interval"]["seconds"], serde_json::Value::Null);
        assert_eq!(json["min"], serde_json::Value::Null);
    }
}
