//! Owns opening a connection: TCP, TLS and HTTP/1.1, each timed, and why it did not open.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

pub use measure::record::StampMode;
use measure::time::Length;
use nix::errno::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::http::{Driver, HttpVersion, Sender};
use super::socket::Stamped;
use super::source::{Plain, Tcp};
use super::speak::speak;
use super::tap::Tap;
use super::target::Target;
use super::tls;
use super::unread::Socket;
use super::wake::Wake;
use crate::clock::Clock;

/// How connections are opened.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Where the times of arrivals come from.
    pub stamp: StampMode,
    /// The longest that TCP and TLS together may take.
    pub timeout: Length,
    /// Whom to trust; needed for a target with TLS only.
    pub tls: Option<Arc<ClientConfig>>,
    /// What is spoken on them.
    pub http: HttpVersion,
    /// The longest until a server of HTTP/2 begins to speak, once the stream is open.
    pub greeting: Length,
}

/// A step on the way to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Resolving the host's name.
    Dns,
    /// Opening the TCP connection.
    Connect,
    /// The TLS handshake.
    Tls,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectError {
    /// The step that failed.
    pub phase: Phase,
    /// It took longer than allowed.
    pub timeout: bool,
    /// This machine, not the server, was short of something: files, ports, memory.
    pub local_resource: bool,
    /// What happened, in one sentence without a full stop.
    pub text: String,
}

impl ConnectError {
    pub(super) fn failed(phase: Phase, text: String) -> Self {
        ConnectError {
            phase,
            timeout: false,
            local_resource: false,
            text,
        }
    }

    pub(super) fn timed_out(phase: Phase, text: String) -> Self {
        ConnectError {
            timeout: true,
            ..ConnectError::failed(phase, text)
        }
    }

