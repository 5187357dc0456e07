//! Owns what a path says of itself in the head of an answer, and what that suggests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rows::Middle;
use super::sample::Sample;
use super::slope::median;
use super::verdict::Kind;

/// Names of the headers that say something of the path, in lower case.
pub const NAMES: [&str; 14] = [
    "cache-control",
    "cf-ray",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "server",
    "transfer-encoding",
    "vary",
    "via",
    "x-accel-buffering",
    "x-amz-cf-id",
    "x-cache",
    "x-envoy-upstream-service-time",
];

/// The head of one answer, as far as it says something of the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The answer's HTTP version, such as `1.1`.
    pub http: String,
    /// Headers of [`NAMES`], each at most 200 bytes, without secrets.
    pub headers: BTreeMap<String, String>,
    /// The answer's text began with a tag that opens reasoning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reasoning_inside: bool,
}

impl Head {
    fn get(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    fn names(&self, header: &str, word: &str) -> bool {
        self.get(header)
            .is_some_and(|value| value.to_ascii_lowercase().contains(word))
    }
}

/// One thing that a path says of itself, and what it suggests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Said {
    /// What it is about: a header's name, or a part of the exchange.
    pub what: &'static str,
    /// As it was seen; where answers differ, the commonest.
    pub value: String,
    /// What it suggests.
    pub suggests: &'static str,
}

/// The heads of answers, where they were noted.
pub fn heads(samples: &[Sample]) -> Vec<Head> {
    let noted = samples
        .iter()
        .filter_map(|s| s.judged.trace.path.as_deref());
    noted.cloned().collect()
}

/// What the heads and samples of one path say, in a fixed order.
pub fn said(heads: &[Head], samples: &[Sample]) -> Vec<Said> {
    let mut all = Vec::new();
    let mut say = |what, value: Option<String>, suggests| {
        all.extend(value.map(|value| Said {
            what,
            value,
            suggests,
        }));
    };
    let http = commonest(heads.iter().map(|head| Some(head.http.as_str())));
    let said_version = http.as_deref().map_or("", version);
    // There a frame ends a body, and no header has to say how.
    let has_streams = http.as_deref() == Some("2");
    say("HTTP version", http, said_version);
    let of = |name: &'static str| commonest(heads.iter().map(move |head| head.get(name)));
    let encoding = of("content-encoding");
    let coded = encoding.as_deref().map_or("", coding);
    say("Content-Encoding", encoding, coded);
    let length = of("content-length");
    say(
        "Transfer-Encoding",
        of("transfer-encoding"),
        "the body comes in chunks of unknown length, as a stream should",
    );
    say(
        "Content-Length",
        length,
        "the length was known before the body was sent, so something had the whole of it",
    );
    let unframed = of("transfer-encoding").is_none() && of("content-length").is_none();
    if unframed && !has_streams && !heads.is_empty() {
        say(
            "body ends",
            Some("with the connection".into()),
            "a hop speaks HTTP/1.0, where only the close ends a body: no connection can be kept",
        );
    }
    say(
        "X-Accel-Buffering",
        of("x-accel-buffering"),
        "the server asks nginx not to hold the answer back; nginx drops this header where it obeys it, so no nginx did so last",
    );
    say(
        "Via",
        of("via"),
        "these hops stood between, and each may hold the answer back",
    );
    let server = of("server");
    let hop = server.as_deref().map_or("", server_name);
    say("Server", server, hop);
    say("X-Cache", of("x-cache"), "a cache stood between");
    let reused = samples
        .iter()
        .filter(|s| s.judged.trace.connection.reused)
        .count();
    let reuse = format!("{reused} of {} requests", samples.len());
    let kept = match reused {
        0 => "each answer closes its connection, so each request pays for a new one",
        _ => "connections are kept, so opening one is in no time here",
    };
    say(
        "connection reused",
        (!samples.is_empty()).then_some(reuse),
        kept,
    );
    all.extend(head_and_content(samples));
    all.extend(role_apart(samples));
    all
}

