//! Owns the audit's page: each file's findings, what it states, and what its requests support.

use measure::audit::form::{Metric, Scope};
use measure::audit::observe::{Observed, ObservedFigure};
use measure::audit::report::{FileReport, Report};
use measure::audit::rules::Severity;
use measure::audit::show::StatedShown;
use measure::stated::number;

use super::escape::{cut, line, markdown as escaped};
use super::grid::Grid;
use super::text::Paper;
use super::{Style, indented};

/// The most runs of a file whose numbers are listed on a page.
const MOST_RUNS: usize = 6;
/// The most rows of the summary over files.
const MOST_COLUMNS: usize = 24;

/// The audit as one JSON object.
pub fn json(report: &Report) -> String {
    indented(report)
}

/// The audit as text.
pub fn text(report: &Report, style: Style) -> String {
    let mut paper = Paper::new(style);
    for file in &report.files {
        // A path is copied from the page, so it is not wrapped.
        paper.out.push_str(&style.bold(&line(&title(file))));
        paper.out.push('\n');
        for (label, said) in lines(file) {
            paper.line(&format!("  {label:<22} "), &said);
        }
        for grid in grids(file) {
            paper.table(&grid);
        }
        paper.gap();
    }
    if report.files.len() != 1 || !report.summary.left_out.is_empty() {
        for said in summary(report) {
            paper.line("", &said);
        }
        let columns = columns(report);
        if !columns.rows.is_empty() {
            paper.table(&columns);
        }
    }
    paper.out
}

/// The audit as Markdown.
pub fn markdown(report: &Report) -> String {
    let mut out = String::from("# Audit\n\n");
    for said in summary(report) {
        out.push_str(&format!("{}  \n", escaped(&said)));
    }
    out.push('\n');
    let columns = columns(report);
    if report.files.len() > 1 && !columns.rows.is_empty() {
        out.push_str(&super::markdown::table(&columns));
    }
    for file in &report.files {
        out.push_str(&format!("## {}\n\n", escaped(&title(file))));
        for (label, said) in lines(file) {
            out.push_str(&format!("- {}: {}\n", escaped(&label), escaped(&said)));
        }
        out.push('\n');
        for grid in grids(file) {
            out.push_str(&super::markdown::table(&grid));
        }
    }
    out
}

fn title(file: &FileReport) -> String {
    let name = cut(&file.file);
    match (file.tool, file.runs) {
        (None, _) => format!("{name}: not imported"),
        (Some(tool), 1) => format!("{name}: {}", tool.name()),
        (Some(tool), runs) => format!("{name}: {}, {runs} runs", tool.name()),
    }
}

/// A file's labelled lines: findings first, then what it states.
fn lines(file: &FileReport) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    if let Some(why) = &file.not_imported {
        lines.push(("why".into(), cut(why)));
    }
    for finding in &file.findings {
        let more = match (finding.count, finding.of) {
            (_, 1) => String::new(),
            (count, of) => format!(" ({count} of {of} runs)"),
        };
        let label = match finding.severity {
            Severity::Note => format!("note {}", finding.rule),
            Severity::Warning => format!("! {}", finding.rule),
            Severity::Error => format!("!! {}", finding.rule),
        };
        lines.push((label, format!("{}{more}", cut_each(&finding.text))));
    }
    if file.tool.is_some() && file.findings.is_empty() {
        lines.push(("clean".into(), "no rule found anything".into()));
    }
    for left in &file.left_out {
        lines.push(("left out".into(), cut(left)));
    }
    lines.extend(stated(file));
    lines
}

/// A finding's text holds numbers and words of this program only, and may be long.
fn cut_each(text: &str) -> String {
    text.chars().take(600).collect()
}

/// The system's and the stream's rates of the first runs, each with both readings.
fn stated(file: &FileReport) -> Vec<(String, String)> {
    let leads = |stated: &&StatedShown| {
        let lead = matches!(
            stated.metric,
            Metric::SystemOutput | Metric::StreamGeneration | Metric::StreamEndToEnd
        );
        lead && stated.readings.is_some() && matches!(stated.stat.as_str(), "value" | "mean")
    };
    let all: Vec<&StatedShown> = file.stated.iter().filter(leads).collect();
    let shown = all.iter().take(MOST_RUNS).map(|stated| {
        let run = stated.run.as_deref().filter(|_| file.runs > 1);
        let run = run.map(|run| format!("{}: ", cut(run))).unwrap_or_default();
        ("states".to_owned(), format!("{run}{}", sentence(stated)))
    });
    let mut lines: Vec<_> = shown.collect();
    if all.len() > MOST_RUNS {
        let more = format!("{} more, in --format json", all.len() - MOST_RUNS);
        lines.push(("states".into(), more));
    }
    lines
}

