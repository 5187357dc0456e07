//! Owns Text Generation Inference's own routes: how to ask, and how their events read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::usage::{Counts, UNREADABLE};
use super::{Ask, Dialect, Event, Framing, Kept, Key, Owner, Reader, Route, finish, parse, text};
use crate::trace::Usage;

/// TGI's `/generate_stream` and `/generate`.
pub(super) const DIALECT: Dialect = Dialect {
    name: "tgi",
    framing: Framing::Sse,
    // The last event is the finish marker.
    sentinel: false,
    prefix: "",
    routes: &[
        Route {
            path: "/generate_stream",
            query: "",
            stream: Some(true),
        },
        Route {
            path: "/generate",
            query: "",
            stream: Some(false),
        },
    ],
    owns: &[
        ("/parameters/max_new_tokens", Owner::Limit),
        ("/inputs", Owner::Prompt),
    ],
    models: "/info",
    listed: |info| Some(vec![info.get("model_id")?.as_str()?.to_owned()]),
    key: Key::bearer(&["HF_TOKEN"]),
    headers: &[],
    ask,
    reader: || Box::new(TgiReader),
};

fn ask(ask: &Ask<'_>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("inputs".into(), json!(ask.messages.text()));
    body.insert(
        "parameters".into(),
        json!({"max_new_tokens": ask.output_tokens, "details": true}),
    );
    body
}

/// Reads events, each of which says all that it says: no state.
#[derive(Debug)]
struct TgiReader;

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, default)]
    token: Option<Token<'a>>,
    #[serde(borrow, default)]
    generated_text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Token<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Reason<'a> {
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
}

impl Reader for TgiReader {
    fn read(&mut self, _: &[u8], data: &str, mut kept: Kept<'_>) -> Result<Event, String> {
        let mut event = Event::default();
        let data = data.trim();
        if data.is_empty() || data.starts_with("[DONE]") {
            return Ok(event);
        }
        let data: Data<'_> = parse(data)?;
        if let Some(token) = data.token.filter(|token| !token.special) {
            event.answer(text::measure(token.text, &mut kept));
        }
        if let Some(details) = data.details {
            end(&mut event, details)?;
        }
        Ok(event)
    }

    fn whole(&mut self, body: &str, mut kept: Kept<'_>) -> Result<Event, String> {
        // The whole answer may come inside a list of one.
        let body = body.trim();
        let inner = body.strip_prefix('[').and_then(|b| b.strip_suffix(']'));
        let data: Data<'_> = parse(inner.unwrap_or(body))?;
        let mut event = Event::default();
        event.answer(text::measure(data.generated_text, &mut kept));
        if let Some(details) = data.details {
            end(&mut event, details)?;
        }
        Ok(event)
    }
}

/// The details of the last event: it repeats the text, which does not count again.
fn end(event: &mut Event, raw: &RawValue) -> Result<(), String> {
    if raw.get() == "null" {
        return Ok(());
    }
    let reason: Reason<'_> = parse(raw.get())?;
    event.finish = reason.finish_reason.and_then(|reason| finish::of(&reason));
    event.sentinel = event.finish.is_some();
    let Some(given) = text::value(raw.get()) else {
        event.usage = Some(UNREADABLE);
        return Ok(());
    };
    let mut counts = Counts::of(&given);
    let prefill = given["prefill"].as_array().map(|list| list.len() as u64);
    event.usage = Some(Usage {
        input: counts
            .at("/input_length")
            .or(prefill.filter(|tokens| *tokens > 0)),
        output: counts.at("/generated_tokens"),
        bad: counts.bad,
        ..Usage::default()
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Finish;

    fn event(data: &str) -> Event {
        TgiReader.read(b"", data, None).expect("reads")
    }

    #[test]
    fn each_token_is_content_but_a_special_one() {
        let first = event(
            r#"{"index":1,"token":{"id":7,"text":"Hi","logprob":-0.1,"special":false},"generated_text":null,"details":null}"#,
        );
        assert_eq!((first.answer_chars, first.finish), (2, None));
        let last = event(
            r#"{"index":2,"token":{"id":2,"text":"</s>","special":true},"generated_text":"Hi","details":{"finish_reason":"eos_token","generated_tokens":2,"input_length":5,"seed":null}}"#,
        );
        assert!(!last.is_content() && last.sentinel);
        assert_eq!(last.finish, Some(Finish::Stop));
        let usage = last.usage.expect("counts");
        assert_eq!((usage.input, usage.output), (Some(5), Some(2)));
    }

    #[test]
    fn a_whole_answer_has_its_text_and_details() {
        let body = r#"[{"generated_text":"Hi","details":{"finish_reason":"length","generated_tokens":1,"prefill":[]}}]"#;
        let event = TgiReader.whole(body, None).expect("reads");
        assert_eq!(
            (event.answer_chars, event.finish),
            (2, Some(Finish::Length))
        );
    }
}
