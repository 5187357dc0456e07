//! Owns what a request asks for, read from its JSON body in the way of its API.

use serde_json::Value;

use super::dialect::{Dialect, Spoken};

/// Output tokens when the request names no number.
pub const DEFAULT_TOKENS: u64 = 64;
/// Output tokens a script gives at most, whatever is asked for.
pub const MOST_TOKENS: u64 = 1_000_000;
/// The longest name of a model, in bytes.
const MODEL_BYTES: usize = 4_096;
/// Characters of the prompt that an ask keeps.
const HEAD_CHARACTERS: usize = 64;
/// Members of a body that hold text of the prompt, in any API.
const TEXTS: &[&str] = &[
    "system",
    "instructions",
    "messages",
    "contents",
    "input",
    "inputs",
    "prompt",
    "content",
    "parts",
    "text",
];

/// What one request asks for: all that a script depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The API, and so the form of the answer.
    pub dialect: Dialect,
    /// The model, which names the script; behind `=` stands the script's parameter, if any.
    pub model: String,
    /// A number no other request of this server has: the nonce of its tokens.
    pub serial: u64,
    /// Requests for this model that the server had before.
    pub before: u64,
    /// The limit of output tokens, by whichever name it was given.
    pub max_tokens: Option<u64>,
    /// Whether it was given as `max_tokens`, which OpenAI's chat API calls outdated.
    pub legacy_max_tokens: bool,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Whether `stream_options` was given at all.
    pub stream_options: bool,
    /// Whether usage is to be told; asked for only in OpenAI's older APIs.
    pub include_usage: bool,
    /// Words of all texts of the prompt, which pass for prompt tokens here.
    pub prompt_tokens: u64,
    /// The first 64 characters of the last message.
    pub prompt_head: String,
    /// The key as sent, for the scripts that echo it.
    pub key: Option<String>,
    /// Whether it came over HTTP/2.
    pub http2: bool,
}

/// What stands in a request besides its body.
#[derive(Debug, Clone, Default)]
pub struct Around {
    /// The request's number.
    pub serial: u64,
    /// The key, from whichever header carries it.
    pub key: Option<String>,
    /// The model named by the query or by the header `x-denom-model`.
    pub model: Option<String>,
    /// Whether the request came over HTTP/2.
    pub http2: bool,
}

impl Ask {
    /// An ask for a chat stream with usage, as denom sends it, with nothing else said.
    pub fn of(model: &str) -> Self {
        Ask {
            dialect: Dialect::OpenaiChat,
            model: model.to_owned(),
            serial: 0,
            before: 0,
            max_tokens: None,
            legacy_max_tokens: false,
            stream: true,
            stream_options: true,
            include_usage: true,
            prompt_tokens: 16,
            prompt_head: String::new(),
            key: None,
            http2: false,
        }
    }

    /// Reads a request body. The error is a sentence about what is wrong with it.
    pub fn read(spoken: &Spoken, body: &[u8], around: Around) -> Result<Self, String> {
        let dialect = spoken.dialect;
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the body is no {} request: {error}", dialect.name()))?;
        if !body.is_object() {
            return Err(format!(
                "the body is no {} request: it must be a JSON object",
                dialect.name()
            ));
        }
        let named = body["model"].as_str().map(str::to_owned);
        let model = (spoken.model.clone().or(named).or(around.model))
            .or_else(|| (dialect == Dialect::Tgi).then(|| "normal".to_owned()))
            .ok_or("the body names no model")?;
        if model.len() > MODEL_BYTES {
            return Err("the model's name is over 4,096 bytes".to_owned());
        }
        let options = body.get("stream_options").filter(|value| !value.is_null());
        let mut texts = Vec::new();
        gather(&body, &mut texts);
        Ok(Ask {
            dialect,
            model,
            serial: around.serial,
            before: 0,
            max_tokens: limit(dialect, &body)?,
            legacy_max_tokens: body["max_tokens"].is_u64(),
            stream: stream(spoken, &body)?,
            stream_options: options.is_some(),
            include_usage: !asks_for_usage(dialect)
                || options.is_some_and(|options| options["include_usage"] == true),
            prompt_tokens: texts.iter().map(|text| words(text)).sum(),
            prompt_head: last_message(&body),
            key: around.key,
            http2: around.http2,
        })
    }

