//! Owns the proof that every framing and every API reads any JSON and any bytes without a fall:
//! against naive readings, against serde_json, and over the kinds of JSON that trip parsers.

mod json;
mod mime;
mod naive;
mod regressions;
#[path = "../sse/seen.rs"]
mod seen;
mod splitters;

use std::sync::Arc;

use measure::api::{Api, Framing};
use measure::decode::{Decoder, Options};
use measure::judge::{Guards, Judged, judge};
use measure::scrub::Scrub;
use measure::stamp::{Stamp, StampSource};
use measure::time::{Instant, Length};
use measure::trace::{Trace, Transport};

use seen::Seen;

/// A stamp so many milliseconds into the run.
fn at(millis: u64) -> Stamp {
    Stamp {
        at: Instant::from_nanos(millis * 1_000_000),
        source: StampSource::Read,
        lag_low: None,
        lag_high: Length::ZERO,
        clamped: false,
    }
}

/// The trace of a body of this content type, in these pieces, all of one read.
fn traced<'p>(
    api: Api,
    content_type: Option<&str>,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Trace {
    let options = Options {
        api,
        keep_text: true,
        scrub: Arc::new(Scrub::default()),
    };
    let mut decoder = Decoder::new(options, Trace::begun(0, 0, 0, false, Instant::ORIGIN));
    decoder.head(at(1), 200, content_type, None);
    for piece in pieces {
        if decoder.data(at(2), piece).stop {
            break;
        }
    }
    decoder.close(Transport::Complete, None)
}

fn judged(api: Api, trace: Trace) -> Judged {
    judge(trace, &Guards::default(), api.has_sentinel())
}

/// Events framed as the API's streams are, with the content type that goes with it.
fn framed(api: Api, events: &[&str]) -> (Vec<u8>, &'static str) {
    let (before, after, content_type) = match api.dialect().framing {
        Framing::Ndjson => ("", "\n", "application/x-ndjson"),
        Framing::Sse | Framing::SseOrArray => ("data: ", "\n\n", "text/event-stream"),
    };
    let each = events.iter().map(|event| format!("{before}{event}{after}"));
    (each.collect::<String>().into_bytes(), content_type)
}
