//! Owns OpenAI Responses as the server speaks them: numbered events around items and their parts.

use serde_json::{Map, Value, json};

use super::whole::{Said, unescaped};
use super::{CREATED, Close, Kind, Reason, TOOL, Tool, Usage, Voice, frame};
use crate::sim::ask::Ask;

/// What an item of the output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Message(Kind),
    Reasoning,
    Summary,
    Call,
}

/// Writes the events of one response. Its items follow each other, each with one part.
pub struct Responses {
    id: String,
    model: String,
    /// The number of the next event.
    sequence: u64,
    open: Option<Item>,
    /// The open item's text so far, as it stands in JSON; a call's arguments as they are.
    text: Vec<u8>,
    /// Items that are complete.
    output: Vec<Value>,
}

impl Responses {
    /// A writer for the answer to `ask`.
    pub fn new(ask: &Ask) -> Self {
        Responses {
            id: id(ask),
            model: ask.model.clone(),
            sequence: 0,
            open: None,
            text: Vec::new(),
            output: Vec::new(),
        }
    }

    /// An event with these members.
    fn say(&mut self, out: &mut Vec<u8>, kind: &str, members: Value) {
        let mut event = Map::new();
        event.insert("type".to_owned(), json!(kind));
        event.insert("sequence_number".to_owned(), json!(self.sequence));
        if let Value::Object(members) = members {
            event.extend(members);
        }
        self.sequence += 1;
        let json = Value::Object(event).to_string();
        frame::named(out, kind, json.as_bytes());
    }

    /// A delta of the open item, which the text of a long answer is made of: written by hand.
    fn delta(&mut self, out: &mut Vec<u8>, item: Item, escaped: &[u8]) {
        let kind = kinds(item).delta;
        let place = match item {
            Item::Call => "",
            Item::Summary => "\"summary_index\":0,",
            Item::Message(_) | Item::Reasoning => "\"content_index\":0,",
        };
        let logprobs: &[u8] = match item {
            Item::Message(Kind::Answer) => b"\",\"logprobs\":[]}\n\n",
            _ => b"\"}\n\n",
        };
        let (number, index, id) = (self.sequence, self.output.len(), self.item_id());
        let open = format!(
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{number},\
             \"item_id\":\"{id}\",\"output_index\":{index},{place}\"delta\":\""
        );
        frame::parts(out, &[open.as_bytes(), escaped, logprobs]);
        self.sequence += 1;
    }

    fn item_id(&self) -> String {
        format!("item_sim_{}", self.output.len())
    }

    /// The open item as an object, with what it has so far if it is `complete`.
    fn item(&self, item: Item, complete: bool) -> Value {
        let status = if complete { "completed" } else { "in_progress" };
        let text = if complete {
            unescaped(&self.text)
        } else {
            String::new()
        };
        let id = self.item_id();
        let parts = |part: Value| if complete { json!([part]) } else { json!([]) };
        match item {
            Item::Message(_) => json!({
                "id": id, "type": "message", "role": "assistant", "status": status,
                "content": parts(part(item, &text))
            }),
            Item::Reasoning => json!({
                "id": id, "type": "reasoning", "status": status, "summary": [],
                "content": parts(part(item, &text))
            }),
            Item::Summary => json!({
                "id": id, "type": "reasoning", "status": status,
                "summary": parts(part(item, &text))
            }),
            Item::Call => json!({
                "id": id, "type": "function_call", "call_id": "call_sim", "name": TOOL,
                "arguments": text, "status": status
            }),
        }
    }

    fn enter(&mut self, out: &mut Vec<u8>, item: Item) {
        if self.open == Some(item) {
            return;
        }
        self.leave(out);
        let members = json!({"output_index": self.output.len(), "item": self.item(item, false)});
        self.say(out, "response.output_item.added", members);
        if let Some(kind) = kinds(item).part_added {
            let members = self.placed(item, "part", part(item, ""));
            self.say(out, kind, members);
        }
        self.open = Some(item);
    }

    /// Members that tell which part an event is about, and one more.
    fn placed(&self, item: Item, name: &str, value: Value) -> Value {
        let mut members = json!({"item_id": self.item_id(), "output_index": self.output.len()});
        match item {
            Item::Call => {}
            Item::Summary => members["summary_index"] = json!(0),
            Item::Message(_) | Item::Reasoning => members["content_index"] = json!(0),
        }
        members[name] = value;
        members
    }

    fn leave(&mut self, out: &mut Vec<u8>) {
        let Some(item) = self.open.take() else {
            return;
        };
        let text = unescaped(&self.text);
        let Kinds {
            done,
            done_member,
            part_done,
            ..
        } = kinds(item);
        let mut members = self.placed(item, done_member, json!(text));
        if item == Item::Message(Kind::Answer) {
            members["logprobs"] = json!([]);
        }
        self.say(out, done, members);
        if let Some(kind) = part_done {
            let members = self.placed(item, "part", part(item, &text));
            self.say(out, kind, members);
        }
        let whole = self.item(item, true);
        let members = json!({"output_index": self.output.len(), "item": whole});
        self.say(out, "response.output_item.done", members);
        self.output.push(whole);
        self.text.clear();
    }

    fn response(&self, status: &str) -> Value {
        response(&self.id, &self.model, status, &self.output)
    }
}

impl Voice for Responses {
    fn open(&mut self, out: &mut Vec<u8>) {
        for kind in ["response.created", "response.in_progress"] {
            let members = json!({"response": self.response("in_progress")});
            self.say(out, kind, members);
        }
    }

