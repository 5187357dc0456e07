//! Owns open loops by hand-computed numbers: window, held concurrency, latencies from the plan, and
//! the books of the plan.

use measure::basis::Loop;
use measure::plan::{Arrivals, LevelPlan};
use measure::record::LevelEnd;
use measure::schedule::{Fate, Fates};
use measure::time::{Instant, Length};
use measure::trace::Trace;
use serde_json::Value;

use crate::runs::{File, closed, micros, steady};

fn open(index: u32, milli: u64) -> LevelPlan {
    let mut plan = closed(index, 50, false);
    (plan.kind, plan.target_milli) = (Loop::Open, milli);
    plan.arrivals = Some(Arrivals::Constant);
    plan
}

fn fate(planned: u64, started: u64, in_flight_limit: u64, stopped: u64) -> Fate {
    Fate {
        planned,
        started,
        in_flight_limit,
        stopped,
    }
}

fn level(file: File) -> Value {
    serde_json::to_value(file.finished()).expect("a report serialises")["levels"][0].take()
}

fn codes(level: &Value) -> Vec<&str> {
    let reasons = level["verdict"]["reasons"].as_array().expect("reasons");
    reasons.iter().filter_map(|r| r["code"].as_str()).collect()
}

/// A request planned at `at`, sent `late` after it: content from 60 ms on, ten tokens in all, one
/// each 30 ms, the last at 330 ms.
fn request(at_us: u64, late: Length) -> Trace {
    let mut trace = steady(at_us, 60_000, 30_000, 10);
    let lead = |instant: &mut Option<Instant>| *instant = instant.map(|i| i + late);
    for instant in [
        &mut trace.sent,
        &mut trace.written,
        &mut trace.head,
        &mut trace.first_event,
        &mut trace.first_content,
        &mut trace.first_answer,
        &mut trace.last_content,
        &mut trace.end,
    ] {
        lead(instant);
    }
    for read in &mut trace.reads {
        read.at = read.at + late;
    }
    trace.planned = micros(at_us);
    trace.start = trace.planned + late;
    trace.finish = trace.end.expect("it ended");
    trace
}

/// Ten a second, two of them the warm-up's, twelve measured; each late by what `late` says.
fn ten_a_second(late: impl Fn(u64) -> Length) -> File {
    let mut file = File::new(vec![open(0, 10_000)]);
    for i in 0..14 {
        let mut trace = request(i * 100_000, late(i));
        trace.warmup = i < 2;
        file.add(0, i as u32, trace);
    }
    planned(&mut file, fate(2, 2, 0, 0), fate(12, 12, 0, 0));
    file
}

fn planned(file: &mut File, warmup: Fate, measured: Fate) {
    let fates = Fates {
        before: 0,
        warmup,
        measured,
    };
    file.amend(0, |end: &mut LevelEnd| end.planned = Some(fates));
}

#[test]
fn the_window_runs_from_the_first_planned_instant_after_the_warmup_to_the_last() {
    let level = level(ten_a_second(|_| Length::from_micros(200)));
    assert_eq!(level["load"]["unit"], "req/s");
    assert_eq!(
        (&level["load"]["loop"], &level["load"]["target"]),
        (&"open".into(), &10.0.into())
    );
    // 0.2 s to 1.3 s, longer than three times the 0.33 s of a request.
    assert_eq!(level["window"]["rule"], "steady");
    assert_eq!(level["window"]["start_s"], 0.2);
    assert_eq!(level["window"]["end_s"], 1.3);
    assert_eq!(level["latency"]["e2e"]["p50"]["value"], 0.33);
    // Ten a second for 0.33 s each would be 3.63 s in flight within eleven whole periods. One that
    // would have been sent 0.1 s before the first is missing in the first 30.2 ms:
    // 3.5998 s ÷ 1.1 s.
    assert_eq!(level["load"]["held"], 3.272);
    assert_eq!(codes(&level), [""; 0], "{}", level["verdict"]);
}

#[test]
fn a_window_shorter_than_three_requests_is_the_whole_run_and_says_what_would_do() {
    let mut file = File::new(vec![open(0, 100_000)]);
    for i in 0..12 {
        file.add(0, i as u32, request(i * 10_000, Length::ZERO));
    }
    planned(&mut file, fate(0, 0, 0, 0), fate(12, 12, 0, 0));
    let level = level(file);
    assert_eq!(level["window"]["rule"], "run");
    let e2e = level["latency"]["e2e"]["p50"]["value"]
        .as_f64()
        .expect("e2e");
    let warnings = level["warnings"].as_array().expect("warnings");
    let warning = warnings.iter().find(|w| w["code"] == "no_steady_window");
    let needed = (e2e * 3.0 * 100.0).ceil() as u64 + 1;
    assert_eq!(
        warning.map(|w| w["hint"].clone()),
        Some(format!("--requests {needed} would do").into())
    );
}

