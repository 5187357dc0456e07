//! Owns the verdict on one path: does it stream, and if not, how it holds content back.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bundle::{self, Bundling, Cut};
use super::counted::{Counted, Lengthened, Obeyed};
use super::sample::Sample;
use super::slope::{Point, Residuals, Slope, residuals, share, slope};
use crate::rate::significant;

/// Requests of each length below which nothing is said.
const LEAST_EACH: usize = 3;
/// First content that waits for less than this share of the answer's time waits for nothing.
const STREAMS_BELOW: f64 = 0.25;
/// The same for the first quarter of the content, which takes a quarter of the time by itself.
const QUARTER_BELOW: f64 = 0.65;
/// First content that waits for more than this share waits for the answer.
const HOLDS_ABOVE: f64 = 0.5;

/// What a path does with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Content comes as it is made.
    Streams,
    /// Content comes whenever a buffer is full.
    BundlesBySize,
    /// Content comes whenever a timer fires.
    BundlesByTime,
    /// Content comes when the answer is done.
    Buffers,
    /// The experiment does not say.
    CannotTell,
}

impl Kind {
    /// Its name in JSON and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Streams => "streams",
            Kind::BundlesBySize => "bundles_by_size",
            Kind::BundlesByTime => "bundles_by_time",
            Kind::Buffers => "buffers",
            Kind::CannotTell => "cannot_tell",
        }
    }
}

/// One piece of evidence: a sentence, and its numbers by name. Times in s, sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// A short name that scripts may test for.
    pub code: &'static str,
    /// One sentence.
    pub text: String,
    /// Its numbers.
    pub values: BTreeMap<&'static str, f64>,
}

impl Evidence {
    pub(super) fn new(code: &'static str, text: String, values: &[(&'static str, f64)]) -> Self {
        let finite = values.iter().filter(|(_, value)| value.is_finite());
        Evidence {
            code,
            text,
            values: finite.copied().collect(),
        }
    }
}

/// The verdict with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What the path does.
    pub kind: Kind,
    /// That, in a sentence.
    pub text: String,
    /// Why, by a short name, where it cannot be told.
    pub reason: Option<&'static str>,
    /// What would be needed, where it cannot be told.
    pub needed: Option<String>,
    /// The size of a bundle in bytes, where size cuts them.
    pub bundle_bytes: Option<f64>,
    /// The time from bundle to bundle in seconds, where time cuts them.
    pub bundle_seconds: Option<f64>,
}

/// The two fits that everything rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fits {
    /// First content over output.
    pub first_content: Slope,
    /// What that line leaves.
    pub first_content_residuals: Residuals,
    /// End-to-end time over output.
    pub e2e: Slope,
    /// What that line leaves.
    pub e2e_residuals: Residuals,
    /// The share of an answer's time that its first content waits for: at least and at most.
    pub share: [f64; 2],
    /// The same for the first quarter of its content.
    pub quarter_share: [f64; 2],
}

/// Fits all three lines; none where a slope cannot be had, or time does not grow with output.
pub fn fits(samples: &[Sample], counted: Counted) -> Option<Fits> {
    let points = |time: fn(&Sample) -> crate::time::Length| -> Vec<Point> {
        let of = |sample: &Sample| Point {
            group: sample.group,
            x: counted.count(sample) as f64,
            y: time(sample).as_secs_f64(),
        };
        samples.iter().map(of).collect()
    };
    let (first, total) = (points(|s| s.first), points(|s| s.total));
    let (first_content, e2e) = (slope(&first)?, slope(&total)?);
    if e2e.low <= 0.0 {
        return None;
    }
    Some(Fits {
        first_content_residuals: residuals(&first, &first_content)?,
        e2e_residuals: residuals(&total, &e2e)?,
        share: share(&first, &total)?,
        quarter_share: share(&points(|s| s.quarter), &total)?,
        first_content,
        e2e,
    })
}

