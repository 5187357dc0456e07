//! Owns the normal form of an import: what a file states, of what kind each number is, and its rows.

use super::definition::{Definition, Different};
pub use super::kind::{Metric, Scope, Stat, Tool};
use crate::figure::Withheld;
use crate::judge::Judged;
use crate::time::Length;
use crate::tokens::Source;

/// One number that a file states.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// What it is of.
    pub metric: Metric,
    /// Which statistic.
    pub stat: Stat,
    /// The value in the metric's unit, or why there is none.
    pub value: Result<f64, Withheld>,
    /// What its tool means by it.
    pub definition: Definition,
    /// Where it stands in the file.
    pub field: String,
}

impl Number {
    /// The value, where there is one.
    pub fn known(&self) -> Option<f64> {
        self.value.as_ref().ok().copied()
    }

    /// This number over another of the same definition and statistic.
    ///
    /// # Errors
    /// Where the two mean different things; `Ok(None)` where either is withheld or the lower is 0.
    pub fn over(&self, other: &Number) -> Result<Option<f64>, Different> {
        self.definition.same_as(other.definition)?;
        let ratio = self
            .known()
            .zip(other.known())
            .filter(|(_, below)| *below != 0.0 && self.stat == other.stat)
            .map(|(above, below)| above / below);
        Ok(ratio)
    }
}

/// What a run was asked to do, as far as its file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// Model.
    pub model: Option<String>,
    /// Streams at once, where that is the load.
    pub concurrency: Option<f64>,
    /// Most requests at once, where a rate is the load.
    pub cap: Option<f64>,
    /// Requests a second; none where unlimited.
    pub request_rate: Option<f64>,
    /// The load has no rate: as fast as the cap lets it.
    pub unlimited: bool,
    /// Output tokens asked for at most, a request.
    pub output_limit: Option<f64>,
    /// Requests to be sent.
    pub requests: Option<f64>,
    /// Streaming was asked for.
    pub streaming: Option<bool>,
}

/// What became of the requests, as far as the file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Books {
    /// Completed.
    pub completed: Option<f64>,
    /// Failed.
    pub failed: Option<f64>,
    /// The share of failures that the tool states.
    pub error_rate: Option<f64>,
    /// Checks that failed although their request counts as a success: (failed, of).
    pub failed_checks: Option<(f64, f64)>,
    /// Requests that the tool leaves out of its success rate.
    pub left_out: Option<f64>,
    /// The run was cut short.
    pub cut_short: bool,
}

/// Sums that the file states.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Seconds timed.
    pub duration: Option<f64>,
    /// Output tokens.
    pub output: Option<f64>,
    /// Input tokens.
    pub input: Option<f64>,
    /// Output tokens counted again from the text.
    pub retokenized: Option<f64>,
    /// GPUs that a rate is divided by.
    pub gpus: Option<f64>,
}

/// When a request's chunks arrived, as finely as the file says; times from its send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Each chunk.
    All(Vec<Length>),
    /// The first and the last, and how many there were.
    Ends {
        /// First content.
        first: Length,
        /// Last content.
        last: Length,
        /// Chunks in all.
        chunks: u64,
    },
    /// Nothing of the stream.
    Nothing,
}

/// One request as a file tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Send, from the file's earliest; none where the file has no starts.
    pub start: Option<Length>,
    /// The tool counts it as a success.
    pub ok: bool,
    /// Stamps of its content.
    pub seen: Seen,
    /// Time to the first token as written; 0 is kept, since it is a finding.
    pub ttft: Option<f64>,
    /// Send to end.
    pub e2e: Option<Length>,
    /// Output tokens.
    pub output: Option<u64>,
    /// Who counted.
    pub source: Source,
    /// Input tokens.
    pub input: Option<u64>,
    /// Output tokens asked for.
    pub limit: Option<u64>,
    /// The per-request rate that the tool wrote, in its own words' unit.
    pub stated_rate: Option<f64>,
}

/// The requests of a run, where the file has them.
#[derive(Debug, Clone)]
pub enum Rows {
    /// The file has none.
    None,
    /// As another tool wrote them.
    Written(Vec<Row>),
    /// Of denom's own record: judged by its own stamps.
    Own(Vec<Judged>),
}

/// One run or load level of a file.
#[derive(Debug, Clone)]
pub struct Run {
    /// Which of the file's runs, where it has several.
    pub label: Option<String>,
    /// What it was asked to do.
    pub config: Config,
    /// What became of its requests.
    pub books: Books,
    /// Its sums.
    pub totals: Totals,
    /// Every number it states.
    pub numbers: Vec<Number>,
    /// Its requests.
    pub rows: Rows,
    /// Sums that are written and cannot be, each with its number: they were not read.
    pub impossible: Vec<String>,
}

impl Run {
    /// A run of which nothing is known yet.
    pub fn new() -> Self {
        Run {
            label: None,
            config: Config::default(),
            books: Books::default(),
            totals: Totals::default(),
            numbers: Vec::new(),
            rows: Rows::None,
            impossible: Vec::new(),
        }
    }

    /// A run of which the file has nothing but its requests, with a limit on none of them.
    pub fn of_rows(rows: Vec<Row>) -> Self {
        let failed = rows.iter().filter(|row| !row.ok).count();
        let mut run = Run::new();
        run.config.unlimited = true;
        run.books.completed = Some((rows.len() - failed) as f64);
        run.books.failed = Some(failed as f64);
        run.rows = Rows::Written(rows);
        run
    }