#[test]
fn a_stall_of_the_client_shows_from_the_plan_and_not_from_sending() {
    // From the sixth on a client that waited would send each request 900 ms late.
    let late = |i| match i {
        0..6 => Length::from_micros(100),
        _ => Length::from_millis(900),
    };
    let level = level(ten_a_second(late));
    let median = |name: &str| {
        level["latency"][name]["p50"]["value"]
            .as_f64()
            .expect("one")
    };
    assert_eq!(median("ttft"), 0.06);
    assert_eq!(median("ttft_from_plan"), 0.96);
    let difference = median("e2e_from_plan") - median("e2e");
    assert!((difference - 0.9).abs() < 1e-9, "{difference}");
    assert_eq!(level["client"]["send_lag"]["max"], 0.9);
    assert_eq!(codes(&level), ["load_not_held"]);
}

#[test]
fn send_lag_is_held_against_the_larger_of_a_millisecond_and_a_hundredth_of_ttft() {
    // A TTFT of 60 ms: a millisecond is the larger.
    let at = |micros| codes(&level(ten_a_second(|_| Length::from_micros(micros)))).len();
    assert_eq!((at(1_000), at(1_001)), (0, 1));
}

#[test]
fn a_level_that_started_too_little_of_its_plan_is_invalid_unless_a_person_stopped_it() {
    let of = |measured| {
        let mut file = ten_a_second(|_| Length::ZERO);
        planned(&mut file, fate(2, 2, 0, 0), measured);
        let level = level(file);
        let codes: Vec<String> = codes(&level).into_iter().map(str::to_owned).collect();
        (codes, level["requests"]["plan"]["not_started"].clone())
    };
    let (codes, missing) = of(fate(13, 12, 1, 0));
    assert_eq!(codes, ["load_not_held"]);
    assert_eq!(missing, serde_json::json!({"in_flight_limit": 1}));
    let (codes, missing) = of(fate(600, 12, 0, 588));
    assert_eq!(codes, [""; 0]);
    assert_eq!(missing, serde_json::json!({"stopped": 588}));
}

#[test]
fn a_planned_request_that_nobody_accounts_for_is_a_fault_of_the_books() {
    let of = |warmup, measured| {
        let mut file = ten_a_second(|_| Length::ZERO);
        planned(&mut file, warmup, measured);
        let level = level(file);
        codes(&level).contains(&"books")
    };
    assert!(!of(fate(2, 2, 0, 0), fate(12, 12, 0, 0)));
    assert!(of(fate(2, 2, 0, 0), fate(13, 12, 0, 0)), "one is missing");
    assert!(
        of(fate(3, 3, 0, 0), fate(11, 11, 0, 0)),
        "on the wrong side"
    );
    assert!(of(fate(2, 2, 0, 0), fate(13, 13, 0, 0)), "not in the file");
}

#[test]
fn a_killed_run_ends_with_its_last_record_and_keeps_its_plan_unknown() {
    let mut file = ten_a_second(|_| Length::from_micros(200));
    file.open(0, 14, micros(1_400_000));
    let report = serde_json::to_value(file.cut_short()).expect("a report serialises");
    let level = &report["levels"][0];
    assert_eq!(level["requests"]["plan"], Value::Null);
    let last = 1.3
        + 0.000_2
        + level["latency"]["e2e"]["p50"]["value"]
            .as_f64()
            .expect("e2e");
    let end = level["window"]["end_s"].as_f64().expect("a window");
    assert!((end - last).abs() < 1e-9, "{end} {last}");
}

#[test]
fn a_share_of_concurrency_1_stands_beside_an_open_loop_too() {
    let mut plan = open(1, 10_000);
    plan.streams = 50;
    let mut file = File::new(vec![closed(0, 1, true), plan]);
    for i in 0..12 {
        file.add(0, 0, steady(i * 1_000_000, 60_000, 30_000, 10));
        file.add(
            1,
            i as u32,
            steady(20_000_000 + i * 100_000, 60_000, 60_000, 10),
        );
    }
    let report = serde_json::to_value(file.finished()).expect("a report serialises");
    let share = &report["levels"][1]["per_stream"]["share_of_baseline"];
    assert_eq!(share["value"], 0.5, "{share}");
}
