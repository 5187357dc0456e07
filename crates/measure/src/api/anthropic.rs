//! Owns Anthropic Messages: how to ask, and how its events read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::usage::Counts;
use super::{
    Ask, Dialect, Event, Framing, Kept, Key, Owner, Reader, Route, Started, finish, names, parse,
    text, timing,
};
use crate::trace::Usage;

/// Anthropic Messages.
pub(super) const DIALECT: Dialect = Dialect {
    name: "anthropic",
    framing: Framing::Sse,
    sentinel: true,
    prefix: "/v1",
    routes: &[Route::both("/messages")],
    owns: &[
        ("/model", Owner::Model),
        ("/max_tokens", Owner::Limit),
        ("/messages", Owner::Prompt),
    ],
    models: "/models",
    listed: |list| names(list, "data", "id"),
    key: Key {
        variables: &["ANTHROPIC_API_KEY"],
        header: "x-api-key",
        scheme: "",
    },
    headers: &[("anthropic-version", "2023-06-01")],
    ask,
    reader: || Box::new(AnthropicReader::default()),
};

fn ask(ask: &Ask<'_>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    let (system, turns) = ask.messages.apart();
    if let Some(system) = system {
        body.insert("system".into(), json!(system));
    }
    body.insert("messages".into(), json!(turns));
    body.insert("stream".into(), json!(ask.stream));
    body.insert("max_tokens".into(), json!(ask.output_tokens));
    body
}

/// Reads events. Counts come in parts that replace each other.
#[derive(Debug, Default)]
struct AnthropicReader {
    started: Started,
    counts: Parts,
}

/// The counts as they stand; each field that an event has replaces what was before.
#[derive(Debug, Default, Clone, Copy)]
struct Parts {
    input: Option<u64>,
    created: Option<u64>,
    cached: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
    bad: bool,
}

impl Parts {
    fn take(&mut self, raw: Option<&RawValue>, with_output: bool) {
        let Some(raw) = raw else { return };
        let Some(given) = text::value(raw.get()) else {
            self.bad = true;
            return;
        };
        let mut counts = Counts::of(&given);
        self.input = counts.at("/input_tokens").or(self.input);
        self.created = counts.at("/cache_creation_input_tokens").or(self.created);
        self.cached = counts.at("/cache_read_input_tokens").or(self.cached);
        // The count in the first event is a placeholder.
        if with_output {
            self.output = counts.at("/output_tokens").or(self.output);
            self.thinking = counts
                .at("/output_tokens_details/thinking_tokens")
                .or(self.thinking);
        }
        self.bad |= counts.bad;
    }

    /// In the normal form: the input is the sum of its three parts, and no total is stated.
    fn usage(self) -> Usage {
        let parts = [self.input, self.created, self.cached];
        let known = parts.iter().flatten().count() > 0;
        let sum = parts.into_iter().flatten().fold(0u64, u64::saturating_add);
        Usage {
            input: known.then_some(sum),
            output: self.output,
            reasoning: self.thinking,
            cached: self.cached,
            bad: self.bad,
            ..Usage::default()
        }
    }

    /// Whether the thinking that streams is a summary of what is counted.
    fn is_summary(self) -> bool {
        self.thinking.is_some_and(|thinking| thinking > 0)
    }
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content_block: Option<Block<'a>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timings: Option<&'a RawValue>,
}

/// A message: as the start of a stream, or as a whole body.
#[derive(Deserialize, Default)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<Vec<Block<'a>>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    /// Of a call in a whole body.
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

impl Block<'_> {
    fn read_into(&self, event: &mut Event, kept: &mut Kept<'_>) {
        match self.kind.as_ref() {
            "text" => event.answer(text::measure(self.text, kept)),
            "thinking" => event.reasoning(text::measure(self.thinking, kept)),
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                event.tool_name |= text::measure(self.name, &mut None).chars > 0;
            }
            // A tool's result is not the model's, and redacted thinking cannot be seen.
            _ => {}
        }
    }
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    partial_json: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
}

impl Delta<'_> {
    fn read_into(&self, event: &mut Event, kept: &mut Kept<'_>) {
        match self.kind.as_ref() {
            "text_delta" => event.answer(text::measure(self.text, kept)),
            "thinking_delta" => event.reasoning(text::measure(self.thinking, kept)),
            "input_json_delta" => event.answer(text::measure(self.partial_json, &mut None)),
            _ => {}
        }
    }
}