fn sentence(stated: &StatedShown) -> String {
    let value = stated.value.map(number).unwrap_or_default();
    let name = stated.metric.name();
    let [system, stream] = match &stated.readings {
        Some(readings) => readings,
        None => return format!("{name} {value} {}", stated.unit),
    };
    let streams = match (stated.concurrency.held, stated.concurrency.target) {
        (Some(held), _) => format!("{} in flight", number((held * 100.0).round() / 100.0)),
        (None, Some(1.0)) => "one stream".into(),
        (None, Some(target)) => format!("{} streams", number(target)),
        (None, None) => "nobody knows how many streams".into(),
    };
    let (meant, other) = match stated.scope {
        Scope::PerStream => (
            format!("{} for the system", stream.system),
            format!("as the system's {} a stream", system.per_stream),
        ),
        Scope::System | Scope::PerGpu => (
            format!("{} a stream", system.per_stream),
            format!("as a stream's {} for the system", stream.system),
        ),
    };
    format!(
        "{name} {value} {}: {meant} with {streams} (read {other}); {}",
        stated.unit, stated.definition.text
    )
}

/// A table a run with single requests: what the tool printed beside what they support.
fn grids(file: &FileReport) -> Vec<Grid> {
    let runs = file.observed.iter().take(MOST_RUNS);
    runs.map(|observed| grid(file, observed)).collect()
}

fn grid(file: &FileReport, observed: &Observed) -> Grid {
    let shapes: Vec<String> = observed
        .shapes
        .iter()
        .map(|(shape, count)| format!("{count} {shape}"))
        .collect();
    let run = observed.run.as_deref().filter(|_| file.runs > 1);
    let of = format!(
        "its requests support ({} of {} ok: {})",
        observed.ok,
        observed.requests,
        shapes.join(", ")
    );
    let mut grid = Grid {
        header: vec![
            run.map_or_else(|| "figure".into(), cut),
            "the file states".into(),
            of,
        ],
        ..Grid::default()
    };
    for figure in &observed.figures {
        let said = stated_cell(file, observed, figure.metric);
        grid.rows.push(vec![
            format!("{} ({})", figure.metric, figure.unit),
            said,
            observed_cell(figure),
        ]);
    }
    grid
}

/// The tool's own number of the metric, with its definition's name.
fn stated_cell(file: &FileReport, observed: &Observed, metric: &str) -> String {
    let same = |stated: &&StatedShown| {
        stated.metric.name() == metric
            && stated.run == observed.run
            && matches!(stated.stat.as_str(), "p50" | "mean")
    };
    let found = file.stated.iter().filter(same);
    let best = found.max_by_key(|stated| stated.stat == "p50");
    match best {
        Some(stated) => {
            let value = stated.value.map_or_else(|| "–".into(), number);
            format!("{} {value} ({})", stated.stat, stated.definition.id)
        }
        None => "–".into(),
    }
}

fn observed_cell(figure: &ObservedFigure) -> String {
    if let Some(why) = &figure.withheld {
        return format!("– {}", why.text);
    }
    let of = format!("{} of {}", figure.kept, figure.of);
    match (figure.median(), figure.ends()) {
        (Some(median), _) => format!("p50 {} ({of})", rounded(median)),
        (None, Some((low, high))) => format!("{} to {} ({of})", rounded(low), rounded(high)),
        (None, None) => "–".into(),
    }
}

/// Four significant digits.
fn rounded(value: f64) -> String {
    let digits = value.abs().max(1e-9).log10().floor() as i32;
    let factor = 10_f64.powi(3 - digits);
    number((value * factor).round() / factor)
}

fn summary(report: &Report) -> Vec<String> {
    let summary = &report.summary;
    let mut said = vec![format!(
        "{} files, {} imported with {} runs; {} with faults",
        summary.files, summary.imported, summary.runs, summary.with_faults
    )];
    let counted = |counts: &std::collections::BTreeMap<&'static str, usize>| {
        let each: Vec<String> = counts
            .iter()
            .map(|(name, n)| format!("{name} {n}"))
            .collect();
        each.join(", ")
    };
    if !summary.tools.is_empty() {
        said.push(format!("tools: {}", counted(&summary.tools)));
    }
    if !summary.rules.is_empty() {
        said.push(format!("findings, by files: {}", counted(&summary.rules)));
    }
    said.extend(
        summary
            .left_out
            .iter()
            .map(|left| format!("left out: {}", cut(left))),
    );
    said
}

/// Ranges of stated numbers, a row for each definition.
fn columns(report: &Report) -> Grid {
    let rows = report.summary.columns.iter().take(MOST_COLUMNS);
    let row = |column: &measure::audit::report::ColumnShown| {
        vec![
            format!("{} {}", column.metric.name(), column.stat),
            column.definition.id.to_owned(),
            format!(
                "{} to {} {}",
                rounded(column.min),
                rounded(column.max),
                column.unit
            ),
            column.n.to_string(),
        ]
    };
    Grid {
        header: ["stated", "definition", "range", "n"]
            .map(str::to_owned)
            .to_vec(),
        rows: rows.map(row).collect(),
        bold: Vec::new(),
    }
}
