//! Owns `denom report`: the page of a run, from its record file alone.

use std::time::Duration;

use measure::basis::Load;
use measure::export::{Layout, export};
use measure::judge::Guards;
use measure::record::Run;
use measure::report;
use measure::rows;

use super::run::{out, style};
use crate::cli::{Format, ReportArgs, ReportFormat};
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
    let report = report::build(&run, run.header.guards());
    match (kind(args.format), args.rows) {
        (Kind::Page(format), true) => print_rows(&run, args, format)?,
        (Kind::Page(format), false) => super::run::print(&report, format)?,
        (Kind::Export(_), true) => {
            return Err(Failure::usage(
                "--rows prints single requests, and --format vllm-json and aiperf-json hold whole levels: leave one of them out",
            ));
        }
        (Kind::Export(layout), false) => print_export(&run, layout)?,
    }
    Ok(exit::code(report.ending()))
}

/// A page, or a layout of another tool.
enum Kind {
    Page(Format),
    Export(Layout),
}

fn kind(format: ReportFormat) -> Kind {
    match format {
        ReportFormat::Text => Kind::Page(Format::Text),
        ReportFormat::Json => Kind::Page(Format::Json),
        ReportFormat::Markdown => Kind::Page(Format::Markdown),
        ReportFormat::Csv => Kind::Page(Format::Csv),
        ReportFormat::VllmJson => Kind::Export(Layout::Vllm),
        ReportFormat::AiperfJson => Kind::Export(Layout::Aiperf),
    }
}

fn print_export(run: &Run, layout: Layout) -> Result<(), Failure> {
    let began = std::time::UNIX_EPOCH + Duration::from_nanos(run.header.began_unix_ns);
    let began = humantime::format_rfc3339_seconds(began).to_string();
    let levels = export(run, layout, &began);
    let lines: Vec<String> = levels
        .iter()
        .map(|level| page::escape::json(level.to_string()))
        .collect();
    out(&lines.join("\n"))
}

fn print_rows(run: &Run, args: &ReportArgs, format: Format) -> Result<(), Failure> {
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
    out(&match format {
        Format::Text => page::rows::text(&rows, style()),
        Format::Json => page::rows::json(&rows),
        Format::Markdown => page::rows::markdown(&rows),
        Format::Csv => page::rows::csv(&rows),
    })
}
