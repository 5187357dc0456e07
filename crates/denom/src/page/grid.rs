//! Owns the tables of a page as rows of cells: of the levels, and of what is end-to-end only.

use measure::basis::Loop;
use measure::figure::Dist;
use measure::level::LevelReport;
use measure::rate::significant;
use measure::record::Lead;
use measure::report::Report;

use super::cells::{Column, Reasons, Scale, figure, percent};

/// A table: its header and rows, and which columns are set off.
#[derive(Debug, Default)]
pub struct Grid {
    /// Names of the columns, with their units.
    pub header: Vec<String>,
    /// One row a level.
    pub rows: Vec<Vec<String>>,
    /// Columns in bold.
    pub bold: Vec<usize>,
}

/// A level's name: its target with the unit where it is a rate.
pub fn name(level: &LevelReport) -> String {
    match level.load.kind {
        Loop::Closed => plain(level.load.target),
        Loop::Open => format!("{} req/s", plain(level.load.target)),
    }
}

/// A target as it was given: whole numbers without a point.
pub fn plain(value: f64) -> String {
    format!("{value}")
}

/// The one unit of all values, or none where they differ.
fn one_unit<'a>(mut units: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let first = units.next()?;
    units.all(|unit| unit == first).then_some(first)
}

fn target_and_held(level: &LevelReport) -> String {
    let held = level.load.held.map_or("–".into(), significant);
    format!("{} / {held}", name(level))
}

fn counts(level: &LevelReport) -> String {
    let requests = &level.requests;
    let drained = match requests.drained {
        0 => String::new(),
        drained => format!(" (+{drained})"),
    };
    format!("{} / {}{drained}", requests.ok, requests.failures())
}

/// The generation share; the end-to-end one, named so, where there is no generation rate.
fn share(level: &LevelReport, reasons: &mut Reasons) -> String {
    let generation = &level.per_stream.share_of_baseline;
    let whole = &level.per_stream.e2e_share_of_baseline;
    match (level.baseline, generation.value(), whole.value()) {
        (true, ..) => "base".into(),
        (_, Some(share), _) => percent(share),
        (_, None, Some(share)) => format!("{} e2e", percent(share)),
        _ => reasons.cell(generation.reason()),
    }
}

/// The table of levels.
pub fn levels(report: &Report, reasons: &mut Reasons) -> Grid {
    let levels = &report.levels;
    let unit = one_unit(levels.iter().flat_map(|level| {
        let stream = level.per_stream.generation.unit();
        [level.system.output.unit(), stream]
    }));
    let ttft = Scale::of_dists(levels.iter().map(|level| &level.latency.ttft));
    let e2e = Scale::of_dists(levels.iter().map(|level| &level.latency.e2e));
    let lead = report.run.lead;
    let mut grid = Grid {
        header: levels_header(unit, lead, ttft, e2e),
        bold: match lead {
            Lead::System => vec![2, 3],
            Lead::PerStream => vec![2, 4],
        },
        rows: Vec::new(),
    };
    for level in levels {
        let of = |level_unit| unit.map_or(level_unit, |_| "");
        let stream = &level.per_stream.generation;
        let rate = rate_column(of(stream.unit()));
        let output = &level.system.output;
        let system = vec![figure(output, of(output.unit()), reasons)];
        let stream = vec![rate.median(stream, reasons), rate.tail(stream)];
        let mut row = vec![target_and_held(level), counts(level)];
        row.extend(in_order(lead, system, stream));
        row.push(share(level, reasons));
        let time = time_column(ttft);
        row.push(time.median(&level.latency.ttft, reasons));
        row.push(time.tail(&level.latency.ttft));
        row.push(time_column(e2e).median(&level.latency.e2e, reasons));
        grid.rows.push(row);
    }
    grid
}

fn levels_header(unit: Option<&str>, lead: Lead, ttft: Scale, e2e: Scale) -> Vec<String> {
    let unit = unit.map(|unit| format!(" {unit}")).unwrap_or_default();
    let system = vec![format!("system{unit}")];
    let stream = vec![format!("per stream{unit}"), "slow tail".into()];
    let mut header = vec!["target / held".into(), "ok / failed".into()];
    header.extend(in_order(lead, system, stream));
    header.push("share of 1".into());
    header.push(format!("TTFT p50 {}", ttft.unit()));
    header.push(format!("TTFT tail {}", ttft.unit()));
    header.push(format!("e2e p50 {}", e2e.unit()));
    header
}

fn in_order(lead: Lead, system: Vec<String>, stream: Vec<String>) -> Vec<String> {
    match lead {
        Lead::System => [system, stream].concat(),
        Lead::PerStream => [stream, system].concat(),
    }
}

/// A column of rates, with a unit behind each value where one is given.
pub fn rate_column(unit: &str) -> Column<'_> {
    Column {
        scale: Scale::Rate,
        slow_is_low: true,
        unit,
    }
}

/// A column of times whose header names the unit.
pub fn time_column(scale: Scale) -> Column<'static> {
    Column {
        scale,
        slow_is_low: false,
        unit: "",
    }
}

/// Whether a level has so many requests that are end-to-end only that they get a table's row:
/// a twentieth of its ok requests.
pub fn has_end_to_end_row(level: &LevelReport) -> bool {
    let n = level.end_to_end_only.n;
    n > 0 && n * 20 >= level.requests.ok
}

/// Why only the whole of these requests was observed.
pub fn why_end_to_end(level: &LevelReport) -> String {
    let only = &level.end_to_end_only;
    let buffered = only.n.saturating_sub(only.whole + only.too_short);
    let short = match only.too_short_longest_s {
        Some(longest) => format!("too short to tell ({} s)", significant(longest)),
        None => "too short to tell".into(),
    };
    let parts = [
        (buffered, "buffered".to_owned()),
        (only.whole, "not streamed".to_owned()),
        (only.too_short, short),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|(n, _)| *n > 0).collect();
    match parts.as_slice() {
        [(_, only)] => only.clone(),
        many => {
            let many: Vec<_> = many.iter().map(|(n, text)| format!("{n} {text}")).collect();
            many.join(", ")
        }
    }
}

/// The table of requests that are end-to-end only; none where no level has enough of them.
pub fn end_to_end(report: &Report, reasons: &mut Reasons) -> Option<Grid> {
    let rows = || {
        report
            .levels
            .iter()
            .filter(|level| has_end_to_end_row(level))
    };
    rows().next()?;
    let unit = one_unit(rows().map(|level| level.end_to_end_only.e2e_rate.unit()));
    let times = rows().map(|level| -> &Dist { &level.end_to_end_only.e2e });
    let scale = Scale::of_dists(times);
    let header = vec![
        "target".into(),
        "requests".into(),
        "why".into(),
        format!("e2e {}", unit.unwrap_or("rate")),
        "slow tail".into(),
        format!("e2e p50 {}", scale.unit()),
        format!("e2e tail {}", scale.unit()),
    ];
    let row = |level: &LevelReport| {
        let only = &level.end_to_end_only;
        let rate = rate_column(unit.map_or(only.e2e_rate.unit(), |_| ""));
        vec![
            name(level),
            format!("{} of {} ok", only.n, level.requests.ok),
            why_end_to_end(level),
            rate.median(&only.e2e_rate, reasons),
            rate.tail(&only.e2e_rate),
            time_column(scale).median(&only.e2e, reasons),
            time_column(scale).tail(&only.e2e),
        ]
    };
    Some(Grid {
        header,
        rows: rows().map(row).collect(),
        bold: vec![3],
    })
}
