//! Owns the tests of whole exchanges, and the small servers and sinks that they share.

mod attribution;
mod endings;
mod h2;
mod script;
mod tls;
mod virtual_time;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::HeaderMap;
use measure::stamp::Stamp;
use measure::time::Length;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

use super::connect::{Connection, connect_over};
use super::exchange::{Exchanged, Progress, Sink, Timeouts};
use super::wake::Wake;
use super::{Cancel, Canceller, HttpVersion};
use crate::clock::{Clock, VirtualClock};

/// Keeps all that an exchange brings.
#[derive(Debug)]
pub(super) struct Seen {
    heads: Vec<(u16, Stamp)>,
    data: Vec<(Stamp, Vec<u8>)>,
    trailers: Vec<String>,
    rule: fn(&[u8]) -> Progress,
}

impl Seen {
    /// Takes every piece for content.
    fn content() -> Self {
        Seen::by(|_| Progress {
            content: true,
            ..Progress::default()
        })
    }

    fn by(rule: fn(&[u8]) -> Progress) -> Self {
        Seen {
            heads: Vec::new(),
            data: Vec::new(),
            trailers: Vec::new(),
            rule,
        }
    }

    fn body(&self) -> Vec<u8> {
        self.data
            .iter()
            .flat_map(|(_, bytes)| bytes.clone())
            .collect()
    }

    fn statuses(&self) -> Vec<u16> {
        self.heads.iter().map(|&(status, _)| status).collect()
    }
}

impl Sink for Seen {
    fn head(&mut self, stamp: Stamp, status: u16, _headers: &HeaderMap) {
        self.heads.push((status, stamp));
    }

    fn data(&mut self, stamp: Stamp, bytes: &[u8]) -> Progress {
        self.data.push((stamp, bytes.to_vec()));
        (self.rule)(bytes)
    }

    fn trailers(&mut self, headers: &HeaderMap) {
        self.trailers
            .extend(headers.keys().map(|name| name.to_string()));
    }
}

fn request(body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post("/v1/chat/completions")
        .header("host", "test")
        .body(Full::new(body.into()))
        .expect("a request")
}

fn limits() -> Timeouts {
    Timeouts {
        first_or_idle: Length::from_secs(60),
        total: None,
        linger: Length::from_secs(1),
    }
}

/// A signal that nobody gives.
fn no_cancel() -> Cancel {
    Canceller::new().1
}

/// Reads a request to the end of its body.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut request = Vec::new();
    loop {
        if let Some(length) = whole_length(&request)
            && request.len() >= length
        {
            return request;
        }
        let read = stream.read_buf(&mut request).await.expect("a request");
        assert!(read > 0, "the client went away inside its request");
    }
}

fn whole_length(request: &[u8]) -> Option<usize> {
    let head = request.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&request[..head]).expect("an ASCII head");
    let length = text
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| *name == "content-length")
        .map_or(0, |(_, value)| value.parse().expect("a length"));
    Some(head + length)
}

/// A client and a server's end of one stream in memory.
async fn in_memory() -> (Connection<VirtualClock>, DuplexStream) {
    let (client, server) = tokio::io::duplex(64 * 1024);
    let connection = connect_over(
        client,
        HttpVersion::One,
        &VirtualClock::start(),
        &Wake::never(),
    )
    .await
    .expect("a connection");
    (connection, server)
}

/// One exchange with a server that reads the request and then does as `serve` says. The stream stays
/// open behind it, until the exchange ends.
async fn exchange_with<C: Clock, S: AsyncRead + Unpin>(
    connection: &mut Connection<C>,
    stream: &mut S,
    limits: Timeouts,
    seen: &mut Seen,
    serve: impl AsyncFnOnce(&mut S),
) -> Exchanged {
    let cancel = no_cancel();
    let exchange = connection.exchange(request("{}"), &limits, seen, &cancel);
    let serving = async {
        read_request(stream).await;
        serve(stream).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        exchanged = exchange => exchanged,
        () = serving => unreachable!("it never ends"),
    }
}

/// Writes, and fails the test where the client is gone already.
async fn write(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    stream.write_all(bytes).await.expect("the client is there");
}