/// Judges one path. A short duration is no evidence here: only how times grow with output is, and
/// silence between bundles.
pub fn verdict(samples: &[Sample], lengthened: &Lengthened, fits: Option<&Fits>) -> Verdict {
    if let Some(verdict) = unfit(samples, lengthened) {
        return verdict;
    }
    let Some(fits) = fits else {
        return cannot(
            "no_slope",
            "the time of an answer does not grow with its length beyond its jitter",
            "longer answers: --lengths 64,256,1024",
        );
    };
    if let Some(bundling) = bundle::find(samples) {
        return bundled(samples, &bundling);
    }
    let quarter = fits.quarter_share;
    // Where service varies so much that the quarter is known badly, each long answer shows it.
    let longest = || samples.iter().filter(|sample| sample.group == 2);
    let spread = 2 * longest().filter(|s| s.is_spread()).count() > longest().count();
    if fits.share[1] < STREAMS_BELOW && (quarter[1] < QUARTER_BELOW || spread) {
        return plain(Kind::Streams, streams_text(fits));
    }
    let burst = 2 * longest().filter(|s| s.is_burst()).count() > longest().count();
    let held = fits.share[0] > HOLDS_ABOVE || quarter[0] > QUARTER_BELOW;
    if held && burst {
        if hides(samples) {
            return cannot(
                "hidden_reasoning",
                "the model thinks before it answers and keeps that back, so first content waits for the thinking, whatever the path does",
                "a model that does not think, or thinking turned off through --body",
            );
        }
        return plain(Kind::Buffers, buffers_text(samples, fits));
    }
    let waits = range(fits.share[0], fits.share[1]);
    cannot(
        "between",
        &format!(
            "first content waits for {waits} of an answer's time, which fits neither a path that streams nor one that holds the whole answer"
        ),
        "a quieter server or path, or longer answers: --lengths 64,256,1024",
    )
}

fn percent(share: f64) -> String {
    // A share of no more than half a hundredth below zero is none.
    let whole = (100.0 * share).round();
    format!("{} %", if whole == 0.0 { 0.0 } else { whole })
}

/// From one share to another, once where they print alike.
fn range(low: f64, high: f64) -> String {
    let (low, high) = (percent(low), percent(high));
    match low == high {
        true => format!("about {low}"),
        false => format!("{low} to {high}"),
    }
}

/// Why nothing can be said at all.
fn unfit(samples: &[Sample], lengthened: &Lengthened) -> Option<Verdict> {
    let each = [0, 1, 2].map(|group| samples.iter().filter(|s| s.group == group).count());
    if each.iter().any(|n| *n < LEAST_EACH) {
        let [short, middle, long] = each;
        return Some(cannot(
            "too_few",
            &format!("only {short}, {middle} and {long} answers of the three lengths were ok"),
            "at least three of each: look at the failures, then run it again",
        ));
    }
    if lengthened.obeyed == Obeyed::No {
        let medians = lengthened
            .medians
            .map(|m| m.map_or("no".into(), significant));
        return Some(cannot(
            "length_ignored",
            &format!(
                "the server ignores the output length asked for: {} of {} answers had it, and their medians are {} at the three lengths",
                lengthened.right,
                lengthened.of,
                medians.join(", ")
            ),
            "answers of three different lengths: a body that forbids an early end (--body with {\"ignore_eos\":true} where the server knows it), or prompts that lead to long answers (--prompts)",
        ));
    }
    None
}

fn hides(samples: &[Sample]) -> bool {
    let hides = |sample: &&Sample| {
        let tokens = &sample.judged.tokens;
        let pair = tokens.hidden.zip(tokens.billed);
        pair.is_some_and(|(hidden, billed)| 10 * hidden > billed)
    };
    2 * samples.iter().filter(hides).count() > samples.len()
}

fn plain(kind: Kind, text: String) -> Verdict {
    Verdict {
        kind,
        text,
        reason: None,
        needed: None,
        bundle_bytes: None,
        bundle_seconds: None,
    }
}

fn cannot(reason: &'static str, text: &str, needed: &str) -> Verdict {
    Verdict {
        reason: Some(reason),
        needed: Some(needed.to_owned()),
        ..plain(Kind::CannotTell, text.to_owned())
    }
}

fn streams_text(fits: &Fits) -> String {
    format!(
        "content comes as it is made: the first of it waits for at most {} of the answer's time",
        percent(fits.share[1].max(0.0))
    )
}

fn buffers_text(samples: &[Sample], fits: &Fits) -> String {
    let most = samples.iter().map(|sample| sample.body_bytes).max();
    let size = most.map_or(0.0, |bytes| bytes as f64 / 1024.0);
    if samples.iter().all(|sample| sample.whole) {
        return "the answer is one body, not a stream, though a stream was asked for".to_owned();
    }
    match fits.share[0] > HOLDS_ABOVE {
        true => format!(
            "the whole answer is held back until it is done, here up to {} KiB",
            significant(size)
        ),
        false => format!(
            "a first piece comes at once and all the rest is held back until the answer is done, here up to {} KiB",
            significant(size)
        ),
    }
}

