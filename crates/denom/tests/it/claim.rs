//! `denom claim` as a process: texts, flags, and tests against the simulated server.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use denom::sim::server::{Config, Server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn claim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_denom"))
        .arg("claim")
        .args(arguments)
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .output()
        .expect("the binary is built")
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Tests a claim against one model of the simulated server. A machine that is busy may make the
/// client the limit (exit 5): then the figures stand and only the answer is withheld, so the
/// answer is looked at where there is one, and what concurrency 1 says in any case.
fn tested(text: &str, model: &str, more: &[&str]) -> (Option<i32>, Value) {
    let server = Server::start(&Config::default()).expect("the server starts");
    let folder = std::env::temp_dir();
    let file = folder.join(format!(
        "denom-claim-{}-{model}.denom.jsonl",
        std::process::id()
    ));
    let (url, shown) = (format!("{}/v1", server.url()), file.display().to_string());
    let mut arguments = vec![
        text,
        "--against",
        &url,
        "-m",
        model,
        "--format",
        "json",
        "-q",
    ];
    arguments.extend(["--force", "-o", &shown, "--input-tokens", "32"]);
    arguments.extend(more);
    let output = claim(&arguments);
    // What is left behind in a temporary folder harms no later test.
    let _ = std::fs::remove_file(file);
    (output.status.code(), json(&output))
}

#[test]
fn an_aggregate_is_told_from_a_per_stream_rate() {
    let text = "500 tok/s over sixteen sessions";
    let (code, value) = tested(
        text,
        "shares",
        &["--output-tokens", "25", "--baseline-requests", "6"],
    );
    let tested = &value["tested"];
    assert_eq!(tested["alone_refutes_per_stream"], true, "{tested}");
    assert_eq!(tested["alone"][0]["concurrency"], 1.0);
    assert_eq!(tested["rests_on"][0]["concurrency"], 16.0);
    match code {
        Some(0) => assert_eq!(tested["answer"], "aggregate", "{tested}"),
        other => {
            assert!(matches!(other, Some(4 | 5)), "{other:?}: {tested}");
            assert_eq!(tested["answer"], "cannot_tell", "{tested}");
        }
    }
}

#[test]
fn a_rate_that_only_a_burst_makes_is_an_artefact() {
    let text = "90,000 tok/s with 2 users";
    let more = [
        "--requests",
        "12",
        "--baseline-requests",
        "6",
        "--output-tokens",
        "1000",
    ];
    let (code, value) = tested(text, "bursts", &more);
    let tested = &value["tested"];
    assert_eq!(
        tested["alone_refutes_per_stream"], false,
        "no rate was observed: {tested}"
    );
    assert_eq!(tested["rests_on"][1]["value"], Value::Null, "{tested}");
    match code {
        Some(1) => assert_eq!(tested["answer"], "burst_artefact", "{tested}"),
        other => {
            assert!(matches!(other, Some(4 | 5)), "{other:?}: {tested}");
            assert_eq!(tested["answer"], "cannot_tell", "{tested}");
        }
    }
}

#[test]
fn both_readings_from_text_and_from_flags() {
    let of_text = json(&claim(&[
        "500 tok/s plus over sixteen sessions",
        "--format",
        "json",
    ]));
    let flags = [
        "--value",
        "500",
        "--unit",
        "tok/s",
        "--concurrency",
        "16",
        "--format",
        "json",
    ];
    let of_flags = json(&claim(&flags));
    for value in [of_text, of_flags] {
        assert_eq!(value["readings"][0]["if"], "system");
        assert_eq!(value["readings"][0]["per_stream"]["value"], 31.25);
        assert_eq!(value["readings"][1]["system"]["value"], 8_000.0);
        assert_eq!(value["fields"]["scope"], Value::Null);
    }
}

#[test]
fn what_cannot_be_read_or_tested_is_refused_before_anything_is_sent() {
    let nowhere = "http://127.0.0.1:9/v1";
    for (arguments, word) in [
        (
            vec!["500 tok/s with 16 users", "--concurrency", "8"],
            "--concurrency contradicts",
        ),
        (
            vec!["500 tok/s per user", "--scope", "system"],
            "--scope contradicts",
        ),
        (vec!["--value", "fast", "--unit", "tok/s"], "--value"),
        (vec!["--value", "500", "--unit", "wibble"], "--unit"),
        (vec![], "needs its text"),
        (vec!["500 tok/s", "--against", nowhere], "--concurrency N"),
        (
            vec!["34 pages/s on 4 workers", "--against", nowhere],
            "pages",
        ),
    ] {
        let output = claim(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
fn an_interrupted_test_gives_no_verdict_and_says_why() {
    for format in ["text", "json"] {
        let server = Server::start(&Config::default()).expect("the server starts");
        let name = format!("denom-claim-int-{}-{format}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let url = format!("{}/v1", server.url());
        let child = Command::new(env!("CARGO_BIN_EXE_denom"))
            .args([
                "claim",
                "500 tok/s over sixteen sessions",
                "--against",
                &url,
            ])
            .args([
                "-m",
                "shares",
                "--requests",
                "2000",
                "--output-tokens",
                "25",
            ])
            .args(["--input-tokens", "32", "--baseline-requests", "6", "-q"])
            .args(["--format", format, "--force", "-o"])
            .arg(&file)
            .env_remove("OPENAI_API_KEY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary is built");
        let served = server.ledger().wait_for(60, Duration::from_secs(120));
        served.expect("sixty requests");
        let id = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
        kill(id, Signal::SIGINT).expect("it still runs");
        let output = child.wait_with_output().expect("it ends");
        let _ = std::fs::remove_file(file);
        assert_eq!(output.status.code(), Some(130), "{format}");
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(shown.contains("the run was interrupted"), "{shown}");
        assert!(!shown.contains("agrees with"), "{shown}");
        if format == "json" {
            let tested = &json(&output)["tested"];
            assert_eq!(tested["holds"], Value::Null);
            assert_eq!(tested["answer"], "cannot_tell");
            let figures = tested["rests_on"].as_array().expect("figures");
            assert!(!figures.is_empty());
            assert!(figures.iter().all(|figure| figure["agrees"].is_null()));
        }
    }
}

#[test]
fn no_server_is_no_result() {
    let output = claim(&[
        "500 tok/s with 2 users",
        "--against",
        "http://127.0.0.1:9/v1",
        "-m",
        "x",
        "-q",
    ]);
    assert_eq!(output.status.code(), Some(3));
}
