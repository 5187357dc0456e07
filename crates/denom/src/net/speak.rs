//! Owns the beginning of HTTP on a stream that is open, in either version.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use hyper::client::conn::http1;
use measure::time::Length;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::connect::{ConnectError, Connection, Http, Opened, Phase};
use super::h2_io::{Greeting, H2Io, H2Wire};
use super::http::{self, HttpVersion, Sender};
use super::io::{HyperIo, READ_LIMIT, Wire};
use super::tap::{Gate, Tap};
use crate::clock::Clock;

/// What a server of HTTP/2 may send before it hears that it was read: on a stream, on a connection.
/// A stream's bytes are taken in as they are read, so no server waits for room.
const STREAM_WINDOW: u32 = 16 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 32 * 1024 * 1024;
/// The longest head of an answer in HTTP/2, as its headers count.
const HEADERS_LIMIT: u32 = READ_LIMIT as u32;

/// Begins to speak HTTP on a stream that is open.
pub(super) async fn speak<C: Clock, S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    (http, greeting_limit): (HttpVersion, Length),
    tap: Rc<Tap>,
    clock: &C,
    opened: Opened,
) -> Result<Connection<C>, ConnectError> {
    match http {
        HttpVersion::One => {
            let wire = Box::new(HyperIo::new(stream, Rc::clone(&tap)));
            speak_http(wire, tap, clock, opened).await
        }
        HttpVersion::Two => {
            let greeting = Rc::default();
            let wire = Box::new(H2Io::new(stream, Rc::clone(&tap), Rc::clone(&greeting)));
            let began = clock.now();
            let speaking = speak_http2(wire, &greeting, opened.tls.is_some());
            let spoken_in_time = timeout(greeting_limit.into(), speaking).await;
            let http = spoken_in_time.unwrap_or_else(|_| {
                let text = format!(
                    "the connection is open, and the server did not begin to speak HTTP/2 within {greeting_limit} (--timeout gives it longer)"
                );
                Err(ConnectError::failed(Phase::Connect, text))
            })?;
            let opened = Opened {
                http2: Some(clock.now().since_or_zero(began)),
                ..opened
            };
            Ok(spoken(http, tap, clock, opened))
        }
    }
}

pub(super) async fn speak_http<C: Clock>(
    wire: Box<dyn Wire>,
    tap: Rc<Tap>,
    clock: &C,
    opened: Opened,
) -> Result<Connection<C>, ConnectError> {
    tap.set_gate(Gate::Shut);
    // The limit is for the head of an answer, which must fit the buffer whole; a body only goes
    // through it, in reads of at most that size.
    let (sender, driver) = http1::Builder::new()
        .max_buf_size(READ_LIMIT)
        .handshake(wire)
        .await
        .map_err(|error| ConnectError::failed(Phase::Connect, error.to_string()))?;
    let http = Http {
        sender: Sender::One(sender),
        driver: Some(http::driver(driver)),
    };
    Ok(spoken(http, tap, clock, opened))
}

/// HTTP/2 begins once the server's settings are here: what a request waits for after that is its own.
async fn speak_http2(
    wire: Box<dyn H2Wire>,
    greeting: &Cell<Greeting>,
    tls: bool,
) -> Result<Http, ConnectError> {
    let fail = |error: Option<h2::Error>| {
        let text = match error {
            _ if greeting.get().is_http1() => {
                "the server does not speak HTTP/2 (it answers in HTTP/1.1)"
                    .to_owned()
            }
            Some(error) if !error.is_io() => {
                format!("the server does not speak HTTP/2 ({error})")
            }
            _ => "the server closed the connection before it began to speak HTTP/2, which it may not speak"
                .to_owned(),
        };
        ConnectError::failed(Phase::Connect, text)
    };
    let (streams, mut driver) = h2::client::Builder::new()
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADERS_LIMIT)
        .handshake(wire)
        .await
        .map_err(|error| fail(Some(error)))?;
    poll_fn(|cx| match Pin::new(&mut driver).poll(cx) {
        Poll::Ready(end) => Poll::Ready(Err(fail(end.err()))),
        Poll::Pending if greeting.get().is_settings() => Poll::Ready(Ok(())),
        Poll::Pending => Poll::Pending,
    })
    .await?;
    Ok(Http {
        sender: Sender::Two { streams, tls },
        driver: Some(http::driver(driver)),
    })
}

fn spoken<C: Clock>(http: Http, tap: Rc<Tap>, clock: &C, opened: Opened) -> Connection<C> {
    tap.set_gate(Gate::Shut);
    Connection {
        http: Some(http),
        tap,
        clock: clock.clone(),
        exchanges: 0,
        opened,
    }
}
