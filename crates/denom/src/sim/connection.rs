//! Owns one client's connection: bytes in until a request is whole, then its play.

use std::io::{self, ErrorKind, Read};
use std::time::Duration;

use socket2::SockRef;

use super::h2::{self, Http2, Opening};
use super::http::{Parsed, REQUEST_LIMIT, Request, parse};
use super::outlet::Outlet;
use super::play::{Play, Turn};
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

/// What a connection speaks.
enum Protocol {
    /// Too few bytes came to tell.
    Unclear,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2(Box<Http2>),
}

impl Protocol {
    fn http2(&mut self) -> Option<&mut Http2> {
        match self {
            Protocol::Http2(http2) => Some(http2),
            Protocol::Unclear | Protocol::Http1 => None,
        }
    }
}

/// One accepted connection.
pub struct Connection {
    /// The socket, which never blocks.
    pub stream: Wire,
    /// Tells this connection from an earlier one in the same slot.
    pub id: u64,
    /// The response in progress.
    pub play: Option<Play>,
    /// Whether the play waits for the socket, or for HTTP/2's window, to take more.
    pub blocked: bool,
    /// Whether the next byte of the client closes the connection; in HTTP/2, the next request.
    pub stale: bool,
    /// When the client last sent, or took, a byte: nanoseconds of the monotonic clock.
    pub alive: u64,
    /// From when its next request counts, on the same clock: its last read, or the end of the
    /// answer before.
    pub since: u64,
    /// Whether it stands among those with something to begin on.
    pub waits: bool,
    protocol: Protocol,
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
            protocol: Protocol::Unclear,
            inbox: Vec::new(),
            wants: 1,
        }
    }

    /// Takes all bytes that have arrived. An error, also for a client that closed or that sent more
    /// than a request may be, means that the connection is over.
    pub fn receive(&mut self, scratch: &mut [u8; READ]) -> io::Result<()> {
        let outcome = self.receive_all(scratch);
        // Settings and pings are answered at once, and what ends the connection is told.
        let sent = self.send_waiting(outcome.is_err());
        outcome.and(sent)
    }

    /// Sends HTTP/2's frames that wait, as far as the socket takes them. Those of an answer are its
    /// play's to send, unless that is over: `all` says that everything is.
    pub fn send_waiting(&mut self, all: bool) -> io::Result<()> {
        let Some(http2) = self.protocol.http2() else {
            return Ok(());
        };
        let sent = match all || self.play.is_none() {
            true => http2.send_all(&mut self.stream),
            false => http2.send_controls(&mut self.stream),
        };
        match sent {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            sent => sent,
        }
    }

    fn receive_all(&mut self, scratch: &mut [u8; READ]) -> io::Result<()> {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.take_in(&scratch[..bytes])?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.inbox.len() > REQUEST_LIMIT + READ {
                return Err(ErrorKind::FileTooLarge.into());
            }
        }
    }

    fn take_in(&mut self, bytes: &[u8]) -> io::Result<()> {
        let over = |code| io::Error::new(ErrorKind::InvalidData, format!("{code:?}"));
        if let Protocol::Http2(http2) = &mut self.protocol {
            return http2.receive(bytes).map_err(over);
        }
        self.inbox.extend_from_slice(bytes);
        if !matches!(self.protocol, Protocol::Unclear) {
            return Ok(());
        }
        match h2::opening(&self.inbox) {
            Opening::Unclear => Ok(()),
            Opening::Other => {
                self.protocol = Protocol::Http1;
                Ok(())
            }
            Opening::Http2 => {
                let mut http2 = Box::new(Http2::new());
                let inbox = std::mem::take(&mut self.inbox);
                let outcome = http2.receive(&inbox[h2::frame::PREFACE.len()..]);
                self.protocol = Protocol::Http2(http2);
                outcome.map_err(over)
            }
        }
    }

    /// Gives the play its turn, if there is one.
    pub fn turn(&mut self, active: u64) -> Option<Turn> {
        let mut outlet = Outlet {
            wire: &mut self.stream,
            http2: self.protocol.http2(),
        };
        let turn = self.play.as_mut()?.turn(&mut outlet, active);
        self.blocked = turn == Turn::Blocked;
        Some(turn)
    }

    /// HTTP/2's side of it, if it has one.
    pub fn http2(&mut self) -> Option<&mut Http2> {
        self.protocol.http2()
    }

    /// What is next to be answered, once all of it is here.
    pub fn next_request(&mut self) -> Option<Incoming> {
        match &mut self.protocol {
            Protocol::Unclear => return None,
            Protocol::Http1 => {}
            Protocol::Http2(http2) => return http2.next_request(),
        }
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
