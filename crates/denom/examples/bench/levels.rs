//! Owns the tables of errors and cost: what a client reads above the ledger, by streams.

use std::collections::HashMap;
use std::path::Path;

use denom::record_file;
use denom::sim::ledger::Record;
use measure::judge::{Judged, Outcome};
use measure::record::Run;
use measure::report;
use measure::time::Instant;

use crate::process::{self, Folder, Server, Used};
use crate::stated;
use crate::subject::{Subject, Task};
use crate::truth::{self, Lengths, Truth, median};
use crate::{Compare, Failed};

/// The simulated server's script: 100 ms to the first token, then one each 10 ms.
const MODEL: &str = "paced100";
/// The plan of that script, in milliseconds.
const FIRST: f64 = 100.0;
/// A first token later than planned by more than this at p99: the server did not hold its plan.
const HELD: f64 = 1.0;

/// Requests that a valid level needs.
const LEAST: u64 = 6;

/// Rows that denom and a peer both have.
pub const FIRST_P50: &str = "TTFT p50 above ledger, ms";
pub const FIRST_P99: &str = "TTFT p99 above ledger, ms";
pub const GAP_P50: &str = "gap p50 above ledger, ms";
pub const GAP_P99: &str = "gap p99 above ledger, ms";
pub const ONE_STREAM: &str = "one stream's rate, % off";
pub const SYSTEM: &str = "system rate, % off";

