//! Owns the peak: the most that was finished in any one window of fixed length.

use std::collections::HashMap;

/// Windows kept at once. With more, each is made longer.
const MOST: usize = 65_536;

/// Lengths of a window in nanoseconds, each a multiple of the one before.
const LADDER: [i64; 12] = [
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
    60_000_000_000,
    600_000_000_000,
    3_600_000_000_000,
    21_600_000_000_000,
    86_400_000_000_000,
    604_800_000_000_000,
    6_048_000_000_000_000,
];

/// Amounts by window. Its content does not depend on the order in which they came: the length is
/// the shortest for which all windows with anything in them fit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Windows {
    width: i64,
    fixed: bool,
    amounts: HashMap<i64, u128>,
    overflowed: bool,
}

impl Windows {
    /// Windows of `width` nanoseconds, or of a length that is found.
    pub fn new(width: Option<i64>) -> Self {
        Windows {
            width: width.filter(|width| *width > 0).unwrap_or(LADDER[0]),
            fixed: width.is_some(),
            amounts: HashMap::new(),
            overflowed: false,
        }
    }

    /// Takes in an amount finished at an instant.
    pub fn add(&mut self, at: i64, amount: u64) {
        *self.amounts.entry(at.div_euclid(self.width)).or_insert(0) += u128::from(amount);
        while self.amounts.len() > MOST {
            match LADDER
                .iter()
                .find(|width| **width > self.width)
                .filter(|_| !self.fixed)
            {
                Some(width) => self.widen(*width),
                None => {
                    self.overflowed = true;
                    self.amounts.clear();
                }
            }
        }
    }

    fn widen(&mut self, width: i64) {
        let factor = width / self.width;
        let mut wider = HashMap::with_capacity(MOST);
        for (index, amount) in self.amounts.drain() {
            *wider.entry(index.div_euclid(factor)).or_insert(0) += amount;
        }
        (self.width, self.amounts) = (width, wider);
    }

    /// The fullest window of a log that spans `span` nanoseconds and whose rows take `row`: its
    /// first instant, its length and its amount. Where no length was asked for, it is the longest
    /// of which twenty fit, or, since amounts are counted where work ended, the shortest that a
    /// row fits into, if three of those fit.
    ///
    /// # Errors
    /// With the reason why there is none.
    pub fn peak(mut self, span: i64, row: i64) -> Result<(i64, i64, u128), &'static str> {
        if self.overflowed {
            return Err(
                "more than 65,536 windows of that length hold something: ask for a longer one",
            );
        }
        if !self.fixed {
            let width = found(span, row)
                .ok_or("the log is too short for twenty windows of a millisecond")?;
            if width > self.width {
                self.widen(width);
            }
        }
        if self.width > span {
            return Err("the window is longer than the log");
        }
        // Of equal windows the first, so that the answer does not depend on any order.
        let most = self
            .amounts
            .iter()
            .max_by_key(|(index, amount)| (**amount, std::cmp::Reverse(**index)));
        let (index, amount) = most.ok_or("nothing was finished")?;
        Ok((index.saturating_mul(self.width), self.width, *amount))
    }
}

/// The length of a window where none was asked for.
fn found(span: i64, row: i64) -> Option<i64> {
    let usual = LADDER.iter().rev().find(|width| **width <= span / 20);
    let of_rows = LADDER
        .iter()
        .find(|width| **width >= row && **width <= span / 3);
    usual.max(of_rows).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_window_is_found_in_any_order() {
        let ends: Vec<i64> = (0..2_000)
            .map(|i| i * 1_000_000_000)
            .chain([500_000_000_100; 40])
            .collect();
        let peak = |ends: &mut dyn Iterator<Item = &i64>| {
            let mut windows = Windows::new(None);
            ends.for_each(|at| windows.add(*at, 1));
            windows.peak(2_000_000_000_000, 0)
        };
        let there = peak(&mut ends.iter());
        assert_eq!(there, Ok((480_000_000_000, 60_000_000_000, 100)));
        assert_eq!(peak(&mut ends.iter().rev()), there);
    }

    #[test]
    fn windows_get_longer_rather_than_too_many() {
        let mut windows = Windows::new(None);
        for i in 0..200_000 {
            windows.add(i * 50_000_000, 1);
        }
        assert!(windows.amounts.len() <= MOST);
        assert_eq!(windows.width, 1_000_000_000);
        let mut fixed = Windows::new(Some(1_000));
        (0..70_000).for_each(|i| fixed.add(i * 1_000, 1));
        assert!(fixed.peak(70_000_000, 0).is_err());
    }

    #[test]
    fn a_window_is_long_enough_for_a_row() {
        let minute = 60_000_000_000;
        assert_eq!(found(3 * minute, 0), Some(1_000_000_000));
        assert_eq!(found(3 * minute, 7_000_000_000), Some(10_000_000_000));
        assert_eq!(found(3 * minute, 2 * minute), Some(1_000_000_000));
        assert_eq!(found(1_000_000, 0), None);
    }

    #[test]
    fn a_window_longer_than_the_log_is_no_window() {
        let mut windows = Windows::new(Some(10_000));
        windows.add(5, 1);
        assert!(windows.peak(100, 0).is_err());
    }
}
