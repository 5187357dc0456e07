//! Owns counts: how many of one unit, where the unit is a type and units never mix.

use std::fmt;
use std::iter::Sum;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// A unit that can be counted.
pub trait Unit: Copy + fmt::Debug + 'static {
    /// The unit's name as it stands before "/s".
    const NAME: &'static str;
}

macro_rules! units {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {}
        impl Unit for $name {
            const NAME: &'static str = $text;
        }
    )*};
}

units! {
    /// An output token, by the source stated with the figure.
    Token = "tok";
    /// An input token, as the server counted it.
    InputToken = "input tok";
    /// One protocol event that carries content.
    Chunk = "chunk";
    /// One request.
    Request = "req";
}

const ONE: u64 = 1_000_000;

/// How many of a unit. Kept in millionths, since the tokens of an arrival may be a share of a
/// stated total.
///
/// Counts of different units do not add:
///
/// ```
/// use measure::count::{Count, Token};
/// let all = Count::<Token>::whole(3) + Count::<Token>::whole(4);
/// assert_eq!(all, Count::whole(7));
/// ```
/// ```compile_fail
/// use measure::count::{Count, Request, Token};
/// let all = Count::<Token>::whole(3) + Count::<Request>::whole(4);
/// ```
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub struct Count<U> {
    millionths: u64,
    #[serde(skip)]
    unit: PhantomData<U>,
}

impl<U: Unit> Count<U> {
    /// None of them, observed to be none.
    pub const ZERO: Count<U> = Count::from_millionths(0);

    /// `n` whole ones.
    pub const fn whole(n: u64) -> Self {
        Count::from_millionths(n.saturating_mul(ONE))
    }

    /// A count given in millionths.
    pub const fn from_millionths(millionths: u64) -> Self {
        Count {
            millionths,
            unit: PhantomData,
        }
    }

    /// The share `part / all` of this count, rounded down to a millionth; `None` if `all` is 0.
    pub fn share(self, part: u64, all: u64) -> Option<Self> {
        let product = u128::from(self.millionths) * u128::from(part);
        let share = product.checked_div(u128::from(all))?;
        Some(Count::from_millionths(
            u64::try_from(share).unwrap_or(u64::MAX),
        ))
    }

    /// In millionths.
    pub const fn millionths(self) -> u64 {
        self.millionths
    }

    /// This count less `other`; `None` if that would be negative.
    pub fn less(self, other: Self) -> Option<Self> {
        self.millionths
            .checked_sub(other.millionths)
            .map(Count::from_millionths)
    }

    /// For printing only.
    pub fn as_f64(self) -> f64 {
        self.millionths as f64 / ONE as f64
    }

    /// Whether there are none.
    pub const fn is_zero(self) -> bool {
        self.millionths == 0
    }
}

impl<U> Clone for Count<U> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<U> Copy for Count<U> {}
impl<U> PartialEq for Count<U> {
    fn eq(&self, other: &Self) -> bool {
        self.millionths == other.millionths
    }
}
impl<U> Eq for Count<U> {}
impl<U> PartialOrd for Count<U> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<U> Ord for Count<U> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.millionths.cmp(&other.millionths)
    }
}
impl<U: Unit> fmt::Debug for Count<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.as_f64(), U::NAME)
    }
}
impl<U: Unit> Add for Count<U> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Count::from_millionths(self.millionths.saturating_add(other.millionths))
    }
}
impl<U: Unit> AddAssign for Count<U> {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl<U: Unit> Sum for Count<U> {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Count::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_to_a_millionth() {
        let total = Count::<Token>::whole(63);
        assert_eq!(total.share(1, 3), Some(Count::whole(21)));
        assert_eq!(total.share(1, 8).map(Count::millionths), Some(7_875_000));
        assert_eq!(total.share(1, 0), None);
        assert_eq!(Count::<Token>::whole(1).less(total), None);
    }
}
