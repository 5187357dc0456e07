//! `denom tally` as a process: the example logs, other forms of the same log, and hostile files.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn tally(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_denom"))
        .args(["tally", "--format", "json"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary is built");
    // A command that refuses its flags reads nothing, and the pipe is gone.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn refused(arguments: &[&str], input: &[u8], code: i32, word: &str) {
    let output = tally(arguments, input);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(word), "{said}");
}

fn example(name: &str) -> Vec<u8> {
    let path = format!("{}/../../docs/examples/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("the example is there")
}

const COLUMNS: [&str; 7] = ["-", "--start", "s", "--end", "e", "--worker", "w"];

#[test]
fn one_log_in_three_forms_gives_one_tally() {
    let comma = b"s,e,w\n0,4,a\n0,4,b\n4,8,a\n4,9,b\n";
    let semicolon = b"\xef\xbb\xbfs;e;w\r\n0;4;a\r\n0;4;b\r\n4;8;a\r\n4;9;b\r\n";
    let lines = b"{\"s\":0,\"e\":4,\"w\":\"a\"}\n\n{\"s\":0,\"e\":4.0,\"w\":\"b\"}\n{\"s\":\"4\",\"e\":8,\"w\":\"a\"}\n{\"s\":4,\"e\":9,\"w\":\"b\"}";
    let first = json(&tally(&COLUMNS, comma));
    assert_eq!(first["books"]["used"], 4);
    assert_eq!(first["held_concurrency"], 17.0 / 9.0);
    assert_eq!(json(&tally(&COLUMNS, semicolon)), first);
    assert_eq!(json(&tally(&COLUMNS, lines)), first);
}

#[test]
fn the_example_logs_balance() {
    let cases: [(&str, &[&str], u64, u64); 4] = [
        (
            "ci.csv",
            &[
                "--start", "started", "--end", "finished", "--worker", "runner",
            ],
            50,
            50,
        ),
        (
            "chats.csv",
            &[
                "--start",
                "opened_ms",
                "--end",
                "closed_ms",
                "--worker",
                "agent",
            ],
            199,
            197,
        ),
        (
            "orders.jsonl",
            &[
                "--start",
                "order.placed",
                "--duration",
                "order.took_s",
                "--worker",
                "pod",
            ],
            310,
            310,
        ),
        (
            "ocr.csv",
            &[
                "--start", "start_s", "--end", "end_s", "--worker", "gpu", "--units", "pages",
            ],
            96,
            96,
        ),
    ];
    for (name, columns, rows, used) in cases {
        let mut arguments = vec!["-"];
        arguments.extend(columns);
        let value = json(&tally(&arguments, &example(name)));
        assert_eq!(
            (&value["books"]["rows"], &value["books"]["used"]),
            (&rows.into(), &used.into()),
            "{name}"
        );
        let (held, system) = (
            &value["held_concurrency"],
            &value["readings"][0]["system"]["value"],
        );
        let stream = value["readings"][0]["per_stream"]["value"]
            .as_f64()
            .expect("a number");
        let back = stream * held.as_f64().expect("a number");
        assert!(
            (back / system.as_f64().expect("a number") - 1.0).abs() < 1e-9,
            "{name}"
        );
    }
}

#[test]
fn rows_that_are_none_are_counted() {
    let torn = b"s,e,w\n0,4,a\n0,4\n\xff,4,a\n1,5,a,x\n2,6,b\n";
    let value = json(&tally(&COLUMNS, torn));
    assert_eq!(value["books"]["excluded"]["malformed"], 3);
    assert_eq!(value["books"]["used"], 2);
    let mut lines = b"{\"s\":0,\"e\":4,\"w\":\"a\"}\n[1]\n{\"s\":\n".to_vec();
    lines.extend(std::iter::repeat_n(b' ', 5 * 1024 * 1024));
    lines.extend(b"\n{\"s\":1,\"e\":4,\"w\":\"a\"}\n");
    let value = json(&tally(&COLUMNS, &lines));
    assert_eq!(value["books"]["excluded"]["malformed"], 2);
    assert_eq!(value["books"]["excluded"]["too_long"], 1);
    assert_eq!(value["books"]["used"], 2);
}

#[test]
fn what_cannot_be_tallied_says_why() {
    refused(
        &["-", "--start", "s", "--end", "x"],
        b"s,e\n0,1\n",
        2,
        "its header names: s, e",
    );
    refused(
        &["-", "--start", "s", "--end", "e"],
        b"s,e\nx,1\n",
        4,
        "1 with a start that is no time",
    );
    refused(
        &["-", "--start", "s", "--end", "e"],
        b"s,e\n0,1\n1767600000,1767600001\n",
        2,
        "--time-unit",
    );
    refused(
        &["-", "--start", "s", "--end", "e"],
        b"[{\"s\":0}]",
        2,
        "jq -c",
    );
    refused(&["-", "--start", "s", "--end", "e"], b"", 2, "empty");
    refused(&["-", "--start", "s"], b"", 2, "--end");
    refused(
        &["-", "--start", "s", "--end", "e", "--duration", "d"],
        b"",
        2,
        "--duration",
    );
    refused(
        &["/nowhere/at/all", "--start", "s", "--end", "e"],
        b"",
        2,
        "cannot be tallied",
    );
    let mut open = b"s,e\n0,1\n\"0".to_vec();
    open.extend(std::iter::repeat_n(b'x', 6 * 1024 * 1024));
    refused(
        &["-", "--start", "s", "--end", "e"],
        &open,
        2,
        "a quote may not be closed",
    );
}
