//! Owns one client's connection: bytes in until a request is whole, then its play.

use std::io::{self, ErrorKind, Read};
use std::time::Duration;

use socket2::SockRef;

use super::http::{Parsed, REQUEST_LIMIT, Request, parse};
use super::play::Play;
use super::script::Script;
use super::wire::Wire;

/// Bytes taken from a socket at once.
pub const READ: usize = 64 * 1024;

/// What a client sent.
pub enum Incoming {
    /// A request and its body.
    Request(Request, Vec<u8>),
    /// Something else, and the answer to it.
    Refused(Script),
}

/// One accepted connection.
pub struct Connection {
    /// The socket, which never blocks.
    pub stream: Wire,
    /// Tells this connection from an earlier one in the same slot.
    pub id: u64,
    /// The response in progress.
    pub play: Option<Play>,
    /// Whether the play waits for the socket to take more.
    pub blocked: bool,
    /// Whether the next byte of the client closes the connection.
    pub stale: bool,
    /// When the client last sent, or took, a byte: nanoseconds of the monotonic clock.
    pub alive: u64,
    /// From when its next request counts, on the same clock: its last read, or the end of the
    /// answer before.
    pub since: u64,
    /// Whether it stands among those with something to begin on.
    pub waits: bool,
    inbox: Vec<u8>,
    /// Bytes the inbox must hold before it is worth another look.
    wants: usize,
}

impl Connection {
    /// A connection without any request yet.
    pub fn new(stream: Wire, id: u64, now: u64) -> Self {
        Connection {
            stream,
            id,
            play: None,
            blocked: false,
            stale: false,
            alive: now,
            since: now,
            waits: false,
            inbox: Vec::new(),
            wants: 1,
        }
    }

    /// Takes all bytes that have arrived. An error, also for a client that closed or that sent more
    /// than a request may be, means that the connection is over.
    pub fn receive(&mut self, scratch: &mut [u8; READ]) -> io::Result<()> {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.inbox.extend_from_slice(&scratch[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.inbox.len() > REQUEST_LIMIT + READ {
                return Err(ErrorKind::FileTooLarge.into());
            }
        }
    }

    /// What is next to be answered, once all of it is here.
    pub fn next_request(&mut self) -> Option<Incoming> {
        if self.inbox.len() < self.wants {
            return None;
        }
        match parse(&self.inbox) {
            Parsed::More(wants) => {
                self.wants = wants;
                None
            }
            Parsed::Whole(request) => {
                self.wants = 1;
                let rest = self.inbox.split_off(request.body.end);
                let body = std::mem::replace(&mut self.inbox, rest).split_off(request.body.start);
                Some(Incoming::Request(request, body))
            }
            Parsed::Refused(script) => Some(Incoming::Refused(script)),
        }
    }

    /// Closes so that the client sees a reset.
    pub fn reset(self) {
        // If the option is refused, the client sees an ordinary close.
        let _ = SockRef::from(self.stream.socket()).set_linger(Some(Duration::ZERO));
    }
}
