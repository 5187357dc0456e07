//! What a run says of its own client: the self-check, and a client that was stopped.

use std::process::{Command, Stdio};

use denom::sim::server::{Config, Running, Server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::run::Folder;

fn server() -> Running {
    Server::start(&Config::default()).expect("the server starts")
}

fn denom(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_denom"));
    command
        .args(arguments)
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The report, and what stderr held, of a run with these streams and flags.
fn checked(name: &str, streams: &str, more: &[&str]) -> (Value, String) {
    let (server, folder) = (server(), Folder::new(name));
    let (url, file) = (format!("{}/v1", server.url()), folder.file("run.jsonl"));
    let plan = ["run", &url, "-m", "normal", "-c", streams, "-o", &file];
    let more = [
        more,
        &["--no-baseline", "--output-tokens", "4", "--format", "json"],
    ]
    .concat();
    let output = denom(&plan)
        .args(more)
        .output()
        .expect("the binary is built");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_slice(&output.stdout);
    (
        report.unwrap_or_else(|error| panic!("{error}: {said}")),
        said,
    )
}

#[test]
fn a_large_level_is_preceded_by_a_self_check_and_a_small_one_is_not() {
    let (large, said) = checked("self-check", "64", &["--requests", "64", "--warmup", "0"]);
    let ceiling = large["run"]["self_check"]["ceiling"].as_u64();
    assert!(ceiling.is_some_and(|chunks| chunks > 0), "{large}");
    assert_eq!(large["levels"][0]["client"]["ceiling"].as_u64(), ceiling);
    assert!(said.contains("self-check: this client takes in"), "{said}");
    let (small, said) = checked("no-check", "2", &["--requests", "4"]);
    assert_eq!(small["run"]["self_check"], "not_due");
    assert!(!said.contains("self-check"), "{said}");
}

#[test]
fn a_run_without_its_self_check_says_so() {
    let more = ["--requests", "64", "--warmup", "0", "--no-self-check"];
    let (report, _) = checked("skipped", "64", &more);
    assert_eq!(report["run"]["self_check"], "skipped");
    assert_eq!(report["levels"][0]["client"]["ceiling"], Value::Null);
}

/// A client that is stopped amid a stream reads nothing, however long it takes to be stopped.
#[test]
fn a_client_that_was_stopped_for_200_ms_says_so() {
    let (server, folder) = (server(), Folder::new("stopped"));
    let (url, file) = (format!("{}/v1", server.url()), folder.file("run.jsonl"));
    let child = denom(&["run", &url, "-m", "streams", "-c", "1", "--no-baseline"])
        .args([
            "--requests",
            "6",
            "--warmup",
            "1",
            "--output-tokens",
            "60",
            "-o",
            &file,
        ])
        .args(["--format", "json", "-q"])
        .spawn()
        .expect("the binary is built");
    // The first answer is in the ledger: the client is amid the others.
    let ledger = server.ledger();
    ledger
        .wait_for(1, std::time::Duration::from_secs(60))
        .expect("a request ends");
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process number"));
    kill(pid, Signal::SIGSTOP).expect("it can be stopped");
    std::thread::sleep(std::time::Duration::from_millis(200));
    kill(pid, Signal::SIGCONT).expect("it can go on");
    let output = child.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let client = &report["levels"][0]["client"];
    let late = client["beat_late_max"]
        .as_f64()
        .expect("beats were watched");
    assert!(late > 0.15, "{client}");
    let warnings = report["levels"][0]["warnings"].as_array().expect("a list");
    assert!(
        warnings
            .iter()
            .any(|warning| warning["code"] == "client_stalled"),
        "{warnings:?}"
    );
}
