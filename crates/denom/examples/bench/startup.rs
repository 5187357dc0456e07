//! Owns the time that the program takes beside what it measures.

use std::process::{Command, Stdio};
use std::time::Instant;

use denom::record_file;

use crate::Failed;
use crate::process::{self, Folder, Server};
use crate::subject::{Subject, Task};
use crate::truth::median;

/// Times of each.
const RUNS: usize = 21;

/// Prints the medians of `--version` and of a run of one request beyond that request.
pub fn run() -> Result<(), Failed> {
    let (mut version, mut beyond) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        version.push(millis(
            process::pinned(process::CLIENT, &process::binary()?).arg("--version"),
        )?);
        beyond.push(one()?);
    }
    println!("## Start\n\nmedians of {RUNS} runs\n\n| | ms |\n| --- | ---: |");
    println!(
        "| `denom --version` | {:.1} |",
        median(version).unwrap_or(0.0)
    );
    println!(
        "| a run of one request, warm-up 0, beyond the request itself | {:.1} |\n",
        median(beyond).unwrap_or(0.0)
    );
    Ok(())
}

fn millis(command: &mut Command) -> Result<f64, Failed> {
    let began = Instant::now();
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// From start to end of a run with one request, without the time of that request.
fn one() -> Result<f64, Failed> {
    let folder = Folder::new()?;
    let (ledger, out) = (folder.file("ledger.jsonl"), folder.file("out"));
    let server = Server::start(&ledger)?;
    let task = Task {
        url: &server.url,
        model: "normal",
        streams: 1,
        requests: 1,
        tokens: 10,
        warmup: 0,
        out: out.to_str().ok_or("a path that is no text")?,
    };
    let command = Subject::Denom("kernel").command(&task)?;
    let (program, flags) = command.split_first().ok_or("no command")?;
    let whole = millis(process::pinned(process::CLIENT, program.as_ref()).args(flags))?;
    server.stop()?;
    let run = record_file::read(&out, None).map_err(|failure| failure.text)?;
    let traces = run.levels.iter().flat_map(|level| &level.requests);
    let requests: u64 = traces
        .map(|request| {
            request
                .trace
                .finish
                .since_or_zero(request.trace.start)
                .nanos()
        })
        .sum();
    Ok(whole - requests as f64 / 1e6)
}