    fn text(&mut self, out: &mut Vec<u8>, kind: Kind, escaped: &[u8]) {
        let item = match kind {
            Kind::Answer | Kind::Refusal => Item::Message(kind),
            Kind::Reasoning => Item::Reasoning,
            Kind::Summary => Item::Summary,
        };
        self.enter(out, item);
        self.delta(out, item, escaped);
        self.text.extend_from_slice(escaped);
    }

    fn tool(&mut self, out: &mut Vec<u8>, part: Tool<'_>) {
        match part {
            Tool::Begin => self.enter(out, Item::Call),
            Tool::Arguments(piece) => {
                let piece = super::escaped(piece);
                self.delta(out, Item::Call, &piece);
                self.text.extend_from_slice(&piece);
            }
            Tool::End => self.leave(out),
        }
    }

    fn close(&mut self, out: &mut Vec<u8>, close: &Close) {
        self.leave(out);
        let (status, kind) = ended(close.reason);
        let mut response = self.response(status);
        finish(&mut response, close.reason, close.usage);
        self.say(out, kind, json!({ "response": response }));
    }

    fn done(&mut self, _: &mut Vec<u8>) {}

    fn error(&mut self, out: &mut Vec<u8>, message: &str) {
        let members = json!({"code": "server_error", "message": message, "param": null});
        self.say(out, "error", members);
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        frame::comment(out);
    }

    fn event(&mut self, out: &mut Vec<u8>, kind: &str, json: &[u8]) {
        self.sequence += 1;
        frame::named(out, kind, json);
    }
}

/// The types of an item's events, and the member that holds its text at the end.
struct Kinds {
    part_added: Option<&'static str>,
    delta: &'static str,
    done: &'static str,
    done_member: &'static str,
    part_done: Option<&'static str>,
}

fn kinds(item: Item) -> Kinds {
    let (part_added, part_done) = match item {
        Item::Call => (None, None),
        Item::Summary => (
            Some("response.reasoning_summary_part.added"),
            Some("response.reasoning_summary_part.done"),
        ),
        Item::Message(_) | Item::Reasoning => (
            Some("response.content_part.added"),
            Some("response.content_part.done"),
        ),
    };
    let (delta, done, done_member) = texts(item);
    Kinds {
        part_added,
        delta,
        done,
        done_member,
        part_done,
    }
}

/// The types of the events that bring an item's text and end it, and the member that repeats it.
fn texts(item: Item) -> (&'static str, &'static str, &'static str) {
    match item {
        Item::Message(Kind::Refusal) => {
            ("response.refusal.delta", "response.refusal.done", "refusal")
        }
        Item::Message(_) => (
            "response.output_text.delta",
            "response.output_text.done",
            "text",
        ),
        Item::Reasoning => (
            "response.reasoning_text.delta",
            "response.reasoning_text.done",
            "text",
        ),
        Item::Summary => (
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "text",
        ),
        Item::Call => (
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "arguments",
        ),
    }
}

fn part(item: Item, text: &str) -> Value {
    match item {
        Item::Message(Kind::Refusal) => json!({"type": "refusal", "refusal": text}),
        Item::Reasoning => json!({"type": "reasoning_text", "text": text}),
        Item::Summary => json!({"type": "summary_text", "text": text}),
        _ => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
    }
}

/// The status of a response that ended so, and the type of the event that says it.
fn ended(reason: Reason) -> (&'static str, &'static str) {
    match reason {
        Reason::Stop | Reason::Tool => ("completed", "response.completed"),
        Reason::Length | Reason::Filter => ("incomplete", "response.incomplete"),
        Reason::Error => ("failed", "response.failed"),
    }
}

/// Says in a response how it ended.
fn finish(response: &mut Value, reason: Reason, usage: Option<Usage>) {
    match reason {
        Reason::Stop | Reason::Tool => {}
        Reason::Length => response["incomplete_details"] = json!({"reason": "max_output_tokens"}),
        Reason::Filter => response["incomplete_details"] = json!({"reason": "content_filter"}),
        Reason::Error => {
            let message = "the engine stopped while it was generating";
            response["error"] = json!({"code": "server_error", "message": message});
        }
    }
    if let Some(counts) = usage {
        response["usage"] = json!({
            "input_tokens": counts.prompt, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": counts.completion,
            "output_tokens_details": {"reasoning_tokens": counts.reasoning},
            "total_tokens": counts.total,
        });
    }
}

fn response(id: &str, model: &str, status: &str, output: &[Value]) -> Value {
    json!({
        "id": id, "object": "response", "created_at": CREATED, "status": status, "model": model,
        "output": output, "error": null, "incomplete_details": null, "instructions": null,
        "metadata": {}, "parallel_tool_calls": true, "temperature": 1.0, "top_p": 1.0,
        "tool_choice": "auto", "tools": [], "usage": null,
    })
}

/// The answer as one `response` object.
pub fn whole(ask: &Ask, said: &Said) -> Value {
    // The same items as in a stream, whose events nobody reads.
    let (mut voice, mut unread) = (Responses::new(ask), Vec::new());
    if !said.reasoning.is_empty() {
        voice.text(&mut unread, Kind::Reasoning, &said.reasoning);
    }
    if !said.answer.is_empty() {
        voice.text(&mut unread, Kind::Answer, &said.answer);
    }
    if let Some(arguments) = &said.arguments {
        voice.tool(&mut unread, Tool::Begin);
        voice.tool(&mut unread, Tool::Arguments(arguments));
    }
    voice.leave(&mut unread);
    let mut response = voice.response(ended(said.reason()).0);
    finish(&mut response, said.reason(), said.usage());
    response
}

fn id(ask: &Ask) -> String {
    format!("resp_sim_{}", ask.serial)
}
