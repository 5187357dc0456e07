//! Owns `denom audit`: finding the files, reading each, and what the findings mean for the exit code.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use measure::audit::report::{FileReport, Report};
use measure::audit::{self, read::MOST_BYTES, rules};

use super::run::{out, style};
use crate::exit::{self, Failure};
use crate::page;

/// The JSON schema of an audit.
const SCHEMA: &str = include_str!("../../../../docs/schema/audit-1.json");
/// The most files that are taken from directories.
const MOST_FILES: usize = 10_000;
/// How deep directories are gone into.
const MOST_DEEP: usize = 16;
/// Endings of files that results are kept in; others in a directory are not opened.
const ENDINGS: [&str; 8] = [
    "json", "jsonl", "ndjson", "txt", "md", "log", "out", "stdout",
];

/// How an audit is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuditFormat {
    /// For a person at a terminal
    Text,
    /// One JSON object, see `denom audit --schema`
    Json,
    /// For a README or an issue
    Markdown,
    /// For a host that annotates a repository's files
    Sarif,
}

/// Flags of `denom audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Result files, or directories of them
    #[arg(required_unless_present_any = ["schema", "explain"], value_name = "FILE|DIR")]
    pub paths: Vec<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = AuditFormat::Text)]
    pub format: AuditFormat,
    /// End with 0 whatever was found
    #[arg(long)]
    pub exit_zero: bool,
    /// Print a rule's page: what it means, how it is computed, when it can be a false alarm
    #[arg(long, value_name = "RULE", exclusive = true)]
    pub explain: Option<String>,
    /// Print the JSON schema of --format json
    #[arg(long, exclusive = true)]
    pub schema: bool,
}

/// Runs the command.
///
/// # Errors
/// With code 2 where a path cannot be read.
pub fn run(args: &AuditArgs) -> Result<u8, Failure> {
    if args.schema {
        out(SCHEMA)?;
        return Ok(exit::DONE);
    }
    if let Some(id) = &args.explain {
        return explain(id);
    }
    let mut found = Found::default();
    for path in &args.paths {
        found.take(path)?;
    }
    let files = found.files.iter().map(|path| audit_one(path)).collect();
    let report = Report::new(files, found.left_out);
    out(&match args.format {
        AuditFormat::Text => page::audit::text(&report, style()),
        AuditFormat::Json => page::audit::json(&report),
        AuditFormat::Markdown => page::audit::markdown(&report),
        AuditFormat::Sarif => page::audit_sarif::sarif(&report),
    })?;
    Ok(code(&report, args.exit_zero))
}

fn code(report: &Report, exit_zero: bool) -> u8 {
    match (exit_zero, report.has_faults(), report.summary.imported) {
        (true, _, _) => exit::DONE,
        (_, true, _) => exit::FAILED,
        (_, _, 0) => exit::INVALID,
        _ => exit::DONE,
    }
}

/// Prints a rule's page.
fn explain(id: &str) -> Result<u8, Failure> {
    let rule = rules::rule(id).ok_or_else(|| {
        let ids: Vec<&str> = rules::RULES.iter().map(|rule| rule.id).collect();
        Failure::usage(format!(
            "there is no rule {id:?}; there are {}",
            ids.join(", ")
        ))
    })?;
    out(rule.page)?;
    Ok(exit::DONE)
}

fn audit_one(path: &Path) -> FileReport {
    let audit = read(path).and_then(|bytes| audit::audit(&bytes));
    FileReport::new(path.display().to_string(), audit)
}

/// The file's bytes; one more than the limit is read, so that a larger file is known as such.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("it cannot be read: {error}");
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    Ok(bytes)
}

/// The files that the given paths lead to.
#[derive(Debug, Default)]
struct Found {
    files: Vec<PathBuf>,
    left_out: Vec<String>,
    other_endings: usize,
}

impl Found {
    /// Takes a path as the user gave it.
    fn take(&mut self, path: &Path) -> Result<(), Failure> {
        let unreadable = |error: std::io::Error| {
            Failure::usage(format!("{} cannot be read: {error}", path.display()))
        };
        let meta = std::fs::metadata(path).map_err(unreadable)?;
        if !meta.is_dir() && !meta.is_file() {
            return Err(Failure::usage(format!(
                "{} is a pipe, a socket or a device, whose end may never come: write its content to a file and give that",
                path.display()
            )));
        }
        if !meta.is_dir() {
            std::fs::File::open(path).map_err(unreadable)?;
            self.files.push(path.to_owned());
            return Ok(());
        }
        std::fs::read_dir(path).map_err(unreadable)?;
        self.walk(path, 0);
        if self.other_endings > 0 {
            self.left_out.push(format!(
                "{} files in {} end in none of {}",
                self.other_endings,
                path.display(),
                ENDINGS.join(", ")
            ));
        }
        self.other_endings = 0;
        Ok(())
    }

    /// Takes the files below a directory in order of their names; links are not followed.
    fn walk(&mut self, directory: &Path, depth: usize) {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                let text = format!("{} cannot be read: {error}", directory.display());
                self.left_out.push(text);
                return;
            }
        };
        let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !hidden && depth < MOST_DEEP => {
                    self.walk(&path, depth + 1);
                }
                Ok(kind) if kind.is_dir() && !hidden => {
                    let text = format!("{} lies too deep", path.display());
                    self.left_out.push(text);
                }
                Ok(kind) if kind.is_file() && !hidden => self.add(path),
                _ => {}
            }
        }
    }

    fn add(&mut self, path: PathBuf) {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let known = ending.is_some_and(|ending| {
            let mut all = ENDINGS.iter();
            all.any(|known| known.eq_ignore_ascii_case(ending))
        });
        match (known, self.files.len() < MOST_FILES) {
            (true, true) => self.files.push(path),
            (true, false) => {
                let text = format!("only the first {MOST_FILES} files were audited");
                if !self.left_out.contains(&text) {
                    self.left_out.push(text);
                }
            }
            (false, _) => self.other_endings += 1,
        }
    }
}
