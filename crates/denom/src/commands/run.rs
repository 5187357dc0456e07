//! Owns `denom run`: from flags to the page, by way of a record file.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use measure::api::clip;
use measure::plan::{LevelPlan, Stop, Warmup};
use measure::prompt::{Given, Prompts};
use measure::record::{Header, Line, Note, Run};
use measure::report::{self, Report};
use measure::schedule::Schedule;
use measure::time::Length;

use super::discover::{Found, discover};
use super::header::{SHOWN_URL, header, run_name};
use super::progress::Progress;
use super::ready::wait_ready;
use super::self_check::self_check;
use crate::cli::{Format, RunArgs};
use crate::clock::RunClock;
use crate::config::Config;
use crate::drive::{self, Form, Job};
use crate::exit::{self, Failure};
use crate::net::{Timeouts, limits, wake::Worker};
use crate::page::{self, Style};
use crate::{record_file, recorder, tokenizer};

/// How long a body may stay open after its terminal event.
const LINGER: Length = Length::from_secs(1);

/// Runs the command.
///
/// # Errors
/// With the exit code of what went wrong before there was a page.
pub fn run(args: RunArgs) -> Result<u8, Failure> {
    let config = Config::decide(args)?;
    let clock = RunClock::start();
    if config.dry_run {
        return dry_run(&config, clock);
    }
    let mut progress = Progress::new(config.quiet, clock);
    let made = measure(&config, clock, true, &mut progress)?;
    let report = report::build(&made.run, made.run.header.guards());
    print(&report, config.format)?;
    if let Some(file) = &made.file
        && !config.quiet
    {
        let shown = page::escape::terminal(&file.display().to_string());
        exit::say(&format!("records: {shown}"));
    }
    Ok(made.code(&report))
}

/// A run that was made.
pub struct Made {
    /// As its records tell it.
    pub run: Run,
    /// Its record file.
    pub file: Option<PathBuf>,
    /// Its records could not all be written.
    pub unwritten: Option<String>,
}

impl Made {
    /// The exit code of the run, of which `report` was made.
    pub fn code(&self, report: &Report) -> u8 {
        match &self.unwritten {
            Some(_) => exit::NOT_WRITTEN,
            None => exit::code(report.ending()),
        }
    }
}

/// Measures: drives the levels, records them, and reads the records back.
///
/// # Errors
/// With the exit code of what went wrong before there was anything to show.
pub fn measure(
    config: &Config,
    clock: RunClock,
    to_file: bool,
    progress: &mut Progress,
) -> Result<Made, Failure> {
    limits::ensure_open_files(config.most_streams()).map_err(|error| {
        Failure::usage(format!("{error}{}; nothing was sent", which_flag(config)))
    })?;
    let checked = self_check(config, clock)?;
    let (found, waited) = found(config, clock)?;
    let name = run_name();
    let header = Header {
        self_check: checked,
        ..header(config, &found, clock, &name)
    };
    let job = job(config, found, clock, &name);
    let file = to_file.then(|| {
        config
            .output
            .clone()
            .unwrap_or_else(|| recorder::default_name(clock.realtime_at_start_ns()))
    });
    let opened = file
        .as_deref()
        .map(|file| recorder::create(file, config.force))
        .transpose()?;
    let (recorder, writer) = recorder::start(opened, clock)
        .map_err(|error| Failure::local(format!("no recorder could be started: {error}")))?;
    let repeats = job.prompts.repeats(requests(&config.levels, config.seed));
    recorder.record(Line::Header(Box::new(header)));
    if let Some((length, looks)) = waited {
        recorder.record(Line::Note(Note {
            code: "wait_ready".into(),
            text: format!(
                "before the run {length} went by until the server was ready; it was asked {looks} times"
            ),
        }));
    }
    if repeats {
        let text = "the prompts file holds fewer prompts than there are requests: repeated ones carry a name in front, so none is sent twice";
        recorder.record(Line::Note(Note {
            code: "prompts_repeated".into(),
            text: text.into(),
        }));
    }
    let driven = drive::drive(job, &config.levels, recorder, &mut |shown| {
        progress.show(shown)
    });
    progress.clear();
    let written = writer.finish();
    let driven = driven?;
    if let Some(why) = driven.ended {
        // It holds one refused request and nothing to report. What is no file stays, as a device.
        if let Some(file) = file.filter(|file| file.is_file()) {
            let _ = std::fs::remove_file(file);
        }
        return Err(Failure::no_result(why));
    }
    let run = match (&file, &config.vocabulary, &written.error) {
        (Some(file), Some(vocabulary), None) => {
            tokenizer::count_in(file, vocabulary, config.keep_text)?;
            record_file::read(file, None)?
        }
        _ => record_file::read_with_tail(file.as_deref(), written.bytes, &written.tail)?,
    };
    let unwritten = written.error.map(|error| {
        let text = format!(
            "the record file takes no more ({error}) after {} bytes: the run was ended; what was measured is on this page only",
            written.bytes
        );
        exit::say(&format!("denom: {text}"));
        text
    });
    if written.lost > 0 {
        exit::say(&format!(
            "denom: {} records were lost for want of memory: the books will not close",
            written.lost
        ));
    }
    Ok(Made {
        run,
        file,
        unwritten,
    })
}

