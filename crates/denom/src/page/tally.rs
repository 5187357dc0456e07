//! Owns the page of a tally: the system's rate, one stream's and one worker's side by side.

use measure::rate::significant;
use measure::stated::{Reading, StatedFigure, number};
use measure::tally::{PerWorker, Spread, TallyReport};
use measure::time::Length;

use super::escape::markdown as escaped;
use super::grid::Grid;
use super::text::Paper;
use super::{Style, indented};
use crate::cli::PerName;

/// The base of time that rates are shown in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Base {
    short: &'static str,
    seconds: f64,
}

const BASES: [Base; 4] = [
    Base {
        short: "s",
        seconds: 1.0,
    },
    Base {
        short: "min",
        seconds: 60.0,
    },
    Base {
        short: "h",
        seconds: 3_600.0,
    },
    Base {
        short: "day",
        seconds: 86_400.0,
    },
];

impl From<PerName> for Base {
    fn from(name: PerName) -> Self {
        match name {
            PerName::Second => BASES[0],
            PerName::Minute => BASES[1],
            PerName::Hour => BASES[2],
            PerName::Day => BASES[3],
        }
    }
}

impl Base {
    /// The shortest in which one stream does at least one, so that a page has few zeros.
    fn of(report: &TallyReport) -> Self {
        let slow = report.readings[0].per_stream.value().unwrap_or(0.0);
        let enough = |base: &Base| slow * base.seconds >= 1.0;
        BASES.into_iter().find(enough).unwrap_or(BASES[3])
    }

    fn rate(self, per_second: f64, unit: &str) -> String {
        format!(
            "{} {unit}/{}",
            significant(per_second * self.seconds),
            self.short
        )
    }

    fn figure(self, figure: &StatedFigure, unit: &str) -> String {
        figure
            .value()
            .map_or("–".into(), |value| self.rate(value, unit))
    }
}

/// The tally as one JSON object.
pub fn json(report: &TallyReport) -> String {
    indented(report)
}

/// The tally as text.
pub fn text(report: &TallyReport, file: &str, base: Option<Base>, style: Style) -> String {
    let base = base.unwrap_or_else(|| Base::of(report));
    let mut paper = Paper::new(style);
    paper.line("", &title(report, file));
    paper.table(&rates(report, base));
    paper.line("", &misread(report, base));
    paper.gap();
    paper.facts(&facts(report, base));
    paper.out
}

/// The tally as Markdown.
pub fn markdown(report: &TallyReport, file: &str, base: Option<Base>) -> String {
    let base = base.unwrap_or_else(|| Base::of(report));
    let mut out = format!("## {}\n\n", escaped(&title(report, file)));
    out.push_str(&super::markdown::table(&rates(report, base)));
    out.push_str(&format!("{}\n\n", escaped(&misread(report, base))));
    for (label, said) in facts(report, base) {
        out.push_str(&format!("- {label}: {}\n", escaped(&said)));
    }
    out
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 172_800.0 => format!("{} days", significant(s / 86_400.0)),
        s if s >= 7_200.0 => format!("{} h", significant(s / 3_600.0)),
        s if s >= 120.0 => format!("{} min", significant(s / 60.0)),
        s => Length::from_nanos((s.max(0.0) * 1e9) as u64).to_string(),
    }
}

fn title(report: &TallyReport, file: &str) -> String {
    let workers = report
        .per_worker
        .as_ref()
        .map(|per| format!(" by {} workers", per.workers))
        .unwrap_or_default();
    format!(
        "{file}: {} {}{workers} in {}",
        number(report.amount),
        report.unit,
        time(report.times.seconds)
    )
}

fn rates(report: &TallyReport, base: Base) -> Grid {
    let unit = &report.unit;
    let own: &Reading = &report.readings[0];
    let mut rows = vec![
        vec![
            "system: all of it".to_owned(),
            base.figure(&own.system, unit),
            format!("over {}, {}", time(report.times.seconds), report.times.rule),
        ],
        vec![
            "one stream: system ÷ held".into(),
            base.figure(&own.per_stream, unit),
            format!(
                "{} in work at once on average",
                significant(report.held_concurrency)
            ),
        ],
        vec![
            "one row: median (spread)".into(),
            spread(&report.per_row, |value| base.rate(value, unit)),
            format!(
                "start to end, n {} of {}",
                report.per_row.n, report.per_row.of
            ),
        ],
    ];
    let worker = report.per_worker.as_ref().and_then(|per| per.rate.as_ref());
    if let Some(rate) = worker {
        rows.push(vec![
            "one worker: median (spread)".into(),
            spread(rate, |value| base.rate(value, unit)),
            format!("{}, n {} of {}", rate.rule, rate.n, rate.of),
        ]);
    }
    Grid {
        header: ["rate of", "value", "resting on"].map(str::to_owned).into(),
        rows,
        bold: Vec::new(),
    }
}

