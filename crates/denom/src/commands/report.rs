//! Owns `denom report`: the page of a run, from its record file alone.

use measure::basis::Load;
use measure::judge::Guards;
use measure::record::Run;
use measure::report;
use measure::rows;

use super::run::{out, style};
use crate::cli::{Format, ReportArgs};
use crate::exit::{self, Failure};
use crate::page::{self, rows::Order};
use crate::record_file;

/// The JSON schema of a report.
const SCHEMA: &str = include_str!("../../../../docs/schema/report-1.json");

/// Runs the command.
///
/// # Errors
/// With code 2 where the file cannot be read.
pub fn run(args: &ReportArgs) -> Result<u8, Failure> {
    let Some(file) = &args.file else {
        out(SCHEMA)?;
        return Ok(exit::DONE);
    };
    let mut run = record_file::read(file, None)?;
    if args.min_chunks.is_some() || args.min_interval.is_some() {
        let own = run.header.guards();
        let guards = Guards {
            min_chunks: args.min_chunks.unwrap_or(own.min_chunks),
            min_interval: args.min_interval.map_or(own.min_interval, |time| time.0),
        };
        run = record_file::read(file, Some(guards))?;
        (run.header.min_chunks, run.header.min_interval) = (guards.min_chunks, guards.min_interval);
    }
    if args.rows {
        print_rows(&run, args)?;
    } else {
        super::run::print(&run, args.format)?;
    }
    Ok(exit::code(
        report::build(&run, run.header.guards()).ending(),
    ))
}

fn print_rows(run: &Run, args: &ReportArgs) -> Result<(), Failure> {
    let order = match (args.slowest, args.fastest) {
        (Some(n), _) => Order::Slowest(n),
        (_, Some(n)) => Order::Fastest(n),
        _ => Order::All,
    };
    let of = |level: &measure::record::Level| {
        let load = Load {
            kind: level.plan.kind,
            target_milli: level.plan.target_milli,
            held_milli: None,
        };
        rows::rows(level, load)
    };
    let all: Vec<_> = run.levels.iter().flat_map(of).collect();
    let rows = page::rows::select(all, order);
    out(&match args.format {
        Format::Text => page::rows::text(&rows, style()),
        Format::Json => page::rows::json(&rows),
        Format::Markdown => page::rows::markdown(&rows),
        Format::Csv => page::rows::csv(&rows),
    })
}
