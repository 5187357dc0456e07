//! Owns the report of a tally: every figure with what it rests on.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sketch::Sketch;
use super::{Excluded, MOST_WORKERS, NoTally, SCHEMA, Tally, Worker, Written};
use crate::figure::{Evidence, Withheld};
use crate::quantile::{self, Quantile};
use crate::stated::{Reading, Span, Stated, StatedNumerator, StatedPopulation, Streams, readings};

/// Everything a tally shows. Its figures are *stated*: the log's clock is not denom's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TallyReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What is counted.
    pub unit: String,
    /// What became of the rows.
    pub books: Books,
    /// The stretch of time.
    pub times: Times,
    /// How much was done in all.
    pub amount: f64,
    /// Seconds of work, summed over all rows.
    pub work_s: f64,
    /// Rows in work at once, on average: seconds of work over seconds of time.
    pub held_concurrency: f64,
    /// The first reading is the log's own: the system's rate, and over what was held that of one
    /// stream. The second is what the system would do if that number were one stream's.
    pub readings: [Reading; 2],
    /// Amount over duration, by row.
    pub per_row: Spread,
    /// Durations.
    pub durations: Spread,
    /// By worker, where the log names them.
    pub per_worker: Option<PerWorker>,
    /// The fullest window.
    pub peak: Peak,
}

/// What became of the rows: rows = used + excluded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Books {
    /// Read.
    pub rows: u64,
    /// Of these, used.
    pub used: u64,
    /// The others, by why.
    pub excluded: BTreeMap<Excluded, u64>,
    /// Of the used ones, those that took no time: they have no rate of their own.
    pub took_no_time: u64,
}

/// The stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Times {
    /// From the first start to the last end, in seconds.
    pub seconds: f64,
    /// The first start, in seconds since 1970 or since the file's own origin.
    pub start_s: f64,
    /// The last end, likewise.
    pub end_s: f64,
    /// How the window was chosen.
    pub rule: &'static str,
    /// How times were written, with how many of each.
    pub written: BTreeMap<Written, u64>,
}

/// A value with its interval, or why it has none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Value {
    /// The value.
    pub value: Option<f64>,
    /// Distribution-free, 95 %.
    pub ci95: Option<[f64; 2]>,
    /// Why it is not shown.
    pub withheld: Option<Withheld>,
}

/// A distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// The metric.
    pub metric: &'static str,
    /// The unit of its values.
    pub unit: String,
    /// How each value was timed.
    pub rule: &'static str,
    /// Whose values they are.
    pub scope: &'static str,
    /// How many.
    pub n: u64,
    /// Of how many.
    pub of: u64,
    /// What kind of evidence.
    pub evidence: Evidence,
    /// Quantiles by name.
    #[serde(flatten)]
    pub quantiles: BTreeMap<String, Value>,
    /// Least.
    pub min: Option<f64>,
    /// Most.
    pub max: Option<f64>,
}

impl Spread {
    /// The median.
    pub fn median(&self) -> Option<&Value> {
        self.quantiles.get(&Quantile::MEDIAN.name())
    }
}

/// Figures by worker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PerWorker {
    /// How many workers.
    pub workers: u64,
    /// Why there are no figures.
    pub withheld: Option<Withheld>,
    /// Amount over the time from the worker's first start to its last end.
    pub rate: Option<Spread>,
    /// Rows in work at once on one worker, over the same time.
    pub at_once: Option<Spread>,
}

/// The fullest window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peak {
    /// Its length, in seconds.
    pub window_s: Option<f64>,
    /// When it began, in seconds as in [`Times`].
    pub start_s: Option<f64>,
    /// What was finished in it, per second.
    pub value: Option<f64>,
    /// That over the mean of the whole time.
    pub over_mean: Option<f64>,
    /// The window is shorter than the median row: amounts are counted where work ended, so a part
    /// of this peak is work of earlier windows.
    pub shorter_than_a_row: bool,
    /// Why there is none.
    pub withheld: Option<Withheld>,
}

const WINDOW: &str = "first start to last end, ramp and drain included";

pub(super) fn build(tally: Tally) -> Result<TallyReport, NoTally> {
    let times = times(&tally)?;
    let (amount, work_s) = (tally.amount as f64 / 1e6, tally.busy as f64 / 1e9);
    if tally.amount == 0 {
        return Err(NoTally::NothingCounted);
    }
    let held = Span::exactly(work_s / times.seconds).ok_or(NoTally::NoTime)?;
    let stated = stated(&tally, &times, amount).ok_or(NoTally::NoTime)?;
    let unit = stated.unit.clone();
    Ok(TallyReport {
        schema: SCHEMA,
        per_row: of_rows("row_rate", unit.clone(), &tally.rates, tally.used),
        durations: of_rows("duration", "s".into(), &tally.durations, tally.used),
        per_worker: tally.options.by_worker.then(|| per_worker(&tally, &unit)),
        peak: peak(&tally, &times, stated.value.low()),
        books: Books {
            rows: tally.rows,
            used: tally.used,
            excluded: tally.excluded,
            took_no_time: tally.instant,
        },
        times,
        amount,
        work_s,
        held_concurrency: held.low(),
        readings: readings(&stated, Streams::Held(held)),
        unit: tally.options.unit,
    })
}

