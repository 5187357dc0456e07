//! Owns the test of honesty under theft: the client is stopped, or shares its core, and must say so.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use clap::Args;
use denom::record_file;
use measure::report;
use nix::sys::signal::Signal;

use crate::Failed;
use crate::process::{self, CLIENT, Folder, Server};
use crate::subject::{Subject, Task};

/// Reasons and warnings by which a level says that this client may have bent its numbers.
const SAYS_SO: &[&str] = &[
    "client_limited",
    "stalled",
    "client_stalled",
    "client_behind",
    "client_starved",
];
/// From the client's start until it is stopped, in the midst of the streams.
const BEFORE: Duration = Duration::from_millis(1_500);
/// How long it is stopped.
const STOP: Duration = Duration::from_millis(200);
/// A hog's life, longer than the run.
const HOG: &str = "30";

/// What is tried, and how often.
#[derive(Debug, Args)]
pub struct Stolen {
    /// Runs of each kind
    #[arg(long, value_name = "N", default_value_t = 20)]
    runs: u32,
    /// Streams at once
    #[arg(long, value_name = "N", default_value_t = 16)]
    streams: u64,
    /// How arrivals are stamped
    #[arg(long, default_value = "kernel", value_parser = ["kernel", "read"])]
    stamp: String,
}

/// What is done to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Theft {
    None,
    Stop,
    Hog,
}

impl Stolen {
    /// Runs each kind in turn and prints how often the level said so.
    pub fn run(&self) -> Result<(), Failed> {
        let kinds = [
            (Theft::Stop, "stopped for 200 ms (SIGSTOP)"),
            (Theft::Hog, "a busy loop on its core"),
            (Theft::None, "left alone"),
        ];
        let mut flagged = [0; 3];
        for _ in 0..self.runs {
            for ((theft, _), count) in kinds.iter().zip(&mut flagged) {
                *count += u32::from(self.once(*theft)?);
            }
        }
        println!(
            "## Stolen time\n\n{} streams, --stamp {}\n\n| the client was | flagged | with 95 % certainty |\n| --- | ---: | --- |",
            self.streams, self.stamp
        );
        for ((_, name), count) in kinds.iter().zip(flagged) {
            println!(
                "| {name} | {count} of {} | {} |",
                self.runs,
                proves(count, self.runs)
            );
        }
        println!();
        Ok(())
    }

    /// Whether a level says that its client was robbed.
    fn once(&self, theft: Theft) -> Result<bool, Failed> {
        let folder = Folder::new()?;
        let (ledger, out) = (folder.file("ledger.jsonl"), folder.file("out"));
        let server = Server::start(&ledger)?;
        let task = Task {
            url: &server.url,
            model: "paced100",
            streams: self.streams,
            requests: self.streams * 2,
            tokens: 100,
            warmup: 1,
            out: out.to_str().ok_or("a path that is no text")?,
        };
        let stamp = if self.stamp == "read" {
            "read"
        } else {
            "kernel"
        };
        let command = Subject::Denom(stamp).command(&task)?;
        let (program, flags) = command.split_first().ok_or("no command")?;
        // There before the client: a part of a level in which it waits is less than all of it.
        let hog = (theft == Theft::Hog).then(hog).transpose()?;
        let mut client = process::pinned(CLIENT, program.as_ref())
            .args(flags)
            .stdout(Stdio::null())
            .spawn()?;
        if theft == Theft::Stop {
            std::thread::sleep(BEFORE);
            process::signal(&client, Signal::SIGSTOP)?;
            std::thread::sleep(STOP);
            process::signal(&client, Signal::SIGCONT)?;
        }
        client.wait()?;
        if let Some(mut hog) = hog {
            process::signal(&hog, Signal::SIGKILL)?;
            hog.wait()?;
        }
        server.stop()?;
        says_so(&out)
    }
}

/// A busy loop on the client's core.
fn hog() -> Result<Child, Failed> {
    let own = std::env::current_exe()?;
    Ok(process::pinned(CLIENT, &own).args(["hog", HOG]).spawn()?)
}

fn says_so(records: &Path) -> Result<bool, Failed> {
    let run = record_file::read(records, None).map_err(|failure| failure.text)?;
    let report = report::build(&run, run.header.guards());
    Ok(report.levels.iter().any(|level| {
        let reasons = level.verdict.reasons.iter().map(|reason| reason.code);
        let warnings = level.warnings.iter().map(|warning| warning.code);
        reasons.chain(warnings).any(|code| SAYS_SO.contains(&code))
    }))
}

/// What so many of so many prove of the true share, one-sided. In between, the share is all.
fn proves(count: u32, of: u32) -> String {
    let bound = 0.05_f64.powf(1.0 / f64::from(of.max(1)));
    match count {
        n if n == of => format!("at least {:.0} % are", bound * 100.0),
        0 => format!("at most {:.0} % are", (1.0 - bound) * 100.0),
        n => format!(
            "no bound: {:.0} % were",
            f64::from(n) * 100.0 / f64::from(of)
        ),
    }
}
