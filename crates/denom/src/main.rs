//! The program `denom`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use denom::cli::{Cli, Command};
use denom::commands::{audit, claim, demo, probe, report, run, serve, tally};
use denom::{crash, exit};

fn main() -> ExitCode {
    crash::install();
    match Cli::parse().command {
        Command::Audit(args) => exit::end(audit::run(&args)),
        Command::Demo(args) => exit::end(demo::run(&args)),
        Command::Run(args) => exit::end(run::run(*args)),
        Command::Claim(args) => exit::end(claim::run(*args)),
        Command::Probe(args) => exit::end(probe::run(&args)),
        Command::Report(args) => exit::end(report::run(&args)),
        Command::Tally(args) => exit::end(tally::run(&args)),
        Command::Serve(args) => serve::run(args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "denom", &mut std::io::stdout());
            ExitCode::SUCCESS
        }
        Command::Man => {
            match clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::from(exit::NOT_WRITTEN),
            }
        }
    }
}
