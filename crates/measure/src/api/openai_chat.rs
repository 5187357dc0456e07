//! Owns OpenAI chat completions: how to ask, and where.

use serde_json::{Map, Value, json};

use super::openai::OpenaiReader;
use super::{Ask, Dialect, Framing, Key, LimitField, Owner, Route, names};

/// OpenAI chat completions.
pub(super) const DIALECT: Dialect = Dialect {
    name: "openai-chat",
    framing: Framing::Sse,
    sentinel: true,
    prefix: "/v1",
    routes: &[Route::both("/chat/completions")],
    owns: &[
        ("/model", Owner::Model),
        ("/max_tokens", Owner::Limit),
        ("/max_completion_tokens", Owner::Limit),
        ("/messages", Owner::Prompt),
    ],
    models: "/models",
    listed: |list| names(list, "data", "id"),
    key: Key::bearer(&["OPENAI_API_KEY"]),
    headers: &[],
    ask,
    reader: || Box::new(OpenaiReader::default()),
};

fn ask(ask: &Ask<'_>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    body.insert("messages".into(), ask.messages.turns());
    stream(&mut body, ask);
    let limit = match ask.limit_field {
        LimitField::MaxTokens => "max_tokens",
        LimitField::MaxCompletionTokens => "max_completion_tokens",
    };
    body.insert(limit.into(), json!(ask.output_tokens));
    body
}

/// Asks for a stream with counts, as OpenAI's older APIs both do.
pub(super) fn stream(body: &mut Map<String, Value>, ask: &Ask<'_>) {
    body.insert("stream".into(), json!(ask.stream));
    if ask.stream && ask.usage {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
}
