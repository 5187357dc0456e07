//! Owns the stamped socket: a stream below TLS and HTTP that takes down when its bytes came and went.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::source::Source;
use super::tap::{Gate, ReadFacts, Tap};
use super::wake::Wake;
use crate::clock::Clock;

/// A stream that reads only while the gate of its tap is open, and stamps each read and write.
#[derive(Debug)]
pub(super) struct Stamped<S, C> {
    source: S,
    tap: Rc<Tap>,
    clock: C,
    wake: Wake,
}

impl<S: Source, C: Clock> Stamped<S, C> {
    pub(super) fn new(source: S, tap: Rc<Tap>, clock: C, wake: Wake) -> Self {
        Stamped {
            source,
            tap,
            clock,
            wake,
        }
    }

    /// Writes by `write`, taking down the instant before the request's first byte and the one after
    /// its last so far.
    fn write_stamped(
        &mut self,
        write: impl FnOnce(Pin<&mut S::Stream>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if self.tap.first_write_is_ahead() {
            self.tap.write_begins(self.clock.now());
        }
        let written = write(Pin::new(self.source.stream_mut()));
        if matches!(written, Poll::Ready(Ok(bytes)) if bytes > 0) && self.tap.is_writing() {
            self.tap.write_returned(self.clock.now());
        }
        written
    }
}

impl<S: Source, C: Clock> AsyncRead for Stamped<S, C> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.tap.gate() == Gate::Shut {
            // No waker is kept: who shuts the gate polls again before it waits.
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let received = ready!(this.source.poll_receive(cx, buf, &this.clock));
        let received = received.inspect_err(|_| this.tap.read_failed())?;
        this.tap.read(ReadFacts {
            read_at: received.read_at,
            kernel: received.kernel,
            not_before: this.wake.last(),
            bytes: buf.filled().len() - before,
        });
        Poll::Ready(Ok(()))
    }
}

impl<S: Source, C: Clock> AsyncWrite for Stamped<S, C> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .write_stamped(|stream| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .write_stamped(|stream| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.source.stream().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().source.stream_mut()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().source.stream_mut()).poll_shutdown(cx)
    }
}
