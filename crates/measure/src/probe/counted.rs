//! Owns what output is counted in, and whether the lengths asked for were obeyed.

use serde::Serialize;

use super::sample::Sample;
use super::slope::median;

/// What the output of every answer can be counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Tokens, as the server states them.
    Tokens,
    /// Events with content: nobody counted tokens.
    Chunks,
    /// Characters: nobody counted tokens, and an answer was no stream.
    Characters,
}

impl Counted {
    /// The finest that every sample has.
    pub fn of(samples: &[Sample]) -> Self {
        if samples.iter().all(|sample| sample.tokens().is_some()) {
            return Counted::Tokens;
        }
        match samples.iter().any(|sample| sample.whole) {
            true => Counted::Characters,
            false => Counted::Chunks,
        }
    }

    /// The output of a sample.
    pub fn count(self, sample: &Sample) -> u64 {
        match self {
            Counted::Tokens => sample.tokens().unwrap_or_default(),
            Counted::Chunks => sample.chunks(),
            Counted::Characters => sample.chars(),
        }
    }

    /// Its name, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Counted::Tokens => "tokens",
            Counted::Chunks => "chunks",
            Counted::Characters => "characters",
        }
    }

    /// How far a count may lie from what the asked length leads to expect.
    fn tolerance(self) -> f64 {
        match self {
            Counted::Tokens => 0.1,
            Counted::Chunks => 0.15,
            // Words differ in length.
            Counted::Characters => 0.5,
        }
    }
}

/// Whether answers were as long as they were asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Obeyed {
    /// Nine in ten were.
    Yes,
    /// At least half were, and longer ones were asked for and came.
    Partly,
    /// The server does as it likes.
    No,
}

/// How lengths were obeyed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lengthened {
    /// The verdict.
    pub obeyed: Obeyed,
    /// Answers of the length asked for.
    pub right: u64,
    /// Of how many.
    pub of: u64,
    /// The median count at each length, the shortest first; none where no answer was ok.
    pub medians: [Option<f64>; 3],
}

/// Holds each answer's count against what was asked for. Where tokens are counted they must be
/// the asked ones; chunks and characters must be in proportion to them.
pub fn lengthened(samples: &[Sample], counted: Counted) -> Lengthened {
    let mut ratios: Vec<f64> = samples
        .iter()
        .map(|sample| counted.count(sample) as f64 / sample.asked as f64)
        .collect();
    ratios.sort_by(f64::total_cmp);
    let each = match counted {
        Counted::Tokens => 1.0,
        Counted::Chunks | Counted::Characters => median(&ratios).unwrap_or(1.0),
    };
    let is_right = |sample: &&Sample| {
        let expected = sample.asked as f64 * each;
        let off = (counted.count(sample) as f64 - expected).abs();
        off <= (expected * counted.tolerance()).max(2.0)
    };
    let right = samples.iter().filter(is_right).count() as u64;
    let of = samples.len() as u64;
    let medians = [0, 1, 2].map(|group| middle(samples, counted, group));
    let grows = medians.windows(2).all(|pair| {
        pair[0]
            .zip(pair[1])
            .is_some_and(|(one, next)| next >= 1.5 * one)
    });
    Lengthened {
        obeyed: match (grows, right) {
            (true, right) if 10 * right >= 9 * of => Obeyed::Yes,
            (true, right) if 2 * right >= of => Obeyed::Partly,
            _ => Obeyed::No,
        },
        right,
        of,
        medians,
    }
}

fn middle(samples: &[Sample], counted: Counted, group: usize) -> Option<f64> {
    let of_group = samples.iter().filter(|sample| sample.group == group);
    let mut counts: Vec<f64> = of_group
        .map(|sample| counted.count(sample) as f64)
        .collect();
    counts.sort_by(f64::total_cmp);
    median(&counts)
}
