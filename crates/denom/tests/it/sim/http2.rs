//! The simulated server over HTTP/2, seen by a small client that shares no code with it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use denom::sim::ledger::End;
use denom::sim::scripts::catalog::entries;

mod frames;

use super::{Client, PATIENCE, server, stream};
use frames::*;

fn text(answer: &Answer) -> &str {
    str::from_utf8(&answer.body).expect("bodies are text")
}

#[test]
fn a_stream_comes_in_a_frame_a_write_and_the_connection_stays() {
    let server = server();
    let mut client = Frames::of(&server);
    let mut bytes = Vec::new();
    for id in [1, 3] {
        client.ask(id, &stream("normal", 3));
        let answer = client.answer(id);
        assert!(answer.head.starts_with(":status: 200\nserver: denom-sim\n"));
        assert!(answer.head.contains("content-type: text/event-stream"));
        assert!(text(&answer).ends_with("data: [DONE]\n\n"));
        // Role, three tokens, the tail, and the end.
        assert_eq!(answer.lengths.len(), 6);
        assert_eq!(answer.lengths[5], 0);
        bytes.push(answer.bytes);
    }
    let records = server.ledger().wait_for(2, PATIENCE).expect("two answers");
    for (record, bytes) in records.iter().zip(bytes) {
        let sent: u64 = record.writes.iter().map(|sent| u64::from(sent.bytes)).sum();
        let tokens: u32 = record.writes.iter().map(|sent| sent.tokens).sum();
        assert_eq!((record.end, sent, tokens), (End::Done, bytes, 3));
        assert_eq!(record.request.as_deref(), Some("r-7"));
        assert!(record.writes.is_sorted_by_key(|sent| sent.at));
        // As planned: the first token after 60 ms.
        assert!(record.writes[1].at - record.received_ns >= 60_000_000);
    }
    assert_eq!(server.stop().counts.connections, 1);
}

/// The same body whatever the protocol, for scripts of every way to write and to end.
#[test]
fn a_script_says_the_same_over_both_protocols() {
    let server = server();
    let names = [
        "spec4",
        "one-byte-writes",
        "null",
        "closes",
        "http429",
        "plainjson",
        "truncated",
        "br",
    ];
    for name in names {
        let body = stream(name, 5);
        let mut one = Client::of(&server);
        one.ask(&body);
        let one = one.response();
        let mut client = Frames::of(&server);
        client.ask(1, &body);
        let two = client.answer(1);
        let status = format!(":status: {}\n", one.status());
        assert!(two.head.starts_with(&status), "{name}: {}", two.head);
        // What differs is the number of the request, in the texts and as the id.
        assert_eq!(one.body.len(), two.body.len(), "{name}");
        assert!(!two.closed && two.reset.is_none(), "{name}");
        let length = format!("content-length: {}\n", two.body.len());
        let stated = two.head.contains(&length);
        assert_eq!(stated, one.head.contains("content-length"), "{name}");
    }
}

#[test]
fn what_breaks_a_connection_breaks_it_here_too() {
    let server = server();
    for name in ["cut", "reset"] {
        let mut client = Frames::of(&server);
        client.ask(1, &stream(name, 64));
        let answer = client.answer(1);
        assert!(answer.closed && answer.reset.is_none(), "{name}");
    }
    let ends = server.ledger().wait_for(2, PATIENCE).expect("two answers");
    let ends: Vec<End> = ends.iter().map(|record| record.end).collect();
    assert_eq!(ends, [End::Cut, End::Reset]);
    // The connection seems to stay: what the client owes it changes nothing, another request does.
    let mut client = Frames::of(&server);
    client.ask(1, &stream("stale-keepalive", 1));
    assert!(!client.answer(1).closed);
    client.send(PING, 0, 0, b"12345678");
    assert_eq!(client.next(PING).payload, b"12345678");
    client.ask(3, &stream("normal", 1));
    assert!(client.answer(3).closed);
}

