//! Owns the comparison of two sides that were asked in turns: what the way between them adds.

use serde::Serialize;

use super::plan::Lengths;
use super::rows::longest_gap;
use super::sample::Sample;
use super::slope::median;
use crate::quantile::{Quantile, ranks};

/// A difference in seconds: the first side's time less the other's, over pairs asked in turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The median over the pairs.
    pub median: f64,
    /// Its distribution-free 95 % interval; none below six pairs.
    pub ci95: Option<[f64; 2]>,
    /// Pairs.
    pub n: u64,
}

/// What the way between two sides changes at one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// Output tokens asked for.
    pub asked: u64,
    /// Time to first content.
    pub first_content_s: Option<Difference>,
    /// The longest time between arrivals.
    pub gap_max_s: Option<Difference>,
    /// End-to-end time.
    pub e2e_s: Option<Difference>,
}

/// The change at each length, over pairs: the n-th request of a length on both sides.
pub fn changes(one: &[(u64, Sample)], other: &[(u64, Sample)], lengths: Lengths) -> Vec<Change> {
    let at = |(group, asked): (usize, u64)| {
        let pairs: Vec<(&Sample, &Sample)> = one
            .iter()
            .filter(|(_, sample)| sample.group == group)
            .filter_map(|(turn, sample)| {
                let same = other.iter().find(|(other, _)| other == turn)?;
                Some((sample, &same.1))
            })
            .collect();
        Change {
            asked,
            first_content_s: difference(&pairs, |s| Some(s.first.as_secs_f64())),
            gap_max_s: difference(&pairs, longest_gap),
            e2e_s: difference(&pairs, |s| Some(s.total.as_secs_f64())),
        }
    };
    lengths.tokens().into_iter().enumerate().map(at).collect()
}

fn difference(
    pairs: &[(&Sample, &Sample)],
    time: impl Fn(&Sample) -> Option<f64>,
) -> Option<Difference> {
    let mut all: Vec<f64> = pairs
        .iter()
        .filter_map(|(one, other)| Some(time(one)? - time(other)?))
        .collect();
    all.sort_by(f64::total_cmp);
    let n = all.len() as u64;
    let at = |rank: u64| all.get(usize::try_from(rank - 1).ok()?).copied();
    let ci95 = ranks(Quantile::MEDIAN, n)
        .ok()
        .and_then(|ranks| Some([at(ranks.low)?, at(ranks.high)?]));
    Some(Difference {
        median: median(&all)?,
        ci95,
        n,
    })
}
