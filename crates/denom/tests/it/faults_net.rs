//! Faults that need more than one scripted answer, each on a real socket and named by its row.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::scripted::{
    Folder, Server, answer, chat, command, delta, denom, ending, json, json_answer, read_request,
    report, run, stderr,
};

/// How long a test waits for an event before it calls it missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for what must come; the time between two looks is no part of what is tested.
fn until(what: &str, mut found: impl FnMut() -> bool) {
    let began = Instant::now();
    while !found() {
        assert!(began.elapsed() < PATIENCE, "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn lines(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("the record file");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["line"] == kind).collect()
}

fn rows(file: &str) -> Vec<Value> {
    let rows = json(&denom(&["report", file, "--rows", "--format", "json"]));
    rows["rows"].as_array().expect("rows").clone()
}

/// The counts of the only level; issued must be the sum of all classes, and the books close.
fn books(file: &str) -> Value {
    let report = report(file);
    let level = &report["levels"][0];
    let requests = level["requests"].clone();
    let count = |name: &str| requests[name].as_u64().expect("a count");
    let failed: u64 = requests["failed"]
        .as_object()
        .expect("classes")
        .values()
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(
        count("issued"),
        count("ok") + count("drained") + failed,
        "{requests}"
    );
    let reasons = level["verdict"]["reasons"].as_array().expect("a list");
    assert!(
        reasons.iter().all(|reason| reason["code"] != "books"),
        "{reasons:?}"
    );
    requests
}

/// No failed request has a total, and none without content a time to it.
fn withheld(rows: &[Value]) {
    for row in rows.iter().filter(|row| row["outcome"] != "ok") {
        assert!(
            row["e2e_s"].is_null() && row["ttft_s"].is_null() && row["rate"].is_null(),
            "{row}"
        );
    }
}

fn outcomes(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["outcome"].as_str().expect("an outcome"))
        .collect()
}

fn done(command: &mut Command) -> Output {
    command.output().expect("the binary is built")
}

#[test]
fn row_28_a_429_is_counted_and_by_default_nothing_waits() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(
        move |_, stream| match asked.fetch_add(1, Ordering::SeqCst) {
            1 => answer(
                stream,
                "429 Too Many",
                "retry-after: 3600\r\n",
                b"slow down",
            ),
            _ => chat(stream, &["a", "b", "c"]),
        },
    );
    let folder = Folder::new("429-none");
    let file = folder.file("r.denom.jsonl");
    done(&mut run(&server.url(), "4", &file, &["-m", "m"]));
    let rows = rows(&file);
    assert_eq!(outcomes(&rows), ["ok", "rate_limited", "ok", "ok"]);
    withheld(&rows);
    assert_eq!(books(&file)["failed"], json!({"rate_limited": 1}));
    assert!(of_kind(&lines(&file), "gap").is_empty());
}

#[test]
fn row_28_a_429_pauses_all_requests_where_the_user_wants_it() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(
        move |_, stream| match asked.fetch_add(1, Ordering::SeqCst) {
            3 => answer(stream, "429 Too Many", "retry-after: 1\r\n", b"slow down"),
            _ => chat(stream, &["a", "b", "c"]),
        },
    );
    let folder = Folder::new("429-pause");
    let file = folder.file("r.denom.jsonl");
    let output = done(&mut run(
        &server.url(),
        "12",
        &file,
        &["-m", "m", "-c", "2", "--on-429", "pause"],
    ));
    assert_eq!(books(&file)["failed"], json!({"rate_limited": 1}));
    let lines = lines(&file);
    let gaps = of_kind(&lines, "gap");
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    let at = |line: &Value, name: &str| line[name].as_u64().expect("an instant");
    let (from, to) = (at(gaps[0], "from"), at(gaps[0], "to"));
    assert_eq!(
        (gaps[0]["kind"].as_str(), to - from),
        (Some("pause"), 1_000_000_000)
    );
    let refused = lines
        .iter()
        .find(|line| line["status"] == 429)
        .expect("the refusal");
    assert_eq!(at(refused, "head"), from);
    let inside = of_kind(&lines, "sent")
        .iter()
        .filter(|sent| (at(refused, "finish")..to).contains(&at(sent, "start")))
        .count();
    assert_eq!(inside, 0, "a request went out in the pause");
    let report = report(&file);
    let level = &report["levels"][0];
    assert_eq!(level["window"]["paused_s"], 1.0, "{}", level["window"]);
    let seconds = level["system"]["requests"]["interval"]["seconds"]
        .as_f64()
        .expect("a length");
    let whole = level["window"]["end_s"].as_f64().expect("s")
        - level["window"]["start_s"].as_f64().expect("s");
    assert!(
        (whole - seconds - 1.0).abs() < 1e-6,
        "{whole} s with, {seconds} s without the pause"
    );
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        page.contains("without 1.00 s of pauses") && page.contains("requests were paused 1 times"),
        "{page}"
    );
}

