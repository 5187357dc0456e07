//! Owns what an answer's head says of how its body ends, and what hyper's errors mean.

use std::error::Error;
use std::io;

use h2::Reason;
use hyper::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};

use super::exchange::{BodyEnd, Break, RequestError, RequestFault};
use super::http::Broke;
use super::io::READ_LIMIT;

/// How the end of a body is told from a break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// By its chunks or its stated length: a body that ends is whole.
    Delimited,
    /// By both at once: whole, but the connection is not to be trusted with another request.
    Ambiguous,
    /// By nothing but the end of the connection.
    UntilClose,
}

impl Framing {
    /// `sized`: hyper knows the length, from the header or because there can be no body.
    pub(super) fn of(headers: &HeaderMap, sized: bool) -> Self {
        let chunked = headers
            .get_all(TRANSFER_ENCODING)
            .iter()
            .next_back()
            .is_some_and(|value| last_coding_is_chunked(value.as_bytes()));
        match (chunked, sized) {
            (true, _) if headers.contains_key(CONTENT_LENGTH) => Framing::Ambiguous,
            (true, _) | (_, true) => Framing::Delimited,
            (false, false) => Framing::UntilClose,
        }
    }

    /// What a body so framed came to when it ended.
    pub(super) fn end(self) -> BodyEnd {
        match self {
            Framing::Delimited | Framing::Ambiguous => BodyEnd::Complete,
            Framing::UntilClose => BodyEnd::Closed,
        }
    }
}

fn last_coding_is_chunked(codings: &[u8]) -> bool {
    codings
        .rsplit(|&byte| byte == b',')
        .next()
        .is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

/// What broke a body off.
pub(super) fn broken(error: &Broke) -> BodyEnd {
    let how = match fault(error) {
        RequestFault::Reset | RequestFault::Refused => Break::Reset,
        RequestFault::Closed | RequestFault::Unprocessed => Break::Cut,
        RequestFault::NotHttp | RequestFault::HeadTooLarge => Break::Framing,
    };
    let text = match how {
        Break::Reset => match reason(error) {
            Some(reason) => format!("the server reset the stream inside the body ({reason:?})"),
            None => "the server reset the connection inside the body".to_owned(),
        },
        Break::Cut => "the server closed the connection before the end of the body".to_owned(),
        Break::Framing => format!("the body breaks HTTP's framing: {}", chain(error)),
    };
    BodyEnd::Broken { how, text }
}

/// Why there was no answer. `reused`: the connection had carried an exchange before; `bytes`: what
/// came on it since this one began.
pub(super) fn no_answer(error: &Broke, reused: bool, bytes: u64) -> RequestError {
    let fault = match fault(error) {
        RequestFault::NotHttp if bytes >= READ_LIMIT as u64 => RequestFault::HeadTooLarge,
        other => other,
    };
    let closed = matches!(fault, RequestFault::Closed | RequestFault::Reset);
    let text = match fault {
        RequestFault::Closed if bytes > 0 => {
            "the server closed the connection inside the response head".to_owned()
        }
        RequestFault::Closed => "the server closed the connection without an answer".to_owned(),
        RequestFault::Reset => match reason(error) {
            Some(reason) => format!("the server reset the stream before its answer ({reason:?})"),
            None => "the server reset the connection before its answer".to_owned(),
        },
        RequestFault::Refused => {
            "the server refused the stream and says that it did nothing of it (REFUSED_STREAM)"
                .to_owned()
        }
        RequestFault::Unprocessed => {
            "the server was closing the connection and says that it did nothing of the request (GOAWAY)"
                .to_owned()
        }
        RequestFault::HeadTooLarge => {
            format!("the response head is over {} KiB", READ_LIMIT / 1024)
        }
        RequestFault::NotHttp => {
            let version = match error {
                Broke::Two(_) => "HTTP/2",
                Broke::One(_) | Broke::Unsayable(_) => "HTTP/1.1",
            };
            format!("the answer is not {version}: {}", chain(error))
        }
    };
    RequestError {
        stale: fault == RequestFault::Unprocessed || closed && reused && bytes == 0,
        fault,
        text,
    }
}

fn fault(error: &Broke) -> RequestFault {
    match error {
        Broke::One(error) => match io_kind(error) {
            Some(io::ErrorKind::ConnectionReset) => RequestFault::Reset,
            Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => RequestFault::NotHttp,
            _ if error.is_parse() => RequestFault::NotHttp,
            _ => RequestFault::Closed,
        },
        Broke::Two(error) => fault_of_stream(error),
        Broke::Unsayable(_) => RequestFault::NotHttp,
    }
}

/// What broke a stream of HTTP/2.
fn fault_of_stream(error: &h2::Error) -> RequestFault {
    match error.get_io().map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionReset) => return RequestFault::Reset,
        Some(_) => return RequestFault::Closed,
        None => {}
    }
    let refused = error.reason() == Some(Reason::REFUSED_STREAM);
    let in_order = error.reason() == Some(Reason::NO_ERROR);
    match (error.is_remote(), error.is_reset(), error.is_go_away()) {
        (true, true, _) if refused => RequestFault::Refused,
        (true, true, _) => RequestFault::Reset,
        // A stream that the server still serves does not hear of an orderly goodbye.
        (true, _, true) if in_order => RequestFault::Unprocessed,
        (true, ..) => RequestFault::Closed,
        (false, ..) => RequestFault::NotHttp,
    }
}

/// Why the server ended a stream, as it says.
fn reason(error: &Broke) -> Option<Reason> {
    match error {
        Broke::Two(error) if error.is_remote() => error.reason(),
        _ => None,
    }
}

/// The kind of the system's or the decoder's error at the root of hyper's.
fn io_kind(error: &hyper::Error) -> Option<io::ErrorKind> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        cause = error.source();
    }
    None
}

/// The error and its causes in one line.
fn chain(error: &Broke) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn the_head_says_how_the_body_ends() {
        let check = |encodings: &[&'static str], length: bool, expect| {
            let mut headers = HeaderMap::new();
            for encoding in encodings {
                headers.append(TRANSFER_ENCODING, HeaderValue::from_static(encoding));
            }
            if length {
                headers.append(CONTENT_LENGTH, HeaderValue::from_static("5"));
            }
            let sized = length && encodings.is_empty();
            assert_eq!(Framing::of(&headers, sized), expect, "{encodings:?}");
        };
        check(&[], true, Framing::Delimited);
        check(&[], false, Framing::UntilClose);
        check(&["chunked"], false, Framing::Delimited);
        check(&["gzip, Chunked "], false, Framing::Delimited);
        check(&["gzip", "chunked"], false, Framing::Delimited);
        check(&["chunked", "gzip"], false, Framing::UntilClose);
        check(&["chunked"], true, Framing::Ambiguous);
    }
}
