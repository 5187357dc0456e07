//! Owns the self-check: before a large run, the most that this client takes in from an embedded
//! server that does not pace.

use clap::Parser;
use measure::basis::Loop;
use measure::plan::LevelPlan;
use measure::record::SelfCheck;

use super::progress::Progress;
use super::run::measure;
use crate::cli::{Cli, Command};
use crate::clock::RunClock;
use crate::config::Config;
use crate::exit::{self, Failure};
use crate::sim::server::{Config as Sim, Server};

/// Streams of a level from which on it is due.
const LARGE: u64 = 64;
/// What it runs: as many streams as make a worker busy, for as long as makes a rate.
const FLAGS: &[&str] = &[
    "-m",
    "null",
    "-c",
    "16",
    "--duration",
    "500ms",
    "--output-tokens",
    "2000",
    "--input-tokens",
    "8",
    "--warmup",
    "16",
    "--no-baseline",
    "--no-self-check",
    "--quiet",
];

/// Measures the ceiling where a level is large and the user did not do without. It says what it
/// found on stderr, unless it is to be quiet.
///
/// # Errors
/// Where the embedded server cannot start, nothing came, or the user stopped it.
pub fn self_check(config: &Config, clock: RunClock) -> Result<SelfCheck, Failure> {
    let is_large =
        |level: &LevelPlan| level.kind == Loop::Closed && u64::from(level.streams) >= LARGE;
    if !config.levels.iter().any(is_large) {
        return Ok(SelfCheck::NotDue);
    }
    if !config.self_check {
        return Ok(SelfCheck::Skipped);
    }
    let ceiling = ceiling(config, clock)?;
    if !config.quiet {
        exit::say(&format!(
            "self-check: this client takes in {ceiling} chunks a second at most; a level above half of that is invalid"
        ));
    }
    Ok(SelfCheck::Ceiling(ceiling))
}

/// Chunks a second from the first content of the flood to its last.
fn ceiling(config: &Config, clock: RunClock) -> Result<u64, Failure> {
    let server = Server::start(&Sim::default()).map_err(|error| {
        Failure::local(format!(
            "the self-check's server cannot start: {error}; nothing was sent; --no-self-check does without"
        ))
    })?;
    let flood = flood(&server.url(), config)?;
    let made = measure(&flood, clock, false, &mut Progress::Quiet)?;
    if made.run.footer.is_some_and(|footer| footer.interrupted) {
        return Err(Failure {
            code: exit::INTERRUPTED,
            text: "interrupted during the self-check; nothing was sent".into(),
        });
    }
    let requests = || made.run.levels.iter().flat_map(|level| &level.requests);
    // The first request of a run goes alone.
    let all = || requests().filter(|request| request.trace.id > 0);
    let chunks: u64 = all().map(|request| request.arrivals.chunks()).sum();
    let first = all()
        .filter_map(|request| request.trace.first_content)
        .min();
    let last = all().filter_map(|request| request.trace.last_content).max();
    let length = first.zip(last).and_then(|(first, last)| last.since(first));
    length
        .filter(|length| length.nanos() > 0)
        .map(|length| (chunks as f64 / length.as_secs_f64()) as u64)
        .ok_or_else(|| {
            Failure::local(
                "the self-check took in nothing from its own server; nothing was sent; --no-self-check does without",
            )
        })
}

/// The run against the embedded server, with the stamps of the run that is to follow.
fn flood(url: &str, config: &Config) -> Result<Config, Failure> {
    let url = format!("{url}/v1");
    let typed = ["denom", "run", &url]
        .into_iter()
        .chain(FLAGS.iter().copied());
    let cli = Cli::try_parse_from(typed).map_err(|error| Failure::usage(error.to_string()))?;
    let Command::Run(args) = cli.command else {
        return Err(Failure::usage(
            "the self-check's flags are not those of a run",
        ));
    };
    // The embedded server asks for no key, so none is sent to it.
    Ok(Config {
        headers: Vec::new(),
        stamp: config.stamp,
        http: config.http,
        ..Config::decide(*args)?
    })
}
