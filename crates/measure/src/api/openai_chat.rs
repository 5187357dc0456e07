//! Owns OpenAI chat completions: how to ask, and how its events and bodies read.

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Ask, Event, LimitField, Messages, clip, count, text};
use crate::time::Length;
use crate::trace::{Declared, Finish, ServerError, Usage};

/// The body of a request.
pub fn ask(ask: &Ask<'_>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    let messages = match ask.messages {
        Messages::User(text) => json!([{"role": "user", "content": text}]),
        Messages::Given(turns) => turns.clone(),
    };
    body.insert("messages".into(), messages);
    body.insert("stream".into(), json!(ask.stream));
    if ask.stream && ask.usage {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    let limit = match ask.limit_field {
        LimitField::MaxTokens => "max_tokens",
        LimitField::MaxCompletionTokens => "max_completion_tokens",
    };
    body.insert(limit.into(), json!(ask.output_tokens));
    body
}

/// Reads one event, or a whole body: both have the same outline, a `delta` or a `message`.
pub fn read(name: &[u8], data: &str, mut kept: Option<&mut String>) -> Result<Event, String> {
    let mut event = Event::default();
    let data = data.trim();
    if data.starts_with("[DONE]") {
        event.sentinel = true;
        return Ok(event);
    }
    if data.is_empty() {
        return Ok(event);
    }
    let chunk: Chunk<'_> = serde_json::from_str(data).map_err(|error| {
        format!(
            "an event is not JSON of this API ({error}): {}",
            clip(data, 120)
        )
    })?;
    for choice in chunk.choices.iter().flat_map(|choices| &choices.0) {
        choice.read_into(&mut event, &mut kept);
    }
    event.usage = chunk.usage.and_then(usage);
    event.declared = declared(&chunk);
    let flat_error = name == b"error" || chunk.object.is_some_and(|object| object == "error");
    let inner = [chunk.error, chunk.x_groq.and_then(member_error)]
        .into_iter()
        .flatten();
    event.error = inner.filter_map(error_of).next().or(event.error.take());
    if flat_error && event.error.is_none() {
        event.error = error_of_text(data);
    }
    if event.finish == Some(Finish::Error) && event.error.is_none() {
        event.error = Some(ServerError {
            code: None,
            message: "the finish reason is an error".into(),
        });
    }
    Ok(event)
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Choices<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timings: Option<&'a RawValue>,
    #[serde(borrow, default)]
    x_groq: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Option<std::borrow::Cow<'a, str>>,
}

/// The first choice without an allocation; more than one is rare.
struct Choices<'a>(smallvec::SmallVec<[Choice<'a>; 1]>);

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Each<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Each<'a> {
            type Value = Choices<'a>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of choices")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut choices = smallvec::SmallVec::new();
                while let Some(choice) = list.next_element::<Choice<'a>>()? {
                    choices.push(choice);
                }
                Ok(Choices(choices))
            }
        }
        from.deserialize_seq(Each(std::marker::PhantomData))
    }
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default, alias = "message")]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow, default)]
    function_call: Option<Function<'a>>,
    #[serde(borrow, default)]
    audio: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
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

impl Choice<'_> {
    fn read_into(&self, event: &mut Event, kept: &mut Option<&mut String>) {
        if let Some(reason) = &self.finish_reason {
            event.finish = Some(finish(reason));
        }
        if let Some(error) = self.error.and_then(error_of) {
            event.error = Some(error);
        }
        let Some(delta) = &self.delta else { return };
        // Servers that send both names for reasoning send the same text twice: one counts.
        let reasoning = text::measure(delta.reasoning_content.filter(|raw| is_text(raw)), kept);
        let reasoning = match reasoning.chars {
            0 => text::measure(delta.reasoning, kept),
            _ => reasoning,
        };
        event.reasoning_chars = event.reasoning_chars.saturating_add(reasoning.chars);
        event.repaired |= reasoning.repaired;
        for part in [delta.content, delta.refusal] {
            let found = text::measure(part, kept);
            event.answer_chars = event.answer_chars.saturating_add(found.chars);
            event.repaired |= found.repaired;
        }
        let calls = delta
            .tool_calls
            .iter()
            .flatten()
            .filter_map(|call| call.function.as_ref());
        for function in calls.chain(&delta.function_call) {
            event.tool_name |= text::measure(function.name, &mut None).chars > 0;
            let arguments = text::measure(function.arguments, &mut None);
            event.answer_chars = event.answer_chars.saturating_add(arguments.chars);
            event.repaired |= arguments.repaired;
        }
        event.other_output |= delta.audio.is_some_and(has_audio);
    }
}

