//! Owns TLS: whom a connection trusts, and in plain words why it did not.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::http::HttpVersion;

/// How many of a certificate's names a message lists.
const NAMES_SHOWN: usize = 4;
const SECONDS_A_DAY: u64 = 86_400;

/// Whom to trust beside the public authorities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A PEM file of certificates to trust as well.
    pub extra_ca: Option<PathBuf>,
    /// Trust anyone: the server's certificate is not looked at.
    pub insecure: bool,
}

/// The file of extra certificates is of no use.
#[derive(Debug)]
pub struct CaFileError {
    path: PathBuf,
    reason: String,
}

impl fmt::Display for CaFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot take certificates from {}: {}; it must be a PEM file with CERTIFICATE sections",
            self.path.display(),
            self.reason
        )
    }
}

impl std::error::Error for CaFileError {}

/// The TLS side of every connection of a run: TLS 1.2 or later, one version of HTTP only, trusting the
/// public authorities (as compiled in) and what `options` adds.
///
/// # Errors
/// When the file of extra certificates cannot be read, holds none, or holds a broken one.
pub fn client_config(
    options: &TlsOptions,
    http: HttpVersion,
) -> Result<Arc<ClientConfig>, CaFileError> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    if let Some(path) = &options.extra_ca {
        add_file(&mut roots, path)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of TLS 1.2 and 1.3");
    let mut config = if options.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustAnyone(provider)))
            .with_no_client_auth()
    } else {
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    config.alpn_protocols = vec![http.alpn().to_vec()];
    Ok(Arc::new(config))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), CaFileError> {
    let refuse = |reason: String| CaFileError {
        path: path.to_owned(),
        reason,
    };
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))?;
    let mut added = 0_usize;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| refuse(error.to_string()))?;
        added += 1;
    }
    if added == 0 {
        return Err(refuse("it holds no certificate".to_owned()));
    }
    Ok(())
}

/// Takes any certificate. Signatures are still checked, so that the peer holds the key it shows.
#[derive(Debug)]
struct TrustAnyone(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Why a TLS handshake with `host` failed and what to do about it, in plain words.
pub(super) fn reason(error: &io::Error, host: &str) -> String {
    let tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    match tls {
        Some(Error::InvalidCertificate(problem)) => certificate_reason(problem, host),
        Some(Error::InvalidMessage(_)) => {
            format!("{host} did not answer in TLS; if it speaks plain HTTP, use an http:// URL")
        }
        Some(Error::PeerIncompatible(problem)) => {
            format!("{host} offers no TLS 1.2 or later that denom can use: {problem:?}")
        }
        Some(Error::AlertReceived(alert)) => {
            format!("{host} refused the TLS handshake with the alert {alert:?}")
        }
        Some(other) => format!("the TLS handshake with {host} failed: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            format!("{host} closed the connection during the TLS handshake")
        }
        None => format!("the connection to {host} broke during the TLS handshake: {error}"),
    }
}

fn certificate_reason(problem: &CertificateError, host: &str) -> String {
    match problem {
        CertificateError::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / SECONDS_A_DAY;
            format!(
                "the certificate of {host} expired {days} days ago; renew it, check this machine's \
                 clock, or use --insecure"
            )
        }
        CertificateError::Expired => {
            format!("the certificate of {host} has expired; renew it, or use --insecure")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the certificate of {host} is not valid yet; check this machine's clock")
        }
        CertificateError::NotValidForName => {
            format!("the certificate of {host} is for another host; check the URL")
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names = match presented.as_slice() {
                [] => "no host at all".to_owned(),
                names => names[..names.len().min(NAMES_SHOWN)].join(", "),
            };
            format!("the certificate of {host} is for another host ({names}); check the URL")
        }
        CertificateError::UnknownIssuer => format!(
            "the certificate of {host} is from an issuer unknown here; give its authority with \
             --cacert, or use --insecure"
        ),
        CertificateError::BadSignature => format!(
            "the certificate of {host} names an authority known here but is not signed by it; give \
             the one that signed it with --cacert, or use --insecure"
        ),
        CertificateError::Revoked => format!("the certificate of {host} was revoked"),
        other => format!("the certificate of {host} is not acceptable: {other}"),
    }
}