    /// Output tokens to give: what was asked for, within 1 to 1,000,000, or 64.
    pub fn tokens(&self) -> u64 {
        self.max_tokens
            .unwrap_or(DEFAULT_TOKENS)
            .clamp(1, MOST_TOKENS)
    }

    /// The name of the script.
    pub fn script(&self) -> &str {
        self.model
            .split_once('=')
            .map_or(self.model.as_str(), |(name, _)| name)
    }

    /// The script's parameter.
    pub fn parameter(&self) -> Option<&str> {
        self.model.split_once('=').map(|(_, parameter)| parameter)
    }
}

/// Where each API states its limit of output tokens; the first one given counts.
fn limits(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::OpenaiChat => &["/max_completion_tokens", "/max_tokens"],
        Dialect::OpenaiCompletions | Dialect::AnthropicMessages => &["/max_tokens"],
        Dialect::OpenaiResponses => &["/max_output_tokens"],
        Dialect::GeminiSse | Dialect::GeminiArray => &[
            "/generationConfig/maxOutputTokens",
            "/generation_config/max_output_tokens",
        ],
        Dialect::OllamaChat | Dialect::OllamaGenerate => &["/options/num_predict"],
        Dialect::Tgi => &["/parameters/max_new_tokens"],
    }
}

fn limit(dialect: Dialect, body: &Value) -> Result<Option<u64>, String> {
    let mut given = limits(dialect)
        .iter()
        .filter_map(|place| body.pointer(place).map(|value| (*place, value)))
        .filter(|(_, value)| !value.is_null());
    let Some((place, value)) = given.next() else {
        return Ok(None);
    };
    let place = place.trim_start_matches('/');
    match value.as_i64() {
        Some(0) => Err(format!("{place} is 0: ask for at least one token")),
        // Ollama takes a negative number for no limit.
        Some(..0) if place == "options/num_predict" => Ok(None),
        Some(number) => u64::try_from(number)
            .map(Some)
            .map_err(|_| format!("{place} is negative: ask for at least one token")),
        None => Err(format!("{place} is no whole number")),
    }
}

fn stream(spoken: &Spoken, body: &Value) -> Result<bool, String> {
    match (spoken.stream, &body["stream"]) {
        (Some(stream), _) => Ok(stream),
        (None, Value::Null) => Ok(spoken.dialect.streams_by_default()),
        (None, Value::Bool(stream)) => Ok(*stream),
        (None, _) => Err("stream is neither true nor false".to_owned()),
    }
}

fn asks_for_usage(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions)
}

/// Every text of the prompt. The reader of the body bounds how deep it can be.
fn gather<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(all) => all.iter().for_each(|value| gather(value, texts)),
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| TEXTS.contains(&name.as_str()))
            .for_each(|(_, value)| gather(value, texts)),
        _ => {}
    }
}

fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

