//! `denom probe` as a process, against the simulated server and paths that hold its answers back.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use denom::sim::server::{Config, Running, Server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::path::{Hop, Path};

/// Long enough for several bundles of each kind at a token each 10 ms.
const LENGTHS: &str = "8,32,128";

fn server() -> Running {
    Server::start(&Config::default()).expect("the server starts")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_denom"));
    command
        .arg("probe")
        .args(arguments)
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null());
    command
}

fn probe(base: &str, model: &str, more: &[&str]) -> Output {
    let url = format!("{base}/v1/chat/completions");
    let mut arguments = vec![url.as_str(), "-m", model, "-q"];
    arguments.extend(more);
    command(&arguments).output().expect("the binary is built")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The exit code and the report.
type Told = (Option<i32>, Value);
/// A probe that is still to be run.
type Task<'a> = Box<dyn FnOnce() -> Told + Send + 'a>;

/// Probes `model` by way of `hop`: the exit code and the report.
fn through(server: SocketAddr, hop: Hop, model: &str, more: &[&str]) -> Told {
    let path = Path::start(server, hop);
    let mut arguments = vec!["--format", "json", "--lengths", LENGTHS];
    arguments.extend(more);
    let output = probe(&path.url(), model, &arguments);
    (output.status.code(), json(&output))
}

/// Runs all at once: each is mostly waiting.
fn at_once<const N: usize>(tasks: [Task<'_>; N]) -> [Told; N] {
    std::thread::scope(|scope| {
        let running = tasks.map(|task| scope.spawn(task));
        running.map(|task| task.join().expect("a probe that ends"))
    })
}

/// A verdict without what the bundles are cut by.
fn bundles(verdict: &str) -> &str {
    match verdict {
        "bundles_by_size" | "bundles_by_time" => "bundles",
        other => other,
    }
}

#[test]
fn each_way_of_holding_back_is_told_over_a_socket() {
    let server = server();
    let at = server.addr();
    let run = |hop, model: &'static str, more: &'static [&'static str]| {
        let task = move || through(at, hop, model, more);
        Box::new(task) as Task<'_>
    };
    let timer = Hop::Timer(Duration::from_millis(200));
    let found = at_once([
        run(Hop::Passes, "normal", &[]),
        run(Hop::Holds, "normal", &[]),
        run(Hop::Size(4_096), "normal", &[]),
        run(timer, "normal", &[]),
        run(Hop::Passes, "plainjson", &[]),
        run(Hop::Passes, "nousage", &[]),
        run(Hop::Passes, "bursts", &[]),
        run(Hop::Compresses, "normal", &["--as-sdk"]),
    ]);
    let told: Vec<_> = found
        .iter()
        .map(|(code, report)| (*code, bundles(report["verdict"].as_str().unwrap_or(""))))
        .collect();
    assert_eq!(
        told,
        [
            (Some(0), "streams"),
            (Some(1), "buffers"),
            (Some(1), "bundles"),
            (Some(1), "bundles"),
            (Some(1), "buffers"),
            (Some(0), "streams"),
            (Some(4), "cannot_tell"),
            (Some(1), "streams"),
        ]
    );
    let [streams, holds, sized, timed, _, uncounted, ignoring, packed] =
        found.map(|(_, report)| report);
    speed_is_inferred(&streams);
    speed_is_inferred(&holds);
    // The framing of the chunks is not of the body. Which of the two it is told as rests on when
    // things arrived, which a busy machine bends: the simulations in virtual time hold that.
    let verdict = &sized["paths"][0]["verdict"];
    if let Some(bytes) = verdict["bundle_bytes"].as_f64() {
        assert!((3_500.0..=4_096.0).contains(&bytes), "{bytes:?}");
    }
    let verdict = &timed["paths"][0]["verdict"];
    if let Some(seconds) = verdict["bundle_seconds"].as_f64() {
        assert!((0.15..0.3).contains(&seconds), "{seconds:?}");
    }
    assert_eq!(uncounted["paths"][0]["counted"], "chunks");
    let verdict = &ignoring["paths"][0]["verdict"];
    assert_eq!(verdict["reason"], "length_ignored", "{verdict}");
    assert_eq!(
        ignoring["inferred"]["time_per_token"]["withheld"]["code"],
        "length_ignored"
    );
    compression_is_found(&packed);
}

/// A token each 10 ms, inferred and named so, whether or not anything was seen of it.
fn speed_is_inferred(report: &Value) {
    let figure = &report["inferred"]["time_per_token"];
    assert_eq!(figure["evidence"], "inferred");
    // A busy machine may make it too uncertain to be shown; then it says why.
    match figure["value"].as_f64() {
        Some(each) => assert!((0.0095..0.0105).contains(&each), "{figure}"),
        None => assert!(figure["withheld"]["code"].is_string(), "{figure}"),
    }
}

fn compression_is_found(report: &Value) {
    let sdk = &report["paths"][1];
    assert_eq!(
        (&sdk["way"], &sdk["verdict"]["kind"]),
        (&"as_sdk".into(), &"buffers".into())
    );
    let compared = &report["comparisons"][0];
    assert_eq!(compared["differs"], true);
    assert!(
        compared["text"]
            .as_str()
            .is_some_and(|text| text.contains("FINDING"))
    );
    let says = sdk["says"].as_array().expect("a list");
    let encoding = says.iter().find(|said| said["what"] == "Content-Encoding");
    assert_eq!(encoding.map(|said| &said["value"]), Some(&"gzip".into()));
    let changes = sdk["changes"].to_string();
    assert!(changes.contains("gzip_types"), "{changes}");
}

#[test]
fn the_other_url_says_which_side_holds_back_and_the_file_holds_it_all() {
    let server = server();
    let path = Path::start(server.addr(), Hop::Holds);
    let file = scratch("direct").join("p.denom.jsonl");
    let named = file.display().to_string();
    let direct = format!("{}/v1/chat/completions", server.url());
    let more = [
        "--direct",
        &direct,
        "--format",
        "json",
        "--lengths",
        "4,16,64",
        "-o",
        &named,
    ];
    let output = probe(&path.url(), "normal", &more);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    let compared = &report["comparisons"][0];
    assert_eq!(
        (&compared["with"], &compared["differs"]),
        (&"direct".into(), &true.into())
    );
    let longest = &compared["changes"][2];
    let later = longest["first_content_s"]["median"].as_f64();
    assert!(later.is_some_and(|later| later > 0.5), "{longest}");
    // Its records read as any run's, a level a side, and hold no text.
    let mut again = Command::new(env!("CARGO_BIN_EXE_denom"));
    let page = again
        .args(["report", &named, "--format", "json"])
        .output()
        .expect("runs");
    let page = json(&page);
    let shapes = |level: usize| page["levels"][level]["requests"]["shapes"].clone();
    assert_eq!(shapes(0)["buffered"], 18, "{page}");
    assert!(
        shapes(1)["streamed"].as_u64().is_some_and(|n| n >= 6),
        "{page}"
    );
    let records = std::fs::read_to_string(&file).expect("a file");
    assert!(!records.contains("\"text\":\"") || !records.contains("\"prompt\":\""));
    let noted = records.matches("\"transfer-encoding\":\"chunked\"");
    assert_eq!(noted.count(), 38);
    let refused = probe(&path.url(), "normal", &["-o", &named]);
    assert_eq!(
        refused.status.code(),
        Some(2),
        "an existing file is not overwritten"
    );
}

fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("probe")
        .join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("an old folder goes away");
    }
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn its_pages_say_the_same_in_three_forms() {
    let server = server();
    let more = |format| ["--lengths", "2,8,32", "--format", format];
    let texts = std::thread::scope(|scope| {
        let forms = ["text", "markdown", "junit"];
        let server = &server;
        let running =
            forms.map(|form| scope.spawn(move || probe(&server.url(), "burst", &more(form))));
        running.map(|one| {
            let output = one.join().expect("ends");
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            String::from_utf8(output.stdout).expect("UTF-8")
        })
    });
    for text in &texts {
        assert!(text.contains("BUFFERS"), "{text}");
        assert!(text.contains("buffering off;"), "{text}");
        assert!(text.contains("not observed"), "{text}");
    }
    let [text, markdown, junit] = &texts;
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "plain where it is no terminal");
    assert!(markdown.contains("| --- |"));
    assert!(
        junit.starts_with("<?xml") && junit.contains("failures=\"1\" errors=\"0\""),
        "{junit}"
    );
    assert!(junit.contains("type=\"buffers\"") && junit.trim_end().ends_with("</testsuite>"));
    assert!(!junit.contains("<forward-request"), "{junit}");
}

