//! Owns the ceiling: the most that a client takes in from a server that writes as fast as it can.

use denom::sim::ledger::Record;

use crate::process::{self, Folder, Server};
use crate::subject::{Peer, Subject, Task};
use crate::truth::{self, Truth, median};
use crate::{Compare, Failed};

/// Streams at once.
const STREAMS: u64 = 16;
/// Tokens of each.
const TOKENS: u64 = 20_000;

/// Runs each subject, and the bare client, in turn; prints tokens a second and processor time.
pub fn run(compare: &Compare) -> Result<(), Failed> {
    let own = std::env::current_exe()?;
    let limit = format!(
        "limit={} limit {{url}} {{model}} {{streams}} {{tokens}}",
        own.display()
    );
    let mut subjects = compare.subjects();
    subjects.push(Subject::Peer(Peer::parse(&limit)?));
    let mut seen = vec![Vec::new(); subjects.len()];
    for _ in 0..compare.runs {
        for (subject, runs) in subjects.iter().zip(&mut seen) {
            runs.push(once(subject)?);
        }
    }
    println!(
        "## Ingest ceiling\n\n{STREAMS} streams of {TOKENS} tokens as fast as they are taken, about 50 a write; medians of {} interleaved runs\n",
        compare.runs
    );
    println!(
        "| client | tok/s | ratio to the first | CPU ms per 1,000 tokens |\n| --- | ---: | ---: | ---: |"
    );
    let middle = |runs: &[(f64, f64)], pick: fn(&(f64, f64)) -> f64| {
        median(runs.iter().map(pick).collect()).unwrap_or(0.0)
    };
    let first = middle(&seen[0], |run| run.0);
    for (subject, runs) in subjects.iter().zip(&seen) {
        let rate = middle(runs, |run| run.0);
        println!(
            "| {} | {rate:.0} | {:.2} | {:.2} |",
            subject.name(),
            rate / first,
            middle(runs, |run| run.1)
        );
    }
    println!();
    Ok(())
}

/// Tokens a second while all streams were being served, and processor time on 1,000 tokens in
/// milliseconds.
fn once(subject: &Subject) -> Result<(f64, f64), Failed> {
    let folder = Folder::new()?;
    let (ledger, out) = (folder.file("ledger.jsonl"), folder.file("out"));
    let server = Server::start(&ledger)?;
    let task = Task {
        url: &server.url,
        model: "null",
        streams: STREAMS,
        requests: STREAMS,
        tokens: TOKENS,
        warmup: 1,
        out: out.to_str().ok_or("a path that is no text")?,
    };
    let used = process::client(&folder, &subject.command(&task)?)?;
    server.stop()?;
    let truth = Truth::read(&ledger)?;
    let cpu = used.cpu_ns as f64 / 1e3 / truth::tokens(&truth.requests).max(1) as f64;
    // What a client sends ahead of the others, alone, is no part of the flood.
    let flood = truth
        .requests
        .len()
        .saturating_sub(usize::try_from(STREAMS)?);
    let mut requests = truth.requests;
    requests.sort_by_key(|record| record.received_ns);
    Ok((rate(&requests[flood..]).ok_or("nothing came")?, cpu))
}

/// The socket takes no more than the client does, so the server's writes tell the client's pace:
/// between the last stream's first write and the first stream's last one, where there is such a
/// stretch; else over all of it.
fn rate(flood: &[Record]) -> Option<f64> {
    let ends = |record: &Record| {
        let mut at = truth::writes(record).map(|(at, _)| at);
        let first = at.next()?;
        Some((first, at.last()?))
    };
    let all: Vec<(u64, u64)> = flood.iter().filter_map(ends).collect();
    let from = all.iter().map(|(first, _)| *first).max()?;
    let to = all.iter().map(|(_, last)| *last).min()?;
    match from < to {
        true => truth::rate(flood, from, to),
        false => truth::rate(
            flood,
            all.iter().map(|(first, _)| *first).min()?,
            all.iter().map(|(_, last)| *last).max()?,
        ),
    }
}
