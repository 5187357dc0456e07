//! Owns the proof that the event parser reads every stream by the rules, however it was cut.

mod naive;
mod oracles;
mod properties;
mod seen;
mod vectors;
mod wpt;

use measure::frames::{Limits, TooLong, sse::Parser};

use seen::Seen;

/// Everything a parser with these limits hands out when it is fed these pieces, and how it ended.
fn read<'p>(
    limits: Limits,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> (Vec<Seen>, Result<(), TooLong>) {
    let mut parser = Parser::new(limits);
    let mut seen = Vec::new();
    for piece in pieces {
        if let Err(refused) = parser.feed(piece, |item| seen.extend(Seen::of(item))) {
            return (seen, Err(refused));
        }
    }
    let ended = parser.finish(|item| seen.extend(Seen::of(item)));
    (seen, ended)
}

/// As `read`, with the default limits, which no test input here reaches.
fn read_all<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Vec<Seen> {
    let (seen, ended) = read(Limits::default(), pieces);
    assert_eq!(ended, Ok(()));
    seen
}

/// The bytes cut at these places, which must be sorted.
fn cut<'b>(bytes: &'b [u8], places: &[usize]) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for &place in places {
        pieces.push(&bytes[from..place]);
        from = place;
    }
    pieces.push(&bytes[from..]);
    pieces
}
