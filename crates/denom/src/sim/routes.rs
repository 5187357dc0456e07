//! Owns the way from a request to its script.

use serde_json::json;

use super::ask::{Ask, MOST_TOKENS};
use super::connection::Incoming;
use super::ledger::{End, Record};
use super::script::Script;
use super::{replies, scripts};

/// Memory a script takes for each token, at most, in bytes.
const BYTES_A_TOKEN: usize = 640;
/// Memory of all scripts being played, in bytes: room for one answer of the longest kind.
pub const SCRIPT_LIMIT: usize = 1024 * 1024 * 1024;
const _: () = assert!(BYTES_A_TOKEN * MOST_TOKENS as usize <= SCRIPT_LIMIT);

/// What a request gets.
pub struct Answer {
    /// The script to play.
    pub script: Script,
    /// Whether the client understands chunks.
    pub chunks: bool,
    /// Whether the client wants the connection kept open.
    pub keep: bool,
    /// The ledger's record, still without writes; `None` if the request was no chat.
    pub record: Option<Record>,
}

/// The answer to what came at `received`, in nanoseconds of the monotonic clock: a request, or the
/// refusal of one that could not be read. `serial` is its nonce, `held` the bytes of all scripts
/// being played.
pub fn answer(incoming: Incoming, received: u64, serial: u64, held: usize) -> Answer {
    let (request, body) = match incoming {
        Incoming::Request(request, body) => (request, body),
        Incoming::Refused(script) => {
            return Answer {
                script,
                chunks: true,
                keep: false,
                record: None,
            };
        }
    };
    let (script, asked) = match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/v1/chat/completions" | "/chat/completions") => {
            chat(&body, serial, request.key, held)
        }
        ("GET", "/v1/models" | "/models") => (models(), None),
        ("GET", "/health") => (replies::object(200, &json!({"status": "ok"})), None),
        (method, path) => (nowhere(method, path), None),
    };
    Answer {
        script,
        chunks: request.chunks,
        keep: request.keep_alive,
        record: asked.map(|asked| record(request.id, asked, received)),
    }
}

/// What a chat asked for, as far as it could be read: the model and the prompt's head.
type Asked = (String, String);

fn record(request: Option<String>, (model, prompt_head): Asked, received_ns: u64) -> Record {
    Record {
        request,
        model,
        prompt_head,
        received_ns,
        writes: Vec::new(),
        end_ns: received_ns,
        end: End::Done,
    }
}

fn models() -> Script {
    replies::models(scripts::names().map(|(name, _)| name))
}

fn chat(body: &[u8], serial: u64, key: Option<String>, held: usize) -> (Script, Option<Asked>) {
    let ask = match Ask::from_json(body, serial, key) {
        Ok(ask) => ask,
        Err(reason) => {
            let script = replies::error(400, &reason, "invalid_request_error", None);
            return (script, Some((String::new(), String::new())));
        }
    };
    let script = if needed(&ask) > SCRIPT_LIMIT.saturating_sub(held) {
        let reason = "the scripts being played fill 1 GiB: ask for fewer tokens or streams";
        replies::error(503, reason, "server_error", None)
    } else {
        scripts::script(&ask.model, &ask).unwrap_or_else(|| replies::unknown_model(&ask.model))
    };
    (script, Some((ask.model, ask.prompt_head)))
}

fn needed(ask: &Ask) -> usize {
    usize::try_from(ask.tokens()).map_or(usize::MAX, |tokens| tokens * BYTES_A_TOKEN)
}

fn nowhere(method: &str, path: &str) -> Script {
    let message = format!(
        "nothing answers {method} {path} here: POST /v1/chat/completions, GET /v1/models, GET /health"
    );
    replies::error(404, &message, "invalid_request_error", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_memory_has_no_room_for_is_refused() {
        let body = br#"{"model":"null","stream":true,"max_tokens":1000}"#;
        let status = |held| chat(body, 1, None, held).0.status;
        let room = 1_000 * BYTES_A_TOKEN;
        assert_eq!(status(SCRIPT_LIMIT - room), 200);
        assert_eq!(status(SCRIPT_LIMIT - room + 1), 503);
    }
}
