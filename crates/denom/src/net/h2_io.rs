//! Owns the bridge between a stream and HTTP/2: which written bytes are the request's, and how the
//! server began.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::io::flush;
use super::tap::Tap;

/// What a client of HTTP/2 writes before its first frame, in bytes.
const PREFACE: usize = 24;
/// The head of a frame, in bytes.
const HEAD: usize = 9;
/// Where in the head of a frame its kind stands.
const KIND: usize = 3;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;

/// What HTTP/2 drives a connection over: plain or TLS, real or in memory.
pub(super) trait H2Wire: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> H2Wire for H2Io<T> {}

/// How the server began to speak: its first frame must be SETTINGS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Greeting {
    head: [u8; HEAD],
    taken: usize,
}

impl Greeting {
    fn take(&mut self, bytes: &[u8]) {
        let more = bytes.len().min(HEAD - self.taken);
        self.head[self.taken..self.taken + more].copy_from_slice(&bytes[..more]);
        self.taken += more;
    }

    /// The head of its first frame is here, and is that of its settings.
    pub(super) fn is_settings(&self) -> bool {
        self.taken == HEAD && self.head[KIND] == SETTINGS
    }

    /// It answers in HTTP/1.
    pub(super) fn is_http1(&self) -> bool {
        let begin = b"HTTP/1.";
        self.head[..self.taken].starts_with(begin)
    }
}

/// A stream as HTTP/2 wants it, above TLS.
#[derive(Debug)]
pub(super) struct H2Io<T> {
    stream: T,
    tap: Rc<Tap>,
    greeting: Rc<Cell<Greeting>>,
    out: Frames,
}

impl<T> H2Io<T> {
    pub(super) fn new(stream: T, tap: Rc<Tap>, greeting: Rc<Cell<Greeting>>) -> Self {
        H2Io {
            stream,
            tap,
            greeting,
            out: Frames::default(),
        }
    }

    /// Says whether what is about to be written is the request's, or the connection's own.
    fn tell(&self, bytes: &[IoSlice<'_>]) {
        let mut ahead = self.out;
        // No short cut: all of it has to be gone through.
        let request = bytes
            .iter()
            .fold(false, |found, part| ahead.pass(part) | found);
        if request {
            self.tap.request_bytes_begin();
        } else {
            self.tap.request_bytes_flushed();
        }
    }

    fn went(&mut self, bytes: &[IoSlice<'_>], mut count: usize) {
        for part in bytes {
            let taken = part.len().min(count);
            self.out.pass(&part[..taken]);
            count -= taken;
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for H2Io<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let mut greeting = this.greeting.get();
        if greeting.taken < HEAD {
            greeting.take(&buf.filled()[before..]);
            this.greeting.set(greeting);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for H2Io<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.tell(bufs);
        let written = ready!(Pin::new(&mut this.stream).poll_write_vectored(cx, bufs))?;
        this.went(bufs, written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        flush(&mut this.stream, &this.tap, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// Where in its frames a stream of bytes is.
#[derive(Debug, Clone, Copy)]
struct Frames {
    /// Bytes until the next frame's head: of the preface, or of a frame's content.
    inside: usize,
    head: [u8; HEAD],
    taken: usize,
}

impl Default for Frames {
    fn default() -> Self {
        Frames {
            inside: PREFACE,
            head: [0; HEAD],
            taken: 0,
        }
    }
}

impl Frames {
    /// Goes on by these bytes; true if some are of a request: its headers or its body.
    fn pass(&mut self, mut bytes: &[u8]) -> bool {
        let mut request = false;
        while !bytes.is_empty() {
            if self.inside > 0 {
                request |= self.is_request();
                let skipped = self.inside.min(bytes.len());
                self.inside -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            if self.taken == HEAD {
                self.taken = 0;
            }
            let more = bytes.len().min(HEAD - self.taken);
            self.head[self.taken..self.taken + more].copy_from_slice(&bytes[..more]);
            self.taken += more;
            bytes = &bytes[more..];
            if self.taken == HEAD {
                let [a, b, c, ..] = self.head;
                self.inside = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                request |= self.is_request();
            }
        }
        request
    }

    /// The frame whose head came last is a request's. In the preface there is none.
    fn is_request(&self) -> bool {
        self.taken == HEAD && matches!(self.head[KIND], DATA | HEADERS | CONTINUATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, content: usize) -> Vec<u8> {
        let length = u32::try_from(content).expect("a small frame").to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, 0, 0, 0, 0, 1];
        frame.extend(vec![0xff; content]);
        frame
    }

    #[test]
    fn a_requests_bytes_are_told_from_the_connections_at_every_cut() {
        let parts = [
            (vec![b'P'; PREFACE], false),
            (frame(SETTINGS, 12), false),
            (frame(HEADERS, 40), true),
            (frame(DATA, 300), true),
            (frame(SETTINGS, 0), false),
            (frame(8, 4), false),
            (frame(DATA, 0), true),
        ];
        let whole = parts.iter().flat_map(|(bytes, _)| bytes);
        let whole: Vec<u8> = whole.copied().collect();
        for step in 1..60 {
            let mut frames = Frames::default();
            let told = whole.chunks(step).map(|piece| frames.pass(piece));
            let told: Vec<bool> = told.collect();
            let mut at = 0;
            for (bytes, request) in &parts {
                // The pieces in which the head of this frame ends, up to its end.
                let (from, to) = (at + HEAD.min(bytes.len()) - 1, at + bytes.len() - 1);
                at += bytes.len();
                let heard = (from / step..=to / step).any(|piece| told[piece]);
                assert!(
                    heard || !request,
                    "step {step}: a request's frame was not heard"
                );
            }
            let alone = |at: usize| told[at / step] && step == 1;
            assert!(!alone(PREFACE) && !alone(PREFACE + HEAD + 5), "step {step}");
        }
    }

    #[test]
    fn a_server_that_answers_in_http_1_is_told() {
        let mut greeting = Greeting::default();
        for byte in b"HTTP/1.1 400" {
            greeting.take(&[*byte]);
        }
        assert_eq!((greeting.is_settings(), greeting.is_http1()), (false, true));
        let mut greeting = Greeting::default();
        greeting.take(&frame(SETTINGS, 18));
        assert_eq!((greeting.is_settings(), greeting.is_http1()), (true, false));
    }
}
