//! Owns how an answer is put into words: what every API can say, whatever it calls it.
//!
//! A script says what happens; a [`Voice`] says it in one API's events. One file an API.

mod chat;
mod completions;
mod frame;
mod gemini;
mod messages;
mod ollama;
mod responses;
mod tgi;
pub mod whole;

use std::ops::Range;

use measure::time::Length;
use serde_json::Value;

pub use gemini::error as error_of_gemini;

use super::ask::Ask;
use super::dialect::Dialect;

/// The one date every answer bears, so that scripts stay pure functions of the ask.
const CREATED: u64 = 1_767_225_600;
/// The same date as text.
const CREATED_TEXT: &str = "2026-01-01T00:00:00Z";
/// Bytes of one token's text.
pub const WORD: usize = 8;
/// The name of the tool that every tool call calls.
pub const TOOL: &str = "note";

/// What kind of output a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Answer text.
    Answer,
    /// Reasoning, as it is made.
    Reasoning,
    /// A summary of reasoning that is not shown itself. Where an API knows no difference, it is
    /// sent as reasoning.
    Summary,
    /// The text of a refusal. Where an API knows none, it is sent as an answer.
    Refusal,
}

/// A part of the one tool call of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool<'a> {
    /// It begins; its name is [`TOOL`].
    Begin,
    /// A piece of the JSON text of its arguments.
    Arguments(&'a str),
    /// It is complete.
    End,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// By itself.
    Stop,
    /// At the limit of output tokens.
    Length,
    /// For a tool to be called.
    Tool,
    /// Because of what it said.
    Filter,
    /// Because something broke, told as a reason to finish.
    Error,
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
    /// All together, as stated; a server can state it wrong.
    pub total: u64,
}

/// How an answer ends, and what is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close {
    /// Why.
    pub reason: Reason,
    /// The counts, if they are told.
    pub usage: Option<Usage>,
    /// When the first token was due, since the request.
    pub first: Length,
    /// When the answer ends.
    pub at: Length,
}

/// One API's way of saying what happens. Each method appends whole events to `out`, or nothing where
/// the API has no event for it. Texts are given as they stand between the quotes of a JSON string.
pub trait Voice: Send {
    /// What comes in front of all output.
    fn open(&mut self, out: &mut Vec<u8>);
    /// A piece of text.
    fn text(&mut self, out: &mut Vec<u8>, kind: Kind, escaped: &[u8]);
    /// A part of a tool call.
    fn tool(&mut self, out: &mut Vec<u8>, part: Tool<'_>);
    /// Why it ended, and the usage.
    fn close(&mut self, out: &mut Vec<u8>, close: &Close);
    /// The sentinel.
    fn done(&mut self, out: &mut Vec<u8>);
    /// An error in the middle of a stream; `message` as text.
    fn error(&mut self, out: &mut Vec<u8>, message: &str);
    /// A sign of life that says nothing.
    fn ping(&mut self, out: &mut Vec<u8>);
    /// An event of this type with whatever stands in `json`.
    fn event(&mut self, out: &mut Vec<u8>, kind: &str, json: &[u8]);
}

/// The voice in which `ask` is answered with a stream.
pub fn voice(ask: &Ask) -> Box<dyn Voice> {
    match ask.dialect {
        Dialect::OpenaiChat => Box::new(chat::Chat::new(ask)),
        Dialect::OpenaiCompletions => Box::new(completions::Completions::new(ask)),
        Dialect::OpenaiResponses => Box::new(responses::Responses::new(ask)),
        Dialect::AnthropicMessages => Box::new(messages::Messages::new(ask)),
        Dialect::GeminiSse | Dialect::GeminiArray => Box::new(gemini::Gemini::new(ask)),
        Dialect::OllamaChat | Dialect::OllamaGenerate => Box::new(ollama::Ollama::new(ask)),
        Dialect::Tgi => Box::new(tgi::Tgi::new(ask)),
    }
}

/// The whole answer that was `said`, as one JSON object of the API.
pub fn whole(ask: &Ask, said: &whole::Said) -> Value {
    match ask.dialect {
        Dialect::OpenaiChat => chat::whole(ask, said),
        Dialect::OpenaiCompletions => completions::whole(ask, said),
        Dialect::OpenaiResponses => responses::whole(ask, said),
        Dialect::AnthropicMessages => messages::whole(ask, said),
        Dialect::GeminiSse | Dialect::GeminiArray => gemini::whole(ask, said),
        Dialect::OllamaChat | Dialect::OllamaGenerate => ollama::whole(ask, said),
        Dialect::Tgi => tgi::whole(said),
    }
}

/// The text of all tokens in `range` of request `serial`.
pub fn words(serial: u64, range: Range<u64>) -> Vec<u8> {
    range.flat_map(|index| word(serial, index)).collect()
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

/// `text` as it stands between the quotes of a JSON string.
pub fn escaped(text: &str) -> Vec<u8> {
    let quoted = Value::from(text).to_string();
    quoted.as_bytes()[1..quoted.len() - 1].to_vec()
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
        assert_eq!(escaped("a\"\n"), b"a\\\"\\n");
    }
}
