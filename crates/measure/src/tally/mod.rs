//! Owns the tally: a log of work by parallel workers, summed row by row in bounded memory.
//!
//! ```
//! use measure::tally::{Options, Row, Tally};
//! let mut tally = Tally::new(Options { unit: "pages".into(), ..Options::default() });
//! for (start, end) in [("0", "4"), ("0", "4"), ("4", "8"), ("4", "8")] {
//!     tally.add(&Row { start: Some(start), end: Some(end), ..Row::default() });
//! }
//! let report = tally.finish().unwrap();
//! assert_eq!(report.held_concurrency, 2.0);
//! assert_eq!(report.readings[0].system.value(), Some(0.5));
//! assert_eq!(report.readings[0].per_stream.value(), Some(0.25));
//! ```

mod peak;
mod report;
mod sketch;
#[cfg(test)]
mod tests;
mod when;

use std::collections::{BTreeMap, HashMap};

pub use report::{Books, Peak, PerWorker, Spread, TallyReport, Times, Value};
pub use when::{TimeUnit, Written};

use peak::Windows;
use sketch::Sketch;

/// The schema's name and version.
pub const SCHEMA: &str = "denom.tally/1";

/// Workers that are told apart; with more, per-worker figures are withheld.
pub const MOST_WORKERS: usize = 100_000;

/// What the user said of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Rows give a duration, not an end.
    pub by_duration: bool,
    /// Rows name a worker.
    pub by_worker: bool,
    /// Rows give an amount; else each row counts one.
    pub by_units: bool,
    /// What is counted.
    pub unit: String,
    /// The unit of times that are numbers; by magnitude where none.
    pub time_unit: Option<TimeUnit>,
    /// The unit of durations that are numbers.
    pub duration_unit: TimeUnit,
    /// Length of the window of the peak, in nanoseconds; found where none.
    pub peak_window: Option<i64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            by_duration: false,
            by_worker: false,
            by_units: false,
            unit: "rows".into(),
            time_unit: None,
            duration_unit: TimeUnit::Seconds,
            peak_window: None,
        }
    }
}

/// One row of the log, as text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row<'a> {
    /// When the work began.
    pub start: Option<&'a str>,
    /// When it ended.
    pub end: Option<&'a str>,
    /// How long it took, where that is given instead.
    pub duration: Option<&'a str>,
    /// Who did it.
    pub worker: Option<&'a str>,
    /// How much it was.
    pub units: Option<&'a str>,
}

/// Why a row is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Excluded {
    /// It is no row of this file's kind.
    Malformed,
    /// It is longer than a row may be.
    TooLong,
    /// It has no start.
    NoStart,
    /// Its start is no time.
    BadStart,
    /// It has no end, or no duration.
    NoEnd,
    /// Its end is no time, or its duration no length.
    BadEnd,
    /// It ends before it starts.
    EndsBeforeStart,
    /// It names no worker.
    NoWorker,
    /// It has no amount.
    NoUnits,
    /// Its amount is no number from 0 on.
    BadUnits,
}

impl Excluded {
    /// As JSON names it.
    pub fn code(self) -> &'static str {
        match self {
            Excluded::Malformed => "malformed",
            Excluded::TooLong => "too_long",
            Excluded::NoStart => "no_start",
            Excluded::BadStart => "bad_start",
            Excluded::NoEnd => "no_end",
            Excluded::BadEnd => "bad_end",
            Excluded::EndsBeforeStart => "ends_before_start",
            Excluded::NoWorker => "no_worker",
            Excluded::NoUnits => "no_units",
            Excluded::BadUnits => "bad_units",
        }
    }

    /// In words, for a page.
    pub fn words(self) -> &'static str {
        match self {
            Excluded::Malformed => "no row of this file's kind",
            Excluded::TooLong => "longer than a row may be",
            Excluded::NoStart => "no start",
            Excluded::BadStart => "a start that is no time",
            Excluded::NoEnd => "no end",
            Excluded::BadEnd => "an end that is no time",
            Excluded::EndsBeforeStart => "an end before the start",
            Excluded::NoWorker => "no worker",
            Excluded::NoUnits => "no amount",
            Excluded::BadUnits => "an amount that is no number from 0 on",
        }
    }
}

/// Why there is no report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTally {
    /// No row could be used.
    NothingUsed,
    /// All work began and ended at one instant.
    NoTime,
    /// The amounts of all rows are 0.
    NothingCounted,
    /// Some times count from 1970 and others from the file's own origin.
    MixedTimes,
}

/// One row, understood.
struct Work {
    start: i64,
    end: i64,
    /// In millionths.
    amount: u64,
}

/// What one worker did.
#[derive(Debug, Clone, Default, PartialEq)]
struct Worker {
    amount: u128,
    busy: i128,
    span: Option<(i64, i64)>,
}

