//! Owns what a connection reads from and writes to: a socket, bare or under TLS.

use std::io::{self, Read, Write};

use mio::net::TcpStream;

use super::tls::Session;

/// A socket that never blocks.
pub enum Wire {
    /// As it is.
    Plain(TcpStream),
    /// Under TLS.
    Secured(Box<Session>),
}

impl Wire {
    /// The socket itself.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Wire::Plain(socket) => socket,
            Wire::Secured(session) => session.socket(),
        }
    }

    /// Says, where that can be said, that nothing more comes.
    pub fn finish(&mut self) {
        if let Wire::Secured(session) = self {
            session.finish();
        }
    }
}

impl Read for Wire {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(socket) => socket.read(out),
            Wire::Secured(session) => session.read(out),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(socket) => socket.write(bytes),
            Wire::Secured(session) => session.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            // Every write went to the socket itself.
            Wire::Plain(_) => Ok(()),
            Wire::Secured(session) => session.flush(),
        }
    }
}