#[test]
fn row_28_an_endless_pause_ends_with_the_run() {
    let paused = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&paused);
    let server = Server::start(move |_, stream| {
        told.store(true, Ordering::SeqCst);
        answer(
            stream,
            "429 Too Many",
            "retry-after: 1000000000\r\n",
            b"never",
        )
    });
    let folder = Folder::new("429-endless");
    let file = folder.file("r.denom.jsonl");
    let mut command = run(&server.url(), "5", &file, &["-m", "m", "--on-429", "pause"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary is built");
    until("refusal", || {
        std::fs::read_to_string(&file)
            .is_ok_and(|text| text.contains("rate_limited") || text.contains("\"status\":429"))
    });
    assert!(paused.load(Ordering::SeqCst));
    signal(&child, Signal::SIGTERM);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let requests = books(&file);
    assert_eq!(
        (&requests["issued"], &requests["failed"]),
        (&json!(1), &json!({"rate_limited": 1}))
    );
}

/// A server that loads its model: so many refusals, then health, then answers.
fn loading(health: bool, refusals: usize) -> (Server, Arc<Mutex<Vec<String>>>) {
    let (looks, asked) = (AtomicUsize::new(0), Arc::new(Mutex::new(Vec::new())));
    let log = Arc::clone(&asked);
    let server = Server::start(move |asked, stream| {
        log.lock()
            .expect("held by nobody else")
            .push(asked.line.trim().to_owned());
        let busy = json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}});
        if asked.line.contains("/health") && !health {
            return json_answer(stream, "404 No", &json!({"detail": "Not Found"}));
        }
        if looks.fetch_add(1, Ordering::SeqCst) < refusals {
            return json_answer(stream, "503 Busy", &busy);
        }
        match asked.line.starts_with("POST") {
            true => chat(stream, &["a", "b", "c"]),
            false => json_answer(
                stream,
                "200 OK",
                &json!({"status": "ok", "data": [{"id": "m"}]}),
            ),
        }
    });
    (server, asked)
}

#[test]
fn row_29_a_server_that_loads_fails_requests_unless_it_is_waited_for() {
    let folder = Folder::new("loading");
    let file = folder.file("r.denom.jsonl");
    let (server, _) = loading(true, 2);
    done(&mut run(&server.url(), "4", &file, &["-m", "m"]));
    let found = rows(&file);
    assert_eq!(outcomes(&found), ["http_error", "http_error", "ok", "ok"]);
    assert!(
        found[0]["detail"]
            .as_str()
            .is_some_and(|text| text.contains("Loading model"))
    );
    withheld(&found);
    assert_eq!(books(&file)["failed"], json!({"http_error": 2}));
    for health in [true, false] {
        let (server, asked) = loading(health, 2);
        let output = done(&mut run(
            &server.url(),
            "4",
            &file,
            &["-m", "m", "--wait-ready"],
        ));
        assert_eq!(outcomes(&rows(&file)), ["ok"; 4], "{}", stderr(&output));
        let asked = asked.lock().expect("held by nobody else").clone();
        let posts = asked
            .iter()
            .position(|line| line.starts_with("POST"))
            .expect("requests");
        let looks = if health { 3 } else { 6 };
        assert_eq!(posts, looks, "{asked:?}");
        let notes = report(&file)["run"]["notes"].clone();
        assert!(
            notes.to_string().contains("it was asked 3 times"),
            "{notes}"
        );
    }
}

