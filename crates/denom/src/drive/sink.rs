//! Owns the hand-over from the network to the decoder, and what the first head of a run means.

use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName};
use measure::decode::{Decoder, Progress};
use measure::stamp::Stamp;

use super::gate::Gate;
use crate::net::Sink;

/// The header in which some servers declare their own time to the first token.
const DECLARED_TTFT: HeaderName = HeaderName::from_static("fireworks-server-time-to-first-token");

/// Gives what arrives to the decoder. The first request's opens the gate for the others.
pub(super) struct Taker<'a> {
    pub decoder: Decoder,
    pub gate: Option<&'a Gate>,
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
        let page = kind.is_some_and(|kind| {
            kind.trim_start()
                .to_ascii_lowercase()
                .starts_with("text/html")
        });
        let refused = matches!(status, 400 | 401 | 403 | 404 | 422);
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
}
