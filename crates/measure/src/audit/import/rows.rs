//! Owns the lists of `--save-detailed` and `--output-details`: one entry a request in each.

use serde_json::Value;

use super::fields::{as_count, as_num, length, list};
use crate::audit::form::{Row, Rows, Seen};
use crate::time::Length;
use crate::tokens::Source;

/// The requests of a flat result with the lists `ttfts`, `itls` and `output_lens`.
pub fn detailed(value: &Value) -> Rows {
    let (ttfts, gaps) = (list(value, "/ttfts"), list(value, "/itls"));
    if ttfts.is_empty() || gaps.len() != ttfts.len() {
        return Rows::None;
    }
    let starts: Vec<f64> = list(value, "/start_times")
        .iter()
        .filter_map(as_num)
        .collect();
    let origin = starts.iter().copied().fold(f64::INFINITY, f64::min);
    let at = |path: &str, index: usize| {
        list(value, path)
            .get(index)
            .and_then(as_num)
            .and_then(as_count)
    };
    let row = |(index, (ttft, gaps)): (usize, (&Value, &Value))| {
        let ttft = as_num(ttft);
        let failed = list(value, "/errors")
            .get(index)
            .and_then(Value::as_str)
            .is_some_and(|error| !error.is_empty());
        let seen = stamps(ttft, gaps);
        Row {
            start: starts
                .get(index)
                .filter(|_| starts.len() == ttfts.len())
                .and_then(|start| length(start - origin)),
            ok: !failed,
            e2e: match &seen {
                Seen::All(stamps) => stamps.last().copied(),
                _ => None,
            },
            seen,
            ttft,
            output: at("/output_lens", index),
            source: Source::Server,
            input: at("/input_lens", index),
            limit: None,
            stated_rate: None,
        }
    };
    let all = ttfts.iter().zip(gaps).enumerate().map(row);
    Rows::Written(all.collect())
}

/// Stamps from the first and the gaps after it; 0 stands for a failed request.
pub fn stamps(first: Option<f64>, gaps: &Value) -> Seen {
    let Some(first) = first.filter(|first| *first > 0.0).and_then(length) else {
        return Seen::Nothing;
    };
    let gaps = gaps.as_array().map_or(&[][..], Vec::as_slice);
    match run_up(first, gaps.iter().map(as_num)) {
        Some(stamps) => Seen::All(stamps),
        None => Seen::Nothing,
    }
}

/// Running sums; none where a gap is negative or no number.
pub fn run_up(first: Length, gaps: impl Iterator<Item = Option<f64>>) -> Option<Vec<Length>> {
    let mut stamps = vec![first];
    for gap in gaps {
        let last = stamps.last().copied()?;
        stamps.push(last + length(gap?)?);
    }
    Some(stamps)
}
