//! `denom audit` as a process: exit codes, directories, escapes, SARIF, and denom's own exports.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use denom::sim::server::{Config, Server};
use serde_json::{Value, json};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("denom-audit-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("a folder can be made");
        }
        std::fs::write(&path, text).expect("a file can be written");
        path.display().to_string()
    }

    fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind in a temporary folder harms no later test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn denom(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_denom"))
        .args(arguments)
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .output()
        .expect("the binary is built")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn code(arguments: &[&str]) -> Option<i32> {
    denom(arguments).status.code()
}

/// 400 requests of 64 tokens at 8 streams, as vLLM's benchmark writes them.
fn sound() -> Value {
    json!({
        "date": "d", "model_id": "m", "num_prompts": 400, "request_rate": "inf", "max_concurrency": 8,
        "duration": 36.5, "completed": 400, "failed": 0, "total_input_tokens": 4000,
        "total_output_tokens": 25600, "request_throughput": 10.9589, "output_throughput": 701.37,
        "mean_ttft_ms": 100.0, "mean_tpot_ms": 10.0, "mean_itl_ms": 10.0, "mean_e2el_ms": 730.0
    })
}

fn burst() -> String {
    let mut value = sound();
    value["mean_tpot_ms"] = json!(0.001);
    value["label"] = json!("bad \u{1b}[31m|\u{202e} label");
    serde_json::to_string_pretty(&value).expect("json")
}

#[test]
fn the_exit_code_says_clean_faulty_unreadable_or_unknown() {
    let folder = Folder::new("codes");
    let clean = folder.write("clean.json", &sound().to_string());
    let faulty = folder.write("faulty.json", &burst());
    let other = folder.write("package.json", "{\"name\": \"p\"}");
    assert_eq!(code(&["audit", &clean]), Some(0));
    assert_eq!(code(&["audit", &clean, &faulty]), Some(1));
    assert_eq!(code(&["audit", "--exit-zero", &faulty]), Some(0));
    assert_eq!(code(&["audit", &other]), Some(4));
    assert_eq!(code(&["audit", &clean, &other]), Some(0));
    let missing = denom(&["audit", &clean, "no-such-file.json"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stdout(&missing).is_empty());
    assert_eq!(
        code(&["audit", "--exit-zero", "no-such-file.json"]),
        Some(2)
    );
}

#[test]
fn an_ending_may_be_in_capitals() {
    let folder = Folder::new("capitals");
    folder.write("x.JSON", &sound().to_string());
    folder.write("y.Jsonl", &burst());
    let output = denom(&["audit", &folder.path(), "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("json");
    assert_eq!(report["files"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["summary"]["imported"], 2);
}

#[test]
fn a_pipe_is_refused_before_it_can_hang() {
    let folder = Folder::new("pipe");
    let pipe = folder.0.join("p.json");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is there").success());
    // `timeout` ends with 124 where the program had to be stopped.
    let output = Command::new("timeout")
        .args(["60", env!("CARGO_BIN_EXE_denom"), "audit"])
        .arg(&pipe)
        .output()
        .expect("timeout is there");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("write its content to a file"), "{said}");
}

#[test]
fn a_title_without_a_number_is_not_imported() {
    let folder = Folder::new("title");
    let title = folder.write("w.md", "# Serving Benchmark Result of our team\n");
    let output = denom(&["audit", &title]);
    assert_eq!(output.status.code(), Some(4));
    assert!(stdout(&output).contains("no number could be read"));
}

#[test]
fn a_directory_is_walked_and_every_file_is_named() {
    let folder = Folder::new("walk");
    folder.write("a/b/clean.json", &sound().to_string());
    folder.write("a/faulty.jsonl", &burst());
    folder.write("a/notes.md", "# nothing\n\nto see\n");
    folder.write("a/plot.png", "x");
    folder.write(".git/clean.json", &sound().to_string());
    let output = denom(&["audit", &folder.path(), "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).expect("json");
    let summary = &report["summary"];
    assert_eq!(
        (&summary["files"], &summary["imported"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(summary["with_faults"], 1);
    assert_eq!(summary["tools"]["vllm-bench"], 2);
    assert!(
        summary["left_out"][0]
            .as_str()
            .is_some_and(|left| left.starts_with("1 files"))
    );
    let why = report["files"][2]["not_imported"].as_str();
    assert!(why.is_some_and(|why| why.contains("no summary")), "{why:?}");
    let text = stdout(&denom(&["audit", &folder.path()]));
    assert!(text.contains("3 files, 2 imported"), "{text}");
    assert!(text.contains("!! burst_rate"), "{text}");
}

#[test]
fn a_strangers_text_moves_no_terminal_and_breaks_no_table() {
    let folder = Folder::new("escape");
    let two = format!("{}\n{}", burst(), burst());
    let file = folder.write("x.json", &two);
    let text = stdout(&denom(&["audit", &file]));
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{202e}'),
        "{text}"
    );
    assert!(text.contains("\\u{1b}"), "{text}");
    let markdown = stdout(&denom(&["audit", &file, "--format", "markdown"]));
    assert!(
        !markdown.contains('\u{1b}') && !markdown.contains("[31m|"),
        "{markdown}"
    );
}

#[test]
fn a_terminal_gets_bold_titles_and_no_other_escape() {
    use measure::audit::report::{FileReport, Report};
    let audit = measure::audit::audit(burst().as_bytes());
    let file = FileReport::new("\u{1b}[2J long-name.json".into(), audit);
    let style = denom::page::Style {
        color: true,
        width: 80,
    };
    let text = denom::page::audit::text(&Report::new(vec![file], Vec::new()), style);
    assert!(
        text.starts_with("\u{1b}[1m\\u{1b}[2J long-name.json: vllm-bench\u{1b}[0m\n"),
        "{text}"
    );
    assert_eq!(text.matches('\u{1b}').count(), 2, "{text}");
}

#[test]
fn sarif_names_rule_level_file_and_line() {
    let folder = Folder::new("sarif");
    let file = folder.write("a b.json", &burst());
    let log: Value = serde_json::from_slice(&denom(&["audit", &file, "--format", "sarif"]).stdout)
        .expect("json");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let result = &run["results"][0];
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&json!("burst_rate"), &json!("error"))
    );
    let index = result["ruleIndex"].as_u64().expect("an index") as usize;
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], "burst_rate");
    let place = &result["locations"][0]["physicalLocation"];
    let uri = place["artifactLocation"]["uri"].as_str().expect("a URI");
    assert!(uri.ends_with("/a%20b.json"), "{uri}");
    let line = burst()
        .lines()
        .position(|line| line.contains("mean_tpot_ms"));
    assert_eq!(
        place["region"]["startLine"].as_u64(),
        line.map(|line| line as u64 + 1)
    );
}

#[test]
fn a_rule_explains_itself() {
    let page = denom(&["audit", "--explain", "burst_rate"]);
    assert!(stdout(&page).starts_with("# burst_rate (error)"));
    assert_eq!(code(&["audit", "--explain", "no_such_rule"]), Some(2));
    let schema: Value =
        serde_json::from_slice(&denom(&["audit", "--schema"]).stdout).expect("json");
    assert_eq!(schema["$id"], "denom.audit/1");
}

#[test]
fn a_run_of_denoms_own_exports_to_layouts_that_audit_clean() {
    let server = Server::start(&Config::default()).expect("the server starts");
    let folder = Folder::new("round");
    let record = folder.0.join("run.denom.jsonl").display().to_string();
    let url = format!("{}/v1", server.url());
    let arguments = [
        "run",
        &url,
        "-m",
        "normal",
        "-c",
        "1",
        "--requests",
        "6",
        "--output-tokens",
        "64",
        "-q",
        "-o",
        &record,
    ];
    let ran = denom(&arguments);
    assert!(
        std::path::Path::new(&record).exists(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    for format in ["vllm-json", "aiperf-json"] {
        let exported = denom(&["report", &record, "--format", format]);
        let file = folder.write(format, &stdout(&exported));
        let audited = denom(&["audit", &file]);
        assert_eq!(
            audited.status.code(),
            Some(0),
            "{format}: {}",
            stdout(&audited)
        );
    }
    assert_eq!(code(&["audit", &record]), Some(0));
    let both = denom(&["report", &record, "--rows", "--format", "vllm-json"]);
    assert_eq!(both.status.code(), Some(2));
}
