//! Owns the bare client: one thread, one poll, JSON borrowed from the line. It measures nothing and
//! is no product; it shows what a core can take in.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;

use clap::Args;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde::Deserialize;

use crate::Failed;

/// Bytes of one read.
const READ: usize = 64 << 10;

/// What it is to ask for.
#[derive(Debug, Args)]
pub struct Limit {
    url: String,
    model: String,
    streams: usize,
    tokens: u64,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a str>,
}

/// One stream: what came of a line, and whether it is over.
struct Stream {
    socket: TcpStream,
    rest: Vec<u8>,
    done: bool,
}

impl Limit {
    /// Asks once on each stream, takes in all that comes, and prints how many chunks had text.
    pub fn run(&self) -> Result<(), Failed> {
        let mut poll = Poll::new()?;
        let mut streams = Vec::new();
        for number in 0..self.streams {
            let mut stream = self.ask()?;
            let registry = poll.registry();
            registry.register(&mut stream.socket, Token(number), Interest::READABLE)?;
            streams.push(stream);
        }
        let (mut events, mut buffer) = (Events::with_capacity(1_024), vec![0; READ]);
        let mut content = 0;
        while streams.iter().any(|stream| !stream.done) {
            poll.poll(&mut events, None)?;
            for event in &events {
                content += streams[event.token().0].take(&mut buffer)?;
            }
        }
        println!("{content} chunks");
        Ok(())
    }

    fn ask(&self) -> Result<Stream, Failed> {
        let rest = self
            .url
            .strip_prefix("http://")
            .ok_or("http:// is wanted")?;
        let host = rest.split('/').next().unwrap_or(rest);
        let body = serde_json::json!({
            "model": self.model,
            "stream": true,
            "max_tokens": self.tokens,
            "messages": [{"role": "user", "content": "hello"}],
        })
        .to_string();
        let mut socket = std::net::TcpStream::connect(host.parse::<SocketAddr>()?)?;
        write!(
            socket,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        socket.set_nonblocking(true)?;
        Ok(Stream {
            socket: TcpStream::from_std(socket),
            rest: Vec::new(),
            done: false,
        })
    }
}

impl Stream {
    /// Takes in what is there, and says how many chunks had text.
    fn take(&mut self, buffer: &mut [u8]) -> Result<u64, Failed> {
        let mut content = 0;
        loop {
            let bytes = match self.socket.read(buffer) {
                Ok(0) => {
                    self.done = true;
                    return Ok(content);
                }
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(content),
                Err(error) => return Err(error.into()),
            };
            self.rest.extend_from_slice(&buffer[..bytes]);
            let whole = self.rest.iter().rposition(|byte| *byte == b'\n');
            let whole = whole.map_or(0, |last| last + 1);
            for line in self.rest[..whole].split(|byte| *byte == b'\n') {
                let data = line.strip_prefix(b"data: ").unwrap_or_default();
                self.done |= data.starts_with(b"[DONE]");
                content += u64::from(has_content(data));
            }
            self.rest.drain(..whole);
        }
    }
}

fn has_content(data: &[u8]) -> bool {
    let Ok(event) = serde_json::from_slice::<Event<'_>>(data) else {
        return false;
    };
    let of = |choice: &Choice<'_>| choice.delta.as_ref().is_some_and(|d| d.content.is_some());
    event.choices.iter().any(of)
}