    /// `what` failed with `error`.
    pub(super) fn from_io(phase: Phase, error: &io::Error, what: String) -> Self {
        let errno = error.raw_os_error().map(Errno::from_raw);
        ConnectError {
            // The system's own patience with a silent peer may be shorter than ours.
            timeout: errno == Some(Errno::ETIMEDOUT),
            local_resource: errno.is_some_and(is_local_resource),
            ..ConnectError::failed(phase, format!("{what}: {error}"))
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ConnectError {}

fn is_local_resource(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::EMFILE
            | Errno::ENFILE
            | Errno::ENOBUFS
            | Errno::ENOMEM
            | Errno::EADDRNOTAVAIL
            | Errno::EADDRINUSE
            | Errno::EAGAIN
    )
}

/// One open connection, for one exchange at a time.
#[derive(Debug)]
pub struct Connection<C: Clock> {
    /// Both halves of it; `None` once it is closed.
    pub(super) http: Option<Http>,
    pub(super) tap: Rc<Tap>,
    pub(super) clock: C,
    /// Exchanges begun on it.
    pub(super) exchanges: u64,
    /// How it was opened.
    pub opened: Opened,
}

/// How a connection was opened, and how long that took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Opened {
    /// The address that answered; `None` for a stream that has none.
    pub peer: Option<SocketAddr>,
    /// From the first attempt to the established TCP connection.
    pub tcp: Length,
    /// The TLS handshake, where there was one.
    pub tls: Option<Length>,
    /// From there to the server's first settings, of HTTP/2.
    pub http2: Option<Length>,
}

/// The two halves of a connection.
pub(super) struct Http {
    pub(super) sender: Sender,
    /// `None` once it has finished.
    pub(super) driver: Option<Driver>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

/// Opens a connection to `target`, trying its addresses in turn.
///
/// # Errors
/// With the step that failed, whether for want of time or of something on this machine.
pub async fn connect<C: Clock>(
    target: &Target,
    options: &ConnectOptions,
    clock: &C,
    wake: &Wake,
) -> Result<Connection<C>, ConnectError> {
    let began = clock.now();
    let opening = open_tcp(target, options.stamp);
    let stream = within(options.timeout, Phase::Connect, target, opening).await?;
    let connected = clock.now();
    let tcp = connected.since_or_zero(began);
    let peer = stream.peer_addr().ok();
    let tap = Rc::new(Tap::new(connected));
    let socket = Socket::new(stream);
    socket.watch(&tap);
    let source = Tcp::new(socket, options.stamp);
    let stream = Stamped::new(source, Rc::clone(&tap), clock.clone(), wake.clone());
    let mut opened = Opened {
        peer,
        tcp,
        ..Opened::default()
    };
    let language = (options.http, options.greeting);
    if !target.tls {
        return speak(stream, language, tap, clock, opened).await;
    }
    let shaking = shake_hands(stream, target, options);
    let stream = within(options.timeout.less(tcp), Phase::Tls, target, shaking).await?;
    opened.tls = Some(clock.now().since_or_zero(connected));
    speak(stream, language, tap, clock, opened).await
}

/// A connection over a stream that is already there, in memory for one, stamped by clock reads.
///
/// # Errors
/// When the other side does not speak this version of HTTP.
pub async fn connect_over<C: Clock>(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    http: HttpVersion,
    clock: &C,
    wake: &Wake,
) -> Result<Connection<C>, ConnectError> {
    let tap = Rc::new(Tap::new(clock.now()));
    let stream = Stamped::new(Plain(stream), Rc::clone(&tap), clock.clone(), wake.clone());
    let language = (http, Length::from_secs(60));
    speak(stream, language, tap, clock, Opened::default()).await
}

/// Waits for a step no longer than `limit`.
async fn within<T>(
    limit: Length,
    phase: Phase,
    target: &Target,
    step: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    timeout(limit.into(), step).await.unwrap_or_else(|_| {
        let what = match phase {
            Phase::Tls => "the TLS handshake with",
            Phase::Dns | Phase::Connect => "connecting to",
        };
        let text = format!("{what} {} did not end in time", target.host_header());
        Err(ConnectError::timed_out(phase, text))
    })
}

/// The first of the target's addresses that answers; else the last one's error.
async fn open_tcp(target: &Target, mode: StampMode) -> Result<TcpStream, ConnectError> {
    let mut refused = None;
    for &addr in &target.addrs {
        match open_one(addr, mode).await {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                let what = format!("cannot connect to {addr}");
                let error = ConnectError::from_io(Phase::Connect, &error, what);
                if error.local_resource {
                    return Err(error);
                }
                refused = Some(error);
            }
        }
    }
    Err(refused.unwrap_or_else(|| {
        let text = format!("no address is known for {}", target.host);
        ConnectError::failed(Phase::Dns, text)
    }))
}

pub(super) async fn open_one(addr: SocketAddr, mode: StampMode) -> io::Result<TcpStream> {
    let socket = match addr {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Else the last small piece of a request waits for the acknowledgement of the one before.
    socket.set_nodelay(true)?;
    Tcp::prepare(&socket, mode);
    socket.connect(addr).await
}

pub(super) async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    target: &Target,
    options: &ConnectOptions,
) -> Result<TlsStream<S>, ConnectError> {
    let fail = |text| ConnectError::failed(Phase::Tls, text);
    let config = options.tls.clone().ok_or_else(|| {
        let text = format!("{} needs TLS, and no TLS was set up", target.host);
        fail(text)
    })?;
    let name = ServerName::try_from(target.host.clone()).map_err(|_| {
        let text = format!(
            "{} is no host name that a certificate could be for",
            target.host
        );
        fail(text)
    })?;
    let shaken = TlsConnector::from(config).connect(name, stream).await;
    let stream = shaken.map_err(|error| fail(tls::reason(&error, &target.host)))?;
    let agreed = stream.get_ref().1.alpn_protocol();
    if options.http == HttpVersion::Two && agreed != Some(options.http.alpn()) {
        let text = format!("{} offers no HTTP/2 over TLS", target.host);
        return Err(fail(text));
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::clock::RunClock;

    const OPTIONS: ConnectOptions = ConnectOptions {
        stamp: StampMode::Kernel,
        timeout: Length::from_secs(60),
        tls: None,
        http: HttpVersion::One,
        greeting: Length::from_secs(60),
    };

    fn target(addrs: Vec<SocketAddr>) -> Target {
        Target {
            tls: false,
            host: "localhost".to_owned(),
            port: 80,
            addrs,
            dns: None,
        }
    }

    /// An address at which nothing listens any more.
    async fn nobody() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        listener.local_addr().expect("an address")
    }

    async fn open(target: Target) -> Result<Connection<RunClock>, ConnectError> {
        connect(&target, &OPTIONS, &RunClock::start(), &Wake::never()).await
    }

    #[tokio::test]
    async fn a_refusal_is_the_servers_and_names_the_address() {
        let addr = nobody().await;
        let error = open(target(vec![addr])).await.expect_err("nobody listens");
        let kind = (error.phase, error.timeout, error.local_resource);
        assert_eq!(kind, (Phase::Connect, false, false));
        assert!(error.text.contains(&addr.to_string()), "{}", error.text);
    }

    #[tokio::test]
    async fn the_next_address_is_tried_after_a_refusal() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let opened = open(target(vec![nobody().await, addr])).await;
        let opened = opened.expect("a connection").opened;
        assert_eq!((opened.peer, opened.tls), (Some(addr), None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_handshake_ends_at_its_limit() {
        let (stream, _silent) = tokio::io::duplex(4_096);
        let target = target(Vec::new());
        let config =
            tls::client_config(&tls::TlsOptions::default(), HttpVersion::One).expect("no file");
        let options = ConnectOptions {
            tls: Some(config),
            ..OPTIONS
        };
        let began = tokio::time::Instant::now();
        let shaking = shake_hands(stream, &target, &options);
        let error = within(Length::from_secs(5), Phase::Tls, &target, shaking).await;
        let error = error.map(|_| ()).expect_err("nobody answers");
        assert_eq!((error.phase, error.timeout), (Phase::Tls, true));
        assert_eq!(Length::from(began.elapsed()), Length::from_secs(5));
    }

    #[test]
    fn what_this_machine_is_short_of_is_not_the_servers_fault() {
        let check = |errno: Errno, local: bool| {
            let error = io::Error::from_raw_os_error(errno as i32);
            let error = ConnectError::from_io(Phase::Connect, &error, "cannot".to_owned());
            assert_eq!(error.local_resource, local, "{errno}");
        };
        check(Errno::EMFILE, true);
        check(Errno::EADDRNOTAVAIL, true);
        check(Errno::ENOBUFS, true);
        check(Errno::ECONNREFUSED, false);
        check(Errno::EHOSTUNREACH, false);
    }
}
