//! Owns what the server sends: frames of an answer within the client's windows, and those of the
//! connection between them.

use std::io::{self, ErrorKind, Write};

use super::Http2;
use super::frame::{self, kind};

/// Bytes of an answer that are put in frames before the socket has taken them.
const STAGE: usize = 256 * 1024;

/// Bytes that wait for a socket.
#[derive(Default)]
pub struct Queue {
    bytes: Vec<u8>,
    sent: usize,
}

impl Queue {
    /// Where further bytes are appended.
    pub fn end(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..std::mem::take(&mut self.sent));
        &mut self.bytes
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// One write of at most `most` bytes.
    fn send(&mut self, out: &mut impl Write, most: usize) -> io::Result<usize> {
        let until = self.bytes.len().min(self.sent.saturating_add(most));
        let sent = loop {
            match out.write(&self.bytes[self.sent..until]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => break sent,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        self.sent += sent;
        if self.len() == 0 {
            self.bytes.clear();
            self.sent = 0;
        }
        Ok(sent)
    }
}

impl Http2 {
    /// Whether frames of an answer wait for the socket.
    pub fn owes(&self) -> bool {
        self.staged.len() > 0
    }

    /// Puts a part of an answer in frames: `framed` is frames already, of `body` goes what the
    /// client's windows have room for. Says how many bytes it took; none while others wait.
    pub fn stage(&mut self, framed: &[u8], body: &[u8]) -> usize {
        if self.owes() {
            return 0;
        }
        self.staged.end().extend_from_slice(framed);
        let mut rest = body;
        while let Some(stream) = &mut self.stream
            && self.staged.len() < STAGE
        {
            let window = usize::try_from(self.window.min(stream.window)).unwrap_or(0);
            let (part, behind) = rest.split_at(rest.len().min(window).min(self.most).min(STAGE));
            if part.is_empty() {
                break;
            }
            // A part is below 256 KiB.
            self.window -= part.len() as i64;
            stream.window -= part.len() as i64;
            frame::put(self.staged.end(), kind::DATA, 0, stream.id, part);
            rest = behind;
        }
        if self.owes() {
            self.barren = 0;
        }
        framed.len() + body.len() - rest.len()
    }

    /// One write of at most `most` bytes of the answer.
    pub fn send(&mut self, out: &mut impl Write, most: usize) -> io::Result<usize> {
        self.staged.send(out, most)
    }

    /// Sends the frames of the connection, unless it is in the middle of an answer's.
    pub fn send_controls(&mut self, out: &mut impl Write) -> io::Result<()> {
        while !self.owes() && self.controls.len() > 0 {
            self.controls.send(out, usize::MAX)?;
        }
        out.flush()
    }

    /// Sends all that waits.
    pub fn send_all(&mut self, out: &mut impl Write) -> io::Result<()> {
        while self.owes() {
            self.staged.send(out, usize::MAX)?;
        }
        self.send_controls(out)
    }
}
