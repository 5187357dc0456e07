//! Owns the cell: how one figure or distribution is written, its unit chosen by its column.

use measure::figure::{Dist, Figure, Withheld};
use measure::rate::significant;

/// The reasons of a page's withheld cells, each once, numbered from 1.
#[derive(Debug, Default)]
pub struct Reasons {
    texts: Vec<String>,
}

impl Reasons {
    /// The cell that stands for a withheld value.
    pub fn cell(&mut self, why: Option<&Withheld>) -> String {
        let Some(why) = why else {
            return "–".into();
        };
        let known = self.texts.iter().position(|text| *text == why.text);
        let place = known.unwrap_or_else(|| {
            self.texts.push(why.text.clone());
            self.texts.len() - 1
        });
        format!("– [{}]", place + 1)
    }

    /// The reasons in the order of their numbers.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }
}

/// The scale of a column: one for all its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As it is.
    Rate,
    /// Seconds.
    Seconds,
    /// Thousandths.
    Millis,
    /// Millionths.
    Micros,
}

impl Scale {
    /// The scale for a column of times in seconds: the largest decides.
    pub fn of_times(values: impl Iterator<Item = f64>) -> Self {
        match values.fold(0.0, f64::max) {
            most if most >= 0.1 || most == 0.0 => Scale::Seconds,
            most if most >= 1e-4 => Scale::Millis,
            _ => Scale::Micros,
        }
    }

    /// The scale for these distributions of times.
    pub fn of_dists<'a>(dists: impl Iterator<Item = &'a Dist>) -> Self {
        Scale::of_times(dists.filter_map(Dist::max))
    }

    /// The value without its unit.
    pub fn number(self, value: f64) -> String {
        significant(match self {
            Scale::Rate | Scale::Seconds => value,
            Scale::Millis => value * 1e3,
            Scale::Micros => value * 1e6,
        })
    }

    /// The unit's name; that of a rate is not of its scale.
    pub fn unit(self) -> &'static str {
        match self {
            Scale::Rate => "",
            Scale::Seconds => "s",
            Scale::Millis => "ms",
            Scale::Micros => "µs",
        }
    }
}

/// How the cells of a column of distributions are written.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    /// One scale for all.
    pub scale: Scale,
    /// Slow is low, as for rates.
    pub slow_is_low: bool,
    /// Written behind each value: the unit, where rows differ in it.
    pub unit: &'a str,
}

impl Column<'_> {
    fn value(&self, value: f64) -> String {
        let number = self.scale.number(value);
        match self.unit {
            "" => number,
            unit => format!("{number} {unit}"),
        }
    }

    /// The median; the range where there are too few values for one.
    pub fn median(&self, dist: &Dist, reasons: &mut Reasons) -> String {
        let star = if dist.is_selected() { "*" } else { "" };
        let point = dist.median();
        match (point.value, dist.min(), dist.max()) {
            (Some(value), _, _) => format!("{}{star}", self.value(value)),
            (None, Some(low), Some(high)) => format!("{}{star}", self.range(low, high, dist.n())),
            _ => reasons.cell(point.withheld.as_ref()),
        }
    }

    /// The furthest quantile on the slow side by its name, else the extreme; nothing where the
    /// median's cell already is a range or a reason.
    pub fn tail(&self, dist: &Dist) -> String {
        if dist.median().value.is_none() {
            return String::new();
        }
        if let Some((quantile, value)) = dist.slow_tail(self.slow_is_low) {
            return format!("{} {}", quantile.name(), self.value(value));
        }
        let (name, extreme) = match self.slow_is_low {
            true => ("min", dist.min()),
            false => ("max", dist.max()),
        };
        extreme.map_or_else(String::new, |value| {
            format!("{name} of {}: {}", dist.n(), self.value(value))
        })
    }

    /// Median and tail, or the range, for a line of text.
    pub fn both(&self, dist: &Dist, reasons: &mut Reasons) -> String {
        let (median, tail) = (self.median(dist, reasons), self.tail(dist));
        match tail.is_empty() {
            true => median,
            false => format!("p50 {median}, {tail}"),
        }
    }

    fn range(&self, low: f64, high: f64, n: u64) -> String {
        match low == high {
            true => format!("{}, n {n}", self.value(low)),
            false => {
                let low = self.scale.number(low);
                format!("{low} to {}, n {n}", self.value(high))
            }
        }
    }
}

/// A single figure, or its reason's number.
pub fn figure(figure: &Figure, unit: &str, reasons: &mut Reasons) -> String {
    match (figure.value(), unit) {
        (Some(value), "") => significant(value),
        (Some(value), unit) => format!("{} {unit}", significant(value)),
        (None, _) => reasons.cell(figure.reason()),
    }
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
