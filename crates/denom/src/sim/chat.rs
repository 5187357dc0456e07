//! Owns the bytes of a chat answer: its events when streamed, its object when whole.

use std::ops::Range;

use serde_json::{Value, json};

use super::ask::Ask;

/// The one date every answer bears, so that scripts stay pure functions of the ask.
const CREATED: u64 = 1_767_225_600;
/// Bytes of one token's text.
const WORD: usize = 8;

/// How events are written.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// The field name with whatever stands between it and the value.
    pub field: &'static str,
    /// The end of a line.
    pub eol: &'static str,
}

impl Style {
    /// As most servers write events.
    pub const PLAIN: Style = Style {
        field: "data: ",
        eol: "\n",
    };
}

/// What kind of output a delta carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Answer text.
    Answer,
    /// Reasoning text.
    Reasoning,
}

impl Kind {
    fn key(self) -> &'static str {
        match self {
            Kind::Answer => "content",
            Kind::Reasoning => "reasoning_content",
        }
    }
}

/// The counts of a usage block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt: u64,
    /// Tokens of the output, reasoning included.
    pub completion: u64,
    /// Tokens of reasoning among them.
    pub reasoning: u64,
}

/// Writes the events of one answer. Every method appends whole events to `out`.
#[derive(Debug)]
pub struct Chat {
    style: Style,
    /// Each event's JSON up to its choices, with the field name in front.
    open: Vec<u8>,
    /// Each event's JSON behind its choices, with the blank line.
    close: Vec<u8>,
    serial: u64,
}

impl Chat {
    /// A writer for the answer to `ask`.
    pub fn new(ask: &Ask, style: Style) -> Self {
        let Style { field, eol } = style;
        let (id, model) = (id(ask), json!(ask.model));
        let open = format!(
            "{field}{{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\
             \"created\":{CREATED},\"model\":{model},\"choices\":["
        );
        let usage = if ask.include_usage {
            ",\"usage\":null"
        } else {
            ""
        };
        Chat {
            style,
            open: open.into_bytes(),
            close: format!("]{usage}}}{eol}{eol}").into_bytes(),
            serial: ask.serial,
        }
    }

    /// The first chunk: a role and no content.
    pub fn role(&self, out: &mut Vec<u8>) {
        let choice = "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\
                      \"finish_reason\":null}";
        self.event(out, &[choice.as_bytes()]);
    }

    /// One delta with the text of all tokens in `range`.
    pub fn text(&self, out: &mut Vec<u8>, kind: Kind, range: Range<u64>) {
        out.extend_from_slice(&self.open);
        for part in ["{\"index\":0,\"delta\":{\"", kind.key(), "\":\""] {
            out.extend_from_slice(part.as_bytes());
        }
        for index in range {
            out.extend_from_slice(&word(self.serial, index));
        }
        out.extend_from_slice(b"\"},\"finish_reason\":null}");
        out.extend_from_slice(&self.close);
    }

    /// The chunk that says why the answer ended.
    pub fn finish(&self, out: &mut Vec<u8>, reason: &str) {
        let open = b"{\"index\":0,\"delta\":{},\"finish_reason\":\"";
        self.event(out, &[open, reason.as_bytes(), b"\"}"]);
    }

    /// The chunk without choices that carries the counts.
    pub fn usage(&self, out: &mut Vec<u8>, usage: Usage) {
        out.extend_from_slice(&self.open);
        let eol = self.style.eol;
        let usage = format!("],\"usage\":{}}}{eol}{eol}", usage.json());
        out.extend_from_slice(usage.as_bytes());
    }

    /// An error in the middle of a stream.
    pub fn error(&self, out: &mut Vec<u8>) {
        let error = json!({"error": {
            "message": "the engine stopped while it was generating",
            "type": "server_error", "param": null, "code": 500
        }});
        self.line(out, &error.to_string());
    }

    /// The sentinel.
    pub fn done(&self, out: &mut Vec<u8>) {
        self.line(out, "[DONE]");
    }

    /// A comment, which is a sign of life and no event.
    pub fn ping(&self, out: &mut Vec<u8>) {
        let eol = self.style.eol;
        out.extend_from_slice(format!(": ping{eol}{eol}").as_bytes());
    }

    /// Bytes that [`Chat::text`] appends for one token, at most.
    pub fn token_bytes(&self) -> usize {
        self.open.len() + self.close.len() + 80 + WORD
    }

    fn line(&self, out: &mut Vec<u8>, value: &str) {
        let Style { field, eol } = self.style;
        for part in [field, value, eol, eol] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    fn event(&self, out: &mut Vec<u8>, choice: &[&[u8]]) {
        out.extend_from_slice(&self.open);
        for part in choice {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(&self.close);
    }
}

impl Usage {
    fn json(self) -> Value {
        let mut usage = json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
        });
        if self.reasoning > 0 {
            usage["completion_tokens_details"] = json!({"reasoning_tokens": self.reasoning});
        }
        usage
    }
}

/// The answer as one `chat.completion` object; no `usage` member if there is none to tell.
pub fn whole(
    ask: &Ask,
    tokens: u64,
    reasoning: u64,
    reason: &str,
    usage: Option<Usage>,
) -> Vec<u8> {
    let text = |range: Range<u64>| -> String {
        let words = range.flat_map(|index| word(ask.serial, index));
        words.map(char::from).collect()
    };
    let mut message = json!({"role": "assistant", "content": text(reasoning..tokens)});
    if reasoning > 0 {
        message["reasoning_content"] = json!(text(0..reasoning));
    }
    let mut body = json!({
        "id": id(ask), "object": "chat.completion", "created": CREATED, "model": ask.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    });
    if let Some(usage) = usage {
        body["usage"] = usage.json();
    }
    body.to_string().into_bytes()
}

fn id(ask: &Ask) -> String {
    format!("chatcmpl-sim-{}", ask.serial)
}

/// The text of token `index` of request `serial`: a space, four signs for the token, three for the
/// request. All are equally wide, so that a count spread by characters is exact.
fn word(serial: u64, index: u64) -> [u8; WORD] {
    const SIGNS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut word = [b' '; WORD];
    let (token, request) = word[1..].split_at_mut(4);
    for (signs, mut number) in [(token, index), (request, serial)] {
        for sign in signs.iter_mut().rev() {
            *sign = SIGNS[(number % 36) as usize];
            number /= 36;
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_of_a_run_are_alike() {
        let mut words: Vec<_> = (0..40)
            .flat_map(|serial| (0..200).map(move |index| word(serial, index)))
            .collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 40 * 200);
        assert_eq!(&word(1, 37), b" aabbaab");
    }

    #[test]
    fn a_model_name_is_escaped_in_every_event() {
        let chat = Chat::new(&Ask::of("a\"b"), Style::PLAIN);
        let mut out = Vec::new();
        chat.text(&mut out, Kind::Answer, 0..1);
        let json = out.strip_prefix(b"data: ").expect("the field comes first");
        let value: Value = serde_json::from_slice(json).expect("an event is one JSON object");
        assert_eq!(value["model"], "a\"b");
    }
}
