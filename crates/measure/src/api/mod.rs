//! Owns the list of APIs and the normal form that one event of any of them is read into.

mod answers;
mod anthropic;
mod errors;
mod finish;
mod gemini;
mod loss;
mod ollama;
mod openai;
mod openai_chat;
mod openai_completions;
mod openai_responses;
pub mod text;
mod tgi;
pub(crate) mod timing;
mod usage;

use std::fmt::Debug;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::trace::{Declared, Finish, ServerError, Usage};

pub use errors::error_body;

/// Makes the list of APIs from one line each: its name and the module that owns it.
macro_rules! apis {
    ($($(#[$doc:meta])* $name:ident = $module:ident,)*) => {
        /// An API that denom can ask and read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Api {
            $($(#[$doc])* $name,)*
        }

        impl Api {
            /// Every API, in the order in which help lists them.
            pub const ALL: &[Api] = &[$(Api::$name,)*];

            /// What is particular to it.
            pub fn dialect(self) -> &'static Dialect {
                match self {
                    $(Api::$name => &$module::DIALECT,)*
                }
            }
        }
    };
}

apis! {
    /// OpenAI chat completions and the servers that speak it.
    OpenaiChat = openai_chat,
    /// OpenAI's older completions.
    OpenaiCompletions = openai_completions,
    /// OpenAI Responses.
    OpenaiResponses = openai_responses,
    /// Anthropic Messages.
    Anthropic = anthropic,
    /// Gemini's `streamGenerateContent`.
    Gemini = gemini,
    /// Ollama's `/api/chat` and `/api/generate`.
    Ollama = ollama,
    /// Text Generation Inference's own routes.
    Tgi = tgi,
}

impl Api {
    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        self.dialect().name
    }

    /// Whether a stream of this API ends with a terminal event beside its finish marker.
    pub fn has_sentinel(self) -> bool {
        self.dialect().sentinel
    }

    /// The body of a request.
    pub fn ask(self, ask: &Ask<'_>) -> Map<String, Value> {
        (self.dialect().ask)(ask)
    }
}

/// What is particular to an API: how to ask it, and how to read it.
#[derive(Debug)]
pub struct Dialect {
    /// Its name on the command line and in files.
    pub name: &'static str,
    /// How its streams are framed.
    pub framing: Framing,
    /// A stream ends with a terminal event beside its finish marker.
    pub sentinel: bool,
    /// What stands between a bare host and the routes.
    pub prefix: &'static str,
    /// Its routes below the prefix.
    pub routes: &'static [Route],
    /// Members of the body that belong to the plan, by JSON pointer: what else sets them would send,
    /// or bring, other than the plan's.
    pub owns: &'static [(&'static str, Owner)],
    /// Where its servers list their models, below the prefix.
    pub models: &'static str,
    /// Reads that list.
    pub listed: fn(&Value) -> Option<Vec<String>>,
    /// Where the key goes.
    pub key: Key,
    /// Headers that every request needs.
    pub headers: &'static [(&'static str, &'static str)],
    /// The body of a request.
    pub ask: fn(&Ask<'_>) -> Map<String, Value>,
    /// A reader for one response.
    pub reader: fn() -> Box<dyn Reader>,
}

/// How the events of a stream are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// One JSON object a line.
    Ndjson,
    /// Server-sent events, or one JSON array where the server was not asked for them.
    SseOrArray,
}

/// A place where an API takes requests.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The path, with `{model}` where the model's name stands.
    pub path: &'static str,
    /// The query that goes with it where the user gave no path.
    pub query: &'static str,
    /// The only kind of answer it gives, where it gives one only: a stream or not.
    pub stream: Option<bool>,
}

impl Route {
    /// A route that gives both streams and whole answers.
    pub const fn both(path: &'static str) -> Self {
        Route {
            path,
            query: "",
            stream: None,
        }
    }

    /// Its last part, by which a full path is known.
    pub fn ending(&self) -> &'static str {
        self.path.rsplit('}').next().unwrap_or(self.path)
    }

    /// Whether it can give a stream, or whole answers.
    pub fn gives(&self, stream: bool) -> bool {
        self.stream.is_none_or(|only| only == stream)
    }
}

/// The part of the plan that a member of the body belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The model.
    Model,
    /// The limit of output.
    Limit,
    /// What is said.
    Prompt,
}

