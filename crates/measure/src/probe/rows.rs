//! Owns the table of lengths: what was observed at each, with nothing inferred in it.

use serde::Serialize;

use super::counted::Counted;
use super::plan::Lengths;
use super::sample::Sample;
use super::slope::median;
use crate::time::Length;

/// The middle of some times and their ends, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Middle {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Middle {
    /// Of these values; none without any.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        Some(Middle {
            median: median(&values)?,
            min: *values.first()?,
            max: *values.last()?,
        })
    }
}

/// What was observed of the answers of one length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Output tokens asked for.
    pub asked: u64,
    /// Answers that were ok.
    pub n: u64,
    /// Output, in the unit of the path.
    pub output: Option<Middle>,
    /// Events with content.
    pub chunks: Option<Middle>,
    /// Arrivals.
    pub arrivals: Option<Middle>,
    /// Bytes of the body.
    pub bytes: Option<Middle>,
    /// Seconds from `sent` to the response head.
    pub head_s: Option<Middle>,
    /// Seconds from `sent` to the first content.
    pub first_content_s: Option<Middle>,
    /// Seconds from the first to the last content.
    pub content_s: Option<Middle>,
    /// Seconds between arrivals: the median of each answer's median.
    pub gap_s: Option<Middle>,
    /// The longest time between arrivals of each answer, in seconds.
    pub gap_max_s: Option<Middle>,
    /// Seconds from `sent` to the end.
    pub e2e_s: Option<Middle>,
}

/// One row a length, the shortest first.
pub fn rows(samples: &[Sample], lengths: Lengths, counted: Counted) -> Vec<Row> {
    let row = |(group, asked): (usize, u64)| {
        let these: Vec<&Sample> = samples.iter().filter(|s| s.group == group).collect();
        let of = |value: &dyn Fn(&Sample) -> Option<f64>| {
            Middle::of(these.iter().filter_map(|sample| value(sample)).collect())
        };
        let seconds = |length: Length| Some(length.as_secs_f64());
        Row {
            asked,
            n: these.len() as u64,
            output: of(&|s| Some(counted.count(s) as f64)),
            chunks: of(&|s| Some(s.chunks() as f64)),
            arrivals: of(&|s| Some(s.judged.arrivals.len() as f64)),
            bytes: of(&|s| Some(s.body_bytes as f64)),
            head_s: of(&|s| seconds(s.head?)),
            first_content_s: of(&|s| seconds(s.first)),
            content_s: of(&|s| seconds(s.spread)),
            gap_s: of(&gap),
            gap_max_s: of(&longest_gap),
            e2e_s: of(&|s| seconds(s.total)),
        }
    };
    lengths.tokens().into_iter().enumerate().map(row).collect()
}

fn gap(sample: &Sample) -> Option<f64> {
    let mut gaps: Vec<f64> = sample.gaps().iter().map(|gap| gap.as_secs_f64()).collect();
    gaps.sort_by(f64::total_cmp);
    median(&gaps)
}

/// The longest time between two arrivals of an answer, in seconds.
pub fn longest_gap(sample: &Sample) -> Option<f64> {
    sample.gaps().into_iter().max().map(Length::as_secs_f64)
}
