//! Owns order statistics: a quantile with its distribution-free interval, or the reason it has none.

use crate::time::Length;

/// A quantile in thousandths, so that it stays an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantile(u32);

impl Quantile {
    /// The quantiles denom prints, from low to high.
    pub const ALL: [Quantile; 8] = [
        Quantile(50),
        Quantile(100),
        Quantile(250),
        Quantile(500),
        Quantile(750),
        Quantile(900),
        Quantile(950),
        Quantile(990),
    ];
    /// The median.
    pub const MEDIAN: Quantile = Quantile(500);
    /// The 90th percentile.
    pub const P90: Quantile = Quantile(900);
    /// The 95th percentile.
    pub const P95: Quantile = Quantile(950);
    /// The 99th percentile.
    pub const P99: Quantile = Quantile(990);

    /// `p50`, `p99`, …
    pub fn name(self) -> String {
        format!("p{:02}", self.0 / 10)
    }

    /// As a probability.
    pub fn probability(self) -> f64 {
        f64::from(self.0) / 1e3
    }

    /// The smallest sample with a two-sided 95 % interval for this quantile, 2.5 % on each side.
    pub fn least_n(self) -> u64 {
        let p = self.probability();
        let tail = p.max(1.0 - p);
        (0.025_f64.ln() / tail.ln()).ceil() as u64
    }

    /// The rank (from 1) of the observed value that stands for this quantile among `n`.
    fn rank(self, n: u64) -> u64 {
        (n * u64::from(self.0)).div_ceil(1_000).clamp(1, n.max(1))
    }
}

/// Ranks, from 1, of a quantile's point and of its interval's ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    /// The point: nearest rank, an observed value.
    pub point: u64,
    /// Lower end of the 95 % interval.
    pub low: u64,
    /// Upper end of the 95 % interval.
    pub high: u64,
}

/// Ranks for quantile `q` of `n` values, by the binomial law of how many lie below the quantile;
/// `Err` holds the `n` that would be needed.
pub fn ranks(q: Quantile, n: u64) -> Result<Ranks, u64> {
    if n < q.least_n() {
        return Err(q.least_n());
    }
    let p = q.probability();
    let low = last_at_most(n, p, 0.025).max(1);
    let high = n + 1 - last_at_most(n, 1.0 - p, 0.025).max(1);
    Ok(Ranks {
        point: q.rank(n).clamp(low, high),
        low,
        high,
    })
}

/// Where the exponential function underflows: the smallest positive number is above its result.
const ZERO_BELOW: f64 = -746.0;

/// The largest `k` for which at most `k − 1` successes have a chance of no more than `limit`.
fn last_at_most(n: u64, p: f64, limit: f64) -> u64 {
    // Terms in logarithms: (1 − p)^n underflows for the large n of a long run.
    let (log_p, log_q) = (p.ln(), (1.0 - p).ln());
    let mut log_term = n as f64 * log_q;
    let mut sum = 0.0;
    for k in 0..=n {
        // Below this, its exponential is zero and need not be computed.
        if log_term > ZERO_BELOW {
            sum += log_term.exp();
        }
        if sum > limit {
            return k;
        }
        log_term += ((n - k) as f64 / (k + 1) as f64).ln() + log_p - log_q;
    }
    n
}

/// Lengths in order, in four bytes each up to four seconds: a long run has millions.
#[derive(Debug, Default)]
pub struct Sorted {
    short: Vec<u32>,
    /// Each longer than any of the short ones.
    long: Vec<u64>,
}

impl Sorted {
    /// Puts them in order.
    pub fn of(lengths: impl IntoIterator<Item = Length>) -> Self {
        let mut all = Sorted::default();
        for length in lengths {
            match u32::try_from(length.nanos()) {
                Ok(nanos) => all.short.push(nanos),
                Err(_) => all.long.push(length.nanos()),
            }
        }
        all.short.sort_unstable();
        all.long.sort_unstable();
        all
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The one at a place, from 0 for the shortest.
    pub fn at(&self, place: usize) -> Option<Length> {
        let nanos = match place.checked_sub(self.short.len()) {
            None => self.short.get(place).copied().map(u64::from),
            Some(place) => self.long.get(place).copied(),
        };
        nanos.map(Length::from_nanos)
    }

    /// All of them together.
    pub fn sum(&self) -> Length {
        let short = self.short.iter().copied().map(u64::from);
        let all = short.chain(self.long.iter().copied());
        all.map(Length::from_nanos)
            .fold(Length::ZERO, |sum, length| sum + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_n_is_the_models() {
        let least: Vec<_> = Quantile::ALL.iter().map(|q| q.least_n()).collect();
        assert_eq!(least, [72, 36, 13, 6, 13, 36, 72, 368]);
    }

    #[test]
    fn at_the_least_n_the_interval_is_the_whole_sample() {
        assert_eq!(
            ranks(Quantile::MEDIAN, 6),
            Ok(Ranks {
                point: 3,
                low: 1,
                high: 6
            })
        );
        assert_eq!(ranks(Quantile::MEDIAN, 5), Err(6));
        assert_eq!(ranks(Quantile(990), 368).map(|r| r.high), Ok(368));
    }

    #[test]
    fn the_median_of_a_hundred_has_the_textbook_interval() {
        // Le Boudec's table for n = 100: the 40th and the 61st value.
        assert_eq!(
            ranks(Quantile::MEDIAN, 100),
            Ok(Ranks {
                point: 50,
                low: 40,
                high: 61
            })
        );
    }

    #[test]
    fn a_large_sample_does_not_underflow() {
        let found = ranks(Quantile(990), 1_000_000).expect("enough");
        assert_eq!(found.point, 990_000);
        assert!(found.low > 989_000 && found.high < 991_000, "{found:?}");
    }

    #[test]
    fn lengths_on_both_sides_of_four_bytes_stand_in_order() {
        let edge = u64::from(u32::MAX);
        let all = [edge + 1, 3, edge, u64::MAX, 0, edge + 9].map(Length::from_nanos);
        let sorted = Sorted::of(all);
        let order: Vec<u64> = (0..7)
            .filter_map(|place| sorted.at(place))
            .map(Length::nanos)
            .collect();
        assert_eq!(order, [0, 3, edge, edge + 1, edge + 9, u64::MAX]);
        assert_eq!((sorted.len(), sorted.sum()), (6, Length::MAX));
        assert!(Sorted::of([]).is_empty());
    }
}
