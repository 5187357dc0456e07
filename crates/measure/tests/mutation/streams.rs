//! Owns valid streams of every API, as the events that a server would send.

use measure::api::Api;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// How a stream's events are put into bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Sse,
    Lines,
    Array,
}

/// A stream before it is bytes. `None` is the `[DONE]` that is no JSON.
#[derive(Debug, Clone)]
pub struct Stream {
    pub api: Api,
    pub form: Form,
    pub events: Vec<Option<Value>>,
}

const WORDS: [&str; 8] = ["so", "the ", "a\"b", "Grüße", "é", "end.\n", "😀", "word"];

/// A valid stream: some words, the end in one of the API's variants, counts that fit.
pub fn valid(api: Api, rng: &mut ChaCha8Rng) -> Stream {
    let words: Vec<&str> = (0..rng.random_range(3..10))
        .map(|_| WORDS[rng.random_range(0..WORDS.len())])
        .collect();
    let variant = rng.random_range(0..3);
    let (form, events) = match api {
        Api::OpenaiChat => (Form::Sse, chat(&words, variant)),
        Api::OpenaiCompletions => (Form::Sse, completions(&words)),
        Api::OpenaiResponses => (Form::Sse, responses(&words, variant)),
        Api::Anthropic => (Form::Sse, anthropic(&words)),
        Api::Gemini if variant == 0 => (Form::Array, gemini(&words)),
        Api::Gemini => (Form::Sse, gemini(&words)),
        Api::Ollama => (Form::Lines, ollama(&words, variant)),
        Api::Tgi => (Form::Sse, tgi(&words, variant)),
    };
    Stream { api, form, events }
}

fn usage(words: &[&str]) -> Value {
    let output = words.len();
    json!({"prompt_tokens": 9, "completion_tokens": output, "total_tokens": 9 + output})
}

/// Variant 1 reasons first, variant 2 gives two choices.
fn chat(words: &[&str], variant: u32) -> Vec<Option<Value>> {
    let chunk = |index: usize, delta: Value, finish: Value| {
        Some(
            json!({"id": "c", "choices": [{"index": index, "delta": delta, "finish_reason": finish}]}),
        )
    };
    let choices = if variant == 2 { 2 } else { 1 };
    let mut events = vec![chunk(
        0,
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    )];
    for (i, word) in words.iter().enumerate() {
        let name = match variant {
            1 if i == 0 => "reasoning_content",
            _ => "content",
        };
        events.push(chunk(i % choices, json!({ name: word }), Value::Null));
    }
    events.extend((0..choices).map(|i| chunk(i, json!({}), json!("stop"))));
    events.push(Some(
        json!({"id": "c", "choices": [], "usage": usage(words)}),
    ));
    events.push(None);
    events
}

fn completions(words: &[&str]) -> Vec<Option<Value>> {
    let chunk = |text: &str, finish: Value| {
        Some(json!({"choices": [{"index": 0, "text": text, "finish_reason": finish}]}))
    };
    let mut events: Vec<_> = words.iter().map(|word| chunk(word, Value::Null)).collect();
    events.push(chunk("", json!("length")));
    events.push(Some(json!({"choices": [], "usage": usage(words)})));
    events.push(None);
    events
}

/// Variant 2 has no numbers, as llama.cpp's.
fn responses(words: &[&str], variant: u32) -> Vec<Option<Value>> {
    let text = words.concat();
    let output = words.len();
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
    let mut events =
        vec![json!({"type": "response.created", "response": {"id": "r", "output": []}})];
    events.extend(
        words
            .iter()
            .map(|word| json!({"type": "response.output_text.delta", "delta": word})),
    );
    events.push(json!({"type": "response.output_text.done", "text": text}));
    events.push(
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed",
        "output": [message], "usage": {"input_tokens": 9, "output_tokens": output, "total_tokens": 9 + output}}}),
    );
    if variant != 2 {
        for (number, event) in events.iter_mut().enumerate() {
            event["sequence_number"] = json!(number);
        }
    }
    events.into_iter().map(Some).collect()
}

fn anthropic(words: &[&str]) -> Vec<Option<Value>> {
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
    ];
    events.extend(words.iter().map(|word| {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}})
    }));
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": words.len()}}),
        json!({"type": "message_stop"}),
    ]);
    events.into_iter().map(Some).collect()
}

fn gemini(words: &[&str]) -> Vec<Option<Value>> {
    let output = words.len();
    let counts = json!({"promptTokenCount": 9, "candidatesTokenCount": output, "totalTokenCount": 9 + output});
    let mut events: Vec<Value> = words
        .iter()
        .map(|word| json!({"candidates": [{"content": {"role": "model", "parts": [{"text": word}]}}]}))
        .collect();
    events.push(
        json!({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}],
        "usageMetadata": counts}),
    );
    events.into_iter().map(Some).collect()
}

/// Variant 1 is `/api/generate`.
fn ollama(words: &[&str], variant: u32) -> Vec<Option<Value>> {
    let line = |word: &str| match variant {
        1 => json!({"response": word, "done": false}),
        _ => json!({"message": {"role": "assistant", "content": word}, "done": false}),
    };
    let mut events: Vec<Value> = words.iter().map(|word| line(word)).collect();
    events.push(
        json!({"message": {"content": ""}, "done": true, "done_reason": "stop",
        "prompt_eval_count": 9, "eval_count": words.len(), "eval_duration": 5}),
    );
    events.into_iter().map(Some).collect()
}

/// Variant 2 has no numbers, as older versions.
fn tgi(words: &[&str], variant: u32) -> Vec<Option<Value>> {
    let token = |word: &str| json!({"token": {"text": word, "special": false}, "details": null});
    let mut events: Vec<Value> = words.iter().map(|word| token(word)).collect();
    events.push(json!({"token": {"text": "</s>", "special": true}, "generated_text": words.concat(),
        "details": {"finish_reason": "length", "generated_tokens": words.len(), "input_length": 9}}));
    if variant != 2 {
        for (place, event) in events.iter_mut().enumerate() {
            event["index"] = json!(place + 1);
        }
    }
    events.into_iter().map(Some).collect()
}

impl Stream {
    /// The body.
    pub fn bytes(&self) -> Vec<u8> {
        let text = |event: &Option<Value>| match event {
            Some(value) => value.to_string(),
            None => "[DONE]".to_owned(),
        };
        let texts: Vec<String> = self.events.iter().map(text).collect();
        match self.form {
            Form::Sse => texts
                .iter()
                .map(|text| format!("data: {text}\n\n"))
                .collect::<String>(),
            Form::Lines => texts
                .iter()
                .map(|text| format!("{text}\n"))
                .collect::<String>(),
            Form::Array => format!("[{}]", texts.join("\n,\n")),
        }
        .into_bytes()
    }

    /// The content type that goes with it.
    pub fn content_type(&self) -> &'static str {
        match self.form {
            Form::Sse => "text/event-stream",
            Form::Lines => "application/x-ndjson",
            Form::Array => "application/json",
        }
    }
}
