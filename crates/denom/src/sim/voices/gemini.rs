//! Owns Gemini's `streamGenerateContent` as the server speaks it, as events and as one array.

use serde_json::{Value, json};

use super::whole::Said;
use super::{Close, Kind, Reason, TOOL, Tool, Usage, Voice, frame};
use crate::sim::ask::Ask;
use crate::sim::dialect::Dialect;

/// Writes `GenerateContentResponse` objects. Calls come whole, and usage only with the last one.
pub struct Gemini {
    /// Each object's JSON behind its candidates.
    close: Vec<u8>,
    /// Whether the objects are elements of an array; then, whether there was one already.
    array: bool,
    begun: bool,
    arguments: String,
}

impl Gemini {
    /// A writer for the answer to `ask`.
    pub fn new(ask: &Ask) -> Self {
        let (id, model) = (id(ask), json!(ask.model));
        let close = format!(",\"modelVersion\":{model},\"responseId\":\"{id}\"}}");
        Gemini {
            close: close.into_bytes(),
            array: ask.dialect == Dialect::GeminiArray,
            begun: false,
            arguments: String::new(),
        }
    }

    fn object(&mut self, out: &mut Vec<u8>, parts: &[&[u8]]) {
        let (open, end): (&[u8], &[u8]) = match (self.array, self.begun) {
            (false, _) => (b"data: ", b"\n\n"),
            (true, false) => (b"[", b"\n"),
            (true, true) => (b",\n", b"\n"),
        };
        self.begun = true;
        out.extend_from_slice(open);
        frame::parts(out, parts);
        out.extend_from_slice(end);
    }

    fn candidate(&mut self, out: &mut Vec<u8>, part: &[&[u8]], behind: &[u8]) {
        let open: &[u8] = b"{\"candidates\":[{\"content\":{\"parts\":[";
        let middle: &[u8] = b"],\"role\":\"model\"}";
        let close = std::mem::take(&mut self.close);
        let parts = [&[open], part, &[middle, behind, close.as_slice()]].concat();
        self.object(out, &parts);
        self.close = close;
    }
}

impl Voice for Gemini {
    fn open(&mut self, _: &mut Vec<u8>) {}

    fn text(&mut self, out: &mut Vec<u8>, kind: Kind, escaped: &[u8]) {
        let end: &[u8] = match kind {
            Kind::Answer | Kind::Refusal => b"\"}",
            Kind::Reasoning | Kind::Summary => b"\",\"thought\":true}",
        };
        self.candidate(out, &[b"{\"text\":\"", escaped, end], b",\"index\":0}]");
    }

    fn tool(&mut self, out: &mut Vec<u8>, part: Tool<'_>) {
        match part {
            Tool::Begin => self.arguments.clear(),
            Tool::Arguments(piece) => self.arguments.push_str(piece),
            Tool::End => {
                let arguments = std::mem::take(&mut self.arguments);
                let call =
                    format!("{{\"functionCall\":{{\"name\":\"{TOOL}\",\"args\":{arguments}}}}}");
                self.candidate(out, &[call.as_bytes()], b",\"index\":0}]");
            }
        }
    }

    fn close(&mut self, out: &mut Vec<u8>, close: &Close) {
        let reason = reason(close.reason);
        let mut behind = format!(",\"finishReason\":\"{reason}\",\"index\":0}}]");
        if let Some(counts) = close.usage {
            behind += &format!(",\"usageMetadata\":{}", usage(counts));
        }
        self.candidate(out, &[b"{\"text\":\"\"}"], behind.as_bytes());
    }

    fn done(&mut self, out: &mut Vec<u8>) {
        match (self.array, self.begun) {
            (false, _) => {}
            (true, true) => out.extend_from_slice(b"]"),
            (true, false) => out.extend_from_slice(b"[]"),
        }
    }

    fn error(&mut self, out: &mut Vec<u8>, message: &str) {
        let error = error(503, message).to_string();
        self.object(out, &[error.as_bytes()]);
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        if self.array {
            out.extend_from_slice(b"\n");
        } else {
            frame::comment(out);
        }
    }

    fn event(&mut self, out: &mut Vec<u8>, _: &str, json: &[u8]) {
        self.object(out, &[json]);
    }
}

/// The error object, also of a refusal by status.
pub fn error(status: u16, message: &str) -> Value {
    let name = match status {
        400 | 422 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": name}})
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Stop | Reason::Tool => "STOP",
        Reason::Length => "MAX_TOKENS",
        Reason::Filter => "SAFETY",
        Reason::Error => "OTHER",
    }
}

fn usage(counts: Usage) -> Value {
    let mut usage = json!({
        "promptTokenCount": counts.prompt,
        "candidatesTokenCount": counts.completion.saturating_sub(counts.reasoning),
        "totalTokenCount": counts.total,
    });
    if counts.reasoning > 0 {
        usage["thoughtsTokenCount"] = json!(counts.reasoning);
    }
    usage
}

/// The answer as one `GenerateContentResponse`.
pub fn whole(ask: &Ask, said: &Said) -> Value {
    let mut parts = Vec::new();
    if let Some(thought) = said.reasoning() {
        parts.push(json!({"text": thought, "thought": true}));
    }
    if !said.answer.is_empty() {
        parts.push(json!({"text": said.answer()}));
    }
    if let Some(args) = said.call() {
        parts.push(json!({"functionCall": {"name": TOOL, "args": args}}));
    }
    let mut body = json!({
        "candidates": [{
            "content": {"parts": parts, "role": "model"},
            "finishReason": reason(said.reason()), "index": 0
        }],
        "modelVersion": ask.model, "responseId": id(ask),
    });
    if let Some(counts) = said.usage() {
        body["usageMetadata"] = usage(counts);
    }
    body
}

fn id(ask: &Ask) -> String {
    format!("gem-sim-{}", ask.serial)
}
