//! Owns the reading of what servers say of their own timing, in the forms they use.

use serde_json::Value;
use serde_json::value::RawValue;

use super::text;
use super::usage::Counts;
use crate::time::Length;
use crate::trace::Declared;

/// Seconds as a server writes them; `None` for what is no length of time.
pub(super) fn seconds(value: &Value) -> Option<Length> {
    length(value.as_f64()?)
}

/// A length of so many seconds; `None` for what is none.
pub(crate) fn length(seconds: f64) -> Option<Length> {
    (seconds.is_finite() && (0.0..1e9).contains(&seconds))
        .then(|| Length::from_nanos((seconds * 1e9).round() as u64))
}

/// llama.cpp's `timings`.
pub(super) fn llama(raw: &RawValue) -> Option<Declared> {
    let timings = text::value(raw.get())?;
    timings.as_object()?;
    let millis = |key: &str| length(timings[key].as_f64()? / 1e3);
    let mut counts = Counts::of(&timings);
    Some(Declared {
        prompt: millis("prompt_ms"),
        prompt_tokens: counts.at("/prompt_n"),
        output: millis("predicted_ms"),
        output_tokens: counts.at("/predicted_n"),
        ..Declared::default()
    })
}

/// The times that Groq puts into its usage.
pub(super) fn in_usage(raw: &RawValue) -> Option<Declared> {
    if !text::may_hold(raw.get(), "completion_time") {
        return None;
    }
    let usage = text::value(raw.get())?;
    let mut counts = Counts::of(&usage);
    Some(Declared {
        prompt: seconds(&usage["prompt_time"]),
        prompt_tokens: counts.at("/prompt_tokens"),
        output: seconds(&usage["completion_time"]),
        output_tokens: counts.at("/completion_tokens"),
        queue: seconds(&usage["queue_time"]),
        ..Declared::default()
    })
}

/// Fireworks' `perf_metrics`: its time to the first token, and to the last.
pub(super) fn fireworks(raw: &RawValue) -> Option<Declared> {
    let metrics = text::value(raw.get())?;
    // Some builds write the numbers as strings.
    let of = |key: &str| match &metrics[key] {
        Value::String(text) => length(text.parse().ok()?),
        value => seconds(value),
    };
    let first = of("server-time-to-first-token")?;
    Some(Declared {
        first: Some(first),
        queue: of("prefill-queue-duration"),
        ..Declared::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn declared_timings_are_lengths() {
        let given = raw(r#"{"prompt_n":9,"prompt_ms":30.5,"predicted_n":2,"predicted_ms":20.25}"#);
        let declared = llama(given).expect("timings");
        assert_eq!(declared.output, Some(Length::from_nanos(20_250_000)));
        assert_eq!(declared.prompt_tokens, Some(9));
        let given = raw(r#"{"server-time-to-first-token":"0.12"}"#);
        let first = fireworks(given).and_then(|declared| declared.first);
        assert_eq!(first, Some(Length::from_millis(120)));
        assert_eq!(in_usage(raw(r#"{"prompt_tokens":1}"#)), None);
        let escaped = raw(r#"{"completion\u005ftime":0.5}"#);
        let output = in_usage(escaped).and_then(|declared| declared.output);
        assert_eq!(output, Some(Length::from_millis(500)));
        assert_eq!(seconds(&Value::from(-1.0)), None);
    }
}
