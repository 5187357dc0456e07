//! Owns the question whether content comes in bundles, and by what they are cut: size or time.

use super::sample::{BUNDLE_SPAN, Bundle, Sample};
use super::slope::median;

/// Silence from which what stands before and after it are bundles, in seconds.
const SILENCE: f64 = 0.020;
/// Times longer than between the events of a bundle that the silence must be.
const CONTRAST: f64 = 5.0;
/// Spread (mean distance from the median, over it) up to which sizes or times count as alike.
const ALIKE: f64 = 0.25;
/// What does the cutting varies by less than this share of an event; what follows from it varies
/// by whole events.
const EXACT: f64 = 0.2;
/// The share of values, the farthest from the median, that no spread rests on.
const TRIMMED: f64 = 0.1;
/// Whole bundles from which there is something to say.
const ENOUGH: usize = 3;

/// How content is bundled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cut {
    /// Bundles of about so many bytes.
    BySize(Spread),
    /// Bundles about so many seconds apart.
    ByTime(Spread),
    /// Bundles that are alike in neither.
    Irregular,
}

/// The middle of some values and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median.
    pub middle: f64,
    /// Mean distance from the median without the farthest tenth, over the median.
    pub relative: f64,
    /// The distance from the median that one in twenty exceeds, over the median.
    pub far: f64,
    /// Of how many.
    pub n: u64,
}

/// What was found of bundles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bundling {
    /// By what they are cut.
    pub cut: Cut,
    /// Events a bundle, on average.
    pub chunks: f64,
    /// Bytes of whole bundles.
    pub bytes: Option<Spread>,
    /// Seconds from bundle to bundle.
    pub seconds: Option<Spread>,
}

/// How the longest answers are bundled; none where they are not, or came as one.
pub fn find(samples: &[Sample]) -> Option<Bundling> {
    let longest: Vec<&Sample> = samples.iter().filter(|sample| sample.group == 2).collect();
    let bundled = longest.iter().filter(|sample| is_bundled(sample)).count();
    if bundled == 0 || 2 * bundled < longest.len() {
        return None;
    }
    // Shorter answers too: halves of every answer are alike in size at one length only.
    let of = |least: usize| -> Vec<&[Bundle]> {
        let used = samples.iter().filter(|sample| sample.group > 0);
        let long = used.filter(|sample| sample.bundles.len() >= least);
        long.map(|sample| sample.bundles.as_slice()).collect()
    };
    let used = of(2);
    let sizes_of = |used: &[&[Bundle]]| {
        let sizes = used.iter().flat_map(|bundles| sizes(bundles));
        spread(sizes.collect())
    };
    // A first bundle shares its buffer with the head: it counts only where there is no other.
    let bytes = sizes_of(&of(3)).or(sizes_of(&used));
    let seconds = spread(used.iter().flat_map(|bundles| steps(bundles)).collect());
    let rests = used.iter().filter_map(|bundles| bundles.last());
    let full = spread(used.iter().flat_map(|bundles| events(bundles)).collect());
    let most = full.map(|full| most_left(full, seconds));
    let over = |rest: &&Bundle| most.is_some_and(|most| rest.chunks as f64 > most);
    let larger = 2 * rests.filter(over).count() > used.len();
    let bytes = bytes.filter(|_| !larger);
    let of_longest = || longest.iter().flat_map(|sample| &sample.bundles);
    let chunks: u64 = of_longest().map(|bundle| bundle.chunks).sum();
    let all_bytes: u64 = of_longest().map(|bundle| bundle.bytes).sum();
    Some(Bundling {
        cut: cut(bytes, seconds, all_bytes as f64 / chunks as f64),
        chunks: chunks as f64 / of_longest().count() as f64,
        bytes,
        seconds,
    })
}

/// Several events a bundle, and silence between bundles that is far longer than between the
/// events of one. Bundles of a steady fast stream follow each other at its own pace instead.
fn is_bundled(sample: &Sample) -> bool {
    let bundles = &sample.bundles;
    let chunks: u64 = bundles.iter().map(|bundle| bundle.chunks).sum();
    // A sender that loses its processor sends what is due late, but most events still alone.
    if chunks < 2 * sample.judged.arrivals.len() as u64 {
        return false;
    }
    let full = whole(bundles);
    let in_full: u64 = full.iter().map(|bundle| bundle.chunks).sum();
    if full.is_empty() || in_full < 2 * full.len() as u64 || chunks == bundles.len() as u64 {
        return false;
    }
    let mut silences: Vec<f64> = bundles
        .windows(2)
        .map(|pair| pair[1].at.since_or_zero(pair[0].last).as_secs_f64())
        .collect();
    silences.sort_by(f64::total_cmp);
    let inside: f64 = bundles
        .iter()
        .map(|bundle| bundle.last.since_or_zero(bundle.at).as_secs_f64())
        .sum();
    let inner = inside / (chunks - bundles.len() as u64) as f64;
    median(&silences).is_some_and(|silence| silence >= SILENCE && silence >= CONTRAST * inner)
}