/// More than the client's windows hold: nothing comes until they are opened, then all of it.
#[test]
fn an_answer_waits_for_the_windows_of_its_client() {
    let server = server();
    let mut client = Frames::of(&server);
    // A first window of 1,000 bytes.
    client.send(SETTINGS, 0, 0, &[0, 4, 0, 0, 3, 0xe8]);
    client.ask(1, &stream("null", 2_000));
    let mut come = 0;
    let mut body = Vec::new();
    let mut given = 1_000;
    loop {
        let frame = client.next(DATA);
        assert!(frame.payload.len() <= 16_384);
        come += frame.payload.len();
        body.extend(frame.payload);
        if frame.flags & END_STREAM != 0 {
            break;
        }
        assert!(come <= given, "{come} of {given}");
        if come == given {
            client.send(PING, 0, 0, b"12345678");
            assert_eq!(client.frame().map(|frame| frame.kind), Some(PING));
            given += 40_000;
            client.send(WINDOW_UPDATE, 0, 1, &40_000_u32.to_be_bytes());
            client.send(WINDOW_UPDATE, 0, 0, &40_000_u32.to_be_bytes());
        }
    }
    assert!(body.ends_with(b"data: [DONE]\n\n"));
    let records = server.ledger().wait_for(1, PATIENCE).expect("an answer");
    let tokens: u32 = records[0].writes.iter().map(|sent| sent.tokens).sum();
    assert_eq!((records[0].end, tokens), (End::Done, 2_000));
}

#[test]
fn one_stream_is_served_at_a_time_and_one_can_be_taken_back() {
    let server = server();
    let mut client = Frames::of(&server);
    client.ask(1, &stream("endless", 64));
    client.next(HEADERS);
    client.ask(3, &stream("normal", 1));
    assert_eq!(client.answer(3).reset, Some(7));
    client.send(RST_STREAM, 0, 1, &[0, 0, 0, 8]);
    let records = server.ledger().wait_for(1, PATIENCE).expect("it ends");
    assert_eq!(records[0].end, End::ClientGone);
    client.ask(5, &stream("normal", 1));
    assert!(text(&client.answer(5)).ends_with("data: [DONE]\n\n"));
}

/// A body of many frames, and of more than the first window of any connection.
#[test]
fn a_long_request_is_read() {
    let server = server();
    let mut client = Frames::of(&server);
    let long = format!(
        r#"{{"model":"normal","stream":true,"max_tokens":1,"x":"{}"}}"#,
        "a".repeat(3 << 20)
    );
    for id in [1, 3] {
        client.send(
            HEADERS,
            END_HEADERS,
            id,
            b"\x83\x86\0\x05:path\x14/v1/chat/completions",
        );
        let mut parts = long.as_bytes().chunks(16_384).peekable();
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_none() {
                END_STREAM
            } else {
                0
            };
            client.send(DATA, flags, id, part);
        }
        assert!(text(&client.answer(id)).ends_with("data: [DONE]\n\n"));
    }
}

#[test]
fn broken_frames_end_the_connection_with_a_reason() {
    let server = server();
    let mut client = Frames::of(&server);
    client.send(DATA, 0, 0, b"a");
    assert_eq!(client.next(GOAWAY).payload[4..], [0, 0, 0, 1]);
    assert_eq!(client.frame(), None);
    // Half a preface is neither protocol until the client leaves.
    let mut half = TcpStream::connect(server.addr()).expect("the server listens");
    half.write_all(&GREETING[..20]).expect("it reads");
    half.shutdown(Shutdown::Write).expect("it is open");
    half.set_read_timeout(Some(PATIENCE)).expect("it is legal");
    assert_eq!(half.read_to_end(&mut Vec::new()).ok(), Some(0));
}

