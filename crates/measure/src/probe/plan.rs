//! Owns the experiment as data: which output lengths are asked for, in which order, at what cost.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use crate::time::Length;

/// Output lengths that are asked for unless the user names others, in tokens.
pub const LENGTHS: [u64; 3] = [16, 64, 256];
/// The time that one side's measured requests should take together.
pub const BUDGET: Length = Length::from_secs(48);
/// The longest answer is not made shorter than this, however slow the server.
const LEAST_LONGEST: u64 = 32;

/// The six orders of three lengths. Each is used once, so each length stands equally often in
/// each place of a block, and what drifts with time weighs on all lengths alike.
const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];
/// Measured requests of one side.
pub const MEASURED: u64 = 18;

/// Sides of one experiment at most: the URL, the URL as an SDK asks, another URL.
pub const MOST_SIDES: usize = 3;

/// Three output lengths, each shorter than the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lengths([u64; 3]);

impl Default for Lengths {
    fn default() -> Self {
        Lengths(LENGTHS)
    }
}

impl std::fmt::Display for Lengths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [short, middle, long] = self.0;
        write!(f, "{short},{middle},{long}")
    }
}

impl std::str::FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} are no lengths: give three, such as 16,64,256, each at least twice the one before"
            )
        };
        let parts: Result<Vec<u64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        let all: [u64; 3] = parts
            .ok()
            .and_then(|parts| parts.try_into().ok())
            .ok_or_else(wrong)?;
        let sound = all[0] >= 1
            && all[2] <= crate::prompt::LONGEST
            && all.windows(2).all(|pair| pair[1] >= 2 * pair[0]);
        sound.then_some(Lengths(all)).ok_or_else(wrong)
    }
}

impl Lengths {
    /// In tokens, the shortest first.
    pub fn tokens(self) -> [u64; 3] {
        self.0
    }

    /// Which of the three this length is; none for another.
    pub fn place(self, asked: u64) -> Option<usize> {
        self.0.iter().position(|length| *length == asked)
    }

    /// The same lengths, or shorter ones in the same proportion where the measured requests would
    /// take longer than [`BUDGET`] at `first` to first content and `each` a token.
    pub fn within_budget(self, first: Length, each: Length) -> Self {
        let waits = first.nanos().saturating_mul(MEASURED);
        let left = BUDGET.less(Length::from_nanos(waits)).nanos();
        let tokens: u64 = self.0.iter().sum::<u64>() * ORDERS.len() as u64;
        let needed = each.nanos().saturating_mul(tokens);
        if needed <= left {
            return self;
        }
        let scale = |length: u64| {
            let shrunk = u128::from(length) * u128::from(left) / u128::from(needed);
            let floor = length * LEAST_LONGEST.min(self.0[2]) / self.0[2];
            u64::try_from(shrunk).unwrap_or(u64::MAX).max(floor).max(1)
        };
        Lengths(self.0.map(scale))
    }
}

/// What one side of the experiment asks of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Requests, the discarded first ones included.
    pub requests: u64,
    /// Output tokens at most.
    pub output_tokens: u64,
}

/// The cost of `sides` paths probed with `lengths`.
pub fn cost(lengths: Lengths, sides: u64) -> Cost {
    let [_, middle, _] = lengths.0;
    let blocks = ORDERS.len() as u64;
    Cost {
        requests: sides * (MEASURED + 1),
        output_tokens: sides * (middle + blocks * lengths.0.iter().sum::<u64>()),
    }
}

/// Places of the lengths, in the order in which they are asked for after the discarded request:
/// six blocks of three, the blocks in an order drawn from `seed`.
pub fn order(seed: u64) -> Vec<usize> {
    let mut blocks = ORDERS;
    blocks.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    blocks.as_flattened().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_stands_in_every_place_equally_often() {
        for seed in 0..50 {
            let order = order(seed);
            assert_eq!(order.len() as u64, MEASURED);
            for place in 0..3 {
                for length in 0..3 {
                    let times = order.chunks(3).filter(|block| block[place] == length);
                    assert_eq!(times.count(), 2);
                }
            }
        }
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn one_side_costs_fewer_than_twenty_requests() {
        let cost = cost(Lengths::default(), 1);
        assert_eq!((cost.requests, cost.output_tokens), (19, 64 + 6 * 336));
    }

    #[test]
    fn lengths_shrink_to_the_budget_and_no_further_than_they_may() {
        let fast =
            Lengths::default().within_budget(Length::from_millis(100), Length::from_millis(10));
        assert_eq!(fast.tokens(), LENGTHS);
        // 2,016 tokens at 40 ms would take 81 s: 0.58 of them fit into 47 s.
        let slow =
            Lengths::default().within_budget(Length::from_millis(50), Length::from_millis(40));
        assert_eq!(slow.tokens(), [9, 37, 149]);
        let crawl = Lengths::default().within_budget(Length::from_secs(5), Length::from_secs(1));
        assert_eq!(crawl.tokens(), [2, 8, 32]);
    }

    #[test]
    fn lengths_read_what_they_print_and_refuse_nonsense() {
        assert_eq!("16, 64,256".parse(), Ok(Lengths::default()));
        assert_eq!(
            Lengths::default().to_string().parse(),
            Ok(Lengths::default())
        );
        for wrong in [
            "",
            "16,64",
            "16,64,100",
            "0,1,2",
            "a,b,c",
            "256,64,16",
            "1,2,99999999999",
        ] {
            assert!(wrong.parse::<Lengths>().is_err(), "{wrong}");
        }
    }
}
