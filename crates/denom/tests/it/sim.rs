//! The simulated server over a socket, seen by a small client that shares no code with it.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

mod dialects;
mod http2;
mod tls;

use denom::sim::ledger::{End, Record};
use denom::sim::server::{Config, Running, Server};

/// Long enough that reaching it means a fault, not a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One connection.
struct Client(BufReader<TcpStream>);

/// One response: its head in lower case, and its body after framing.
struct Response {
    head: String,
    body: Vec<u8>,
    /// Bytes read from the socket for all of it.
    bytes: u64,
}

impl Client {
    fn of(server: &Running) -> Self {
        let stream = TcpStream::connect(server.addr()).expect("the server listens");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout above zero is legal");
        Client(BufReader::new(stream))
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("the server reads");
    }

    fn ask(&mut self, body: &str) {
        self.ask_at("/v1/chat/completions", body);
    }

    fn ask_at(&mut self, path: &str, body: &str) {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nhost: sim\r\nx-request-id: r-7");
        self.send(format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}").as_bytes());
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self
                .0
                .read_line(&mut head)
                .expect("a head is lines of text");
            assert_ne!(read, 0, "closed inside the head: {head}");
        }
        head.to_ascii_lowercase()
    }

    fn response(&mut self) -> Response {
        let head = self.head();
        let mut bytes = head.len() as u64;
        let mut body = Vec::new();
        if let Some(length) = field(&head, "content-length") {
            body.resize(length.parse().expect("a length is a number"), 0);
            self.0
                .read_exact(&mut body)
                .expect("the body is as long as its head says");
            bytes += body.len() as u64;
        } else if field(&head, "transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk(&mut bytes) {
                body.extend(chunk);
            }
        } else {
            bytes += self
                .0
                .read_to_end(&mut body)
                .expect("the body ends with the connection") as u64;
        }
        Response { head, body, bytes }
    }

    /// One chunk; `None` for the last one.
    fn chunk(&mut self, bytes: &mut u64) -> Option<Vec<u8>> {
        let mut line = String::new();
        self.0
            .read_line(&mut line)
            .expect("a chunk starts with a line");
        let size = usize::from_str_radix(line.trim_end(), 16).expect("a chunk size is hexadecimal");
        let mut chunk = vec![0; size + 2];
        self.0
            .read_exact(&mut chunk)
            .expect("a chunk is as long as its size says");
        *bytes += (line.len() + chunk.len()) as u64;
        assert!(chunk.ends_with(b"\r\n"));
        chunk.truncate(size);
        (size > 0).then_some(chunk)
    }
}

impl Response {
    fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("bodies are text")
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    fields
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

fn server() -> Running {
    Server::start(&Config::default()).expect("a free loopback port")
}

fn stream(model: &str, tokens: u64) -> String {
    format!(
        r#"{{"model":"{model}","stream":true,"max_tokens":{tokens},
        "stream_options":{{"include_usage":true}},
        "messages":[{{"role":"user","content":"say something"}}]}}"#
    )
}

/// The ledger once `count` requests have ended.
fn records(server: &Running, count: usize) -> Vec<Record> {
    let records = server.ledger().wait_for(count, PATIENCE);
    records.expect("every request ends up in the ledger")
}

fn tokens(record: &Record) -> u64 {
    record
        .writes
        .iter()
        .map(|write| u64::from(write.tokens))
        .sum()
}

