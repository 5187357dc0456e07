//! Owns the ways in which a stream is spoilt: by its events, by its bytes, by its end.

use measure::trace::{Phase, Transport};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::streams::Stream;

/// Spoils the events one to three times.
pub fn events(stream: &mut Stream, rng: &mut ChaCha8Rng) {
    for _ in 0..rng.random_range(0..4) {
        if !stream.events.is_empty() {
            once(stream, rng);
        }
    }
}

fn once(stream: &mut Stream, rng: &mut ChaCha8Rng) {
    let events = &mut stream.events;
    let (one, other) = (
        rng.random_range(0..events.len()),
        rng.random_range(0..events.len()),
    );
    match rng.random_range(0..13) {
        0 => drop(events.remove(one)),
        1 => events.insert(other, events[one].clone()),
        2 => events.swap(one, other),
        3 => events.truncate(one),
        4 | 5 => events.insert(one, Some(error(rng))),
        6 => events
            .iter_mut()
            .flatten()
            .for_each(|event| void(event, FINISHES)),
        7 => drop(events.pop()),
        8 | 9 => events
            .iter_mut()
            .flatten()
            .for_each(|event| counts(event, rng)),
        10 => numbers(events, one, rng),
        11 => events[one].iter_mut().for_each(|event| fail(event, rng)),
        _ => match rng.random_bool(0.5) {
            true => events
                .iter_mut()
                .flatten()
                .for_each(|event| void(event, TEXTS)),
            false => events.insert(one, Some(restart())),
        },
    }
}

const FINISHES: &[&str] = &[
    "finish_reason",
    "stop_reason",
    "finishReason",
    "done_reason",
];
const TEXTS: &[&str] = &["content", "reasoning_content", "text", "delta", "response"];

/// Sets every member of these names that is a string to what says nothing.
fn void(value: &mut Value, names: &[&str]) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| void(value, names)),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match member {
                    Value::String(_) if names.contains(&name.as_str()) => {
                        *member = if names == FINISHES {
                            Value::Null
                        } else {
                            json!("")
                        };
                    }
                    _ => void(member, names),
                }
            }
        }
        _ => {}
    }
}

/// Ends of which none is the end of a good answer, over all APIs.
const FAILING: &[&str] = &["content_filter", "refusal", "SAFETY", "error"];

/// Sets every reason to finish, absent or not, to one that fails.
fn fail(value: &mut Value, rng: &mut ChaCha8Rng) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| fail(value, rng)),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match FINISHES.contains(&name.as_str()) {
                    true => *member = json!(FAILING[rng.random_range(0..FAILING.len())]),
                    false => fail(member, rng),
                }
            }
        }
        _ => {}
    }
}

/// An error in one of the forms that servers and gateways give it.
fn error(rng: &mut ChaCha8Rng) -> Value {
    match rng.random_range(0..9) {
        0 => json!({"error": {"message": "gone", "type": "server_error", "code": null}}),
        1 => json!({"error": "gone"}),
        2 => json!({"error": "gone", "error_type": "incomplete_generation"}),
        3 => json!({"choices": [{"index": 0, "delta": {}, "error": {"message": "gone"}}]}),
        4 => json!({"type": "error", "error": {"type": "overloaded_error", "message": "gone"}}),
        5 => json!({"type": "error", "code": null, "message": "gone"}),
        6 => {
            json!({"type": "response.failed", "response": {"status": "failed", "error": {"message": "gone"}}})
        }
        7 => json!({"x_groq": {"error": "gone"}, "choices": []}),
        _ => json!({"object": "error", "message": "gone", "code": 400}),
    }
}

const COUNTS: &[&str] = &[
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "promptTokenCount",
    "candidatesTokenCount",
    "totalTokenCount",
    "eval_count",
    "prompt_eval_count",
    "generated_tokens",
    "input_length",
];

/// Alters some of the counts.
fn counts(value: &mut Value, rng: &mut ChaCha8Rng) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| counts(value, rng)),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match COUNTS.contains(&name.as_str()) && rng.random_bool(0.5) {
                    true => *member = count(member, rng),
                    false => counts(member, rng),
                }
            }
        }
        _ => {}
    }
}

fn count(before: &Value, rng: &mut ChaCha8Rng) -> Value {
    match rng.random_range(0..8) {
        0 => json!(0),
        1 => json!(100_000),
        2 => json!(-1),
        3 => json!(1.5),
        4 => json!("7"),
        5 => Value::Null,
        6 => json!(u64::MAX),
        _ => json!(
            before
                .as_u64()
                .unwrap_or(1)
                .wrapping_add(rng.random_range(1..4))
        ),
    }
}

/// Alters the number of one event, where events have numbers.
fn numbers(events: &mut [Option<Value>], one: usize, rng: &mut ChaCha8Rng) {
    let Some(event) = &mut events[one] else {
        return;
    };
    for name in ["sequence_number", "index"] {
        if event[name].is_u64() {
            event[name] = json!(rng.random_range(0..20));
        }
    }
}

/// Another message's start.
fn restart() -> Value {
    json!({"type": "message_start", "message": {"id": "another"}})
}

/// Spoils the bytes, in half of the cases.
pub fn bytes(body: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    if body.is_empty() || rng.random_bool(0.5) {
        return;
    }
    let at = rng.random_range(0..body.len());
    let upto = (at + rng.random_range(1..40)).min(body.len());
    match rng.random_range(0..8) {
        0 => body[at] ^= 1 << rng.random_range(0..8),
        1 => body[at] = rng.random(),
        2 => body.truncate(at),
        3 => drop(body.drain(at..upto)),
        4 => {
            let again = body[at..upto].to_vec();
            body.splice(at..at, again);
        }
        5 => escape(body, rng),
        6 => body.insert(at, b"\n\r\0\"\\{}[]:, "[rng.random_range(0..12)]),
        _ => {
            let field = [
                &b"error: gone\n"[..],
                b": ping\n\n",
                b"event: error\n",
                b"\n",
            ];
            let field = field[rng.random_range(0..field.len())];
            body.splice(at..at, field.iter().copied());
        }
    }
}

/// How the exchange ended; legally in three of four cases.
pub fn end(rng: &mut ChaCha8Rng) -> Transport {
    match rng.random_range(0..12) {
        0 => Transport::Broken {
            text: "reset".into(),
        },
        1 => Transport::Timeout { phase: Phase::Idle },
        2 => Transport::Timeout {
            phase: Phase::Total,
        },
        3..6 => Transport::Closed,
        _ => Transport::Complete,
    }
}

/// Writes one letter of the word for an error as its escape: the same JSON.
fn escape(body: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let word = b"error";
    let found = body.windows(word.len()).position(|part| part == word);
    if let Some(place) = found {
        let place = place + rng.random_range(0..word.len());
        let escaped = format!("\\u{:04x}", body[place]);
        body.splice(place..=place, escaped.into_bytes());
    }
}
