//! `denom run`, `report` and `demo` as processes, against the simulated server's own ledger.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use denom::sim::ledger::Record;
use denom::sim::server::{Config, Running, Server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Stamps and the ledger count on one clock; a converted kernel stamp may be off by so much.
const CONVERSION_NS: u64 = 10_000;
/// The server may lose its processor between its ledger's clock read and its write: no bound on
/// the client's side covers that, so the test allows a lot of it.
const SERVER_PAUSE_NS: u64 = 500_000_000;

pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("denom-it-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }

    pub(super) fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind in a temporary folder harms no later test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn server() -> Running {
    Server::start(&Config::default()).expect("the server starts")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_denom"));
    command
        .args(arguments)
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null());
    command
}

fn denom(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary is built")
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// One measured request to `model`, as its row, and the record file.
fn one(server: &Running, folder: &Folder, model: &str, more: &[&str]) -> (Value, String) {
    let file = folder.file(&format!("{model}.denom.jsonl"));
    let url = format!("{}/v1", server.url());
    let mut arguments = vec![
        "run",
        &url,
        "-m",
        model,
        "-c",
        "1",
        "--no-baseline",
        "--requests",
        "1",
    ];
    arguments.extend(["--warmup", "0", "--output-tokens", "64", "-q", "-o", &file]);
    arguments.extend(more);
    let output = denom(&arguments);
    // A machine that is busy with other tests may make this client the limit: 5.
    assert!(matches!(code(&output), Some(3..=5)), "{model}: {output:?}");
    let rows = json(&denom(&["report", &file, "--rows", "--format", "json"]));
    (rows["rows"][0].clone(), file)
}

fn check(model: &str, outcome: &str, shape: Option<&str>) {
    let (server, folder) = (server(), Folder::new(model));
    let (row, _) = one(&server, &folder, model, &[]);
    assert_eq!(row["outcome"], outcome, "{row}");
    assert_eq!(row["shape"].as_str(), shape, "{row}");
    assert_eq!(
        row["ttft_s"].is_null(),
        !matches!(shape, Some("streamed" | "clumped")),
        "{row}"
    );
}

#[test]
fn each_wire_shape_gets_its_outcome_and_shape_over_a_socket() {
    let streamed = Some("streamed");
    let buffered = Some("buffered");
    for (model, outcome, shape) in [
        ("normal", "ok", streamed),
        ("roleburst", "ok", buffered),
        ("firstlate", "ok", buffered),
        ("burst", "ok", buffered),
        ("onechunk", "ok", buffered),
        ("twoclump", "ok", buffered),
        ("empty", "empty", None),
        ("miderror", "server_error", None),
        ("truncated", "truncated", None),
        ("cut", "truncated", None),
        ("reset", "truncated", None),
        ("nodone", "ok", streamed),
        ("nousage", "ok", streamed),
        ("spec4", "ok", streamed),
        ("reason", "ok", streamed),
        ("nospace", "ok", streamed),
        ("crlf", "ok", streamed),
        ("plainjson", "ok", Some("whole")),
        ("stoptoken", "ok", streamed),
    ] {
        check(model, outcome, shape);
    }
}

fn record(server: &Running) -> Record {
    let records = server
        .ledger()
        .wait_for(1, Duration::from_secs(30))
        .expect("the ledger has it");
    records.into_iter().next().expect("one request")
}

/// Every read of content lies between the write that brought it and that write plus what the
/// client admits of its own lateness.
fn agrees_with_the_ledger(stamp: &str) {
    let (server, folder) = (server(), Folder::new(&format!("ledger-{stamp}")));
    let (_, file) = one(&server, &folder, "normal", &["--stamp", stamp]);
    let text = std::fs::read_to_string(file).expect("the record file");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let origin = lines[0]["origin_monotonic_ns"].as_u64().expect("origin");
    let ended = lines
        .iter()
        .find(|line| line["line"] == "ended")
        .expect("one request ended");
    let ledger = record(&server);
    let sent = ledger
        .writes
        .iter()
        .filter(|write| write.tokens > 0)
        .map(|write| write.at);
    let sent: Vec<u64> = sent.collect();
    let column = |name: &str| -> Vec<u64> {
        let values = ended["reads"][name].as_array().expect(name);
        values
            .iter()
            .map(|value| value.as_u64().expect("whole"))
            .collect()
    };
    let (deltas, chunks, lags) = (column("at"), column("chunks"), column("lag_high"));
    assert_eq!(chunks.iter().sum::<u64>(), 64);
    let (mut at, mut seen) = (origin, 0);
    for ((delta, chunks), lag) in deltas.iter().zip(&chunks).zip(&lags) {
        at += delta;
        seen += usize::try_from(*chunks).expect("small");
        // A read that took several writes carries the stamp of the last of them.
        let written = sent[seen - 1];
        assert!(
            at + CONVERSION_NS >= written,
            "read {seen} is stamped before it was written"
        );
        let late = at.saturating_sub(written);
        assert!(
            late <= lag + SERVER_PAUSE_NS,
            "read {seen} is {late} ns late, bound {lag} ns"
        );
    }
}

#[test]
fn kernel_stamps_agree_with_the_servers_ledger() {
    agrees_with_the_ledger("kernel");
}

#[test]
fn clock_stamps_agree_with_the_servers_ledger() {
    agrees_with_the_ledger("read");
}

#[test]
fn a_report_from_the_file_is_the_page_of_the_run() {
    let (server, folder) = (server(), Folder::new("report"));
    let file = folder.file("r.denom.jsonl");
    let url = format!("{}/v1", server.url());
    let run = denom(&[
        "run",
        &url,
        "-m",
        "normal",
        "-c",
        "1,4",
        "--requests",
        "24",
        "--baseline-requests",
        "6",
        "--output-tokens",
        "30",
        "-q",
        "--format",
        "json",
        "-o",
        &file,
    ]);
    assert!(matches!(code(&run), Some(0 | 5)), "{}", stderr(&run));
    let again = denom(&["report", &file, "--format", "json"]);
    assert_eq!(json(&run), json(&again));
    let text = denom(&["report", &file]);
    assert_eq!(code(&text), code(&run));
    let page = String::from_utf8(text.stdout).expect("text");
    for never in ["NaN", "inf ", "inf\n"] {
        assert!(!page.contains(never), "{page}");
    }
    let level = &json(&run)["levels"][1];
    assert_eq!(level["requests"]["issued"], 24);
    assert_eq!(level["requests"]["ok"], 24);
    assert_eq!(level["window"]["rule"], "steady");
    assert!(level["per_stream"]["share_of_baseline"]["value"].is_number());
    assert!(level["system"]["output"]["concurrency"]["held"].is_number());
}

#[test]
fn a_buffered_endpoint_withholds_what_was_not_seen() {
    let (server, folder) = (server(), Folder::new("buffered"));
    let file = folder.file("b.denom.jsonl");
    let url = format!("{}/v1", server.url());
    let run = denom(&[
        "run",
        &url,
        "-m",
        "burst",
        "-c",
        "2",
        "--no-baseline",
        "--requests",
        "12",
        "--output-tokens",
        "64",
        "-q",
        "--format",
        "json",
        "-o",
        &file,
    ]);
    let level = &json(&run)["levels"][0];
    assert_eq!(level["latency"]["ttft"]["withheld"]["code"], "buffered");
    assert_eq!(
        level["per_stream"]["generation"]["withheld"]["code"],
        "buffered"
    );
    assert!(level["latency"]["ttft"]["p50"]["value"].is_null());
    assert!(level["per_stream"]["end_to_end"]["p50"]["value"].is_number());
}

#[test]
fn what_cannot_be_done_ends_with_its_code_and_one_sentence() {
    let (server, folder) = (server(), Folder::new("refusals"));
    let url = format!("{}/v1", server.url());
    let file = folder.file("x.denom.jsonl");
    let prompts = folder.file("p.jsonl");
    std::fs::write(&prompts, "{\"prompt\":\"a\"}\nnonsense\n").expect("written");
    let taken = folder.file("taken.denom.jsonl");
    std::fs::write(&taken, "kept").expect("written");
    let (model_body, limit_body) = (folder.file("model.json"), folder.file("limit.json"));
    std::fs::write(&model_body, r#"{"model":"spec4"}"#).expect("writes");
    std::fs::write(&limit_body, r#"{"options":{"num_predict":3}}"#).expect("writes");
    let cases: &[(&[&str], i32, &[&str])] = &[
        (&["run", &url, "-c", "0"], 2, &["concurrency"]),
        (&["run", &url, "--requests", "0"], 2, &["requests"]),
        (
            &["run", &url, "--requests", "3", "--duration", "1s"],
            2,
            &["--requests", "--duration"],
        ),
        (&["run", "127.0.0.1:1/v1"], 2, &["scheme"]),
        (
            &["run", "http://u:secretsecret@127.0.0.1:1/v1"],
            2,
            &["--api-key-env"],
        ),
        (
            &["run", &url, "-m", "normal", "--prompts", &prompts],
            2,
            &["line 2"],
        ),
        (
            &["run", &url, "-m", "normal", "-o", &taken],
            2,
            &["exists", "--force"],
        ),
        (
            &["run", "http://127.0.0.1:1/v1", "-m", "m", "-o", &file],
            3,
            &["refused"],
        ),
        (
            &["run", &url, "-m", "nosuch", "-o", &file],
            3,
            &["404", "-m"],
        ),
        (
            &["run", &url, "-m", "http401", "-o", &file],
            3,
            &["401", "--api-key-env"],
        ),
        (&["run", &url, "-m", "html", "-o", &file], 3, &["HTML"]),
        (&["report", &prompts], 2, &["header"]),
        (
            &["run", &url, "-m", "normal", "--body", &model_body],
            2,
            &["\"model\"", "-m"],
        ),
        (
            &["run", &url, "-m", "normal", "--body", &limit_body],
            2,
            &["options.num_predict", "--output-tokens"],
        ),
    ];
    for (arguments, expected, words) in cases {
        let output = denom(arguments);
        let said = stderr(&output);
        assert_eq!(code(&output), Some(*expected), "{arguments:?}: {said}");
        for word in *words {
            assert!(said.contains(word), "{arguments:?} lacks {word:?}: {said}");
        }
        assert!(!said.contains("secretsecret"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&taken).expect("there"), "kept");
}

#[test]
fn a_key_shows_in_no_output_and_no_file() {
    let (server, folder) = (server(), Folder::new("key"));
    let url = format!("{}/v1", server.url());
    let file = folder.file("k.denom.jsonl");
    let key = "sk-canary/0123456789+abcdefgh";
    let run = |model: &str| {
        let arguments = [
            "run",
            &url,
            "-m",
            model,
            "-c",
            "1",
            "--no-baseline",
            "--requests",
            "2",
            "--warmup",
            "0",
        ];
        let more = [
            "--output-tokens",
            "5",
            "--format",
            "json",
            "--keep-text",
            "--force",
            "-o",
            &file,
        ];
        command(&arguments)
            .args(more)
            .env("OPENAI_API_KEY", key)
            .output()
            .expect("the binary is built")
    };
    let refused = run("http401");
    assert_eq!(code(&refused), Some(3));
    assert!(
        stderr(&refused).contains("[key]"),
        "the server echoes the key: {}",
        stderr(&refused)
    );
    let fine = run("normal");
    let written = std::fs::read_to_string(&file).expect("the record file");
    for output in [&refused, &fine] {
        let all = format!(
            "{}{}{written}",
            String::from_utf8_lossy(&output.stdout),
            stderr(output)
        );
        assert!(!all.contains("sk-canary"), "the key is in an output");
    }
}

#[test]
fn an_optional_field_the_server_refuses_is_left_out_and_the_page_says_so() {
    for (model, word) in [
        ("http400_stream_options", "stream_options"),
        ("http400_max_tokens", "max_tokens"),
    ] {
        let (server, folder) = (server(), Folder::new(model));
        let file = folder.file("f.denom.jsonl");
        let url = format!("{}/v1", server.url());
        let run = denom(&[
            "run",
            &url,
            "-m",
            model,
            "-c",
            "2",
            "--no-baseline",
            "--requests",
            "12",
            "--output-tokens",
            "30",
            "-q",
            "--format",
            "json",
            "-o",
            &file,
        ]);
        let report = json(&run);
        assert_eq!(report["levels"][0]["requests"]["ok"], 12, "{report}");
        // A machine that is busy with other tests may make this client the limit; nothing else is wrong.
        let verdict = &report["levels"][0]["verdict"];
        let reasons = verdict["reasons"].as_array().expect("a list");
        assert!(
            reasons
                .iter()
                .all(|reason| reason["code"] == "client_limited"),
            "{verdict}"
        );
        assert!(
            report["run"]["notes"][0]["text"]
                .as_str()
                .is_some_and(|text| text.contains(word))
        );
    }
}

/// Starts a run that would take long, and waits until its file holds an ended request.
fn started(server: &Running, file: &str) -> std::process::Child {
    let url = format!("{}/v1", server.url());
    let mut child = command(&[
        "run",
        &url,
        "-m",
        "normal",
        "-c",
        "2",
        "--no-baseline",
        "--requests",
        "500",
        "--output-tokens",
        "20",
        "--format",
        "json",
        "-q",
        "-o",
        file,
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("the binary is built");
    let ended = |text: &str| text.matches("\"line\":\"ended\"").count() > 8;
    for _ in 0..3_000 {
        if std::fs::read_to_string(file).is_ok_and(|text| ended(&text)) {
            return child;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("the process is there");
    let output = child.wait_with_output().expect("it ends");
    panic!("no request ended within 30 s: {}", stderr(&output));
}

fn signal(child: &std::process::Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    kill(pid, signal).expect("the process is there");
}

#[test]
fn interrupted_once_it_drains_and_prints_the_page() {
    let (server, folder) = (server(), Folder::new("int"));
    let child = started(&server, &folder.file("i.denom.jsonl"));
    signal(&child, Signal::SIGINT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(&output), Some(130), "{}", stderr(&output));
    let report = json(&output);
    assert_eq!(report["run"]["interrupted"], true);
    let requests = &report["levels"][0]["requests"];
    assert_eq!(
        requests["issued"], requests["ok"],
        "what was in flight was let end"
    );
}

#[test]
fn killed_it_leaves_a_file_that_says_it_was_cut_short() {
    let (server, folder) = (server(), Folder::new("kill"));
    let file = folder.file("k.denom.jsonl");
    let mut child = started(&server, &file);
    signal(&child, Signal::SIGKILL);
    child.wait().expect("it ends");
    let report = json(&denom(&["report", &file, "--format", "json"]));
    assert_eq!(report["run"]["cut_short"], true);
    let requests = &report["levels"][0]["requests"];
    assert!(
        requests["ok"].as_u64().is_some_and(|ok| ok > 0),
        "{requests}"
    );
    let codes: Vec<&Value> = report["levels"][0]["warnings"]
        .as_array()
        .expect("list")
        .iter()
        .map(|w| &w["code"])
        .collect();
    assert!(codes.contains(&&Value::from("cut_short")), "{codes:?}");
}

#[test]
fn a_torn_last_line_is_read_and_a_changed_file_is_not() {
    let (server, folder) = (server(), Folder::new("torn"));
    let (_, file) = one(&server, &folder, "normal", &[]);
    let text = std::fs::read_to_string(&file).expect("the record file");
    std::fs::write(&file, &text[..text.len() - 20]).expect("written");
    let output = denom(&["report", &file, "--format", "json"]);
    assert_eq!(json(&output)["run"]["cut_short"], true);
    std::fs::write(
        &file,
        text.replacen("\"line\":\"ended\"", "\"line\":\"end", 1),
    )
    .expect("written");
    let output = denom(&["report", &file]);
    assert_eq!(code(&output), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("damaged"), "{}", stderr(&output));
}

#[test]
fn a_dry_run_sends_nothing_and_shows_one_request() {
    let output = denom(&["run", "http://127.0.0.1:1/v1", "-m", "m", "--dry-run"]);
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    for word in [
        "nothing was sent",
        "concurrency 16",
        "\"stream_options\"",
        "\"max_tokens\": 256",
    ] {
        assert!(text.contains(word), "{text}");
    }
}

/// A first request that is asked again used up a request of the level, which then had one too few.
#[test]
fn a_first_request_that_is_asked_again_takes_none_from_the_level() {
    let (server, folder) = (server(), Folder::new("again"));
    for (model, more) in [
        ("http400_max_tokens", &[][..]),
        ("loading=2", &["--wait-ready=20s"]),
    ] {
        let file = folder.file(&format!("{model}.denom.jsonl"));
        let url = format!("{}/v1", server.url());
        let mut arguments = vec![
            "run",
            &url,
            "-m",
            model,
            "-c",
            "1",
            "--no-baseline",
            "--requests",
            "2",
            "--warmup",
            "0",
            "--output-tokens",
            "24",
            "-q",
            "-o",
            &file,
            "--format",
            "json",
        ];
        arguments.extend(more);
        let page = json(&denom(&arguments));
        let requests = &page["levels"][0]["requests"];
        assert_eq!(requests["issued"], 2, "{model}: {requests}");
        assert_eq!(requests["ok"], 2, "{model}: {requests}");
    }
}