#[test]
fn the_ledger_agrees_with_the_bytes_received_and_no_write_is_early() {
    let server = server();
    let mut client = Client::of(&server);
    client.ask(&stream("normal", 5));
    let response = client.response();
    assert_eq!(
        field(&response.head, "content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert!(response.text().ends_with("data: [DONE]\n\n"));

    let record = &records(&server, 1)[0];
    assert_eq!(
        (record.request.as_deref(), record.model.as_str()),
        (Some("r-7"), "normal")
    );
    assert_eq!(
        (record.prompt_head.as_str(), record.end),
        ("say something", End::Done)
    );
    let bytes: u64 = record
        .writes
        .iter()
        .map(|write| u64::from(write.bytes))
        .sum();
    assert_eq!(bytes, response.bytes);
    let brought = record.writes.iter().filter(|write| write.tokens == 1);
    let mut count = 0;
    for (index, write) in brought.enumerate() {
        let planned = record.received_ns + (60 + 10 * index as u64) * 1_000_000;
        assert!(write.at >= planned, "token {index}");
        count += 1;
    }
    assert_eq!(count, 5);
    assert!(record.end_ns >= record.writes[record.writes.len() - 1].at);
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let server = server();
    let mut client = Client::of(&server);
    for _ in 0..3 {
        client.ask(&stream("null", 3));
        assert_eq!(client.response().status(), "200");
    }
    client.send(b"GET /health HTTP/1.1\r\n\r\nGET /v1/models HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().text(), r#"{"status":"ok"}"#);
    assert!(client.response().text().contains(r#""id":"roleburst""#));
    assert_eq!(records(&server, 3).len(), 3);
    let counts = server.stop().counts;
    assert_eq!((counts.connections, counts.requests), (1, 5));
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let server = server();
    let mut client = Client::of(&server);
    let body = stream("null", 1);
    let head = format!(
        "POST /chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    for byte in [head.as_bytes(), body.as_bytes()].concat() {
        client.send(&[byte]);
    }
    assert_eq!(client.response().status(), "200");
}

#[test]
fn what_nobody_serves_is_refused_by_status() {
    let server = server();
    let mut client = Client::of(&server);
    client.ask(&stream("nobody", 1));
    let response = client.response();
    assert_eq!(response.status(), "404");
    assert!(response.text().contains("'nobody'"));
    client.ask("{");
    assert_eq!(client.response().status(), "400");
    client.send(b"GET /v2 HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().status(), "404");
    client.ask(&stream("http429", 1));
    assert_eq!(field(&client.response().head, "retry-after"), Some("7"));
    client.send(b"this is not HTTP\r\n\r\n");
    let last = client.response();
    assert_eq!(
        (last.status(), field(&last.head, "connection")),
        ("400", Some("close"))
    );
    assert_eq!(client.0.read(&mut [0]).expect("a proper close"), 0);
}

#[test]
fn a_body_without_chunks_ends_with_the_connection() {
    let server = server();
    let mut client = Client::of(&server);
    client.ask(&stream("closes", 2));
    let response = client.response();
    assert_eq!(field(&response.head, "connection"), Some("close"));
    assert!(response.text().ends_with("data: [DONE]\n\n"));

    let mut client = Client::of(&server);
    let body = stream("null", 2);
    let head = format!(
        "POST /chat/completions HTTP/1.0\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.send([head.as_bytes(), body.as_bytes()].concat().as_slice());
    let response = client.response();
    assert_eq!(field(&response.head, "transfer-encoding"), None);
    assert!(response.text().ends_with("data: [DONE]\n\n"));
}

#[test]
fn a_cut_stream_ends_inside_an_event_and_without_the_last_chunk() {
    let server = server();
    let mut client = Client::of(&server);
    client.ask(&stream("cut", 2));
    client.head();
    let mut rest = Vec::new();
    client
        .0
        .read_to_end(&mut rest)
        .expect("a cut is an ordinary close of the connection");
    assert!(!rest.ends_with(b"0\r\n\r\n"));
    let record = &records(&server, 1)[0];
    assert_eq!((record.end, tokens(record)), (End::Cut, 2));
}

#[test]
fn a_reset_stream_is_reset() {
    let server = server();
    let mut client = Client::of(&server);
    client.ask(&stream("reset", 2));
    client.head();
    let ended = client
        .0
        .read_to_end(&mut Vec::new())
        .map_err(|error| error.kind());
    assert_eq!(ended, Err(ErrorKind::ConnectionReset));
    let record = &records(&server, 1)[0];
    assert_eq!((record.end, tokens(record)), (End::Reset, 2));
}

#[test]
fn a_client_that_leaves_is_noticed_although_the_script_is_silent() {
    let server = server();
    let mut client = Client::of(&server);
    client.ask(&stream("stall", 9));
    client.head();
    // The role, and five tokens.
    for _ in 0..6 {
        assert!(client.chunk(&mut 0).is_some());
    }
    drop(client);
    let record = &records(&server, 1)[0];
    assert_eq!((record.end, tokens(record)), (End::ClientGone, 5));
}

#[test]
fn a_server_that_stops_closes_what_is_open() {
    let server = server();
    let ledger = server.ledger().clone();
    let mut client = Client::of(&server);
    client.ask(&stream("stall", 9));
    client.head();
    drop(server);
    client
        .0
        .read_to_end(&mut Vec::new())
        .expect("an ordinary close");
    let ends: Vec<End> = ledger.records().iter().map(|record| record.end).collect();
    assert_eq!(ends, [End::Cut]);
}

/// Ten megabytes do not fit between two sockets: the server must wait for its reader.
#[test]
fn a_slow_reader_gets_every_byte() {
    let server = server();
    let mut client = Client::of(&server);
    client.ask(&stream("null", 60_000));
    let head = client.head();
    assert_eq!(field(&head, "transfer-encoding"), Some("chunked"));
    // Another client is served meanwhile.
    let mut other = Client::of(&server);
    other.send(b"GET /health HTTP/1.1\r\n\r\n");
    assert_eq!(other.response().status(), "200");

    let mut events = 0;
    while let Some(chunk) = client.chunk(&mut 0) {
        let text = String::from_utf8(chunk).expect("scripts are text");
        events += text.matches("\"content\":\" ").count();
    }
    assert_eq!(events, 60_000);
    let record = &records(&server, 1)[0];
    assert_eq!((record.end, tokens(record)), (End::Done, 60_000));
}

#[test]
fn shares_counts_every_request_that_is_active() {
    let server = server();
    let mut silent = Client::of(&server);
    silent.ask(&stream("stall", 1));
    silent.head();
    let mut client = Client::of(&server);
    client.ask(&stream("shares", 6));
    client.response();
    let record = &records(&server, 1)[0];
    let brought = record.writes.iter().filter(|write| write.tokens == 1);
    for (index, write) in brought.enumerate() {
        // With two active requests a token takes 8.533333 + 2 × 1.466667 ms.
        let planned = record.received_ns + 50_000_000 + 11_466_667 * index as u64;
        assert!(write.at >= planned, "token {index}");
    }
    assert_eq!(tokens(record), 6);
}

#[test]
fn connections_over_the_limit_are_closed_and_counted() {
    let config = Config {
        connections: 1,
        ..Config::default()
    };
    let server = Server::start(&config).expect("a free loopback port");
    let mut first = Client::of(&server);
    first.send(b"GET /health HTTP/1.1\r\n\r\n");
    assert_eq!(first.response().status(), "200");
    let mut second = Client::of(&server);
    assert_eq!(second.0.read(&mut [0]).expect("a proper close"), 0);
    first.send(b"GET /health HTTP/1.1\r\n\r\n");
    assert_eq!(first.response().status(), "200");
    assert_eq!(server.stop().counts.turned_away, 1);
}
