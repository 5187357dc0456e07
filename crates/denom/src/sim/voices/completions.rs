//! Owns OpenAI's older completions as the server speaks them.

use serde_json::{Value, json};

use super::whole::Said;
use super::{CREATED, Close, Kind, Tool, Voice, chat, frame};
use crate::sim::ask::Ask;

/// Writes `text_completion` events. There is no role, so that the first event is content, and no
/// reasoning and no tool call.
pub struct Completions {
    open: Vec<u8>,
    include_usage: bool,
}

impl Completions {
    /// A writer for the answer to `ask`.
    pub fn new(ask: &Ask) -> Self {
        let (id, model) = (id(ask), json!(ask.model));
        let open = format!(
            "data: {{\"id\":\"{id}\",\"object\":\"text_completion\",\
             \"created\":{CREATED},\"model\":{model},\"choices\":["
        );
        Completions {
            open: open.into_bytes(),
            include_usage: ask.include_usage,
        }
    }

    fn chunk(&self, out: &mut Vec<u8>, escaped: &[u8], finish: &[u8]) {
        let open: &[u8] = b"{\"index\":0,\"text\":\"";
        let middle: &[u8] = b"\",\"logprobs\":null,\"finish_reason\":";
        let close: &[u8] = if self.include_usage {
            b"}],\"usage\":null}\n\n"
        } else {
            b"}]}\n\n"
        };
        frame::parts(out, &[&self.open, open, escaped, middle, finish, close]);
    }
}

impl Voice for Completions {
    fn open(&mut self, _: &mut Vec<u8>) {}

    fn text(&mut self, out: &mut Vec<u8>, _: Kind, escaped: &[u8]) {
        self.chunk(out, escaped, b"null");
    }

    fn tool(&mut self, _: &mut Vec<u8>, _: Tool<'_>) {}

    fn close(&mut self, out: &mut Vec<u8>, close: &Close) {
        let reason = json!(chat::reason(close.reason)).to_string();
        self.chunk(out, b"", reason.as_bytes());
        if let (true, Some(counts)) = (self.include_usage, close.usage) {
            let counts = chat::usage(counts).to_string();
            frame::parts(
                out,
                &[&self.open, b"],\"usage\":", counts.as_bytes(), b"}\n\n"],
            );
        }
    }

    fn done(&mut self, out: &mut Vec<u8>) {
        frame::data(out, b"[DONE]");
    }

    fn error(&mut self, out: &mut Vec<u8>, message: &str) {
        frame::data(out, chat::error(message).to_string().as_bytes());
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        frame::comment(out);
    }

    fn event(&mut self, out: &mut Vec<u8>, _: &str, json: &[u8]) {
        frame::data(out, json);
    }
}

/// The answer as one `text_completion` object.
pub fn whole(ask: &Ask, said: &Said) -> Value {
    let mut body = json!({
        "id": id(ask), "object": "text_completion", "created": CREATED, "model": ask.model,
        "choices": [{
            "index": 0, "text": said.answer(), "logprobs": null,
            "finish_reason": chat::reason(said.reason())
        }],
    });
    if let Some(counts) = said.usage() {
        body["usage"] = chat::usage(counts);
    }
    body
}

fn id(ask: &Ask) -> String {
    format!("cmpl-sim-{}", ask.serial)
}
