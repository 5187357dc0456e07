//! Owns Gemini's `streamGenerateContent`: how to ask, and how its chunks read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::answers::Answers;
use super::usage::{Counts, UNREADABLE};
use super::{
    Ask, Dialect, Event, Framing, Kept, Key, Owner, Reader, Route, finish, names, parse, plain,
    text,
};
use crate::trace::{Finish, ServerError, Usage};

/// Gemini's `generateContent` and its streamed form.
pub(super) const DIALECT: Dialect = Dialect {
    name: "gemini",
    framing: Framing::SseOrArray,
    sentinel: false,
    prefix: "/v1beta",
    routes: &[
        Route {
            path: "/models/{model}:streamGenerateContent",
            query: "alt=sse",
            stream: Some(true),
        },
        Route {
            path: "/models/{model}:generateContent",
            query: "",
            stream: Some(false),
        },
    ],
    owns: &[
        ("/generationConfig/maxOutputTokens", Owner::Limit),
        ("/contents", Owner::Prompt),
    ],
    models: "/models",
    listed: |list| {
        let names = names(list, "models", "name")?;
        let bare = |name: String| name.strip_prefix("models/").unwrap_or(&name).to_owned();
        Some(names.into_iter().map(bare).collect())
    },
    key: Key {
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        header: "x-goog-api-key",
        scheme: "",
    },
    headers: &[],
    ask,
    reader: || Box::new(GeminiReader::default()),
};

fn ask(ask: &Ask<'_>) -> Map<String, Value> {
    let mut body = Map::new();
    let (system, turns) = ask.messages.apart();
    let contents: Vec<Value> = turns.iter().map(content).collect();
    body.insert("contents".into(), json!(contents));
    if let Some(system) = system {
        body.insert(
            "systemInstruction".into(),
            json!({"parts": [{"text": system}]}),
        );
    }
    body.insert(
        "generationConfig".into(),
        json!({"maxOutputTokens": ask.output_tokens}),
    );
    body
}

/// A turn in Gemini's words.
fn content(turn: &Value) -> Value {
    let role = match turn["role"].as_str() {
        Some("assistant") => "model",
        _ => "user",
    };
    json!({"role": role, "parts": [{"text": plain(&turn["content"])}]})
}

/// Reads chunks, which are whole responses of the same outline.
#[derive(Debug, Default)]
struct GeminiReader {
    candidates: Answers,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompt_feedback: Option<Feedback<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow, default)]
    block_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default)]
    function_call: Option<Call<'a>>,
    #[serde(borrow, default)]
    executable_code: Option<Code<'a>>,
    #[serde(borrow, default)]
    inline_data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    partial_args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Code<'a> {
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
}

impl Part<'_> {
    fn read_into(&self, event: &mut Event, kept: &mut Kept<'_>) {
        let found = text::measure(self.text, kept);
        if self.thought == Some(true) {
            event.summary |= found.chars > 0;
            event.reasoning(found);
        } else {
            event.answer(found);
        }
        if let Some(call) = &self.function_call {
            event.tool_name |= text::measure(call.name, &mut None).chars > 0;
            event.json(call.args);
            event.json(call.partial_args);
        }
        if let Some(code) = &self.executable_code {
            event.answer(text::measure(code.code, kept));
        }
        event.other_output |= self.inline_data.is_some_and(|raw| raw.get().len() > 4);
    }
}

impl Reader for GeminiReader {
    fn read(&mut self, _: &[u8], data: &str, mut kept: Kept<'_>) -> Result<Event, String> {
        let mut event = Event::default();
        let data = data.trim();
        if data.is_empty() || data.starts_with("[DONE]") {
            return Ok(event);
        }
        let chunk: Chunk<'_> = parse(data)?;
        for candidate in chunk.candidates.iter().flatten() {
            let parts = candidate
                .content
                .iter()
                .flat_map(|c| c.parts.iter().flatten());
            parts.for_each(|part| part.read_into(&mut event, &mut kept));
            let ended = end(&mut event, candidate.finish_reason.as_deref());
            self.candidates.watch(candidate.index.unwrap_or(0), ended);
        }
        let blocked = chunk.prompt_feedback.and_then(|f| f.block_reason);
        if blocked.is_some_and(|reason| finish::of(&reason).is_some()) {
            event.end(Finish::Filter);
        }
        event.usage = chunk.usage_metadata.and_then(usage);
        Ok(event)
    }

    fn is_finished(&self) -> bool {
        self.candidates.are_finished()
    }
}

