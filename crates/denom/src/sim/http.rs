//! Owns a request, and HTTP/1.1 as the server speaks it: requests out of bytes, response heads and
//! chunks into them.

use std::io::Write;
use std::ops::Range;

use super::framed::Wrapping;
use super::replies;
use super::script::Script;

/// The longest request head, in bytes.
const HEAD_LIMIT: usize = 64 * 1024;
/// The longest request body, in bytes.
pub const BODY_LIMIT: usize = 16 * 1024 * 1024;
/// The most that one request can take, in bytes.
pub const REQUEST_LIMIT: usize = HEAD_LIMIT + BODY_LIMIT;
/// The most header fields of a request.
const FIELDS: usize = 128;
/// The longest request id that is kept, in bytes.
const ID_LIMIT: usize = 128;

/// Headers that carry a key as it is.
const KEY_FIELDS: [&str; 3] = ["x-api-key", "x-goog-api-key", "api-key"];

/// How a request came, and so how its answer must go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0, which knows no chunks.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2, on this stream.
    Http2 {
        /// The stream's number.
        stream: u32,
    },
}

/// One request, whole.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// The method as sent.
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// The query, without its question mark; empty if there is none.
    pub query: String,
    /// Whether the connection may serve another request.
    pub keep_alive: bool,
    /// How it came.
    pub version: Version,
    /// `x-request-id`, its first 128 bytes.
    pub id: Option<String>,
    /// The key: the bearer of `authorization`, or of the header in which an API carries it.
    pub key: Option<String>,
    /// `x-denom-model`, which names a model where an API has no way to.
    pub model: Option<String>,
    /// Whether the client speaks Anthropic's API: it sends `anthropic-version`.
    pub anthropic: bool,
    /// Whether the client speaks Gemini's API: it sends `x-goog-api-key` or `x-goog-api-client`.
    pub gemini: bool,
    /// Where the body stands among the bytes given.
    pub body: Range<usize>,
}

/// What bytes from a client are so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Not a whole request yet: look again when there are at least so many bytes.
    More(usize),
    /// A request; whatever stands behind its body belongs to the next one.
    Whole(Request),
    /// Nothing that can be answered otherwise: send this, then close.
    Refused(Script),
}

/// Reads one request from the front of `bytes`.
pub fn parse(bytes: &[u8]) -> Parsed {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_LIMIT => length,
        Ok(httparse::Status::Partial) if bytes.len() <= HEAD_LIMIT => {
            return Parsed::More(bytes.len() + 1);
        }
        Ok(_) => return refused(431, "the request head is over 65,536 bytes"),
        Err(error) => return refused(400, &format!("the request head is no HTTP/1.1: {error}")),
    };
    let field = |name: &str| text(head.headers, name);
    if field("transfer-encoding").is_some() {
        return refused(
            411,
            "a chunked request body is not read here: send content-length",
        );
    }
    let body = match field("content-length").map_or(Ok(0), |value| value.parse::<usize>()) {
        Ok(body) if body <= BODY_LIMIT => body,
        Ok(_) => return refused(413, "the request body is over 16 MiB"),
        Err(_) => return refused(400, "content-length is no number"),
    };
    if bytes.len() < length + body {
        return Parsed::More(length + body);
    }
    let version = match head.version {
        Some(1) => Version::Http11,
        _ => Version::Http10,
    };
    let (method, target) = (head.method, head.path);
    let request = request(
        method.unwrap_or_default(),
        target.unwrap_or_default(),
        field,
        version,
    );
    Parsed::Whole(Request {
        body: length..length + body,
        ..request
    })
}

/// The request of this method and target, `field` being the value of a field by its name. Its body
/// is yet to be found.
pub fn request<'a>(
    method: &str,
    target: &str,
    field: impl Fn(&str) -> Option<&'a str>,
    version: Version,
) -> Request {
    let says =
        |word: &str| field("connection").is_some_and(|value| value.eq_ignore_ascii_case(word));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let bearer = field("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let key = bearer.or_else(|| KEY_FIELDS.into_iter().find_map(&field));
    Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        keep_alive: match version {
            Version::Http10 => says("keep-alive"),
            Version::Http11 => !says("close"),
            Version::Http2 { .. } => true,
        },
        version,
        id: field("x-request-id").map(|id| id.chars().take(ID_LIMIT).collect()),
        key: key.map(str::to_owned),
        model: field("x-denom-model").map(str::to_owned),
        anthropic: field("anthropic-version").is_some(),
        gemini: field("x-goog-api-key")
            .or(field("x-goog-api-client"))
            .is_some(),
        body: 0..0,
    }
}

