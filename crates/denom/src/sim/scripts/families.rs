//! Owns the scripts that say `normal` in the words of particular servers, which are right too.

use measure::time::Length;
use serde_json::{Value, json};

use super::at;
use super::paced::normal;
use crate::sim::ask::Ask;
use crate::sim::script::{Ending, Script, When};
use crate::sim::tape::{AT_ONCE, Pace, Tape};
use crate::sim::voices::words;

/// The sentinel as an event of its own.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// An answer told by a family, as the JSON of its events: `first` in front of all output, `each` for a
/// token by its index, whether it is the last, and its text, `last` behind all output; then the bytes
/// of `close`. Who wants no stream gets `normal`.
fn told(
    ask: &Ask,
    first: &[Value],
    each: impl Fn(u64, bool, &str) -> Value,
    last: &[Value],
    close: &'static [u8],
) -> Script {
    if !ask.stream {
        return normal(ask);
    }
    let tokens = ask.tokens();
    let mut tape = said(
        Tape::new(ask).head_first(),
        When::At(Length::ZERO),
        0,
        first,
    );
    for index in 0..tokens {
        let word = words(ask.serial, index..index + 1);
        let event = each(index, index + 1 == tokens, &String::from_utf8_lossy(&word));
        tape = said(tape, at(Pace::USUAL, index), 1, &[event]);
    }
    said(tape, AT_ONCE, 0, last)
        .write(AT_ONCE, 0, |speech| speech.out.extend_from_slice(close))
        .end(AT_ONCE, Ending::Proper)
}

fn said<'a>(tape: Tape<'a>, when: When, tokens: u64, events: &[Value]) -> Tape<'a> {
    tape.write(when, tokens, |speech| {
        for event in events {
            let kind = event["type"].as_str().unwrap_or_default();
            speech.event(kind, event.to_string().as_bytes());
        }
    })
}

/// A chunk of the chat API with one choice.
fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [choice]})
}

fn with(mut chunk: Value, name: &str, value: Value) -> Value {
    chunk[name] = value;
    chunk
}

fn role() -> Vec<Value> {
    vec![chunk(&json!({"role": "assistant", "content": ""}), None)]
}

fn content(_: u64, _: bool, word: &str) -> Value {
    chunk(&json!({ "content": word }), None)
}

fn why(ask: &Ask) -> &'static str {
    if ask.max_tokens == Some(ask.tokens()) {
        "length"
    } else {
        "stop"
    }
}

fn finish(ask: &Ask) -> Value {
    chunk(&json!({}), Some(why(ask)))
}

