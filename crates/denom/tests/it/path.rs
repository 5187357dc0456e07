//! Owns small paths in front of a server that hold its answers back, each in its own way.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

/// What a path does with the bytes of an answer.
#[derive(Clone, Copy)]
pub enum Hop {
    /// Hands them on as they come.
    Passes,
    /// Waits for the end of the answer.
    Holds,
    /// Waits until so many are there.
    Size(usize),
    /// Hands on what is there whenever so much time has passed.
    Timer(Duration),
    /// Compresses the body where the client takes it, and waits for the end of the answer then.
    Compresses,
}

/// A path that runs until it is dropped.
pub struct Path {
    at: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Path {
    /// A path to `server` on a free port.
    pub fn start(server: SocketAddr, hop: Hop) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let at = listener.local_addr().expect("an address");
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let client = client.expect("a connection");
                std::thread::spawn(move || serve(client, server, hop));
            }
        });
        Path { at, over }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.at)
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the listener, so that it sees the end.
        TcpStream::connect(self.at).ok();
    }
}

/// Hands request after request on, until either end goes away.
fn serve(mut client: TcpStream, server: SocketAddr, hop: Hop) {
    let mut upstream = TcpStream::connect(server).expect("the server listens");
    client.set_nodelay(true).expect("a socket");
    upstream.set_nodelay(true).expect("a socket");
    while let Some(request) = read_request(&mut client) {
        if upstream.write_all(&request).is_err() {
            return;
        }
        let head = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let hop = match hop {
            Hop::Compresses if !head.contains("accept-encoding: gzip") => Hop::Passes,
            hop => hop,
        };
        if answer(&mut upstream, &mut client, hop).is_none() {
            return;
        }
    }
}

/// A whole request with a body of stated length; none at the end of the connection.
fn read_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = find(&bytes, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.split("content-length:").nth(1);
            let length = length.and_then(|rest| rest.split("\r\n").next()?.trim().parse().ok());
            if bytes.len() >= end + 4 + length.unwrap_or(0) {
                return Some(bytes);
            }
        }
        match client.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

/// Hands one answer on: a body in chunks, or of stated length.
fn answer(upstream: &mut TcpStream, client: &mut TcpStream, hop: Hop) -> Option<()> {
    let (mut held, mut whole) = (Vec::new(), Vec::new());
    let mut buffer = [0; 4096];
    let mut due: Option<Instant> = None;
    loop {
        let wait = due.map(|due| due.saturating_duration_since(Instant::now()));
        let wait = wait.map(|wait| wait.max(Duration::from_millis(1)));
        upstream.set_read_timeout(wait).ok()?;
        match upstream.read(&mut buffer) {
            Ok(0) => return None,
            Ok(n) => {
                held.extend_from_slice(&buffer[..n]);
                whole.extend_from_slice(&buffer[..n]);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return None,
        }
        if is_whole(&whole) {
            let rest = match hop {
                Hop::Compresses => compressed(&whole),
                _ => held,
            };
            return client.write_all(&rest).ok();
        }
        match hop {
            Hop::Passes => client.write_all(&std::mem::take(&mut held)).ok()?,
            Hop::Holds | Hop::Compresses => {}
            Hop::Size(size) => {
                while held.len() >= size {
                    client
                        .write_all(&held.drain(..size).collect::<Vec<u8>>())
                        .ok()?;
                }
            }
            Hop::Timer(each) => {
                let now = Instant::now();
                if due.is_none_or(|due| now >= due) {
                    client.write_all(&std::mem::take(&mut held)).ok()?;
                    due = Some(due.map_or(now, |due| due) + each);
                }
            }
        }
    }
}

/// Whether an answer has come to its end.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    match head.split("content-length:").nth(1) {
        Some(rest) => {
            let length = rest
                .split("\r\n")
                .next()
                .and_then(|n| n.trim().parse().ok());
            bytes.len() >= end + 4 + length.unwrap_or(0)
        }
        None => bytes.ends_with(b"\r\n0\r\n\r\n"),
    }
}

/// The answer with its body compressed, in one chunk.
fn compressed(answer: &[u8]) -> Vec<u8> {
    let end = find(answer, b"\r\n\r\n").expect("a head");
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed
        .write_all(&unchunked(&answer[end + 4..]))
        .expect("memory");
    let packed = packed.finish().expect("memory");
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut out = format!(
        "{head}\r\nContent-Encoding: gzip\r\n\r\n{:x}\r\n",
        packed.len()
    )
    .into_bytes();
    out.extend_from_slice(&packed);
    out.extend_from_slice(b"\r\n0\r\n\r\n");
    out
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = find(body, b"\r\n") {
        let size = String::from_utf8_lossy(&body[..end]).into_owned();
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        out.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 2 + size + 2..];
    }
    out
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}