fn text<'a>(fields: &[httparse::Header<'a>], name: &str) -> Option<&'a str> {
    let field = fields
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case(name))?;
    str::from_utf8(field.value).ok()
}

fn refused(status: u16, message: &str) -> Parsed {
    Parsed::Refused(replies::error(
        status,
        message,
        "invalid_request_error",
        None,
    ))
}

/// Appends the response head of `script`, wrapped as said.
pub fn head(out: &mut Vec<u8>, script: &Script, wrapping: Wrapping, length: u64, keep: bool) {
    let mut line = |name: &str, value: &str| {
        for part in [name, ": ", value, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    };
    let status = script.status;
    line(
        &format!("HTTP/1.1 {status} {}\r\nserver", phrase(status)),
        "denom-sim",
    );
    for (name, value) in &script.headers {
        line(name, value);
    }
    match wrapping {
        Wrapping::Chunks => line("transfer-encoding", "chunked"),
        Wrapping::Stated => line("content-length", &length.to_string()),
        Wrapping::UntilClose | Wrapping::Frames(_) => {}
    }
    if !keep {
        line("connection", "close");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends `bytes` as one chunk.
pub fn chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{:x}\r\n", bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The chunk that ends a body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        307 => "Temporary Redirect",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        411 => "Length Required",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Unnamed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POST: &[u8] = b"POST /v1/x?y=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\
        X-Request-Id: r1\r\nAuthorization: Bearer k\r\n\r\nbodyGET ";

    #[test]
    fn a_request_is_whole_at_its_last_byte_and_not_before() {
        let whole = POST.len() - "GET ".len();
        for end in 0..whole {
            let parsed = parse(&POST[..end]);
            assert!(
                matches!(parsed, Parsed::More(more) if more > end && more <= whole),
                "{end}"
            );
        }
        let expected = Request {
            method: "POST".to_owned(),
            path: "/v1/x".to_owned(),
            query: "y=1".to_owned(),
            keep_alive: true,
            version: Version::Http11,
            id: Some("r1".to_owned()),
            key: Some("k".to_owned()),
            model: None,
            anthropic: false,
            gemini: false,
            body: whole - 4..whole,
        };
        assert_eq!(parse(POST), Parsed::Whole(expected));
    }

    #[test]
    fn the_connection_stays_open_as_version_and_header_say() {
        let kept = |line: &str, connection: &str| match parse(
            format!("GET / {line}\r\n{connection}\r\n").as_bytes(),
        ) {
            Parsed::Whole(request) => (request.keep_alive, request.version),
            other => panic!("{other:?}"),
        };
        assert_eq!(kept("HTTP/1.1", ""), (true, Version::Http11));
        assert_eq!(
            kept("HTTP/1.1", "Connection: close\r\n"),
            (false, Version::Http11)
        );
        assert_eq!(kept("HTTP/1.0", ""), (false, Version::Http10));
        assert_eq!(
            kept("HTTP/1.0", "connection: Keep-Alive\r\n"),
            (true, Version::Http10)
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_status() {
        let status = |bytes: &[u8]| match parse(bytes) {
            Parsed::Refused(script) => script.status,
            other => panic!("{other:?}"),
        };
        assert_eq!(status(b"\x16\x03\x01\x02\x00"), 400);
        assert_eq!(status(b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n"), 400);
        assert_eq!(
            status(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"),
            411
        );
        assert_eq!(
            status(b"POST / HTTP/1.1\r\ncontent-length: 16777217\r\n\r\n"),
            413
        );
        let mut long = b"GET / HTTP/1.1\r\na: ".to_vec();
        long.resize(HEAD_LIMIT + 1, b'a');
        assert_eq!(status(&long), 431);
    }
}
