//! Owns the looks at what lies unread in the sockets of a worker's open streams.

use std::cell::RefCell;
use std::io;
use std::net::Shutdown;
use std::ops::Deref;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

use measure::time::Instant;
use socket2::SockRef;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

use super::tap::Tap;

/// Most sockets that one look takes in, for a few microseconds in all; the next look takes the next.
const SOCKETS_A_LOOK: usize = 32;

thread_local! {
    /// The connections of this thread: a worker is one thread, and they live and die on it.
    static OPEN: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

/// A TCP stream that the worker's looks may ask what waits in it. Whoever reads it has it to
/// himself.
#[derive(Debug, Clone)]
pub(super) struct Socket(Rc<TcpStream>);

impl Socket {
    pub(super) fn new(stream: TcpStream) -> Self {
        Socket(Rc::new(stream))
    }

    /// Lets this thread's looks take it in while `tap` has an exchange on it.
    pub(super) fn watch(&self, tap: &Rc<Tap>) {
        let place = Place {
            socket: Rc::downgrade(&self.0),
            tap: Rc::downgrade(tap),
        };
        OPEN.with_borrow_mut(|open| open.push(place));
    }

    fn write(
        &self,
        cx: &mut Context<'_>,
        attempt: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match attempt(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl Deref for Socket {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.0
    }
}

#[cfg(not(target_os = "linux"))]
impl tokio::io::AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read(buf.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done.map(|bytes| buf.advance(bytes))),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |stream| stream.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&*self.0).shutdown(Shutdown::Write))
    }
}

/// One connection, for as long as it is there.
#[derive(Debug, Clone)]
struct Place {
    socket: Weak<TcpStream>,
    tap: Weak<Tap>,
}

impl Place {
    /// Bytes that wait in it, and when it was last read; none where no exchange is on it.
    fn waiting(&self) -> Option<(u64, Instant)> {
        let (socket, tap) = (self.socket.upgrade()?, self.tap.upgrade()?);
        let since = tap.reading_since()?;
        let bytes = rustix::io::ioctl_fionread(&*socket).ok()?;
        (bytes > 0).then_some((bytes, since))
    }
}

/// What a look found, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unread {
    /// Waiting in the sockets that it took in.
    pub waiting: u64,
    /// In those in which some waited at the look before: still there, and none of it read.
    pub stayed: u64,
}

/// The looks of one worker, one after another.
#[derive(Debug, Default)]
pub struct Looks {
    next: usize,
    found: Vec<(Place, Instant)>,
}

impl Looks {
    /// Looks at the next sockets, and again at those in which bytes waited; none where this thread
    /// has no connection. To be called on the worker's thread.
    pub fn look(&mut self) -> Option<Unread> {
        OPEN.with_borrow_mut(|open| {
            open.retain(|place| place.socket.strong_count() > 0);
            if open.is_empty() {
                return None;
            }
            let mut seen = Unread::default();
            for (place, since) in std::mem::take(&mut self.found) {
                let still = place.waiting().filter(|(_, now)| *now == since);
                seen.stayed += still.map_or(0, |(bytes, _)| bytes);
            }
            for _ in 0..open.len().min(SOCKETS_A_LOOK) {
                self.next = (self.next + 1) % open.len();
                let place = &open[self.next];
                if let Some((bytes, since)) = place.waiting() {
                    seen.waiting += bytes;
                    self.found.push((place.clone(), since));
                }
            }
            Some(seen)
        })
    }

    /// Lets go of what the last look found: the next tells of nothing that stayed.
    pub fn forget(&mut self) {
        self.found.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use measure::time::Length;

    use super::*;
    use crate::net::tap::ReadFacts;

    fn at(micros: u64) -> Instant {
        Instant::ORIGIN + Length::from_micros(micros)
    }

    fn read(tap: &Tap, at: Instant) {
        tap.read(ReadFacts {
            read_at: at,
            kernel: None,
            not_before: at,
            bytes: 1,
        });
    }

    #[tokio::test]
    async fn bytes_that_nobody_reads_from_look_to_look_have_stayed() {
        let mut looks = Looks::default();
        assert_eq!(looks.look(), None, "no connection");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address");
        let socket = Socket::new(TcpStream::connect(addr).await.expect("connects"));
        let (mut server, _) = listener.accept().expect("a client");
        let tap = Rc::new(Tap::new(at(0)));
        socket.watch(&tap);
        let nothing = Some(Unread::default());
        server.write_all(b"unasked").expect("writes");
        socket.readable().await.expect("comes");
        assert_eq!(looks.look(), nothing, "no exchange is on");
        tap.begin(at(1));
        let unread = |waiting, stayed| Some(Unread { waiting, stayed });
        assert_eq!(looks.look(), unread(7, 0));
        assert_eq!(looks.look(), unread(7, 7));
        looks.forget();
        assert_eq!(looks.look(), unread(7, 0));
        read(&tap, at(2));
        assert_eq!(looks.look(), unread(7, 0), "read since, and more came");
        let mut bytes = [0; 8];
        assert_eq!(socket.try_read(&mut bytes).expect("reads"), 7);
        assert_eq!(looks.look(), nothing);
        tap.end();
        server.write_all(b"late").expect("writes");
        socket.readable().await.expect("comes");
        assert_eq!(looks.look(), nothing, "the exchange is over");
        drop((socket, tap));
        assert_eq!(looks.look(), None);
    }
}