/// The sums so far. They do not depend on the order of the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    options: Options,
    rows: u64,
    used: u64,
    excluded: BTreeMap<Excluded, u64>,
    written: BTreeMap<Written, u64>,
    span: Option<(i64, i64)>,
    amount: u128,
    busy: i128,
    instant: u64,
    rates: Sketch,
    durations: Sketch,
    workers: HashMap<String, Worker>,
    too_many_workers: bool,
    windows: Windows,
}

impl Tally {
    /// Nothing summed yet.
    pub fn new(options: Options) -> Self {
        Tally {
            windows: Windows::new(options.peak_window),
            options,
            rows: 0,
            used: 0,
            excluded: BTreeMap::new(),
            written: BTreeMap::new(),
            span: None,
            amount: 0,
            busy: 0,
            instant: 0,
            rates: Sketch::default(),
            durations: Sketch::default(),
            workers: HashMap::new(),
            too_many_workers: false,
        }
    }

    /// Takes in a row, or counts why it is not used.
    pub fn add(&mut self, row: &Row<'_>) {
        match self.understood(row) {
            Ok(work) => {
                self.rows += 1;
                self.sum(&work, row.worker);
            }
            Err(why) => self.exclude(why),
        }
    }

    /// Counts a row that could not be read.
    pub fn exclude(&mut self, why: Excluded) {
        self.rows += 1;
        *self.excluded.entry(why).or_insert(0) += 1;
    }

    fn understood(&mut self, row: &Row<'_>) -> Result<Work, Excluded> {
        let given =
            |text: Option<&'_ str>| text.map(str::trim).is_some_and(|text| !text.is_empty());
        let (start, end) = (row.start.unwrap_or(""), row.end.unwrap_or(""));
        if !given(row.start) {
            return Err(Excluded::NoStart);
        }
        let unit = self.options.time_unit;
        let (start, start_written) = when::instant(start, unit).ok_or(Excluded::BadStart)?;
        let (end, end_written) = if self.options.by_duration {
            let text = row
                .duration
                .filter(|_| given(row.duration))
                .ok_or(Excluded::NoEnd)?;
            let length = when::length(text, self.options.duration_unit).ok_or(Excluded::BadEnd)?;
            (start.checked_add(length).ok_or(Excluded::BadEnd)?, None)
        } else {
            if !given(row.end) {
                return Err(Excluded::NoEnd);
            }
            let (end, written) = when::instant(end, unit).ok_or(Excluded::BadEnd)?;
            (end, Some(written))
        };
        if end < start {
            return Err(Excluded::EndsBeforeStart);
        }
        if self.options.by_worker && !given(row.worker) {
            return Err(Excluded::NoWorker);
        }
        let amount = match (self.options.by_units, row.units) {
            (false, _) => 1_000_000,
            (true, units) if given(units) => {
                when::amount(units.unwrap_or("")).ok_or(Excluded::BadUnits)?
            }
            (true, _) => return Err(Excluded::NoUnits),
        };
        for written in std::iter::once(start_written).chain(end_written) {
            *self.written.entry(written).or_insert(0) += 1;
        }
        Ok(Work { start, end, amount })
    }

    fn sum(&mut self, work: &Work, worker: Option<&str>) {
        let length = i128::from(work.end) - i128::from(work.start);
        self.used += 1;
        self.amount += u128::from(work.amount);
        self.busy += length;
        self.span = Some(wider(self.span, work));
        self.durations.add(length as f64 / 1e9);
        match length {
            0 => self.instant += 1,
            _ => self.rates.add(work.amount as f64 * 1e3 / length as f64),
        }
        self.windows.add(work.end, work.amount);
        if let Some(name) = worker.filter(|_| self.options.by_worker) {
            self.of_worker(name.trim(), work, length);
        }
    }

    fn of_worker(&mut self, name: &str, work: &Work, length: i128) {
        if self.too_many_workers {
            return;
        }
        if !self.workers.contains_key(name) {
            if self.workers.len() == MOST_WORKERS {
                self.too_many_workers = true;
                self.workers.clear();
                return;
            }
            self.workers.insert(name.to_owned(), Worker::default());
        }
        if let Some(worker) = self.workers.get_mut(name) {
            worker.amount += u128::from(work.amount);
            worker.busy += length;
            worker.span = Some(wider(worker.span, work));
        }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows not used so far, by why.
    pub fn excluded(&self) -> impl Iterator<Item = (Excluded, u64)> + '_ {
        self.excluded.iter().map(|(why, n)| (*why, *n))
    }

    /// The report.
    ///
    /// # Errors
    /// Where nothing can be computed.
    pub fn finish(self) -> Result<TallyReport, NoTally> {
        report::build(self)
    }
}

fn wider(span: Option<(i64, i64)>, work: &Work) -> (i64, i64) {
    let (start, end) = span.unwrap_or((work.start, work.end));
    (start.min(work.start), end.max(work.end))
}
