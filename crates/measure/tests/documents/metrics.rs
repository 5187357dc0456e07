//! Owns the holding of METRICS.md against the code: its worked examples, and the names it must list.

use std::fs;
use std::path::Path;

use measure::basis::{Load, Loop};
use measure::judge::{Guards, judge};
use measure::record::Level;
use serde_json::Value;

use crate::runs::{File, closed, steady, stream};

const METRICS: &str = include_str!("../../../../METRICS.md");

/// The number that the document prints as `text`.
fn printed(text: &str) -> f64 {
    assert!(METRICS.contains(text), "METRICS.md does not say {text}");
    text.replace(',', "").parse().expect("a number")
}

/// The document's number is the code's, rounded to the digits it is printed with.
fn agrees(found: &Value, text: &str) {
    let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let found = found
        .as_f64()
        .unwrap_or_else(|| panic!("no value for {text}"));
    let limit = 0.5001 / 10_f64.powi(digits as i32);
    let off = (found - printed(text)).abs();
    assert!(off <= limit, "METRICS.md says {text} and the code {found}");
}

#[test]
fn the_burst_is_as_the_document_says() {
    let reads: Vec<_> = (0..4).map(|i| (1_000_000 + i * 300, 250, 1_000)).collect();
    let request = judge(stream(0, &reads), &Guards::default(), true);
    let reasons: Vec<_> = request.reasons.iter().map(|r| r.name()).collect();
    assert_eq!(
        (request.arrivals.len(), reasons),
        (4, vec!["one_burst", "short"])
    );
    let level = Level {
        plan: closed(0, 1, true),
        requests: vec![request],
        end: None,
        open: 0,
        unmatched: 0,
        gaps: Vec::new(),
        ceiling: None,
    };
    let load = Load {
        kind: Loop::Closed,
        target_milli: 1_000,
        held_milli: None,
    };
    let rows = measure::rows::rows(&level, load);
    let row = serde_json::to_value(&rows[0]).expect("a row serialises");
    assert_eq!(row["rate_used"], "e2e_rate");
    assert_eq!(row["ttft_s"], Value::Null);
    agrees(&row["e2e_rate"]["value"], "999.1");
    agrees(&row["naive"]["value"], "1,111,111");
}

/// Both levels of the second example: one stream and 12 requests, sixteen streams and 96.
fn levels() -> Value {
    let mut file = File::new(vec![closed(0, 1, true), closed(1, 16, false)]);
    for i in 0..13 {
        let mut trace = steady(i * 1_370_000, 100_000, 10_000, 128);
        trace.warmup = i == 0;
        file.add(0, 0, trace);
    }
    let from = 20_000_000;
    for i in 0..7 * 16 {
        let (round, stream) = (i / 16, i % 16);
        let mut trace = steady(from + round * 4_364_000, 300_000, 32_000, 128);
        trace.warmup = round == 0;
        file.add(1, stream as u32, trace);
    }
    serde_json::to_value(file.finished()).expect("a report serialises")["levels"].take()
}

#[test]
fn sixteen_streams_are_as_the_document_says() {
    let levels = levels();
    let rate = |level: usize, name: &str| levels[level]["per_stream"][name].clone();
    for (level, generation, e2e, system) in [
        (0, "100.00", "93.43", "93.43"),
        (1, "31.25", "29.33", "469.29"),
    ] {
        agrees(&rate(level, "generation")["p50"]["value"], generation);
        agrees(&rate(level, "end_to_end")["p50"]["value"], e2e);
        agrees(&rate(level, "ratio_of_sums")["value"], e2e);
        agrees(&levels[level]["system"]["output"]["value"], system);
        assert_eq!(levels[level]["verdict"]["valid"], true);
        assert_eq!(levels[level]["window"]["rule"], "steady");
    }
    let output = |level: usize, part: &str| levels[level]["system"]["output"][part].clone();
    agrees(&output(0, "interval")["seconds"], "16.440");
    agrees(&output(0, "numerator")["count"], "1,536");
    agrees(&output(1, "interval")["seconds"], "26.184");
    agrees(&output(1, "numerator")["count"], "12,288");
    agrees(&rate(1, "share_of_baseline")["value"], "0.3125");
    agrees(&rate(1, "e2e_share_of_baseline")["value"], "0.3139");
    assert_eq!(levels[1]["load"]["held"], 16.0);
}

/// The code's text without its tests.
fn sources(folder: &Path, found: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            let text = fs::read_to_string(&path).expect("a source is text");
            found.push_str(text.split("#[cfg(test)]").next().unwrap_or_default());
        }
    }
}

/// The first quoted word within a few characters after each `mark`.
fn quoted<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    let after = text.split(mark).skip(1);
    let word = |rest: &'a str| {
        let rest = rest.trim_start().strip_prefix('"')?;
        rest.split('"').next()
    };
    after.filter_map(word).collect()
}

#[test]
fn every_code_and_name_is_listed() {
    let mut text = String::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut text,
    );
    let codes = [quoted(&text, "Withheld::new("), quoted(&text, "code: ")].concat();
    assert!(codes.len() > 40, "only {} codes were found", codes.len());
    let mut names = codes;
    for kind in ["Failure::", "Reason::", "Shape::", "Flag::"] {
        let arms = text.split(kind).skip(1);
        let arms = arms.filter_map(|rest| rest.split_once('\n'));
        names.extend(arms.flat_map(|(line, _)| quoted(line, "=> ")));
    }
    for must in [
        "buffered",
        "few_chunks",
        "stop_token",
        "http_error",
        "books",
    ] {
        assert!(names.contains(&must), "the search no longer finds {must}");
    }
    for name in names {
        let listed = METRICS.contains(&format!("`{name}`"));
        assert!(listed, "METRICS.md does not list {name:?}");
    }
}
