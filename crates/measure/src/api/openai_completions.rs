//! Owns OpenAI's older completions: how to ask, and where.

use serde_json::{Map, Value, json};

use super::{Ask, Dialect, Owner, Route, openai_chat};

/// OpenAI's completions.
pub(super) const DIALECT: Dialect = Dialect {
    name: "openai-completions",
    routes: &[Route::both("/completions")],
    owns: &[
        ("/model", Owner::Model),
        ("/max_tokens", Owner::Limit),
        ("/n_predict", Owner::Limit),
        ("/prompt", Owner::Prompt),
    ],
    ask,
    ..openai_chat::DIALECT
};

fn ask(ask: &Ask<'_>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    body.insert("prompt".into(), json!(ask.messages.text()));
    openai_chat::stream(&mut body, ask);
    body.insert("max_tokens".into(), json!(ask.output_tokens));
    body
}

#[cfg(test)]
mod tests {
    use crate::api::openai::OpenaiReader;
    use crate::api::{Event, Reader};
    use crate::trace::Finish;

    fn event(data: &str) -> Event {
        OpenaiReader::default()
            .read(b"", data, None)
            .expect("reads")
    }

    #[test]
    fn text_is_content_and_may_come_with_the_finish() {
        let first = event(
            r#"{"object":"text_completion","choices":[{"index":0,"text":"Hi","finish_reason":null}]}"#,
        );
        assert_eq!((first.answer_chars, first.finish), (2, None));
        let last = event(r#"{"choices":[{"index":0,"text":"!","finish_reason":"length"}]}"#);
        assert_eq!((last.answer_chars, last.finish), (1, Some(Finish::Length)));
        let end = event(
            r#"{"choices":[{"text":"","index":0,"finish_reason":"stop"}],"usage":{"completion_tokens":12,"prompt_tokens":2,"total_tokens":14},"timings":{"predicted_n":12,"predicted_ms":4965.5}}"#,
        );
        assert!(!end.is_content() && end.usage.is_some() && end.declared.is_some());
    }
}
