//! Owns the outside: the real server's addresses, the program under test, and the server's tokenizer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::report::Run;

/// One load at a time: two at once would share the server's slots and answer for each other.
pub static SERVER: Mutex<()> = Mutex::new(());

/// Ways to the server.
#[derive(Clone, Copy)]
pub enum Route {
    Direct,
    OneHop,
    TwoHops,
}

impl Route {
    pub fn url(self) -> String {
        let name = match self {
            Route::Direct => "REAL_DIRECT",
            Route::OneHop => "REAL_ONE_HOP",
            Route::TwoHops => "REAL_HOPS",
        };
        variable(name)
    }
}

/// What ci/real-parts says of what it started.
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set, so there is no real server to test against: run this test through `ci/real-parts run`")
    })
}

/// What to ask for.
pub struct Ask {
    concurrency: &'static str,
    /// Of each level.
    requests: u64,
    output_tokens: u64,
    /// Merged into each request's body.
    body: Value,
    prompts: Prompts,
}

enum Prompts {
    /// The program's own.
    Words,
    /// Short ones that a small model answers and then stops.
    Questions,
}

impl Ask {
    /// Answers of exactly so many tokens to prompts of the program's own making.
    pub fn words(concurrency: &'static str, requests: u64, output_tokens: u64) -> Self {
        let mut body = plain_ascii();
        body["ignore_eos"] = json!(true);
        let prompts = Prompts::Words;
        Ask {
            concurrency,
            requests,
            output_tokens,
            body,
            prompts,
        }
    }

    /// Answers of at most so many tokens, asked for in nothing but the API's own words: a gateway may refuse others.
    pub fn up_to(concurrency: &'static str, requests: u64, output_tokens: u64) -> Self {
        let body = json!({});
        Ask {
            body,
            ..Ask::words(concurrency, requests, output_tokens)
        }
    }

    /// Answers that end where the model ends them, or at 200 tokens.
    pub fn questions(concurrency: &'static str, requests: u64) -> Self {
        let (body, prompts) = (plain_ascii(), Prompts::Questions);
        Ask {
            concurrency,
            requests,
            output_tokens: 200,
            body,
            prompts,
        }
    }
}

/// An emoji can be three tokens in one chunk: the grammar keeps one token one chunk, so that counts are exact.
fn plain_ascii() -> Value {
    json!({ "temperature": 0, "grammar": r"root ::= [ -~\n]*" })
}

/// Benchmarks one way to the server, then reads the record file back as a user would.
pub fn measure(name: &str, route: Route, ask: &Ask) -> Run {
    measure_at(name, &format!("{}/v1", route.url()), &[], ask)
}

/// The gateway in front of the server, and the key that it wants.
pub fn gateway() -> (String, String) {
    let of = |name: &str| {
        std::env::var(name).unwrap_or_else(|_| {
            panic!("{name} is not set, so there is no gateway to test against: run this test through `ci/real-parts run`")
        })
    };
    (of("REAL_GATEWAY"), of("REAL_GATEWAY_KEY"))
}

/// As [`measure`], at any URL and with further flags.
pub fn measure_at(name: &str, url: &str, flags: &[&str], ask: &Ask) -> Run {
    let folder = scratch(name);
    let records = folder.join("run.denom.jsonl");
    let body = folder.join("body.json");
    write(&body, &ask.body.to_string());

    let mut run = denom();
    run.args([
        "run",
        url,
        "-c",
        ask.concurrency,
        "--keep-text",
        "--quiet",
        "--format",
        "json",
    ]);
    // As a baseline it would end after a minute, however few answers a busy machine has made by then.
    if ask.concurrency == "1" {
        run.arg("--no-baseline");
    }
    run.args(flags).args([
        "--requests",
        &ask.requests.to_string(),
        "--output-tokens",
        &ask.output_tokens.to_string(),
    ]);
    // A busy machine may need long for the whole of a held answer.
    run.args(["--timeout", "280s"])
        .arg("--body")
        .arg(&body)
        .arg("-o")
        .arg(&records);
    match ask.prompts {
        // Short prompts: the model reads a few hundred tokens a second.
        Prompts::Words => run.args(["--input-tokens", "48"]),
        Prompts::Questions => run.arg("--prompts").arg(questions(&folder)),
    };
    let page = {
        let _alone = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
        judged(&mut run)
    };
    let mut rows = denom();
    rows.arg("report")
        .arg(&records)
        .args(["--rows", "--format", "json"]);
    let mut again = denom();
    again.arg("report").arg(&records).args(["--format", "json"]);
    assert_eq!(
        page,
        judged(&mut again),
        "the report differs from the run's own page"
    );
    Run::new(page, judged(&mut rows))
}

fn denom() -> Command {
    Command::new(env!("CARGO_BIN_EXE_denom"))
}

/// The JSON that the program printed.
///
/// A slow machine can make a level invalid or the client the limit (4, 5). Shapes and counts hold all the same.
fn judged(command: &mut Command) -> Value {
    let output = finished(command);
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 4 | 5)),
        "{command:?} ended with {code:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    parsed(command, &output)
}

/// How many tokens the server's own tokenizer makes of `text`.
pub fn tokenize(text: &str) -> usize {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--max-time", "60"]);
    curl.arg("--json")
        .arg(json!({ "content": text }).to_string())
        .arg(format!("{}/tokenize", Route::Direct.url()));
    let output = finished(&mut curl);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let answer = parsed(&curl, &output);
    answer["tokens"]
        .as_array()
        .unwrap_or_else(|| panic!("no tokens in {answer}"))
        .len()
}

pub fn finished(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"))
}

pub fn parsed(command: &Command, output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{command:?} printed no JSON ({error}): {}",
            String::from_utf8_lossy(&output.stdout)
        )
    })
}

/// More than are asked in one run, none twice.
fn questions(folder: &Path) -> PathBuf {
    const ASKED: [&str; 8] = [
        "Name the capital of France.",
        "List three colours.",
        "Why is the sky blue?",
        "What is a bridge?",
        "How do I boil an egg?",
        "Describe a cat in two sentences.",
        "What does a miller do?",
        "Name two rivers.",
    ];
    let line = |number: usize| {
        let prompt = format!(
            "Question {}. {}",
            11 + 37 * number,
            ASKED[number % ASKED.len()]
        );
        json!({ "prompt": prompt }).to_string()
    };
    let file = folder.join("questions.jsonl");
    write(&file, &(0..40).map(line).collect::<Vec<_>>().join("\n"));
    file
}

pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("real")
        .join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old scratch folder goes away");
    }
    fs::create_dir_all(&folder).expect("a scratch folder");
    folder
}

pub fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}
