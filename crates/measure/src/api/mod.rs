//! Owns the list of APIs and the normal form that one event of any of them is read into.

mod openai_chat;
pub mod text;

pub use openai_chat::error_body;

use serde::{Deserialize, Serialize};

use crate::trace::{Declared, Finish, ServerError, Usage};

/// An API that denom can ask and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// OpenAI chat completions and the servers that speak it.
    OpenaiChat,
}

impl Api {
    /// Every API, in the order in which help lists them.
    pub const ALL: [Api; 1] = [Api::OpenaiChat];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Api::OpenaiChat => "openai-chat",
        }
    }

    /// The path a request goes to, below the base URL.
    pub fn path(self) -> &'static str {
        match self {
            Api::OpenaiChat => "/chat/completions",
        }
    }

    /// Whether a stream of this API ends with a sentinel of its own.
    pub fn has_sentinel(self) -> bool {
        match self {
            Api::OpenaiChat => true,
        }
    }

    /// The body of a request.
    pub fn ask(self, ask: &Ask<'_>) -> serde_json::Map<String, serde_json::Value> {
        match self {
            Api::OpenaiChat => openai_chat::ask(ask),
        }
    }

    /// Reads the data of one event, or a whole body, into the normal form. `Err` says what is
    /// wrong with it.
    pub fn read(self, name: &[u8], data: &str, kept: Option<&mut String>) -> Result<Event, String> {
        match self {
            Api::OpenaiChat => openai_chat::read(name, data, kept),
        }
    }
}

/// How the limit of output tokens is named; servers differ in which they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitField {
    /// `max_tokens`
    #[default]
    MaxTokens,
    /// `max_completion_tokens`
    MaxCompletionTokens,
}

/// What one request asks for.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// The model.
    pub model: &'a str,
    /// The turns of the conversation as given in a prompts file, or one user turn.
    pub messages: Messages<'a>,
    /// The limit of output tokens.
    pub output_tokens: u64,
    /// Under which name it is sent.
    pub limit_field: LimitField,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// Whether token counts are asked for inside the stream.
    pub usage: bool,
}

/// The conversation that a request carries.
#[derive(Debug, Clone)]
pub enum Messages<'a> {
    /// One user turn.
    User(&'a str),
    /// Turns as the user gave them.
    Given(&'a serde_json::Value),
}

/// One event of any API in the normal form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Characters of answer text, refusal and tool calls.
    pub answer_chars: u32,
    /// Characters of reasoning streamed as itself.
    pub reasoning_chars: u32,
    /// It names a tool.
    pub tool_name: bool,
    /// It brings output of a kind that has no characters.
    pub other_output: bool,
    /// Token counts.
    pub usage: Option<Usage>,
    /// Why the model stopped.
    pub finish: Option<Finish>,
    /// An error.
    pub error: Option<ServerError>,
    /// The server's own timing.
    pub declared: Option<Declared>,
    /// The API's sentinel.
    pub sentinel: bool,
    /// A second start of a message.
    pub restarted: bool,
    /// Text held escapes that are no characters.
    pub repaired: bool,
}

impl Event {
    /// Whether it carries output that is not empty.
    pub fn is_content(&self) -> bool {
        self.is_answer() || self.reasoning_chars > 0
    }

    /// Whether it carries answer text, a refusal or a tool call.
    pub fn is_answer(&self) -> bool {
        self.answer_chars > 0 || self.tool_name || self.other_output
    }

    /// Whether a tool's name is all it brings.
    pub fn is_bare(&self) -> bool {
        self.tool_name && self.answer_chars == 0 && self.reasoning_chars == 0
    }
}

/// Serde helper: reads a count as servers write it, `None` where it is absent or null.
pub(crate) fn count(value: Option<&serde_json::Value>, bad: &mut bool) -> Option<u64> {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    match value? {
        serde_json::Value::Null => None,
        serde_json::Value::Number(number) => {
            let whole = number
                .as_f64()
                .filter(|v| v.fract() == 0.0 && (0.0..=LARGEST).contains(v));
            let found = number.as_u64().or(whole.map(|v| v as u64));
            *bad |= found.is_none();
            found
        }
        _ => {
            *bad = true;
            None
        }
    }
}

/// Cuts a server's text to at most `limit` bytes at a character's border.
pub fn clip(text: &str, limit: usize) -> String {
    let end = (0..=limit.min(text.len()))
        .rev()
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(0);
    if end < text.len() {
        format!("{}…", &text[..end])
    } else {
        text.to_owned()
    }
}
