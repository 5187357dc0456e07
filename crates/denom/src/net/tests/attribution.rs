//! Owns the proof that a piece of a body belongs to the read that brought its last byte.
//!
//! The server writes the next piece only once the client has read all of the one before; both sides
//! keep count of the socket's bytes, so which read brought what is known, not guessed.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use measure::stamp::StampSource;
use measure::time::{Instant, Length};
use tokio::io::ReadBuf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ClientConfig;

use super::script::{Chunk, Script, all_sorts};
use super::tls::Authority;
use super::*;
use crate::clock::RunClock;
use crate::net::connect::{self, ConnectOptions, Opened, StampMode};
use crate::net::exchange::BodyEnd;
use crate::net::io::{HyperIo, Wire};
use crate::net::socket::Stamped;
use crate::net::source::{Received, Source, Tcp};
use crate::net::speak;
use crate::net::tap::Tap;
use crate::net::target::Target;
use crate::net::unread::Socket;

/// One read of the client's socket: the clock after it, and all bytes so far.
type ReadLog = Rc<RefCell<Vec<(Instant, usize)>>>;

/// A source that logs each read and tells the server how far the client is.
struct Logged {
    inner: Tcp,
    log: ReadLog,
    far: watch::Sender<usize>,
}

impl Source for Logged {
    type Stream = Socket;

    fn stream(&self) -> &Socket {
        self.inner.stream()
    }

    fn stream_mut(&mut self) -> &mut Socket {
        self.inner.stream_mut()
    }

    fn poll_receive<C: Clock>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        clock: &C,
    ) -> Poll<io::Result<Received>> {
        let before = buf.filled().len();
        let polled = self.inner.poll_receive(cx, buf, clock);
        if let Poll::Ready(Ok(received)) = &polled {
            let far = *self.far.borrow() + buf.filled().len() - before;
            self.log.borrow_mut().push((received.read_at, far));
            self.far.send_replace(far);
        }
        polled
    }
}

/// The server's end, which counts the bytes it gives to the system.
struct Counted {
    stream: TcpStream,
    written: Rc<Cell<usize>>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(bytes)) = polled {
            self.written.set(self.written.get() + bytes);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// What the server and the client's socket counted.
struct Counts {
    /// The client's reads.
    reads: Vec<(Instant, usize)>,
    /// Bytes that the server had given to the system at the end of each piece, and the clock before.
    pieces: Vec<(Instant, usize)>,
}

/// Writes each piece once the client has read the one before.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    script: &Script,
    written: &Cell<usize>,
    mut far: watch::Receiver<usize>,
    clock: RunClock,
) -> Vec<(Instant, usize)> {
    read_request(&mut stream).await;
    let mut pieces = Vec::new();
    for piece in &script.pieces {
        let all = written.get();
        far.wait_for(|&far| far == all)
            .await
            .expect("the client is there");
        let before = clock.now();
        write(&mut stream, piece).await;
        stream.flush().await.expect("the client is there");
        pieces.push((before, written.get()));
    }
    // The client has its end from the answer itself.
    pieces
}

async fn played(script: &Script, tls: bool, mode: StampMode) -> (Exchanged, Seen, Counts) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let clock = RunClock::start();
    let log = ReadLog::default();
    let (far, hears) = watch::channel(0);
    let authority = Authority::new();
    let serving = async {
        let (stream, _) = listener.accept().await.expect("a client");
        stream.set_nodelay(true).expect("a socket option");
        let written = Rc::new(Cell::new(0));
        let stream = Counted {
            stream,
            written: Rc::clone(&written),
        };
        if tls {
            let acceptor = TlsAcceptor::from(authority.server("localhost"));
            let stream = acceptor.accept(stream).await.expect("a handshake");
            serve(stream, script, &written, hears, clock).await
        } else {
            serve(stream, script, &written, hears, clock).await
        }
    };
    let mut seen = Seen::content();
    let exchanging = async {
        let stream = connect::open_one(addr, mode).await.expect("a server");
        let inner = Tcp::new(Socket::new(stream), mode);
        let source = Logged {
            inner,
            log: Rc::clone(&log),
            far,
        };
        let client = tls.then(|| authority.client());
        let mut connection = connected(source, clock, client).await;
        connection
            .exchange(request("{}"), &limits(), &mut seen, &no_cancel())
            .await
    };
    let (exchanged, pieces) = tokio::join!(exchanging, serving);
    let reads = log.take();
    (exchanged, seen, Counts { reads, pieces })
}

/// A connection as `connect` makes it, but over a source of ours.
async fn connected(
    source: Logged,
    clock: RunClock,
    tls: Option<Arc<ClientConfig>>,
) -> Connection<RunClock> {
    let tap = Rc::new(Tap::new(clock.now()));
    let stream = Stamped::new(source, Rc::clone(&tap), clock, Wake::never());
    let wire: Box<dyn Wire> = if tls.is_some() {
        let target = Target {
            tls: true,
            host: "localhost".to_owned(),
            port: 443,
            addrs: Vec::new(),
            dns: None,
        };
        let options = ConnectOptions {
            stamp: StampMode::Kernel,
            timeout: Length::from_secs(60),
            tls,
            http: HttpVersion::One,
            greeting: Length::from_secs(60),
        };
        let stream = connect::shake_hands(stream, &target, &options)
            .await
            .expect("trust");
        Box::new(HyperIo::new(stream, Rc::clone(&tap)))
    } else {
        Box::new(HyperIo::new(stream, Rc::clone(&tap)))
    };
    speak::speak_http(wire, tap, &clock, Opened::default())
        .await
        .expect("hyper")
}

