//! Owns the scripts that say what one API's servers are known to say: odd, or wrong, where others
//! say nothing.

use measure::time::Length;
use serde_json::{Value, json};

use super::at;
use super::faulty::begun;
use super::paced::paced;
use crate::sim::ask::Ask;
use crate::sim::dialect::Dialect;
use crate::sim::script::{Ending, Script, When};
use crate::sim::tape::{AT_ONCE, Pace, Speech, Tail, Tape};
use crate::sim::voices::Kind;

/// All tokens of `normal`, then a write of its own making in place of its tail.
fn ended_by(ask: &Ask, fill: impl FnOnce(&mut Speech<'_>, Tail)) -> Script {
    let tokens = ask.tokens();
    paced(Tape::new(ask), Pace::USUAL, tokens)
        .write(AT_ONCE, 0, |speech| fill(speech, Tail::of(ask, tokens, 0)))
        .end(AT_ONCE, Ending::Proper)
}

/// The first half of the tokens, a write in the middle, the rest and a proper end.
pub(super) fn halved(ask: &Ask, fill: impl FnOnce(&mut Speech<'_>)) -> Script {
    let tokens = ask.tokens();
    let half = tokens / 2;
    paced(Tape::new(ask), Pace::USUAL, half)
        .write(at(Pace::USUAL, half), 0, fill)
        .tokens(Pace::USUAL, Kind::Answer, half..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

pub(super) fn done_unclosed(ask: &Ask) -> Script {
    ended_by(ask, |speech, tail| {
        speech.close(tail);
        while speech.out.ends_with(b"\n") {
            speech.out.pop();
        }
    })
}

pub(super) fn done_twice(ask: &Ask) -> Script {
    ended_by(ask, |speech, tail| {
        speech.close(tail);
        speech.done();
    })
}

pub(super) fn after_done(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    ended_by(ask, |speech, tail| {
        speech.close(tail);
        speech.each(tokens..tokens + 3);
    })
}

/// As llama.cpp did until September 2025.
pub(super) fn error_field(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    tape.write(at(Pace::USUAL, next), 0, |speech| {
        let error = json!({"code": 500, "message": "the context is full", "type": "server_error"});
        let line = format!("error: {error}\n\n");
        speech.out.extend_from_slice(line.as_bytes());
        speech.done();
    })
    .end(AT_ONCE, Ending::Proper)
}

/// A chunk of the chat API with these choices, in front of all others.
fn prelude(ask: &Ask, chunk: &Value) -> Script {
    let tokens = ask.tokens();
    let json = chunk.to_string();
    Tape::new(ask)
        .write(When::At(Length::ZERO), 0, |speech| {
            speech.event("", json.as_bytes());
        })
        .role(Length::from_millis(20))
        .tokens(Pace::USUAL, Kind::Answer, 0..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

pub(super) fn azure_prelude(ask: &Ask) -> Script {
    let verdict = json!({"hate": {"filtered": false, "severity": "safe"}});
    let results = json!([{"prompt_index": 0, "content_filter_results": verdict}]);
    let chunk = json!({
        "choices": [], "created": 0, "id": "", "model": "", "object": "",
        "prompt_filter_results": results
    });
    prelude(ask, &chunk)
}

pub(super) fn choices_null(ask: &Ask) -> Script {
    prelude(
        ask,
        &json!({"id": "c", "object": "chat.completion.chunk", "choices": null}),
    )
}

pub(super) fn choices_missing(ask: &Ask) -> Script {
    prelude(ask, &json!({"id": "c", "object": "chat.completion.chunk"}))
}

/// After 10 tokens an event that carries an error somewhere in it, then the sentinel.
fn error_in(ask: &Ask, event: &Value) -> Script {
    let (tape, next) = begun(ask, 10);
    let json = event.to_string();
    tape.write(at(Pace::USUAL, next), 0, |speech| {
        speech.event("", json.as_bytes());
        speech.done();
    })
    .end(AT_ONCE, Ending::Proper)
}

pub(super) fn choice_error(ask: &Ask) -> Script {
    let error = json!({"code": 502, "message": "the provider went away"});
    let choice = json!({"index": 0, "delta": {}, "error": error, "finish_reason": null});
    error_in(ask, &json!({"id": "c", "choices": [choice]}))
}

/// As Groq tells it.
pub(super) fn x_groq_error(ask: &Ask) -> Script {
    let choice = json!({"index": 0, "delta": {}, "finish_reason": null});
    let error = json!({"id": "q", "error": "over capacity"});
    error_in(
        ask,
        &json!({"id": "c", "choices": [choice], "x_groq": error}),
    )
}

/// As OpenRouter tells it: the error beside a choice that finishes with it.
pub(super) fn router_error(ask: &Ask) -> Script {
    let choice = json!({"index": 0, "delta": {"content": ""}, "finish_reason": "error"});
    let error = json!({"code": 502, "message": "the provider went away"});
    error_in(
        ask,
        &json!({"id": "c", "error": error, "choices": [choice]}),
    )
}

/// A second beginning, of another answer.
pub(super) fn second_start(ask: &Ask) -> Script {
    halved(ask, |speech| {
        let other = json!({
            "id": "msg_sim_other", "type": "message", "role": "assistant", "model": ask.model,
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": ask.prompt_tokens, "output_tokens": 1}
        });
        let event = json!({"type": "message_start", "message": other}).to_string();
        speech.event("message_start", event.as_bytes());
    })
}

/// The text of a token is made, numbered, and never sent.
pub(super) fn seq_gap(ask: &Ask) -> Script {
    let tokens = ask.tokens().max(2);
    let half = tokens / 2;
    paced(Tape::new(ask), Pace::USUAL, half)
        .write(at(Pace::USUAL, half), 0, |speech| {
            speech.tokens(Kind::Answer, half..half + 1);
            speech.out.clear();
        })
        .tokens(Pace::USUAL, Kind::Answer, half + 1..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

/// The second event, which says nothing new, is never sent.
pub(super) fn seq_jump(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    Tape::new(ask)
        .write(When::At(Length::ZERO), 0, |speech| {
            speech.open();
            let mark: &[u8] = b"event: response.in_progress";
            let second = speech.out.windows(mark.len()).position(|w| w == mark);
            speech.out.truncate(second.unwrap_or(0));
        })
        .tokens(Pace::USUAL, Kind::Answer, 0..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

/// An event comes twice, with the same number.
pub(super) fn duplicate_event(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let half = tokens / 2;
    paced(Tape::new(ask), Pace::USUAL, half)
        .write(at(Pace::USUAL, half), 1, |speech| {
            speech.tokens(Kind::Answer, half..half + 1);
            speech.out.extend_from_within(..);
        })
        .tokens(Pace::USUAL, Kind::Answer, half + 1..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

/// An error object over several lines, without any field in front, as Gemini's servers send it.
pub(super) fn bare_error(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    tape.write(at(Pace::USUAL, next), 0, |speech| {
        let error =
            b"{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"overloaded\",\n    \
                      \"status\": \"UNAVAILABLE\"\n  }\n}\n";
        speech.out.extend_from_slice(error);
    })
    .end(AT_ONCE, Ending::Proper)
}

pub(super) fn prompt_blocked(ask: &Ask) -> Script {
    let counts =
        json!({"promptTokenCount": ask.prompt_tokens, "totalTokenCount": ask.prompt_tokens});
    let event = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": counts});
    let json = event.to_string();
    Tape::new(ask)
        .write(When::At(Pace::USUAL.first), 0, |speech| {
            speech.event("", json.as_bytes());
            speech.done();
        })
        .end(AT_ONCE, Ending::Proper)
}

/// The last line says that it is done and not why, as when the runner was closed early.
pub(super) fn no_done_reason(ask: &Ask) -> Script {
    ended_by(ask, |speech, tail| {
        speech.close(tail);
        let line = String::from_utf8_lossy(&speech.out).replace("\"done_reason\":\"stop\",", "");
        speech.out = line.replace("\"done_reason\":\"length\",", "").into_bytes();
    })
}

/// The model was loaded and nothing generated.
pub(super) fn load_only(ask: &Ask) -> Script {
    let text = match ask.dialect {
        Dialect::OllamaGenerate => json!({"response": ""}),
        _ => json!({"message": {"role": "assistant", "content": ""}}),
    };
    let mut line = json!({
        "model": ask.model, "created_at": "2026-01-01T00:00:00Z",
        "done": true, "done_reason": "load"
    });
    if let (Value::Object(line), Value::Object(text)) = (&mut line, text) {
        line.extend(text);
    }
    let json = line.to_string();
    Tape::new(ask)
        .write(When::At(Pace::USUAL.first), 0, |speech| {
            speech.event("", json.as_bytes());
        })
        .end(AT_ONCE, Ending::Proper)
}