    /// Drops what no configuration, count or sum can be: a marker for none, or nonsense.
    pub fn drop_impossible(&mut self) {
        let (config, books, totals) = (&mut self.config, &mut self.books, &mut self.totals);
        if let Some(duration) = totals.duration.filter(|duration| *duration <= 0.0) {
            self.impossible.push(format!("a duration of {duration} s"));
        }
        for positive in [
            &mut config.concurrency,
            &mut config.cap,
            &mut config.request_rate,
            &mut config.output_limit,
            &mut config.requests,
            &mut totals.duration,
            &mut totals.gpus,
        ] {
            *positive = positive.filter(|value| *value > 0.0);
        }
        for count in [
            &mut books.completed,
            &mut books.failed,
            &mut books.error_rate,
            &mut books.left_out,
            &mut totals.output,
            &mut totals.input,
            &mut totals.retokenized,
        ] {
            *count = count.filter(|value| *value >= 0.0);
        }
        let checks = |(failed, of): &(f64, f64)| *failed >= 0.0 && of >= failed;
        books.failed_checks = books.failed_checks.filter(checks);
    }

    /// The first number of this kind.
    pub fn number(&self, metric: Metric, stat: Stat) -> Option<&Number> {
        self.numbers
            .iter()
            .find(|number| number.metric == metric && number.stat == stat)
    }

    /// Its value, where there is one.
    pub fn value(&self, metric: Metric, stat: Stat) -> Option<f64> {
        self.number(metric, stat).and_then(Number::known)
    }

    /// A rate of the whole run, under either of the names it may have.
    pub fn rate(&self, metric: Metric) -> Option<f64> {
        self.value(metric, Stat::Value)
            .or_else(|| self.value(metric, Stat::Mean))
    }

    /// Where the first number of this kind stands in the file.
    pub fn field(&self, metric: Metric, stat: Stat) -> Option<String> {
        self.number(metric, stat).map(|number| number.field.clone())
    }

    /// Mean output tokens a request: as stated, else the sum over completed requests.
    pub fn mean_output(&self) -> Option<f64> {
        let stated = self.value(Metric::OutputLength, Stat::Mean);
        let summed = self.totals.output.zip(self.books.completed);
        stated.or_else(|| {
            summed
                .filter(|(_, completed)| *completed > 0.0)
                .map(|(output, completed)| output / completed)
        })
    }

    /// Mean output tokens ÷ mean latency: what a stream makes over its whole request. None where
    /// either is unknown or 0.
    pub fn stream_over_latency(&self) -> Option<f64> {
        let latency = self
            .value(Metric::E2e, Stat::Mean)
            .filter(|latency| *latency > 0.0)?;
        let tokens = self.mean_output().filter(|tokens| *tokens > 0.0)?;
        Some(tokens / latency)
    }

    /// Requests in flight on average: as the tool measured it, else requests a second × mean
    /// latency (Little's law).
    pub fn held(&self) -> Option<Held> {
        if let Some(measured) = self.rate(Metric::InFlight) {
            return Some(Held {
                value: measured,
                how: "measured by the tool",
            });
        }
        let rate = self.rate(Metric::Requests)?;
        let latency = self.value(Metric::E2e, Stat::Mean)?;
        (rate > 0.0 && latency > 0.0).then_some(Held {
            value: rate * latency,
            how: "requests a second × mean latency",
        })
    }

    /// Whether the file states any rate of one stream.
    pub fn has_stream_rate(&self) -> bool {
        let stated = |metric| {
            [Stat::Mean, Stat::Median, Stat::Value]
                .iter()
                .any(|stat| self.number(metric, *stat).is_some())
        };
        stated(Metric::StreamGeneration) || stated(Metric::StreamEndToEnd)
    }

    /// Whether any number of the run was read: a figure, a count, a sum or a request.
    pub fn tells(&self) -> bool {
        let (books, totals) = (&self.books, &self.totals);
        let rows = match &self.rows {
            Rows::None => 0,
            Rows::Written(rows) => rows.len(),
            Rows::Own(judged) => judged.len(),
        };
        let counts = [books.completed, books.failed, totals.output, totals.input];
        rows > 0 || !self.numbers.is_empty() || counts.iter().any(Option::is_some)
    }

    /// Whether anything came of the run.
    pub fn has_result(&self) -> bool {
        self.books.completed.is_none_or(|completed| completed > 0.0)
    }
}

impl Default for Run {
    fn default() -> Self {
        Run::new()
    }
}

/// A concurrency that was worked out, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Held {
    /// Requests in flight on average.
    pub value: f64,
    /// How it was found.
    pub how: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::definition;

    #[test]
    fn numbers_of_two_definitions_make_no_ratio() {
        let number = |definition, value| Number {
            metric: Metric::Ttft,
            stat: Stat::Mean,
            value: Ok(value),
            definition,
            field: "f".into(),
        };
        let role = number(definition::TTFT_CHOICES, 0.033);
        let content = number(definition::TTFT_CONTENT, 0.066);
        assert_eq!(content.over(&content), Ok(Some(1.0)));
        let refused = content.over(&role).expect_err("refused").to_string();
        assert!(refused.contains("ttft.first_choices") && refused.contains("ttft.first_content"));
    }
}