/// The median and the furthest quantiles that n supports, else the range. A unit is written once
/// where all of them have it, else with each.
fn spread(spread: &Spread, shown: impl Fn(f64) -> String) -> String {
    let at = |name: &str| spread.quantiles.get(name).and_then(|value| value.value);
    let (Some(min), Some(max)) = (spread.min, spread.max) else {
        return "–".into();
    };
    let outer = [("p05", "p95"), ("p10", "p90"), ("p25", "p75")]
        .into_iter()
        .find_map(|(low, high)| Some((low, at(low)?, high, at(high)?)));
    let plain = |value: f64, beside: &[f64]| {
        let unit = |value: f64| {
            shown(value)
                .split_once(' ')
                .map(|(_, unit)| unit.to_owned())
        };
        let own = shown(value);
        match beside.iter().all(|other| unit(*other) == unit(value)) {
            true => own.split(' ').next().unwrap_or("").to_owned(),
            false => own,
        }
    };
    match (at("p50"), outer) {
        (Some(median), Some((low, from, high, to))) => {
            let all = [median, from, to];
            format!(
                "{} ({low} {}, {high} {})",
                shown(median),
                plain(from, &all),
                plain(to, &all)
            )
        }
        (Some(median), None) => {
            let all = [median, min, max];
            format!(
                "{} ({} to {})",
                shown(median),
                plain(min, &all),
                plain(max, &all)
            )
        }
        (None, _) => format!("{} to {}, n {}", plain(min, &[max]), shown(max), spread.n),
    }
}

fn misread(report: &TallyReport, base: Base) -> String {
    let [own, other] = &report.readings;
    let unit = &report.unit;
    format!(
        "Read as one stream's, the system's {} would mean {} in all: {} times what was done.",
        base.figure(&own.system, unit),
        base.figure(&other.system, unit),
        significant(report.held_concurrency)
    )
}

fn facts(report: &TallyReport, base: Base) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        (
            "work",
            format!(
                "{} of work in {} of time",
                time(report.work_s),
                time(report.times.seconds)
            ),
        ),
        ("a row took", spread(&report.durations, time)),
    ];
    if let Some(at_once) = report
        .per_worker
        .as_ref()
        .and_then(|per| per.at_once.as_ref())
    {
        facts.push((
            "at once",
            format!("{} on one worker", spread(at_once, significant)),
        ));
    }
    let withheld = |per: &PerWorker| per.withheld.clone();
    if let Some(why) = report.per_worker.as_ref().and_then(withheld) {
        facts.push(("workers", why.text));
    }
    facts.push(("peak", peak(report, base)));
    facts.push(("books", books(report)));
    let written = report.times.written.keys().map(|written| written.words());
    facts.push(("times", written.collect::<Vec<_>>().join("; ")));
    facts.push((
        "evidence",
        "stated: the times are the log's own, from whatever clocks wrote it".into(),
    ));
    facts
}

fn peak(report: &TallyReport, base: Base) -> String {
    let peak = &report.peak;
    match (peak.value, peak.window_s, peak.over_mean) {
        (Some(value), Some(window), Some(over)) => format!(
            "{} in the fullest {} by end of work: {} times the mean{}",
            base.rate(value, &report.unit),
            time(window),
            significant(over),
            match peak.shorter_than_a_row {
                true => "; a row takes longer than that, so a part of it is earlier work",
                false => "",
            }
        ),
        _ => peak
            .withheld
            .as_ref()
            .map_or("–".into(), |why| why.text.clone()),
    }
}

/// "1 row read", "8 rows read".
pub fn rows_read(rows: u64) -> String {
    format!("{rows} row{} read", if rows == 1 { "" } else { "s" })
}

fn books(report: &TallyReport) -> String {
    let books = &report.books;
    let mut parts = vec![format!("{} = {} used", rows_read(books.rows), books.used)];
    for (why, n) in &books.excluded {
        parts.push(format!("{n} with {}", why.words()));
    }
    let mut text = parts.join(" + ");
    if books.took_no_time > 0 {
        text.push_str(&format!(
            "; {} of the used took no time and have no rate of their own",
            books.took_no_time
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use measure::figure::Evidence;

    use super::*;

    #[test]
    fn a_range_over_two_scales_has_both_units() {
        let of = |min, max| {
            let all = Spread {
                metric: "duration",
                unit: "s".into(),
                rule: "start to end of a row",
                scope: "per_stream",
                n: 3,
                of: 3,
                evidence: Evidence::Stated,
                quantiles: BTreeMap::new(),
                min: Some(min),
                max: Some(max),
            };
            spread(&all, time)
        };
        assert_eq!(of(90.0, 3_600.0), "90.0 s to 60.0 min, n 3");
        assert_eq!(of(0.001, 5.0), "1.00 ms to 5.00 s, n 3");
        assert_eq!(of(1.0, 5.0), "1.00 to 5.00 s, n 3");
    }
}