/// In an open loop streams are the most in flight, which a flag of its own lowers.
fn which_flag(config: &Config) -> &'static str {
    let most = config.most_streams();
    let open = |level: &LevelPlan| level.arrivals.is_some() && u64::from(level.streams) == most;
    match config.levels.iter().any(open) {
        true => " with --max-in-flight",
        false => "",
    }
}

/// What the run needs to know of its endpoint, and how long and how often that was waited for.
fn found(config: &Config, clock: RunClock) -> Result<(Found, Option<(Length, u32)>), Failure> {
    let worker = Worker::new(clock)
        .map_err(|error| Failure::local(format!("no worker could be started: {error}")))?;
    let wake = worker.wake().clone();
    worker.run(async {
        let waited = match config.wait_ready {
            Some(limit) => Some(wait_ready(config, limit, clock, &wake).await?),
            None => None,
        };
        let found = discover(config, clock, &wake).await?;
        Ok((found, waited))
    })
}

/// What every request of a run has in common.
pub(super) fn job(config: &Config, found: Found, clock: RunClock, name: &str) -> Job {
    let path = config
        .endpoint
        .path_for(found.api, &found.model, config.stream);
    Job {
        clock,
        shown_url: clip(
            &config.scrub.apply(&config.endpoint.shown(&path)),
            SHOWN_URL,
        ),
        path,
        target: found.target,
        api: found.api,
        model: found.model,
        stream: config.stream,
        body: config.body.clone(),
        headers: config.headers.clone(),
        prompts: Prompts {
            source: config.source.clone(),
            output: config.output_tokens,
            prefix_tokens: config.prefix_tokens,
            seed: config.seed,
            run: name.to_owned(),
        },
        scrub: config.scrub.clone(),
        pauses: config.pauses,
        keep_text: config.keep_text || config.vocabulary.is_some(),
        wait_ready: config.wait_ready,
        timeouts: Timeouts {
            first_or_idle: config.timeout,
            total: config.max_time,
            linger: LINGER,
        },
        connect: config.connecting(),
        run: name.to_owned(),
    }
}

/// Requests that the levels plan, warm-up included; those of a closed loop by time are not known.
fn requests(levels: &[LevelPlan], seed: u64) -> u64 {
    let of = |level: &LevelPlan| {
        if let Some(schedule) = Schedule::of(level, seed) {
            return schedule.offsets().len() as u64;
        }
        let warm = match level.warmup {
            Warmup::Requests(n) => n,
            Warmup::Duration(_) => 0,
        };
        match level.stop {
            Stop::Requests(n) => n.saturating_add(warm),
            Stop::Duration(_) => warm,
        }
    };
    levels.iter().map(of).fold(0, u64::saturating_add)
}

/// Prints the page of a run.
///
/// # Errors
/// Where stdout takes no more; a closed pipe is none.
pub fn print(report: &Report, format: Format) -> Result<(), Failure> {
    out(&match format {
        Format::Text => page::text(report, style()),
        Format::Json => page::json(report),
        Format::Markdown => page::markdown(report),
        Format::Csv => page::csv(report),
    })
}