#[test]
fn a_connection_goes_away_below_the_request() {
    let server = server();
    let mut client = Frames::of(&server);
    client.ask(1, &stream("normal", 1));
    assert!(!client.answer(1).closed);
    client.ask(3, &stream("h2-goaway", 64));
    let answer = client.answer(3);
    assert!(answer.closed && answer.head.is_empty());
    let goaway = &answer.others[0];
    assert_eq!(
        (goaway.kind, &goaway.payload[..]),
        (GOAWAY, &[0, 0, 0, 1, 0, 0, 0, 0][..])
    );
    let records = server.ledger().wait_for(2, PATIENCE).expect("two answers");
    assert_eq!(records[1].end, End::Cut);
}

#[test]
fn a_stream_is_refused_or_reset_and_the_connection_stays() {
    let server = server();
    let mut client = Frames::of(&server);
    client.ask(1, &stream("h2-refused", 64));
    let answer = client.answer(1);
    assert_eq!((answer.reset, answer.head.as_str()), (Some(7), ""));
    client.ask(3, &stream("h2-reset", 64));
    let answer = client.answer(3);
    assert_eq!(answer.reset, Some(2));
    // The role and ten tokens.
    assert_eq!(answer.lengths.len(), 11);
    client.ask(5, &stream("normal", 1));
    assert!(text(&client.answer(5)).ends_with("data: [DONE]\n\n"));
    let records = server
        .ledger()
        .wait_for(3, PATIENCE)
        .expect("three answers");
    let ends: Vec<End> = records.iter().map(|record| record.end).collect();
    assert_eq!(ends, [End::Reset, End::Reset, End::Done]);
}

#[test]
fn the_last_stream_of_a_connection_is_answered_whole() {
    let server = server();
    let mut client = Frames::of(&server);
    client.ask(1, &stream("h2-last", 3));
    let answer = client.answer(1);
    assert!(text(&answer).ends_with("data: [DONE]\n\n"));
    let goaway = &answer.others[0];
    assert_eq!(
        (goaway.kind, &goaway.payload[..]),
        (GOAWAY, &[0, 0, 0, 1, 0, 0, 0, 0][..])
    );
    assert_eq!(client.frame(), None);
    let records = server.ledger().wait_for(1, PATIENCE).expect("an answer");
    assert_eq!(records[0].end, End::Done);
}

#[test]
fn a_pause_refuses_streams_until_it_is_over() {
    let server = server();
    let mut client = Frames::of(&server);
    client.ask(1, &stream("h2-wait", 3));
    let answer = client.answer(1);
    let ended = Instant::now();
    assert!(text(&answer).ends_with("data: [DONE]\n\n"));
    let [closed] = answer.others.as_slice() else {
        panic!("one frame of settings: {:?}", answer.others);
    };
    assert_eq!(
        (closed.kind, &closed.payload[..]),
        (SETTINGS, &[0, 3, 0, 0, 0, 0][..])
    );
    client.ask(3, &stream("normal", 1));
    assert_eq!(client.answer(3).reset, Some(7));
    assert_eq!(client.next(SETTINGS).payload, [0, 3, 0, 0, 0, 1]);
    // The client's clock starts behind the server's, and by as much as the machine is busy.
    assert!(ended.elapsed() >= Duration::from_millis(200));
    client.ask(5, &stream("normal", 1));
    assert!(text(&client.answer(5)).ends_with("data: [DONE]\n\n"));
    let records = server.ledger().wait_for(2, PATIENCE).expect("two answers");
    let [.., end, again] = records[0].writes.as_slice() else {
        panic!("an end and settings behind it");
    };
    assert!(again.at - end.at >= 290_000_000);
}

/// What needs HTTP/2 says so over HTTP/1.1.
#[test]
fn scripts_of_http2_are_refused_over_http1() {
    let server = server();
    let mut client = Client::of(&server);
    for entry in entries().filter(|entry| entry.http2) {
        client.ask(&stream(entry.name, 1));
        let response = client.response();
        assert_eq!(response.status(), "505");
        let named = format!("{} needs HTTP/2", entry.name);
        assert!(response.text().contains(&named), "{}", response.text());
    }
}
