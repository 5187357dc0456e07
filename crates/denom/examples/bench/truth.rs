//! Owns the truth: what the server's ledger says, whole or of some requests.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use denom::sim::ledger::Record;

use crate::Failed;

/// The requests of a ledger.
pub struct Truth {
    /// By the server's reckoning, all but those of no output.
    pub requests: Vec<Record>,
}

/// Lengths of one kind, sorted, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Lengths(Vec<u64>);

impl Lengths {
    /// Of these, in any order.
    pub fn of(all: impl IntoIterator<Item = u64>) -> Self {
        let mut all: Vec<u64> = all.into_iter().collect();
        all.sort_unstable();
        Lengths(all)
    }

    /// The quantile by rank, in milliseconds: the least that `percent` in a hundred do not exceed.
    pub fn at(&self, percent: usize) -> Option<f64> {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).map(|nanos| *nanos as f64 / 1e6)
    }
}

/// The writes of a request that brought tokens, as instants and counts.
pub fn writes(record: &Record) -> impl Iterator<Item = (u64, u64)> {
    let bring = record.writes.iter().filter(|write| write.tokens > 0);
    bring.map(|write| (write.at, u64::from(write.tokens)))
}

impl Truth {
    /// Reads a ledger.
    pub fn read(ledger: &Path) -> Result<Self, Failed> {
        let mut requests = Vec::new();
        for line in BufReader::new(std::fs::File::open(ledger)?).lines() {
            requests.push(serde_json::from_str(&line?)?);
        }
        Ok(Truth { requests })
    }

    /// Requests by the name that the client gave them.
    pub fn by_name(&self) -> HashMap<&str, &Record> {
        let all = self.requests.iter();
        all.filter_map(|record| Some((record.request.as_deref()?, record)))
            .collect()
    }
}

/// Tokens of these requests.
pub fn tokens<'a>(records: impl IntoIterator<Item = &'a Record>) -> u64 {
    records.into_iter().flat_map(writes).map(|(_, n)| n).sum()
}

/// From the moment a request was taken in to its first token.
pub fn first<'a>(records: impl IntoIterator<Item = &'a Record>) -> Lengths {
    Lengths::of(records.into_iter().filter_map(|record| {
        let (at, _) = writes(record).next()?;
        Some(at.saturating_sub(record.received_ns))
    }))
}

/// Between two writes with tokens of one request.
pub fn gaps<'a>(records: impl IntoIterator<Item = &'a Record>) -> Lengths {
    Lengths::of(records.into_iter().flat_map(|record| {
        let at: Vec<u64> = writes(record).map(|(at, _)| at).collect();
        let gaps: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps
    }))
}

/// The median of the requests' own rates, in tokens a second: tokens after the first write over
/// the time that they took.
pub fn per_stream<'a>(records: impl IntoIterator<Item = &'a Record>) -> Option<f64> {
    let rates = records.into_iter().filter_map(|record| {
        let all: Vec<(u64, u64)> = writes(record).collect();
        let ((from, first), (to, _)) = (*all.first()?, *all.last()?);
        let tokens: u64 = all.iter().map(|(_, n)| n).sum::<u64>() - first;
        (to > from).then(|| tokens as f64 * 1e9 / (to - from) as f64)
    });
    median(rates.collect())
}

/// Tokens a second that the server wrote from one instant to another.
pub fn rate<'a>(records: impl IntoIterator<Item = &'a Record>, from: u64, to: u64) -> Option<f64> {
    let inside = |(at, _): &(u64, u64)| (from..to).contains(at);
    let written = records.into_iter().flat_map(writes).filter(inside);
    let tokens: u64 = written.map(|(_, n)| n).sum();
    (to > from).then(|| tokens as f64 * 1e9 / (to - from) as f64)
}

/// Tokens a second from the first request taken in to the last write.
pub fn whole<'a>(records: impl Iterator<Item = &'a Record> + Clone) -> Option<f64> {
    let from = records.clone().map(|record| record.received_ns).min()?;
    let writes = records.clone().flat_map(writes);
    let to = writes.map(|(at, _)| at).max()?;
    rate(records, from, to + 1)
}

/// The middle value, of two the lower.
pub fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    let last = all.len().checked_sub(1)?;
    Some(all[last / 2])
}
