//! Owns the bridge between tokio's streams and hyper's.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::rt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::tap::Tap;

/// The most bytes that one read takes in.
pub(super) const READ_LIMIT: usize = 64 * 1024;

thread_local! {
    /// Where reads land before hyper gets them: its own buffer would have to be zeroed for each
    /// read. A thread reads one socket at a time, so one buffer serves all its streams.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_LIMIT]);
}

/// What hyper drives a connection over: plain or TLS, real or in memory.
pub(super) trait Wire: rt::Read + rt::Write + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Wire for HyperIo<T> {}

/// A tokio stream as hyper wants it. It stands above TLS, where the request's own bytes can be told
/// from those that TLS writes on its own account.
#[derive(Debug)]
pub(super) struct HyperIo<T> {
    stream: T,
    tap: Rc<Tap>,
}

impl<T> HyperIo<T> {
    pub(super) fn new(stream: T, tap: Rc<Tap>) -> Self {
        HyperIo { stream, tap }
    }
}

/// Flushes, and says that the request's bytes so far are with the system.
pub(super) fn flush<T: AsyncWrite + Unpin>(
    stream: &mut T,
    tap: &Tap,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    ready!(Pin::new(stream).poll_flush(cx))?;
    tap.request_bytes_flushed();
    Poll::Ready(Ok(()))
}

impl<T: AsyncRead + Unpin> rt::Read for HyperIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = Pin::new(&mut self.get_mut().stream);
        SCRATCH.with_borrow_mut(|scratch| {
            let room = buf.remaining().min(scratch.len());
            let mut filled = ReadBuf::new(&mut scratch[..room]);
            ready!(stream.poll_read(cx, &mut filled))?;
            buf.put_slice(filled.filled());
            Poll::Ready(Ok(()))
        })
    }
}

impl<T: AsyncWrite + Unpin> rt::Write for HyperIo<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.tap.request_bytes_begin();
        Pin::new(&mut this.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.tap.request_bytes_begin();
        Pin::new(&mut this.stream).poll_write_vectored(cx, bufs)
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
