//! Owns Ollama's `/api/chat` and `/api/generate`: how to ask, and how their lines read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::usage::{Counts, UNREADABLE};
use super::{
    Ask, Dialect, Event, Framing, Kept, Key, Owner, Reader, Route, finish, names, parse, text,
};
use crate::time::Length;
use crate::trace::{Declared, Finish, Usage};

/// Ollama's own routes.
pub(super) const DIALECT: Dialect = Dialect {
    name: "ollama",
    framing: Framing::Ndjson,
    // The terminal line is the finish marker; without its reason it is a terminal line only.
    sentinel: true,
    prefix: "",
    routes: &[Route::both("/api/chat"), Route::both("/api/generate")],
    owns: &[
        ("/model", Owner::Model),
        ("/options/num_predict", Owner::Limit),
        ("/messages", Owner::Prompt),
        ("/prompt", Owner::Prompt),
    ],
    models: "/api/tags",
    listed: |list| names(list, "models", "name"),
    key: Key::bearer(&["OLLAMA_API_KEY"]),
    headers: &[],
    ask,
    reader: || Box::new(OllamaReader),
};

fn ask(ask: &Ask<'_>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    if ask.path.contains("/api/generate") {
        body.insert("prompt".into(), json!(ask.messages.text()));
    } else {
        body.insert("messages".into(), ask.messages.turns());
    }
    body.insert("stream".into(), json!(ask.stream));
    body.insert("options".into(), json!({"num_predict": ask.output_tokens}));
    body
}

/// Reads lines, each of which says all that it says: no state.
#[derive(Debug)]
struct OllamaReader;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
    /// Of `/api/generate`.
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(default)]
    done: Option<bool>,
    #[serde(borrow, default)]
    done_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl Reader for OllamaReader {
    fn read(&mut self, _: &[u8], data: &str, mut kept: Kept<'_>) -> Result<Event, String> {
        let mut event = Event::default();
        let line: Line<'_> = parse(data)?;
        event.reasoning(text::measure(line.thinking, &mut kept));
        event.answer(text::measure(line.response, &mut kept));
        if let Some(message) = &line.message {
            event.reasoning(text::measure(message.thinking, &mut kept));
            event.answer(text::measure(message.content, &mut kept));
            let calls = message.tool_calls.iter().flatten();
            for function in calls.filter_map(|call| call.function.as_ref()) {
                event.tool_name |= text::measure(function.name, &mut None).chars > 0;
                event.json(function.arguments);
            }
        }
        if line.done == Some(true) {
            let reason = line.done_reason.filter(|reason| !reason.is_empty());
            event.sentinel = reason.is_some();
            event.finish = reason
                .and_then(|reason| finish::of(&reason))
                .or(Some(Finish::Other));
            end(&mut event, data);
        }
        Ok(event)
    }
}

/// The counts and times of the last line. A count that is absent is not zero: a prompt that came
/// from the cache whole has none.
fn end(event: &mut Event, data: &str) {
    let Some(given) = text::value(data) else {
        event.usage = Some(UNREADABLE);
        return;
    };
    let mut counts = Counts::of(&given);
    let (input, output) = (counts.at("/prompt_eval_count"), counts.at("/eval_count"));
    let mut nanos = |pointer: &str| counts.at(pointer).map(Length::from_nanos);
    event.declared = Some(Declared {
        prompt: nanos("/prompt_eval_duration"),
        prompt_tokens: input,
        output: nanos("/eval_duration"),
        output_tokens: output,
        load: nanos("/load_duration"),
        total: nanos("/total_duration"),
        ..Declared::default()
    });
    event.usage = Some(Usage {
        input,
        output,
        bad: counts.bad,
        ..Usage::default()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: &str) -> Event {
        OllamaReader.read(b"", data, None).expect("reads")
    }

    #[test]
    fn both_routes_bring_text_and_thinking() {
        assert_eq!(
            event(r#"{"message":{"role":"assistant","content":"Hi"},"done":false}"#).answer_chars,
            2
        );
        assert_eq!(
            event(r#"{"message":{"content":"","thinking":"We"},"done":false}"#).reasoning_chars,
            2
        );
        assert_eq!(event(r#"{"response":"Hi","done":false}"#).answer_chars, 2);
        assert_eq!(
            event(r#"{"response":"","thinking":"We","done":false}"#).reasoning_chars,
            2
        );
        let call = event(
            r#"{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}"#,
        );
        assert!(call.is_answer() && call.answer_chars == 7);
    }

    #[test]
    fn the_last_line_ends_with_counts_and_declared_times() {
        let last = event(
            r#"{"message":{"content":""},"done":true,"done_reason":"stop","total_duration":41000000,"load_duration":1000000,"eval_count":2,"eval_duration":30000000}"#,
        );
        assert!(last.sentinel && !last.is_content());
        assert_eq!(last.finish, Some(Finish::Stop));
        let usage = last.usage.expect("counts");
        assert_eq!((usage.input, usage.output), (None, Some(2)));
        let declared = last.declared.expect("times");
        assert_eq!(declared.output, Some(Length::from_millis(30)));
        assert_eq!(declared.load, Some(Length::from_millis(1)));
    }

    #[test]
    fn done_without_a_reason_ends_it_without_its_terminal_proof() {
        let last = event(r#"{"response":"","done":true}"#);
        assert_eq!((last.finish, last.sentinel), (Some(Finish::Other), false));
    }
}
