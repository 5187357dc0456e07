//! `denom serve` as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use denom::sim::ledger::{End, Record};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A path in the temporary directory that no other test uses; removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("denom-{}-{name}", std::process::id()));
        // It exists only if an earlier process of this number was killed.
        let _ = std::fs::remove_file(&path);
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn serve(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_denom"))
        .arg("serve")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary is built")
}

fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = serve(arguments)
        .wait_with_output()
        .expect("it ends by itself");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), message)
}

#[test]
fn it_says_where_it_is_serves_and_stops_cleanly() {
    let ledger = Scratch::new("serve.jsonl");
    let mut child = serve(&["--port", "0", "--ledger", &ledger.0.to_string_lossy()]);
    let mut line = String::new();
    let stdout = child.stdout.take().expect("its output is piped");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("it says where it is");
    let address = line
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once("/v1 "))
        .map(|(a, _)| a);
    assert!(line.contains(" roleburst,"), "{line}");

    let mut client = TcpStream::connect(address.expect("a URL first")).expect("it listens");
    let body = r#"{"model":"null","stream":true}"#;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nconnection: close\r\ncontent-length: ";
    write!(client, "{head}{}\r\n\r\n{body}", body.len()).expect("it reads");
    client
        .read_to_end(&mut Vec::new())
        .expect("it closes as asked");

    let id = i32::try_from(child.id()).expect("a process id is small");
    kill(Pid::from_raw(id), Signal::SIGINT).expect("it still runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    let lines = std::fs::read_to_string(&ledger.0).expect("the ledger is there");
    let record: Record = serde_json::from_str(&lines).expect("the ledger has one record");
    assert_eq!((record.model.as_str(), record.end), ("null", End::Done));
}

#[test]
fn it_refuses_what_it_cannot_do() {
    let ledger = Scratch::new("exists.jsonl");
    std::fs::write(&ledger.0, "").expect("the temporary directory can be written to");
    let path = ledger.0.to_string_lossy();
    let (code, message) = refused(&["--port", "0", "--ledger", &path]);
    assert_eq!(code, Some(2));
    assert!(
        message.contains(path.as_ref()) && message.contains("exists"),
        "{message}"
    );

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let (code, message) = refused(&["--listen", &address]);
    assert_eq!(code, Some(2));
    assert!(message.contains(&address), "{message}");

    let (code, message) = refused(&["--listen", &address, "--port", "1"]);
    assert_eq!(code, Some(2));
    assert!(
        message.contains("--listen") && message.contains("--port"),
        "{message}"
    );
}

#[test]
fn it_lists_every_script_and_plays_those_of_a_file() {
    let listed = serve(&["--list"])
        .wait_with_output()
        .expect("it ends by itself");
    let table = String::from_utf8(listed.stdout).expect("the table is text");
    assert_eq!(listed.status.code(), Some(0));
    let columns = |line: &str| line.split('\t').count();
    assert!(table.lines().all(|line| columns(line) == 8), "{table}");
    assert!(table.contains("\nseq-gap\t40\topenai-responses\tprotocol_error\t"));

    let file = Scratch::new("script.json");
    let json = r#"{"scripts":{"of-mine":{"steps":[{"at_us":0,"text":"a"}]}}}"#;
    std::fs::write(&file.0, json).expect("the temporary directory can be written to");
    let mut child = serve(&["--port", "0", "--script", &file.0.to_string_lossy()]);
    let mut line = String::new();
    let stdout = child.stdout.take().expect("its output is piped");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("it says where it is");
    assert!(line.ends_with(", of-mine\n"), "{line}");
    child.kill().expect("it still runs");
    child.wait().expect("it ends");

    std::fs::write(&file.0, "{}").expect("the temporary directory can be written to");
    let (code, message) = refused(&["--port", "0", "--script", &file.0.to_string_lossy()]);
    assert_eq!(code, Some(2));
    assert!(message.contains("scripts"), "{message}");
}

#[test]
fn it_says_https_and_writes_the_certificate_to_trust() {
    let file = Scratch::new("cert.pem");
    let out = file.0.to_string_lossy().into_owned();
    let mut child = serve(&["--port", "0", "--tls=expired", "--tls-cert-out", &out]);
    let mut line = String::new();
    let stdout = child.stdout.take().expect("its output is piped");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("it says where it is");
    assert!(line.starts_with("https://127.0.0.1:"), "{line}");
    let pem = std::fs::read_to_string(&file.0).expect("the certificate is there");
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{pem}");
    child.kill().expect("it still runs");
    child.wait().expect("it ends");

    let (code, message) = refused(&["--port", "0", "--tls", "--tls-cert-out", &out]);
    assert_eq!(code, Some(2));
    assert!(message.contains(&out), "{message}");
    let (code, _) = refused(&["--port", "0", "--tls-cert-out", "unused.pem"]);
    assert_eq!(code, Some(2));
}