/// Where the key of an API goes.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Environment variables that usually hold it, the first that is set counts.
    pub variables: &'static [&'static str],
    /// The header.
    pub header: &'static str,
    /// Put in front of it.
    pub scheme: &'static str,
}

impl Key {
    /// `Authorization: Bearer …` from one variable.
    const fn bearer(variables: &'static [&'static str]) -> Self {
        Key {
            variables,
            header: "authorization",
            scheme: "Bearer ",
        }
    }
}

/// Reads the events of one response, in order.
pub trait Reader: Debug + Send {
    /// Reads the data of one event into the normal form, and appends its text to `kept`. `Err` says
    /// what is wrong with it.
    fn read(&mut self, name: &[u8], data: &str, kept: Kept<'_>) -> Result<Event, String>;

    /// Whether everything that began has said how it ended.
    fn is_finished(&self) -> bool {
        true
    }

    /// Whether counts on the way are of all output so far, so that they only grow. Of several
    /// choices some servers count each apart.
    fn counts_run(&self) -> bool {
        true
    }

    /// Reads a whole body that was no stream.
    fn whole(&mut self, body: &str, kept: Kept<'_>) -> Result<Event, String> {
        self.read(b"", body, kept)
    }
}

/// Where text is kept, if it is.
pub type Kept<'a> = Option<&'a mut String>;

/// Reads one event, and the errors that gateways put into any API's events.
pub(crate) fn read(
    reader: &mut dyn Reader,
    name: &[u8],
    data: &str,
    kept: Kept<'_>,
) -> Result<Event, String> {
    let read = leniently(data, kept, |data, kept| reader.read(name, data, kept));
    let mut event = read.or_else(|wrong| foreign(name, data, wrong))?;
    if event.error.is_none() {
        event.error = errors::carried(name, data);
    }
    Ok(event)
}

/// As [`read`], for a whole body.
pub(crate) fn read_whole(
    reader: &mut dyn Reader,
    body: &str,
    kept: Kept<'_>,
) -> Result<Event, String> {
    let read = leniently(body, kept, |body, kept| reader.whole(body, kept));
    let mut event = read.or_else(|wrong| foreign(b"", body, wrong))?;
    if event.error.is_none() {
        event.error = errors::carried(b"", body);
    }
    Ok(event)
}

/// What this API cannot read may be an error all the same, in another API's form.
fn foreign(name: &[u8], data: &str, wrong: String) -> Result<Event, String> {
    let in_list = || {
        let list = data.trim_start().starts_with('[') && text::may_hold(data, "error");
        list.then(|| error_body(data)).flatten()
    };
    match errors::carried(name, data).or_else(in_list) {
        Some(error) => Ok(Event {
            error: Some(error),
            ..Event::default()
        }),
        None => Err(wrong),
    }
}

/// Reads JSON that has a key twice, or a surrogate alone where no text is, a second time without:
/// neither may cost an event its finish or its counts.
fn leniently(
    data: &str,
    mut kept: Kept<'_>,
    mut read: impl FnMut(&str, Kept<'_>) -> Result<Event, String>,
) -> Result<Event, String> {
    let before = kept.as_ref().map_or(0, |kept| kept.len());
    let refused = match read(data, kept.as_deref_mut()) {
        Ok(event) => return Ok(event),
        Err(refused) => refused,
    };
    let Some((anew, mended)) = text::anew(data) else {
        return Err(refused);
    };
    if let Some(kept) = &mut kept {
        kept.truncate(before);
    }
    let mut event = read(&anew, kept).map_err(|_| refused)?;
    event.repaired |= mended;
    Ok(event)
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
    /// The path it goes to: one API may take two kinds of request.
    pub path: &'a str,
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
    Given(&'a Value),
}

impl Messages<'_> {
    /// As turns of `role` and `content`.
    fn turns(&self) -> Value {
        match self {
            Messages::User(text) => json!([{"role": "user", "content": text}]),
            Messages::Given(turns) => (*turns).clone(),
        }
    }

    /// As turns with the system's text apart, for APIs that want it so.
    fn apart(&self) -> (Option<String>, Vec<Value>) {
        let turns = self.turns();
        let turns = turns.as_array().cloned().unwrap_or_default();
        let (system, rest): (Vec<_>, Vec<_>) =
            turns.into_iter().partition(|turn| turn["role"] == "system");
        let system: Vec<String> = system.iter().map(|turn| plain(&turn["content"])).collect();
        ((!system.is_empty()).then(|| system.join("\n")), rest)
    }

    /// As one text, for APIs that know no turns.
    fn text(&self) -> String {
        match self {
            Messages::User(text) => (*text).to_owned(),
            Messages::Given(turns) => {
                let turns = turns.as_array().map_or(&[][..], Vec::as_slice);
                let texts: Vec<String> = turns.iter().map(|turn| plain(&turn["content"])).collect();
                texts.join("\n")
            }
        }
    }
}

/// The text of a turn's content: a string, or parts with text inside.
fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

/// The name of the answer that a stream began with.
#[derive(Debug, Default)]
struct Started(Option<String>);

impl Started {
    /// Whether a start under this name is that of another answer. The same start again is a quirk
    /// of some servers, and one without a name tells nothing.
    fn is_another(&mut self, id: Option<&str>) -> bool {
        match (&self.0, id) {
            (Some(known), Some(id)) => known != id,
            (None, Some(id)) => {
                self.0 = Some(id.to_owned());
                false
            }
            (_, None) => false,
        }
    }
}

/// One event of any API in the normal form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Characters of answer text, refusal and tool calls.
    pub answer_chars: u32,
    /// Characters of reasoning, streamed as itself or as a summary.
    pub reasoning_chars: u32,
    /// The reasoning is a summary: its tokens are hidden.
    pub summary: bool,
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
    /// The API's terminal event.
    pub sentinel: bool,
    /// A second start of a message.
    pub restarted: bool,
    /// The events' own numbers jump or repeat.
    pub gap: bool,
    /// Something that the server says it sent, or that an end must bring, did not arrive: what of
    /// it is known.
    pub lost: Option<String>,
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

    /// What ends an answer, and what is amiss with it, without what it says.
    pub(crate) fn ending_only(self) -> Self {
        Event {
            usage: self.usage,
            finish: self.finish,
            sentinel: self.sentinel,
            error: self.error,
            declared: self.declared,
            restarted: self.restarted,
            gap: self.gap,
            lost: self.lost,
            ..Event::default()
        }
    }

    /// One of the answers that it carries ended so.
    fn end(&mut self, finish: Finish) {
        self.finish = Some(self.finish.map_or(finish, |before| before.and(finish)));
    }

    fn answer(&mut self, found: text::Measured) {
        self.answer_chars = self.answer_chars.saturating_add(found.chars);
        self.repaired |= found.repaired;
    }

    /// Output that is JSON and no text, such as a call's arguments: its characters as written.
    fn json(&mut self, raw: Option<&RawValue>) {
        let chars = raw.map_or(0, |raw| raw.get().chars().count());
        let chars = u32::try_from(chars).unwrap_or(u32::MAX);
        self.answer_chars = self.answer_chars.saturating_add(chars);
    }

    fn reasoning(&mut self, found: text::Measured) {
        self.reasoning_chars = self.reasoning_chars.saturating_add(found.chars);
        self.repaired |= found.repaired;
    }
}

/// Reads an event's JSON as `T`; the error is a sentence with the start of the data.
fn parse<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, String> {
    serde_json::from_str(data).map_err(|error| {
        format!(
            "an event is not JSON of this API ({error}): {}",
            clip(data, 120)
        )
    })
}

/// The names in a list under `array`, each at `name`.
fn names(list: &Value, array: &str, name: &str) -> Option<Vec<String>> {
    let list = list.get(array)?.as_array()?;
    let names = list
        .iter()
        .filter_map(|model| model.get(name)?.as_str().map(str::to_owned));
    Some(names.collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_another_apis_form_is_an_error_in_every_api() {
        for api in Api::ALL {
            for data in [
                r#"{"type":"error","message":"died"}"#,
                r#"{"object":"error","message":"died","code":400}"#,
                r#"[{"error":{"code":503,"message":"died"}}]"#,
                r#"{"error":"died"}"#,
                r#"{"\u0065rror":"died"}"#,
                r#"[{"\u0065rror":{"code":503,"message":"died"}}]"#,
            ] {
                let mut reader = (api.dialect().reader)();
                let event = read(reader.as_mut(), b"", data, None);
                let error = event.expect("an error, and no protocol error").error;
                let message = error.map(|error| error.message);
                assert_eq!(message.as_deref(), Some("died"), "{data} in {}", api.name());
            }
        }
    }
}
