//! Owns the benchmark: denom, and any peer, against the simulated server's own ledger.
//!
//! `cargo run --release --example bench` for everything, with `--quick` for a minute of it,
//! with `--help` for the parts. Server and client are processes of their own, pinned to a core
//! each where there are two and `taskset`.
#![forbid(unsafe_code)]

mod ceiling;
mod levels;
mod limit;
mod process;
mod soak;
mod startup;
mod stated;
mod stolen;
mod subject;
mod truth;

use clap::{Args, Parser, Subcommand};

use subject::{Peer, Subject};

/// What may go wrong: the benchmark ends there and says so.
type Failed = Box<dyn std::error::Error>;

/// Measures what denom measures: its numbers against the server's ledger, its cost and limits.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    part: Option<Part>,
    /// Server and client in the real-time class, so that other work on the machine does not show
    #[arg(long, global = true)]
    real_time: bool,
    #[command(flatten)]
    compare: Compare,
}

/// What is compared, and how often.
#[derive(Debug, Clone, Args)]
struct Compare {
    /// Streams at once, a level each
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [1, 16, 64, 256, 1_000])]
    streams: Vec<u64>,
    /// Runs of each, in turn with the others; medians are shown
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// Requests a stream; peers are asked as often. From about six on a level can be valid
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u64,
    /// Tokens of each answer, 10 ms apart from 100 ms on
    #[arg(long, value_name = "N", default_value_t = 200)]
    tokens: u64,
    /// One run at 1 and 64 streams and a short flood: within a minute
    #[arg(long)]
    quick: bool,
    /// Another client: NAME=COMMAND with {url} {model} {streams} {requests} {tokens} {out}
    #[arg(long = "peer", value_name = "NAME=COMMAND", value_parser = Peer::parse)]
    peers: Vec<Peer>,
}

/// One part alone, or a longer test.
#[derive(Debug, Subcommand)]
enum Part {
    /// Errors against the ledger, processor time and memory, by streams
    Levels(Compare),
    /// The most that a client takes in from a server that does not pace, on one core
    Ceiling(Compare),
    /// How long the program takes beside what it measures
    Startup,
    /// Stopped for 200 ms, and with a hog on its core: whether the run says so
    Stolen(stolen::Stolen),
    /// Many streams for long: whether a record is lost, and whether memory grows
    Soak(soak::Soak),
    /// A bare client, as the limit of what one core can take in
    #[command(hide = true)]
    Limit(limit::Limit),
    /// Takes its core for so many seconds
    #[command(hide = true)]
    Hog { seconds: u64 },
    /// Runs a command and writes what it used
    #[command(hide = true, trailing_var_arg = true)]
    Used {
        file: std::path::PathBuf,
        #[arg(allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

fn main() -> Result<(), Failed> {
    let cli = Cli::parse();
    match cli.part {
        Some(Part::Used { file, command }) => return process::used(&file, &command),
        Some(Part::Hog { seconds }) => return process::hog(seconds),
        Some(Part::Limit(limit)) => return limit.run(),
        _ => {}
    }
    process::build()?;
    process::real_time(cli.real_time);
    println!("{}\n", process::machine());
    match cli.part {
        Some(Part::Levels(compare)) => levels::run(&compare.settled()),
        Some(Part::Ceiling(compare)) => ceiling::run(&compare.settled()),
        Some(Part::Startup) => startup::run(),
        Some(Part::Stolen(stolen)) => stolen.run(),
        Some(Part::Soak(soak)) => soak.run(),
        _ => {
            let compare = cli.compare.settled();
            levels::run(&compare)?;
            ceiling::run(&compare)?;
            startup::run()
        }
    }
}

impl Compare {
    /// With what `--quick` means.
    fn settled(mut self) -> Self {
        if self.quick {
            self.streams = vec![1, 64];
            (self.runs, self.tokens) = (1, 100);
        }
        self
    }

    /// Everything that is compared, denom by both stamps first.
    fn subjects(&self) -> Vec<Subject> {
        let own = [Subject::Denom("read"), Subject::Denom("kernel")];
        own.into_iter()
            .chain(self.peers.iter().cloned().map(Subject::Peer))
            .collect()
    }
}
