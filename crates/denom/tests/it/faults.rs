//! Every script of the simulated server, in every API that can say it: judged as its catalogue says.

use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use denom::sim::ask::Ask;
use denom::sim::dialect::Dialect;
use denom::sim::script::{Act, Ending, Script, Step};
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
/// Writes of an answer without end after which any limit must have been met.
const REPEATS: usize = 1_000;
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
    if let Some((at, Ending::GoneAway | Ending::RefusedStream)) = script.ending() {
        return judge(
            decoder.close(unanswered(script), Some(Instant::ORIGIN + at)),
            &Guards::default(),
            api.has_sentinel(),
        );
    }
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
    let timeline = script.timeline();
    // What has no end goes on with its last write until the client stops it.
    let is_endless = |step: &Step| matches!(step.act, Act::Repeat { count: None, .. });
    let endless = script.steps.iter().any(is_endless);
    let endless = endless.then(|| timeline.last()).flatten();
    let again = endless.into_iter().cycle().take(REPEATS);
    for (at, bytes) in timeline.iter().chain(again) {
        // A piece is what one read of a socket takes at most.
        for piece in bytes.chunks(64 << 10) {
            stopped = stopped || decoder.data(stamp(*at), piece).stop;
        }
        last = Instant::ORIGIN + *at;
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
                ending if ending.is_proper() => Transport::Complete,
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

/// How a client sees that no answer comes at all: a connection that was going away, or not.
fn unanswered(script: &Script) -> Transport {
    match script.ending() {
        Some((_, Ending::GoneAway)) => Transport::Stale,
        _ => Transport::NoResponse {
            text: "refused".into(),
        },
    }
}

fn differences(
    (entry, dialect): (&Entry, Dialect),
    outcome: &str,
    shape: Option<&str>,
    flags: &[&str],
) -> Vec<String> {
    let expected = entry.shape_in(dialect);
    let mut found = Vec::new();
    if outcome != entry.outcome {
        found.push(format!("outcome {outcome}, not {}", entry.outcome));
    }
    if shape != expected {
        found.push(format!("shape {shape:?}, not {expected:?}"));
    }
    let missing = entry.flags.iter().filter(|flag| !flags.contains(flag));
    found.extend(missing.map(|flag| format!("no flag {flag} among {flags:?}")));
    found
}

#[test]
fn every_script_is_judged_as_the_catalogue_says_in_virtual_time() {
    let mut wrong = Vec::new();
    // An answer of tokens without end meets its limit only after many minutes.
    let ends = |entry: &&Entry| !matches!(entry.delivered, Delivered::Endless);
    for entry in entries().filter(ends) {
        for dialect in entry.dialects {
            let mut ask = Ask::of(entry.name);
            ask.dialect = *dialect;
            ask.max_tokens = Some(TOKENS);
            ask.legacy_max_tokens = true;
            ask.http2 = entry.http2;
            let script = script(entry.name, &ask).expect("a script of the catalogue");
            let judged = judged(&script, *dialect);
            let flags: Vec<&str> = judged.flags.iter().map(|flag| flag.name()).collect();
            let shape = judged.shape.map(|shape| shape.name());
            let found = differences((entry, *dialect), judged.outcome.name(), shape, &flags);
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

/// One request over a socket to a script in an API, as a user would make it.
fn on_socket(
    server: &Running,
    folder: &Folder,
    (entry, dialect): (&Entry, Dialect),
    http: &str,
) -> Vec<String> {
    let name = format!("{}-{}-{http}", entry.name, dialect.name());
    let file = folder.file(&format!("{name}.denom.jsonl"));
    let url = format!("{}{}", server.url(), path(dialect, entry.name));
    let run = denom(&[
        "run",
        &url,
        "--api",
        api(dialect).name(),
        "--http",
        http,
        "-m",
        entry.name,
        "-c",
        "1",
        "--no-baseline",
        "--requests",
        "2",
        "--warmup",
        "0",
        "--output-tokens",
        "64",
        "--input-tokens",
        "16",
        "--timeout",
        "3s",
        "--max-time",
        "6s",
        "-q",
        "-o",
        &file,
        "--format",
        "json",
    ]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    let Ok(page) = serde_json::from_slice::<Value>(&run.stdout) else {
        // The first answer ended the run: nothing of it may be shown as a result.
        let refused = [
            "http_error",
            "protocol_error",
            "decode_error",
            "limit_exceeded",
        ]
        .contains(&entry.outcome);
        let ended = run.status.code() == Some(3) && refused;
        return (!ended)
            .then(|| format!("exit {:?}: {said}", run.status))
            .into_iter()
            .collect();
    };
    let mut found = Vec::new();
    let requests = &page["levels"][0]["requests"];
    let failed = requests["failed"].as_object().into_iter().flatten();
    let failed: u64 = failed.filter_map(|(_, n)| n.as_u64()).sum();
    let count = |key: &str| requests[key].as_u64().unwrap_or(0);
    if count("issued") != count("ok") + count("drained") + failed {
        found.push(format!("the books do not balance: {requests}"));
    }
    let rows = denom(&["report", &file, "--rows", "--format", "json"]);
    let rows: Value = serde_json::from_slice(&rows.stdout).expect("rows are JSON");
    let row = &rows["rows"][0];
    let flags = row["flags"].as_array().into_iter().flatten();
    let flags: Vec<&str> = flags.filter_map(Value::as_str).collect();
    let outcome = row["outcome"].as_str().unwrap_or("none");
    // A busy machine may bundle what the script spaces: the shape is for the test above.
    let shape = row["shape"].as_str().and(entry.shape_in(dialect));
    let ended_by_the_flag = matches!(entry.delivered, Delivered::Endless) && outcome == "timeout";
    if !ended_by_the_flag {
        found.extend(differences((entry, dialect), outcome, shape, &flags));
    }
    found.extend(withheld(row));
    found
}

/// What a row of this outcome and shape must not say.
fn withheld(row: &Value) -> Vec<String> {
    let is_ok = row["outcome"] == "ok";
    let streams = matches!(row["shape"].as_str(), Some("streamed" | "clumped"));
    let rules = [
        ("e2e_rate", is_ok),
        ("e2e_s", is_ok),
        ("ttft_s", is_ok && streams),
        ("rate", is_ok),
    ];
    let wrong = |(key, allowed): &(&str, bool)| !allowed && !row[*key].is_null();
    rules
        .into_iter()
        .filter(wrong)
        .map(|(key, _)| format!("{key} is shown: {}", row[key]))
        .collect()
}

fn denom(arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_denom"));
    command.args(arguments).stdin(Stdio::null());
    command.output().expect("the binary is built")
}

#[test]
fn every_script_is_judged_as_the_catalogue_says_over_a_socket() {
    all_on_sockets("1.1", Entry::over_http1);
}

#[test]
fn every_script_is_judged_as_the_catalogue_says_over_http_2() {
    all_on_sockets("2", |entry| *entry);
}

/// Each script in one of its APIs, another one for each: all pairs are tried in virtual time.
fn all_on_sockets(http: &str, expected: impl Fn(&Entry) -> Entry) {
    let server = Server::start(&Config::default()).expect("the server starts");
    let folder = Folder::new(&format!("faults-{http}"));
    let pairs = entries().enumerate().map(|(n, entry)| {
        let dialect = entry.dialects[n % entry.dialects.len()];
        (expected(entry), dialect)
    });
    let left: Mutex<VecDeque<_>> = Mutex::new(pairs.collect());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("no panic").pop_front();
                    let Some((entry, dialect)) = next else { break };
                    let found = on_socket(&server, &folder, (&entry, dialect), http);
                    let place = format!("{} in {}", entry.name, dialect.name());
                    let found = found.into_iter().map(|text| format!("{place}: {text}"));
                    wrong.lock().expect("no panic").extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
