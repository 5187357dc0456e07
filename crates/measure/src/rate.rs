//! Owns the rate: a count over its basis, typed by unit, scope and metric.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

use crate::basis::{Basis, Scope};
use crate::count::{Count, Unit};

/// A metric, as a type: two rates of different metrics are different things.
pub trait Metric: Copy + fmt::Debug + 'static {
    /// The metric's name in JSON and docs.
    const NAME: &'static str;
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {}
        impl Metric for $name {
            const NAME: &'static str = $text;
        }
    )*};
}

metrics! {
    /// Output that arrived inside the window, over the window.
    Throughput = "system_throughput";
    /// Visible output after the first arrival, over first to last content.
    Generation = "generation_rate";
    /// Visible output over sent to end.
    EndToEnd = "e2e_rate";
    /// Billed output, hidden included, over sent to end.
    Billed = "billed_rate";
    /// System throughput over held concurrency.
    RatioOfSums = "ratio_of_sums";
    /// Output over first content to end: what fails on a burst; shown only as a warning.
    Naive = "naive";
    /// Output over the time it adds to an answer, from answers of several lengths.
    InferredGeneration = "inferred_generation_rate";
    /// Requests that met every objective, over the window.
    Goodput = "goodput";
}

/// A count per second, with everything it rests on.
///
/// It is made of a count and a basis; a bare number is not enough, nor is a rate without its
/// scope and metric:
///
/// ```
/// use measure::{basis::*, count::*, rate::*, time::Length};
/// let load = Load { kind: Loop::Closed, target_milli: 1_000, held_milli: None };
/// let population = Population { kept: 1, of: 1, what: "request" };
/// let interval = Interval::of(Length::from_secs(2), Rule::SentToEnd).unwrap();
/// let basis = Basis::new(interval, population, load);
/// let rate = Rate::<Token, PerStream, EndToEnd>::new(Count::whole(64), basis);
/// assert_eq!(rate.per_second(), 32.0);
/// ```
/// ```compile_fail
/// use measure::{basis::*, count::*, rate::*, time::Length};
/// let load = Load { kind: Loop::Closed, target_milli: 1_000, held_milli: None };
/// let population = Population { kept: 1, of: 1, what: "request" };
/// let interval = Interval::of(Length::from_secs(2), Rule::SentToEnd).unwrap();
/// let basis = Basis::new(interval, population, load);
/// let rate = Rate::<Token, PerStream, EndToEnd>::new(32.0, basis);
/// ```
/// ```compile_fail
/// use measure::{basis::*, count::*, rate::*, time::Length};
/// let load = Load { kind: Loop::Closed, target_milli: 1_000, held_milli: None };
/// let population = Population { kept: 1, of: 1, what: "request" };
/// let interval = Interval::of(Length::from_secs(2), Rule::SentToEnd).unwrap();
/// let basis = Basis::new(interval, population, load);
/// let rate = Rate::<Token, PerStream, EndToEnd>::new(Count::whole(64));
/// ```
/// ```compile_fail
/// use measure::{basis::*, count::*, rate::*, time::Length};
/// let load = Load { kind: Loop::Closed, target_milli: 1_000, held_milli: None };
/// let population = Population { kept: 1, of: 1, what: "request" };
/// let interval = Interval::of(Length::from_secs(2), Rule::SentToEnd).unwrap();
/// let basis = Basis::new(interval, population, load);
/// let rate = Rate::<Token, EndToEnd>::new(Count::whole(64), basis);
/// ```
/// ```compile_fail
/// use measure::{basis::*, count::*, rate::*, time::Length};
/// let load = Load { kind: Loop::Closed, target_milli: 1_000, held_milli: None };
/// let population = Population { kept: 1, of: 1, what: "request" };
/// let interval = Interval::of(Length::from_secs(2), Rule::SentToEnd).unwrap();
/// let basis = Basis::new(interval, population, load);
/// let rate: Rate<Token, PerStream, EndToEnd> = 32.0.into();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rate<U: Unit, S: Scope, M: Metric> {
    count: Count<U>,
    basis: Basis,
    kind: PhantomData<(S, M)>,
}

