//! Owns the list of APIs that the server speaks, and the ways a request's path names one.

/// One API as it looks on the wire. Gemini is two: the form of its stream is the request's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI chat completions.
    OpenaiChat,
    /// OpenAI's older completions.
    OpenaiCompletions,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    AnthropicMessages,
    /// Gemini with `alt=sse`.
    GeminiSse,
    /// Gemini without it: one JSON array, written piece by piece.
    GeminiArray,
    /// Ollama's `/api/chat`.
    OllamaChat,
    /// Ollama's `/api/generate`.
    OllamaGenerate,
    /// Text Generation Inference.
    Tgi,
}

/// What a path asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// The API.
    pub dialect: Dialect,
    /// The model, where the path names it.
    pub model: Option<String>,
    /// Whether the path itself says that a stream is wanted; `None` where the body does.
    pub stream: Option<bool>,
}

impl Dialect {
    /// Every one of them.
    pub const ALL: &'static [Dialect] = &[
        Dialect::OpenaiChat,
        Dialect::OpenaiCompletions,
        Dialect::OpenaiResponses,
        Dialect::AnthropicMessages,
        Dialect::GeminiSse,
        Dialect::GeminiArray,
        Dialect::OllamaChat,
        Dialect::OllamaGenerate,
        Dialect::Tgi,
    ];

    /// Its name in lists and messages.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::OpenaiChat => "openai-chat",
            Dialect::OpenaiCompletions => "openai-completions",
            Dialect::OpenaiResponses => "openai-responses",
            Dialect::AnthropicMessages => "anthropic-messages",
            Dialect::GeminiSse => "gemini",
            Dialect::GeminiArray => "gemini-array",
            Dialect::OllamaChat => "ollama-chat",
            Dialect::OllamaGenerate => "ollama-generate",
            Dialect::Tgi => "tgi",
        }
    }

    /// The content type of its streams.
    pub fn content_type(self) -> &'static str {
        match self {
            Dialect::GeminiArray => "application/json; charset=utf-8",
            Dialect::OllamaChat | Dialect::OllamaGenerate => "application/x-ndjson",
            _ => "text/event-stream; charset=utf-8",
        }
    }

    /// Whether its streams are server-sent events.
    pub fn is_sse(self) -> bool {
        self.content_type().starts_with("text/event-stream")
    }

    /// Whether a request without a word about it gets a stream.
    pub fn streams_by_default(self) -> bool {
        matches!(self, Dialect::OllamaChat | Dialect::OllamaGenerate)
    }

    /// What a POST to `path` asks for, whatever stands in front of the part that is the API's own.
    pub fn of_path(path: &str, query: &str) -> Option<Spoken> {
        if let Some(spoken) = gemini(path, query) {
            return Some(spoken);
        }
        let ends = |end: &str| path.ends_with(end);
        let (dialect, stream) = if ends("/chat/completions") {
            (Dialect::OpenaiChat, None)
        } else if ends("/completions") {
            (Dialect::OpenaiCompletions, None)
        } else if ends("/responses") {
            (Dialect::OpenaiResponses, None)
        } else if ends("/messages") {
            (Dialect::AnthropicMessages, None)
        } else if ends("/api/chat") {
            (Dialect::OllamaChat, None)
        } else if ends("/api/generate") {
            (Dialect::OllamaGenerate, None)
        } else if ends("/generate_stream") {
            (Dialect::Tgi, Some(true))
        } else if ends("/generate") || path == "/" {
            // At the root, Text Generation Inference lets the body say whether to stream.
            (Dialect::Tgi, (path != "/").then_some(false))
        } else {
            return None;
        };
        Some(Spoken {
            dialect,
            model: deployment(path),
            stream,
        })
    }
}

/// Gemini's paths end in `models/MODEL:streamGenerateContent` or `…:generateContent`.
fn gemini(path: &str, query: &str) -> Option<Spoken> {
    let (front, method) = path.rsplit_once(':')?;
    let stream = match method {
        "streamGenerateContent" => true,
        "generateContent" => false,
        _ => return None,
    };
    let sse = parameter(query, "alt").is_some_and(|alt| alt == "sse");
    let model = front
        .rsplit_once("models/")
        .map_or(front, |(_, model)| model);
    Some(Spoken {
        dialect: if sse {
            Dialect::GeminiSse
        } else {
            Dialect::GeminiArray
        },
        model: Some(unescaped(model)),
        stream: Some(stream),
    })
}

/// Azure names the model in the path: `/openai/deployments/MODEL/chat/completions`.
fn deployment(path: &str) -> Option<String> {
    let (_, behind) = path.split_once("/deployments/")?;
    behind.split('/').next().map(unescaped)
}

/// The value of a parameter of a query.
pub fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(found, _)| *found == name)?;
    Some(unescaped(value))
}

/// `%41` is `A`; what is no such escape stays.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let escape = behind
            .get(..2)
            .filter(|_| first == b'%')
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escape.unwrap_or(first));
        rest = if escape.is_some() {
            &behind[2..]
        } else {
            behind
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_an_api_behind_any_prefix() {
        for (path, dialect) in [
            ("/v1/chat/completions", Dialect::OpenaiChat),
            ("/proxy/openai/v1/chat/completions", Dialect::OpenaiChat),
            ("/completions", Dialect::OpenaiCompletions),
            ("/v1/responses", Dialect::OpenaiResponses),
            ("/messages", Dialect::AnthropicMessages),
            ("/v1/messages", Dialect::AnthropicMessages),
            ("/api/chat", Dialect::OllamaChat),
            ("/api/generate", Dialect::OllamaGenerate),
            ("/generate", Dialect::Tgi),
            ("/generate_stream", Dialect::Tgi),
        ] {
            let spoken = Dialect::of_path(path, "").expect(path);
            assert_eq!((spoken.dialect, spoken.model), (dialect, None), "{path}");
        }
        assert_eq!(Dialect::of_path("/v1/embeddings", ""), None);
    }

    #[test]
    fn a_path_may_name_the_model_and_the_stream() {
        let gemini = |path, query| Dialect::of_path(path, query).expect(path);
        let expected = |dialect, stream| Spoken {
            dialect,
            model: Some("a b".to_owned()),
            stream: Some(stream),
        };
        let path = "/v1beta/models/a%20b:streamGenerateContent";
        assert_eq!(
            gemini(path, "x=1&alt=sse"),
            expected(Dialect::GeminiSse, true)
        );
        assert_eq!(gemini(path, ""), expected(Dialect::GeminiArray, true));
        assert_eq!(
            gemini("/models/a b:generateContent", ""),
            expected(Dialect::GeminiArray, false)
        );
        let azure = Dialect::of_path("/openai/deployments/m%/chat/completions", "api-version=1");
        assert_eq!(azure.and_then(|spoken| spoken.model), Some("m%".to_owned()));
    }
}
