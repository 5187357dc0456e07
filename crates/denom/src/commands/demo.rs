//! Owns `denom demo`: the product's whole argument on one screen, with nothing set up.

use measure::prompt::Lengths;
use measure::record::Run;
use measure::report::{self, Ending, Report};

use super::progress::Progress;
use super::run::{measure, out, style};
use crate::cli::{Cli, Command, DemoArgs, Format};
use crate::clock::RunClock;
use crate::config::Config;
use crate::exit::{self, Failure};
use crate::page;
use crate::sim::server::{Config as Sim, Running, Server};

/// One endpoint of the demo.
struct Scene {
    model: &'static str,
    title: &'static str,
    flags: &'static [&'static str],
    output: u64,
}

const SCENES: [Scene; 3] = [
    Scene {
        model: "streams",
        title: "1. streams: an endpoint that sends each token when it is made",
        flags: &["-c", "4", "--no-baseline", "--requests", "28"],
        output: 30,
    },
    Scene {
        model: "bursts",
        title: "2. bursts: holds everything for a second, then sends about 1,000 tokens at once",
        flags: &[
            "-c",
            "1",
            "--no-baseline",
            "--requests",
            "6",
            "--warmup",
            "1",
        ],
        output: 1_000,
    },
    Scene {
        model: "shares",
        title: "3. shares: one server for all; each stream slows down as more are served",
        flags: &["-c", "1,16", "--baseline-requests", "6", "--requests", "64"],
        output: 25,
    },
];

/// Runs the command.
///
/// # Errors
/// Where the embedded server or a run fails.
pub fn run(args: &DemoArgs) -> Result<u8, Failure> {
    let server = Server::start(&Sim::default())
        .map_err(|error| Failure::local(format!("the embedded server cannot start: {error}")))?;
    let mut reports = Vec::new();
    let mut worst = Ending::Done;
    for scene in &SCENES {
        let run = scene.measure(&server, args.quiet)?;
        let mut report = report::build(&run, run.header.guards());
        report.run.endpoint_gone = true;
        worst = worst.max(report.ending());
        let interrupted = report.run.interrupted;
        reports.push((scene, report));
        if interrupted {
            break;
        }
    }
    out(&page(&reports, args.format))?;
    Ok(exit::code(worst))
}

impl Scene {
    fn measure(&self, server: &Running, quiet: bool) -> Result<Run, Failure> {
        let clock = RunClock::start();
        let mut progress = Progress::new(quiet, clock);
        Ok(measure(&self.config(&server.url())?, clock, false, &mut progress)?.run)
    }

    /// What a user would have typed.
    fn config(&self, url: &str) -> Result<Config, Failure> {
        use clap::Parser;
        let url = format!("{url}/v1");
        let typed = [
            "denom",
            "run",
            &url,
            "-m",
            self.model,
            "--input-tokens",
            "32",
        ];
        let typed = typed.into_iter().chain(self.flags.iter().copied());
        let cli = Cli::try_parse_from(typed).map_err(|error| Failure::usage(error.to_string()))?;
        let Command::Run(mut args) = cli.command else {
            return Err(Failure::usage("the demo's flags are not those of a run"));
        };
        args.endpoint.output_tokens = Lengths::Fixed(self.output);
        // The embedded server asks for no key, so none is sent to it.
        let config = Config::decide(*args)?;
        Ok(Config {
            headers: Vec::new(),
            ..config
        })
    }
}

fn page(reports: &[(&Scene, Report)], format: Format) -> String {
    let joined = |each: &dyn Fn(&Scene, &Report) -> String| {
        reports
            .iter()
            .map(|(scene, report)| each(scene, report))
            .collect::<Vec<_>>()
    };
    match format {
        Format::Text => {
            let style = style();
            let intro =
                "denom demo: three simulated endpoints on this machine, measured like any other.";
            let mut parts = vec![intro.to_owned()];
            parts.extend(joined(&|scene, report| {
                format!(
                    "\n{}\n\n{}",
                    style.bold(scene.title),
                    page::text(report, style)
                )
            }));
            parts.push(format!("\n{}", closing(reports)));
            parts.join("\n")
        }
        Format::Json => {
            let reports: Vec<&Report> = reports.iter().map(|(_, report)| report).collect();
            serde_json::to_string_pretty(
                &serde_json::json!({"schema": "denom.demo/1", "reports": reports}),
            )
            .unwrap_or_default()
        }
        Format::Markdown => {
            joined(&|scene, report| format!("## {}\n\n{}", scene.title, page::markdown(report)))
                .join("\n")
        }
        Format::Csv => joined(&|_, report| page::csv(report)).join("\n"),
    }
}

/// The argument in two sentences, made of the figures above.
fn closing(reports: &[(&Scene, Report)]) -> String {
    let shares = reports
        .iter()
        .find(|(scene, _)| scene.model == "shares")
        .and_then(|(_, report)| report.levels.last());
    let Some(level) = shares else {
        return String::new();
    };
    let system = level.system.output.value().map(measure::rate::significant);
    let stream = level
        .per_stream
        .generation
        .median()
        .value
        .map(measure::rate::significant);
    match (system, stream) {
        (Some(system), Some(stream)) => format!(
            "\"{system} tok/s\" and \"{stream} tok/s\" are both true of endpoint 3 with {} streams: the first is the\n\
             system's, the second one stream's. A rate without its denominator is neither.\n\
             Next: denom run http://localhost:8000/v1",
            level.load.target
        ),
        _ => "Next: denom run http://localhost:8000/v1".into(),
    }
}