impl Reader for AnthropicReader {
    fn read(&mut self, _: &[u8], data: &str, mut kept: Kept<'_>) -> Result<Event, String> {
        let mut event = Event::default();
        let data = data.trim();
        // Gateways put another API's sentinel behind the last event.
        if data.is_empty() || data.starts_with("[DONE]") {
            return Ok(event);
        }
        let data: Data<'_> = parse(data)?;
        match data.kind.as_ref() {
            "message_start" => {
                let message: Message<'_> = match data.message {
                    Some(raw) => parse(raw.get())?,
                    None => Message::default(),
                };
                event.restarted = self.started.is_another(message.id.as_deref());
                self.counts.take(message.usage, false);
            }
            "content_block_start" => {
                if let Some(block) = &data.content_block {
                    block.read_into(&mut event, &mut kept);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = &data.delta {
                    delta.read_into(&mut event, &mut kept);
                }
            }
            "message_delta" => {
                let reason = data.delta.and_then(|delta| delta.stop_reason);
                event.finish = reason.and_then(|reason| finish::of(&reason));
                self.counts.take(data.usage, true);
                event.usage = Some(self.counts.usage());
                event.summary = self.counts.is_summary();
            }
            "message_stop" => event.sentinel = true,
            // New kinds of events may come at any time and mean nothing yet.
            _ => {}
        }
        event.declared = data.timings.and_then(timing::llama);
        Ok(event)
    }

    fn whole(&mut self, body: &str, mut kept: Kept<'_>) -> Result<Event, String> {
        let message: Message<'_> = parse(body.trim())?;
        let mut event = Event::default();
        for block in message.content.iter().flatten() {
            block.read_into(&mut event, &mut kept);
            event.json(block.input);
        }
        event.finish = message.stop_reason.and_then(|reason| finish::of(&reason));
        self.counts.take(message.usage, true);
        event.usage = Some(self.counts.usage());
        event.summary = self.counts.is_summary();
        Ok(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Finish;

    fn read_all(events: &[&str]) -> Vec<Event> {
        let mut reader = AnthropicReader::default();
        let each = |data: &&str| reader.read(b"", data, None).expect("reads");
        events.iter().map(each).collect()
    }

    #[test]
    fn blocks_and_deltas_are_content_and_signs_of_life_are_not() {
        let events = read_all(&[
            r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":9,"output_tokens":1,"cache_read_input_tokens":3}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"We"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"xx"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}"#,
            r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"a"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":4}}"#,
            r#"{"type":"message_stop"}"#,
        ]);
        let chars: Vec<_> = events
            .iter()
            .map(|e| (e.reasoning_chars, e.answer_chars, e.tool_name))
            .collect();
        let none = (0, 0, false);
        assert_eq!(
            chars,
            [
                none,
                none,
                none,
                (2, 0, false),
                none,
                (0, 2, false),
                (0, 0, true),
                (0, 3, false),
                none,
                none
            ]
        );
        let usage = events[8].usage.expect("counts");
        assert_eq!(
            (usage.input, usage.cached, usage.output),
            (Some(12), Some(3), Some(4))
        );
        assert_eq!(events[8].finish, Some(Finish::Tool));
        assert!(events[9].sentinel);
    }

    #[test]
    fn the_first_count_is_a_placeholder_and_later_fields_replace_earlier_ones() {
        let events = read_all(&[
            r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":0,"output_tokens":0}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":2}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":7,"output_tokens":24,"output_tokens_details":{"thinking_tokens":20}}}"#,
        ]);
        assert_eq!(events[0].usage, None);
        let last = events[2].usage.expect("counts");
        assert_eq!(
            (last.input, last.output, last.reasoning),
            (Some(7), Some(24), Some(20))
        );
        assert!(events[2].summary && !events[1].summary);
        assert_eq!(
            (events[1].finish, events[2].finish),
            (None, Some(Finish::Stop))
        );
    }

    #[test]
    fn a_second_start_with_another_id_is_a_restart() {
        let start = |id| format!(r#"{{"type":"message_start","message":{{"id":"{id}"}}}}"#);
        let (one, two) = (start("a"), start("b"));
        let events = read_all(&[&one, &one, &two]);
        let restarted: Vec<bool> = events.iter().map(|event| event.restarted).collect();
        assert_eq!(restarted, [false, false, true]);
    }

    #[test]
    fn a_whole_message_reads_its_blocks() {
        let body = r#"{"id":"m","type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"max_tokens","usage":{"input_tokens":9,"output_tokens":1}}"#;
        let event = AnthropicReader::default().whole(body, None).expect("reads");
        assert_eq!(
            (event.answer_chars, event.finish),
            (2, Some(Finish::Length))
        );
        assert_eq!(event.usage.and_then(|usage| usage.output), Some(1));
    }
}
