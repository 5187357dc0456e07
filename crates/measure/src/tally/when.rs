//! Owns the reading of times, lengths and amounts as logs write them, to integers.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// How a time was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Written {
    /// RFC 3339, with its offset from UTC.
    Rfc3339,
    /// A date and time without an offset, taken as UTC.
    WithoutOffset,
    /// Seconds since 1970, by magnitude.
    EpochSeconds,
    /// Milliseconds since 1970, by magnitude.
    EpochMillis,
    /// Microseconds since 1970, by magnitude.
    EpochMicros,
    /// Nanoseconds since 1970, by magnitude.
    EpochNanos,
    /// Seconds from an origin of the file's own.
    Seconds,
    /// In the unit that the user named.
    Named,
}

impl Written {
    /// In words, for a page.
    pub fn words(self) -> &'static str {
        match self {
            Written::Rfc3339 => "RFC 3339",
            Written::WithoutOffset => "date and time without an offset, taken as UTC",
            Written::EpochSeconds => "seconds since 1970, by magnitude",
            Written::EpochMillis => "milliseconds since 1970, by magnitude",
            Written::EpochMicros => "microseconds since 1970, by magnitude",
            Written::EpochNanos => "nanoseconds since 1970, by magnitude",
            Written::Seconds => "seconds from the file's own origin",
            Written::Named => "a number in the unit that was named",
        }
    }

    /// Whether it counts from 1970; such a time and one of the file's own origin do not mix.
    pub fn is_absolute(self) -> bool {
        !matches!(self, Written::Seconds | Written::Named)
    }
}

/// The unit of a number that is a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
}

impl TimeUnit {
    fn nanos(self) -> i128 {
        match self {
            TimeUnit::Nanos => 1,
            TimeUnit::Micros => 1_000,
            TimeUnit::Millis => 1_000_000,
            TimeUnit::Seconds => NANO,
            TimeUnit::Minutes => 60 * NANO,
            TimeUnit::Hours => 3_600 * NANO,
        }
    }
}

const NANO: i128 = 1_000_000_000;

/// A number of at most 20 whole digits, in thousand-millionths; `None` for anything else.
fn decimal(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || whole.len() + fraction.len() == 0 {
        return exponent(text);
    }
    if whole.len() > 20 {
        return None;
    }
    let part = |digits: &str| {
        digits
            .bytes()
            .fold(0_i128, |sum, b| sum * 10 + i128::from(b - b'0'))
    };
    let kept = &fraction[..fraction.len().min(9)];
    let scale = 10_i128.pow(9 - u32::try_from(kept.len()).unwrap_or(9));
    let value = part(whole) * NANO + part(kept) * scale;
    Some(if negative { -value } else { value })
}

/// "1.7e9": as exact as a float is.
fn exponent(text: &str) -> Option<i128> {
    if !text.bytes().any(|b| b == b'e' || b == b'E') {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    (value.abs() < 1e20).then_some((value * 1e9) as i128)
}

/// A time as nanoseconds, from 1970 or from the file's own origin, and how it was written. A
/// number is taken in `unit` where the user named one, else by its magnitude.
pub(super) fn instant(text: &str, unit: Option<TimeUnit>) -> Option<(i64, Written)> {
    let text = text.trim();
    let (nanos, written) = match decimal(text) {
        Some(value) => number(value, unit),
        None => (dated(text)?.0, dated(text)?.1),
    };
    Some((i64::try_from(nanos).ok()?, written))
}

fn number(value: i128, unit: Option<TimeUnit>) -> (i128, Written) {
    if let Some(unit) = unit {
        return (value * unit.nanos() / NANO, Written::Named);
    }
    // 1e8 s is in 1973, and 1e11 s is in the year 5138: what people log lies between.
    let whole = (value / NANO).unsigned_abs();
    match whole {
        0..100_000_000 => (value, Written::Seconds),
        100_000_000..100_000_000_000 => (value, Written::EpochSeconds),
        100_000_000_000..100_000_000_000_000 => (value / 1_000, Written::EpochMillis),
        100_000_000_000_000..100_000_000_000_000_000 => (value / 1_000_000, Written::EpochMicros),
        _ => (value / NANO, Written::EpochNanos),
    }
}

fn dated(text: &str) -> Option<(i128, Written)> {
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return Some((stamp.as_nanosecond(), Written::Rfc3339));
    }
    let civil: DateTime = text.parse().ok()?;
    let stamp = TimeZone::UTC.to_timestamp(civil).ok()?;
    Some((stamp.as_nanosecond(), Written::WithoutOffset))
}

/// A length of time in nanoseconds; `None` for what is none or is negative.
pub(super) fn length(text: &str, unit: TimeUnit) -> Option<i64> {
    let text = text.trim();
    let nanos = match decimal(text) {
        Some(value) => value * unit.nanos() / NANO,
        None => clock(text)?,
    };
    i64::try_from(nanos).ok().filter(|nanos| *nanos >= 0)
}

/// "1:02:03" or "12:34": hours, minutes, seconds.
fn clock(text: &str) -> Option<i128> {
    let parts: Vec<&str> = text.split(':').collect();
    let seconds = decimal(parts.last()?)?;
    let whole = |part: &&str| part.parse::<u32>().ok().map(i128::from);
    let higher = match parts.as_slice() {
        [minutes, _] => whole(minutes)? * 60,
        [hours, minutes, _] => whole(hours)? * 3_600 + whole(minutes)? * 60,
        _ => return None,
    };
    (0..60 * NANO)
        .contains(&seconds)
        .then_some(higher * NANO + seconds)
}

/// An amount in millionths; `None` for what is none or is negative.
pub(super) fn amount(text: &str) -> Option<u64> {
    let value = decimal(text.trim())?;
    u64::try_from(value / 1_000).ok().filter(|_| value >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instant_in_every_writing() {
        let at = 1_767_600_000_500_000_000;
        for (text, written) in [
            ("2026-01-05T08:00:00.5Z", Written::Rfc3339),
            ("2026-01-05T09:00:00.500+01:00", Written::Rfc3339),
            ("2026-01-05 08:00:00.5", Written::WithoutOffset),
            ("1767600000.5", Written::EpochSeconds),
            ("1767600000500", Written::EpochMillis),
            ("1767600000500000", Written::EpochMicros),
            ("1767600000500000000", Written::EpochNanos),
        ] {
            assert_eq!(instant(text, None), Some((at, written)), "{text}");
        }
        assert_eq!(
            instant("12.25", None),
            Some((12_250_000_000, Written::Seconds))
        );
        assert_eq!(
            instant("12.25", Some(TimeUnit::Millis)),
            Some((12_250_000, Written::Named))
        );
        for wrong in [
            "",
            "soon",
            "1.2.3",
            "-",
            "99999999999999999999999",
            "2026-13-01T00:00:00Z",
        ] {
            assert_eq!(instant(wrong, None), None, "{wrong}");
        }
    }

    #[test]
    fn lengths_and_amounts() {
        assert_eq!(length("1.5", TimeUnit::Minutes), Some(90_000_000_000));
        assert_eq!(
            length("1:02:03", TimeUnit::Seconds),
            Some(3_723_000_000_000)
        );
        assert_eq!(length("-1", TimeUnit::Seconds), None);
        assert_eq!(length("1:99", TimeUnit::Seconds), None);
        assert_eq!(amount("2.5"), Some(2_500_000));
        assert_eq!(amount("1e3"), Some(1_000_000_000));
        assert_eq!(amount("-2"), None);
        assert_eq!(amount("NaN"), None);
    }
}
