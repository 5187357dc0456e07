//! Owns `denom probe`: from flags to the verdict, by way of the experiment's records.

use clap::Parser;
use measure::basis::Loop;
use measure::plan::{LevelPlan, Stop, Warmup};
use measure::probe::plan::{self, Cost, Lengths};
use measure::probe::records::Records;
use measure::probe::verdict::Kind;
use measure::probe::{self, Report, Setup, Way};
use measure::record::Line;
use measure::report::Ending;

use super::discover::{Found, discover};
use super::header::{header, run_name};
use super::progress::Progress;
use super::run::{job, out, style};
use crate::cli::{Cli, Command, ProbeArgs, ProbeFormat};
use crate::clock::RunClock;
use crate::config::{ASSUMED, Config};
use crate::drive::probe::{Asked, Going, Probed, Route, drive};
use crate::drive::{Form, Shown, body};
use crate::exit::{self, Failure};
use crate::net::wake::Worker;
use crate::page;
use crate::{record_file, recorder};

/// A side before anything is asked: its way and what reaches it.
struct Side {
    way: Way,
    config: Config,
}

/// A side whose server was found.
struct Reached {
    way: Way,
    config: Config,
    found: Found,
}

impl Reached {
    /// Its address, for people and files.
    fn url(&self) -> String {
        let endpoint = &self.config.endpoint;
        endpoint.shown(&endpoint.path_for(self.found.api, &self.found.model, true))
    }