fn commonest<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for value in values.flatten() {
        *counts.entry(value).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count)?;
    Some(most.0.to_owned())
}

fn version(http: &str) -> &'static str {
    match http {
        "1.0" | "0.9" => "no chunks and no kept connections: the last hop speaks the old protocol",
        _ => "it can carry a stream",
    }
}

fn coding(value: &str) -> &'static str {
    match value.eq_ignore_ascii_case("identity") {
        true => "nothing is compressed",
        false => {
            "something compresses the stream, and a compressor holds content back until it has a block of it"
        }
    }
}

fn server_name(value: &str) -> &'static str {
    let value = value.to_ascii_lowercase();
    let known = [
        (
            "nginx",
            "nginx buffers an answer unless told otherwise: proxy_buffering",
        ),
        (
            "openresty",
            "nginx buffers an answer unless told otherwise: proxy_buffering",
        ),
        (
            "envoy",
            "Envoy streams unless a buffer or compressor filter stands in its chain",
        ),
        (
            "cloudflare",
            "Cloudflare may compress a stream unless Cache-Control says no-transform",
        ),
        ("varnish", "Varnish streams unless do_stream is false"),
        (
            "apache",
            "Apache streams unless mod_deflate or mod_buffer stands between",
        ),
        ("caddy", "Caddy streams event streams"),
        (
            "uvicorn",
            "a Python server: middleware in it that reads whole bodies would hold them back",
        ),
        (
            "gunicorn",
            "a Python server: synchronous workers and middleware may hold answers back",
        ),
        ("llama.cpp", "the model server itself"),
    ];
    let found = known.iter().find(|(name, _)| value.contains(name));
    found.map_or("the last hop's name, or the server's own", |(_, text)| text)
}

/// Time to the head against time to the first content.
fn head_and_content(samples: &[Sample]) -> Option<Said> {
    let heads = samples
        .iter()
        .filter_map(|s| Some(s.head?.as_secs_f64()))
        .collect();
    let firsts = samples.iter().map(|s| s.first.as_secs_f64()).collect();
    let (head, first) = (Middle::of(heads)?.median, Middle::of(firsts)?.median);
    let early = head < 0.5 * first && first - head > 0.02;
    Some(Said {
        what: "head against first content",
        value: format!(
            "head after {}, first content after {}",
            seconds(head),
            seconds(first)
        ),
        suggests: match early {
            true => {
                "the head comes by itself, before there is content: a time to first byte would be no time to first token"
            }
            false => "the head waits for the first content",
        },
    })
}

fn seconds(value: f64) -> String {
    crate::time::Length::from_nanos((value * 1e9) as u64).to_string()
}

/// Whether an event without content comes before the first content, and by how much.
fn role_apart(samples: &[Sample]) -> Option<Said> {
    let mut ahead: Vec<f64> = samples
        .iter()
        .filter(|sample| !sample.whole)
        .filter_map(|sample| {
            let trace = &sample.judged.trace;
            let ahead = trace.first_content?.since_or_zero(trace.first_event?);
            Some(ahead.as_secs_f64())
        })
        .collect();
    ahead.sort_by(f64::total_cmp);
    let middle = median(&ahead)?;
    let (value, suggests) = match middle > 0.000_2 {
        true => (
            format!("yes, {} before it", seconds(middle)),
            "an event without content comes first: a tool that counts it would report too early a first token",
        ),
        false => ("no".to_owned(), "nothing comes before the first content"),
    };
    Some(Said {
        what: "event before first content",
        value,
        suggests,
    })
}

/// What to change, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The product.
    pub at: &'static str,
    /// Its setting.
    pub set: &'static str,
}

