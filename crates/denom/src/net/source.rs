//! Owns the ways to read a byte stream and learn when its bytes came.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use measure::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connect::StampMode;
use crate::clock::Clock;

/// One return of a read: the clock directly after it, and the kernel's stamp where there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    /// The clock, read directly after the socket was.
    pub read_at: Instant,
    /// The kernel's receive stamp, converted to the same clock.
    pub kernel: Option<Instant>,
}

/// A byte stream that says of each read when it was.
pub(super) trait Source: Unpin {
    /// The stream itself, to write to.
    type Stream: AsyncWrite + Unpin;

    /// The stream, to ask it something.
    fn stream(&self) -> &Self::Stream;

    /// The stream, to write to it.
    fn stream_mut(&mut self) -> &mut Self::Stream;

    /// Reads once into `buf`; nothing read is the end of the stream.
    fn poll_receive<C: Clock>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        clock: &C,
    ) -> Poll<io::Result<Received>>;
}

/// Any stream, stamped by one clock read after each read.
#[derive(Debug)]
pub(super) struct Plain<S>(pub S);

impl<S: AsyncRead + AsyncWrite + Unpin> Source for Plain<S> {
    type Stream = S;

    fn stream(&self) -> &S {
        &self.0
    }

    fn stream_mut(&mut self) -> &mut S {
        &mut self.0
    }

    fn poll_receive<C: Clock>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        clock: &C,
    ) -> Poll<io::Result<Received>> {
        let polled = Pin::new(&mut self.0).poll_read(cx, buf);
        polled.map_ok(|()| Received {
            read_at: clock.now(),
            kernel: None,
        })
    }
}

#[cfg(target_os = "linux")]
pub(super) use kernel::Tcp;

/// A TCP stream, where there are no kernel stamps to be had.
#[cfg(not(target_os = "linux"))]
pub(super) type Tcp = Plain<super::unread::Socket>;

#[cfg(not(target_os = "linux"))]
impl Tcp {
    /// Nothing is to be prepared for clock reads.
    pub(super) fn prepare(_socket: &tokio::net::TcpSocket, _mode: StampMode) {}

    /// The stream, stamped by clock reads whatever the mode.
    pub(super) fn new(stream: super::unread::Socket, _mode: StampMode) -> Self {
        Plain(stream)
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io::{self, IoSliceMut};
    use std::os::fd::{AsRawFd, RawFd};
    use std::sync::OnceLock;
    use std::task::{Context, Poll, ready};

    use nix::cmsg_space;
    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, RecvMsg, TimestampingFlag, Timestamps, recvmsg, setsockopt,
        sockopt,
    };
    use tokio::io::{Interest, ReadBuf};
    use tokio::net::TcpSocket;

    use super::{Received, Source, StampMode};
    use crate::clock::Clock;
    use crate::net::unread::Socket;

    /// A TCP stream whose bytes carry the kernel's receive stamps, if they were asked for.
    #[derive(Debug)]
    pub(in crate::net) struct Tcp {
        stream: Socket,
        /// Room for one stamp; `None` where the clock read is the stamp.
        control: Option<Vec<u8>>,
    }

    impl Tcp {
        /// Turns receive stamps on: before the first byte can arrive, since bytes that are there
        /// already have none. Where the system refuses, reads have no kernel stamp, and say so.
        pub(in crate::net) fn prepare(socket: &TcpSocket, mode: StampMode) {
            if mode == StampMode::Kernel {
                // The kernel stamps from a moment after the first socket that asks for it until the
                // last one is gone: this one keeps it at it between connections.
                static KEPT: OnceLock<Option<TcpSocket>> = OnceLock::new();
                KEPT.get_or_init(|| TcpSocket::new_v4().inspect(ask_for_stamps).ok());
                ask_for_stamps(socket);
            }
        }

        /// A stream whose socket was prepared for the same mode.
        pub(in crate::net) fn new(stream: Socket, mode: StampMode) -> Self {
            let control = (mode == StampMode::Kernel).then(|| cmsg_space!(Timestamps));
            Tcp { stream, control }
        }

        /// After a read that did not fill its buffer the socket is empty, and epoll will tell of
        /// new bytes: spares the read that would only say so. (tokio's own read does the same.)
        fn expect_an_event_first(&self) {
            let empty = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            // The answer is the error just made; the call is for its effect on the readiness.
            self.stream.try_io(Interest::READABLE, empty).ok();
        }
    }

    /// Where the system refuses, reads have no kernel stamp, and say so.
    fn ask_for_stamps(socket: &TcpSocket) {
        let flags = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
        setsockopt(socket, sockopt::Timestamping, &flags).ok();
    }

    impl Source for Tcp {
        type Stream = Socket;

        fn stream(&self) -> &Socket {
            &self.stream
        }

        fn stream_mut(&mut self) -> &mut Socket {
            &mut self.stream
        }

        fn poll_receive<C: Clock>(
            &mut self,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
            clock: &C,
        ) -> Poll<io::Result<Received>> {
            let room = buf.initialize_unfilled();
            let capacity = room.len();
            loop {
                ready!(self.stream.poll_read_ready(cx))?;
                let fd = self.stream.as_raw_fd();
                let tried = self.stream.try_io(Interest::READABLE, || {
                    receive(fd, room, self.control.as_deref_mut(), clock)
                });
                match tried {
                    Ok((bytes, received)) => {
                        if 0 < bytes && bytes < capacity {
                            self.expect_an_event_first();
                        }
                        buf.advance(bytes);
                        return Poll::Ready(Ok(received));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        }
    }

    /// Reads once, and the clock directly after it; only then looks for the stamp.
    fn receive<C: Clock>(
        fd: RawFd,
        room: &mut [u8],
        control: Option<&mut [u8]>,
        clock: &C,
    ) -> io::Result<(usize, Received)> {
        let mut slices = [IoSliceMut::new(room)];
        let message = recvmsg::<()>(fd, &mut slices, control, MsgFlags::empty());
        let read_at = clock.now();
        let message = message?;
        let kernel = stamp(&message).and_then(|wall_ns| clock.at_wall(read_at, wall_ns));
        Ok((message.bytes, Received { read_at, kernel }))
    }

    /// The kernel's software stamp in nanoseconds since the Unix epoch, if the message has one.
    fn stamp(message: &RecvMsg<'_, '_, ()>) -> Option<u64> {
        let system = message.cmsgs().ok()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampsns(stamps) => Some(stamps.system),
            _ => None,
        })?;
        let secs = u64::try_from(system.tv_sec()).ok()?;
        let nanos = u64::try_from(system.tv_nsec()).ok()?;
        let wall_ns = secs.checked_mul(1_000_000_000)?.checked_add(nanos)?;
        (wall_ns > 0).then_some(wall_ns)
    }
}
