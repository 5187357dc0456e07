//! Owns the answers that are one body and no stream: errors and lists, each in its API's own shape.

use measure::time::Length;
use serde_json::{Value, json};

use super::dialect::Dialect;
use super::script::{Act, Ending, Framing, Head, Script, Step, When};
use super::voices::error_of_gemini;

/// One body, whole, at `at`, with its length stated.
pub fn body(status: u16, content_type: &str, bytes: Vec<u8>, at: Length) -> Script {
    reply(status, content_type, bytes, at, 0)
}

/// As [`body`], for a body that brings `tokens` of output.
pub fn reply(status: u16, content_type: &str, bytes: Vec<u8>, at: Length, tokens: u64) -> Script {
    let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
    let steps = vec![
        Step {
            when: When::At(at),
            act: Act::Write { bytes, tokens },
        },
        Step {
            when: When::At(at),
            act: Act::End(Ending::Proper),
        },
    ];
    Script {
        status,
        headers: headers(content_type),
        framing: Framing::ContentLength,
        head: Head::WithFirst,
        steps,
        most_at_once: None,
    }
}

/// The headers of a body of this type.
pub fn headers(content_type: &str) -> Vec<(String, String)> {
    vec![("content-type".to_owned(), content_type.to_owned())]
}

/// A JSON body, at once.
pub fn object(status: u16, value: &Value) -> Script {
    body(
        status,
        "application/json",
        value.to_string().into_bytes(),
        Length::ZERO,
    )
}

/// An error object as OpenAI's API shapes it, at once: also for what is no request of any API.
pub fn error(status: u16, message: &str, kind: &str, code: Option<&str>) -> Script {
    let error = json!({"message": message, "type": kind, "param": null, "code": code});
    object(status, &json!({ "error": error }))
}

/// An error as this API shapes it, at once. `kind` and `code` are OpenAI's names for it.
pub fn refusal(
    dialect: Dialect,
    status: u16,
    message: &str,
    kind: &str,
    code: Option<&str>,
) -> Script {
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiCompletions | Dialect::OpenaiResponses => {
            error(status, message, kind, code)
        }
        Dialect::AnthropicMessages => {
            let error = json!({"type": kind_of_anthropic(status), "message": message});
            object(
                status,
                &json!({"type": "error", "error": error, "request_id": "req_sim"}),
            )
        }
        Dialect::GeminiSse | Dialect::GeminiArray => {
            object(status, &error_of_gemini(status, message))
        }
        Dialect::OllamaChat | Dialect::OllamaGenerate => {
            object(status, &json!({ "error": message }))
        }
        Dialect::Tgi => {
            let kind = if status < 500 {
                "validation"
            } else {
                "generation"
            };
            object(status, &json!({"error": message, "error_type": kind}))
        }
    }
}

fn kind_of_anthropic(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

/// A refusal of one parameter, which it names.
pub fn parameter(name: &str, message: &str) -> Script {
    let error = json!({
        "message": message, "type": "invalid_request_error", "param": name,
        "code": "unsupported_parameter"
    });
    object(400, &json!({ "error": error }))
}

/// What a request for a model nobody serves gets.
pub fn unknown_model(dialect: Dialect, model: &str) -> Script {
    refusal(
        dialect,
        404,
        &format!("no model named '{model}' is served here; GET /v1/models lists those that are"),
        "invalid_request_error",
        Some("model_not_found"),
    )
}

/// Whose form a list of models has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// OpenAI's.
    Openai,
    /// Anthropic's.
    Anthropic,
    /// Gemini's.
    Gemini,
    /// Ollama's.
    Ollama,
}

/// The model list.
pub fn models<'a>(list: List, names: impl Iterator<Item = &'a str>) -> Script {
    let entry = |name: &str| match list {
        List::Openai => json!({"id": name, "object": "model", "created": 0, "owned_by": "denom"}),
        List::Anthropic => json!({
            "type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"
        }),
        List::Gemini => json!({
            "name": format!("models/{name}"), "displayName": name,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent"]
        }),
        List::Ollama => json!({
            "name": name, "model": name, "modified_at": "2026-01-01T00:00:00Z", "size": 0,
            "digest": "", "details": ollama_details()
        }),
    };
    let entries: Vec<Value> = names.map(entry).collect();
    let (first, last) = (entries.first(), entries.last());
    object(
        200,
        &match list {
            List::Openai => json!({"object": "list", "data": entries}),
            List::Anthropic => json!({
                "first_id": first.map(|entry| &entry["id"]),
                "last_id": last.map(|entry| &entry["id"]),
                "has_more": false, "data": entries
            }),
            List::Gemini | List::Ollama => json!({ "models": entries }),
        },
    )
}

/// What Ollama tells of a model.
pub fn show() -> Script {
    object(
        200,
        &json!({"details": ollama_details(), "model_info": {}, "capabilities": ["completion"]}),
    )
}

/// What Text Generation Inference tells of itself.
pub fn info() -> Script {
    object(
        200,
        &json!({"model_id": "normal", "version": "sim", "max_input_tokens": 1_000_000}),
    )
}

fn ollama_details() -> Value {
    json!({"format": "script", "family": "denom", "parameter_size": "0", "quantization_level": ""})
}
