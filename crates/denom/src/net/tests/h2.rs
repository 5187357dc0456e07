//! Owns the proof that exchanges over HTTP/2 are timed, end and break as those of HTTP/1.1 do, against
//! frames written by hand.

use std::time::Duration;

use tokio::time::sleep;

use super::*;
use crate::net::connect::ConnectError;
use crate::net::exchange::{BodyEnd, Break, RequestFault};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200`, by its place in HPACK's table.
const OK: &[u8] = &[0x88];
const PREFACE: usize = 24;

fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("a small frame");
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(content);
    frame
}

/// The server's settings: so many streams at once.
fn settings(streams: u32) -> Vec<u8> {
    let mut content = vec![0, 3];
    content.extend(streams.to_be_bytes());
    frame(SETTINGS, 0, 0, &content)
}

fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(
        GOAWAY,
        0,
        0,
        &[last.to_be_bytes(), code.to_be_bytes()].concat(),
    )
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// The head of an answer, and pieces of its body.
fn answer(stream: u32, pieces: &[&str]) -> Vec<u8> {
    let mut bytes = frame(HEADERS, END_HEADERS, stream, OK);
    for piece in pieces {
        bytes.extend(frame(DATA, 0, stream, piece.as_bytes()));
    }
    bytes
}

fn end(stream: u32) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, &[])
}

/// Reads what the client sends up to the end of a request; the number of its stream.
async fn request_of(server: &mut DuplexStream) -> u32 {
    loop {
        let mut head = [0; 9];
        server.read_exact(&mut head).await.expect("a frame");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut content = vec![0; length];
        server.read_exact(&mut content).await.expect("its content");
        if matches!(head[3], DATA | HEADERS) && head[4] & END_STREAM != 0 {
            return u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        }
    }
}

/// A client whose server began with `greeting`.
async fn greeted(
    greeting: &[u8],
) -> (Result<Connection<VirtualClock>, ConnectError>, DuplexStream) {
    let (client, mut server) = tokio::io::duplex(64 * 1024);
    let (clock, wake) = (VirtualClock::start(), Wake::never());
    let connecting = connect_over(client, HttpVersion::Two, &clock, &wake);
    let greets = async {
        let mut preface = [0; PREFACE];
        server.read_exact(&mut preface).await.expect("the preface");
        write(&mut server, greeting).await;
    };
    let (connection, ()) = tokio::join!(connecting, greets);
    (connection, server)
}

async fn open() -> (Connection<VirtualClock>, DuplexStream) {
    let (connection, server) = greeted(&settings(1)).await;
    (connection.expect("a connection"), server)
}

/// One exchange with a server that does as `serve` says.
async fn exchange(
    connection: &mut Connection<VirtualClock>,
    server: &mut DuplexStream,
    serve: impl AsyncFnOnce(&mut DuplexStream),
) -> (Exchanged, Seen) {
    let mut seen = Seen::content();
    let (cancel, limits) = (no_cancel(), limits());
    let exchange = connection.exchange(request("{}"), &limits, &mut seen, &cancel);
    let serving = async {
        serve(server).await;
        std::future::pending::<()>().await;
    };
    let exchanged = tokio::select! {
        exchanged = exchange => exchanged,
        () = serving => unreachable!("it never ends"),
    };
    (exchanged, seen)
}

/// An exchange with a server that answers a request by these frames and closes.
async fn answered(frames: impl Fn(u32) -> Vec<u8>) -> (Exchanged, Seen) {
    let (mut connection, mut server) = open().await;
    exchange(&mut connection, &mut server, async |server| {
        let stream = request_of(server).await;
        // The client may have left in the middle of an answer that it cannot take.
        server.write_all(&frames(stream)).await.ok();
        server.shutdown().await.ok();
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn each_piece_has_the_stamp_of_its_read_and_a_connection_carries_one_stream_after_another() {
    let (mut connection, mut server) = open().await;
    for number in [1, 3] {
        let (exchanged, seen) = exchange(&mut connection, &mut server, async |server| {
            let stream = request_of(server).await;
            assert_eq!(stream, number);
            for piece in ["a", "bc", "d"] {
                sleep(Duration::from_millis(10)).await;
                let frames = match piece {
                    "a" => answer(stream, &["a"]),
                    piece => frame(DATA, 0, stream, piece.as_bytes()),
                };
                write(server, &frames).await;
            }
            write(server, &end(stream)).await;
        })
        .await;
        assert_eq!(exchanged.end, Ok(BodyEnd::Complete));
        assert_eq!(
            (seen.statuses(), seen.body()),
            (vec![200], b"abcd".to_vec())
        );
        let sent = exchanged.sent.expect("sent");
        let after = |stamp: &Stamp| stamp.at.since_or_zero(sent).nanos() / 1_000_000;
        let stamps: Vec<u64> = seen.data.iter().map(|(stamp, _)| after(stamp)).collect();
        assert_eq!(stamps, [10, 20, 30]);
        assert_eq!(exchanged.h2_wait, Some(Length::ZERO));
        assert!(exchanged.reusable && connection.is_open());
    }
}

#[tokio::test(start_paused = true)]
async fn row_36_what_a_request_waits_for_a_stream_is_told_and_not_part_of_its_times() {
    let (connection, mut server) = greeted(&settings(0)).await;
    let mut connection = connection.expect("a connection");
    let (exchanged, seen) = exchange(&mut connection, &mut server, async |server| {
        sleep(Duration::from_millis(300)).await;
        write(server, &settings(1)).await;
        let stream = request_of(server).await;
        sleep(Duration::from_millis(20)).await;
        write(server, &answer(stream, &["a"])).await;
        write(server, &end(stream)).await;
    })
    .await;
    assert_eq!(exchanged.end, Ok(BodyEnd::Complete));
    assert_eq!(exchanged.h2_wait, Some(Length::from_millis(300)));
    let sent = exchanged.sent.expect("sent");
    let after_start = sent.since_or_zero(exchanged.started);
    let to_content = seen.data[0].0.at.since_or_zero(sent);
    assert_eq!(after_start, Length::from_millis(300));
    assert_eq!(to_content, Length::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn row_36_a_goaway_below_the_stream_is_stale_and_one_above_it_ends_nothing() {
    let (exchanged, _) = answered(|_| goaway(0, 0)).await;
    let error = exchanged.end.expect_err("no answer");
    assert_eq!(
        (error.stale, error.fault),
        (true, RequestFault::Unprocessed)
    );
    let frames = |stream| [goaway(stream, 0), answer(stream, &["a"]), end(stream)].concat();
    let (exchanged, seen) = answered(frames).await;
    assert_eq!(exchanged.end, Ok(BodyEnd::Complete));
    assert_eq!((seen.body(), exchanged.reusable), (b"a".to_vec(), false));
}

#[tokio::test(start_paused = true)]
async fn row_36_a_stream_refused_or_broken_has_its_name() {
    let (exchanged, _) = answered(|stream| reset(stream, 7)).await;
    let error = exchanged.end.expect_err("no answer");
    assert_eq!((error.stale, error.fault), (false, RequestFault::Refused));
    let check = async |after: fn(u32) -> Vec<u8>, expect: Break| {
        let frames = |stream| [answer(stream, &["a"]), after(stream)].concat();
        let (exchanged, seen) = answered(frames).await;
        let Ok(BodyEnd::Broken { how, .. }) = exchanged.end else {
            panic!("{expect:?}: {:?}", exchanged.end);
        };
        assert_eq!((how, seen.body()), (expect, b"a".to_vec()));
        assert!(!exchanged.reusable);
    };
    check(|stream| reset(stream, 2), Break::Reset).await;
    check(|_| Vec::new(), Break::Cut).await;
    check(|_| goaway(1, 2), Break::Cut).await;
    check(|_| frame(DATA, 0, 0, b"x"), Break::Framing).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_http_2_is_told_before_any_request() {
    for greeting in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "\0\0\x01\x06\0\0\0\0\0x",
    ] {
        let (client, mut server) = tokio::io::duplex(64 * 1024);
        let (clock, wake) = (VirtualClock::start(), Wake::never());
        let connecting = connect_over(client, HttpVersion::Two, &clock, &wake);
        write(&mut server, greeting.as_bytes()).await;
        server.shutdown().await.expect("closed");
        let error = connecting.await.map(drop).expect_err("no HTTP/2");
        assert!(
            error.text.contains("does not speak HTTP/2"),
            "{}",
            error.text
        );
        let first = greeting.starts_with("HTTP/1");
        assert_eq!(error.text.contains("in HTTP/1.1"), first, "{}", error.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_begins_to_speak_is_waited_for_so_long_and_no_longer() {
    let (client, _silent) = tokio::io::duplex(64 * 1024);
    let (clock, wake) = (VirtualClock::start(), Wake::never());
    let began = clock.now();
    let connecting = connect_over(client, HttpVersion::Two, &clock, &wake);
    let error = connecting.await.map(drop).expect_err("nobody speaks");
    assert!(error.text.contains("did not begin"), "{}", error.text);
    assert_eq!(clock.now().since_or_zero(began), Length::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn trailers_of_a_stream_are_handed_on() {
    // A field without a place in any table: its name's length, its name, its value's, its value.
    let field = [&[0, 11][..], b"grpc-status", &[2], b"13"].concat();
    let trailers = |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &field);
    let (exchanged, seen) =
        answered(|stream| [answer(stream, &["a"]), trailers(stream)].concat()).await;
    assert_eq!(exchanged.end, Ok(BodyEnd::Complete));
    assert_eq!(seen.body(), b"a");
    assert_eq!(seen.trailers, ["grpc-status"]);
}
