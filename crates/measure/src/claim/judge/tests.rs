//! The rule on figures made by hand.

use super::rests::settle;
use super::*;
use crate::claim::{Given, read};

fn asked(text: &str) -> Question {
    let claim = read(text, Given::default()).expect("a claim");
    question(&claim.fields).expect("a question")
}

fn rests(reading: Scope, interval: Option<[f64; 2]>, question: &Question) -> Rests {
    let rests = Rests {
        reading,
        metric: "a_rate",
        unit: "tok/s".into(),
        value: interval.map(|[low, _]| low),
        interval,
        seconds: Some(10.0),
        rule: Some(Rule::Steady),
        kept: 96,
        of: 96,
        concurrency: 16.0,
        held: Some(15.9),
        agrees: None,
        withheld: interval
            .is_none()
            .then(|| Withheld::new("few_chunks", "came at once")),
    };
    settle(rests, question)
}

const VALID: Seen = Seen {
    interrupted: false,
    invalid: None,
    refuted: false,
    burst: None,
};

fn answered(text: &str, system: f64, stream: Option<[f64; 2]>, seen: &Seen) -> Answer {
    let question = asked(text);
    let all = [
        rests(Scope::System, Some([system, system]), &question),
        rests(Scope::PerStream, stream, &question),
    ];
    answer(&all, seen)
}

#[test]
fn the_stated_concurrency_decides() {
    let claim = "500 tok/s with 16 streams";
    let at = |system, stream| answered(claim, system, Some(stream), &VALID);
    assert_eq!(at(512.0, [31.0, 32.0]), Answer::Aggregate);
    assert_eq!(at(8_000.0, [480.0, 510.0]), Answer::PerStream);
    assert_eq!(at(200.0, [12.0, 13.0]), Answer::Neither);
    assert_eq!(at(500.0, [460.0, 470.0]), Answer::Both);
    assert_eq!(answered(claim, 512.0, None, &VALID), Answer::Aggregate);
    assert_eq!(answered(claim, 200.0, None, &VALID), Answer::CannotTell);
    let invalid = Seen {
        invalid: Some("client-limited".into()),
        ..VALID
    };
    assert_eq!(answered(claim, 512.0, None, &invalid), Answer::CannotTell);
}

#[test]
fn ten_percent_on_either_side_and_bounds_on_one() {
    let system = |text: &str, value| answered(text, value, Some([1.0, 1.0]), &VALID);
    assert_eq!(system("500 tok/s", 451.0), Answer::Aggregate);
    assert_eq!(system("500 tok/s", 449.0), Answer::Neither);
    assert_eq!(system("500 tok/s", 549.0), Answer::Aggregate);
    assert_eq!(system("500 tok/s", 551.0), Answer::Neither);
    assert_eq!(system("500 tok/s plus", 9_000.0), Answer::Aggregate);
    assert_eq!(system("500 tok/s plus", 449.0), Answer::Neither);
    assert_eq!(system("up to 500 tok/s", 551.0), Answer::PerStream);
    assert_eq!(system("300-500 tok/s", 271.0), Answer::Aggregate);
    assert_eq!(system("30k tokens per minute", 500.0), Answer::Aggregate);
}

#[test]
fn an_interval_that_meets_the_value_agrees() {
    let stream = |interval| answered("500 tok/s", 8_000.0, Some(interval), &VALID);
    assert_eq!(stream([300.0, 450.0]), Answer::PerStream);
    assert_eq!(stream([300.0, 449.0]), Answer::Neither);
    assert_eq!(stream([550.0, 700.0]), Answer::PerStream);
}

#[test]
fn concurrency_1_can_only_refute() {
    let question = asked("500 tok/s");
    let alone = |interval| rests(Scope::PerStream, interval, &question);
    let least = question.accepted.0;
    assert!(refutes(&[alone(Some([90.0, 101.0]))], least));
    assert!(!refutes(&[alone(Some([440.0, 460.0]))], least));
    assert!(
        !refutes(&[alone(Some([90.0, 101.0])), alone(None)], least),
        "one was not observed"
    );
    assert!(!refutes(&[], least));
    let refuted = Seen {
        refuted: true,
        ..VALID
    };
    assert_eq!(
        answered("500 tok/s", 200.0, Some([480.0, 520.0]), &refuted),
        Answer::Neither
    );
    assert!(!refutes(
        &[alone(Some([90.0, 101.0]))],
        asked("up to 500 tok/s").accepted.0
    ));
}

#[test]
fn a_burst_explains_only_what_nothing_else_does() {
    let burst = Seen {
        burst: Some("all came at once".into()),
        ..VALID
    };
    assert_eq!(
        answered("90,000 tok/s", 900.0, None, &burst),
        Answer::BurstArtefact
    );
    assert_eq!(
        answered("900 tok/s", 900.0, None, &burst),
        Answer::Aggregate
    );
}

#[test]
fn a_scope_that_was_stated_has_to_be_the_one_that_agrees() {
    assert_eq!(
        holds(Answer::Aggregate, Some(Scope::PerStream)),
        Some(false)
    );
    assert_eq!(holds(Answer::Aggregate, Some(Scope::System)), Some(true));
    assert_eq!(holds(Answer::Aggregate, None), Some(true));
    assert_eq!(holds(Answer::PerStream, Some(Scope::System)), Some(false));
    assert_eq!(holds(Answer::Neither, None), Some(false));
    assert_eq!(holds(Answer::CannotTell, None), None);
}

#[test]
fn the_sentence_says_what_it_rests_on() {
    let question = asked("450-550 tok/s");
    let all = [
        rests(Scope::System, Some([500.0, 500.0]), &question),
        rests(Scope::PerStream, None, &question),
    ];
    let said = |seen: &Seen| sentence(Answer::Aggregate, &question, &all, seen, 16);
    assert_eq!(
        said(&VALID),
        "450 to 550 tok/s agrees with the aggregate reading; with 16 streams the system made 500 tok/s and one stream was not observed."
    );
    let stopped = Seen {
        interrupted: true,
        ..VALID
    };
    assert!(said(&stopped).starts_with("INTERRUPTED"));
}

#[test]
fn what_no_run_can_speak_to() {
    for text in [
        "34 pages/s",
        "3x faster",
        "900 tok/s/MW",
        "900 tok/s per GPU",
        "30,000 tokens per GPU",
    ] {
        let claim = read(text, Given::default()).expect("read");
        assert!(testable(&claim).is_err(), "{text}");
    }
    let eight = asked("900 tok/s per GPU on 8 GPUs");
    assert_eq!(eight.value, 7_200.0);
}
