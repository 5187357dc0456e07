//! Owns the targets of the three framings: each against the naive reading of the whole body, and
//! each the same however the body is cut, within limits and where a limit is met.

use measure::frames::{Frames, Limits, TooLong, json_array, ndjson, sse};

use crate::{Seen, naive, pieces, whole_string};

type Read = (Vec<Seen>, Result<(), TooLong>);

fn read<'p>(mut parser: Frames, pieces: impl IntoIterator<Item = &'p [u8]>) -> Read {
    let mut seen = Vec::new();
    for piece in pieces {
        if let Err(refused) = parser.feed(piece, |item| seen.extend(Seen::of(item))) {
            return (seen, Err(refused));
        }
    }
    let ended = parser.finish(|item| seen.extend(Seen::of(item)));
    (seen, ended)
}

/// The first byte decides the cuts and whether limits are small enough to be met.
fn check(data: &[u8], parser: fn(Limits) -> Frames, naive: fn(&[u8]) -> Vec<Seen>) {
    let Some((seed, body)) = data.split_first() else {
        return;
    };
    let (limits, is_small) = match seed % 4 {
        0 => (
            Limits {
                line: 24,
                event: 16,
            },
            true,
        ),
        _ => (Limits::default(), false),
    };
    let whole = read(parser(limits), [body]);
    let cut = match seed % 3 {
        0 => read(parser(limits), body.chunks(1)),
        _ => read(parser(limits), pieces(*seed, body)),
    };
    assert_eq!(cut, whole, "cuts change nothing");
    if !is_small {
        assert_eq!(whole, (naive(body), Ok(())), "the naive reading");
    }
}

/// Server-sent events.
pub fn sse(data: &[u8]) {
    check(
        data,
        |limits| Frames::Sse(sse::Parser::new(limits)),
        whole_string::read,
    );
}

/// Lines of JSON.
pub fn ndjson(data: &[u8]) {
    check(
        data,
        |limits| Frames::Ndjson(ndjson::Parser::new(limits)),
        naive::ndjson,
    );
}

/// One JSON array.
pub fn json_array(data: &[u8]) {
    check(
        data,
        |limits| Frames::Array(json_array::Parser::new(limits)),
        naive::array,
    );
}
