//! Tallies of small logs by hand, and what has to hold of every log.

use proptest::prelude::*;

use super::*;

fn tally(options: Options, rows: &[(&str, &str, &str, &str)]) -> Result<TallyReport, NoTally> {
    let mut tally = Tally::new(options);
    for (start, end, worker, units) in rows {
        tally.add(&Row {
            start: Some(start),
            end: Some(end),
            duration: None,
            worker: Some(worker),
            units: Some(units),
        });
    }
    tally.finish()
}

fn named(unit: &str) -> Options {
    Options {
        unit: unit.into(),
        by_worker: true,
        ..Options::default()
    }
}

#[test]
fn two_chats_at_once_are_not_twice_as_fast() {
    // Two agents, each with two chats of half an hour at once, for one hour.
    let chats = [
        ("0", "1800", "ann", ""),
        ("0", "1800", "ann", ""),
        ("1800", "3600", "ann", ""),
        ("1800", "3600", "ann", ""),
        ("0", "1800", "bob", ""),
        ("0", "1800", "bob", ""),
        ("1800", "3600", "bob", ""),
        ("1800", "3600", "bob", ""),
    ];
    let report = tally(named("chats"), &chats).expect("a report");
    let an_hour = |value: Option<f64>| value.map(|value| (value * 3_600.0 * 1e6).round() / 1e6);
    assert_eq!(report.held_concurrency, 4.0);
    let [own, other] = &report.readings;
    assert_eq!(an_hour(own.system.value()), Some(8.0));
    assert_eq!(an_hour(own.per_stream.value()), Some(2.0));
    assert_eq!(an_hour(other.system.value()), Some(32.0));
    let workers = report.per_worker.expect("workers are named");
    let rate = workers.rate.expect("rates");
    assert_eq!(
        (workers.workers, an_hour(rate.min), an_hour(rate.max)),
        (2, Some(4.0), Some(4.0))
    );
    assert_eq!(
        rate.median().map(|median| median.value),
        Some(None),
        "two have no median"
    );
    assert_eq!(workers.at_once.and_then(|at_once| at_once.max), Some(2.0));
}

#[test]
fn few_rows_have_no_peak_but_in_a_window_that_was_asked_for() {
    let rows = [("0", "1", "a", "100")];
    let by_itself = tally(named("rows"), &rows).expect("a report").peak;
    assert_eq!(by_itself.value, None);
    assert!(by_itself.withheld.is_some());
    let options = Options {
        peak_window: Some(500_000_000),
        ..named("rows")
    };
    let asked = tally(options, &rows).expect("a report").peak;
    assert_eq!(asked.over_mean, Some(2.0));
}

#[test]
fn every_row_is_used_or_excluded_for_a_named_reason() {
    let rows = [
        ("0", "5", "a", "2"),
        ("", "5", "a", "2"),
        ("x", "5", "a", "2"),
        ("1", "", "a", "2"),
        ("1", "y", "a", "2"),
        ("5", "1", "a", "2"),
        ("1", "5", " ", "2"),
        ("1", "5", "a", ""),
        ("1", "5", "a", "-2"),
        ("3", "3", "a", "1"),
    ];
    let options = Options {
        by_units: true,
        ..named("pages")
    };
    let report = tally(options, &rows).expect("a report");
    let books = report.books;
    assert_eq!((books.rows, books.used, books.took_no_time), (10, 2, 1));
    let codes: Vec<_> = books
        .excluded
        .iter()
        .map(|(why, n)| (why.code(), *n))
        .collect();
    let once = [
        "no_start",
        "bad_start",
        "no_end",
        "bad_end",
        "ends_before_start",
        "no_worker",
        "no_units",
        "bad_units",
    ];
    assert_eq!(codes, once.map(|code| (code, 1)));
    assert_eq!(report.amount, 3.0);
}

#[test]
fn what_cannot_be_tallied() {
    assert_eq!(tally(named("x"), &[]), Err(NoTally::NothingUsed));
    assert_eq!(
        tally(named("x"), &[("5", "5", "a", "")]),
        Err(NoTally::NoTime)
    );
    let nothing = [("5", "6", "a", "0")];
    let by_units = Options {
        by_units: true,
        ..named("x")
    };
    assert_eq!(tally(by_units, &nothing), Err(NoTally::NothingCounted));
    let mixed = [("5", "6", "a", ""), ("1767600000", "1767600001", "a", "")];
    assert_eq!(tally(named("x"), &mixed), Err(NoTally::MixedTimes));
}

#[test]
fn durations_stand_for_ends() {
    let options = Options {
        by_duration: true,
        duration_unit: TimeUnit::Minutes,
        ..Options::default()
    };
    let mut tally = Tally::new(options);
    for start in ["2026-01-05T08:00:00Z", "2026-01-05T08:10:00Z"] {
        tally.add(&Row {
            start: Some(start),
            duration: Some("10"),
            ..Row::default()
        });
    }
    let report = tally.finish().expect("a report");
    assert_eq!(
        (report.times.seconds, report.held_concurrency),
        (1_200.0, 1.0)
    );
    assert_eq!(report.per_worker, None);
}

/// Rows of small whole numbers, some of them not to be used.
fn rows() -> impl Strategy<Value = Vec<(u32, i32, u8, i32)>> {
    prop::collection::vec((0_u32..5_000, -3..400_i32, 0_u8..5, -1..50_i32), 1..80)
}

fn of_rows(rows: &[(u32, i32, u8, i32)]) -> Result<TallyReport, NoTally> {
    let text: Vec<[String; 4]> = rows
        .iter()
        .map(|(start, length, worker, units)| {
            let end = i64::from(*start) + i64::from(*length);
            [
                start.to_string(),
                end.to_string(),
                format!("w{worker}"),
                units.to_string(),
            ]
        })
        .collect();
    let rows: Vec<_> = text
        .iter()
        .map(|[a, b, c, d]| (a.as_str(), b.as_str(), c.as_str(), d.as_str()))
        .collect();
    tally(
        Options {
            by_units: true,
            ..named("pages")
        },
        &rows,
    )
}

proptest! {
    #[test]
    fn books_balance(rows in rows()) {
        if let Ok(report) = of_rows(&rows) {
            let excluded: u64 = report.books.excluded.values().sum();
            prop_assert_eq!(report.books.rows, rows.len() as u64);
            prop_assert_eq!(report.books.rows, report.books.used + excluded);
        }
    }

    #[test]
    fn the_order_of_the_rows_does_not_matter(
        (rows, shuffled) in rows().prop_flat_map(|rows| {
            let same = rows.clone();
            (Just(same), Just(rows).prop_shuffle())
        })
    ) {
        prop_assert_eq!(of_rows(&rows), of_rows(&shuffled));
    }

    #[test]
    fn the_two_readings_are_inverse(rows in rows()) {
        if let Ok(report) = of_rows(&rows) {
            let [own, other] = &report.readings;
            let (system, stream) = (own.system.value(), own.per_stream.value());
            let (system, stream) = (system.expect("a number"), stream.expect("a number"));
            prop_assert!((stream * report.held_concurrency - system).abs() <= system * 1e-12);
            let back = other.system.value().expect("a number") / report.held_concurrency;
            prop_assert!((back - system).abs() <= system * 1e-12);
        }
    }
}