impl<U: Unit, S: Scope, M: Metric> Rate<U, S, M> {
    /// `count` over the basis' interval.
    pub fn new(count: Count<U>, basis: Basis) -> Self {
        Rate {
            count,
            basis,
            kind: PhantomData,
        }
    }

    /// The numerator.
    pub fn count(&self) -> Count<U> {
        self.count
    }

    /// The denominator.
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    /// Per second; for printing only.
    pub fn per_second(&self) -> f64 {
        per_second(
            self.count.millionths(),
            self.basis.interval().length().nanos(),
        )
    }

    /// Orders two rates exactly, by cross-multiplied integers.
    pub fn compare(&self, other: &Self) -> Ordering {
        let product = |count: &Count<U>, basis: &Basis| {
            u128::from(count.millionths()) * u128::from(basis.interval().length().nanos())
        };
        product(&self.count, &other.basis).cmp(&product(&other.count, &self.basis))
    }

    /// This rate over `other`. Unit, scope and metric agree by type; that the intervals were chosen
    /// by rules that may stand together is checked here, and so is the load, its loop included,
    /// unless `may_differ` says that the comparison is about it.
    ///
    /// ```
    /// use measure::{basis::*, count::*, rate::*, time::Length};
    /// let basis = |target_milli| Basis::new(
    ///     Interval::of(Length::from_secs(2), Rule::SentToEnd).unwrap(),
    ///     Population { kept: 1, of: 1, what: "request" },
    ///     Load { kind: Loop::Closed, target_milli, held_milli: None },
    /// );
    /// let alone = Rate::<Token, PerStream, EndToEnd>::new(Count::whole(64), basis(1_000));
    /// let shared = Rate::<Token, PerStream, EndToEnd>::new(Count::whole(16), basis(16_000));
    /// assert_eq!(shared.over(&alone, MayDiffer::Load).unwrap().value(), 0.25);
    /// assert!(shared.over(&alone, MayDiffer::Nothing).is_err());
    /// ```
    /// ```compile_fail
    /// use measure::{basis::*, count::*, rate::*, time::Length};
    /// let basis = |target_milli| Basis::new(
    ///     Interval::of(Length::from_secs(2), Rule::SentToEnd).unwrap(),
    ///     Population { kept: 1, of: 1, what: "request" },
    ///     Load { kind: Loop::Closed, target_milli, held_milli: None },
    /// );
    /// let alone = Rate::<Token, PerStream, Generation>::new(Count::whole(64), basis(1_000));
    /// let shared = Rate::<Token, PerStream, EndToEnd>::new(Count::whole(16), basis(16_000));
    /// shared.over(&alone, MayDiffer::Load);
    /// ```
    /// ```compile_fail
    /// use measure::{basis::*, count::*, rate::*, time::Length};
    /// let basis = |target_milli| Basis::new(
    ///     Interval::of(Length::from_secs(2), Rule::SentToEnd).unwrap(),
    ///     Population { kept: 1, of: 1, what: "request" },
    ///     Load { kind: Loop::Closed, target_milli, held_milli: None },
    /// );
    /// let alone = Rate::<Token, System, EndToEnd>::new(Count::whole(64), basis(1_000));
    /// let shared = Rate::<Token, PerStream, EndToEnd>::new(Count::whole(16), basis(16_000));
    /// shared.over(&alone, MayDiffer::Load);
    /// ```
    /// ```compile_fail
    /// use measure::{basis::*, count::*, rate::*, time::Length};
    /// let basis = |target_milli| Basis::new(
    ///     Interval::of(Length::from_secs(2), Rule::SentToEnd).unwrap(),
    ///     Population { kept: 1, of: 1, what: "request" },
    ///     Load { kind: Loop::Closed, target_milli, held_milli: None },
    /// );
    /// let alone = Rate::<Chunk, PerStream, EndToEnd>::new(Count::whole(64), basis(1_000));
    /// let shared = Rate::<Token, PerStream, EndToEnd>::new(Count::whole(16), basis(16_000));
    /// shared.over(&alone, MayDiffer::Load);
    /// ```
    pub fn over(&self, other: &Self, may_differ: MayDiffer) -> Result<Share, Mismatch> {
        let (here, there) = (self.basis.load(), other.basis.load());
        // Which loop it was is a part of the load.
        if may_differ == MayDiffer::Nothing && here.kind != there.kind {
            return Err(Mismatch::LoopKind);
        }
        if may_differ == MayDiffer::Nothing && here.target_milli != there.target_milli {
            return Err(Mismatch::Load);
        }
        if self.basis.interval().rule() != other.basis.interval().rule() {
            return Err(Mismatch::Rule);
        }
        if other.count.is_zero() {
            return Err(Mismatch::NothingBelow);
        }
        Ok(Share(self.per_second() / other.per_second()))
    }
}

