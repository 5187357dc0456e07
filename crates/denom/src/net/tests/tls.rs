//! Owns the proof that TLS trusts whom it should, says in plain words why it does not, and tells a
//! cut stream from an ended one.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ClientConfig, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::*;
use crate::clock::RunClock;
use crate::net::connect::{ConnectError, ConnectOptions, Phase, StampMode, connect};
use crate::net::exchange::{BodyEnd, Break};
use crate::net::target::Target;
use crate::net::tls::{TlsOptions, client_config};

/// A certificate authority of a test's own.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Self {
        Authority::named("an authority for tests")
    }

    fn named(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        Authority { issuer }
    }

    /// A server whose certificate is for `name` and good today.
    pub(super) fn server(&self, name: &str) -> Arc<ServerConfig> {
        self.server_with(name, |_| ())
    }

    fn server_with(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key);
        Arc::new(config.expect("a server"))
    }

    /// A client that trusts this authority, by way of a file.
    pub(super) fn client(&self) -> Arc<ClientConfig> {
        static FILES: AtomicU32 = AtomicU32::new(0);
        let number = FILES.fetch_add(1, Relaxed);
        let name = format!("denom-test-ca-{}-{number}.pem", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, self.issuer.pem()).expect("a file");
        let options = TlsOptions {
            extra_ca: Some(path.clone()),
            insecure: false,
        };
        let config = client_config(&options, HttpVersion::One);
        fs::remove_file(path).expect("the file is there");
        config.expect("a good file")
    }
}

fn public_client() -> Arc<ClientConfig> {
    client_config(&TlsOptions::default(), HttpVersion::One).expect("no file to fail on")
}

/// Opens a connection as `host` to a server that does as `serve` says with a fresh TCP connection.
async fn open(
    host: &str,
    tls: Arc<ClientConfig>,
    serve: impl AsyncFnOnce(TcpStream),
) -> Result<Connection<RunClock>, ConnectError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let target = Target {
        tls: true,
        host: host.to_owned(),
        port: addr.port(),
        addrs: vec![addr],
        dns: None,
    };
    let options = ConnectOptions {
        stamp: StampMode::Kernel,
        timeout: Length::from_secs(60),
        tls: Some(tls),
        http: HttpVersion::One,
        greeting: Length::from_secs(60),
    };
    let (clock, wake) = (RunClock::start(), Wake::never());
    let serving = async {
        let (stream, _) = listener.accept().await.expect("a client");
        serve(stream).await;
    };
    let opening = connect(&target, &options, &clock, &wake);
    tokio::join!(opening, serving).0
}

/// Why a client would not talk to such a server.
async fn refused(host: &str, tls: Arc<ClientConfig>, server: Arc<ServerConfig>) -> String {
    let opened = open(host, tls, async |stream| {
        // It fails on this side too; the client's side is the one looked at.
        TlsAcceptor::from(server).accept(stream).await.err();
    });
    let error = opened.await.expect_err("no trust");
    assert_eq!(
        (error.phase, error.timeout, error.local_resource),
        (Phase::Tls, false, false)
    );
    error.text
}

