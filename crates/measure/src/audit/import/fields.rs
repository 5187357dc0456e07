//! Owns the picking of fields out of a stranger's JSON: finite numbers, texts, families of statistics.

use serde_json::Value;

use crate::audit::definition::Definition;
use crate::audit::form::{Metric, Number, Run, Stat};
use crate::time::Length;

/// The largest number that is believed, and the smallest other than 0: products and ratios of a
/// few stay finite, and print.
const MOST: f64 = 1e15;
const LEAST: f64 = 1e-12;
/// Nanoseconds of the longest time that is believed: thirty years.
const MOST_NANOS: f64 = 946_080_000.0 * 1e9;

/// The finite number at `path` (a JSON pointer), also where it is written as a string.
pub fn num(value: &Value, path: &str) -> Option<f64> {
    as_num(value.pointer(path)?)
}

/// A value as a finite number.
pub fn as_num(value: &Value) -> Option<f64> {
    as_written(value).and_then(believed)
}

/// A value as a number, however large.
fn as_written(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text.len() < 40 => text.trim().parse().ok(),
        _ => None,
    }
}

/// A number that is finite and not beyond belief.
pub fn believed(number: f64) -> Option<f64> {
    (number == 0.0 || (LEAST..=MOST).contains(&number.abs())).then_some(number)
}

/// The first of `paths` that holds a number.
pub fn first_num(value: &Value, paths: &[&str]) -> Option<f64> {
    paths.iter().find_map(|path| num(value, path))
}

/// The whole count at `path`; none where it is negative, fractional or too large.
pub fn count(value: &Value, path: &str) -> Option<u64> {
    num(value, path).and_then(as_count)
}

/// A number as a whole count.
pub fn as_count(number: f64) -> Option<u64> {
    let whole = number >= 0.0 && number.fract() == 0.0 && number < 9e15;
    whole.then_some(number as u64)
}

/// The text at `path`.
pub fn text(value: &Value, path: &str) -> Option<String> {
    value.pointer(path)?.as_str().map(str::to_owned)
}

/// The list at `path`; empty where there is none.
pub fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value
        .pointer(path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Whether there is something but null at `path`.
pub fn has(value: &Value, path: &str) -> bool {
    value.pointer(path).is_some_and(|found| !found.is_null())
}

/// Seconds as a length; none where negative or beyond thirty years.
pub fn length(seconds: f64) -> Option<Length> {
    let nanos = seconds * 1e9;
    (0.0..MOST_NANOS)
        .contains(&nanos)
        .then(|| Length::from_nanos(nanos.round() as u64))
}

/// The factor that turns a unit of time, as tools write it, into seconds.
pub fn seconds_per(unit: &str) -> Option<f64> {
    match unit {
        "s" | "sec" | "seconds" | "second" => Some(1.0),
        "ms" | "milliseconds" => Some(1e-3),
        "us" | "µs" | "microseconds" => Some(1e-6),
        "ns" | "nanoseconds" => Some(1e-9),
        _ => None,
    }
}

/// What a family of numbers is of, and the factor to its metric's unit.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Of what.
    pub metric: Metric,
    /// Factor from the file's unit.
    pub scale: f64,
    /// What the tool means.
    pub definition: Definition,
}

/// A kind whose file unit is the metric's.
pub const fn kind(metric: Metric, definition: Definition) -> Kind {
    Kind {
        metric,
        scale: 1.0,
        definition,
    }
}

/// A kind that the file writes in milliseconds.
pub const fn millis(metric: Metric, definition: Definition) -> Kind {
    Kind {
        metric,
        scale: 1e-3,
        definition,
    }
}

impl Run {
    /// Takes a number in, where there is one.
    pub(super) fn state(&mut self, kind: Kind, stat: Stat, field: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.numbers.push(Number {
                metric: kind.metric,
                stat,
                value: Ok(value * kind.scale),
                definition: kind.definition,
                field: field.to_owned(),
            });
        }
    }

    /// The sum at `path`; one beyond belief, or below 0, is kept as such and not read.
    pub(super) fn sum(&mut self, value: &Value, path: &str) -> Option<f64> {
        let written = value.pointer(path).and_then(as_written)?;
        let sum = believed(written).filter(|sum| *sum >= 0.0);
        if sum.is_none() && written.is_finite() {
            let text = format!("{} of {written:e}", dotted(path));
            self.impossible.push(text);
        }
        sum
    }

    /// Takes in the one number at `path`.
    pub(super) fn total(&mut self, value: &Value, path: &str, kind: Kind) {
        self.state(kind, Stat::Value, &dotted(path), num(value, path));
    }

    /// Takes in every statistic of the object at `path`: its keys name them.
    pub(super) fn family(&mut self, value: &Value, path: &str, kind: Kind) {
        let Some(members) = value.pointer(path).and_then(Value::as_object) else {
            return;
        };
        for (key, member) in members {
            if let Some(stat) = Stat::of_key(key) {
                let field = dotted(&format!("{path}/{key}"));
                self.state(kind, stat, &field, as_num(member));
            }
        }
    }

    /// Takes in every statistic whose flat key is a statistic, `_` and one of `names`.
    pub(super) fn flat(&mut self, value: &Value, names: &[(&str, Kind)]) {
        let Some(members) = value.as_object() else {
            return;
        };
        for (key, member) in members {
            let Some((stat, rest)) = key.split_once('_') else {
                continue;
            };
            let named = names.iter().find(|(name, _)| *name == rest);
            if let (Some(stat), Some((_, kind))) = (Stat::of_key(stat), named) {
                self.state(*kind, stat, key, as_num(member));
            }
        }
    }
}

/// A JSON pointer as people write paths.
pub fn dotted(path: &str) -> String {
    path.trim_start_matches('/').replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_finite_and_may_be_strings() {
        let value = json!({"a": "550", "b": "inf", "c": null, "d": 1.5, "e": {"f": 2}});
        assert_eq!(num(&value, "/a"), Some(550.0));
        assert_eq!(num(&value, "/b"), None);
        assert_eq!(num(&value, "/c"), None);
        assert_eq!(num(&value, "/e/f"), Some(2.0));
        assert_eq!(count(&value, "/d"), None);
        assert_eq!(length(-1.0), None);
        assert_eq!(length(1e300), None);
    }
}