fn usage(ask: &Ask, output: u64) -> Value {
    let prompt = ask.prompt_tokens;
    json!({"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output})
}

/// The chunk without choices that carries the counts.
fn counted(counts: &Value) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": counts})
}

/// Milliseconds of prompt and output, as this script takes them.
fn spent(ask: &Ask) -> (f64, f64) {
    let millis = |length: Length| length.nanos() as f64 / 1e6;
    let (first, last) = (Pace::USUAL.first, Pace::USUAL.last(ask.tokens()));
    (millis(first), millis(last) - millis(first))
}

/// llama.cpp: the role without text, and declared timings beside the usage.
pub(super) fn llama_cpp(ask: &Ask) -> Script {
    let ((prompt_ms, predicted_ms), tokens) = (spent(ask), ask.tokens());
    let timings = json!({"cache_n": 0, "prompt_n": ask.prompt_tokens, "prompt_ms": prompt_ms,
        "predicted_n": tokens, "predicted_ms": predicted_ms});
    let counted = counted(&usage(ask, tokens));
    told(
        ask,
        &[chunk(&json!({"role": "assistant", "content": null}), None)],
        content,
        &[finish(ask), with(counted, "timings", timings)],
        DONE,
    )
}

/// Groq: usage twice and declared times on the chunk that finishes.
pub(super) fn groq(ask: &Ask) -> Script {
    let (prompt_ms, output_ms) = spent(ask);
    let mut counts = usage(ask, ask.tokens());
    counts["queue_time"] = json!(0.001);
    counts["prompt_time"] = json!(prompt_ms / 1e3);
    counts["completion_time"] = json!(output_ms / 1e3);
    let last = with(finish(ask), "x_groq", json!({"id": "q", "usage": counts}));
    let first = with(role().remove(0), "x_groq", json!({"id": "q", "seed": 1}));
    told(ask, &[first], content, &[with(last, "usage", counts)], DONE)
}

/// Fireworks: usage and the server's own times on the chunk that finishes.
pub(super) fn fireworks(ask: &Ask) -> Script {
    let metrics = json!({"server-time-to-first-token": spent(ask).0 / 1e3});
    let last = with(finish(ask), "usage", usage(ask, ask.tokens()));
    told(
        ask,
        &role(),
        content,
        &[with(last, "perf_metrics", metrics)],
        DONE,
    )
}

/// DeepSeek: three quarters reasoning, the other member null; usage on the chunk that finishes.
pub(super) fn deepseek(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let reasoning = tokens * 3 / 4;
    let mut counts = usage(ask, tokens);
    counts["completion_tokens_details"] = json!({"reasoning_tokens": reasoning});
    told(
        ask,
        &role(),
        |index, _, word| {
            let delta = if index < reasoning {
                json!({"content": null, "reasoning_content": word})
            } else {
                json!({"content": word, "reasoning_content": null})
            };
            with(chunk(&delta, None), "usage", Value::Null)
        },
        &[with(finish(ask), "usage", counts)],
        DONE,
    )
}

/// OpenRouter: `reasoning` for the first three quarters.
pub(super) fn openrouter(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let reasoning = tokens * 3 / 4;
    let mut counts = usage(ask, tokens);
    counts["completion_tokens_details"] = json!({"reasoning_tokens": reasoning});
    let counted = counted(&counts);
    told(
        ask,
        &role(),
        |index, _, word| {
            let delta = if index < reasoning {
                json!({"content": "", "reasoning": word})
            } else {
                json!({ "content": word })
            };
            with(chunk(&delta, None), "provider", json!("p"))
        },
        &[finish(ask), counted],
        DONE,
    )
}

/// xAI: the role comes with the first text, and no finish_reason until the end.
pub(super) fn xai(ask: &Ask) -> Script {
    let counted = counted(&usage(ask, ask.tokens()));
    told(
        ask,
        &[],
        |_, _, word| {
            let delta = json!({"role": "assistant", "content": word});
            json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]})
        },
        &[finish(ask), counted],
        DONE,
    )
}

/// Moonshot: the last text, the finish and the usage in one chunk.
pub(super) fn moonshot(ask: &Ask) -> Script {
    let (counts, why) = (usage(ask, ask.tokens()), why(ask));
    told(
        ask,
        &role(),
        |index, last, word| {
            if !last {
                return content(index, last, word);
            }
            with(
                chunk(&json!({ "content": word }), Some(why)),
                "usage",
                counts.clone(),
            )
        },
        &[],
        DONE,
    )
}

/// LiteLLM: the usage chunk has a choice, whose delta is empty.
pub(super) fn litellm(ask: &Ask) -> Script {
    let choice = json!({"index": 0, "delta": {}});
    let counted = json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice], "usage": usage(ask, ask.tokens())});
    told(ask, &role(), content, &[finish(ask), counted], DONE)
}

/// Mistral: content as a list of parts, the first three quarters of them thinking.
pub(super) fn mistral(ask: &Ask) -> Script {
    let reasoning = ask.tokens() * 3 / 4;
    told(
        ask,
        &role(),
        |index, _, word| {
            let text = json!({"type": "text", "text": word});
            let part = if index < reasoning {
                json!({"type": "thinking", "thinking": [text]})
            } else {
                text
            };
            chunk(&json!({ "content": [part] }), None)
        },
        &[with(finish(ask), "usage", usage(ask, ask.tokens()))],
        DONE,
    )
}

/// vLLM told to count as it goes: the usage so far on every chunk.
pub(super) fn vllm_counts(ask: &Ask) -> Script {
    let counted = counted(&usage(ask, ask.tokens()));
    let last = with(finish(ask), "usage", usage(ask, ask.tokens()));
    told(
        ask,
        &[with(role().remove(0), "usage", usage(ask, 0))],
        |index, last, word| with(content(index, last, word), "usage", usage(ask, index + 1)),
        &[last, counted],
        DONE,
    )
}