    fn found(&self) -> Found {
        Found {
            target: self.found.target.clone(),
            api: self.found.api,
            model: self.found.model.clone(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// With the exit code of what went wrong before there was a verdict.
pub fn run(args: &ProbeArgs) -> Result<u8, Failure> {
    let sides = sides(args)?;
    let lengths = args.lengths.unwrap_or_default();
    let cost = plan::cost(lengths, sides.len() as u64);
    if args.dry_run {
        return dry_run(args, &sides, lengths, cost);
    }
    let clock = RunClock::start();
    let reached = reach(sides, clock)?;
    if !args.quiet {
        eprintln!(
            "denom probe: {}",
            said_of_cost(args, &reached, lengths, cost)
        );
    }
    let made = measure(args, &reached, lengths, clock)?;
    out(&match args.format {
        ProbeFormat::Text => page::probe::text(&made.report, style()),
        ProbeFormat::Json => page::probe::json(&made.report),
        ProbeFormat::Markdown => page::probe::markdown(&made.report),
        ProbeFormat::Junit => page::probe::junit(&made.report),
    })?;
    Ok(made.code())
}

/// The sides in the order of the page: the URL, the URL as SDKs ask, the other URL.
fn sides(args: &ProbeArgs) -> Result<Vec<Side>, Failure> {
    let decide = |url: &str| config(args, url);
    let mut sides = vec![Side {
        way: Way::Path,
        config: decide(&args.url)?,
    }];
    if args.as_sdk {
        sides.push(Side {
            way: Way::AsSdk,
            config: decide(&args.url)?,
        });
    }
    if let Some(url) = &args.direct {
        sides.push(Side {
            way: Way::Direct,
            config: decide(url)?,
        });
    }
    Ok(sides)
}

/// What a run with these flags would mean, so that each flag means the same in both.
fn config(args: &ProbeArgs, url: &str) -> Result<Config, Failure> {
    // The URL goes in afterwards: one that begins with a hyphen is no flag.
    let typed = [
        "denom",
        "run",
        "http://localhost",
        "-c",
        "1",
        "--no-baseline",
    ];
    let cli = Cli::try_parse_from(typed).map_err(|error| Failure::usage(error.to_string()))?;
    let Command::Run(run) = cli.command else {
        return Err(Failure::usage("the probe's flags are not those of a run"));
    };
    let mut run = *run;
    run.url = url.to_owned();
    let asked = &mut run.endpoint;
    asked.model = args.model.clone();
    asked.api = args.api;
    asked.input_tokens = args.input_tokens;
    asked.prompts = args.prompts.clone();
    asked.body = args.body.clone();
    asked.seed = args.seed;
    asked.timeout = args.timeout;
    asked.connection = args.connection.clone();
    run.keep_text = args.keep_text;
    run.output = args.output.clone();
    run.force = args.force;
    run.quiet = args.quiet;
    Config::decide(run)
}

/// Finds each side's server; the URL's model is asked for on all of them.
fn reach(sides: Vec<Side>, clock: RunClock) -> Result<Vec<Reached>, Failure> {
    let worker = Worker::new(clock)
        .map_err(|error| Failure::local(format!("no worker could be started: {error}")))?;
    let wake = worker.wake().clone();
    let mut reached: Vec<Reached> = Vec::new();
    for mut side in sides {
        if let Some(first) = reached.first() {
            side.config.model = Some(first.found.model.clone());
            side.config.api = side.config.api.or(Some(first.found.api));
        }
        let found = worker.run(discover(&side.config, clock, &wake))?;
        reached.push(Reached {
            way: side.way,
            config: side.config,
            found,
        });
    }
    Ok(reached)
}

fn said_of_cost(args: &ProbeArgs, sides: &[Reached], lengths: Lengths, cost: Cost) -> String {
    let [short, middle, long] = lengths.tokens();
    let shrinks = match args.lengths {
        None => ", less where the server is so slow that it would take more than a minute a side",
        Some(_) => "",
    };
    let urls: Vec<String> = sides
        .iter()
        .map(|side| page::escape::terminal(&side.url()))
        .collect();
    let mut named = urls.clone();
    named.dedup();
    format!(
        "{} requests, one at a time, to {}, for answers of {short}, {middle} and {long} tokens: at most {} output tokens{shrinks}",
        cost.requests,
        named.join(" and "),
        cost.output_tokens
    )
}

/// An experiment that was made.
struct Made {
    report: Report,
    ended: Ending,
    unwritten: bool,
}

impl Made {
    /// The worst of what the URL does, asked in either way: the other URL is there to compare.
    fn code(&self) -> u8 {
        if self.unwritten {
            return exit::NOT_WRITTEN;
        }
        if self.ended != Ending::Done {
            return exit::code(self.ended);
        }
        let kinds = || {
            let own = self
                .report
                .paths
                .iter()
                .filter(|path| path.way != Way::Direct);
            own.map(|path| path.verdict.kind)
        };
        match () {
            () if kinds().any(|kind| kind == Kind::CannotTell) => exit::INVALID,
            () if kinds().any(|kind| kind != Kind::Streams) => exit::FAILED,
            () => exit::DONE,
        }
    }
}

fn measure(
    args: &ProbeArgs,
    sides: &[Reached],
    lengths: Lengths,
    clock: RunClock,
) -> Result<Made, Failure> {
    let name = run_name();
    let file = args.output.as_deref();
    let opened = file
        .map(|file| recorder::create(file, args.force))
        .transpose()?;
    let (recorder, writer) = recorder::start(opened, clock)
        .map_err(|error| Failure::local(format!("no recorder could be started: {error}")))?;
    let first = sides
        .first()
        .ok_or_else(|| Failure::usage("there is no side to probe"))?;
    recorder.record(Line::Header(Box::new(head_line(
        first, sides, lengths, clock, &name,
    ))));
    let routes = sides.iter().map(|side| Route {
        job: job(&side.config, side.found(), clock, &name),
        as_sdk: side.way == Way::AsSdk,
    });
    let asked = Asked {
        lengths,
        may_shrink: args.lengths.is_none(),
        order: plan::order(args.seed),
    };
    let mut progress = Progress::new(args.quiet, clock);
    let driven = drive(routes.collect(), &asked, &recorder, &mut |going| {
        progress.show(&shown(going));
    });
    progress.clear();
    drop(recorder);
    let written = writer.finish();
    let probed = driven?;
    if let Some(why) = probed.ended {
        if let Some(file) = file {
            // It holds refused requests and nothing to report.
            let _ = std::fs::remove_file(file);
        }
        return Err(Failure::no_result(why));
    }
    let mut records = Records::default();
    record_file::lines(file, written.bytes, &written.tail, |line| {
        records.line(line)
    })?;
    if let Some(error) = &written.error {
        eprintln!(
            "denom: the record file takes no more ({error}): what was found is on this page only"
        );
    }
    let report = judged(first, sides, records, &probed, lengths, args.seed)?;
    Ok(Made {
        ended: ending(&report, &probed),
        unwritten: written.error.is_some() || written.lost > 0,
        report,
    })
}

fn ending(report: &Report, probed: &Probed) -> Ending {
    let silent = report
        .paths
        .first()
        .is_none_or(|path| path.requests.ok == 0);
    match (probed.interrupted, silent) {
        (true, _) => Ending::Interrupted,
        (_, true) => Ending::NoResult,
        _ => Ending::Done,
    }
}

fn shown(going: &Going) -> Shown {
    Shown {
        level: 1,
        levels: 1,
        target: "one request at a time".into(),
        done: going.done,
        of: Some(going.of),
        in_flight: u64::from(going.done < going.of),
        failed: going.failed,
        chunks: going.chunks,
        ending: going.ending,
    }
}

/// The record file's header: its levels are the sides.
fn head_line(
    first: &Reached,
    sides: &[Reached],
    lengths: Lengths,
    clock: RunClock,
    name: &str,
) -> measure::record::Header {
    let mut config = first.config.clone();
    config.levels = (0..).zip(sides).map(|(index, _)| level(index)).collect();
    let mut header = header(&config, &first.found, clock, name);
    header.output_tokens = lengths.to_string();
    for (index, side) in sides.iter().enumerate() {
        let said = format!("{} {}", side.way.name(), side.url());
        header.settings.insert(format!("probe_side_{index}"), said);
    }
    header
}

fn level(index: u32) -> LevelPlan {
    LevelPlan {
        index,
        kind: Loop::Closed,
        arrivals: None,
        target_milli: 1_000,
        streams: 1,
        baseline: false,
        stop: Stop::Requests(plan::MEASURED),
        warmup: Warmup::Requests(1),
        limit: None,
    }
}

fn judged(
    first: &Reached,
    sides: &[Reached],
    mut records: Records,
    probed: &Probed,
    planned: Lengths,
    seed: u64,
) -> Result<Report, Failure> {
    let setup = Setup {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        model: first.found.model.clone(),
        api: first.found.api.name(),
        sentinel: first.found.api.has_sentinel(),
        lengths: probed.lengths,
        planned,
        seed,
        interrupted: probed.interrupted,
        notes: records.notes.iter().map(|note| note.text.clone()).collect(),
    };
    let sides = sides.iter().enumerate().map(|(index, side)| probe::Side {
        way: side.way,
        url: side.url(),
        traces: records.take_side(index),
    });
    probe::judge(setup, sides.collect())
        .ok_or_else(|| Failure::no_result("nothing was asked, so there is nothing to judge"))
}

/// Prints the plan, its cost and one request.
fn dry_run(args: &ProbeArgs, sides: &[Side], lengths: Lengths, cost: Cost) -> Result<u8, Failure> {
    let mut text = String::from("nothing was sent. These would be asked, in turns:\n");
    for side in sides {
        let endpoint = &side.config.endpoint;
        let found = placeholder(&side.config);
        let url = endpoint.shown(&endpoint.path_for(found.api, &found.model, true));
        text.push_str(&format!("  {} POST {url}\n", side.way.name()));
    }
    let places = plan::order(args.seed);
    let tokens = lengths.tokens();
    let order: Vec<String> = places
        .iter()
        .map(|place| tokens[*place].to_string())
        .collect();
    text.push_str(&format!(
        "each first for {} tokens, which is discarded, then for {} tokens\n{} requests and at most {} output tokens in all\n",
        tokens[1],
        order.join(", "),
        cost.requests,
        cost.output_tokens
    ));
    if let Some(side) = sides.first() {
        let found = placeholder(&side.config);
        let job = job(&side.config, found, RunClock::start(), &run_name());
        let mut prompt = job.prompts.prompt(0);
        prompt.output_tokens = tokens[1];
        let form = Form {
            usage: true,
            limit_field: measure::api::LimitField::MaxTokens,
        };
        let body = body(&job, &prompt, form);
        let shown = serde_json::to_string_pretty(&body).unwrap_or_default();
        text.push_str(&format!("the first request's body:\n{shown}"));
    }
    out(&page::escape::block(&text))?;
    Ok(exit::DONE)
}

/// Stands for what only the server could tell.
fn placeholder(config: &Config) -> Found {
    use std::net::{Ipv4Addr, SocketAddr};
    let endpoint = &config.endpoint;
    Found {
        target: crate::net::Target {
            tls: endpoint.tls,
            host: endpoint.host.clone(),
            port: endpoint.port,
            addrs: vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, endpoint.port))],
            dns: None,
        },
        api: config.api.unwrap_or(ASSUMED),
        model: config
            .model
            .clone()
            .unwrap_or_else(|| "(the only one the server lists)".into()),
    }
}