/// A run's values by name; the names are the table's rows.
pub type Values = Vec<(&'static str, Option<f64>)>;

/// Runs each subject at each number of streams, in turn, and prints a table for each number.
pub fn run(compare: &Compare) -> Result<(), Failed> {
    let subjects = compare.subjects();
    println!(
        "## Errors and cost\n\n{} tokens an answer, the first at 100 ms, then one each 10 ms; requests a stream: {}, all at once (at one stream at least {LEAST}, one after the other); medians of {} interleaved runs\n",
        compare.tokens, compare.rounds, compare.runs
    );
    for &streams in &compare.streams {
        let mut seen: Vec<Vec<Values>> = vec![Vec::new(); subjects.len()];
        for _ in 0..compare.runs {
            for (subject, runs) in subjects.iter().zip(&mut seen) {
                runs.push(once(subject, streams, compare)?);
            }
        }
        print(streams, &subjects, &seen);
    }
    Ok(())
}

/// One run of one subject against a server of its own.
fn once(subject: &Subject, streams: u64, compare: &Compare) -> Result<Values, Failed> {
    let folder = Folder::new()?;
    let (ledger, out) = (folder.file("ledger.jsonl"), folder.file("out"));
    let server = Server::start(&ledger)?;
    let task = Task {
        url: &server.url,
        model: MODEL,
        streams,
        requests: (streams * compare.rounds).max(LEAST),
        tokens: compare.tokens,
        warmup: 1,
        out: out.to_str().ok_or("a path that is no text")?,
    };
    let used = process::client(&folder, &subject.command(&task)?)?;
    server.stop()?;
    let truth = Truth::read(&ledger)?;
    match subject {
        Subject::Denom(_) => own(&out, &truth, &used),
        Subject::Peer(_) => {
            let mut values = stated::errors(&out, &truth);
            values.extend(cost(&truth, &used));
            Ok(values)
        }
    }
}

/// By how much a client's number is above the ledger's.
pub fn above(own: Option<f64>, truth: Option<f64>) -> Option<f64> {
    Some(own? - truth?)
}

/// By how many percent it is off.
pub fn off(own: Option<f64>, truth: Option<f64>) -> Option<f64> {
    Some((own? / truth? - 1.0) * 100.0)
}

/// What any client can be held to from outside.
fn cost(truth: &Truth, used: &Used) -> Values {
    let all = || truth.requests.iter();
    let tokens = truth::tokens(all());
    vec![
        ("ledger TTFT p50, ms", truth::first(all()).at(50)),
        ("ledger TTFT p99, ms", truth::first(all()).at(99)),
        ("ledger gap p99, ms", truth::gaps(all()).at(99)),
        ("ledger tok/s, one stream", truth::per_stream(all())),
        (
            "CPU ms per 1,000 tokens",
            Some(used.cpu_ns as f64 / 1e3 / tokens.max(1) as f64),
        ),
        ("peak memory, MiB", Some(used.peak_kib as f64 / 1_024.0)),
        ("wall, s", Some(used.wall_ns as f64 / 1e9)),
        ("exit code", used.code.map(f64::from)),
    ]
}

/// A measured request with the ledger's record of it.
type Pair<'a> = (&'a Judged, &'a Record);

fn own(records: &Path, truth: &Truth, used: &Used) -> Result<Values, Failed> {
    let run = record_file::read(records, None).map_err(|failure| failure.text)?;
    let named = truth.by_name();
    let level = run.levels.first().ok_or("no level")?;
    let pairs: Vec<Pair<'_>> = level
        .requests
        .iter()
        .filter(|request| !request.trace.warmup && request.outcome == Outcome::Ok)
        .filter_map(|request| {
            let name = format!("denom-{}-{}", run.header.run, request.trace.id);
            Some((request, *named.get(name.as_str())?))
        })
        .collect();
    let served = || pairs.iter().map(|(_, record)| *record);
    let written = truth::tokens(truth.requests.iter());
    let requests = level.requests.iter();
    let arrived: u64 = requests.map(|request| request.arrivals.chunks()).sum();
    let mut values = times(&run, &pairs);
    values.extend(rates(&run, served(), truth));
    values.push(("tokens lost", Some(written as f64 - arrived as f64)));
    let cpu = level.end.as_ref().and_then(|end| end.cpu);
    values.push((
        "CPU ms per 1,000 tokens, while driving",
        cpu.map(|cpu| cpu.nanos() as f64 / 1e3 / written.max(1) as f64),
    ));
    values.extend(cost(truth, used));
    Ok(values)
}

fn times(run: &Run, pairs: &[Pair<'_>]) -> Values {
    let absolute = |at: Instant| {
        let since = at.since_or_zero(Instant::ORIGIN).nanos();
        run.header.origin_monotonic_ns + since
    };
    let first = Lengths::of(pairs.iter().filter_map(|(request, _)| {
        let trace = &request.trace;
        Some(trace.first_content?.since_or_zero(trace.sent?).nanos())
    }));
    let between = Lengths::of(
        pairs
            .iter()
            .flat_map(|(request, _)| request.arrivals.gaps().map(|gap| gap.nanos())),
    );
    // Both clocks are the machine's monotonic one, so the way there and the way back stand apart.
    let there = Lengths::of(pairs.iter().filter_map(|(request, record)| {
        let sent = absolute(request.trace.sent?);
        Some(record.received_ns.saturating_sub(sent))
    }));
    let back = Lengths::of(pairs.iter().filter_map(|(request, record)| {
        let (written, _) = truth::writes(record).next()?;
        Some(absolute(request.trace.first_content?).saturating_sub(written))
    }));
    let served = || pairs.iter().map(|(_, record)| *record);
    let (true_first, true_gaps) = (truth::first(served()), truth::gaps(served()));
    let above = |own: &Lengths, truth: &Lengths, percent| above(own.at(percent), truth.at(percent));
    vec![
        (FIRST_P50, above(&first, &true_first, 50)),
        (FIRST_P99, above(&first, &true_first, 99)),
        ("· sent to taken in by the server p99, ms", there.at(99)),
        ("· written to read p99, ms", back.at(99)),
        (GAP_P50, above(&between, &true_gaps, 50)),
        (GAP_P99, above(&between, &true_gaps, 99)),
    ]
}

fn rates<'a>(run: &Run, served: impl Iterator<Item = &'a Record>, truth: &Truth) -> Values {
    let report = report::build(run, run.header.guards());
    let Some(level) = report.levels.first() else {
        return Vec::new();
    };
    let one = level.per_stream.generation.median().value;
    let origin = run.header.origin_monotonic_ns;
    let whole = level.window.and_then(|window| {
        let at = |seconds: f64| origin + (seconds * 1e9).round() as u64;
        truth::rate(&truth.requests, at(window.start_s), at(window.end_s))
    });
    vec![
        (ONE_STREAM, off(one, truth::per_stream(served))),
        (SYSTEM, off(level.system.output.value(), whole)),
        (
            "level valid (1) or not (0)",
            Some(f64::from(u8::from(level.verdict.valid))),
        ),
    ]
}

fn print(streams: u64, subjects: &[Subject], seen: &[Vec<Values>]) {
    let mut rows: Vec<&'static str> = Vec::new();
    for (name, _) in seen.iter().flatten().flatten() {
        if !rows.contains(name) {
            rows.push(name);
        }
    }
    let columns: Vec<HashMap<&str, f64>> = seen.iter().map(|runs| middle(runs)).collect();
    let names: Vec<String> = subjects.iter().map(Subject::name).collect();
    println!("### {streams} streams\n");
    println!("| | {} |", names.join(" | "));
    println!("| --- |{}", " ---: |".repeat(names.len()));
    for row in rows {
        let cells = columns.iter().zip(0..).map(|(column, place)| {
            let Some(value) = column.get(row) else {
                return "–".to_owned();
            };
            match columns[0].get(row).filter(|_| place > 0 && is_cost(row)) {
                Some(own) if *own > 0.0 => format!("{value:.2} ({:.2} ×)", value / own),
                _ => format!("{value:.2}"),
            }
        });
        println!("| {row} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    let late = |column: &HashMap<&str, f64>| {
        column
            .get("ledger TTFT p99, ms")
            .is_some_and(|first| *first > FIRST + HELD)
    };
    for (name, _) in names.iter().zip(&columns).filter(|(_, c)| late(c)) {
        println!(
            "\nThe server did not hold its schedule against {name}: compare with the ledger only."
        );
    }
    println!();
}

/// Rows that are shown as ratios to the first column too.
fn is_cost(row: &str) -> bool {
    row == "CPU ms per 1,000 tokens" || row == "peak memory, MiB"
}

/// The median of each row over a subject's runs.
fn middle(runs: &[Values]) -> HashMap<&'static str, f64> {
    let mut all: HashMap<&'static str, Vec<f64>> = HashMap::new();
    for (name, value) in runs.iter().flatten() {
        all.entry(name).or_default().extend(value);
    }
    all.into_iter()
        .filter_map(|(name, values)| Some((name, median(values)?)))
        .collect()
}
