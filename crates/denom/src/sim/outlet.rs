//! Owns the way of an answer to its socket: as it is over HTTP/1.1, within windows over HTTP/2.

use std::io::{self, ErrorKind, Write};

use super::clock::monotonic_nanos;
use super::h2::Http2;
use super::wire::Wire;

/// Where a play writes to.
pub struct Outlet<'a> {
    /// The socket.
    pub wire: &'a mut Wire,
    /// What stands between, if it is HTTP/2.
    pub http2: Option<&'a mut Http2>,
}

/// One write.
pub struct Written {
    /// The instant before it, in nanoseconds of the monotonic clock.
    pub at: u64,
    /// Bytes of the answer that need not be offered again.
    pub taken: usize,
    /// Bytes that the system took.
    pub sent: usize,
}

impl Outlet<'_> {
    /// Whether bytes that were taken wait for the socket.
    pub fn owes(&self) -> bool {
        self.http2.as_ref().is_some_and(|http2| http2.owes())
    }

    /// One write of at most `most` bytes: of `framed`, then of `body`, which only HTTP/2 has and
    /// which goes into frames.
    pub fn write(&mut self, framed: &[u8], body: &[u8], most: usize) -> io::Result<Written> {
        let Some(http2) = &mut self.http2 else {
            let at = monotonic_nanos();
            return match self.wire.write(&framed[..framed.len().min(most)])? {
                0 => Err(ErrorKind::WriteZero.into()),
                sent => Ok(Written {
                    at,
                    taken: sent,
                    sent,
                }),
            };
        };
        http2.send_controls(self.wire)?;
        let taken = http2.stage(framed, body);
        if !http2.owes() {
            // The client's windows are closed.
            return Err(ErrorKind::WouldBlock.into());
        }
        let at = monotonic_nanos();
        match http2.send(self.wire, most) {
            Ok(sent) => Ok(Written { at, taken, sent }),
            // What was taken is not to be offered again.
            Err(error) if error.kind() == ErrorKind::WouldBlock && taken > 0 => {
                Ok(Written { at, taken, sent: 0 })
            }
            Err(error) => Err(error),
        }
    }

    /// Sends what waits below, and between frames of the answer those of the connection.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.http2 {
            Some(http2) => http2.send_controls(self.wire),
            None => self.wire.flush(),
        }
    }
}
