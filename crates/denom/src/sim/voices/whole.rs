//! Owns the voice that says nothing and remembers: what an answer that is no stream is made of.

use super::{Close, Kind, Reason, Tool, Usage, Voice};

/// What an answer consists of, texts as they stand between the quotes of a JSON string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Reasoning, also in summary.
    pub reasoning: Vec<u8>,
    /// The answer, or the refusal.
    pub answer: Vec<u8>,
    /// The JSON text of the tool call's arguments, if there is a call.
    pub arguments: Option<String>,
    /// How it ended, if it did.
    pub close: Option<Close>,
    /// The error it ended with instead.
    pub error: Option<String>,
}

impl Said {
    /// The reasoning as text; `None` if there is none.
    pub fn reasoning(&self) -> Option<String> {
        (!self.reasoning.is_empty()).then(|| unescaped(&self.reasoning))
    }

    /// The answer as text.
    pub fn answer(&self) -> String {
        unescaped(&self.answer)
    }

    /// The arguments as JSON.
    pub fn call(&self) -> Option<serde_json::Value> {
        let arguments = self.arguments.as_deref()?;
        serde_json::from_str(arguments).ok()
    }

    /// Why it ended: by itself if nothing was said of it.
    pub fn reason(&self) -> Reason {
        self.close.map_or(Reason::Stop, |close| close.reason)
    }

    /// The counts, if they are told.
    pub fn usage(&self) -> Option<Usage> {
        self.close.and_then(|close| close.usage)
    }
}

/// What stands between the quotes of a JSON string, as text; unreadable parts are replaced.
pub fn unescaped(escaped: &[u8]) -> String {
    let text = String::from_utf8_lossy(escaped);
    serde_json::from_str(&format!("\"{text}\"")).unwrap_or_else(|_| text.into_owned())
}

/// The voice of a request that wants no stream.
#[derive(Debug, Default)]
pub struct Memory {
    /// What was said so far.
    pub said: Said,
}

impl Voice for Memory {
    fn open(&mut self, _: &mut Vec<u8>) {}

    fn text(&mut self, _: &mut Vec<u8>, kind: Kind, escaped: &[u8]) {
        let kept = match kind {
            Kind::Reasoning | Kind::Summary => &mut self.said.reasoning,
            Kind::Answer | Kind::Refusal => &mut self.said.answer,
        };
        kept.extend_from_slice(escaped);
    }

    fn tool(&mut self, _: &mut Vec<u8>, part: Tool<'_>) {
        let arguments = self.said.arguments.get_or_insert_default();
        if let Tool::Arguments(piece) = part {
            arguments.push_str(piece);
        }
    }

    fn close(&mut self, _: &mut Vec<u8>, close: &Close) {
        self.said.close = Some(*close);
    }

    fn done(&mut self, _: &mut Vec<u8>) {}

    fn error(&mut self, _: &mut Vec<u8>, message: &str) {
        self.said.error = Some(message.to_owned());
    }

    fn ping(&mut self, _: &mut Vec<u8>) {}

    fn event(&mut self, _: &mut Vec<u8>, _: &str, _: &[u8]) {}
}
