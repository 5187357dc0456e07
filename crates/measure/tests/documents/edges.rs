//! Owns the edges at which a figure could be made of nothing, or of the wrong requests.

use measure::judge::{Guards, judge};
use measure::record::Workers;
use measure::time::{Instant, Length};
use measure::trace::{Finish, Transport};
use serde_json::Value;

use crate::runs::{Came, File, closed, steady, stream, usage};

fn levels(file: File) -> Value {
    serde_json::to_value(file.finished()).expect("a report serialises")["levels"].take()
}

#[test]
fn a_whole_run_holds_the_burst_that_ends_it() {
    let mut file = File::new(vec![closed(0, 1, true)]);
    file.add(0, 0, stream(0, &[(700_000, 10, 40)]));
    let level = &levels(file)[0];
    assert_eq!(level["window"]["rule"], "run");
    assert_eq!(level["system"]["output"]["numerator"]["count"], 10.0);
}

#[test]
fn content_that_arrived_is_never_zero_tokens() {
    let silent: Vec<Came> = (0..5).map(|i| (60_000 + i * 100_000, 1, 0)).collect();
    let mut voice = stream(0, &silent);
    voice.usage = Some(usage(40, 20));
    let placed = judge(voice.clone(), &Guards::default(), true).arrivals;
    assert!(
        placed
            .iter()
            .all(|a| a.tokens.is_some_and(|n| n.as_f64() == 4.0))
    );
    voice.usage = Some(usage(40, 0));
    let tokens = judge(voice, &Guards::default(), true).tokens;
    assert!(tokens.inconsistent.is_some(), "{tokens:?}");

    let mut split = stream(0, &[(60_000, 1, 1), (160_000, 1, 1), (360_000, 1, 1)]);
    split.usage = Some(usage(40, 1));
    split.finish_reason = Some(Finish::Stop);
    let tokens = judge(split, &Guards::default(), true).tokens;
    assert_eq!((tokens.visible, tokens.stop_token), (Some(1), false));
}

#[test]
fn a_request_drained_before_it_was_sent_is_in_the_books() {
    let mut file = File::new(vec![closed(0, 1, true)]);
    let mut waiting = steady(0, 60_000, 10_000, 10);
    let end = waiting.finish;
    waiting = measure::trace::Trace::begun(0, 0, 0, false, waiting.planned);
    (waiting.finish, waiting.transport) = (end, Transport::Drained);
    file.add(0, 0, waiting);
    let reasons = levels(file)[0]["verdict"]["reasons"].take();
    let reasons = reasons.as_array().expect("reasons");
    assert!(reasons.iter().all(|r| r["code"] != "books"), "{reasons:?}");
}

#[test]
fn a_clumped_response_gives_no_time_between_tokens() {
    // Twelve arrivals of one token, then one of 40: 53 chunks make it clumped.
    let mut came: Vec<Came> = (0..12).map(|i| (60_000 + i * 20_000, 1, 400)).collect();
    came.push((400_000, 40, 160));
    let mut file = File::new(vec![closed(0, 1, true)]);
    for i in 0..12 {
        file.add(0, 0, stream(i * 500_000, &came));
    }
    let level = &levels(file)[0];
    assert_eq!(level["requests"]["shapes"]["clumped"], 12);
    assert_eq!(level["latency"]["itl"]["withheld"]["code"], "clumped");
    assert_eq!(level["latency"]["arrival_gap"]["withheld"], Value::Null);
}

#[test]
fn bursts_are_short_and_not_for_being_fast() {
    let mut file = File::new(vec![closed(0, 1, true)]);
    for i in 0..10 {
        let at = i * 2_000_000;
        let burst = stream(at, &[(1_000_000, 40, 160)]);
        let even = steady(at, 60_000, 10_000, 40);
        file.add(0, 0, if i < 3 { burst } else { even });
    }
    let level = &levels(file)[0];
    assert_eq!(level["per_stream"]["generation"]["withheld"], Value::Null);
    assert_eq!(level["per_stream"]["generation"]["selected"], true);
}

#[test]
fn failures_give_no_first_content_where_nothing_is_seen_to_stream() {
    let mut file = File::new(vec![closed(0, 1, true)]);
    for i in 0..8 {
        let mut trace = stream(i * 2_000_000, &[(1_000_000, 40, 160)]);
        if i > 5 {
            trace.transport = Transport::Broken { text: "cut".into() };
        }
        file.add(0, 0, trace);
    }
    let level = &levels(file)[0];
    let code = |part: &str| level[part]["ttft"]["withheld"]["code"].clone();
    assert_eq!(code("failures_included"), code("latency"));
    assert_eq!(level["failures_included"]["e2e"]["failed_as_worst"], 2);
}

#[test]
fn only_a_closed_loop_of_one_stream_is_a_baseline() {
    let mut open = closed(0, 4, false);
    (open.kind, open.target_milli) = (measure::basis::Loop::Open, 1_000);
    let mut faster = open;
    (faster.index, faster.target_milli) = (1, 2_000);
    let mut file = File::new(vec![open, faster]);
    for i in 0..8 {
        let mut trace = steady(i * 500_000, 60_000, 10_000, 40);
        trace.sent = Some(trace.planned + Length::from_micros(10));
        file.add(0, (i % 4) as u32, trace.clone());
        file.add(1, (i % 4) as u32, trace);
    }
    let share = levels(file)[1]["per_stream"]["share_of_baseline"].take();
    assert_eq!(share["withheld"]["code"], "no_baseline");
}

#[test]
fn bytes_that_stayed_unread_are_doubted_and_those_that_only_waited_are_not() {
    let told = |unread_stayed_max| {
        let mut file = File::new(vec![closed(0, 1, true)]);
        file.add(0, 0, steady(0, 60_000, 10_000, 10));
        file.amend(0, |end| {
            end.workers = Some(Workers {
                count: 1,
                late_max: Length::from_millis(2),
                late_at: Instant::ORIGIN,
                late_p99: Length::from_millis(2),
                cpu: None,
                waited: None,
                unread_max: Some(900),
                unread_stayed_max,
            });
        });
        let level = levels(file)[0].take();
        assert_eq!(level["client"]["unread_max"], 900);
        let warnings = level["warnings"].as_array().expect("warnings").clone();
        warnings.iter().any(|w| w["code"] == "client_behind")
    };
    assert_eq!([None, Some(0), Some(7)].map(told), [false, false, true]);
}
