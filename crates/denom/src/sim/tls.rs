//! Owns the server's TLS: a certificate of its own making, and a session on a socket that never blocks.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use mio::net::TcpStream;
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection};

/// What is to be said of the certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    /// It names `localhost`, 127.0.0.1 and ::1, and is in date.
    Valid,
    /// It ran out in 2020.
    Expired,
    /// It names another host.
    WrongHost,
}

/// TLS for one server, with a new key and a certificate signed by it.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    pem: String,
    close_notify: bool,
}

/// One session.
pub struct Session {
    socket: TcpStream,
    tls: ServerConnection,
    close_notify: bool,
}

impl Tls {
    /// TLS with such a certificate; without `close_notify`, connections end as if they were cut.
    pub fn new(certificate: Certificate, close_notify: bool) -> Result<Self, String> {
        let failed = |what: &str, error: &dyn std::error::Error| format!("no {what}: {error}");
        let key = KeyPair::generate().map_err(|error| failed("key", &error))?;
        let signed = params(certificate)
            .and_then(|params| params.self_signed(&key))
            .map_err(|error| failed("certificate", &error))?;
        let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map(|builder| builder.with_no_client_auth())
            .and_then(|builder| builder.with_single_cert(vec![signed.der().clone()], secret))
            .map_err(|error| failed("TLS", &error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls {
            config: Arc::new(config),
            pem: signed.pem(),
            close_notify,
        })
    }

    /// The certificate, which a client must trust, as PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A session on a socket that was just accepted.
    pub fn session(&self, socket: TcpStream) -> io::Result<Session> {
        let tls = ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
        Ok(Session {
            socket,
            tls,
            close_notify: self.close_notify,
        })
    }
}

fn params(certificate: Certificate) -> Result<CertificateParams, rcgen::Error> {
    let names: &[&str] = match certificate {
        Certificate::Valid | Certificate::Expired => &["localhost", "127.0.0.1", "::1"],
        Certificate::WrongHost => &["elsewhere.invalid"],
    };
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, "a simulated server");
    if certificate == Certificate::Expired {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    }
    Ok(params)
}

impl Session {
    /// The socket below.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Says that nothing more comes, unless that is to be left out.
    pub fn finish(&mut self) {
        if self.close_notify {
            self.tls.send_close_notify();
            // The connection closes now; what does not go out at once never will.
            let _ = self.send();
        }
    }

    /// Sends all records that wait.
    fn send(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            if self.tls.write_tls(&mut self.socket)? == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Takes in what the socket has; the end of the socket is an end of the session.
    fn receive(&mut self) -> io::Result<()> {
        if self.tls.read_tls(&mut self.socket)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let taken = self.tls.process_new_packets();
        // The handshake's answers, or the alert that says what was wrong.
        match self.send() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        taken.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(())
    }
}

impl Read for Session {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(out) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.receive()?,
                read => return read,
            }
        }
    }
}

/// What was written has left for the socket once a flush succeeds.
impl Write for Session {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send()?;
        self.tls.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}
