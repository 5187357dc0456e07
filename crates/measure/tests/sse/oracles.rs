//! Owns the comparison with two parsers that others wrote, on bodies all three must understand.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{Seen, cut, read_all};

/// Name and data of an event.
type Said = (String, String);

/// A body of valid UTF-8 with every field of the standard and every kind of line end. It ends in
/// a comment, because the others learn only from the byte after a CR that its line is over.
///
/// Left out, since the others differ there from the standard: `event` without a colon, which sseer
/// does not take for an empty name.
fn body() -> impl Strategy<Value = String> {
    let value = "(| |  |[ -~é語😀:\\t]{0,20})";
    let line = prop_oneof![
        6 => value.prop_map(|value| format!("data:{value}")),
        1 => Just("data".to_owned()),
        2 => "(event|id|error|other| data|Data):[ -~é]{0,9}",
        1 => "retry: ?[0-9a]{0,4}",
        1 => value.prop_map(|value| format!(":{value}")),
        3 => Just(String::new()),
    ];
    let ended = (line, select(&["\n", "\r", "\r\n"]));
    let lines = proptest::collection::vec(ended, 0..24);
    (any::<bool>(), lines).prop_map(|(mark, lines)| {
        let mut body = String::from(if mark { "\u{FEFF}" } else { "" });
        lines.iter().for_each(|(line, end)| {
            // A CR and a blank line that ends with LF would be read as one CRLF.
            let glued = line.is_empty() && body.ends_with('\r') && *end != "\r";
            body.push_str(line);
            body.push_str(if glued { "\r" } else { end });
        });
        body + ":\n"
    })
}

fn ours(pieces: &[&[u8]]) -> Vec<Said> {
    let text = |bytes| String::from_utf8(bytes).expect("the body is valid UTF-8");
    let said = |item| match item {
        Seen::Event {
            name,
            data,
            terminated: true,
        } => Some((text(name), text(data))),
        _ => None,
    };
    read_all(pieces.iter().copied())
        .into_iter()
        .filter_map(said)
        .collect()
}

fn sseer(pieces: &[&[u8]]) -> Vec<Said> {
    let pieces = pieces
        .iter()
        .map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece)));
    let events = sseer::EventStream::new(stream::iter(pieces)).map(|event| {
        let event = event.expect("valid input");
        let name = match &*event.event {
            "message" => String::new(),
            name => name.to_owned(),
        };
        (name, event.data.to_string())
    });
    events
        .collect()
        .now_or_never()
        .expect("nothing to wait for")
}

fn sse_stream(pieces: &[&[u8]]) -> Vec<Said> {
    let pieces = pieces
        .iter()
        .map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece)));
    let blocks = sse_stream::SseByteStream::new(stream::iter(pieces)).filter_map(|block| {
        let block = block.expect("valid input");
        let name = block.event.unwrap_or_default();
        std::future::ready(block.data.map(|data| (name, data)))
    });
    blocks
        .collect()
        .now_or_never()
        .expect("nothing to wait for")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn two_other_parsers_agree(
        body in body(),
        cuts in proptest::collection::vec(any::<Index>(), 0..8),
    ) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        places.sort_unstable();
        let pieces = cut(body.as_bytes(), &places);
        let ours = ours(&pieces);
        prop_assert_eq!(&ours, &sseer(&pieces), "sseer");
        prop_assert_eq!(&ours, &sse_stream(&pieces), "sse-stream");
    }
}
