//! Owns the text summary of MLPerf's LoadGen.

use super::console::Block;
use super::fields::{Kind, kind};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Stat, Tool};

/// The line that a summary begins with.
pub const TITLE: &str = "MLPerf Results Summary";
/// The most lines of a summary that are read.
const MOST_LINES: usize = 2_000;
const NANO: f64 = 1e-9;

/// The summary in a text.
pub fn from_text(text: &str) -> Option<(Tool, Vec<Run>)> {
    let start = text.find(TITLE)?;
    let mut block = Block::default();
    for line in text[start..].lines().take(MOST_LINES) {
        block.take(line.trim());
    }
    Some((Tool::Loadgen, vec![run(&block)]))
}

fn run(block: &Block) -> Run {
    let mut run = Run::new();
    run.label = block.word("Scenario").map(str::to_owned);
    run.config.request_rate = block.number("target_qps").filter(|_| {
        block
            .word("Scenario")
            .is_some_and(|scenario| scenario == "Server")
    });
    run.config.unlimited = run.config.request_rate.is_none();
    run.books.completed = block
        .number("sample count")
        .or_else(|| block.number("samples"));
    run.books.cut_short = block
        .word("Result is")
        .is_some_and(|result| result != "VALID");
    for (labels, of) in [
        (
            ["Completed samples per second", "Samples per second"],
            kind(Metric::Requests, means::REQUESTS_COMPLETED),
        ),
        (
            ["Completed tokens per second", "Tokens per second"],
            kind(Metric::SystemOutput, means::OUTPUT_LONGEST),
        ),
    ] {
        let found = labels
            .iter()
            .find_map(|label| block.number(label).map(|value| (*label, value)));
        if let Some((label, value)) = found {
            run.state(of, Stat::Value, label, Some(value));
        }
    }
    for (name, metric, definition) in [
        ("latency (ns)", Metric::E2e, means::E2E),
        ("First Token latency (ns)", Metric::Ttft, means::TTFT_SUT),
        (
            "Time to Output Token (ns)",
            Metric::Tpot,
            means::TPOT_TO_END,
        ),
    ] {
        let of = Kind {
            metric,
            scale: NANO,
            definition,
        };
        family(&mut run, block, name, of);
    }
    run
}

/// `Min …`, `Max …`, `Mean …` and `99.00 percentile …` of one name.
fn family(run: &mut Run, block: &Block, name: &str, of: Kind) {
    let plain = name.trim_end_matches(" (ns)");
    for (label, value) in &block.numbers {
        let stat = if let Some(word) = label.strip_suffix(name) {
            Stat::of_key(&word.trim().to_ascii_lowercase()).or_else(|| percentile(word.trim(), ""))
        } else {
            percentile(label, plain)
        };
        if let Some(stat) = stat {
            run.state(of, stat, label, Some(*value));
        }
    }
}

fn percentile(label: &str, plain: &str) -> Option<Stat> {
    let (digits, rest) = label.split_once(" percentile")?;
    let rest = rest.trim().trim_end_matches("(ns)").trim();
    let same = rest.eq_ignore_ascii_case(plain);
    digits
        .trim()
        .parse()
        .ok()
        .filter(|_| same)
        .and_then(Stat::quantile)
}
