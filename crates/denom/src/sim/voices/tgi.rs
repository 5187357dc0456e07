//! Owns Text Generation Inference's `/generate_stream` as the server speaks it.

use serde_json::{Value, json};

use super::whole::{Said, unescaped};
use super::{Close, Kind, Reason, Tool, Usage, Voice, frame};
use crate::sim::ask::Ask;

/// Writes one event a token, without a space behind the colon. The last event carries a special
/// token, which is counted and is no output.
pub struct Tgi {
    prompt: u64,
    index: u64,
    text: Vec<u8>,
}

impl Tgi {
    /// A writer for the answer to `ask`.
    pub fn new(ask: &Ask) -> Self {
        Tgi {
            prompt: ask.prompt_tokens,
            index: 0,
            text: Vec::new(),
        }
    }

    fn data(out: &mut Vec<u8>, parts: &[&[u8]]) {
        out.extend_from_slice(b"data:");
        frame::parts(out, parts);
        out.extend_from_slice(b"\n\n");
    }
}

impl Voice for Tgi {
    fn open(&mut self, _: &mut Vec<u8>) {}

    fn text(&mut self, out: &mut Vec<u8>, _: Kind, escaped: &[u8]) {
        self.index += 1;
        self.text.extend_from_slice(escaped);
        let (index, id) = (self.index, self.index + 2);
        let open = format!("{{\"index\":{index},\"token\":{{\"id\":{id},\"text\":\"");
        let close: &[u8] =
            b"\",\"logprob\":-0.1,\"special\":false},\"generated_text\":null,\"details\":null}";
        Self::data(out, &[open.as_bytes(), escaped, close]);
    }

    fn tool(&mut self, _: &mut Vec<u8>, _: Tool<'_>) {}

    fn close(&mut self, out: &mut Vec<u8>, close: &Close) {
        let text = std::mem::take(&mut self.text);
        let event = json!({
            "index": self.index + 1,
            "token": {"id": 2, "text": "</s>", "logprob": 0.0, "special": true},
            "generated_text": unescaped(&text),
            "details": details(close.reason, close.usage, self.prompt),
        });
        Self::data(out, &[event.to_string().as_bytes()]);
    }

    fn done(&mut self, _: &mut Vec<u8>) {}

    fn error(&mut self, out: &mut Vec<u8>, message: &str) {
        let error = json!({"error": message, "error_type": "incomplete_generation"});
        Self::data(out, &[error.to_string().as_bytes()]);
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b":\n\n");
    }

    fn event(&mut self, out: &mut Vec<u8>, _: &str, json: &[u8]) {
        Self::data(out, &[json]);
    }
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Stop => "eos_token",
        Reason::Length => "length",
        Reason::Tool | Reason::Filter => "stop_sequence",
        Reason::Error => "error",
    }
}

/// A stop token is counted, though it is special; at the limit there is none.
fn details(why: Reason, usage: Option<Usage>, prompt: u64) -> Value {
    let mut details = json!({"finish_reason": reason(why), "seed": null});
    if let Some(counts) = usage {
        let stop = u64::from(why == Reason::Stop);
        details["generated_tokens"] = json!(counts.completion + stop);
        details["input_length"] = json!(prompt);
    }
    details
}

/// The answer as one object.
pub fn whole(said: &Said) -> Value {
    let usage = said.usage();
    let prompt = usage.map_or(0, |counts| counts.prompt);
    json!({
        "generated_text": said.answer(),
        "details": details(said.reason(), usage, prompt),
    })
}
