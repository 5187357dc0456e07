//! Owns the hand-over from the network to the decoder, and what the first head of a run means.

use hyper::Uri;
use hyper::header::{
    CONTENT_ENCODING, CONTENT_TYPE, DATE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER,
};
use measure::decode::{Decoder, Progress};
use measure::stamp::Stamp;

use super::gate::Gate;
use super::holds::{Holds, retry_after};
use crate::clock::RunClock;
use crate::net::Sink;

/// The header in which some servers declare their own time to the first token.
const DECLARED_TTFT: HeaderName = HeaderName::from_static("fireworks-server-time-to-first-token");

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Gives what arrives to the decoder. The first request's opens the gate for the others.
pub(super) struct Taker<'a> {
    pub decoder: Decoder,
    pub gate: Option<&'a Gate>,
    /// What holds all requests back where a server asks for it, and the clock for its dates.
    pub pauses: Option<(&'a Holds, RunClock)>,
    /// The origin that a redirect names.
    pub moved: Option<String>,
    /// The status of gRPC in the trailers, where it is an error's: what translates from gRPC may
    /// pass it on behind a body that looks whole.
    pub failed: Option<String>,
}

impl Taker<'_> {
    /// One that gives to `decoder`, and does nothing else.
    pub(super) fn of(decoder: Decoder) -> Self {
        Taker {
            decoder,
            gate: None,
            pauses: None,
            moved: None,
            failed: None,
        }
    }
}

/// Scheme, host and port of an address; a path alone is on the same server.
fn origin(address: &str) -> String {
    let uri = address.parse::<Uri>().ok();
    let parts = uri
        .as_ref()
        .and_then(|uri| Some((uri.scheme_str()?, uri.host()?, uri.port())));
    match parts {
        Some((scheme, host, Some(port))) => format!("{scheme}://{host}:{port}"),
        Some((scheme, host, None)) => format!("{scheme}://{host}"),
        None if address.starts_with('/') && !address.starts_with("//") => {
            "another path of the same server".into()
        }
        None => "an address that cannot be read".into(),
    }
}

impl Sink for Taker<'_> {
    fn head(&mut self, stamp: Stamp, status: u16, headers: &HeaderMap) {
        let text = |name| {
            headers
                .get(name)
                .and_then(|value: &hyper::header::HeaderValue| value.to_str().ok())
        };
        let kind = text(CONTENT_TYPE);
        let encoding = text(CONTENT_ENCODING);
        self.decoder.head(stamp, status, kind, encoding);
        if let Some(seconds) = text(DECLARED_TTFT) {
            self.decoder.declare_first(seconds);
        }
        if let Some((holds, clock)) = self.pauses {
            let given = text(RETRY_AFTER);
            let now = clock.unix_at(stamp.at) / 1_000_000_000;
            let length = given.and_then(|given| retry_after(given, text(DATE), now));
            if status == 429 || (status == 503 && length.is_some()) {
                holds.pause(stamp.at, length);
            }
        }
        if (300..400).contains(&status) {
            self.moved = text(LOCATION).map(origin);
        }
        let page = kind.is_some_and(|kind| {
            kind.trim_start()
                .to_ascii_lowercase()
                .starts_with("text/html")
        });
        let refused = matches!(status, 400 | 401 | 403 | 404 | 422 | 503);
        if let Some(gate) = self.gate
            && !page
            && !refused
        {
            gate.open();
        }
    }

    fn data(&mut self, stamp: Stamp, bytes: &[u8]) -> Progress {
        self.decoder.data(stamp, bytes)
    }

    fn trailers(&mut self, headers: &HeaderMap) {
        let text = |name: &HeaderName| headers.get(name)?.to_str().ok();
        let status = text(&GRPC_STATUS).filter(|status| status.trim() != "0");
        self.failed = status.map(|status| {
            let said = text(&GRPC_MESSAGE).unwrap_or("no message");
            format!("the trailers say grpc-status {status}: {said}")
        });
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use measure::decode::Options;
    use measure::time::Instant;
    use measure::trace::Trace;

    use super::*;

    #[test]
    fn a_status_of_grpc_in_the_trailers_is_an_error_unless_it_is_none() {
        let failed = |fields: &[(&'static str, &'static str)]| {
            let options = Options {
                api: measure::api::Api::OpenaiChat,
                keep_text: false,
                scrub: std::sync::Arc::default(),
            };
            let trace = Trace::begun(0, 0, 0, false, Instant::ORIGIN);
            let mut taker = Taker::of(Decoder::new(options, trace));
            let field = |(name, value): &(&'static str, &'static str)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            };
            taker.trailers(&fields.iter().map(field).collect());
            taker.failed
        };
        assert_eq!(failed(&[("grpc-status", "0")]), None);
        assert_eq!(failed(&[("x-checksum", "1")]), None);
        let text = failed(&[("grpc-status", "13"), ("grpc-message", "engine died")]);
        let text = text.expect("an error");
        assert!(
            text.contains("13") && text.contains("engine died"),
            "{text}"
        );
    }

    #[test]
    fn of_a_redirect_only_the_origin_is_kept() {
        for (address, expected) in [
            ("https://h.example/a?key=secret", "https://h.example"),
            ("http://user:secret@h:81/x", "http://h:81"),
            ("/v2/chat?key=secret", "another path of the same server"),
            ("//h/x", "an address that cannot be read"),
            ("a b secret", "an address that cannot be read"),
        ] {
            assert_eq!(origin(address), expected, "{address}");
        }
    }
}