/// vLLM's older completions: the finish reason stands on the last text.
pub(super) fn text_finish(ask: &Ask) -> Script {
    let why = why(ask);
    let chunk = |word: &str, finish: Option<&str>| {
        let choice = json!({"index": 0, "text": word, "finish_reason": finish});
        json!({"id": "c", "object": "text_completion", "choices": [choice]})
    };
    let counted = json!({"id": "c", "object": "text_completion", "choices": [], "usage": usage(ask, ask.tokens())});
    told(
        ask,
        &[],
        |_, last, word| chunk(word, last.then_some(why)),
        &[counted],
        DONE,
    )
}

/// llama.cpp's Responses: no numbers, no indexes; what it says at the start comes again.
pub(super) fn unnumbered(ask: &Ask) -> Script {
    let response = |status: &str| json!({"id": "r", "object": "response", "status": status});
    let start = |kind: &str| json!({"type": kind, "response": response("in_progress")});
    let starts = || [start("response.created"), start("response.in_progress")];
    let item = json!({"id": "i", "type": "message", "role": "assistant",
        "status": "in_progress", "content": []});
    let mut first = starts().to_vec();
    first.push(json!({"type": "response.output_item.added", "item": item}));
    first.push(
        json!({"type": "response.content_part.added", "item_id": "i",
        "part": {"type": "output_text", "text": ""}}),
    );
    first.extend(starts());
    let output = ask.tokens();
    let counts = json!({"input_tokens": ask.prompt_tokens, "output_tokens": output,
        "total_tokens": ask.prompt_tokens + output});
    let done = with(response("completed"), "usage", counts);
    told(
        ask,
        &first,
        |_, _, word| json!({"type": "response.output_text.delta", "item_id": "i", "delta": word}),
        &[json!({"type": "response.completed", "response": done})],
        b"",
    )
}

/// LiteLLM's Messages: a ping first of all, no input counted at the start, the true one at the end,
/// where the usage comes twice.
pub(super) fn late_counts(ask: &Ask) -> Script {
    let message = json!({"id": "m", "type": "message", "role": "assistant", "content": [],
        "usage": {"input_tokens": 0, "output_tokens": 0}});
    let block = json!({"type": "text", "text": ""});
    let why = if why(ask) == "length" {
        "max_tokens"
    } else {
        "end_turn"
    };
    let counts = json!({"input_tokens": ask.prompt_tokens, "output_tokens": ask.tokens()});
    let told_by = |usage: Value| {
        json!({"type": "message_delta", "delta": {"stop_reason": why},
        "usage": usage})
    };
    told(
        ask,
        &[
            json!({"type": "ping"}),
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
        ],
        |_, _, word| {
            let delta = json!({"type": "text_delta", "text": word});
            json!({"type": "content_block_delta", "index": 0, "delta": delta})
        },
        &[
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "an_event_of_tomorrow", "text": "not content"}),
            told_by(json!({"output_tokens": 1})),
            told_by(counts),
            json!({"type": "message_stop"}),
        ],
        b"",
    )
}

/// Gemini with a null finish reason and the counts so far on every object.
pub(super) fn running_counts(ask: &Ask) -> Script {
    let object = |word: &str, output: u64, finish: Option<&str>| {
        let content = json!({"role": "model", "parts": [{ "text": word }]});
        let counts = json!({"promptTokenCount": ask.prompt_tokens, "candidatesTokenCount": output,
            "totalTokenCount": ask.prompt_tokens + output});
        json!({"candidates": [{"index": 0, "content": content, "finishReason": finish}],
            "usageMetadata": counts})
    };
    let why = if why(ask) == "length" {
        "MAX_TOKENS"
    } else {
        "STOP"
    };
    let array = ask.dialect == crate::sim::dialect::Dialect::GeminiArray;
    told(
        ask,
        &[],
        |index, _, word| object(word, index + 1, None),
        &[object("", ask.tokens(), Some(why))],
        if array { b"]" } else { b"" },
    )
}