#[test]
fn row_29_a_server_that_never_is_ready_ends_the_wait() {
    let folder = Folder::new("never");
    let file = folder.file("r.denom.jsonl");
    let (server, asked) = loading(true, usize::MAX);
    let output = done(&mut run(
        &server.url(),
        "4",
        &file,
        &["-m", "m", "--wait-ready=1s"],
    ));
    assert_eq!(output.status.code(), Some(3));
    for word in [
        "not ready within 1.00 s",
        "/health answers 503",
        "--wait-ready",
    ] {
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
    assert!(
        asked
            .lock()
            .expect("held by nobody else")
            .iter()
            .all(|line| line.starts_with("GET /health"))
    );
    assert!(!std::fs::exists(&file).expect("the folder is there"));
}

#[test]
fn row_31_a_name_that_is_not_there_ends_the_run_before_it_begins() {
    let folder = Folder::new("dns");
    let file = folder.file("r.denom.jsonl");
    let output = done(&mut run(
        "http://denom-test.invalid/v1/chat/completions",
        "4",
        &file,
        &["-m", "m"],
    ));
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("denom-test.invalid"),
        "{}",
        stderr(&output)
    );
    assert!(!std::fs::exists(&file).expect("the folder is there"));
}

#[test]
fn row_32_a_restart_is_an_outage_that_is_probed_once_a_second() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let folder = Folder::new("restart");
    let file = folder.file("r.denom.jsonl");
    let url = format!("http://{address}/v1/chat/completions");
    let mut command = command(&[
        "run",
        &url,
        "-m",
        "m",
        "-c",
        "16",
        "--no-baseline",
        "--warmup",
        "0",
    ]);
    command.args(["--duration", "8s", "--input-tokens", "4", "-o", &file]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary is built");
    // The first life: an answer to the first request, and the end of every connection after it.
    let first = listener.accept().expect("a connection").0;
    let mut read = BufReader::new(first.try_clone().expect("a second handle"));
    let lead = loop {
        if read_request(&mut read, 0).is_some() {
            break first;
        }
    };
    let mut lead = lead;
    assert!(chat(&mut lead, &["a", "b", "c"]));
    drop((lead, read, listener));
    let refused = || refusals(&std::fs::read_to_string(&file).unwrap_or_default());
    until("two probes of the outage", || {
        let ends = refused();
        ends.get(49).is_some_and(|opened| {
            ends.iter()
                .filter(|end| **end > opened + 900_000_000)
                .count()
                >= 2
        })
    });
    let second = serve_at(address);
    let output = child.wait_with_output().expect("it ends");
    drop(second);
    let requests = books(&file);
    let away = requests["failed"]["connect_error"]
        .as_u64()
        .expect("refused ones");
    assert!(
        requests["ok"].as_u64().is_some_and(|ok| ok > 16),
        "{}",
        stderr(&output)
    );
    let lines = lines(&file);
    let starts = refused();
    assert_eq!(starts.len() as u64, away);
    // Those on their way as the server was found to be away may follow it; then one a second.
    let probes: Vec<u64> = starts
        .iter()
        .copied()
        .filter(|at| *at > starts[49] + 900_000_000)
        .collect();
    assert!(!probes.is_empty());
    for pair in probes.windows(2) {
        assert!(
            pair[1] - pair[0] >= 900_000_000,
            "two probes within {} ns",
            pair[1] - pair[0]
        );
    }
    let gaps = of_kind(&lines, "gap");
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert_eq!(gaps[0]["kind"], "outage");
    let level = &report(&file)["levels"][0];
    assert_eq!(
        level["window"]["paused_s"], 0.0,
        "an outage stays in the window"
    );
    let warning = level["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|warning| warning["code"] == "outage");
    let text = warning.expect("the outage is said")["text"]
        .as_str()
        .expect("a text")
        .to_owned();
    assert!(
        text.contains("took no connections for") && text.contains("with them"),
        "{text}"
    );
    withheld(&rows(&file));
}

/// When each refused connection of a record file was given up, in order; a last line may be torn.
fn refusals(text: &str) -> Vec<u64> {
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let refused = lines.filter(|line| line["transport"]["how"] == "no_connection");
    let mut ends: Vec<u64> = refused.filter_map(|line| line["finish"].as_u64()).collect();
    ends.sort_unstable();
    ends
}

/// A server at an address that another one had.
fn serve_at(address: std::net::SocketAddr) -> TcpListener {
    let listener = TcpListener::bind(address).expect("the port is free again");
    let accepts = listener.try_clone().expect("a second handle");
    std::thread::spawn(move || {
        for mut stream in accepts.incoming().flatten() {
            std::thread::spawn(move || {
                let mut read = BufReader::new(stream.try_clone().expect("a second handle"));
                // Slow enough that a level by time makes no file of many megabytes.
                while read_request(&mut read, 0).is_some() && chat(&mut stream, &["a", "b", "c"]) {
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
    });
    listener
}

#[test]
fn row_33_keep_alive_closed_as_we_write_is_stale_and_not_retried() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = Server::start(move |asked, stream| {
        count.fetch_add(1, Ordering::SeqCst);
        // The second request on a connection is read, and the connection closed without a word.
        asked.before == 0 && chat(stream, &["a", "b", "c"])
    });
    let folder = Folder::new("stale");
    let file = folder.file("r.denom.jsonl");
    done(&mut run(&server.url(), "6", &file, &["-m", "m"]));
    let rows = rows(&file);
    assert_eq!(
        outcomes(&rows),
        ["ok", "stale_conn", "ok", "stale_conn", "ok", "stale_conn"]
    );
    withheld(&rows);
    let requests = books(&file);
    assert_eq!(requests["failed"], json!({"stale_conn": 3}));
    assert_eq!(asked.load(Ordering::SeqCst), 6, "one was sent twice");
    let reused: Vec<bool> = rows.iter().map(|row| row["reused"] == true).collect();
    assert_eq!(reused, [false, true, false, true, false, true]);
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(folder: &Folder) -> (Self, String) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let file = folder.file("ca.pem");
        std::fs::write(&file, issuer.pem()).expect("written");
        (Authority(issuer), file)
    }

    fn server(&self, name: &str, expired: bool) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        if expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key);
        Arc::new(config.expect("a server"))
    }
}

type Tls = BufReader<StreamOwned<ServerConnection, TcpStream>>;

/// Speaks TLS by the configuration for the connection's number; `serve` may write one answer, and
/// whether the end is said is its own business.
fn tls_server(
    configs: Vec<Arc<ServerConfig>>,
    serve: impl Fn(&mut Tls) + Send + Sync + 'static,
) -> Server {
    let taken = AtomicUsize::new(0);
    Server::on_connection(move |stream| {
        let number = taken.fetch_add(1, Ordering::SeqCst).min(configs.len() - 1);
        let connection = ServerConnection::new(Arc::clone(&configs[number])).expect("a server");
        let mut tls = BufReader::new(StreamOwned::new(connection, stream));
        if read_request(&mut tls, 0).is_some() {
            serve(&mut tls);
        }
    })
}

fn https(server: &Server) -> String {
    format!(
        "https://localhost:{}/v1/chat/completions",
        server.address.port()
    )
}

#[test]
fn row_34_a_certificate_that_is_no_good_is_a_connect_error_with_its_reason() {
    for (expired, word) in [(true, "expired"), (false, "another host")] {
        let folder = Folder::new(word.split(' ').next().unwrap_or(word));
        let file = folder.file("r.denom.jsonl");
        let (authority, ca) = Authority::new(&folder);
        let (name, good) = (
            if expired {
                "localhost"
            } else {
                "other.example"
            },
            authority.server("localhost", false),
        );
        let bad = authority.server(name, expired);
        let serve = |tls: &mut Tls| {
            let text = delta("a") + &ending(1);
            answer(
                tls.get_mut(),
                "200 OK",
                "content-type: text/event-stream\r\nconnection: close\r\n",
                text.as_bytes(),
            );
            tls.get_mut().conn.send_close_notify();
            // Who is gone already needs no end.
            let _ = tls.get_mut().flush();
        };
        let server = tls_server(vec![bad.clone()], serve);
        let output = done(&mut run(
            &https(&server),
            "3",
            &file,
            &["-m", "m", "--cacert", &ca],
        ));
        assert_eq!(output.status.code(), Some(3));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
        // A certificate that changes during the run: what was good until then stays.
        let server = tls_server(vec![good, bad], serve);
        done(&mut run(
            &https(&server),
            "4",
            &file,
            &["-m", "m", "--cacert", &ca],
        ));
        let found = rows(&file);
        assert_eq!(
            outcomes(&found),
            ["ok", "connect_error", "connect_error", "connect_error"]
        );
        withheld(&found);
        assert_eq!(books(&file)["failed"], json!({"connect_error": 3}));
        let lines = lines(&file);
        let refused = lines
            .iter()
            .find(|line| line["transport"]["how"] == "no_connection")
            .expect("one");
        assert_eq!(
            (
                &refused["transport"]["phase"],
                &refused["transport"]["local"]
            ),
            (&json!("tls"), &json!(false))
        );
        assert!(
            refused["transport"]["text"]
                .as_str()
                .is_some_and(|text| text.contains(word)),
            "{refused}"
        );
    }
}

#[test]
fn row_34_an_end_of_tls_that_nobody_said_is_judged_by_what_came() {
    let whole = delta("a") + &delta("b") + &ending(2);
    let finish_only = whole.replace("data: [DONE]\n\n", "");
    let cut = delta("a") + &delta("b");
    let length = |text: &str| format!("content-length: {}\r\n", text.len());
    for (name, head, text, outcome) in [
        ("whole by its length", length(&whole), &whole, "ok"),
        // Without a length nothing shows that the end was meant, whatever has come.
        (
            "whole by its last event",
            String::new(),
            &whole,
            "truncated",
        ),
        (
            "finish marker only, by its length",
            length(&finish_only),
            &finish_only,
            "ok",
        ),
        (
            "finish marker only",
            String::new(),
            &finish_only,
            "truncated",
        ),
        ("cut", String::new(), &cut, "truncated"),
        (
            "cut by its length",
            format!("content-length: {}\r\n", cut.len() + 10),
            &cut,
            "truncated",
        ),
    ] {
        let folder = Folder::new(&name.replace(' ', "-"));
        let file = folder.file("r.denom.jsonl");
        let (authority, ca) = Authority::new(&folder);
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n{head}\r\n{text}"
        );
        let server = tls_server(vec![authority.server("localhost", false)], move |tls| {
            // The TCP connection ends after it, and TLS says nothing of that.
            let _ = tls.get_mut().write_all(answer.as_bytes());
            let _ = tls.get_mut().flush();
        });
        done(&mut run(
            &https(&server),
            "2",
            &file,
            &["-m", "m", "--cacert", &ca],
        ));
        let found = rows(&file);
        assert_eq!(outcomes(&found), [outcome; 2], "{name}: {found:?}");
        assert!(
            found
                .iter()
                .all(|row| row["first_content_seen_s"].is_number()),
            "{name}"
        );
        withheld(&found);
        books(&file);
    }
}

