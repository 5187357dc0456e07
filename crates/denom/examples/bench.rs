//! Compares what denom measures with the simulated server's own ledger, at several loads, with
//! server and client in processes of their own, pinned to a core each where there are two.
//!
//! `cargo run --release --example bench` (after `cargo build --release`); levels as arguments.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use denom::record_file;
use denom::sim::ledger::Record;
use measure::judge::{Outcome, gaps};

const TOKENS: &str = "200";

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let typed: Vec<String> = std::env::args().skip(1).collect();
    let levels = if typed.is_empty() {
        ["1", "64", "256"].map(str::to_owned).to_vec()
    } else {
        typed
    };
    println!(
        "one stream: first token at 100 ms, then one each 10 ms, {TOKENS} tokens; all start at once"
    );
    println!(
        "{:>7} {:>7} {:>5} {:>22} {:>22} {:>22}",
        "streams",
        "stamp",
        "lost",
        "TTFT p99 ms (server)",
        "gap p99 ms (server)",
        "CPU ms / 1,000 tok"
    );
    for streams in &levels {
        for stamp in ["read", "kernel"] {
            println!("{}", compare(streams, stamp)?);
        }
    }
    Ok(())
}

fn binary() -> Result<PathBuf, Failed> {
    let own = std::env::current_exe()?;
    let release = own
        .parent()
        .and_then(Path::parent)
        .ok_or("no target folder")?;
    let denom = release.join("denom");
    denom
        .exists()
        .then_some(denom)
        .ok_or("build denom first: cargo build --release".into())
}

/// The program on one core, where there is `taskset` and a second core.
fn pinned(core: &str) -> Result<Command, Failed> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let taskset = Command::new("taskset").arg("--version").output().is_ok();
    if cores < 2 || !taskset {
        return Ok(Command::new(binary()?));
    }
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(binary()?);
    Ok(command)
}

struct Server(Child, String);

impl Server {
    fn start(ledger: &Path) -> Result<Self, Failed> {
        let mut child = pinned("0")?
            .args(["serve", "--port", "0", "--ledger"])
            .arg(ledger)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        let url = line
            .split_whitespace()
            .next()
            .ok_or("the server says no URL")?
            .to_owned();
        Ok(Server(child, url))
    }

    fn stop(mut self) -> Result<(), Failed> {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.0.id())?);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
        self.0.wait()?;
        Ok(())
    }
}

fn compare(streams: &str, stamp: &str) -> Result<String, Failed> {
    let folder = std::env::temp_dir().join(format!(
        "denom-bench-{}-{streams}-{stamp}",
        std::process::id()
    ));
    std::fs::create_dir_all(&folder)?;
    let (ledger, records) = (folder.join("ledger.jsonl"), folder.join("run.denom.jsonl"));
    let server = Server::start(&ledger)?;
    let status = pinned("1")?
        .args([
            "run",
            &server.1,
            "-m",
            "paced100",
            "-c",
            streams,
            "--no-baseline",
            "--requests",
            streams,
        ])
        .args([
            "--warmup",
            "0",
            "--output-tokens",
            TOKENS,
            "--input-tokens",
            "32",
            "--stamp",
            stamp,
            "-q",
            "-o",
        ])
        .arg(&records)
        .stdout(Stdio::null())
        .status()?;
    server.stop()?;
    let run = record_file::read(&records, None).map_err(|failure| failure.text)?;
    let truth = truth(&ledger)?;
    std::fs::remove_dir_all(&folder)?;
    let level = run.levels.first().ok_or("no level")?;
    let ok = level
        .requests
        .iter()
        .filter(|request| request.outcome == Outcome::Ok);
    let (mut first, mut between, mut chunks) = (Vec::new(), Vec::new(), 0);
    for request in ok {
        let waited = request.trace.first_content.zip(request.trace.sent);
        first.extend(
            waited
                .and_then(|(content, sent)| content.since(sent))
                .map(|length| length.nanos()),
        );
        between.extend(gaps(&request.arrivals).map(|gap| gap.nanos()));
        chunks += request
            .arrivals
            .iter()
            .map(|arrival| arrival.chunks)
            .sum::<u64>();
    }
    let cpu = level
        .end
        .as_ref()
        .and_then(|end| end.cpu)
        .map_or(0, |cpu| cpu.nanos());
    let code = status.code().unwrap_or(-1);
    Ok(format!(
        "{streams:>7} {stamp:>7} {:>5} {:>12} ({:>7}) {:>12} ({:>7}) {:>22.1}   exit {code}",
        truth.tokens - chunks,
        p99(first),
        p99(truth.first),
        p99(between),
        p99(truth.gaps),
        cpu as f64 / 1e3 / truth.tokens.max(1) as f64,
    ))
}

struct Truth {
    tokens: u64,
    first: Vec<u64>,
    gaps: Vec<u64>,
}

fn truth(ledger: &Path) -> Result<Truth, Failed> {
    let mut truth = Truth {
        tokens: 0,
        first: Vec::new(),
        gaps: Vec::new(),
    };
    for line in std::fs::read_to_string(ledger)?.lines() {
        let record: Record = serde_json::from_str(line)?;
        let writes: Vec<u64> = record
            .writes
            .iter()
            .filter(|write| write.tokens > 0)
            .map(|write| write.at)
            .collect();
        truth.tokens += record
            .writes
            .iter()
            .map(|write| u64::from(write.tokens))
            .sum::<u64>();
        truth
            .first
            .extend(writes.first().map(|first| first - record.received_ns));
        truth
            .gaps
            .extend(writes.windows(2).map(|pair| pair[1] - pair[0]));
    }
    Ok(truth)
}

fn p99(mut all: Vec<u64>) -> String {
    all.sort_unstable();
    let rank = (all.len() * 99).div_ceil(100).max(1);
    all.get(rank - 1)
        .map_or("–".into(), |nanos| format!("{:.2}", *nanos as f64 / 1e6))
}