fn times(tally: &Tally) -> Result<Times, NoTally> {
    let (start, end) = tally.span.ok_or(NoTally::NothingUsed)?;
    let is_absolute = |written: &&Written| written.is_absolute();
    let absolute = tally.written.keys().filter(is_absolute).count();
    if absolute > 0 && absolute < tally.written.len() {
        return Err(NoTally::MixedTimes);
    }
    Ok(Times {
        seconds: (i128::from(end) - i128::from(start)) as f64 / 1e9,
        start_s: start as f64 / 1e9,
        end_s: end as f64 / 1e9,
        rule: WINDOW,
        written: tally.written.clone(),
    })
}

/// The system's rate as a stated one; `None` where there is no time to divide by.
fn stated(tally: &Tally, times: &Times, amount: f64) -> Option<Stated> {
    let rate = Span::exactly(amount / times.seconds)?;
    Some(Stated {
        seconds: Some(times.seconds),
        population: Some(StatedPopulation {
            kept: tally.used,
            of: Some(tally.rows),
            what: "rows".into(),
        }),
        numerator: Some(StatedNumerator {
            count: amount,
            source: source(tally),
        }),
        ..Stated::new(rate, format!("{}/s", tally.options.unit))
    })
}

fn of_rows(metric: &'static str, unit: String, sketch: &Sketch, used: u64) -> Spread {
    let names = Names {
        metric,
        unit,
        rule: "start to end of a row",
        scope: "per_stream",
    };
    spread(names, used, sketch.n(), sketch.ends(), |rank| {
        sketch.at(rank)
    })
}

fn source(tally: &Tally) -> String {
    match tally.options.by_units {
        true => "the column of amounts".into(),
        false => "one a row".into(),
    }
}

/// Rows that a median needs, by whose length the peak's window is chosen.
const FEWEST_FOR_A_PEAK: u64 = 6;

fn peak(tally: &Tally, times: &Times, mean: f64) -> Peak {
    let middle = tally.durations.n() / 2 + 1;
    let row = tally.durations.at(middle).unwrap_or(0.0);
    let span = (times.seconds * 1e9) as i64;
    let found = match tally.options.peak_window.is_none() && tally.used < FEWEST_FOR_A_PEAK {
        true => Err("fewer than 6 rows have no median row to choose a window by: name one"),
        false => tally.windows.clone().peak(span, (row * 1e9) as i64),
    };
    match found {
        Ok((start, width, amount)) => {
            let value = amount as f64 * 1e3 / width as f64;
            Peak {
                window_s: Some(width as f64 / 1e9),
                start_s: Some(start as f64 / 1e9),
                value: Some(value),
                over_mean: Some(value / mean),
                shorter_than_a_row: (width as f64 / 1e9) < row,
                withheld: None,
            }
        }
        Err(why) => Peak {
            window_s: None,
            start_s: None,
            value: None,
            over_mean: None,
            shorter_than_a_row: false,
            withheld: Some(Withheld::new("no_window", why)),
        },
    }
}

fn per_worker(tally: &Tally, unit: &str) -> PerWorker {
    if tally.too_many_workers {
        let text = format!("more than {MOST_WORKERS} workers are named: they are not told apart");
        return PerWorker {
            workers: MOST_WORKERS as u64,
            withheld: Some(Withheld::new("too_many_workers", text)),
            rate: None,
            at_once: None,
        };
    }
    let over_span = |of: fn(&Worker) -> f64| {
        let each = tally.workers.values().filter_map(|worker| {
            let (start, end) = worker.span?;
            (end > start).then(|| of(worker) / ((end as i128 - start as i128) as f64 / 1e9))
        });
        let mut values: Vec<f64> = each.collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let of = tally.workers.len() as u64;
    let rule = "a worker's first start to its last end";
    let exact = |metric, unit: &str, values: Vec<f64>| {
        let ends = values.first().copied().zip(values.last().copied());
        let names = Names {
            metric,
            unit: unit.into(),
            rule,
            scope: "per_worker",
        };
        spread(names, of, values.len() as u64, ends, |rank| {
            values
                .get(usize::try_from(rank).ok()?.checked_sub(1)?)
                .copied()
        })
    };
    PerWorker {
        workers: of,
        withheld: None,
        rate: Some(exact(
            "worker_rate",
            unit,
            over_span(|worker| worker.amount as f64 / 1e6),
        )),
        at_once: Some(exact(
            "worker_at_once",
            "rows",
            over_span(|worker| worker.busy as f64 / 1e9),
        )),
    }
}

struct Names {
    metric: &'static str,
    unit: String,
    rule: &'static str,
    scope: &'static str,
}

fn spread(
    names: Names,
    of: u64,
    n: u64,
    ends: Option<(f64, f64)>,
    at: impl Fn(u64) -> Option<f64>,
) -> Spread {
    let value = |q: Quantile| match quantile::ranks(q, n) {
        Ok(ranks) => Value {
            value: at(ranks.point),
            ci95: at(ranks.low)
                .zip(at(ranks.high))
                .map(|(low, high)| [low, high]),
            withheld: None,
        },
        Err(needed) => Value {
            value: None,
            ci95: None,
            withheld: Some(Withheld::new(
                "too_few",
                format!("{} of n {n}: needs {needed}", q.name()),
            )),
        },
    };
    Spread {
        metric: names.metric,
        unit: names.unit,
        rule: names.rule,
        scope: names.scope,
        n,
        of,
        evidence: Evidence::Stated,
        quantiles: Quantile::ALL
            .into_iter()
            .map(|q| (q.name(), value(q)))
            .collect(),
        min: ends.map(|(least, _)| least),
        max: ends.map(|(_, most)| most),
    }
}
