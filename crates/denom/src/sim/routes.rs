//! Owns the way from a request to its script.

use std::collections::HashMap;

use serde_json::json;

use super::ask::{Around, Ask, MOST_TOKENS};
use super::connection::Incoming;
use super::dialect::{Dialect, Spoken, parameter};
use super::http::{Request, Version};
use super::ledger::{End, Record};
use super::library::Library;
use super::replies::{self, List};
use super::script::Script;
use super::scripts;

/// Memory a script takes for each token, at most, in bytes.
pub const BYTES_A_TOKEN: usize = 640;
/// Memory of all scripts being played, in bytes: room for one answer of the longest kind.
pub const SCRIPT_LIMIT: usize = 1024 * 1024 * 1024;
const _: () = assert!((BYTES_A_TOKEN + 256) * MOST_TOKENS as usize <= SCRIPT_LIMIT);
/// Models whose requests are counted; further ones always look like asked for the first time.
const COUNTED_MODELS: usize = 4_096;

/// What a request gets.
pub struct Answer {
    /// The script to play.
    pub script: Script,
    /// How the request came.
    pub version: Version,
    /// Whether the client wants the connection kept open.
    pub keep: bool,
    /// The ledger's record, still without writes; `None` if the request asked for no output.
    pub record: Option<Record>,
}

/// What a server knows of the requests it had.
#[derive(Debug, Default)]
pub struct Past {
    /// Requests so far, of whatever kind.
    pub requests: u64,
    /// Requests by model.
    models: HashMap<String, u64>,
}

impl Past {
    /// How many requests for `model` came before this one, which is counted.
    fn before(&mut self, model: &str) -> u64 {
        if let Some(count) = self.models.get_mut(model) {
            *count += 1;
            return *count - 1;
        }
        if self.models.len() < COUNTED_MODELS {
            self.models.insert(model.to_owned(), 1);
        }
        0
    }
}

/// What an answer depends on besides the request.
pub struct Known<'a> {
    /// The requests before.
    pub past: &'a mut Past,
    /// Scripts from a file.
    pub library: &'a Library,
    /// The script that is played whatever the model's name is.
    pub only: Option<&'static str>,
    /// Bytes of all scripts being played.
    pub held: usize,
}

/// The answer to what came at `received`, in nanoseconds of the monotonic clock: a request, or the
/// refusal of one that could not be read.
pub fn answer(incoming: Incoming, received: u64, known: Known<'_>) -> Answer {
    known.past.requests += 1;
    let (request, body) = match incoming {
        Incoming::Request(request, body) => (request, body),
        Incoming::Refused(script) => {
            return Answer {
                script,
                // Only HTTP/1.1 has requests that an answer refuses unread.
                version: Version::Http11,
                keep: false,
                record: None,
            };
        }
    };
    let spoken = match request.method.as_str() {
        "POST" => Dialect::of_path(&request.path, &request.query),
        _ => None,
    };
    let (script, asked) = match spoken {
        Some(spoken) => {
            let (script, asked) = generation(&request, &spoken, &body, known);
            (script, Some(asked))
        }
        None => (about(&request, known.library), None),
    };
    Answer {
        script,
        version: request.version,
        keep: request.keep_alive,
        record: asked.map(|asked| record(request.id, asked, received)),
    }
}

/// What was asked for, as far as it could be read: the model and the prompt's head.
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

/// What is asked about the server itself.
fn about(request: &Request, library: &Library) -> Script {
    let path = request.path.as_str();
    let names = scripts::names()
        .map(|(name, _)| name)
        .chain(library.names());
    match request.method.as_str() {
        "GET" if path.ends_with("/v1beta/models") => replies::models(List::Gemini, names),
        "GET" if path.ends_with("/models") && request.gemini => {
            replies::models(List::Gemini, names)
        }
        "GET" if path.ends_with("/models") && request.anthropic => {
            replies::models(List::Anthropic, names)
        }
        "GET" if path.ends_with("/models") => replies::models(List::Openai, names),
        "GET" if path.ends_with("/api/tags") => replies::models(List::Ollama, names),
        "GET" if path.ends_with("/api/version") => {
            replies::object(200, &json!({"version": "0.0.0-sim"}))
        }
        "POST" if path.ends_with("/api/show") => replies::show(),
        "GET" if path == "/info" => replies::info(),
        "GET" if path == "/health" => replies::object(200, &json!({"status": "ok"})),
        method => nowhere(method, path),
    }
}

