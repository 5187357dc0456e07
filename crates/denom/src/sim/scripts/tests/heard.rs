//! Owns a small reader of every API, which shares nothing with the voices: what a script says, and
//! whether it says it in the API's order.

use serde_json::Value;

use crate::sim::dialect::Dialect;

/// What was heard. Texts as text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pub answer: String,
    pub reasoning: String,
    pub refusal: String,
    /// Names of tools called, and the JSON text of all arguments.
    pub tools: Vec<String>,
    pub arguments: String,
    pub finish: Option<String>,
    /// Prompt, output and reasoning tokens as stated.
    pub usage: Option<(u64, u64, u64)>,
    pub errors: u64,
    pub pings: u64,
    /// Whether the sentinel came, where there is one.
    pub done: bool,
}

/// Reads a whole body. Panics where it breaks a rule of the API.
pub fn hear(dialect: Dialect, body: &str) -> Heard {
    let mut heard = Heard::default();
    match dialect {
        Dialect::OpenaiChat => sse(body, &mut heard, chat),
        Dialect::OpenaiCompletions => sse(body, &mut heard, completion),
        Dialect::OpenaiResponses => responses(body, &mut heard),
        Dialect::AnthropicMessages => messages(body, &mut heard),
        Dialect::GeminiSse => sse(body, &mut heard, gemini),
        Dialect::GeminiArray => {
            let all: Vec<Value> = serde_json::from_str(body).expect("the body is one array");
            all.iter().for_each(|object| gemini(&mut heard, object));
            heard.done = true;
        }
        Dialect::OllamaChat | Dialect::OllamaGenerate => {
            for line in body.lines() {
                if line.is_empty() {
                    heard.pings += 1;
                    continue;
                }
                assert_eq!(heard.finish, None, "nothing follows the last line");
                let object = serde_json::from_str(line).expect("a line is one object");
                ollama(&mut heard, &object, dialect);
            }
        }
        Dialect::Tgi => sse(body, &mut heard, tgi),
    }
    heard
}

/// Type and data of every event.
fn events(body: &str, heard: &mut Heard) -> Vec<(Option<String>, String)> {
    assert!(
        body.is_empty() || body.ends_with("\n\n"),
        "the last event is closed"
    );
    let mut events = Vec::new();
    for event in body.split_terminator("\n\n") {
        if event.starts_with(':') {
            heard.pings += 1;
            continue;
        }
        let (mut kind, mut data) = (None, None);
        for line in event.lines() {
            if let Some(value) = line.strip_prefix("event: ") {
                kind = Some(value.to_owned());
            } else {
                let value = line.strip_prefix("data:").expect("a line is a field");
                data = Some(value.strip_prefix(' ').unwrap_or(value).to_owned());
            }
        }
        events.push((kind, data.expect("an event has data")));
    }
    events
}

fn sse(body: &str, heard: &mut Heard, read: fn(&mut Heard, &Value)) {
    for (kind, data) in events(body, heard) {
        assert_eq!(kind, None, "the event has no type");
        assert!(!heard.done, "nothing follows the sentinel");
        if data == "[DONE]" {
            heard.done = true;
            continue;
        }
        let object: Value = serde_json::from_str(&data).expect("data is JSON");
        if object.get("error").is_some() {
            heard.errors += 1;
            continue;
        }
        read(heard, &object);
    }
}

fn push(text: &mut String, value: &Value) {
    text.push_str(value.as_str().unwrap_or_default());
}

fn openai_usage(heard: &mut Heard, chunk: &Value) {
    let usage = &chunk["usage"];
    if usage.is_object() {
        let count = |name: &str| usage[name].as_u64().expect(name);
        let reasoning = usage["completion_tokens_details"]["reasoning_tokens"].as_u64();
        let (prompt, output) = (count("prompt_tokens"), count("completion_tokens"));
        assert_eq!(count("total_tokens"), prompt + output);
        heard.usage = Some((prompt, output, reasoning.unwrap_or(0)));
    }
}

fn chat(heard: &mut Heard, chunk: &Value) {
    assert_eq!(chunk["object"], "chat.completion.chunk");
    openai_usage(heard, chunk);
    let choice = &chunk["choices"][0];
    let delta = &choice["delta"];
    push(&mut heard.answer, &delta["content"]);
    push(&mut heard.reasoning, &delta["reasoning_content"]);
    push(&mut heard.refusal, &delta["refusal"]);
    let function = &delta["tool_calls"][0]["function"];
    if let Some(name) = function["name"].as_str() {
        heard.tools.push(name.to_owned());
    }
    push(&mut heard.arguments, &function["arguments"]);
    if let Some(reason) = choice["finish_reason"].as_str() {
        assert_eq!(heard.finish.replace(reason.to_owned()), None);
    }
}