#[tokio::test]
async fn a_certificate_that_is_no_good_is_refused_in_plain_words() {
    let authority = Authority::new();
    let check = async |host: &str, server, words: &[&str]| {
        let text = refused(host, authority.client(), server).await;
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let expired = authority.server_with("localhost", |params| {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    });
    check("localhost", expired, &["expired", "days ago", "localhost"]).await;
    let early = authority.server_with("localhost", |params| {
        params.not_before = date_time_ymd(4000, 1, 1);
    });
    check("localhost", early, &["not valid yet", "clock"]).await;
    let other = authority.server("other.example");
    check("localhost", other, &["another host", "other.example"]).await;
    let foreign = Authority::named("another authority").server("localhost");
    check("localhost", foreign, &["issuer unknown", "--cacert"]).await;
    let impostor = Authority::new().server("localhost");
    check("localhost", impostor, &["not signed by it", "--cacert"]).await;
}

#[tokio::test]
async fn a_server_without_tls_is_named_as_such() {
    let opened = open(
        "localhost",
        public_client(),
        async |mut stream: TcpStream| {
            write(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            stream.read_to_end(&mut Vec::new()).await.ok();
        },
    );
    let error = opened.await.expect_err("no TLS");
    assert!(
        error.text.contains("did not answer in TLS"),
        "{}",
        error.text
    );
    let opened = open("localhost", public_client(), async |stream| drop(stream));
    let error = opened.await.expect_err("no TLS");
    assert_eq!(error.phase, Phase::Tls);
    assert!(error.text.contains("TLS handshake"), "{}", error.text);
}

#[tokio::test]
async fn who_trusts_anyone_talks_to_a_stranger() {
    let options = TlsOptions {
        extra_ca: None,
        insecure: true,
    };
    let anyone = client_config(&options, HttpVersion::One).expect("no file to fail on");
    let stranger = TlsAcceptor::from(Authority::new().server("other.example"));
    let opened = open("localhost", anyone, async |stream| {
        stranger.accept(stream).await.expect("a handshake");
    });
    let connection = opened.await.expect("a connection");
    assert!(connection.opened.tls.is_some() && connection.opened.peer.is_some());
}

/// An exchange in which the server writes `answer` and then leaves as `leave` says.
async fn cut(answer: &str, leave: impl AsyncFnOnce(TlsStream<TcpStream>)) -> BodyEnd {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::from(authority.server("localhost"));
    let (give, take) = tokio::sync::oneshot::channel();
    let opened = open("localhost", authority.client(), async |stream| {
        give.send(acceptor.accept(stream).await.expect("a handshake"))
            .ok();
    });
    let mut connection = opened.await.expect("a connection");
    let mut stream = take.await.expect("a server");
    let mut seen = Seen::content();
    let serving = async {
        read_request(&mut stream).await;
        write(&mut stream, answer.as_bytes()).await;
        stream.flush().await.expect("the client is there");
        leave(stream).await;
    };
    let (limits, cancel) = (limits(), no_cancel());
    let exchange = connection.exchange(request("{}"), &limits, &mut seen, &cancel);
    let (exchanged, ()) = tokio::join!(exchange, serving);
    exchanged.end.expect("a head")
}

#[tokio::test]
async fn a_stream_that_ends_without_a_word_of_tls_is_cut() {
    let open_ended = "HTTP/1.1 200 OK\r\n\r\nab";
    let with_a_word = async |mut stream: TlsStream<TcpStream>| {
        stream.shutdown().await.expect("the client is there");
    };
    assert_eq!(cut(open_ended, with_a_word).await, BodyEnd::Closed);
    let without = async |stream: TlsStream<TcpStream>| drop(stream.into_inner().0);
    let end = cut(open_ended, without).await;
    assert!(
        matches!(
            end,
            BodyEnd::Broken {
                how: Break::Cut,
                ..
            }
        ),
        "{end:?}"
    );
}

#[test]
fn a_file_of_certificates_that_is_none_is_refused_by_name() {
    let check = |text: Option<&str>, word: &str| {
        let path = std::env::temp_dir().join(format!("denom-test-no-ca-{}", std::process::id()));
        if let Some(text) = text {
            fs::write(&path, text).expect("a file");
        }
        let options = TlsOptions {
            extra_ca: Some(path.clone()),
            insecure: false,
        };
        let error = client_config(&options, HttpVersion::One)
            .expect_err("no certificates")
            .to_string();
        if text.is_some() {
            fs::remove_file(&path).expect("the file is there");
        }
        assert!(
            error.contains(&*path.to_string_lossy()) && error.contains(word),
            "{error}"
        );
    };
    check(None, "No such file");
    check(Some("no PEM at all"), "no certificate");
    check(
        Some("-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n"),
        "PEM",
    );
}
