//! Owns `denom claim`: reads a stated number, lists what is missing, computes both readings.

use measure::claim::judge::{Answer, Tested};
use measure::claim::{self, Claim, Given, Wrong, judge};
use measure::report;
use measure::stated::{Scope, Span};

use super::progress::Progress;
use super::run::{measure, out, style};
use crate::cli::{ArrivalsName, ClaimArgs, ClaimFormat, Format, LeadName, RunArgs, ScopeName};
use crate::clock::RunClock;
use crate::config::Config;
use crate::config::values::{Concurrency, InFlight, MOST_STREAMS};
use crate::exit::{self, Failure};
use crate::page;

/// The JSON schema of a claim.
const CLAIM_SCHEMA: &str = include_str!("../../../../docs/schema/claim-1.json");

/// Runs the command.
///
/// # Errors
/// With code 2 where the claim cannot be read or tested; else with that of the run.
pub fn run(args: ClaimArgs) -> Result<u8, Failure> {
    if args.schema {
        out(CLAIM_SCHEMA)?;
        return Ok(exit::DONE);
    }
    let mut claim = read(&args)?;
    let format = args.format;
    let code = match args.against.clone() {
        Some(url) => test(&mut claim, url, args)?,
        None => {
            warn_of_idle(&args);
            exit::DONE
        }
    };
    out(&match format {
        ClaimFormat::Text => page::claim::text(&claim, style()),
        ClaimFormat::Json => page::claim::json(&claim),
        ClaimFormat::Markdown => page::claim::markdown(&claim),
    })?;
    Ok(code)
}

/// Flags of a run do nothing where there is none.
fn warn_of_idle(args: &ClaimArgs) {
    let endpoint = &args.endpoint;
    let given = [
        ("--model", endpoint.model.is_some()),
        ("--api", endpoint.api.is_some()),
        ("--prompts", endpoint.prompts.is_some()),
        ("--body", endpoint.body.is_some()),
        ("--no-stream", endpoint.no_stream),
        ("--header", !endpoint.connection.header.is_empty()),
        ("--api-key-env", endpoint.connection.api_key_env.is_some()),
        ("--cacert", endpoint.connection.cacert.is_some()),
        ("--insecure", endpoint.connection.insecure),
    ];
    for (flag, _) in given.into_iter().filter(|(_, given)| *given) {
        eprintln!("denom: {flag} has no effect without --against URL: nothing is run");
    }
}

/// Runs at concurrency 1 and at the stated one, and writes what that says into the claim.
fn test(claim: &mut Claim, url: String, args: ClaimArgs) -> Result<u8, Failure> {
    judge::testable(claim).map_err(Failure::usage)?;
    let streams = whole_streams(claim)?;
    let quiet = args.quiet;
    let config = Config::decide(run_args(url, streams, args))?;
    let clock = RunClock::start();
    let mut progress = Progress::new(quiet, clock);
    let made = measure(&config, clock, true, &mut progress)?;
    let report = report::build(&made.run, made.run.header.guards());
    let mut tested = judge::judge(claim, &report, streams).map_err(Failure::usage)?;
    if report.run.interrupted {
        withhold(&mut tested);
    }
    if let Some(file) = made.file.as_ref().filter(|_| !quiet) {
        let file = page::escape::terminal(&file.display().to_string());
        eprintln!("records: {file} (denom report shows the run's own page)");
    }
    let holds = tested.holds;
    claim.tested = Some(tested);
    Ok(match (made.code(&report), holds) {
        (exit::DONE, Some(true)) => exit::DONE,
        (exit::DONE, Some(false)) => exit::FAILED,
        (exit::DONE, None) => exit::INVALID,
        (worse, _) => worse,
    })
}

/// Takes back every answer that rests on a run that was cut short; its figures stay, marked.
fn withhold(tested: &mut Tested) {
    tested.answer = Answer::CannotTell;
    tested.holds = None;
    tested.alone_refutes_per_stream = false;
    for rests in tested.rests_on.iter_mut().chain(&mut tested.alone) {
        rests.agrees = None;
    }
    tested.text = "cannot tell: the run was interrupted before its requests were done, so there is no verdict. What was measured until then stands below; run it again to the end for an answer".into();
}

/// The concurrency to run at.
fn whole_streams(claim: &Claim) -> Result<u32, Failure> {
    let stated = claim.fields.concurrency.ok_or_else(|| {
        Failure::usage(
            "a claim is tested at its concurrency, and none is stated as one number: add --concurrency N",
        )
    })?;
    let whole = stated.fract() == 0.0 && (1.0..=f64::from(MOST_STREAMS)).contains(&stated);
    if !whole {
        return Err(Failure::usage(format!(
            "{stated} streams cannot be run at once: give a whole number up to {MOST_STREAMS} with --concurrency"
        )));
    }
    Ok(stated as u32)
}

/// What a user would have typed after `denom run`.
fn run_args(url: String, streams: u32, args: ClaimArgs) -> RunArgs {
    RunArgs {
        url,
        endpoint: args.endpoint,
        concurrency: Concurrency(vec![streams]),
        rate: None,
        arrivals: ArrivalsName::Poisson,
        max_in_flight: InFlight::default(),
        no_baseline: false,
        baseline_requests: args.baseline_requests,
        requests: args.requests,
        duration: None,
        warmup: None,
        no_self_check: false,
        lead: LeadName::System,
        tokenizer: None,
        keep_text: false,
        output: args.output,
        force: args.force,
        format: Format::Text,
        dry_run: false,
        quiet: args.quiet,
    }
}

fn read(args: &ClaimArgs) -> Result<Claim, Failure> {
    let given = Given {
        concurrency: args.concurrency.map(|streams| streams.0),
        scope: args.scope.map(|scope| match scope {
            ScopeName::System => Scope::System,
            ScopeName::PerStream => Scope::PerStream,
        }),
    };
    let read = match (&args.text, &args.value, &args.unit) {
        (Some(text), ..) if text.trim().is_empty() => {
            return Err(Failure::usage(
                "the text is empty: give the sentence that holds the number",
            ));
        }
        (Some(text), ..) => claim::read(text, given),
        (None, Some(value), Some(unit)) => claim::of_parts(value, unit, given),
        _ => {
            return Err(Failure::usage(
                "a claim needs its text, or --value and --unit: denom claim '500 tok/s over sixteen sessions'",
            ));
        }
    };
    read.map_err(|wrong| Failure::usage(sentence(&wrong)))
}

fn sentence(wrong: &Wrong) -> String {
    match wrong {
        Wrong::TooLong => format!(
            "the text is longer than {} bytes: give the sentence that holds the number",
            claim::LONGEST
        ),
        Wrong::Contradicts { flag, said } => format!(
            "{flag} contradicts the text, which says {said}: leave out the flag, or that part of the text"
        ),
        Wrong::NoValue => "--value is no number: give 500, 22.3k, 1.5M or 50-100".into(),
        Wrong::NoUnit => {
            "--unit is no unit that can be read: give tok/s, tokens/s/user, req/min, pages/h".into()
        }
    }
}

/// A number of streams as typed: `16`, `3.5`, `4-8`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamsFlag(pub Span);

impl std::str::FromStr for StreamsFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let span = match text.split_once('-') {
            Some((low, high)) => number(low)
                .zip(number(high))
                .and_then(|(low, high)| Span::between(low, high)),
            None => number(text).and_then(Span::exactly),
        };
        span.map(StreamsFlag).ok_or_else(|| {
            format!("{text:?} is no number of streams: give 16, or a range such as 4-8")
        })
    }
}