fn completion(heard: &mut Heard, chunk: &Value) {
    assert_eq!(chunk["object"], "text_completion");
    openai_usage(heard, chunk);
    push(&mut heard.answer, &chunk["choices"][0]["text"]);
    if let Some(reason) = chunk["choices"][0]["finish_reason"].as_str() {
        assert_eq!(heard.finish.replace(reason.to_owned()), None);
    }
}

/// Numbers from 0 by 1; an item is added, then its part, then deltas whose text the end repeats.
fn responses(body: &str, heard: &mut Heard) {
    let (mut open, mut text, mut complete) = (None::<u64>, String::new(), 0);
    for (number, (kind, data)) in (0_u64..).zip(events(body, heard)) {
        let event: Value = serde_json::from_str(&data).expect("data is JSON");
        let kind = kind.expect("every event is typed");
        assert_eq!(event["type"], kind.as_str());
        assert_eq!(event["sequence_number"], number);
        assert_eq!(heard.finish, None, "nothing follows the end");
        match kind.as_str() {
            "response.created" => assert_eq!(number, 0),
            "response.in_progress" => assert_eq!(number, 1),
            "response.output_item.added" => {
                assert_eq!(open.replace(complete), None, "items follow each other");
                assert_eq!(event["output_index"], complete);
                if event["item"]["type"] == "function_call" {
                    let name = event["item"]["name"].as_str();
                    heard.tools.push(name.unwrap_or_default().to_owned());
                }
            }
            "response.content_part.added" | "response.reasoning_summary_part.added" => {
                assert!(open.is_some() && text.is_empty());
            }
            "response.output_item.done" => {
                assert_eq!(open.take(), Some(complete));
                assert_eq!(event["item"]["status"], "completed");
                complete += 1;
                text.clear();
            }
            "response.content_part.done" | "response.reasoning_summary_part.done" => {}
            "error" => heard.errors += 1,
            "response.completed" | "response.incomplete" | "response.failed" => {
                assert_eq!(open, None);
                let response = &event["response"];
                assert_eq!(
                    response["output"].as_array().map(Vec::len),
                    Some(complete as usize)
                );
                response_usage(heard, &response["usage"]);
                heard.errors += u64::from(kind == "response.failed");
                heard.finish = Some(kind);
            }
            delta if delta.ends_with(".delta") => {
                assert_eq!(open, Some(complete));
                push(&mut text, &event["delta"]);
                let kept = match delta {
                    "response.output_text.delta" => &mut heard.answer,
                    "response.refusal.delta" => &mut heard.refusal,
                    "response.function_call_arguments.delta" => &mut heard.arguments,
                    _ => &mut heard.reasoning,
                };
                push(kept, &event["delta"]);
            }
            done => {
                assert!(done.ends_with(".done"), "{done}");
                let members = ["text", "refusal", "arguments"];
                let told = members.iter().find_map(|name| event[*name].as_str());
                assert_eq!(told, Some(text.as_str()), "the end repeats the deltas");
            }
        }
    }
}

fn response_usage(heard: &mut Heard, usage: &Value) {
    if usage.is_object() {
        let count = |name: &str| usage[name].as_u64().expect(name);
        let reasoning = usage["output_tokens_details"]["reasoning_tokens"].as_u64();
        let (input, output) = (count("input_tokens"), count("output_tokens"));
        assert_eq!(count("total_tokens"), input + output);
        heard.usage = Some((input, output, reasoning.expect("it is always told")));
    }
}

