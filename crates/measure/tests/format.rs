//! Holds FORMAT.md against the reader and the writer: its example reads, and it names every field.

use measure::judge::{Failure, Outcome, Shape};
use measure::record::{Line, Reader, Run, Unreadable};
use measure::report;
use measure::time::{Instant, Length};
use measure::trace::{Declared, Oddity, Read, ServerError, Trace, Usage};
use serde_json::Value;

const FORMAT: &str = include_str!("../../../FORMAT.md");

fn example() -> Vec<&'static str> {
    let (_, rest) = FORMAT
        .split_once("```jsonl\n")
        .expect("FORMAT.md has an example");
    let (block, _) = rest.split_once("```").expect("the example ends");
    block.lines().collect()
}

fn read(lines: &[&str]) -> Result<Run, Unreadable> {
    let mut reader = Reader::new(None);
    for line in lines {
        reader.line(line.as_bytes())?;
    }
    reader.finish()
}

#[test]
fn the_example_reads_and_its_books_are_closed() {
    let run = read(&example()).expect("the example is legal");
    assert!(run.footer.is_some() && !run.torn);
    let level = &run.levels[0];
    assert_eq!((level.open, level.unmatched), (0, 0));
    let [answer, refused] = level.requests.as_slice() else {
        panic!("two requests: {:?}", level.requests);
    };
    assert_eq!(
        (answer.outcome, answer.shape),
        (Outcome::Ok, Some(Shape::Streamed))
    );
    assert_eq!(
        (answer.tokens.visible, answer.tokens.stop_token),
        (Some(4), true)
    );
    assert_eq!(refused.outcome, Outcome::Failed(Failure::RateLimited));
    let report = report::build(&run, run.header.guards());
    let reasons = &report.levels[0].verdict.reasons;
    assert!(
        reasons.iter().all(|reason| reason.code != "books"),
        "{reasons:?}"
    );
}

#[test]
fn the_example_is_written_as_it_is_read() {
    for text in example() {
        let line: Line = serde_json::from_str(text).expect("a line of the format");
        let again = serde_json::to_value(&line).expect("writes");
        let given: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(again, given);
    }
}

#[test]
fn a_file_may_end_anywhere_and_be_damaged_nowhere_else() {
    let lines = example();
    let killed = read(&lines[..4]).expect("a killed run reads");
    assert!(killed.footer.is_none() && !killed.torn);
    assert_eq!(killed.levels[0].open, 1);
    assert_eq!(killed.levels[0].requests[1].outcome, Outcome::Drained);

    let half = &lines[2][..lines[2].len() / 2];
    let torn = read(&[lines[0], lines[1], half]).expect("a torn last line is dropped");
    assert!(torn.torn && torn.levels[0].open == 1);

    let damaged = read(&[lines[0], lines[1], half, lines[3]]);
    assert!(
        matches!(damaged, Err(Unreadable::Line { number: 3, .. })),
        "{damaged:?}"
    );
}

#[test]
fn unknown_fields_are_ignored_but_not_among_the_counts() {
    let lines = example();
    let more = lines[1].replace("\"id\":0", "\"id\":0,\"later\":1");
    assert!(read(&[lines[0], &more]).is_ok_and(|run| !run.torn));
    for (from, to) in [
        ("\"usage\":{", "\"usage\":{\"later\":1,"),
        ("\"reads\":{", "\"reads\":{\"later\":[],"),
    ] {
        let line = lines[2].replace(from, to);
        assert_ne!(line, lines[2]);
        assert!(read(&[lines[0], lines[1], &line]).is_ok_and(|run| run.torn));
    }
}

#[test]
fn other_versions_are_refused_by_name() {
    let header = example()[0].replace("denom.record/1", "denom.record/2");
    assert_eq!(
        read(&[&header]).err(),
        Some(Unreadable::Version("denom.record/2".into()))
    );
}

/// Every name that the writer may use, from values in which nothing is left out.
fn names() -> Vec<String> {
    let mut trace = Trace::begun(0, 0, 0, true, Instant::ORIGIN);
    let at = Some(Instant::ORIGIN);
    (trace.sent, trace.written, trace.head, trace.first_event) = (at, at, at, at);
    (trace.first_content, trace.first_answer) = (at, at);
    (trace.last_content, trace.end, trace.status) = (at, at, Some(200));
    let length = Some(Length::ZERO);
    trace.connection.dns = length;
    trace.connection.tcp = length;
    trace.connection.tls = length;
    trace.finish_reason = Some(measure::trace::Finish::Stop);
    trace.usage = Some(Usage {
        input: Some(1),
        output: Some(1),
        total: Some(1),
        reasoning: Some(1),
        cached: Some(1),
        rejected: Some(1),
        bad: true,
    });
    trace.output_fell_from = Some(1);
    trace.declared = Some(Declared {
        prompt: length,
        prompt_tokens: Some(1),
        output: length,
        output_tokens: Some(1),
        queue: length,
        first: length,
        load: length,
        total: length,
    });
    trace.error = Some(ServerError {
        code: Some(String::new()),
        message: String::new(),
    });
    trace.malformed = Some(String::new());
    trace.reasoning_summary = true;
    trace.oddities = vec![Oddity::Compressed];
    (trace.asked_output, trace.asked_input) = (Some(1), Some(1));
    (trace.text, trace.prompt) = (Some(String::new()), Some(String::new()));
    trace.path = Some(Box::new(measure::probe::head::Head {
        http: "1.1".into(),
        headers: [("via".to_owned(), "1.1 v".to_owned())].into(),
        reasoning_inside: true,
    }));
    trace.reads = vec![Read {
        at: Instant::ORIGIN,
        bytes: 1,
        chunks: 2,
        bare: 1,
        chars: 2,
        answer_chunks: 1,
        answer_chars: 1,
        tokens: Some(1),
        lag_low: length,
        lag_high: Length::ZERO,
    }];
    let mut found = Vec::new();
    let full = serde_json::to_value(Line::Ended(Box::new(trace))).expect("writes");
    keys(&full, &mut found);
    for text in example() {
        let line: Value = serde_json::from_str(text).expect("JSON");
        keys(&line, &mut found);
    }
    found
}

fn keys(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                found.push(key.clone());
                // Their members are free text, for people.
                if key != "settings" && key != "environment" {
                    keys(inner, found);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| keys(inner, found)),
        _ => {}
    }
}

#[test]
fn every_field_is_described() {
    let (text, _) = FORMAT
        .split_once("## An example")
        .expect("the example comes last");
    for name in names() {
        let described = text.contains(&format!("`{name}`"))
            || ["requests", "duration"].contains(&name.as_str())
                && text.contains(&format!("{{\"{name}\":"));
        assert!(described, "FORMAT.md does not describe {name:?}");
    }
}
