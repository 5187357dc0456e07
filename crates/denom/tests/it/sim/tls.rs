//! The simulated server under TLS, in order and in each way that is not.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use denom::sim::server::{Config, Running, Server};
use denom::sim::tls::{Certificate, Tls};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{PATIENCE, stream};

type Secured = StreamOwned<ClientConnection, TcpStream>;

fn server(certificate: Certificate, close_notify: bool) -> (Running, Secured) {
    server_offered(&[], certificate, close_notify)
}

/// The same for a client that offers these protocols.
fn server_offered(
    protocols: &[&str],
    certificate: Certificate,
    close_notify: bool,
) -> (Running, Secured) {
    let tls = Tls::new(certificate, close_notify).expect("a certificate");
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(tls.pem().as_bytes()).expect("it is PEM");
    roots.add(root).expect("it can be trusted");
    let config = Config {
        tls: Some(tls),
        ..Config::default()
    };
    let server = Server::start(&config).expect("a free loopback port");
    assert!(server.url().starts_with("https://127.0.0.1:"));
    let mut client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().into())
        .collect();
    let name = ServerName::try_from("127.0.0.1").expect("an address is a name");
    let session = ClientConnection::new(Arc::new(client), name).expect("a session");
    let socket = TcpStream::connect(server.addr()).expect("the server listens");
    socket
        .set_read_timeout(Some(PATIENCE))
        .expect("it is legal");
    (server, StreamOwned::new(session, socket))
}

/// All that comes for a stream of `tokens` after which the connection closes.
fn answered(secured: &mut Secured, model: &str, tokens: u64) -> (io::Result<usize>, Vec<u8>) {
    let body = stream(model, tokens);
    let length = body.len();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nconnection: close\r\ncontent-length";
    let request = format!("{head}: {length}\r\n\r\n{body}");
    let mut answer = Vec::new();
    let read = secured
        .write_all(request.as_bytes())
        .and_then(|()| secured.read_to_end(&mut answer));
    (read, answer)
}

#[test]
fn a_stream_comes_whole_and_ends_in_order() {
    let (_server, mut secured) = server(Certificate::Valid, true);
    let (read, answer) = answered(&mut secured, "normal", 3);
    assert_eq!(read.ok(), Some(answer.len()));
    assert!(answer.ends_with(b"data: [DONE]\n\n\r\n0\r\n\r\n"));
}

/// More than any buffer holds: the server waits for its reader, and loses nothing.
#[test]
fn a_long_answer_comes_whole() {
    let (_server, mut secured) = server(Certificate::Valid, true);
    let (read, answer) = answered(&mut secured, "null", 30_000);
    assert!(read.is_ok_and(|bytes| bytes > 4 << 20));
    assert!(answer.ends_with(b"data: [DONE]\n\n\r\n0\r\n\r\n"));
}

#[test]
fn an_end_without_tls_own_end_is_seen() {
    let (_server, mut secured) = server(Certificate::Valid, false);
    let (read, answer) = answered(&mut secured, "closes", 3);
    let kind = read.map_err(|error| error.kind());
    assert_eq!(kind, Err(ErrorKind::UnexpectedEof));
    assert!(answer.ends_with(b"data: [DONE]\n\n"));
}

/// The server takes HTTP/2 where it is offered, and speaks first what it allows.
#[test]
fn a_client_that_offers_http2_gets_it() {
    for (offered, agreed) in [
        (vec!["h2", "http/1.1"], Some("h2")),
        (vec!["http/1.1"], Some("http/1.1")),
        (vec![], None),
    ] {
        let (_server, mut secured) = server_offered(&offered, Certificate::Valid, true);
        if agreed != Some("h2") {
            let (read, answer) = answered(&mut secured, "normal", 3);
            assert!(read.is_ok() && answer.ends_with(b"0\r\n\r\n"), "{agreed:?}");
        } else {
            let greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
            secured.write_all(greeting).expect("the server reads");
            let mut head = [0; 15];
            secured.read_exact(&mut head).expect("settings");
            // At most one stream at a time.
            assert_eq!((head[3], &head[9..]), (4, &[0, 3, 0, 0, 0, 1][..]));
        }
        let chosen = secured.conn.alpn_protocol();
        assert_eq!(chosen, agreed.map(str::as_bytes));
    }
}

#[test]
fn a_bad_certificate_is_one() {
    for (certificate, reason) in [
        (Certificate::Expired, "expired"),
        (Certificate::WrongHost, "not valid for name"),
    ] {
        let (_server, mut secured) = server(certificate, true);
        let (read, _) = answered(&mut secured, "normal", 3);
        let error = read.expect_err("it must not be trusted").to_string();
        assert!(error.contains(reason), "{error}");
    }
}
