//! Owns Ollama's `/api/chat` and `/api/generate` as the server speaks them.

use serde_json::{Value, json};

use super::whole::Said;
use super::{CREATED_TEXT, Close, Kind, Reason, TOOL, Tool, Voice, frame};
use crate::sim::ask::Ask;
use crate::sim::dialect::Dialect;

/// How long the model took to load, as declared: 1 ms.
const LOAD_NANOS: u64 = 1_000_000;

/// Writes one JSON object a line. Calls come whole.
pub struct Ollama {
    chat: bool,
    /// Each object's JSON up to its text.
    open: Vec<u8>,
    arguments: String,
}

impl Ollama {
    /// A writer for the answer to `ask`.
    pub fn new(ask: &Ask) -> Self {
        let model = json!(ask.model);
        Ollama {
            chat: ask.dialect == Dialect::OllamaChat,
            open: format!("{{\"model\":{model},\"created_at\":\"{CREATED_TEXT}\",").into_bytes(),
            arguments: String::new(),
        }
    }

    fn line(&self, out: &mut Vec<u8>, parts: &[&[u8]]) {
        out.extend_from_slice(&self.open);
        frame::parts(out, parts);
        out.extend_from_slice(b"}\n");
    }
}

impl Voice for Ollama {
    fn open(&mut self, _: &mut Vec<u8>) {}

    fn text(&mut self, out: &mut Vec<u8>, kind: Kind, escaped: &[u8]) {
        let thinks = matches!(kind, Kind::Reasoning | Kind::Summary);
        let (open, close): (&[u8], &[u8]) = match (self.chat, thinks) {
            (true, false) => (
                b"\"message\":{\"role\":\"assistant\",\"content\":\"",
                b"\"},\"done\":false",
            ),
            (true, true) => (
                b"\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"",
                b"\"},\"done\":false",
            ),
            (false, false) => (b"\"response\":\"", b"\",\"done\":false"),
            (false, true) => (b"\"response\":\"\",\"thinking\":\"", b"\",\"done\":false"),
        };
        self.line(out, &[open, escaped, close]);
    }

    fn tool(&mut self, out: &mut Vec<u8>, part: Tool<'_>) {
        match part {
            Tool::Begin => self.arguments.clear(),
            Tool::Arguments(piece) => self.arguments.push_str(piece),
            Tool::End => {
                let arguments = std::mem::take(&mut self.arguments);
                let call = format!(
                    "\"message\":{{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":\
                     [{{\"function\":{{\"name\":\"{TOOL}\",\"arguments\":{arguments}}}}}]}},\
                     \"done\":false"
                );
                self.line(out, &[call.as_bytes()]);
            }
        }
    }

    fn close(&mut self, out: &mut Vec<u8>, close: &Close) {
        let text = if self.chat {
            "\"message\":{\"role\":\"assistant\",\"content\":\"\"}"
        } else {
            "\"response\":\"\""
        };
        // The members of the counts, without their braces.
        let told = Value::Object(told(close)).to_string();
        let told = &told[1..told.len() - 1];
        self.line(out, &[text.as_bytes(), b",", told.as_bytes()]);
    }

    fn done(&mut self, _: &mut Vec<u8>) {}

    fn error(&mut self, out: &mut Vec<u8>, message: &str) {
        let error = json!({ "error": message }).to_string();
        self.event(out, "", error.as_bytes());
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\n");
    }

    fn event(&mut self, out: &mut Vec<u8>, _: &str, json: &[u8]) {
        frame::parts(out, &[json, b"\n"]);
    }
}

/// What the last line says of the answer: reason, counts and durations.
fn told(close: &Close) -> serde_json::Map<String, Value> {
    let mut told = serde_json::Map::new();
    told.insert("done".to_owned(), json!(true));
    told.insert("done_reason".to_owned(), json!(reason(close.reason)));
    let Some(counts) = close.usage else {
        return told;
    };
    let (first, at) = (close.first.nanos(), close.at.nanos());
    for (name, number) in [
        ("total_duration", at),
        ("load_duration", LOAD_NANOS.min(first)),
        ("prompt_eval_count", counts.prompt),
        ("prompt_eval_duration", first.saturating_sub(LOAD_NANOS)),
        ("eval_count", counts.completion),
        ("eval_duration", at.saturating_sub(first)),
    ] {
        // As Ollama does: what is zero is left out.
        if number > 0 {
            told.insert(name.to_owned(), json!(number));
        }
    }
    told
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Stop | Reason::Tool => "stop",
        Reason::Length => "length",
        Reason::Filter => "content_filter",
        Reason::Error => "error",
    }
}

/// The answer as one object.
pub fn whole(ask: &Ask, said: &Said) -> Value {
    let mut body = json!({"model": ask.model, "created_at": CREATED_TEXT});
    if ask.dialect == Dialect::OllamaGenerate {
        body["response"] = json!(said.answer());
        if let Some(thinking) = said.reasoning() {
            body["thinking"] = json!(thinking);
        }
    } else {
        let mut message = json!({"role": "assistant", "content": said.answer()});
        if let Some(thinking) = said.reasoning() {
            message["thinking"] = json!(thinking);
        }
        if let Some(arguments) = said.call() {
            message["tool_calls"] = json!([{"function": {"name": TOOL, "arguments": arguments}}]);
        }
        body["message"] = message;
    }
    match said.close {
        Some(close) => {
            for (name, value) in told(&close) {
                body[name.as_str()] = value;
            }
        }
        None => body["done"] = json!(true),
    }
    body
}