/// Whole bundles: the last one is what was left, and the first, where others stand between,
/// shared its buffer with the head.
fn whole(bundles: &[Bundle]) -> &[Bundle] {
    let whole = &bundles[..bundles.len().saturating_sub(1)];
    whole
        .get(1..)
        .filter(|rest| !rest.is_empty())
        .unwrap_or(whole)
}

/// Sizes of whole bundles.
fn sizes(bundles: &[Bundle]) -> Vec<f64> {
    whole(bundles)
        .iter()
        .map(|bundle| bundle.bytes as f64)
        .collect()
}

/// The most events that may be left at the end of an answer: what a full buffer holds, and what
/// comes so soon after one that the two are joined. Bytes do not tell: what ends a stream comes
/// with it, and may fill a small buffer once more.
fn most_left(full: Spread, seconds: Option<Spread>) -> f64 {
    let joined = seconds.map_or(0.0, |step| {
        BUNDLE_SPAN.as_secs_f64() / step.middle * full.middle
    });
    1.25 * full.middle + joined + 1.0
}

/// Events of whole bundles.
fn events(bundles: &[Bundle]) -> Vec<f64> {
    whole(bundles)
        .iter()
        .map(|bundle| bundle.chunks as f64)
        .collect()
}

/// Times from bundle to bundle, without the last: the end of the answer let that one go.
fn steps(bundles: &[Bundle]) -> Vec<f64> {
    let whole = &bundles[..bundles.len().saturating_sub(1)];
    whole
        .windows(2)
        .map(|pair| pair[1].at.since_or_zero(pair[0].at).as_secs_f64())
        .collect()
}

fn spread(mut values: Vec<f64>) -> Option<Spread> {
    if values.len() < ENOUGH {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let middle = median(&values)?;
    let mut apart: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    apart.sort_by(f64::total_cmp);
    let far = apart[(apart.len() - 1) * 19 / 20];
    apart.truncate(values.len() - (values.len() as f64 * TRIMMED) as usize);
    let mean = apart.iter().sum::<f64>() / apart.len() as f64;
    Some(Spread {
        middle,
        relative: mean / middle,
        far: far / middle,
        n: values.len() as u64,
    })
}

/// By what bundles are cut, where an event has about so many bytes.
fn cut(bytes: Option<Spread>, seconds: Option<Spread>, event: f64) -> Cut {
    let alike = |spread: Option<Spread>| spread.filter(|spread| spread.relative <= ALIKE);
    match (alike(bytes), alike(seconds)) {
        (None, None) => Cut::Irregular,
        (Some(bytes), None) => Cut::BySize(bytes),
        (None, Some(seconds)) => Cut::ByTime(seconds),
        (Some(bytes), Some(seconds)) => match is_size(bytes, seconds, event) {
            true => Cut::BySize(bytes),
            false => Cut::ByTime(seconds),
        },
    }
}

/// Whether size does the cutting where sizes and times are both alike. A full buffer is the same
/// to within a part of an event, and the time until it is full varies by whole events; a timer
/// the other way round. At a pace that fits into both, a full buffer still has a round size.
fn is_size(bytes: Spread, seconds: Spread, event: f64) -> bool {
    let share = event / bytes.middle;
    match (
        bytes.far <= EXACT * share,
        seconds.relative <= EXACT * share,
    ) {
        (true, true) => is_round(bytes.middle),
        (true, false) => true,
        (false, true) => false,
        (false, false) => 2.0 * bytes.far < seconds.relative,
    }
}

/// Within a five-hundredth of a whole number of KiB; of half ones below 4.
fn is_round(bytes: f64) -> bool {
    let step = if bytes < 4096.0 { 512.0 } else { 1024.0 };
    let nearest = (bytes / step).round().max(1.0) * step;
    (bytes - nearest).abs() <= nearest / 500.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_that_joins_a_full_buffer_is_still_a_rest() {
        let of = |middle| Spread {
            middle,
            relative: 0.0,
            far: 0.0,
            n: 30,
        };
        // Six events of 10 ms fill it: with the two of the last 20 ms that is eight, or nine.
        assert!(most_left(of(6.0), Some(of(0.06))) >= 9.0);
        // Two timers' worth is no rest.
        assert!(most_left(of(16.0), Some(of(0.2))) < 24.0);
        assert!(most_left(of(6.0), None) < 9.0);
    }

    #[test]
    fn where_sizes_and_times_are_exact_a_round_size_decides() {
        let exact = |middle| {
            Some(Spread {
                middle,
                relative: 0.0,
                far: 0.0,
                n: 30,
            })
        };
        let by_size = |bytes| matches!(cut(exact(bytes), exact(0.08), 197.0), Cut::BySize(_));
        for bytes in [512.0, 1_024.0, 1_536.0, 3_584.0, 4_096.0, 16_384.0] {
            assert!(by_size(bytes), "{bytes}");
        }
        for bytes in [1_576.0, 1_970.0, 4_608.0] {
            assert!(!by_size(bytes), "{bytes}");
        }
    }
}