impl<U: Unit, S: Scope, M: Metric> fmt::Display for Rate<U, S, M> {
    /// The value never stands alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (basis, load) = (&self.basis, self.basis.load());
        let population = basis.population();
        write!(
            f,
            "{} {}/s {} ",
            significant(self.per_second()),
            U::NAME,
            S::NAME
        )?;
        write!(f, "({}, {} ", M::NAME, basis.interval().length())?;
        write!(
            f,
            "{}, {} of {} ",
            basis.interval().rule().words(),
            population.kept,
            population.of
        )?;
        write!(f, "{}, load {}", population.what, load.target())?;
        match load.held() {
            Some(held) => write!(f, ", held {held:.2})"),
            None => write!(f, ", held unknown)"),
        }
    }
}

/// What two compared rates may differ in by design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayDiffer {
    /// Same load on both sides.
    Nothing,
    /// The load is what is varied, as in a share of the concurrency-1 rate.
    Load,
}

/// Why two rates cannot be put in a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// One is of a closed loop, the other of an open one.
    LoopKind,
    /// The loads differ.
    Load,
    /// The intervals were chosen by different rules.
    Rule,
    /// The lower one is zero.
    NothingBelow,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mismatch::LoopKind => "one rate is of a closed loop and the other of an open one",
            Mismatch::Load => "the two rates were measured under different loads",
            Mismatch::Rule => "the two rates were timed by different rules",
            Mismatch::NothingBelow => "the rate to compare with is zero",
        })
    }
}

/// A dimensionless ratio of two rates of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(f64);

impl Share {
    /// The ratio; for printing only.
    pub fn value(self) -> f64 {
        self.0
    }
}

/// Millionths over nanoseconds, as ones per second: the one place where a rate becomes a float.
pub(crate) fn per_second(millionths: u64, nanos: u64) -> f64 {
    millionths as f64 * 1e3 / nanos as f64
}

/// Three significant digits or all whole ones, with thousands apart.
pub fn significant(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    grouped(&format!("{value:.digits$}"))
}

/// A plain decimal number with its thousands apart.
pub(crate) fn grouped(plain: &str) -> String {
    let (whole, rest) = plain.split_once('.').map_or((plain, ""), |(w, r)| (w, r));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0
            && digit.is_ascii_digit()
            && (whole.len() - index) % 3 == 0
            && !grouped.ends_with('-')
        {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if rest.is_empty() {
        grouped
    } else {
        format!("{grouped}.{rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_with_three_significant_digits() {
        let shown: Vec<_> = [4_393_158.2, 531.25, 31.25, 9.9949, 0.5, 999.96, 0.0312]
            .into_iter()
            .map(significant)
            .collect();
        assert_eq!(
            shown,
            [
                "4,393,158",
                "531",
                "31.2",
                "9.99",
                "0.500",
                "1,000",
                "0.031"
            ]
        );
    }
}
