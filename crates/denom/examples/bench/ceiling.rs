//! Owns the ceiling: the most that a client takes in from a server that writes as fast as it can.

use std::path::Path;

use denom::record_file;
use measure::time::Instant;

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
        "## Ingest ceiling\n\n{STREAMS} streams of {TOKENS} tokens as fast as they are taken, about 50 a write, from the server's first write to denom's last read, to a peer's end; medians of {} interleaved runs\n",
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

/// Tokens a second from the server's first write to the client's last read, and processor time on
/// 1,000 tokens in milliseconds. Sockets hold whole answers, so the server's last write tells
/// nothing; of a peer only its end is known, and what it does after its last read is in it.
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
    let end = match subject {
        Subject::Denom(_) => last_read(&out)?,
        Subject::Peer(_) => used.end_ns,
    };
    let mut requests = truth.requests;
    requests.sort_by_key(|record| record.received_ns);
    // What a client sends ahead of the others, alone, is no part of the flood.
    let ahead = requests.len().saturating_sub(usize::try_from(STREAMS)?);
    let flood = &requests[ahead..];
    let firsts = flood
        .iter()
        .filter_map(|record| truth::writes(record).next());
    let first = firsts.map(|(at, _)| at).min().ok_or("nothing was sent")?;
    let seconds = end.saturating_sub(first) as f64 / 1e9;
    Ok((truth::tokens(flood) as f64 / seconds, cpu))
}

/// When the last content was read, by the machine's monotonic clock.
fn last_read(records: &Path) -> Result<u64, Failed> {
    let run = record_file::read(records, None).map_err(|failure| failure.text)?;
    let traces = run.levels.iter().flat_map(|level| &level.requests);
    let last = traces
        .filter_map(|request| request.trace.last_content)
        .max();
    let since = last.ok_or("nothing came")?.since_or_zero(Instant::ORIGIN);
    Ok(run.header.origin_monotonic_ns + since.nanos())
}
