//! Owns the proof that each way an answer can end has its name.

use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::net::exchange::{BodyEnd, Break, RequestFault};

/// What an exchange comes to when the server writes `answer` and closes.
async fn answered(answer: impl AsRef<[u8]>) -> (Exchanged, Seen) {
    let (mut connection, mut server) = in_memory().await;
    let mut seen = Seen::content();
    let serve = async |stream: &mut DuplexStream| {
        // The client may have left in the middle of an answer that it cannot take.
        stream.write_all(answer.as_ref()).await.ok();
        stream.shutdown().await.ok();
    };
    let exchanged = exchange_with(&mut connection, &mut server, limits(), &mut seen, serve).await;
    (exchanged, seen)
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_as_it_said_is_whole() {
    let check = async |answer: &str, body: &str, end: BodyEnd| {
        let (exchanged, seen) = answered(answer).await;
        assert_eq!(exchanged.end, Ok(end), "{answer}");
        assert_eq!(seen.body(), body.as_bytes(), "{answer}");
        assert_eq!(seen.statuses().len(), 1, "{answer}");
    };
    let chunked = format!("{CHUNKED}2\r\nab\r\n0\r\ntrailer: x\r\n\r\n");
    check(&chunked, "ab", BodyEnd::Complete).await;
    let sized = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab";
    check(sized, "ab", BodyEnd::Complete).await;
    let bare = "HTTP/1.1 204 No Content\r\n\r\n";
    check(bare, "", BodyEnd::Complete).await;
    let old = "HTTP/1.0 200 OK\r\n\r\nab";
    check(old, "ab", BodyEnd::Closed).await;
    let open = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nab";
    check(open, "ab", BodyEnd::Closed).await;
}

#[tokio::test(start_paused = true)]
async fn trailers_are_handed_on() {
    let (exchanged, seen) =
        answered(format!("{CHUNKED}2\r\nab\r\n0\r\ngrpc-status: 13\r\n\r\n")).await;
    assert_eq!(exchanged.end, Ok(BodyEnd::Complete));
    assert_eq!(seen.trailers, ["grpc-status"]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_otherwise_is_broken() {
    let check = async |answer: &str, body: &str, expect: Break| {
        let (exchanged, seen) = answered(answer).await;
        let Ok(BodyEnd::Broken { how, .. }) = exchanged.end else {
            panic!("{answer}: {:?}", exchanged.end);
        };
        assert_eq!(how, expect, "{answer}");
        assert_eq!(seen.body(), body.as_bytes(), "{answer}");
        assert!(!exchanged.reusable);
    };
    check(&format!("{CHUNKED}2\r\nab\r\n"), "ab", Break::Cut).await;
    check(&format!("{CHUNKED}9\r\nab"), "ab", Break::Cut).await;
    check(&format!("{CHUNKED}2\r\nab\r\n0\r\n"), "ab", Break::Cut).await;
    check(
        &format!("{CHUNKED}2\r\nab\r\nxyz\r\n"),
        "ab",
        Break::Framing,
    )
    .await;
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab";
    check(short, "ab", Break::Cut).await;
}

#[tokio::test(start_paused = true)]
async fn no_head_is_no_answer() {
    let check = async |answer: &[u8], fault: RequestFault| {
        let (exchanged, seen) = answered(answer).await;
        let error = exchanged.end.expect_err("no answer");
        assert_eq!((error.fault, error.stale), (fault, false), "{}", error.text);
        assert!(seen.statuses().is_empty());
    };
    check(b"", RequestFault::Closed).await;
    check(b"HTTP/1.1 200 OK\r\nx: y", RequestFault::Closed).await;
    check(
        b"\x16\x03\x01 not HTTP at all\r\n\r\n",
        RequestFault::NotHttp,
    )
    .await;
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(70 * 1024));
    check(endless.as_bytes(), RequestFault::HeadTooLarge).await;
}

#[tokio::test(start_paused = true)]
async fn a_long_head_within_the_limit_is_taken() {
    let long = "y".repeat(60 * 1024);
    let (exchanged, _) = answered(format!("HTTP/1.1 204 No\r\nx: {long}\r\n\r\n")).await;
    assert_eq!(exchanged.end, Ok(BodyEnd::Complete));
}

#[tokio::test(start_paused = true)]
async fn early_hints_are_no_answer_and_a_redirect_is_not_followed() {
    let hints = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
    let redirect = "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://other/\r\n\
                    content-length: 0\r\n\r\n";
    let (exchanged, seen) = answered(format!("{hints}{redirect}")).await;
    assert_eq!(seen.statuses(), [307]);
    assert_eq!(exchanged.end, Ok(BodyEnd::Complete));
}

/// A second exchange on a connection whose server did as `between` says after the first answer.
async fn second(first: &str, between: impl AsyncFnOnce(&mut DuplexStream)) -> (bool, Exchanged) {
    let (mut connection, mut server) = in_memory().await;
    let serve = async |stream: &mut DuplexStream| write(stream, first.as_bytes()).await;
    let mut seen = Seen::content();
    let exchanged = exchange_with(&mut connection, &mut server, limits(), &mut seen, serve).await;
    assert_eq!(exchanged.end, Ok(BodyEnd::Complete));
    let serve = async |stream: &mut DuplexStream| between(stream).await;
    let next = exchange_with(&mut connection, &mut server, limits(), &mut seen, serve).await;
    (exchanged.reusable, next)
}

const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_kept_connection_carries_another_exchange() {
    let again = async |stream: &mut DuplexStream| write(stream, EMPTY.as_bytes()).await;
    let (reusable, next) = second(EMPTY, again).await;
    assert!(reusable);
    assert_eq!(next.end, Ok(BodyEnd::Complete));
    assert_eq!((next.reads, next.bytes), (1, EMPTY.len() as u64));
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_that_closes_under_a_request_is_stale() {
    let close = async |stream: &mut DuplexStream| {
        stream.shutdown().await.expect("a shutdown");
    };
    let (_, next) = second(EMPTY, close).await;
    let error = next.end.expect_err("no answer");
    assert_eq!((error.stale, error.fault), (true, RequestFault::Closed));
    assert!(next.sent.is_some(), "the request was on its way");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_closes_inside_the_head_is_not_stale() {
    let half = async |stream: &mut DuplexStream| {
        write(stream, b"HTTP/1.1 20").await;
        stream.shutdown().await.expect("a shutdown");
    };
    let (_, next) = second(EMPTY, half).await;
    let error = next.end.expect_err("no answer");
    assert_eq!((error.stale, error.fault), (false, RequestFault::Closed));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_its_connection_leaves_none() {
    let check = async |answer: &str| {
        let (mut connection, mut server) = in_memory().await;
        let serve = async |stream: &mut DuplexStream| write(stream, answer.as_bytes()).await;
        let mut seen = Seen::content();
        let exchanged =
            exchange_with(&mut connection, &mut server, limits(), &mut seen, serve).await;
        assert_eq!(exchanged.end, Ok(BodyEnd::Complete), "{answer}");
        assert!(!exchanged.reusable && !connection.is_open(), "{answer}");
    };
    check("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
    check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_shows_that_it_was_closed() {
    let (mut connection, mut server) = in_memory().await;
    assert!(connection.is_open());
    let serve = async |stream: &mut DuplexStream| write(stream, EMPTY.as_bytes()).await;
    let mut seen = Seen::content();
    exchange_with(&mut connection, &mut server, limits(), &mut seen, serve).await;
    assert!(connection.is_open());
    drop(server);
    assert!(!connection.is_open());
}

/// Both ends of a real connection.
async fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let (client, server) = tokio::join!(TcpStream::connect(addr), listener.accept());
    (client.expect("connected"), server.expect("accepted").0)
}

#[tokio::test]
async fn a_reset_is_told_from_a_close() {
    let (client, mut server) = tcp().await;
    let clock = crate::clock::RunClock::start();
    let mut connection = connect_over(client, HttpVersion::One, &clock, &Wake::never())
        .await
        .expect("hyper");
    let mut seen = Seen::content();
    let (saw, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let serving = async {
        read_request(&mut server).await;
        write(&mut server, format!("{CHUNKED}2\r\nab\r\n").as_bytes()).await;
        // Bytes that were not read yet are lost in a reset.
        heard.recv().await;
        server.set_zero_linger().expect("a socket option");
        drop(server);
    };
    let mut sink = Told {
        seen: &mut seen,
        saw,
    };
    let limits = limits();
    let cancel = no_cancel();
    let exchange = connection.exchange(request("{}"), &limits, &mut sink, &cancel);
    let (exchanged, ()) = tokio::join!(exchange, serving);
    assert!(
        matches!(
            exchanged.end,
            Ok(BodyEnd::Broken {
                how: Break::Reset,
                ..
            })
        ),
        "{:?}",
        exchanged.end
    );
    assert_eq!(seen.body(), b"ab");
}

/// Tells the server of each piece.
struct Told<'a> {
    seen: &'a mut Seen,
    saw: tokio::sync::mpsc::UnboundedSender<()>,
}

impl Sink for Told<'_> {
    fn head(&mut self, stamp: Stamp, status: u16, headers: &HeaderMap) {
        self.seen.head(stamp, status, headers);
    }

    fn data(&mut self, stamp: Stamp, bytes: &[u8]) -> Progress {
        self.saw.send(()).ok();
        self.seen.data(stamp, bytes)
    }
}

#[tokio::test]
async fn a_request_larger_than_every_buffer_is_written_whole() {
    let (client, mut server) = tcp().await;
    let clock = crate::clock::RunClock::start();
    let mut connection = connect_over(client, HttpVersion::One, &clock, &Wake::never())
        .await
        .expect("hyper");
    let mut seen = Seen::content();
    let body = vec![b'x'; 16 * 1024 * 1024];
    let limits = limits();
    let cancel = no_cancel();
    let exchange = connection.exchange(request(body.clone()), &limits, &mut seen, &cancel);
    let serving = async {
        let request = read_request(&mut server).await;
        write(&mut server, EMPTY.as_bytes()).await;
        request.len()
    };
    let (exchanged, received) = tokio::join!(exchange, serving);
    assert!(received > body.len());
    assert_eq!(exchanged.end, Ok(BodyEnd::Complete));
    assert!(exchanged.reusable);
    let (sent, written) = (
        exchanged.sent.expect("sent"),
        exchanged.written.expect("written"),
    );
    let head = seen.heads[0].1.at;
    assert!(exchanged.started <= sent && sent < written && written < head);
    assert!(head <= exchanged.finished);
}