fn last_message(body: &Value) -> String {
    let mut held = ["messages", "contents", "input", "inputs", "prompt"]
        .iter()
        .filter_map(|name| body.get(*name));
    let last = held.next().map(|value| match value {
        Value::Array(all) => all.last().unwrap_or(&Value::Null),
        value => value,
    });
    let mut texts = Vec::new();
    if let Some(last) = last {
        gather(last, &mut texts);
    }
    let characters = texts.into_iter().flat_map(str::chars);
    characters.take(HEAD_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask_by(path: &str, json: &str) -> Result<Ask, String> {
        let spoken = Dialect::of_path(path, "").expect("a path that is served");
        let around = Around {
            serial: 7,
            ..Around::default()
        };
        Ask::read(&spoken, json.as_bytes(), around)
    }

    fn ask(json: &str) -> Result<Ask, String> {
        ask_by("/v1/chat/completions", json)
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
    fn every_api_states_limit_stream_and_prompt_in_its_own_way() {
        let cases = [
            (
                "/v1/completions",
                r#"{"model":"m","prompt":"a b c","max_tokens":9,"stream":true}"#,
            ),
            (
                "/v1/responses",
                r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"a b c"}]}],"max_output_tokens":9,"stream":true}"#,
            ),
            (
                "/v1/messages",
                r#"{"model":"m","system":"a","messages":[{"role":"user","content":"b c"}],"max_tokens":9,"stream":true}"#,
            ),
            (
                "/v1beta/models/m:streamGenerateContent",
                r#"{"contents":[{"role":"user","parts":[{"text":"a b c"}]}],"generationConfig":{"maxOutputTokens":9}}"#,
            ),
            (
                "/api/chat",
                r#"{"model":"m","messages":[{"role":"user","content":"a b c"}],"options":{"num_predict":9}}"#,
            ),
            (
                "/api/generate",
                r#"{"model":"m","prompt":"a b c","options":{"num_predict":9}}"#,
            ),
            (
                "/generate_stream?model=m",
                r#"{"inputs":"a b c","parameters":{"max_new_tokens":9}}"#,
            ),
        ];
        for (path, body) in cases {
            let path = path.split('?').next().unwrap_or_default();
            let asked = ask_by(path, body).expect(path);
            let seen = (asked.max_tokens, asked.stream, asked.prompt_tokens);
            assert_eq!(seen, (Some(9), true, 3), "{path}");
            assert!(asked.prompt_head.ends_with("b c"), "{path}");
            let legacy = path == "/v1/completions";
            assert_eq!(asked.include_usage, !legacy, "{path}");
        }
    }

    #[test]
    fn the_newer_name_of_the_limit_wins_and_none_means_the_default() {
        let both = r#"{"model":"m","max_tokens":5,"max_completion_tokens":9}"#;
        assert_eq!(ask(both).map(|ask| ask.tokens()), Ok(9));
        let bare = ask(r#"{"model":"m"}"#).expect("a model is enough");
        assert_eq!((bare.tokens(), bare.stream), (64, false));
        let huge = r#"{"model":"m","max_tokens":99999999}"#;
        assert_eq!(ask(huge).map(|ask| ask.tokens()), Ok(MOST_TOKENS));
        let endless = r#"{"model":"m","options":{"num_predict":-1},"stream":false}"#;
        let endless = ask_by("/api/generate", endless).expect("it is Ollama's way");
        assert_eq!((endless.max_tokens, endless.stream), (None, false));
    }

    #[test]
    fn a_model_may_carry_a_parameter() {
        let asked = Ask::of("http307=http://a/?b=c");
        assert_eq!(asked.script(), "http307");
        assert_eq!(asked.parameter(), Some("http://a/?b=c"));
        assert_eq!(Ask::of("normal").parameter(), None);
    }

    #[test]
    fn a_body_that_is_no_request_is_refused_with_a_reason() {
        for bad in [
            "",
            "{",
            "[]",
            r#"{"messages":[]}"#,
            r#"{"model":"m","max_tokens":0}"#,
            r#"{"model":"m","max_tokens":-1}"#,
            r#"{"model":"m","max_tokens":"5"}"#,
            r#"{"model":"m","stream":"yes"}"#,
        ] {
            assert!(ask(bad).is_err(), "{bad}");
        }
        let long = format!(r#"{{"model":"{}"}}"#, "m".repeat(MODEL_BYTES + 1));
        assert!(ask(&long).is_err());
        assert!(ask_by("/generate", r#"{"inputs":"a"}"#).is_ok());
    }
}