/// How a page looks where it goes.
pub fn style() -> Style {
    let terminal = std::io::stdout().is_terminal();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = terminal.then(console_width).flatten();
    Style {
        color: terminal && !plain,
        width: columns.unwrap_or(100).clamp(80, 100),
    }
}

fn console_width() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

/// Writes to stdout; a reader that went away is no error.
///
/// # Errors
/// Where stdout takes no more.
pub fn out(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let text = text.trim_end_matches('\n');
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::not_written(
            format!("the page cannot be printed: {error}"),
        )),
        _ => Ok(()),
    }
}

/// A level's load in words.
fn load(level: &LevelPlan) -> String {
    match level.arrivals {
        None => format!("concurrency {}", level.streams),
        Some(arrivals) => format!(
            "{} requests a second, {} arrivals, at most {} in flight",
            level.target_milli as f64 / 1e3,
            arrivals.name(),
            level.streams
        ),
    }
}

/// Of an open loop, what its seed made of the plan: how many requests, and when the first ones go.
fn planned(level: &LevelPlan, seed: u64) -> String {
    let Some(schedule) = Schedule::of(level, seed) else {
        return String::new();
    };
    let seconds = |at: &Length| format!("{:.3}", at.as_secs_f64());
    let offsets = schedule.offsets();
    let first: Vec<String> = offsets.iter().take(SHOWN_OFFSETS).map(seconds).collect();
    format!(
        "\n    {} requests in all, planned at {}{} s; the last at {} s",
        offsets.len(),
        first.join(", "),
        if offsets.len() > SHOWN_OFFSETS {
            ", …"
        } else {
            ""
        },
        offsets.last().map_or_else(|| "–".into(), seconds)
    )
}

/// Planned instants of a level that a dry run shows.
const SHOWN_OFFSETS: usize = 6;

/// Prints the plan, its cost and one request.
fn dry_run(config: &Config, clock: RunClock) -> Result<u8, Failure> {
    use std::net::{Ipv4Addr, SocketAddr};
    let endpoint = &config.endpoint;
    let target = crate::net::Target {
        tls: endpoint.tls,
        host: endpoint.host.clone(),
        port: endpoint.port,
        addrs: vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, endpoint.port))],
        dns: None,
    };
    let api = config.api.unwrap_or(crate::config::ASSUMED);
    let model = config
        .model
        .clone()
        .unwrap_or_else(|| "(the only one the server lists)".into());
    let job = job(config, Found { target, api, model }, clock, &run_name());
    let prompt = job.prompts.prompt(0);
    let form = Form {
        usage: true,
        limit_field: measure::api::LimitField::MaxTokens,
    };
    let body = drive::body(&job, &prompt, form);
    let mut text = format!(
        "nothing was sent. POST {} would be asked in these levels:\n",
        job.shown_url
    );
    for level in &config.levels {
        let stop = match level.stop {
            Stop::Requests(n) => format!("{n} requests"),
            Stop::Duration(length) => format!("for {length}"),
        };
        let warm = match level.warmup {
            Warmup::Requests(n) => format!("{n} requests"),
            Warmup::Duration(length) => length.to_string(),
        };
        text.push_str(&format!(
            "  {}: {stop}, after a warm-up of {warm}{}\n",
            load(level),
            planned(level, config.seed)
        ));
    }
    let all = requests(&config.levels, config.seed);
    let words = match &prompt.given {
        Given::Text(text) => text.len(),
        Given::Messages(turns) => turns.to_string().len(),
    };
    text.push_str(&format!(
        "about {all} requests; input {} tokens each ({words} bytes in the first), output at most {} tokens each\n",
        measure::prompt::describe(&config.source), config.output_tokens
    ));
    if let (
        measure::prompt::Source::Words(measure::prompt::Lengths::Fixed(input)),
        measure::prompt::Lengths::Fixed(output),
    ) = (&config.source, config.output_tokens)
    {
        text.push_str(&format!(
            "about {} input tokens and at most {} output tokens in all\n",
            all * input,
            all * output
        ));
    }
    text.push_str(&format!(
        "the first request's body:\n{}",
        serde_json::to_string_pretty(&body).unwrap_or_default()
    ));
    out(&page::escape::block(&config.scrub.apply(&text)))?;
    Ok(exit::DONE)
}
