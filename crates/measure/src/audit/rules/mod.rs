//! Owns the rules: what can be wrong with a file's numbers, each with a page that explains it.

mod books;
mod load;
mod pace;
mod presence;
mod rows;
mod spread;
mod times;
mod tokens;

use serde::Serialize;

use super::form::{Metric, Run, Stat, Tool};
use super::observe::Request;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The number lacks something; it may be right. Such findings may stand on a clean file.
    Note,
    /// A reader of the number is likely to take it for something else.
    Warning,
    /// The number is not what its name says, or contradicts its own file.
    Error,
}

impl Severity {
    /// Its name in JSON and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its name, in JSON and as its page's file name.
    pub id: &'static str,
    /// How bad what it finds is.
    pub severity: Severity,
    /// Its page: what it means, how it is computed, when it can be a false alarm.
    pub page: &'static str,
    /// Looks at one run.
    pub(super) check: fn(&Scene<'_>) -> Option<Found>,
}

impl Rule {
    /// The page's first sentence after its title.
    pub fn summary(&self) -> &'static str {
        let body = self.page.split_once("\n\n").map_or("", |(_, body)| body);
        body.split("\n\n").next().unwrap_or_default()
    }
}

/// What a rule looks at.
pub(super) struct Scene<'a> {
    /// Whose file it is.
    pub tool: Tool,
    /// One of its runs.
    pub run: &'a Run,
    /// The run's requests, judged.
    pub requests: &'a [Request],
    /// Requests in flight on average, from single requests.
    pub held: Option<f64>,
    /// `NaN` and `Infinity` in the file.
    pub non_finite: u64,
}

/// What a rule found in one run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// Both numbers and what they mean.
    pub text: String,
    /// The fields it rests on.
    pub fields: Vec<String>,
}

impl Found {
    fn new(text: String, fields: impl IntoIterator<Item = Option<String>>) -> Option<Found> {
        let mut fields: Vec<String> = fields.into_iter().flatten().collect();
        fields.dedup();
        Some(Found { text, fields })
    }
}

impl Scene<'_> {
    /// Mean or median, by which is in the file.
    fn central(&self, metric: Metric) -> Option<(Stat, f64)> {
        [Stat::Mean, Stat::Median]
            .into_iter()
            .find_map(|stat| self.run.value(metric, stat).map(|value| (stat, value)))
    }

    /// Completed requests, where the file says how many.
    fn completed(&self) -> Option<f64> {
        self.run.books.completed
    }

    /// The field of the mean or the median of a metric.
    fn field(&self, metric: Metric) -> Option<String> {
        [Stat::Value, Stat::Mean, Stat::Median]
            .into_iter()
            .find_map(|stat| self.run.field(metric, stat))
    }
}

macro_rules! rule {
    ($id:literal, $severity:ident, $check:path) => {
        Rule {
            id: $id,
            severity: Severity::$severity,
            page: include_str!(concat!("../../../../../docs/audit/", $id, ".md")),
            check: $check,
        }
    };
}

/// Every rule, in the order in which findings are shown.
pub const RULES: &[Rule] = &[
    rule!("zero_latency", Error, times::zero_latency),
    rule!("burst_rate", Error, pace::burst_rate),
    rule!("ttft_is_e2e", Error, times::ttft_is_e2e),
    rule!("prediction_below_e2e", Error, times::prediction_below_e2e),
    rule!("peak_below_mean", Error, pace::peak_below_mean),
    rule!("chunks_as_tokens", Error, pace::chunks_as_tokens),
    rule!("gap_disagrees", Error, pace::gap_disagrees),
    rule!("rate_off_tokens", Error, tokens::rate_off_tokens),
    rule!("total_as_output", Error, tokens::total_as_output),
    rule!("requested_length", Error, tokens::requested_length),
    rule!("completed_empty", Error, tokens::completed_empty),
    rule!("tokens_over_limit", Error, tokens::tokens_over_limit),
    rule!("inverted_spread", Error, spread::inverted_spread),
    rule!("load_not_held", Error, load::load_not_held),
    rule!("concurrency_not_held", Error, load::concurrency_not_held),
    rule!("failures_hidden", Error, books::failures_hidden),
    rule!("rows_disagree", Error, rows::rows_disagree),
    rule!("wait_left_out", Warning, load::wait_left_out),
    rule!("peak_over_cap", Warning, load::peak_over_cap),
    rule!("wide_spread", Warning, spread::wide_spread),
    rule!("run_cut_short", Warning, books::run_cut_short),
    rule!("non_finite", Warning, books::non_finite),
    rule!("no_concurrency", Note, presence::no_concurrency),
    rule!("per_stream_missing", Note, presence::per_stream_missing),
    rule!("few_samples", Note, presence::few_samples),
    rule!("p99_from_too_few", Note, presence::p99_from_too_few),
    rule!("ramp_and_drain", Note, presence::ramp_and_drain),
];

/// The rule of this name.
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}
