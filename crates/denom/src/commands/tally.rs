//! Owns `denom tally`: a log of work by parallel workers, read once and summed as it is read.

mod csv_rows;
mod json_rows;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::Path;

use measure::tally::{NoTally, Options, Tally, TallyReport, TimeUnit};

use super::run::{out, style};
use crate::cli::{ClaimFormat, DurationUnitName, TallyArgs, TimeUnitName};
use crate::exit::{self, Failure};
use crate::page;

/// The JSON schema of a tally.
const TALLY_SCHEMA: &str = include_str!("../../../../docs/schema/tally-1.json");

/// The longest that one row may be, in bytes.
const LONGEST_ROW: u64 = 4 * 1024 * 1024;

/// What is read at once: a header line has to fit, since it tells what the file is.
const AT_ONCE: usize = 256 * 1024;

/// Names of the columns that are used.
#[derive(Debug, Clone)]
struct Columns {
    start: String,
    end: Option<String>,
    duration: Option<String>,
    worker: Option<String>,
    units: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// With code 2 where the file cannot be read, 4 where it holds no row that can be used.
pub fn run(args: &TallyArgs) -> Result<u8, Failure> {
    let (Some(file), Some(start)) = (&args.file, &args.start) else {
        out(TALLY_SCHEMA)?;
        return Ok(exit::DONE);
    };
    if args.peak_window.is_some_and(|window| window.0.nanos() == 0) {
        return Err(Failure::usage(
            "--peak-window is 0: nothing can be finished in no time; give a length such as 1s, or leave it out",
        ));
    }
    let columns = Columns {
        start: start.clone(),
        end: args.end.clone(),
        duration: args.duration.clone(),
        worker: args.worker.clone(),
        units: args.units.clone(),
    };
    let shown = page::escape::terminal(&file.display().to_string());
    let report = read(file, &columns, options(args, &columns), &shown)?;
    let base = args.per.map(page::tally::Base::from);
    out(&match args.format {
        ClaimFormat::Text => page::tally::text(&report, &shown, base, style()),
        ClaimFormat::Json => page::tally::json(&report),
        ClaimFormat::Markdown => page::tally::markdown(&report, &shown, base),
    })?;
    Ok(exit::DONE)
}

fn options(args: &TallyArgs, columns: &Columns) -> Options {
    let unit = args.unit.clone().or(args.units.clone());
    let nanos =
        |time: crate::config::values::Time| i64::try_from(time.0.nanos()).unwrap_or(i64::MAX);
    Options {
        by_duration: columns.duration.is_some(),
        by_worker: columns.worker.is_some(),
        by_units: columns.units.is_some(),
        unit: unit.unwrap_or_else(|| "rows".into()),
        time_unit: args.time_unit.map(|unit| match unit {
            TimeUnitName::S => TimeUnit::Seconds,
            TimeUnitName::Ms => TimeUnit::Millis,
            TimeUnitName::Us => TimeUnit::Micros,
            TimeUnitName::Ns => TimeUnit::Nanos,
        }),
        duration_unit: match args.duration_unit {
            DurationUnitName::S => TimeUnit::Seconds,
            DurationUnitName::Ms => TimeUnit::Millis,
            DurationUnitName::Us => TimeUnit::Micros,
            DurationUnitName::Ns => TimeUnit::Nanos,
            DurationUnitName::Min => TimeUnit::Minutes,
            DurationUnitName::H => TimeUnit::Hours,
        },
        peak_window: args.peak_window.map(nanos),
    }
}

fn read(
    file: &Path,
    columns: &Columns,
    options: Options,
    shown: &str,
) -> Result<TallyReport, Failure> {
    let opened: Box<dyn Read> = match file.as_os_str() == "-" {
        true => Box::new(stdin()),
        false => Box::new(File::open(file).map_err(|error| unreadable(shown, &error.to_string()))?),
    };
    let mut reader = BufReader::with_capacity(AT_ONCE, opened);
    let mut tally = Tally::new(options);
    let begun = reader
        .fill_buf()
        .map_err(|error| unreadable(shown, &error.to_string()))?;
    let begun = begun.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begun);
    match begun.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => json_rows::feed(&mut reader, columns, &mut tally),
        Some(b'[') => {
            Err("it is one JSON array: give an object a line, as jq -c '.[]' makes".into())
        }
        Some(_) => {
            let delimiter = csv_rows::delimiter(begun);
            csv_rows::feed(reader, delimiter, columns, &mut tally)
        }
        None => Err("it is empty".into()),
    }
    .map_err(|why| unreadable(shown, &why))?;
    let books = books(&tally);
    tally.finish().map_err(|why| no_tally(shown, &why, &books))
}

fn unreadable(shown: &str, why: &str) -> Failure {
    Failure::usage(format!("{shown} cannot be tallied: {why}"))
}

fn no_tally(shown: &str, why: &NoTally, books: &str) -> Failure {
    match why {
        NoTally::NothingUsed => Failure {
            code: exit::INVALID,
            text: format!(
                "{shown} holds no row that can be used ({books}): check the columns that were named"
            ),
        },
        NoTally::NoTime => Failure {
            code: exit::INVALID,
            text: format!(
                "{shown} holds no time to divide by: all of its work began and ended at one instant"
            ),
        },
        NoTally::NothingCounted => Failure {
            code: exit::INVALID,
            text: format!(
                "the amounts of {shown} are all 0: there is nothing to divide, so check the column of --units"
            ),
        },
        NoTally::MixedTimes => Failure::usage(format!(
            "{shown} mixes times since 1970 with times of its own origin: no stretch of time can be made of them; name the unit with --time-unit, or split the file"
        )),
    }
}

/// Why rows were not used, for the case that none was.
fn books(tally: &Tally) -> String {
    let each = tally
        .excluded()
        .map(|(why, n)| format!("{n} with {}", why.words()));
    let reasons: Vec<String> = each.collect();
    let read = page::tally::rows_read(tally.rows());
    match reasons.is_empty() {
        true => read,
        false => format!("{read}: {}", reasons.join(", ")),
    }
}
