//! Owns the events of OpenAI's chat completions and completions, which differ in one field.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::answers::Answers;
use super::{Event, Kept, Reader, finish, parse, text, timing, usage};
use crate::trace::{Finish, Usage};

/// Reads chunks, or whole bodies: both have the same outline.
#[derive(Debug, Default)]
pub(super) struct OpenaiReader {
    choices: Answers,
    /// Counts that came on a chunk without choices.
    apart: Option<Usage>,
}

impl Reader for OpenaiReader {
    fn read(&mut self, _: &[u8], data: &str, mut kept: Kept<'_>) -> Result<Event, String> {
        let mut event = Event::default();
        let data = data.trim();
        if is_done(data) {
            event.sentinel = true;
            return Ok(event);
        }
        if data.is_empty() {
            return Ok(event);
        }
        let chunk: Chunk<'_> = parse(data)?;
        let choices = chunk.choices.as_ref().map_or(&[][..], |list| &list.0);
        for choice in choices {
            self.choices.watch(choice.index, choice.finish().is_some());
            choice.read_into(&mut event, &mut kept);
        }
        let groq = chunk.x_groq.and_then(groq_usage);
        event.usage = chunk.usage.or(groq).and_then(usage::openai);
        if choices.is_empty() {
            event.usage = event.usage.map(|usage| self.add_up(usage));
        }
        event.declared = chunk
            .timings
            .and_then(timing::llama)
            .or_else(|| chunk.usage.or(groq).and_then(timing::in_usage))
            .or_else(|| chunk.perf_metrics.and_then(timing::fireworks));
        Ok(event)
    }

    fn is_finished(&self) -> bool {
        self.choices.are_finished()
    }

    fn counts_run(&self) -> bool {
        !self.choices.are_several()
    }
}

impl OpenaiReader {
    /// Some servers state the counts of each of several choices apart: their outputs add up.
    fn add_up(&mut self, usage: Usage) -> Usage {
        let sum = match self.apart {
            Some(before) if self.choices.are_several() => usage.with_output_of(before),
            _ => usage,
        };
        self.apart = Some(sum);
        sum
    }
}

/// The sentinel, as servers write it.
fn is_done(data: &str) -> bool {
    data.get(..6)
        .is_some_and(|start| start.eq_ignore_ascii_case("[DONE]"))
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Choices<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timings: Option<&'a RawValue>,
    #[serde(borrow, default)]
    perf_metrics: Option<&'a RawValue>,
    #[serde(borrow, default)]
    x_groq: Option<&'a RawValue>,
}

/// The first choice without an allocation; more than one is rare.
struct Choices<'a>(SmallVec<[Choice<'a>; 1]>);

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Each<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Each<'a> {
            type Value = Choices<'a>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of choices")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut choices = SmallVec::new();
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
    #[serde(default)]
    index: u64,
    #[serde(borrow, default, alias = "message")]
    delta: Option<Delta<'a>>,
    /// Of completions.
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
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
    fn finish(&self) -> Option<Finish> {
        finish::of(self.finish_reason.as_deref()?)
    }

    fn read_into(&self, event: &mut Event, kept: &mut Kept<'_>) {
        if let Some(finish) = self.finish() {
            event.end(finish);
        }
        event.answer(text::measure(self.text, kept));
        let Some(delta) = &self.delta else { return };
        // Servers that send both names for reasoning send the same text twice: one counts.
        let reasoning = text::measure(delta.reasoning_content.filter(|raw| is_text(raw)), kept);
        event.reasoning(match reasoning.chars {
            0 => text::measure(delta.reasoning, kept),
            _ => reasoning,
        });
        let content = text::split(delta.content, kept);
        event.answer(content.answer);
        event.reasoning(content.reasoning);
        event.answer(text::measure(delta.refusal, kept));
        let calls = delta
            .tool_calls
            .iter()
            .flatten()
            .filter_map(|call| call.function.as_ref());
        for function in calls.chain(&delta.function_call) {
            event.tool_name |= text::measure(function.name, &mut None).chars > 0;
            event.answer(text::measure(function.arguments, &mut None));
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

/// The usage inside Groq's own member.
fn groq_usage(raw: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Member<'a> {
        #[serde(borrow, default)]
        usage: Option<&'a RawValue>,
    }
    serde_json::from_str::<Member<'_>>(raw.get()).ok()?.usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: &str) -> Event {
        OpenaiReader::default()
            .read(b"", data, None)
            .expect("reads")
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
    fn a_whole_body_reads_like_a_chunk() {
        let body = event(
            r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#,
        );
        assert_eq!((body.answer_chars, body.finish), (2, Some(Finish::Stop)));
    }

    #[test]
    fn what_is_no_json_is_said_so_and_clipped() {
        let long = format!("{{\"choices\": nonsense {}", "x".repeat(500));
        let error = OpenaiReader::default()
            .read(b"", &long, None)
            .expect_err("not JSON");
        assert!(error.len() < 300, "{error}");
    }

    #[test]
    fn each_of_several_choices_must_finish_and_their_outputs_add_up() {
        let mut reader = OpenaiReader::default();
        let mut read = |data: &str| {
            let event = reader.read(b"", data, None).expect("reads");
            (event, reader.is_finished())
        };
        let usage =
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}"#;
        read(
            r#"{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}"#,
        );
        let (_, finished) = read(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#);
        assert!(!finished);
        assert_eq!(read(usage).0.usage.and_then(|u| u.output), Some(3));
        let (_, finished) = read(r#"{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}"#);
        assert!(finished);
        let sum = read(usage).0.usage.expect("counts");
        assert_eq!(
            (sum.input, sum.output, sum.total),
            (Some(9), Some(6), Some(15))
        );
    }

    #[test]
    fn thinking_inside_a_list_of_parts_is_reasoning() {
        let part = event(
            r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"We"}]},{"type":"text","text":"Hi!"}]}}]}"#,
        );
        assert_eq!((part.reasoning_chars, part.answer_chars), (2, 3));
    }

    #[test]
    fn counts_inside_groqs_own_member_are_read_once() {
        let given = event(
            r#"{"choices":[],"x_groq":{"id":"q","usage":{"prompt_tokens":9,"completion_tokens":1,"completion_time":0.002}}}"#,
        );
        assert_eq!(given.usage.and_then(|u| u.output), Some(1));
        assert!(given.declared.is_some());
    }
}
