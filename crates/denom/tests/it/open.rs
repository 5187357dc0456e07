//! `denom run --rate` as a process: requests keep to the plan whatever the server does.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use denom::sim::server::{Config, Server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::run::Folder;
use crate::scripted;

/// Requests a server has received, and a bell for each.
#[derive(Default)]
struct Received {
    count: Mutex<usize>,
    bell: Condvar,
}

impl Received {
    /// Counts one; how many there are now.
    fn one(&self) -> usize {
        let mut count = self.count.lock().expect("no thread fails with it");
        *count += 1;
        self.bell.notify_all();
        *count
    }

    fn wait_for(&self, least: usize) {
        let count = self.count.lock().expect("no thread fails with it");
        let long = Duration::from_secs(60);
        let (_count, waited) = self
            .bell
            .wait_timeout_while(count, long, |count| *count < least)
            .expect("no thread fails with it");
        assert!(!waited.timed_out(), "{least} requests never came");
    }
}

/// A server that answers its first request at once, and each other one only when it has received
/// `least` in all; none of these ever where that is not given.
fn stalling(least: Option<usize>) -> (scripted::Server, Arc<Received>) {
    let received = Arc::new(Received::default());
    let counts = Arc::clone(&received);
    let server = scripted::Server::start(move |_, client| {
        if counts.one() > 1 {
            match least {
                Some(least) => counts.wait_for(least),
                // The connection stays until the client gives up.
                None => return true,
            }
        }
        answer(client).is_ok()
    });
    (server, received)
}

/// One chunk of one token.
fn answer(client: &mut TcpStream) -> std::io::Result<()> {
    let content = r#"data: {"choices":[{"index":0,"delta":{"content":"one"}}]}"#;
    let finish = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}"#;
    let body = format!("{content}\n\n{finish}\n\ndata: [DONE]\n\n");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length";
    write!(client, "{head}: {}\r\n\r\n{body}", body.len())
}

fn command(url: &str, file: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_denom"));
    command
        .args(["run", url, "-q", "-m", "bursts"])
        .args([
            "--no-baseline",
            "--arrivals",
            "constant",
            "--format",
            "json",
        ])
        .args(["--input-tokens", "40", "-o", file])
        .args(more)
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(url: &str, file: &str, more: &[&str]) -> Output {
    command(url, file, more)
        .output()
        .expect("the binary is built")
}

fn level(output: &Output) -> Value {
    let mut report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    report["levels"][0].take()
}

fn books_are_closed(level: &Value) {
    let reasons = level["verdict"]["reasons"].as_array().expect("reasons");
    assert!(reasons.iter().all(|r| r["code"] != "books"), "{reasons:?}");
}

/// The plan's own requests of a record file, in its order; those sent before it left out.
fn on_plan(file: &str, before: usize) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("a record file");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let mut ended: Vec<Value> = lines
        .filter(|line: &Value| line["line"] == "ended")
        .collect();
    ended.sort_by_key(|line| line["id"].as_u64());
    ended.split_off(before)
}

fn ns(line: &Value, name: &str) -> u64 {
    line[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name} in {line}"))
}

#[test]
fn a_server_that_answers_nobody_until_it_has_all_gets_all_on_plan() {
    let folder = Folder::new("open-stall");
    let file = folder.file("stall.jsonl");
    // One goes alone before the plan, and is answered; the 20 of the plan wait for one another. A
    // client that waits for an answer before it sends would never end this.
    let (server, _) = stalling(Some(21));
    let output = run(
        &server.url(),
        &file,
        &["--rate", "50/s", "--requests", "18", "--warmup", "2"],
    );
    let level = level(&output);
    assert_eq!(level["load"]["loop"], "open");
    assert_eq!(
        (&level["load"]["target"], &level["load"]["unit"]),
        (&50.0.into(), &"req/s".into())
    );
    let plan = &level["requests"]["plan"];
    assert_eq!(
        (&plan["planned"], &plan["started"]),
        (&18.into(), &18.into())
    );
    assert_eq!(
        (&plan["warmup_planned"], &plan["before"]),
        (&2.into(), &1.into())
    );
    assert_eq!(
        (&level["requests"]["ok"], &level["requests"]["warmup"]),
        (&18.into(), &3.into())
    );
    books_are_closed(&level);
    let requests = on_plan(&file, 1);
    assert_eq!(requests.len(), 20);
    for pair in requests.windows(2) {
        assert_eq!(
            ns(&pair[1], "planned") - ns(&pair[0], "planned"),
            20_000_000
        );
    }
    let last = ns(&requests[19], "planned");
    for request in &requests {
        assert!(ns(request, "sent") >= ns(request, "planned"), "never early");
        // The stall is in what a user waits, counted from the plan: no answer before the last came.
        assert!(ns(request, "end") >= last, "{request}");
    }
    let wait = level["latency"]["e2e_from_plan"]["max"].as_f64();
    assert!(wait >= Some(17.0 * 0.02), "{wait:?}");
}

