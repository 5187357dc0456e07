//! Owns the long test: whether a record is lost on the way to the file, and whether memory grows.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use clap::Args;
use denom::sim::ledger::{End, Record};
use measure::record::Line;

use crate::Failed;
use crate::process::{self, CLIENT, Folder, Server};
use crate::truth;

/// From one look at the client's memory to the next.
const LOOK: Duration = Duration::from_secs(2);

/// How much, and for how long.
#[derive(Debug, Args)]
pub struct Soak {
    /// Streams at once, 20 tokens a second each
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    streams: u64,
    /// For how long, in minutes
    #[arg(long, value_name = "MINUTES", default_value_t = 20)]
    minutes: u64,
    /// Tokens of each answer
    #[arg(long, value_name = "N", default_value_t = 200)]
    tokens: u64,
    /// Seconds at the start in which memory may grow
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    settle: u64,
}

impl Soak {
    /// Runs it and prints what was lost and how memory went.
    pub fn run(&self) -> Result<(), Failed> {
        let folder = Folder::new()?;
        let (ledger, records) = (folder.file("ledger.jsonl"), folder.file("run.denom.jsonl"));
        let server = Server::start(&ledger)?;
        let seen = self.drive(&server.url, &records)?;
        server.stop()?;
        let arrived = arrived(&records)?;
        let (whole, lost, requests) = lost(&ledger, &arrived)?;
        println!(
            "## Soak\n\n{} streams of 20 tok/s for {} min, {} tokens an answer\n\n| | |\n| --- | ---: |",
            self.streams, self.minutes, self.tokens
        );
        println!("| requests that the ledger holds whole | {requests} |");
        println!("| their tokens | {whole} |");
        println!("| of these, tokens not in the record file | {lost} |");
        let driving = Duration::from_secs(self.minutes * 60);
        let steady: Vec<(f64, f64)> = seen
            .iter()
            .filter(|(at, _)| *at >= Duration::from_secs(self.settle) && *at <= driving)
            .map(|(at, kib)| (at.as_secs_f64() / 60.0, *kib as f64 / 1_024.0))
            .collect();
        match slope(&steady) {
            Some(slope) => println!(
                "| memory slope after {} s, MiB a minute | {slope:.3} |",
                self.settle
            ),
            None => println!("| memory slope | too short to tell |"),
        }
        let most = |until: Duration| {
            let inside = seen.iter().filter(|(at, _)| *at <= until);
            inside.map(|(_, kib)| kib / 1_024).max().unwrap_or(0)
        };
        println!("| most memory while driving, MiB | {} |", most(driving));
        println!(
            "| most memory, reading the file back included, MiB | {} |\n",
            most(Duration::MAX)
        );
        Ok(())
    }

    /// The client's memory in KiB, by the time since its start.
    fn drive(&self, url: &str, records: &Path) -> Result<Vec<(Duration, u64)>, Failed> {
        let mut client = process::pinned(CLIENT, &process::binary()?)
            .args([
                "run",
                url,
                "-m",
                "paced20",
                "--no-baseline",
                "--no-self-check",
                "-q",
            ])
            .args(["--warmup", "1", "--input-tokens", "32"])
            .args(["-c", &self.streams.to_string()])
            .args(["--duration", &format!("{}s", self.minutes * 60)])
            .args(["--output-tokens", &self.tokens.to_string(), "-o"])
            .arg(records)
            .stdout(Stdio::null())
            .spawn()?;
        let (began, mut seen) = (Instant::now(), Vec::new());
        while client.try_wait()?.is_none() {
            seen.extend(resident(client.id()).map(|kib| (began.elapsed(), kib)));
            std::thread::sleep(LOOK);
        }
        Ok(seen)
    }
}

/// A process's memory in KiB; `None` where the system does not tell.
fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Chunks that the record file holds, by the request's name.
fn arrived(records: &Path) -> Result<HashMap<String, u64>, Failed> {
    let (mut run, mut all) = (String::new(), HashMap::new());
    for line in BufReader::new(std::fs::File::open(records)?).lines() {
        match serde_json::from_str(&line?)? {
            Line::Header(header) => run = header.run,
            Line::Ended(trace) => {
                all.insert(format!("denom-{run}-{}", trace.id), trace.chunks());
            }
            _ => {}
        }
    }
    Ok(all)
}

/// Of the requests that the server ended whole: their tokens, those without a chunk in the record
/// file, and how many requests they are.
fn lost(ledger: &Path, arrived: &HashMap<String, u64>) -> Result<(u64, u64, u64), Failed> {
    let (mut whole, mut lost, mut requests) = (0, 0, 0);
    for line in BufReader::new(std::fs::File::open(ledger)?).lines() {
        let record: Record = serde_json::from_str(&line?)?;
        if record.end != End::Done {
            continue;
        }
        let tokens = truth::tokens([&record]);
        let here = record.request.and_then(|name| arrived.get(&name).copied());
        requests += 1;
        whole += tokens;
        lost += tokens.saturating_sub(here.unwrap_or(0));
    }
    Ok((whole, lost, requests))
}

/// The slope of a line through these points by least squares; `None` for fewer than three.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let together: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    (points.len() >= 3 && spread > 0.0).then(|| together / spread)
}