fn is_text(raw: &RawValue) -> bool {
    raw.get().len() > 2
}

fn has_audio(raw: &RawValue) -> bool {
    serde_json::from_str::<Value>(raw.get()).is_ok_and(|audio| {
        ["data", "transcript"]
            .iter()
            .any(|key| audio[key].as_str().is_some_and(|s| !s.is_empty()))
    })
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => Finish::Stop,
        "tool_calls" | "function_call" | "tool_use" => Finish::Tool,
        "length" | "max_tokens" => Finish::Length,
        "content_filter" => Finish::Filter,
        "error" => Finish::Error,
        _ => Finish::Other,
    }
}

fn usage(raw: &RawValue) -> Option<Usage> {
    let given: Value = serde_json::from_str(raw.get()).ok()?;
    given.as_object()?;
    let mut bad = false;
    let mut at = |path: &str| count(given.pointer(path), &mut bad);
    let usage = Usage {
        input: at("/prompt_tokens"),
        output: at("/completion_tokens"),
        total: at("/total_tokens"),
        reasoning: at("/completion_tokens_details/reasoning_tokens"),
        cached: at("/prompt_tokens_details/cached_tokens").or(at("/prompt_cache_hit_tokens")),
        rejected: at("/completion_tokens_details/rejected_prediction_tokens"),
        bad: false,
    };
    Some(Usage { bad, ..usage })
}

/// llama.cpp's `timings`, or the times Groq puts into its usage.
fn declared(chunk: &Chunk<'_>) -> Option<Declared> {
    if let Some(timings) = chunk
        .timings
        .and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok())
    {
        let mut bad = false;
        let millis = |key: &str| timings[key].as_f64().and_then(|ms| length(ms / 1e3));
        return Some(Declared {
            prompt: millis("prompt_ms"),
            prompt_tokens: count(timings.get("prompt_n"), &mut bad),
            output: millis("predicted_ms"),
            output_tokens: count(timings.get("predicted_n"), &mut bad),
            queue: None,
        });
    }
    let usage = chunk
        .usage
        .filter(|raw| raw.get().contains("completion_time"))?;
    let usage: Value = serde_json::from_str(usage.get()).ok()?;
    let mut bad = false;
    let seconds = |key: &str| usage[key].as_f64().and_then(length);
    Some(Declared {
        prompt: seconds("prompt_time"),
        prompt_tokens: count(usage.get("prompt_tokens"), &mut bad),
        output: seconds("completion_time"),
        output_tokens: count(usage.get("completion_tokens"), &mut bad),
        queue: seconds("queue_time"),
    })
}

fn length(seconds: f64) -> Option<Length> {
    (seconds.is_finite() && (0.0..1e9).contains(&seconds))
        .then(|| Length::from_nanos((seconds * 1e9).round() as u64))
}

fn member_error(raw: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Member<'a> {
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }
    serde_json::from_str::<Member<'_>>(raw.get()).ok()?.error
}

/// An error object or string; null and empty values are none.
fn error_of(raw: &RawValue) -> Option<ServerError> {
    error_of_text(raw.get())
}

fn error_of_text(raw: &str) -> Option<ServerError> {
    let given: Value = serde_json::from_str(raw).ok()?;
    let text = |value: &Value| match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match &given {
        Value::Null | Value::Bool(false) => None,
        Value::String(message) if message.is_empty() => None,
        Value::String(message) => Some(ServerError {
            code: None,
            message: message.clone(),
        }),
        Value::Object(_) => {
            let inner = if given["error"].is_object() {
                &given["error"]
            } else {
                &given
            };
            let code = text(&inner["type"]).or(text(&inner["code"]));
            let message = text(&inner["message"]).unwrap_or_else(|| clip(raw, 200));
            Some(ServerError { code, message })
        }
        _ => Some(ServerError {
            code: None,
            message: clip(raw, 200),
        }),
    }
}

