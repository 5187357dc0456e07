//! Owns the answers that are one body and no stream: errors, the model list, a login page.

use measure::time::Length;
use serde_json::{Value, json};

use super::script::{Act, Ending, Framing, Head, Script, Step, When};

/// One body, whole, at `at`, with its length stated.
pub fn body(status: u16, content_type: &'static str, bytes: Vec<u8>, at: Length) -> Script {
    reply(status, content_type, bytes, at, 0)
}

/// As [`body`], for a body that brings `tokens` of output.
pub fn reply(
    status: u16,
    content_type: &'static str,
    bytes: Vec<u8>,
    at: Length,
    tokens: u64,
) -> Script {
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
        headers: vec![("content-type", content_type)],
        framing: Framing::ContentLength,
        head: Head::WithFirst,
        steps,
    }
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

/// An error object as OpenAI's API shapes it, at once.
pub fn error(status: u16, message: &str, kind: &str, code: Option<&str>) -> Script {
    let error = json!({"message": message, "type": kind, "param": null, "code": code});
    object(status, &json!({ "error": error }))
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
pub fn unknown_model(model: &str) -> Script {
    error(
        404,
        &format!("no model named '{model}' is served here; GET /v1/models lists those that are"),
        "invalid_request_error",
        Some("model_not_found"),
    )
}

/// The model list.
pub fn models<'a>(names: impl Iterator<Item = &'a str>) -> Script {
    let entry = |name| json!({"id": name, "object": "model", "created": 0, "owned_by": "denom"});
    let data: Vec<Value> = names.map(entry).collect();
    object(200, &json!({"object": "list", "data": data}))
}
