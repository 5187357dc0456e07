//! Owns OpenAI chat completions as the server speaks them.

use serde_json::{Value, json};

use super::whole::Said;
use super::{CREATED, Close, Kind, Reason, TOOL, Tool, Usage, Voice, frame};
use crate::sim::ask::Ask;

/// Writes `chat.completion.chunk` events.
pub struct Chat {
    /// Each event's JSON up to its choices.
    open: Vec<u8>,
    /// Each event's JSON behind its choices.
    close: &'static [u8],
    include_usage: bool,
}

impl Chat {
    /// A writer for the answer to `ask`.
    pub fn new(ask: &Ask) -> Self {
        let (id, model) = (id(ask), json!(ask.model));
        let open = format!(
            "{{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\
             \"created\":{CREATED},\"model\":{model},\"choices\":["
        );
        Chat {
            open: open.into_bytes(),
            close: if ask.include_usage {
                b"],\"usage\":null}\n\n"
            } else {
                b"]}\n\n"
            },
            include_usage: ask.include_usage,
        }
    }

    /// A chunk whose choice is made of three parts.
    fn chunk(&self, out: &mut Vec<u8>, open: &[u8], middle: &[&[u8]], close: &[u8]) {
        frame::parts(out, &[b"data: ", &self.open, open]);
        frame::parts(out, middle);
        frame::parts(out, &[close, self.close]);
    }

    fn delta(&self, out: &mut Vec<u8>, delta: &[&[u8]]) {
        let open = b"{\"index\":0,\"delta\":{";
        self.chunk(out, open, delta, b"},\"finish_reason\":null}");
    }
}

impl Voice for Chat {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.delta(out, &[b"\"role\":\"assistant\",\"content\":\"\""]);
    }

    fn text(&mut self, out: &mut Vec<u8>, kind: Kind, escaped: &[u8]) {
        let key: &[u8] = match kind {
            Kind::Answer => b"\"content\":\"",
            Kind::Reasoning | Kind::Summary => b"\"reasoning_content\":\"",
            Kind::Refusal => b"\"refusal\":\"",
        };
        self.delta(out, &[key, escaped, b"\""]);
    }

    fn tool(&mut self, out: &mut Vec<u8>, part: Tool<'_>) {
        let call = match part {
            Tool::Begin => json!({
                "index": 0, "id": "call_sim", "type": "function",
                "function": {"name": TOOL, "arguments": ""}
            }),
            Tool::Arguments(piece) => json!({"index": 0, "function": {"arguments": piece}}),
            Tool::End => return,
        };
        let calls = format!("\"tool_calls\":[{call}]");
        self.delta(out, &[calls.as_bytes()]);
    }

    fn close(&mut self, out: &mut Vec<u8>, close: &Close) {
        let open = b"{\"index\":0,\"delta\":{},\"finish_reason\":\"";
        self.chunk(out, open, &[reason(close.reason).as_bytes()], b"\"}");
        if let (true, Some(counts)) = (self.include_usage, close.usage) {
            let counts = usage(counts).to_string();
            let parts: &[&[u8]] = &[b"],\"usage\":", counts.as_bytes(), b"}\n\n"];
            frame::parts(out, &[b"data: ", &self.open]);
            frame::parts(out, parts);
        }
    }

    fn done(&mut self, out: &mut Vec<u8>) {
        frame::data(out, b"[DONE]");
    }

    fn error(&mut self, out: &mut Vec<u8>, message: &str) {
        frame::data(out, error(message).to_string().as_bytes());
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        frame::comment(out);
    }

    fn event(&mut self, out: &mut Vec<u8>, _: &str, json: &[u8]) {
        frame::data(out, json);
    }
}

/// The error object of a stream.
pub fn error(message: &str) -> Value {
    json!({"error": {"message": message, "type": "server_error", "param": null, "code": 500}})
}

/// The name of a reason to finish.
pub fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Stop => "stop",
        Reason::Length => "length",
        Reason::Tool => "tool_calls",
        Reason::Filter => "content_filter",
        Reason::Error => "error",
    }
}

/// The usage block.
pub fn usage(counts: Usage) -> Value {
    let mut usage = json!({
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.completion,
        "total_tokens": counts.total,
    });
    if counts.reasoning > 0 {
        usage["completion_tokens_details"] = json!({"reasoning_tokens": counts.reasoning});
    }
    usage
}

/// The answer as one `chat.completion` object; no `usage` member if there is none to tell.
pub fn whole(ask: &Ask, said: &Said) -> Value {
    let mut message = json!({"role": "assistant", "content": said.answer()});
    if let Some(reasoning) = said.reasoning() {
        message["reasoning_content"] = json!(reasoning);
    }
    if let Some(arguments) = &said.arguments {
        message["tool_calls"] = json!([{
            "id": "call_sim", "type": "function",
            "function": {"name": TOOL, "arguments": arguments}
        }]);
    }
    let finish = reason(said.reason());
    let mut body = json!({
        "id": id(ask), "object": "chat.completion", "created": CREATED, "model": ask.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    });
    if let Some(counts) = said.usage() {
        body["usage"] = usage(counts);
    }
    body
}

fn id(ask: &Ask) -> String {
    format!("chatcmpl-sim-{}", ask.serial)
}

#[cfg(test)]
mod tests {
    use super::super::escaped;
    use super::*;

    #[test]
    fn a_model_name_is_escaped_in_every_event() {
        let mut chat = Chat::new(&Ask::of("a\"b"));
        let mut out = Vec::new();
        chat.text(&mut out, Kind::Answer, &escaped("x"));
        let json = out.strip_prefix(b"data: ").expect("the field comes first");
        let value: Value = serde_json::from_slice(json).expect("an event is one JSON object");
        assert_eq!(value["model"], "a\"b");
        assert_eq!(value["choices"][0]["delta"]["content"], "x");
    }
}
