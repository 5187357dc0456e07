//! Every script of the simulated server, in every API that can say it: judged as its catalogue says.

use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use denom::sim::ask::Ask;
use denom::sim::dialect::Dialect;
use denom::sim::script::{Ending, Script};
use denom::sim::scripts::catalog::{Delivered, Entry, entries};
use denom::sim::scripts::script;
use denom::sim::server::{Config, Running, Server};
use measure::api::Api;
use measure::decode::{Decoder, Options};
use measure::judge::{Guards, Judged, judge};
use measure::stamp::{Stamp, StampSource};
use measure::time::{Instant, Length};
use measure::trace::{Phase, Trace, Transport};
use serde_json::Value;

use super::run::Folder;

/// Tokens asked for.
const TOKENS: u64 = 64;
/// Runs at once: they wait for the server most of the time.
const AT_ONCE: usize = 12;

fn api(dialect: Dialect) -> Api {
    match dialect {
        Dialect::OpenaiChat => Api::OpenaiChat,
        Dialect::OpenaiCompletions => Api::OpenaiCompletions,
        Dialect::OpenaiResponses => Api::OpenaiResponses,
        Dialect::AnthropicMessages => Api::Anthropic,
        Dialect::GeminiSse | Dialect::GeminiArray => Api::Gemini,
        Dialect::OllamaChat | Dialect::OllamaGenerate => Api::Ollama,
        Dialect::Tgi => Api::Tgi,
    }
}

/// Where a script is asked for in an API.
fn path(dialect: Dialect, model: &str) -> String {
    match dialect {
        Dialect::OpenaiChat => "/v1/chat/completions".into(),
        Dialect::OpenaiCompletions => "/v1/completions".into(),
        Dialect::OpenaiResponses => "/v1/responses".into(),
        Dialect::AnthropicMessages => "/v1/messages".into(),
        Dialect::GeminiSse => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        Dialect::GeminiArray => format!("/v1beta/models/{model}:streamGenerateContent"),
        Dialect::OllamaChat => "/api/chat".into(),
        Dialect::OllamaGenerate => "/api/generate".into(),
        Dialect::Tgi => format!("/generate_stream?model={model}"),
    }
}

fn stamp(at: Length) -> Stamp {
    Stamp {
        at: Instant::ORIGIN + at,
        source: StampSource::Kernel,
        lag_low: None,
        lag_high: Length::ZERO,
        clamped: false,
    }
}

/// What the script would be judged as if each write arrived at its planned instant.
fn judged(script: &Script, dialect: Dialect) -> Judged {
    let api = api(dialect);
    let mut trace = Trace::begun(0, 0, 0, false, Instant::ORIGIN);
    trace.sent = Some(Instant::ORIGIN);
    let options = Options {
        api,
        keep_text: true,
        scrub: std::sync::Arc::default(),
    };
    let mut decoder = Decoder::new(options, trace);
    let header = |wanted: &str| {
        let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case(wanted);
        script
            .headers
            .iter()
            .find(named)
            .map(|(_, value)| value.as_str())
    };
    let head = stamp(script.head_at());
    decoder.head(
        head,
        script.status,
        header("content-type"),
        header("content-encoding"),
    );
    let mut stopped = false;
    let mut last = head.at;
    for (at, bytes) in script.timeline() {
        // A piece is what one read of a socket takes at most.
        for piece in bytes.chunks(64 << 10) {
            stopped = stopped || decoder.data(stamp(at), piece).stop;
        }
        last = Instant::ORIGIN + at;
        if stopped {
            break;
        }
    }
    let transport = match script.ending() {
        _ if stopped => Transport::Limit {
            text: decoder.limit().unwrap_or("stopped").to_owned(),
        },
        Some((at, ending)) => {
            last = Instant::ORIGIN + at;
            match ending {
                Ending::Proper => Transport::Complete,
                Ending::Stall => Transport::Timeout { phase: Phase::Idle },
                _ => Transport::Broken { text: "cut".into() },
            }
        }
        None => Transport::Timeout {
            phase: Phase::Total,
        },
    };
    judge(
        decoder.close(transport, Some(last)),
        &Guards::default(),
        api.has_sentinel(),
    )
}

fn differences(entry: &Entry, outcome: &str, shape: Option<&str>, flags: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    if outcome != entry.outcome {
        found.push(format!("outcome {outcome}, not {}", entry.outcome));
    }
    if shape != entry.shape {
        found.push(format!("shape {shape:?}, not {:?}", entry.shape));
    }
    let missing = entry.flags.iter().filter(|flag| !flags.contains(flag));
    found.extend(missing.map(|flag| format!("no flag {flag} among {flags:?}")));
    found
}

#[test]
fn every_script_is_judged_as_the_catalogue_says_in_virtual_time() {
    let mut wrong = Vec::new();
    for entry in entries().filter(|entry| !matches!(entry.delivered, Delivered::Endless)) {
        for dialect in entry.dialects {
            let mut ask = Ask::of(entry.name);
            ask.dialect = *dialect;
            ask.max_tokens = Some(TOKENS);
            let script = script(entry.name, &ask).expect("a script of the catalogue");
            let judged = judged(&script, *dialect);
            let flags: Vec<&str> = judged.flags.iter().map(|flag| flag.name()).collect();
            let shape = judged.shape.map(|shape| shape.name());
            let found = differences(entry, judged.outcome.name(), shape, &flags);
            let place = format!("{} in {}", entry.name, dialect.name());
            wrong.extend(found.into_iter().map(|text| format!("{place}: {text}")));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
