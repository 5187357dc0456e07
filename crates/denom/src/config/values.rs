//! Owns the values that flags take: lengths of time, lists of levels, warm-ups.

use std::str::FromStr;

use measure::plan::Warmup;
use measure::time::Length;

/// The longest time a flag may give: a week.
const LONGEST: f64 = 7.0 * 24.0 * 3600.0;

/// A length of time as typed: `0.2s`, `500ms`, `2m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Length);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no length of time: give 0.2s, 500ms, 2m or 1h");
        let split = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(wrong)?;
        let (number, unit) = text.split_at(split);
        let scale = match unit.trim() {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            _ => return Err(wrong()),
        };
        let seconds = number.parse::<f64>().map_err(|_| wrong())? * scale;
        if !(0.0..=LONGEST).contains(&seconds) {
            return Err(format!("{text:?} is longer than a week"));
        }
        Ok(Time(Length::from_nanos((seconds * 1e9).round() as u64)))
    }
}

/// Levels of concurrency as typed: `1,4,16`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concurrency(pub Vec<u32>);

/// The most streams a level may have.
pub const MOST_STREAMS: u32 = 100_000;

impl FromStr for Concurrency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut levels = Vec::new();
        for part in text.split(',') {
            let level: u32 = part.trim().parse().map_err(|_| {
                format!("{part:?} is no concurrency: give whole numbers from 1, such as 1,4,16")
            })?;
            if level == 0 {
                return Err("a concurrency of 0 sends nothing: give 1 or more".into());
            }
            if level > MOST_STREAMS {
                return Err(format!(
                    "a concurrency of {level} is above the most of {MOST_STREAMS}"
                ));
            }
            if levels.contains(&level) {
                return Err(format!("concurrency {level} is given twice"));
            }
            levels.push(level);
        }
        Ok(Concurrency(levels))
    }
}

/// Open-loop rates as typed: `2,5/s`. In thousandths of a request a second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rates(pub Vec<u64>);

/// The highest rate that a level may have, in thousandths of a request a second.
const MOST_RATE_MILLI: u64 = 100_000_000;

impl FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut rates = Vec::new();
        for part in text.split(',') {
            let number = part.trim().trim_end_matches("/s").trim_end();
            let rate = milli(number).ok_or_else(|| {
                format!("{part:?} is no rate: give requests a second with at most three decimals, such as 2,5/s or 0.5/s")
            })?;
            if rate == 0 {
                return Err("a rate of 0 sends nothing: give 0.001 or more".into());
            }
            if rate > MOST_RATE_MILLI {
                return Err(format!(
                    "a rate of {number} is above the most of {} requests a second",
                    MOST_RATE_MILLI / 1_000
                ));
            }
            if rates.contains(&rate) {
                return Err(format!("the rate {number} is given twice"));
            }
            rates.push(rate);
        }
        Ok(Rates(rates))
    }
}

/// A decimal number in thousandths, exactly; `None` if it is none or finer than that.
fn milli(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 3 {
        return None;
    }
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000)?
        .checked_add(part)
}

/// The most requests in flight, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight(pub u32);

impl Default for InFlight {
    /// A thousand.
    fn default() -> Self {
        InFlight(1_000)
    }
}

impl FromStr for InFlight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<u32>() {
            Ok(n) if (1..=MOST_STREAMS).contains(&n) => Ok(InFlight(n)),
            _ => Err(format!(
                "{text:?} is no number of requests in flight: give 1 to {MOST_STREAMS}"
            )),
        }
    }
}

/// A warm-up as typed: a number of requests, or a length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmupFlag(pub Warmup);

impl FromStr for WarmupFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(requests) = text.parse::<u64>() {
            return Ok(WarmupFlag(Warmup::Requests(requests)));
        }
        let time: Time = text.parse().map_err(|_| {
            format!(
                "{text:?} is no warm-up: give a number of requests such as 16, or a time such as 5s"
            )
        })?;
        Ok(WarmupFlag(Warmup::Duration(time.0)))
    }
}

/// A number of requests: at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests(pub u64);

impl FromStr for Requests {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<u64>() {
            Ok(0) => Err("0 requests measure nothing: give 1 or more".into()),
            Ok(n) => Ok(Requests(n)),
            Err(_) => Err(format!("{text:?} is no number of requests")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_nanosecond() {
        let read = |text: &str| text.parse::<Time>().map(|time| time.0.nanos());
        assert_eq!(read("0.2s"), Ok(200_000_000));
        assert_eq!(read("500ms"), Ok(500_000_000));
        assert_eq!(read("2m"), Ok(120_000_000_000));
        for wrong in ["", "5", "s", "-1s", "1.2.3s", "9999h", "1 fortnight"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn levels_are_whole_numbers_from_1_each_once() {
        assert_eq!(
            "1, 4,16".parse::<Concurrency>().map(|c| c.0),
            Ok(vec![1, 4, 16])
        );
        for wrong in ["0", "1,0", "", "1,,2", "-1", "4,4", "200000"] {
            assert!(wrong.parse::<Concurrency>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_are_requests_a_second_exact_to_a_thousandth() {
        let read = |text: &str| text.parse::<Rates>().map(|rates| rates.0);
        assert_eq!(read("2,5/s"), Ok(vec![2_000, 5_000]));
        assert_eq!(read("0.5/s, 12.345"), Ok(vec![500, 12_345]));
        for wrong in [
            "0", "", "2,,5", "-1", "2,2.0/s", "1e3", "0.0001", "2/min", "200000", ".",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!("64".parse::<InFlight>(), Ok(InFlight(64)));
        for wrong in ["0", "-1", "many", "100001"] {
            assert!(wrong.parse::<InFlight>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_warmup_is_requests_or_time() {
        assert_eq!(
            "16".parse::<WarmupFlag>().map(|w| w.0),
            Ok(Warmup::Requests(16))
        );
        assert_eq!(
            "5s".parse::<WarmupFlag>().map(|w| w.0),
            Ok(Warmup::Duration(Length::from_secs(5)))
        );
        assert!("soon".parse::<WarmupFlag>().is_err());
    }
}
