//! Owns a distribution in bounded memory: counts in buckets a thousandth wide.

use std::collections::BTreeMap;

/// How much wider than its lower end a bucket is.
const WIDTH: f64 = 1.001;

/// Counts of positive values by bucket. Its content does not depend on the order of the values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sketch {
    buckets: BTreeMap<i32, u64>,
    zeros: u64,
    n: u64,
    ends: Option<(f64, f64)>,
}

impl Sketch {
    /// Takes in a value from 0 on.
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        let ends = self.ends.unwrap_or((value, value));
        self.ends = Some((ends.0.min(value), ends.1.max(value)));
        match value > 0.0 {
            true => *self.buckets.entry(index(value)).or_insert(0) += 1,
            false => self.zeros += 1,
        }
    }

    /// How many values.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Least and most, exactly.
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.ends
    }

    /// The value at a rank from 1, to a thousandth; the ends exactly.
    pub fn at(&self, rank: u64) -> Option<f64> {
        let (least, most) = self.ends?;
        if rank <= self.zeros.max(1) {
            return Some(least);
        }
        let mut seen = self.zeros;
        for (index, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                let middle = WIDTH.powf(f64::from(*index) + 0.5);
                return Some(middle.clamp(least, most));
            }
        }
        Some(most)
    }
}

/// The bucket of a value. Values are rates and seconds, so far from the ends of `i32`.
fn index(value: f64) -> i32 {
    (value.ln() / WIDTH.ln()).floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_found_to_a_thousandth() {
        let mut sketch = Sketch::default();
        for value in (1..=10_000).rev() {
            sketch.add(f64::from(value) / 7.0);
        }
        for rank in [1_u64, 2, 500, 5_000, 9_900, 10_000] {
            let (found, exact) = (sketch.at(rank).expect("a value"), rank as f64 / 7.0);
            assert!(
                (found - exact).abs() <= exact * 0.001,
                "{rank}: {found} {exact}"
            );
        }
        assert_eq!(sketch.ends(), Some((1.0 / 7.0, 10_000.0 / 7.0)));
        assert_eq!(Sketch::default().at(1), None);
    }

    #[test]
    fn zeros_are_values() {
        let mut sketch = Sketch::default();
        [0.0, 3.0, 0.0, 5.0]
            .into_iter()
            .for_each(|value| sketch.add(value));
        assert_eq!((sketch.n(), sketch.at(2)), (4, Some(0.0)));
        assert_eq!(sketch.at(4), Some(5.0));
    }
}
