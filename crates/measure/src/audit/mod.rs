//! Owns the audit of result files, other tools' and denom's own: what they state, what their
//! single requests support, and what does not hold.

pub mod column;
pub mod definition;
pub mod form;
pub mod observe;
pub mod read;
pub mod report;
pub mod rules;
pub mod show;

mod import;

use serde::Serialize;

pub use import::MOST_RUNS;

use form::{Metric, Run, Stat, Tool};
use observe::Observed;
use rules::{RULES, Scene, Severity};
use show::StatedShown;

use crate::figure::Withheld;

/// The most labels of runs that stand with a finding.
const MOST_LABELS: usize = 20;

/// What an audit found in one file.
#[derive(Debug, Clone)]
pub struct Audit {
    /// Whose it is.
    pub tool: Tool,
    /// How many runs or levels it holds.
    pub runs: usize,
    /// What does not hold, worst first.
    pub findings: Vec<Finding>,
    /// What it states, each with its tool's definition.
    pub stated: Vec<StatedShown>,
    /// What its single requests support.
    pub observed: Vec<Observed>,
    /// What of it was not read.
    pub left_out: Vec<String>,
}

/// One rule that found something.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What was found, in the first run that it was found in.
    pub text: String,
    /// The fields it rests on.
    pub fields: Vec<String>,
    /// In how many of the file's runs it was found.
    pub count: usize,
    /// Of how many.
    pub of: usize,
    /// Labels of these runs, at most twenty.
    pub runs: Vec<String>,
    /// The line of the file's first such field, from 1.
    pub line: Option<usize>,
}

impl Audit {
    /// Whether anything but what may stand on a clean file was found.
    pub fn has_faults(&self) -> bool {
        let worst = self.findings.iter().map(|finding| finding.severity).max();
        worst.is_some_and(|worst| worst > Severity::Note)
    }
}

/// Audits a file by its content.
///
/// # Errors
/// With why it was not imported: what it is not, or what is wrong with it.
pub fn audit(bytes: &[u8]) -> Result<Audit, String> {
    let content = read::read(bytes).map_err(|refused| refused.0)?;
    let import = import::import(&content, bytes)?;
    let mut found = Audit {
        tool: import.tool,
        runs: import.runs.len(),
        findings: Vec::new(),
        stated: Vec::new(),
        observed: Vec::new(),
        left_out: import.left_out,
    };
    for (index, mut run) in import.runs.into_iter().enumerate() {
        let requests = observe::requests(&run);
        let observed = observe::observed(&run, &requests);
        let scene = Scene {
            tool: import.tool,
            run: &run,
            requests: &requests,
            held: observed.as_ref().and_then(|observed| observed.held),
            non_finite: if index == 0 { content.non_finite } else { 0 },
        };
        look(&scene, &mut found.findings);
        found.observed.extend(observed);
        settle(&mut run);
        found.stated.extend(show::stated(&run));
    }
    let place = |finding: &Finding| RULES.iter().position(|rule| rule.id == finding.rule);
    found.findings.sort_by_key(place);
    for finding in &mut found.findings {
        finding.of = found.runs;
        finding.line = finding
            .fields
            .iter()
            .find_map(|field| line_of(bytes, field));
    }
    Ok(found)
}

/// Asks every rule about one run; a rule that found something before is counted on.
fn look(scene: &Scene<'_>, findings: &mut Vec<Finding>) {
    for rule in RULES {
        let Some(new) = (rule.check)(scene) else {
            continue;
        };
        let label = scene.run.label.clone();
        match findings.iter_mut().find(|found| found.rule == rule.id) {
            Some(found) => {
                found.count += 1;
                if found.runs.len() < MOST_LABELS {
                    found.runs.extend(label);
                }
            }
            None => findings.push(Finding {
                rule: rule.id,
                severity: rule.severity,
                text: new.text,
                fields: new.fields,
                count: 1,
                of: 0,
                runs: label.into_iter().collect(),
                line: None,
            }),
        }
    }
}

/// Withholds what is no measurement: numbers of a run without a result, times of 0, rates of 0
/// or below, reciprocals of spreads.
fn settle(run: &mut Run) {
    let nothing = !run.has_result();
    for number in &mut run.numbers {
        let Ok(value) = number.value else { continue };
        let spread = matches!(number.stat, Stat::Std | Stat::Min);
        let time = number.metric.is_time() && number.metric != Metric::ScheduleDelay;
        let why = if nothing {
            Withheld::new("no_result", "no request of the run completed")
        } else if number.definition == definition::USER_RECIPROCAL_OF_STATISTIC
            && number.stat == Stat::Std
        {
            Withheld::new("no_spread", "1 ÷ a spread is no spread")
        } else if time && value <= 0.0 && !spread {
            Withheld::new("zero", "a time of 0 or below was not measured")
        } else if value < early(number.metric) {
            Withheld::new("negative", "a value below 0 stands for none")
        } else {
            continue;
        };
        number.value = Err(why);
    }
}

/// The least that a value of a metric may be: a request may be sent a little before its time.
fn early(metric: Metric) -> f64 {
    match metric {
        Metric::ScheduleDelay => -0.1,
        _ => 0.0,
    }
}

/// The line, from 1, of the first place where a field's own name stands.
fn line_of(bytes: &[u8], field: &str) -> Option<usize> {
    let name = field
        .rsplit('.')
        .find(|part| part.parse::<f64>().is_err())?;
    let quoted = format!("\"{name}\"");
    let find = |needle: &str| memchr::memmem::find(bytes, needle.as_bytes());
    let at = find(&quoted).or_else(|| find(field))?;
    Some(memchr::memchr_iter(b'\n', &bytes[..at]).count() + 1)
}
