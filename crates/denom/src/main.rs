//! The program `denom`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use denom::commands::serve::{self, ServeArgs};

/// Measures LLM serving honestly: every rate with its denominator
#[derive(Debug, Parser)]
#[command(name = "denom", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the simulated server alone
    Serve(ServeArgs),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => serve::run(args),
    }
}