#[test]
fn what_the_limit_in_flight_keeps_back_is_counted_and_never_waits() {
    let folder = Folder::new("open-limit");
    let file = folder.file("limit.jsonl");
    let (server, _) = stalling(None);
    let limits = ["--max-in-flight", "3", "--timeout", "2s"];
    let mut arguments = vec!["--rate", "50/s", "--requests", "12", "--warmup", "0"];
    arguments.extend(limits);
    let output = run(&server.url(), &file, &arguments);
    let level = level(&output);
    books_are_closed(&level);
    let plan = &level["requests"]["plan"];
    let (started, kept_back) = (
        plan["started"].as_u64().expect("a count"),
        plan["not_started"]["in_flight_limit"].as_u64().unwrap_or(0),
    );
    assert_eq!((started + kept_back, started >= 3), (12, true), "{plan}");
    let requests = on_plan(&file, 1);
    assert_eq!(requests.len() as u64, started);
    for request in &requests {
        let during = |other: &&Value| {
            ns(other, "start") <= ns(request, "start") && ns(request, "start") < ns(other, "finish")
        };
        assert!(requests.iter().filter(during).count() <= 3);
    }
}

#[test]
fn a_run_that_is_stopped_says_how_much_of_its_plan_was_left() {
    let folder = Folder::new("open-stop");
    let file = folder.file("stop.jsonl");
    let (server, received) = stalling(Some(0));
    let more = ["--rate", "20/s", "--requests", "6000", "--warmup", "0"];
    let child = command(&server.url(), &file, &more)
        .spawn()
        .expect("the binary is built");
    received.wait_for(5);
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    kill(pid, Signal::SIGINT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let level = level(&output);
    books_are_closed(&level);
    let plan = &level["requests"]["plan"];
    let (started, stopped) = (&plan["started"], &plan["not_started"]["stopped"]);
    let (started, stopped) = (started.as_u64(), stopped.as_u64());
    assert_eq!(
        started.zip(stopped).map(|(a, b)| a + b),
        Some(6_000),
        "{plan}"
    );
    assert_eq!(started, Some(on_plan(&file, 1).len() as u64));
}

#[test]
fn the_simulated_server_gets_every_planned_request_and_a_connection_carries_one_at_a_time() {
    let folder = Folder::new("open-sim");
    let file = folder.file("sim.jsonl");
    let server = Server::start(&Config::default()).expect("the server starts");
    let more = ["--rate", "20/s", "--requests", "24", "--warmup", "4"];
    let output = run(&format!("{}/v1", server.url()), &file, &more);
    let level = level(&output);
    books_are_closed(&level);
    assert_eq!(level["requests"]["ok"], 24);
    let records = server.ledger().wait_for(29, Duration::from_secs(60));
    let mut seen: Vec<String> = records
        .expect("one before the plan, four of the warm-up and 24")
        .into_iter()
        .filter_map(|record| record.request)
        .collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 29, "each once");
    let requests = on_plan(&file, 1);
    assert_eq!(requests.len(), 28);
    for pair in requests.windows(2) {
        assert_eq!(
            ns(&pair[1], "planned") - ns(&pair[0], "planned"),
            50_000_000
        );
    }
    // Of the requests on one connection each begins after the one before has ended, and the first
    // alone is on a new one.
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for request in &requests {
        let before = last.insert(ns(request, "stream"), ns(request, "finish"));
        assert_eq!(request["connection"]["reused"], before.is_some());
        assert!(before.is_none_or(|end| end <= ns(request, "start")));
    }
}

#[test]
fn contradictions_of_the_open_loop_are_refused_and_a_dry_run_shows_its_plan() {
    let nobody = "http://127.0.0.1:9/v1";
    for (flags, named) in [
        (&["--rate", "2", "-c", "4"][..], "--concurrency"),
        (&["--rate", "2", "--on-429", "pause"], "--on-429"),
        (&["--rate", "100000", "--duration", "1h"], "--rate"),
        (&["--rate", "0"], "--rate"),
        (&["--max-in-flight", "8"], "--rate"),
    ] {
        let output = run(nobody, "never.jsonl", flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(named), "{flags:?}: {said}");
    }
    let output = run(
        nobody,
        "never.jsonl",
        &[
            "--rate",
            "4,0.5/s",
            "--duration",
            "3s",
            "--warmup",
            "1",
            "--dry-run",
        ],
    );
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "4 requests a second, constant arrivals, at most 1000 in flight",
        "13 requests in all, planned at 0.000, 0.250, 0.500, 0.750, 1.000, 1.250, … s; the last at 3.000 s",
        "3 requests in all, planned at 0.000, 2.000, 4.000 s; the last at 4.000 s",
        "about 16 requests",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