#[test]
fn row_35_a_run_without_files_says_that_this_machine_was_the_limit() {
    let server = Server::start(|_, stream| chat(stream, &["a", "b", "c"]));
    let folder = Folder::new("emfile");
    let file = folder.file("r.denom.jsonl");
    // 144 files are what forty streams need; most of them are taken before it begins.
    let mut run = run(&server.url(), "80", &file, &["-m", "m", "-c", "40"]);
    let taken: String = (10..110).map(|n| format!("exec {n}</dev/null; ")).collect();
    let script = format!("{taken} ulimit -n 144; exec \"$@\"");
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &script, "bash"])
        .arg(run.get_program())
        .args(run.get_args());
    let output = done(shell.env_remove("OPENAI_API_KEY"));
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let requests = books(&file);
    let local = requests["failed"]["local_resource"]
        .as_u64()
        .expect("no file was left");
    assert!(
        local > 0
            && requests["failed"]
                .as_object()
                .is_some_and(|kinds| kinds.len() == 1)
    );
    let reasons = report(&file)["levels"][0]["verdict"]["reasons"].to_string();
    assert!(reasons.contains("local_resource"), "{reasons}");
    // Where it is known before, nothing is sent.
    let script = "ulimit -n 60; exec \"$@\"";
    let mut shell = Command::new("bash");
    shell
        .args(["-c", script, "bash"])
        .arg(run.get_program())
        .args(run.get_args());
    let before = server.count();
    let output = done(&mut shell);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("open files"),
        "{}",
        stderr(&output)
    );
    assert_eq!(server.count(), before);
    run.arg("-q");
}