/// What may be changed on a path of this kind; first where the path names what stands in it.
pub fn changes(kind: Kind, heads: &[Head]) -> Vec<Change> {
    let compressed = heads.iter().any(|head| {
        head.get("content-encoding")
            .is_some_and(|value| !value.eq_ignore_ascii_case("identity"))
    });
    let mut all: Vec<Change> = match kind {
        Kind::Streams | Kind::CannotTell => Vec::new(),
        Kind::BundlesByTime => BY_TIME.to_vec(),
        Kind::Buffers | Kind::BundlesBySize if compressed => COMPRESSED.to_vec(),
        Kind::Buffers | Kind::BundlesBySize => HELD.to_vec(),
    };
    let is_named = |change: &Change| {
        let word = change
            .at
            .split(' ')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        heads
            .iter()
            .any(|head| head.names("server", &word) || head.names("via", &word))
    };
    // A stable sort: named ones first, the rest as they stand.
    all.sort_by_key(|change| !is_named(change));
    all
}

const HELD: [Change; 8] = [
    Change {
        at: "nginx",
        set: "proxy_buffering off; (or the server sends X-Accel-Buffering: no), with proxy_http_version 1.1; on every hop",
    },
    Change {
        at: "Varnish",
        set: "set beresp.do_stream = true; in vcl_backend_response",
    },
    Change {
        at: "Envoy (and Istio)",
        set: "take envoy.filters.http.buffer out of the chain for this route; ext_proc with response_body_mode STREAMED, not BUFFERED",
    },
    Change {
        at: "HAProxy",
        set: "option http-no-delay; it holds whole answers only where a filter or Lua action waits for the body",
    },
    Change {
        at: "Traefik",
        set: "take the buffering middleware off the router",
    },
    Change {
        at: "AWS API Gateway",
        set: "responseTransferMode STREAM on the integration; a Lambda behind it with InvokeMode RESPONSE_STREAM",
    },
    Change {
        at: "Azure API Management",
        set: "<forward-request buffer-response=\"false\" />, and no validate-content policy on the route",
    },
    Change {
        at: "Cloudflare",
        set: "Cache-Control: no-cache, no-transform from the server; no Worker that reads the whole body",
    },
];

const COMPRESSED: [Change; 5] = [
    Change {
        at: "nginx",
        set: "gzip off; for this location, or take text/event-stream out of gzip_types (brotli_types)",
    },
    Change {
        at: "Envoy (and Istio)",
        set: "take text/event-stream out of the compressor filter's content_type",
    },
    Change {
        at: "HAProxy",
        set: "take text/event-stream out of compression type",
    },
    Change {
        at: "Apache",
        set: "SetEnv no-gzip 1 for this location",
    },
    Change {
        at: "Cloudflare",
        set: "Cache-Control: no-transform from the server, or a compression rule that leaves the route out",
    },
];

const BY_TIME: [Change; 4] = [
    Change {
        at: "HAProxy",
        set: "option http-no-delay in the frontend and the backend: without it small writes wait for more",
    },
    Change {
        at: "nginx",
        set: "tcp_nodelay on; tcp_nopush off; proxy_buffering off;",
    },
    Change {
        at: "Envoy (and Istio)",
        set: "a shorter flush interval of the compressor or ext_proc filter; none of them on this route is best",
    },
    Change {
        at: "the model server",
        set: "TCP_NODELAY on its sockets; one token a step (vLLM --num-scheduler-steps 1, SGLang --stream-interval 1)",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn said_of(http: &str, headers: &[(&str, &str)]) -> Vec<&'static str> {
        let given = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let head = Head {
            http: http.to_owned(),
            headers: headers.iter().map(given).collect(),
            reasoning_inside: false,
        };
        let said = said(&[head], &[]);
        said.iter().map(|said| said.what).collect()
    }

    #[test]
    fn a_body_of_http_2_needs_no_header_to_end() {
        let ends = |http, headers: &[(&str, &str)]| said_of(http, headers).contains(&"body ends");
        assert!(ends("1.0", &[]));
        assert!(!ends("1.1", &[("transfer-encoding", "chunked")]));
        assert!(!ends("2", &[]));
    }
}
