//! Owns what a chat request asks for, read from its JSON body.

use serde::Deserialize;

/// Output tokens when the request names no number.
pub const DEFAULT_TOKENS: u64 = 64;
/// Output tokens a script gives at most, whatever is asked for.
pub const MOST_TOKENS: u64 = 1_000_000;
/// Characters of the prompt that an ask keeps.
const HEAD_CHARACTERS: usize = 64;

/// What one chat request asks for: all that a script depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The model, which names the script.
    pub model: String,
    /// A number no other request of this server has: the nonce of its tokens.
    pub serial: u64,
    /// `max_tokens` or `max_completion_tokens`, whichever was given; the second wins.
    pub max_tokens: Option<u64>,
    /// Whether the older name, `max_tokens`, was used.
    pub legacy_max_tokens: bool,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Whether `stream_options` was given at all.
    pub stream_options: bool,
    /// Whether a usage chunk was asked for.
    pub include_usage: bool,
    /// Words of all messages, which pass for prompt tokens here.
    pub prompt_tokens: u64,
    /// The first 64 characters of the last message.
    pub prompt_head: String,
    /// The bearer key as sent, for the script that echoes it.
    pub key: Option<String>,
}

#[derive(Deserialize)]
struct Body {
    model: String,
    #[serde(default)]
    messages: Vec<Message>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
}

impl Ask {
    /// An ask for a stream with usage, as denom sends it, with nothing else said.
    pub fn of(model: &str) -> Self {
        Ask {
            model: model.to_owned(),
            serial: 0,
            max_tokens: None,
            legacy_max_tokens: false,
            stream: true,
            stream_options: true,
            include_usage: true,
            prompt_tokens: 16,
            prompt_head: String::new(),
            key: None,
        }
    }

    /// Reads a request body. The error is a sentence about what is wrong with it.
    pub fn from_json(body: &[u8], serial: u64, key: Option<String>) -> Result<Self, String> {
        let body: Body = serde_json::from_slice(body)
            .map_err(|error| format!("the body is no chat request: {error}"))?;
        let max_tokens = body.max_completion_tokens.or(body.max_tokens);
        if max_tokens == Some(0) {
            return Err("max_tokens is 0: ask for at least one token".to_owned());
        }
        let texts = || body.messages.iter().filter_map(|m| m.content.as_ref());
        let include_usage = body.stream_options.as_ref().and_then(|o| o.include_usage);
        Ok(Ask {
            model: body.model,
            serial,
            max_tokens,
            legacy_max_tokens: body.max_tokens.is_some(),
            stream: body.stream.unwrap_or(false),
            stream_options: body.stream_options.is_some(),
            include_usage: include_usage.unwrap_or(false),
            prompt_tokens: texts().map(Content::words).sum(),
            prompt_head: texts().next_back().map(Content::head).unwrap_or_default(),
            key,
        })
    }

    /// Output tokens to give: what was asked for, within 1 to 1,000,000, or 64.
    pub fn tokens(&self) -> u64 {
        self.max_tokens
            .unwrap_or(DEFAULT_TOKENS)
            .clamp(1, MOST_TOKENS)
    }
}

impl Content {
    fn texts(&self) -> impl Iterator<Item = &str> {
        let (text, parts) = match self {
            Content::Text(text) => (Some(text.as_str()), [].as_slice()),
            Content::Parts(parts) => (None, parts.as_slice()),
        };
        let parts = parts.iter().filter_map(|part| part.text.as_deref());
        text.into_iter().chain(parts)
    }

    fn words(&self) -> u64 {
        let words = |text: &str| text.split_whitespace().count() as u64;
        self.texts().map(words).sum()
    }

    fn head(&self) -> String {
        self.texts()
            .flat_map(str::chars)
            .take(HEAD_CHARACTERS)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(json: &str) -> Result<Ask, String> {
        Ask::from_json(json.as_bytes(), 7, None)
    }

    #[test]
    fn a_body_says_what_is_asked_for() {
        let asked = ask(
            r#"{"model":"normal","stream":true,"max_tokens":5,"unknown":[1],
            "messages":[{"role":"system","content":"be  brief"},
            {"role":"user","content":[{"type":"text","text":"one two"},{"type":"image_url"}]}],
            "stream_options":{"include_usage":true}}"#,
        );
        let expected = Ask {
            serial: 7,
            max_tokens: Some(5),
            legacy_max_tokens: true,
            prompt_tokens: 4,
            prompt_head: "one two".to_owned(),
            ..Ask::of("normal")
        };
        assert_eq!(asked, Ok(expected));
    }

    #[test]
    fn the_newer_name_of_the_limit_wins_and_none_means_the_default() {
        let both = r#"{"model":"m","max_tokens":5,"max_completion_tokens":9}"#;
        assert_eq!(ask(both).map(|ask| ask.tokens()), Ok(9));
        let bare = ask(r#"{"model":"m"}"#).expect("a model is enough");
        assert_eq!((bare.tokens(), bare.stream), (64, false));
        let huge = r#"{"model":"m","max_tokens":99999999}"#;
        assert_eq!(ask(huge).map(|ask| ask.tokens()), Ok(MOST_TOKENS));
    }

    #[test]
    fn a_body_that_is_no_request_is_refused_with_a_reason() {
        for bad in [
            "",
            "{",
            "[]",
            r#"{"messages":[]}"#,
            r#"{"model":"m","max_tokens":0}"#,
        ] {
            assert!(ask(bad).is_err(), "{bad}");
        }
    }
}