/// A stream of a token every 20 ms, and how many have been written.
fn ticking(tokens: usize) -> (Server, Arc<AtomicUsize>) {
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let server = Server::start(move |_, stream| {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let mut fine = stream.write_all(head.as_bytes()).is_ok();
        for _ in 0..tokens {
            fine = fine && stream.write_all(delta("a").as_bytes()).is_ok();
            count.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(20));
        }
        if fine {
            // The client may be gone by now; the connection ends here in any case.
            let _ = stream.write_all(ending(tokens as u64).as_bytes());
        }
        false
    });
    (server, written)
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    kill(pid, signal).expect("the process is there");
}

/// Starts a run against `server` and waits until a first token was written.
fn started(server: &Server, written: &AtomicUsize, requests: &str, file: &str) -> Child {
    let mut command = run(
        &server.url(),
        requests,
        file,
        &["-m", "m", "-q", "--format", "json"],
    );
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the binary is built");
    until("token", || written.load(Ordering::SeqCst) > 0);
    child
}

#[test]
fn row_37_a_client_that_was_stopped_flags_the_level_and_keeps_its_intervals() {
    let (server, written) = ticking(120);
    let folder = Folder::new("stopped");
    let file = folder.file("r.denom.jsonl");
    let child = started(&server, &written, "6", &file);
    signal(&child, Signal::SIGSTOP);
    let before = written.load(Ordering::SeqCst);
    until("tokens behind its back", || {
        written.load(Ordering::SeqCst) > before + 75
    });
    signal(&child, Signal::SIGCONT);
    let output = child.wait_with_output().expect("it ends");
    // A machine that is busy with other tests may make this client the limit besides: 5.
    let code = output.status.code();
    assert!(matches!(code, Some(4 | 5)), "{code:?}: {}", stderr(&output));
    let level = &json(&output)["levels"][0];
    let reasons = level["verdict"]["reasons"].to_string();
    assert!(reasons.contains("\"stalled\""), "{reasons}");
    assert_eq!(books(&file)["ok"], 6);
    // The stopped request is flagged, the others are not; no interval is bent by it.
    let rows = rows(&file);
    let flagged = |row: &Value| {
        row["flags"]
            .as_array()
            .is_some_and(|flags| flags.contains(&json!("client_stalled")))
    };
    assert!(flagged(&rows[0]), "{}", rows[0]);
    assert!(!flagged(&rows[5]), "{}", rows[5]);
    for row in &rows {
        assert!(
            row["e2e_s"]
                .as_f64()
                .is_some_and(|e2e| (2.0..600.0).contains(&e2e)),
            "{row}"
        );
    }
}