/// Takes why a candidate ended, and says whether it did.
fn end(event: &mut Event, reason: Option<&str>) -> bool {
    let Some(reason) = reason else { return false };
    let Some(finish) = finish::of(reason) else {
        return false;
    };
    event.end(finish);
    if finish == Finish::Error {
        event.error = Some(ServerError {
            code: Some(reason.to_owned()),
            message: format!("the finish reason is {reason}"),
        });
    }
    true
}

/// The candidates' count leaves the thoughts out: the stated total shows it.
fn usage(raw: &RawValue) -> Option<Usage> {
    let Some(given) = text::value(raw.get()) else {
        return Some(UNREADABLE);
    };
    given.as_object()?;
    let mut counts = Counts::of(&given);
    let prompt = counts.at("/promptTokenCount");
    let by_tools = counts.at("/toolUsePromptTokenCount").unwrap_or(0);
    let usage = Usage {
        input: prompt.map(|prompt| prompt.saturating_add(by_tools)),
        output: counts.at("/candidatesTokenCount"),
        total: counts.at("/totalTokenCount"),
        reasoning: counts.at("/thoughtsTokenCount"),
        cached: counts.at("/cachedContentTokenCount"),
        ..Usage::default()
    };
    Some(Usage {
        bad: counts.bad,
        ..usage
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: &str) -> Event {
        GeminiReader::default()
            .read(b"", data, None)
            .expect("reads")
    }

    #[test]
    fn parts_are_answer_thought_or_call() {
        let chunk = |part: &str| {
            event(&format!(
                r#"{{"candidates":[{{"index":0,"content":{{"role":"model","parts":[{part}]}},"finishReason":null}}]}}"#
            ))
        };
        assert_eq!(chunk(r#"{"text":"Hi"}"#).answer_chars, 2);
        let thought = chunk(r#"{"text":"We","thought":true}"#);
        assert_eq!((thought.reasoning_chars, thought.summary), (2, true));
        assert!(!chunk(r#"{"text":"","thoughtSignature":"xx"}"#).is_content());
        assert!(chunk(r#"{"functionCall":{"name":"f","args":{"a":1}}}"#).tool_name);
        assert!(chunk(r#"{"inlineData":{"mimeType":"image/png","data":"AA"}}"#).other_output);
        let result = chunk(r#"{"codeExecutionResult":{"output":"1"}}"#);
        assert!(!result.is_content(), "a tool's output is not the model's");
        assert_eq!(chunk(r#"{"text":"x"}"#).finish, None);
    }

    #[test]
    fn the_end_is_a_reason_and_the_counts_leave_thoughts_apart() {
        let last = event(
            r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1,"thoughtsTokenCount":40,"toolUsePromptTokenCount":2,"totalTokenCount":48}}"#,
        );
        assert_eq!(last.finish, Some(Finish::Length));
        let usage = last.usage.expect("counts");
        assert_eq!(
            (usage.input, usage.output, usage.reasoning, usage.total),
            (Some(7), Some(1), Some(40), Some(48))
        );
    }

    #[test]
    fn filters_block_and_broken_calls_are_errors() {
        let ends = |reason: &str| {
            let event = event(&format!(
                r#"{{"candidates":[{{"content":{{}},"finishReason":"{reason}"}}]}}"#
            ));
            (event.finish, event.error.is_some())
        };
        assert_eq!(ends("SAFETY"), (Some(Finish::Filter), false));
        assert_eq!(ends("MALFORMED_FUNCTION_CALL"), (Some(Finish::Error), true));
        assert_eq!(ends("OTHER"), (Some(Finish::Error), true));
        let blocked = event(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#);
        assert_eq!(blocked.finish, Some(Finish::Filter));
        let unused = event(r#"{"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"}}"#);
        assert_eq!(unused.finish, None);
    }

    #[test]
    fn turns_are_asked_in_its_own_words() {
        let turns = json!([{"role": "system", "content": "be brief"}, {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "text", "text": "b"}]}]);
        let body = ask(&Ask {
            path: "",
            model: "m",
            messages: super::super::Messages::Given(&turns),
            output_tokens: 7,
            limit_field: super::super::LimitField::MaxTokens,
            stream: true,
            usage: true,
        });
        assert_eq!(
            Value::Object(body),
            json!({"contents": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{"text": "b"}]}],
                "systemInstruction": {"parts": [{"text": "be brief"}]}, "generationConfig": {"maxOutputTokens": 7}})
        );
    }
}
