//! Owns the proof that stamps and timeouts are exact where time is in the test's hand.

use std::time::Duration;

use measure::stamp::StampSource;
use measure::time::{Instant, Length};
use tokio::time::sleep;

use super::*;
use crate::net::exchange::{BodyEnd, Waiting};

/// A head, then nothing to wait for but the chunks.
const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// Milliseconds after the piece before, and what the server writes then.
type Script = &'static [(u64, &'static str)];

fn ms(millis: u64) -> Instant {
    Instant::ORIGIN + Length::from_millis(millis)
}

/// Plays a script against an exchange whose pieces mean what they say: `+` is content, `$` terminal,
/// `!` over a limit, and all else nothing.
async fn played(script: Script, limits: Timeouts) -> (Exchanged, Seen) {
    let (mut connection, mut server) = in_memory().await;
    let mut seen = Seen::by(|bytes| Progress {
        content: bytes.contains(&b'+'),
        terminal: bytes.contains(&b'$'),
        stop: bytes.contains(&b'!'),
    });
    let serve = async |stream: &mut DuplexStream| {
        for &(millis, text) in script {
            sleep(Duration::from_millis(millis)).await;
            write(stream, text.as_bytes()).await;
        }
    };
    let exchanged = exchange_with(&mut connection, &mut server, limits, &mut seen, serve).await;
    (exchanged, seen)
}

#[tokio::test(start_paused = true)]
async fn every_piece_has_the_instant_at_which_it_was_written() {
    let script: Script = &[
        (40, HEAD),
        (10, "1\r\n+\r\n"),
        (25, "2\r\n+"),
        (25, "+\r\n1\r\n-\r\n"),
        (1, "0\r\n"),
        (7, "\r\n"),
    ];
    let (exchanged, seen) = played(script, limits()).await;
    let heads: Vec<_> = seen.heads.iter().map(|(_, stamp)| stamp.at).collect();
    assert_eq!(heads, [ms(40)]);
    let data: Vec<_> = seen
        .data
        .iter()
        .map(|(stamp, bytes)| (stamp.at, &bytes[..]))
        .collect();
    let expect: [(_, &[u8]); 4] = [
        (ms(50), b"+"),
        (ms(75), b"+"),
        (ms(100), b"+"),
        (ms(100), b"-"),
    ];
    assert_eq!(data, expect);
    assert_eq!(exchanged.end, Ok(BodyEnd::Complete));
    assert_eq!(exchanged.last_stamp.map(|stamp| stamp.at), Some(ms(108)));
    let ends = (
        exchanged.started,
        exchanged.sent,
        exchanged.written,
        exchanged.finished,
    );
    assert_eq!(ends, (ms(0), Some(ms(0)), Some(ms(0)), ms(108)));
    assert_eq!(exchanged.reads, 6);
    let written: usize = script.iter().map(|(_, text)| text.len()).sum();
    assert_eq!(exchanged.bytes, written as u64);
    assert!(exchanged.reusable);
}

#[tokio::test(start_paused = true)]
async fn a_clock_read_is_late_at_most_since_the_look_before() {
    let (_, seen) = played(&[(40, HEAD), (10, "1\r\n+\r\n0\r\n\r\n")], limits()).await;
    let (stamp, _) = seen.data[0];
    assert_eq!((stamp.source, stamp.lag_low), (StampSource::Read, None));
    assert_eq!(stamp.lag_high, Length::from_millis(10));
}

async fn ends_with(script: Script, limits: Timeouts, end: BodyEnd, millis: u64) {
    let (exchanged, _) = played(script, limits).await;
    assert_eq!(
        (exchanged.end, exchanged.finished),
        (Ok(end), ms(millis)),
        "{script:?}"
    );
    assert!(!exchanged.reusable);
}

#[tokio::test(start_paused = true)]
async fn only_content_restarts_the_wait() {
    let end = |waiting| BodyEnd::Timeout(waiting);
    ends_with(&[], limits(), end(Waiting::First), 60_000).await;
    ends_with(&[(50_000, HEAD)], limits(), end(Waiting::First), 60_000).await;
    let empty: Script = &[(50_000, HEAD), (1, "1\r\n-\r\n"), (20_000, "1\r\n+\r\n")];
    ends_with(empty, limits(), end(Waiting::First), 60_000).await;
    let content: Script = &[(50_000, HEAD), (1, "1\r\n+\r\n"), (59_000, "1\r\n-\r\n")];
    ends_with(content, limits(), end(Waiting::Idle), 110_001).await;
}

#[tokio::test(start_paused = true)]
async fn the_total_ends_what_content_keeps_alive() {
    let limits = Timeouts {
        total: Some(Length::from_secs(90)),
        ..limits()
    };
    let script: Script = &[(0, HEAD), (50_000, "1\r\n+\r\n"), (39_000, "1\r\n+\r\n")];
    ends_with(script, limits, BodyEnd::Timeout(Waiting::Total), 90_000).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_left_open_after_its_terminal_event_is_given_up() {
    let script: Script = &[(0, HEAD), (100, "2\r\n+$\r\n"), (900, "1\r\n+\r\n")];
    ends_with(script, limits(), BodyEnd::Lingered, 1_100).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_closed_after_its_terminal_event_is_whole() {
    let (exchanged, _) = played(
        &[(0, HEAD), (100, "2\r\n+$\r\n"), (900, "0\r\n\r\n")],
        limits(),
    )
    .await;
    assert_eq!(
        (exchanged.end, exchanged.finished),
        (Ok(BodyEnd::Complete), ms(1_000))
    );
    assert!(exchanged.reusable);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_wants_no_more_gets_no_more() {
    let (exchanged, seen) = played(&[(5, HEAD), (5, "1\r\n!\r\n1\r\n+\r\n")], limits()).await;
    assert_eq!(
        (exchanged.end, exchanged.finished),
        (Ok(BodyEnd::Stopped), ms(10))
    );
    assert_eq!(seen.body(), b"!");
    assert!(!exchanged.reusable);
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_an_exchange_at_once() {
    let (mut connection, mut server) = in_memory().await;
    let (canceller, cancel) = Canceller::new();
    let mut seen = Seen::content();
    let limits = limits();
    let exchange = connection.exchange(request("{}"), &limits, &mut seen, &cancel);
    let serving = async {
        read_request(&mut server).await;
        sleep(Duration::from_millis(30)).await;
        canceller.cancel();
    };
    let (exchanged, ()) = tokio::join!(exchange, serving);
    assert_eq!(
        (exchanged.end, exchanged.finished),
        (Ok(BodyEnd::Cancelled), ms(30))
    );
    assert!(!connection.is_open());
}
