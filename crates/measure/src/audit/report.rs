//! Owns the audit's report: all files, and what they have in common.

use std::collections::BTreeMap;

use serde::Serialize;

use super::column::Column;
use super::definition::Definition;
use super::form::{Metric, Stat, Tool};
use super::observe::Observed;
use super::rules::Severity;
use super::show::StatedShown;
use super::{Audit, Finding};

/// The schema's name and version.
pub const SCHEMA: &str = "denom.audit/1";

/// The audit of one or many files.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// One entry a file, in the order they were given or found.
    pub files: Vec<FileReport>,
    /// Over all files.
    pub summary: Summary,
}

/// What became of one file.
#[derive(Debug, Clone, Serialize)]
pub struct FileReport {
    /// Its path, as it was given or found.
    pub file: String,
    /// Whose it is.
    pub tool: Option<Tool>,
    /// Why it was not imported.
    pub not_imported: Option<String>,
    /// How many runs it holds.
    pub runs: usize,
    /// What does not hold, worst first.
    pub findings: Vec<Finding>,
    /// What it states.
    pub stated: Vec<StatedShown>,
    /// What its single requests support.
    pub observed: Vec<Observed>,
    /// What of it was not read.
    pub left_out: Vec<String>,
}

/// Over all files.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// Files looked at.
    pub files: usize,
    /// Of these, imported.
    pub imported: usize,
    /// Imported files with a fault, notes apart.
    pub with_faults: usize,
    /// Runs in them.
    pub runs: usize,
    /// Files by tool.
    pub tools: BTreeMap<&'static str, usize>,
    /// Files by rule.
    pub rules: BTreeMap<&'static str, usize>,
    /// Ranges of stated numbers, a row for each definition: two are never in one.
    pub columns: Vec<ColumnShown>,
    /// What was not looked at.
    pub left_out: Vec<String>,
}

/// The range of numbers of one definition over the files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnShown {
    /// What they are of.
    pub metric: Metric,
    /// Which statistic.
    pub stat: String,
    /// Its unit.
    pub unit: &'static str,
    /// What all of them mean.
    pub definition: Definition,
    /// How many numbers.
    pub n: usize,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl FileReport {
    /// What an audit of `file` came to.
    pub fn new(file: String, audit: Result<Audit, String>) -> Self {
        match audit {
            Ok(audit) => FileReport {
                file,
                tool: Some(audit.tool),
                not_imported: None,
                runs: audit.runs,
                findings: audit.findings,
                stated: audit.stated,
                observed: audit.observed,
                left_out: audit.left_out,
            },
            Err(why) => FileReport {
                file,
                tool: None,
                not_imported: Some(why),
                runs: 0,
                findings: Vec::new(),
                stated: Vec::new(),
                observed: Vec::new(),
                left_out: Vec::new(),
            },
        }
    }

    /// The worst of its findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Whether anything but what may stand on a clean file was found.
    pub fn has_faults(&self) -> bool {
        self.worst().is_some_and(|worst| worst > Severity::Note)
    }
}

impl Report {
    /// The report over these files; `left_out` says what was not looked at.
    pub fn new(files: Vec<FileReport>, left_out: Vec<String>) -> Self {
        let mut summary = Summary {
            files: files.len(),
            left_out,
            ..Summary::default()
        };
        for file in &files {
            if let Some(tool) = file.tool {
                summary.imported += 1;
                *summary.tools.entry(tool.name()).or_default() += 1;
            }
            summary.runs += file.runs;
            summary.with_faults += usize::from(file.has_faults());
            for finding in &file.findings {
                *summary.rules.entry(finding.rule).or_default() += 1;
            }
        }
        summary.columns = columns(&files);
        Report {
            schema: SCHEMA,
            files,
            summary,
        }
    }

    /// Whether any file has a fault.
    pub fn has_faults(&self) -> bool {
        self.files.iter().any(FileReport::has_faults)
    }
}

/// Whole-run rates and central times, each definition in a column of its own.
fn columns(files: &[FileReport]) -> Vec<ColumnShown> {
    let mut columns: Vec<Column> = Vec::new();
    for stated in files.iter().flat_map(|file| &file.stated) {
        let number = &stated.number;
        if !matches!(number.stat, Stat::Value | Stat::Median) {
            continue;
        }
        let taken = columns.iter_mut().any(|column| column.push(number).is_ok());
        if !taken {
            columns.push(Column::of(number));
        }
    }
    columns.sort_by_key(|column| (column.metric, column.stat, column.definition.id));
    columns.iter().filter_map(shown).collect()
}

fn shown(column: &Column) -> Option<ColumnShown> {
    let (min, max) = column.ends()?;
    Some(ColumnShown {
        metric: column.metric,
        stat: column.stat.name(),
        unit: column.metric.unit(),
        definition: column.definition,
        n: column.n(),
        min,
        max,
    })
}