/// One message starts; blocks are numbered from 0, follow each other, and take deltas of their kind.
fn messages(body: &str, heard: &mut Heard) {
    let (mut open, mut blocks) = (None::<String>, 0);
    let mut prompt = None;
    for (kind, data) in events(body, heard) {
        let event: Value = serde_json::from_str(&data).expect("data is JSON");
        let kind = kind.expect("every event is typed");
        assert_eq!(event["type"], kind.as_str());
        assert!(!heard.done, "nothing follows the end");
        match kind.as_str() {
            "message_start" => {
                assert_eq!((prompt, blocks, &open), (None, 0, &None));
                prompt = event["message"]["usage"]["input_tokens"].as_u64();
            }
            "ping" => heard.pings += 1,
            "error" => heard.errors += 1,
            "content_block_start" => {
                assert_eq!((&open, event["index"].as_u64()), (&None, Some(blocks)));
                let block = &event["content_block"];
                open = block["type"].as_str().map(str::to_owned);
                if let Some(name) = block["name"].as_str() {
                    heard.tools.push(name.to_owned());
                }
            }
            "content_block_stop" => {
                assert!(open.take().is_some());
                blocks += 1;
            }
            "content_block_delta" => block_delta(heard, open.as_deref(), &event["delta"]),
            "message_delta" => {
                assert_eq!(open, None);
                heard.finish = event["delta"]["stop_reason"].as_str().map(str::to_owned);
                let usage = &event["usage"];
                let thinking = usage["output_tokens_details"]["thinking_tokens"].as_u64();
                let output = usage["output_tokens"].as_u64();
                prompt = usage["input_tokens"].as_u64().or(prompt);
                heard.usage = prompt
                    .zip(output)
                    .map(|(p, o)| (p, o, thinking.unwrap_or(0)));
            }
            "message_stop" => {
                assert!(heard.finish.is_some());
                heard.done = true;
            }
            // What is not known is to be passed over.
            "an_event_of_tomorrow" => {}
            other => panic!("{other} is no event of this API"),
        }
    }
}

fn block_delta(heard: &mut Heard, open: Option<&str>, delta: &Value) {
    let kind = delta["type"].as_str().expect("a delta is typed");
    match (open.expect("a block is open"), kind) {
        ("text", "text_delta") => push(&mut heard.answer, &delta["text"]),
        ("thinking", "thinking_delta") => push(&mut heard.reasoning, &delta["thinking"]),
        ("thinking", "signature_delta") => assert!(delta["signature"].is_string()),
        ("tool_use", "input_json_delta") => push(&mut heard.arguments, &delta["partial_json"]),
        other => panic!("{other:?} do not go together"),
    }
}

fn gemini(heard: &mut Heard, object: &Value) {
    if object.get("error").is_some() {
        heard.errors += 1;
        return;
    }
    let candidate = &object["candidates"][0];
    for part in candidate["content"]["parts"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let kept = if part["thought"] == true {
            &mut heard.reasoning
        } else {
            &mut heard.answer
        };
        push(kept, &part["text"]);
        if let Some(name) = part["functionCall"]["name"].as_str() {
            heard.tools.push(name.to_owned());
            heard.arguments += &part["functionCall"]["args"].to_string();
        }
    }
    if let Some(reason) = candidate["finishReason"].as_str() {
        assert_eq!(heard.finish.replace(reason.to_owned()), None);
    }
    let usage = &object["usageMetadata"];
    if usage.is_object() {
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        let thoughts = count("thoughtsTokenCount");
        let output = count("candidatesTokenCount") + thoughts;
        assert_eq!(count("totalTokenCount"), count("promptTokenCount") + output);
        heard.usage = Some((count("promptTokenCount"), output, thoughts));
    }
}

fn ollama(heard: &mut Heard, line: &Value, dialect: Dialect) {
    if line.get("error").is_some() {
        heard.errors += 1;
        return;
    }
    let (text, thinking) = if dialect == Dialect::OllamaChat {
        assert_eq!(line["message"]["role"], "assistant");
        (&line["message"]["content"], &line["message"]["thinking"])
    } else {
        (&line["response"], &line["thinking"])
    };
    push(&mut heard.answer, text);
    push(&mut heard.reasoning, thinking);
    let call = &line["message"]["tool_calls"][0]["function"];
    if let Some(name) = call["name"].as_str() {
        heard.tools.push(name.to_owned());
        heard.arguments += &call["arguments"].to_string();
    }
    if line["done"] == true {
        heard.finish = Some(line["done_reason"].as_str().unwrap_or("none").to_owned());
        heard.done = true;
        let count = |name: &str| line[name].as_u64();
        let counts = count("prompt_eval_count").zip(count("eval_count"));
        heard.usage = counts.map(|(prompt, output)| (prompt, output, 0));
    }
}

fn tgi(heard: &mut Heard, event: &Value) {
    assert_eq!(heard.finish, None, "nothing follows the end");
    let token = &event["token"];
    if token["special"] == false {
        push(&mut heard.answer, &token["text"]);
    }
    let details = &event["details"];
    assert_eq!(details.is_null(), event["generated_text"].is_null());
    if details.is_object() {
        assert_eq!(event["generated_text"], heard.answer.as_str());
        heard.finish = details["finish_reason"].as_str().map(str::to_owned);
        let count = |name: &str| details[name].as_u64();
        let counts = count("input_length").zip(count("generated_tokens"));
        heard.usage = counts.map(|(prompt, output)| (prompt, output, 0));
    }
}