fn bundled(samples: &[Sample], bundling: &Bundling) -> Verdict {
    let longest = || samples.iter().filter(|sample| sample.group == 2);
    if 2 * longest().filter(|s| s.client_bundled()).count() > longest().count() {
        return cannot(
            "client_bundled",
            "content came in bundles, and this client read too late to say that it did not make them itself",
            "a machine with an idle core",
        );
    }
    let events = significant(bundling.chunks);
    match bundling.cut {
        Cut::BySize(size) => Verdict {
            bundle_bytes: Some(size.middle),
            ..plain(
                Kind::BundlesBySize,
                format!(
                    "content comes in bundles of about {} KiB, {events} events each: whenever a buffer is full",
                    significant(size.middle / 1024.0)
                ),
            )
        },
        Cut::ByTime(time) => Verdict {
            bundle_seconds: Some(time.middle),
            ..plain(
                Kind::BundlesByTime,
                format!(
                    "content comes in bundles about every {:.0} ms, {events} events each: whenever a timer fires, or the sender waits for an acknowledgement",
                    time.middle * 1e3
                ),
            )
        },
        Cut::Irregular => cannot(
            "irregular_bundles",
            &format!(
                "content comes in bundles of {events} events on average that are alike neither in size nor in time"
            ),
            "the same experiment directly at the server, with --direct, to see which side makes them",
        ),
    }
}

/// The numbers behind a verdict.
pub fn evidence(samples: &[Sample], counted: Counted, fits: Option<&Fits>) -> Vec<Evidence> {
    let mut all = Vec::new();
    let unit = counted.name().trim_end_matches('s');
    if let Some(fits) = fits {
        all.push(grows(
            "first_content",
            "first content",
            &fits.first_content,
            unit,
        ));
        all.push(grows("end_to_end", "the whole answer", &fits.e2e, unit));
        let [low, high] = fits.share;
        all.push(Evidence::new(
            "held_share",
            format!(
                "so first content waits for {} of the time an answer takes (streams: below 25 %; holds: above 50 %)",
                range(low, high)
            ),
            &[("low", low), ("high", high)],
        ));
        all.extend(order(&fits.first_content_residuals, "first content"));
        all.extend(order(&fits.e2e_residuals, "the whole answer"));
    }
    all.extend(bundle::find(samples).map(|found| bundles(&found)));
    all
}

fn grows(code: &'static str, what: &str, slope: &Slope, unit: &str) -> Evidence {
    let [value, low, high] = [slope.value, slope.low, slope.high].map(|v| milli(v * 1e3));
    Evidence::new(
        code,
        format!(
            "{what} comes {value} ms later for each {unit} more ({low} to {high} ms, n {})",
            slope.n
        ),
        &[
            ("seconds_each", slope.value),
            ("low", slope.low),
            ("high", slope.high),
            ("n", slope.n as f64),
        ],
    )
}

fn milli(value: f64) -> String {
    match value.abs() < 0.0005 {
        true => "0".into(),
        false => significant(value),
    }
}

fn order(left: &Residuals, what: &str) -> Option<Evidence> {
    left.drift.then(|| {
        Evidence::new(
            "drift",
            format!(
                "{what} drifted over the experiment by {} of what the longest answer adds; each length stands equally often in each place of a block, so the slope does not rest on it",
                percent(left.drift_share)
            ),
            &[("tau", left.order_tau), ("share", left.drift_share)],
        )
    })
}

fn bundles(found: &Bundling) -> Evidence {
    let mut values = vec![("events", found.chunks)];
    let mut texts = Vec::new();
    if let Some(bytes) = found.bytes {
        values.extend([("bytes", bytes.middle), ("bytes_spread", bytes.relative)]);
        texts.push(format!(
            "{:.0} bytes (spread {})",
            bytes.middle,
            percent(bytes.relative)
        ));
    }
    if let Some(seconds) = found.seconds {
        values.extend([
            ("seconds", seconds.middle),
            ("seconds_spread", seconds.relative),
        ]);
        texts.push(format!(
            "{:.0} ms apart (spread {})",
            seconds.middle * 1e3,
            percent(seconds.relative)
        ));
    }
    Evidence::new(
        "bundles",
        format!(
            "silence stands between bundles of {} events, {}",
            significant(found.chunks),
            texts.join(", ")
        ),
        &values,
    )
}
