//! Owns the recognition of errors, in whatever place of an event a server or gateway puts them.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::text;
use crate::trace::ServerError;

/// The places where an error may lie, over all APIs: gateways mix them.
#[derive(Deserialize)]
struct Carrier<'a> {
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    choices: Option<&'a RawValue>,
    #[serde(borrow, default)]
    x_groq: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
}

/// The error that an event carries, if it carries one.
pub(super) fn carried(name: &[u8], data: &str) -> Option<ServerError> {
    // Nearly every event is none: a search for the words spares the second reading.
    let named = name == b"error";
    let may_fail = text::may_hold(data, "error") || data.contains("response.failed");
    if !named && !may_fail {
        return None;
    }
    let Ok(carrier) = serde_json::from_str::<Carrier<'_>>(data.trim()) else {
        // A key that stands twice must not hide an error.
        return match text::anew(data) {
            Some((anew, _)) if anew != data && anew.starts_with('{') => carried(name, &anew),
            _ => named.then(|| plain(data)),
        };
    };
    let is = |raw: Option<&RawValue>, word: &str| raw.is_some_and(|raw| text::string(raw) == word);
    // As values, since a key may stand twice in them.
    let inner = |raw: Option<&RawValue>| in_member(&text::value(raw?.get())?);
    carrier
        .error
        .and_then(of)
        .or_else(|| in_choices(carrier.choices))
        .or_else(|| inner(carrier.x_groq))
        .or_else(|| inner(carrier.response))
        .or_else(|| {
            let flat = named || is(carrier.kind, "error") || is(carrier.object, "error");
            let failed = is(carrier.kind, "response.failed");
            (flat || failed).then(|| of_text(data).unwrap_or_else(|| plain(data)))
        })
}

fn in_choices(raw: Option<&RawValue>) -> Option<ServerError> {
    let choices = text::value(raw?.get())?;
    let choices = choices.as_array()?;
    choices.iter().find_map(in_member).or_else(|| {
        choices
            .iter()
            .any(|choice| choice["finish_reason"] == "error")
            .then(|| ServerError {
                code: None,
                message: "the finish reason is an error".into(),
            })
    })
}

fn in_member(value: &Value) -> Option<ServerError> {
    of_text(&value.get("error")?.to_string())
}

/// The error in the body of a response whose status is one, or in a field that only errors have.
pub fn error_body(body: &str) -> Option<ServerError> {
    #[derive(Deserialize)]
    struct Detail<'a> {
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
        #[serde(borrow, default)]
        detail: Option<&'a RawValue>,
    }
    let body = body.trim();
    // Gemini's array form brings its error as the only element.
    let body = match body.strip_prefix('[').and_then(|b| b.strip_suffix(']')) {
        Some(inner) if inner.trim_start().starts_with('{') => inner.trim(),
        _ => body,
    };
    let inner = serde_json::from_str::<Detail<'_>>(body)
        .ok()
        .and_then(|given| given.error.or(given.detail));
    match inner {
        Some(raw) => of(raw),
        None => of_text(body),
    }
}

/// An error object or string; null, false and empty values are none.
fn of(raw: &RawValue) -> Option<ServerError> {
    of_text(raw.get())
}

fn of_text(raw: &str) -> Option<ServerError> {
    let given = text::value(raw)?;
    let word = |value: &Value| match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match &given {
        Value::Null | Value::Bool(false) => None,
        Value::String(message) if message.is_empty() => None,
        Value::String(message) => Some(ServerError {
            code: None,
            message: message.clone(),
        }),
        Value::Object(outer) => {
            let inner = given["error"].as_object().unwrap_or(outer);
            let at = |key: &str| inner.get(key).and_then(word);
            let code = at("type")
                .filter(|kind| kind != "error")
                .or_else(|| at("error_type"))
                .or_else(|| at("status"))
                .or_else(|| at("code"));
            let message = at("message")
                .or_else(|| at("error"))
                .unwrap_or_else(|| raw.to_owned());
            Some(ServerError { code, message })
        }
        _ => Some(plain(raw)),
    }
}

fn plain(text: &str) -> ServerError {
    ServerError {
        code: None,
        message: text.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_carrier_of_an_error_is_seen() {
        for data in [
            r#"{"error":{"message":"died","type":"server_error","code":null}}"#,
            r#"{"error":{"message":"died","code":500}}"#,
            r#"{"error":"died"}"#,
            r#"{"error":"died","error_type":"incomplete_generation"}"#,
            r#"{"choices":[{"delta":{},"error":{"message":"died"}}]}"#,
            r#"{"x_groq":{"error":"died"},"choices":[]}"#,
            r#"{"object":"error","message":"died","type":"BadRequestError","code":400}"#,
            r#"{"type":"error","code":null,"message":"died","param":null,"sequence_number":7}"#,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"died"}}"#,
            r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"died"}}}"#,
            r#"{"error":{"code":503,"message":"died","status":"UNAVAILABLE"}}"#,
            r#"{"\u0065rror":{"message":"died"}}"#,
            r#"{"choices":[{"delta":{},"err\u006Fr":{"message":"died"}}]}"#,
            r#"{"type":"\u0065rror","message":"died"}"#,
            r#"{"type":"response.fai\u006ced","message":"died"}"#,
        ] {
            let found = carried(b"", data).map(|error| error.message);
            assert_eq!(found.as_deref(), Some("died"), "{data}");
        }
        for data in [
            r#"{"error":null,"error":{"message":"died"}}"#,
            r#"{"choices":[{"delta":{},"error":{"message":"died"},"index":0,"error":{"message":"died"}}]}"#,
            r#"{"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
            r#"{"type":"response.failed","response":{"error":null}}"#,
            r#"{"error":{}}"#,
            r#"{"choices":[{"delta":{"content":""},"finish_reason":"err\u006fr"}]}"#,
        ] {
            assert!(carried(b"", data).is_some(), "{data}");
        }
        let flat = carried(
            b"error",
            r#"{"code":500,"message":"died","type":"server_error"}"#,
        );
        assert_eq!(flat.and_then(|e| e.code).as_deref(), Some("server_error"));
        assert!(carried(b"error", "no JSON").is_some());
    }

    #[test]
    fn what_is_no_error_is_none() {
        for data in [
            r#"{"error":null,"choices":[]}"#,
            r#"{"error":"","choices":[]}"#,
            r#"{"choices":[{"delta":{"content":"an error"},"finish_reason":null}]}"#,
            r#"{"type":"response.output_text.delta","delta":"response.failed error"}"#,
        ] {
            assert_eq!(carried(b"", data), None, "{data}");
        }
    }

    #[test]
    fn bodies_of_refusals_are_read_in_every_shape() {
        for (body, code, message) in [
            (
                r#"{"error":{"message":"no key","type":"auth"}}"#,
                Some("auth"),
                "no key",
            ),
            (r#"{"detail":"Not Found"}"#, None, "Not Found"),
            (
                r#"[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]"#,
                Some("UNAVAILABLE"),
                "busy",
            ),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
                Some("overloaded_error"),
                "busy",
            ),
            (
                r#"{"error":"model 'x' not found"}"#,
                None,
                "model 'x' not found",
            ),
        ] {
            let error = error_body(body).expect(body);
            assert_eq!(
                (error.code.as_deref(), error.message.as_str()),
                (code, message)
            );
        }
        assert_eq!(error_body("plain text"), None);
    }
}
