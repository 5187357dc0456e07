//! Owns Text Generation Inference's own routes: how to ask, and how their events read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::loss::{Arrived, Numbers};
use super::text::Measured;
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
        // It would give the prompt back as output.
        ("/parameters/return_full_text", Owner::Prompt),
    ],
    models: "/info",
    listed: |info| Some(vec![info.get("model_id")?.as_str()?.to_owned()]),
    key: Key::bearer(&["HF_TOKEN"]),
    headers: &[],
    ask,
    reader: || Box::new(TgiReader::default()),
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

/// Reads events, and whether any of them is missing.
#[derive(Debug, Default)]
struct TgiReader {
    numbers: Numbers,
    arrived: Arrived,
}

#[derive(Deserialize)]
struct Data<'a> {
    /// Counts every token from 1, the special ones too.
    #[serde(default)]
    index: Option<u64>,
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
        let index = data.token.as_ref().and(data.index);
        let repeat = self.numbers.is_repeat(index, 1);
        event.gap = self.numbers.gap;
        let token = data.token.filter(|token| !token.special && !repeat);
        if let Some(token) = token {
            let found = text::measure(token.text, &mut kept);
            event.answer(found);
            self.arrived.add(self.behind_its_start(found, token.text));
        }
        if let Some(details) = data.details {
            end(&mut event, details)?;
            if event.sentinel {
                let stated = Some(behind_white_space(data.generated_text));
                let stated = stated.filter(|chars| *chars > 0);
                event.lost = self.arrived.lost(stated, self.numbers.gap);
            }
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

impl TgiReader {
    /// A piece of the answer without the white space that the answer starts with: the text that is
    /// repeated at the end may lack it.
    fn behind_its_start(&self, piece: Measured, raw: Option<&RawValue>) -> Measured {
        if !self.arrived.is_empty() {
            return piece;
        }
        let chars = behind_white_space(raw);
        Measured {
            chars: u32::try_from(chars).unwrap_or(u32::MAX),
            ..piece
        }
    }
}

/// Characters of a text without the white space that it starts with.
fn behind_white_space(raw: Option<&RawValue>) -> u64 {
    let text = raw.map(text::string).unwrap_or_default();
    text.trim_start().chars().count() as u64
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
        TgiReader::default().read(b"", data, None).expect("reads")
    }

    #[test]
    fn each_token_is_content_but_a_special_one() {
        let first = event(
            r#"{"index":1,"token":{"id":7,"text":"Hi","logprob":-0.1,"special":false},"generated_text":null,"details":null}"#,
        );
        assert_eq!((first.answer_chars, first.finish), (2, None));
        let last = event(
            r#"{"index":1,"token":{"id":2,"text":"</s>","special":true},"generated_text":"","details":{"finish_reason":"eos_token","generated_tokens":2,"input_length":5,"seed":null}}"#,
        );
        assert!(!last.is_content() && last.sentinel);
        assert_eq!(last.finish, Some(Finish::Stop));
        let usage = last.usage.expect("counts");
        assert_eq!((usage.input, usage.output), (Some(5), Some(2)));
    }

    #[test]
    fn a_whole_answer_has_its_text_and_details() {
        let body = r#"[{"generated_text":"Hi","details":{"finish_reason":"length","generated_tokens":1,"prefill":[]}}]"#;
        let event = TgiReader::default().whole(body, None).expect("reads");
        assert_eq!(
            (event.answer_chars, event.finish),
            (2, Some(Finish::Length))
        );
    }

    /// The last of these tokens, each by its index and text, and of this text as repeated.
    fn last(tokens: &[(u64, &str)], generated: &str) -> Event {
        let mut reader = TgiReader::default();
        let mut found = Event::default();
        for (place, (index, text)) in tokens.iter().enumerate() {
            let is_last = place + 1 == tokens.len();
            let data = json!({"index": index, "token": {"text": text, "special": text.starts_with('<')},
                "generated_text": is_last.then_some(generated),
                "details": is_last.then(|| json!({"finish_reason": "length"}))});
            found = reader.read(b"", &data.to_string(), None).expect("reads");
        }
        found
    }

    #[test]
    fn a_number_missing_is_a_gap_and_lost_text_is_said() {
        let whole = last(&[(1, " a"), (2, "b"), (3, "</s>")], " ab");
        assert_eq!((whole.gap, whole.lost), (false, None));
        let special = last(&[(1, "a"), (3, "b"), (4, "</s>")], "ab");
        assert_eq!((special.gap, special.lost), (true, None));
        let hole = last(&[(1, "a"), (3, "c")], "abc");
        assert!(hole.gap && hole.lost.is_some());
        assert!(last(&[(3, "a"), (4, "c")], "ac").gap, "begins too late");
        let again = last(&[(1, "a"), (2, "b"), (2, "b"), (3, "c")], "abc");
        assert_eq!((again.gap, again.lost), (true, None));
        let more = last(&[(1, "a"), (2, "b")], "ab and more");
        assert!(!more.gap && more.lost.is_some());
    }

    #[test]
    fn white_space_at_the_start_and_a_text_left_out_are_no_loss() {
        for generated in [" Deep sea", "Deep sea", ""] {
            let found = last(&[(1, " "), (2, " Deep"), (3, " sea")], generated);
            assert_eq!((found.gap, found.lost), (false, None), "{generated:?}");
        }
    }
}
