//! Owns the comparison of the rates that a tool wrote for single requests with their tokens ÷ latency.

use super::observe::Request;

/// The shares of requests whose rate a tool wrote and whose tokens ÷ latency are another.
pub fn rates_off(requests: &[Request], tolerance: f64) -> Option<RatesOff> {
    let both = |request: &&Request| request.stated_rate.is_some() && request.e2e_rate().is_some();
    let with: Vec<&Request> = requests.iter().filter(both).collect();
    let off: Vec<(f64, f64)> = with
        .iter()
        .filter_map(|request| Some((request.stated_rate?, request.e2e_rate()?)))
        .filter(|(stated, own)| (stated / own - 1.0).abs() > tolerance)
        .collect();
    let medians = (
        median(with.iter().filter_map(|request| request.stated_rate)),
        median(with.iter().filter_map(|request| request.e2e_rate())),
    );
    Some(RatesOff {
        off: off.len(),
        of: with.len(),
        stated: medians.0?,
        own: medians.1?,
    })
}

/// How the rates that a tool wrote compare with tokens ÷ latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatesOff {
    /// Requests whose two rates differ.
    pub off: usize,
    /// Of how many.
    pub of: usize,
    /// Median of what is written.
    pub stated: f64,
    /// Median of tokens ÷ latency.
    pub own: f64,
}

/// The middle value of a few, for a sentence; none where there is none.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}
