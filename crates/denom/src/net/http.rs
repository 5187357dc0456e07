//! Owns the two versions of HTTP behind one face: a request to send, a connection to poll, a body to read.
//!
//! Of HTTP/2 a connection carries one stream at a time, as one of HTTP/1.1 carries one request: so no
//! stream waits behind another one's bytes, and what was learnt of reads holds for both.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap};
use hyper::http::uri::{Authority, Scheme};
use hyper::{Request, Response, Uri, Version};

/// The version that connections speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    One,
    /// HTTP/2: by prior knowledge over http, by ALPN over https.
    Two,
}

impl HttpVersion {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            HttpVersion::One => "1.1",
            HttpVersion::Two => "2",
        }
    }

    /// What to look at where nobody could be asked.
    pub fn what_to_check(self) -> &'static str {
        match self {
            HttpVersion::One => "check that the server runs and the address is right",
            HttpVersion::Two => {
                "check that the server runs and the address is right, or leave --http 2 out"
            }
        }
    }

    /// The name by which TLS agrees on it.
    pub(super) fn alpn(self) -> &'static [u8] {
        match self {
            HttpVersion::One => b"http/1.1",
            HttpVersion::Two => b"h2",
        }
    }
}

/// The half of a connection that reads and writes, until it has finished.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()>>>;

/// A connection of either version as the half that reads and writes. How it ended is dropped: what
/// went wrong it tells the response or the body.
pub(super) fn driver<E>(connection: impl Future<Output = Result<(), E>> + 'static) -> Driver {
    Box::pin(async { drop(connection.await) })
}

/// The half of a connection that takes requests.
pub(super) enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two {
        streams: h2::client::SendRequest<Bytes>,
        tls: bool,
    },
}

impl Sender {
    /// Sends a request; the head of its answer.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Body>, Broke> {
        match self {
            Sender::One(sender) => {
                let answer = sender.send_request(request).await.map_err(Broke::One)?;
                Ok(answer.map(Body::One))
            }
            Sender::Two { streams, tls } => {
                poll_fn(|cx| streams.poll_ready(cx)).await?;
                let (head, body) = absolute(request, *tls)?.into_parts();
                let Ok(body) = body.collect().await;
                let body = body.to_bytes();
                let head = Request::from_parts(head, ());
                let (answer, mut rest) = streams.send_request(head, body.is_empty())?;
                if !body.is_empty() {
                    rest.send_data(body, true)?;
                }
                Ok(answer.await?.map(|body| Body::Two(body, false)))
            }
        }
    }

    /// Whether another request may be sent now.
    pub(super) fn is_ready(&mut self) -> bool {
        match self {
            Sender::One(sender) => sender.is_ready(),
            Sender::Two { streams, .. } => {
                let mut cx = Context::from_waker(Waker::noop());
                matches!(streams.poll_ready(&mut cx), Poll::Ready(Ok(())))
            }
        }
    }

    /// Whether no request can be sent any more.
    pub(super) fn is_closed(&mut self) -> bool {
        match self {
            Sender::One(sender) => sender.is_closed(),
            Sender::Two { .. } => !self.is_ready(),
        }
    }
}

/// HTTP/2 has the host in the request's address, which it wants whole.
fn absolute(
    request: Request<Full<Bytes>>,
    tls: bool,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let (mut head, body) = request.into_parts();
    let mut uri = head.uri.into_parts();
    uri.scheme = Some(if tls { Scheme::HTTPS } else { Scheme::HTTP });
    uri.authority = match head.headers.remove(HOST) {
        Some(host) => Some(Authority::try_from(host.as_bytes())?),
        None => None,
    };
    head.uri = Uri::from_parts(uri)?;
    head.version = Version::HTTP_2;
    Ok(Request::from_parts(head, body))
}

/// The body of an answer.
pub(super) enum Body {
    One(Incoming),
    /// Whether its data has ended stands beside: then there may be trailers.
    Two(h2::RecvStream, bool),
}

/// A part of a body.
pub(super) enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl Body {
    /// The next piece; `None` at the end.
    pub(super) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece, Broke>>> {
        match self {
            Body::One(body) => Pin::new(body).poll_frame(cx).map(|frame| {
                let piece = frame?.map(|frame| match frame.into_data() {
                    Ok(data) => Piece::Data(data),
                    Err(other) => Piece::Trailers(other.into_trailers().unwrap_or_default()),
                });
                Some(piece.map_err(Broke::One))
            }),
            Body::Two(body, ended) if !*ended => match ready!(body.poll_data(cx)) {
                Some(data) => Poll::Ready(Some(taken(body, data))),
                None => {
                    *ended = true;
                    self.poll_piece(cx)
                }
            },
            Body::Two(body, _) => {
                let trailers = ready!(body.poll_trailers(cx)).map_err(Broke::Two);
                Poll::Ready(trailers.map(|given| given.map(Piece::Trailers)).transpose())
            }
        }
    }

    /// Whether its end can be told from a break without the end of the connection.
    pub(super) fn is_sized(&self) -> bool {
        match self {
            Body::One(body) => body.size_hint().exact().is_some(),
            Body::Two(..) => true,
        }
    }
}

/// A piece of a stream. It is looked at before anything more is read: the server may send as much
/// again.
fn taken(body: &mut h2::RecvStream, data: Result<Bytes, h2::Error>) -> Result<Piece, Broke> {
    let data = data?;
    body.flow_control().release_capacity(data.len())?;
    Ok(Piece::Data(data))
}

/// What broke an exchange, as the library that spoke says it.
#[derive(Debug)]
pub(super) enum Broke {
    One(hyper::Error),
    Two(h2::Error),
    /// The request cannot be said in this version.
    Unsayable(hyper::http::Error),
}

impl From<h2::Error> for Broke {
    fn from(error: h2::Error) -> Self {
        Broke::Two(error)
    }
}

impl From<hyper::http::Error> for Broke {
    fn from(error: hyper::http::Error) -> Self {
        Broke::Unsayable(error)
    }
}

impl fmt::Display for Broke {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broke::One(error) => error.fmt(f),
            Broke::Two(error) => error.fmt(f),
            Broke::Unsayable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Broke {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Broke::One(error) => error.source(),
            Broke::Two(error) => error.source(),
            Broke::Unsayable(error) => error.source(),
        }
    }
}