/// The error in the body of a response whose status is one.
pub fn error_body(body: &str) -> Option<ServerError> {
    let given: Value = serde_json::from_str(body).ok()?;
    let inner = given.get("error").or(given.get("detail")).unwrap_or(&given);
    error_of_text(&inner.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: &str) -> Event {
        read(b"", data, None).expect("reads")
    }

    #[test]
    fn role_empty_and_usage_are_not_content() {
        for data in [
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}"#,
            r#"{"choices":null,"usage":{"prompt_tokens":9}}"#,
            r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[]}"#,
            r#"{"usage":{"completion_tokens":1}}"#,
        ] {
            assert!(!event(data).is_content(), "{data}");
        }
    }

    #[test]
    fn text_reasoning_refusal_and_tools_are_content() {
        let answer = event(r#"{"choices":[{"delta":{"content":"Hi"}}]}"#);
        assert_eq!((answer.answer_chars, answer.is_answer()), (2, true));
        for field in ["reasoning", "reasoning_content"] {
            let thought = event(&format!(
                r#"{{"choices":[{{"delta":{{"content":null,"{field}":"We"}}}}]}}"#
            ));
            assert_eq!(
                (
                    thought.reasoning_chars,
                    thought.is_answer(),
                    thought.is_content()
                ),
                (2, false, true)
            );
        }
        assert!(event(r#"{"choices":[{"delta":{"refusal":"No"}}]}"#).is_answer());
        let named = event(
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}"#,
        );
        assert!(named.is_answer() && named.is_bare());
        let call = event(
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a"}}]}}]}"#,
        );
        assert_eq!((call.answer_chars, call.tool_name), (3, false));
    }

    #[test]
    fn both_names_of_the_same_reasoning_count_once() {
        let thought =
            event(r#"{"choices":[{"delta":{"reasoning":"We","reasoning_content":"We"}}]}"#);
        assert_eq!(thought.reasoning_chars, 2);
    }

    #[test]
    fn every_carrier_of_an_error_is_seen() {
        for data in [
            r#"{"error":{"message":"died","type":"server_error","code":null}}"#,
            r#"{"error":{"message":"died","code":500}}"#,
            r#"{"error":"died"}"#,
            r#"{"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
            r#"{"choices":[{"delta":{},"error":{"message":"died"}}]}"#,
            r#"{"x_groq":{"error":"died"},"choices":[]}"#,
            r#"{"object":"error","message":"died","type":"BadRequestError","code":400}"#,
        ] {
            assert!(event(data).error.is_some(), "{data}");
        }
        assert_eq!(event(r#"{"error":null,"choices":[]}"#).error, None);
        let flat = read(
            b"error",
            r#"{"code":500,"message":"died","type":"server_error"}"#,
            None,
        );
        assert_eq!(
            flat.expect("reads").error.map(|e| e.message),
            Some("died".into())
        );
    }

    #[test]
    fn usage_is_taken_as_given_and_oddities_are_marked() {
        let given = event(
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":78.0,"total_tokens":87,"completion_tokens_details":{"reasoning_tokens":64},"prompt_tokens_details":{"cached_tokens":3}}}"#,
        );
        let usage = given.usage.expect("usage");
        assert_eq!(
            (usage.output, usage.reasoning, usage.cached, usage.bad),
            (Some(78), Some(64), Some(3), false)
        );
        let odd = event(r#"{"choices":[],"usage":{"completion_tokens":-1}}"#)
            .usage
            .expect("usage");
        assert_eq!((odd.output, odd.bad), (None, true));
    }

    #[test]
    fn declared_timings_are_lengths() {
        let given = event(
            r#"{"choices":[],"timings":{"prompt_n":9,"prompt_ms":30.5,"predicted_n":2,"predicted_ms":20.25}}"#,
        );
        let declared = given.declared.expect("declared");
        assert_eq!(declared.output, Some(Length::from_nanos(20_250_000)));
        assert_eq!(declared.prompt_tokens, Some(9));
    }

    #[test]
    fn a_whole_body_reads_like_a_chunk() {
        let body = event(
            r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#,
        );
        assert_eq!((body.answer_chars, body.finish), (2, Some(Finish::Stop)));
    }

    #[test]
    fn what_is_no_json_is_said_so_and_clipped() {
        let long = format!("{{\"choices\": nonsense {}", "x".repeat(500));
        let error = read(b"", &long, None).expect_err("not JSON");
        assert!(error.len() < 300, "{error}");
    }
}