#[test]
fn row_38_asked_twice_it_stops_at_once_and_says_what_was_cut() {
    for first in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let (server, written) = ticking(100_000);
        let folder = Folder::new(&format!("twice-{first}"));
        let file = folder.file("r.denom.jsonl");
        let child = started(&server, &written, "6", &file);
        until("some tokens", || written.load(Ordering::SeqCst) > 20);
        signal(&child, first);
        // Signals of one kind may merge into one: the second is another.
        signal(
            &child,
            if first == Signal::SIGINT {
                Signal::SIGTERM
            } else {
                Signal::SIGINT
            },
        );
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        let requests = books(&file);
        assert_eq!(
            (&requests["issued"], &requests["failed"]),
            (&json!(1), &json!({"cancelled": 1}))
        );
        let rows = rows(&file);
        assert!(
            rows[0]["chunks"].as_u64().is_some_and(|chunks| chunks > 0),
            "what came is kept: {}",
            rows[0]
        );
        withheld(&rows);
        assert_eq!(report(&file)["run"]["interrupted"], true);
    }
}

#[test]
fn row_38_killed_at_any_time_the_file_is_read_and_adds_up() {
    for wait in [1, 3, 7, 20] {
        let server = Server::start(|_, stream| chat(stream, &["a", "b", "c"]));
        let folder = Folder::new(&format!("killed-{wait}"));
        let file = folder.file("r.denom.jsonl");
        let mut command = run(
            &server.url(),
            "100000",
            &file,
            &["-m", "m", "-c", "4", "-q"],
        );
        let mut child = command
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary is built");
        let ended = || {
            std::fs::read_to_string(&file)
                .map_or(0, |text| text.matches("\"line\":\"ended\"").count())
        };
        until("ended requests", || ended() > wait * 5);
        signal(&child, Signal::SIGKILL);
        child.wait().expect("it ends");
        let report = report(&file);
        assert_eq!(report["run"]["cut_short"], true);
        let requests = books(&file);
        assert!(
            requests["ok"]
                .as_u64()
                .is_some_and(|ok| ok > wait as u64 * 5),
            "{requests}"
        );
        assert!(
            requests["drained"]
                .as_u64()
                .is_some_and(|drained| drained <= 4),
            "{requests}"
        );
        assert_eq!(requests["failed"], json!({}));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn row_38_a_full_disk_ends_the_run_and_the_page_says_so() {
    let server = Server::start(|_, stream| chat(stream, &["a", "b", "c"]));
    let output = done(&mut run(
        &server.url(),
        "100000",
        "/dev/full",
        &["-m", "m", "--format", "json"],
    ));
    assert_eq!(output.status.code(), Some(74), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("takes no more"),
        "{}",
        stderr(&output)
    );
    let report = json(&output);
    let requests = &report["levels"][0]["requests"];
    assert!(
        requests["ok"].as_u64().is_some_and(|ok| ok > 0),
        "{requests}"
    );
    assert!(
        requests["issued"]
            .as_u64()
            .is_some_and(|issued| issued < 100_000),
        "it went on: {requests}"
    );
    assert_eq!(requests["failed"], json!({}));
    assert!(
        std::fs::exists("/dev/full").expect("looked"),
        "a device is not ours to remove"
    );
}