/// For each byte of the body, the read that its piece was stamped by.
fn stamped_by(seen: &Seen, counts: &Counts) -> Vec<usize> {
    let read_of = |stamp: &Stamp| {
        let read_at = stamp.at + stamp.lag_low.unwrap_or(Length::ZERO);
        let found = counts.reads.iter().position(|&(at, _)| at == read_at);
        found.expect("every stamp is of a read")
    };
    let bytes = seen.data.iter();
    bytes
        .flat_map(|(stamp, data)| vec![read_of(stamp); data.len()])
        .collect()
}

async fn check(chunks: &[Chunk], tls: bool, mode: StampMode) {
    let script = Script::of(chunks);
    let (exchanged, seen, counts) = played(&script, tls, mode).await;
    assert_eq!(exchanged.end, Ok(BodyEnd::Complete));
    let body: String = chunks.iter().map(|chunk| chunk.data.as_str()).collect();
    assert_eq!(seen.body(), body.as_bytes());
    let got = stamped_by(&seen, &counts);
    assert_eq!(got.len(), script.body.len());

    // The piece that a read brought the end of: what the client had read then lies within it.
    let piece_of = |read: usize| {
        let far = counts.reads[read].1;
        counts.pieces.partition_point(|&(_, written)| written < far)
    };
    let wrong = got
        .iter()
        .zip(&script.body)
        .filter(|&(&read, &(_, piece))| piece_of(read) != piece);
    assert_eq!(wrong.count(), 0, "bytes stamped by a read of another piece");
    if !tls {
        let brought = |place: usize| counts.reads.partition_point(|&(_, far)| far <= place);
        let wrong = got
            .iter()
            .zip(&script.body)
            .filter(|&(&read, &(place, _))| brought(place) != read);
        assert_eq!(wrong.count(), 0, "bytes stamped by another read");
    }
    check_stamps(&seen, &counts, mode, piece_of);
}

/// With the kernel's stamps nearly every read has one (on a busy machine the two clocks now and then
/// cannot be read closely enough together, and then the read says that it has none), and no stamp is
/// older than the write it is of.
fn check_stamps(seen: &Seen, counts: &Counts, mode: StampMode, piece_of: impl Fn(usize) -> usize) {
    let by_kernel = |(stamp, _): &&(Stamp, Vec<u8>)| stamp.source == StampSource::Kernel;
    let kernel = seen.data.iter().filter(by_kernel).count();
    if cfg!(target_os = "linux") && mode == StampMode::Kernel {
        let all = seen.data.len();
        assert!(kernel * 10 >= all * 9, "{kernel} of {all} are the kernel's");
    } else {
        assert_eq!(kernel, 0);
    }
    // The clocks' conversion is good to well below this, whatever else the machine does.
    let doubt = Length::from_millis(1);
    let reads = stamped_by(seen, counts);
    let mut reads = reads.iter();
    for (stamp, data) in &seen.data {
        let read = reads.nth(data.len() - 1).expect("one for each byte");
        let (written, _) = counts.pieces[piece_of(*read)];
        assert!(stamp.at + doubt >= written, "{stamp:?} before {written:?}");
    }
}

#[tokio::test]
async fn plain_by_kernel_stamps() {
    check(&all_sorts(), false, StampMode::Kernel).await;
}

#[tokio::test]
async fn plain_by_clock_reads() {
    check(&all_sorts(), false, StampMode::Read).await;
}

#[tokio::test]
async fn tls_by_kernel_stamps() {
    check(&all_sorts(), true, StampMode::Kernel).await;
}

#[tokio::test]
async fn tls_by_clock_reads() {
    check(&all_sorts(), true, StampMode::Read).await;
}

#[tokio::test]
async fn seven_chunks_in_one_write_share_a_read_and_a_late_line_end_moves_nothing() {
    let chunk = |data: &str| Chunk {
        data: data.to_owned(),
        ..Chunk::default()
    };
    let mut chunks = vec![chunk("one"); 7];
    chunks[6].cut_before_crlf = true;
    chunks.push(Chunk {
        cut_in_data: Some(2),
        cut_after: true,
        ..chunk("split")
    });
    let script = Script::of(&chunks);
    assert_eq!(script.pieces.len(), 4);
    for tls in [false, true] {
        let (_, seen, counts) = played(&script, tls, StampMode::Kernel).await;
        let reads = stamped_by(&seen, &counts);
        let (seven, split) = reads.split_at(7 * 3);
        assert!(seven.iter().all(|read| *read == seven[0]));
        assert_eq!(split[0], split[1]);
        assert_eq!(split[2], split[4]);
        assert_eq!(split[0], seven[0] + 1);
        assert_eq!(split[2], split[0] + 1);
    }
}