#[test]
fn what_cannot_be_asked_ends_with_its_code_and_one_sentence() {
    let server = server();
    let fails = |base: &str, model, more: &[&str], code| {
        let output = probe(base, model, more);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{model} {more:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    let refused = fails(&server.url(), "http401", &[], 3);
    assert!(refused.contains("401"), "{refused}");
    fails(&server.url(), "http404", &[], 3);
    fails("http://127.0.0.1:9", "normal", &[], 3);
    let nowhere = fails(
        &server.url(),
        "normal",
        &["--direct", "http://127.0.0.1:9/v1"],
        3,
    );
    assert!(nowhere.contains("127.0.0.1:9"), "{nowhere}");
    let output = probe(&server.url(), "normal", &["--lengths", "16,17,18"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_refused_form_is_asked_in_the_other_and_said() {
    let server = server();
    let more = ["--lengths", "2,8,32", "--format", "json"];
    let output = probe(&server.url(), "http400_stream_options", &more);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert_eq!(report["paths"][0]["requests"]["discarded"], 2);
    let notes = report["notes"].to_string();
    assert!(notes.contains("stream_options"), "{notes}");
}

#[test]
fn a_dry_run_sends_nothing_and_states_the_cost() {
    let server = server();
    let output = probe(&server.url(), "normal", &["--dry-run", "--as-sdk"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text.contains("38 requests and at most 4160 output tokens"),
        "{text}"
    );
    let summary = server.stop();
    assert_eq!(summary.counts.connections, 0);
}

#[test]
fn an_interrupt_ends_it_with_what_was_found() {
    let server = server();
    let url = format!("{}/v1/chat/completions", server.url());
    let child = command(&[&url, "-m", "normal", "-q", "--format", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    server
        .ledger()
        .wait_for(3, Duration::from_secs(60))
        .expect("three requests");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("a signal");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130));
    let report = json(&output);
    assert_eq!(
        (&report["interrupted"], &report["verdict"]),
        (&true.into(), &"cannot_tell".into())
    );
}

#[test]
fn a_run_that_saw_nothing_stream_names_the_probe() {
    let server = server();
    let url = format!("{}/v1/chat/completions", server.url());
    let page = |model: &str, file: &str| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_denom"));
        let folder = scratch(file);
        run.args(["run", &url, "-m", model, "-c", "1,2", "--requests", "6"]);
        run.args(["--output-tokens", "30", "-q", "-o"]);
        run.arg(folder.join("r.denom.jsonl")).stdin(Stdio::null());
        let output = run.output().expect("runs");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let held = page("burst", "held");
    let next = format!("denom probe {url} -m burst");
    let lines = held.replace('\n', " ");
    let words: Vec<&str> = lines.split_whitespace().collect();
    assert!(words.join(" ").contains(&next), "{held}");
    let streamed = page("normal", "streamed");
    assert!(!streamed.contains("denom probe"), "{streamed}");
}
