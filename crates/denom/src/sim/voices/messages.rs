//! Owns Anthropic Messages as the server speaks them.

use serde_json::{Value, json};

use super::whole::Said;
use super::{Close, Kind, Reason, TOOL, Tool, Usage, Voice, escaped, frame};
use crate::sim::ask::Ask;

/// What a content block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Thinking,
    Tool,
}

/// Writes the events of one message, whose blocks follow each other.
pub struct Messages {
    id: String,
    model: String,
    prompt: u64,
    /// The block that is open.
    block: Option<Block>,
    /// Blocks begun so far.
    blocks: u64,
    /// Whether a summary of thinking was sent, so that the thinking itself was not.
    summary: bool,
}

impl Messages {
    /// A writer for the answer to `ask`.
    pub fn new(ask: &Ask) -> Self {
        Messages {
            id: id(ask),
            model: ask.model.clone(),
            prompt: ask.prompt_tokens,
            block: None,
            blocks: 0,
            summary: false,
        }
    }

    fn enter(&mut self, out: &mut Vec<u8>, block: Block) {
        if self.block == Some(block) {
            return;
        }
        self.leave(out);
        let content = match block {
            Block::Text => json!({"type": "text", "text": ""}),
            Block::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Block::Tool => {
                json!({"type": "tool_use", "id": "toolu_sim", "name": TOOL, "input": {}})
            }
        };
        let index = self.blocks;
        let event =
            json!({"type": "content_block_start", "index": index, "content_block": content});
        named(out, &event);
        if index == 0 {
            self.ping(out);
        }
        self.block = Some(block);
        self.blocks += 1;
    }

    fn leave(&mut self, out: &mut Vec<u8>) {
        let Some(block) = self.block.take() else {
            return;
        };
        if block == Block::Thinking {
            self.delta(out, "signature_delta", "signature", b"c2lt");
        }
        let index = self.blocks - 1;
        named(out, &json!({"type": "content_block_stop", "index": index}));
    }

    fn delta(&self, out: &mut Vec<u8>, kind: &str, key: &str, escaped: &[u8]) {
        let index = self.blocks.saturating_sub(1);
        let open = format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\
             \"index\":{index},\"delta\":{{\"type\":\"{kind}\",\"{key}\":\""
        );
        frame::parts(out, &[open.as_bytes(), escaped, b"\"}}\n\n"]);
    }
}

impl Voice for Messages {
    fn open(&mut self, out: &mut Vec<u8>) {
        let message = json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model,
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": self.prompt, "output_tokens": 1}
        });
        named(out, &json!({"type": "message_start", "message": message}));
    }

    fn text(&mut self, out: &mut Vec<u8>, kind: Kind, escaped: &[u8]) {
        self.summary |= kind == Kind::Summary;
        match kind {
            Kind::Answer | Kind::Refusal => {
                self.enter(out, Block::Text);
                self.delta(out, "text_delta", "text", escaped);
            }
            Kind::Reasoning | Kind::Summary => {
                self.enter(out, Block::Thinking);
                self.delta(out, "thinking_delta", "thinking", escaped);
            }
        }
    }

    fn tool(&mut self, out: &mut Vec<u8>, part: Tool<'_>) {
        match part {
            Tool::Begin => self.enter(out, Block::Tool),
            Tool::Arguments(piece) => {
                self.delta(out, "input_json_delta", "partial_json", &escaped(piece));
            }
            Tool::End => self.leave(out),
        }
    }

    fn close(&mut self, out: &mut Vec<u8>, close: &Close) {
        self.leave(out);
        let mut event = json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason(close.reason), "stop_sequence": null},
        });
        if let Some(counts) = close.usage {
            // Thinking that streams as itself is not told apart; what is summed up or hidden is.
            let told = self.summary || self.blocks <= 1;
            event["usage"] = usage(counts, told);
        }
        named(out, &event);
    }

    fn done(&mut self, out: &mut Vec<u8>) {
        named(out, &json!({"type": "message_stop"}));
    }

    fn error(&mut self, out: &mut Vec<u8>, message: &str) {
        let error = json!({"type": "overloaded_error", "message": message});
        named(out, &json!({"type": "error", "error": error}));
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        named(out, &json!({"type": "ping"}));
    }

    fn event(&mut self, out: &mut Vec<u8>, kind: &str, json: &[u8]) {
        frame::named(out, kind, json);
    }
}

/// An event is named as its JSON says.
fn named(out: &mut Vec<u8>, event: &Value) {
    let kind = event["type"].as_str().unwrap_or_default();
    frame::named(out, kind, event.to_string().as_bytes());
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Stop => "end_turn",
        Reason::Length => "max_tokens",
        Reason::Tool => "tool_use",
        Reason::Filter => "refusal",
        Reason::Error => "error",
    }
}

fn usage(counts: Usage, told: bool) -> Value {
    let mut usage = json!({
        "input_tokens": counts.prompt, "output_tokens": counts.completion,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0
    });
    if told && counts.reasoning > 0 {
        usage["output_tokens_details"] = json!({"thinking_tokens": counts.reasoning});
    }
    usage
}

/// The answer as one `message` object.
pub fn whole(ask: &Ask, said: &Said) -> Value {
    let mut content = Vec::new();
    if let Some(thinking) = said.reasoning() {
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": "c2lt"}));
    }
    if !said.answer.is_empty() {
        content.push(json!({"type": "text", "text": said.answer()}));
    }
    if let Some(input) = said.call() {
        content.push(json!({"type": "tool_use", "id": "toolu_sim", "name": TOOL, "input": input}));
    }
    let mut body = json!({
        "id": id(ask), "type": "message", "role": "assistant", "model": ask.model,
        "content": content, "stop_reason": reason(said.reason()), "stop_sequence": null,
    });
    if let Some(counts) = said.usage() {
        body["usage"] = usage(counts, said.reasoning.is_empty());
    }
    body
}

fn id(ask: &Ask) -> String {
    format!("msg_sim_{}", ask.serial)
}