fn generation(
    request: &Request,
    spoken: &Spoken,
    body: &[u8],
    known: Known<'_>,
) -> (Script, Asked) {
    let around = Around {
        serial: known.past.requests,
        key: request.key.clone(),
        model: parameter(&request.query, "model").or_else(|| request.model.clone()),
        http2: matches!(request.version, Version::Http2 { .. }),
    };
    let mut ask = match Ask::read(spoken, body, around) {
        Ok(ask) => ask,
        Err(reason) => {
            let kind = "invalid_request_error";
            let script = replies::refusal(spoken.dialect, 400, &reason, kind, None);
            return (script, (String::new(), String::new()));
        }
    };
    ask.before = known.past.before(&ask.model);
    let room = SCRIPT_LIMIT.saturating_sub(known.held);
    let found = match (known.only, known.library.script(&ask.model)) {
        (None, Some(script)) => (held(script) <= room).then(|| Some(script.clone())),
        (only, _) => {
            let name = only.unwrap_or(ask.script());
            (needed(&ask) <= room).then(|| scripts::script(name, &ask))
        }
    };
    let script = match found {
        Some(Some(script)) => script,
        Some(None) => replies::unknown_model(ask.dialect, &ask.model),
        None => {
            let reason = "the scripts being played fill 1 GiB: ask for fewer tokens or streams";
            replies::refusal(ask.dialect, 503, reason, "server_error", None)
        }
    };
    (script, (ask.model, ask.prompt_head))
}

/// Each event may bear the model's name.
fn needed(ask: &Ask) -> usize {
    let each = BYTES_A_TOKEN + ask.model.len();
    usize::try_from(ask.tokens()).map_or(usize::MAX, |tokens| tokens.saturating_mul(each))
}

fn held(script: &Script) -> usize {
    let held: u64 = script.steps.iter().map(|step| step.act.held()).sum();
    usize::try_from(held).unwrap_or(usize::MAX)
}

fn nowhere(method: &str, path: &str) -> Script {
    let message = format!(
        "nothing answers {method} {path} here: POST /v1/chat/completions, /v1/completions, \
         /v1/responses, /v1/messages, /v1beta/models/MODEL:streamGenerateContent, /api/chat, \
         /api/generate or /generate_stream; GET /v1/models, GET /health"
    );
    replies::error(404, &message, "invalid_request_error", None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::http::{Parsed, parse};

    fn asked(held: usize, past: &mut Past, library: &Library) -> Script {
        let body = r#"{"model":"null","stream":true,"max_tokens":1000}"#;
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let Parsed::Whole(request) = parse(request.as_bytes()) else {
            panic!("the request is whole");
        };
        let known = Known {
            past,
            library,
            only: None,
            held,
        };
        answer(Incoming::Request(request, body.into()), 0, known).script
    }

    #[test]
    fn an_answer_that_memory_has_no_room_for_is_refused() {
        let status = |held| asked(held, &mut Past::default(), &Library::default()).status;
        let room = 1_000 * (BYTES_A_TOKEN + "null".len());
        assert_eq!(status(SCRIPT_LIMIT - room), 200);
        assert_eq!(status(SCRIPT_LIMIT - room + 1), 503);
    }

    #[test]
    fn one_script_may_be_played_whatever_the_model() {
        let body = r#"{"model":"nobody-knows","stream":true,"max_tokens":3}"#;
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let status = |only| {
            let Parsed::Whole(request) = parse(request.as_bytes()) else {
                panic!("the request is whole");
            };
            let known = Known {
                past: &mut Past::default(),
                library: &Library::default(),
                only,
                held: 0,
            };
            answer(Incoming::Request(request, body.into()), 0, known)
                .script
                .status
        };
        assert_eq!((status(Some("null")), status(None)), (200, 404));
    }

    #[test]
    fn requests_are_counted_by_model() {
        let mut past = Past::default();
        let counts = ["a", "b", "a", "a"].map(|model| past.before(model));
        assert_eq!(counts, [0, 0, 1, 2]);
    }
}
