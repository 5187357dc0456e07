//! Owns the two kinds of time: an instant of a run and a length, both integer nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A point in time, in nanoseconds since the origin of the run, on its one monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(u64);

/// A length of time, in nanoseconds. Never negative.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Length(u64);

impl Instant {
    /// The origin of the run.
    pub const ORIGIN: Instant = Instant(0);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The length from `earlier` to here; `None` if `earlier` is later than this.
    pub fn since(self, earlier: Instant) -> Option<Length> {
        self.0.checked_sub(earlier.0).map(Length)
    }

    /// The length from `earlier` to here, or zero if `earlier` is later than this.
    pub fn since_or_zero(self, earlier: Instant) -> Length {
        Length(self.0.saturating_sub(earlier.0))
    }
}

impl Length {
    /// No time at all.
    pub const ZERO: Length = Length(0);
    /// The longest length.
    pub const MAX: Length = Length(u64::MAX);

    /// A length of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Length(nanos)
    }

    /// A length of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Length(micros.saturating_mul(1_000))
    }

    /// A length of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Length(millis.saturating_mul(1_000_000))
    }

    /// A length of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Length(secs.saturating_mul(1_000_000_000))
    }

    /// In nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// In seconds, for printing only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This length less `other`, or zero.
    pub const fn less(self, other: Length) -> Length {
        Length(self.0.saturating_sub(other.0))
    }
}

impl Add<Length> for Instant {
    type Output = Instant;
    fn add(self, length: Length) -> Instant {
        Instant(self.0.saturating_add(length.0))
    }
}

impl Add for Length {
    type Output = Length;
    fn add(self, other: Length) -> Length {
        Length(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Length {
    fn add_assign(&mut self, other: Length) {
        *self = *self + other;
    }
}

impl Sub<Length> for Instant {
    type Output = Instant;
    fn sub(self, length: Length) -> Instant {
        Instant(self.0.saturating_sub(length.0))
    }
}

impl From<std::time::Duration> for Length {
    fn from(duration: std::time::Duration) -> Self {
        Length(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Length> for std::time::Duration {
    fn from(length: Length) -> Self {
        std::time::Duration::from_nanos(length.0)
    }
}

impl fmt::Display for Length {
    /// In the largest unit that keeps three significant digits, for sentences.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => return write!(f, "{} ns", self.0),
            1_000..1_000_000 => (nanos / 1e3, "µs"),
            1_000_000..1_000_000_000 => (nanos / 1e6, "ms"),
            _ => (nanos / 1e9, "s"),
        };
        write!(f, "{value:.0$} {unit}", digits(value))
    }
}

fn digits(value: f64) -> usize {
    match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_would_be_negative_does_not_exist() {
        let (early, late) = (Instant::from_nanos(3), Instant::from_nanos(10));
        assert_eq!(late.since(early), Some(Length::from_nanos(7)));
        assert_eq!(early.since(late), None);
        assert_eq!(early.since_or_zero(late), Length::ZERO);
    }

    #[test]
    fn lengths_print_in_a_unit_a_person_reads() {
        let shown = |nanos| Length::from_nanos(nanos).to_string();
        assert_eq!(shown(999), "999 ns");
        assert_eq!(shown(1_500), "1.50 µs");
        assert_eq!(shown(40_000_000), "40.0 ms");
        assert_eq!(shown(1_030_000_000), "1.03 s");
        assert_eq!(shown(120_000_000_000), "120 s");
    }
}
