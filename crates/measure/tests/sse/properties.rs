//! Owns what holds for any bytes at all: cuts change nothing, and the naive reading agrees.

use measure::frames::Limits;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{cut, naive, read, read_all};

/// Bodies made of the parts that matter to the rules, of noise, or of both.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        12 => select(PARTS).prop_map(<[u8]>::to_vec),
        2 => proptest::collection::vec(any::<u8>(), 0..6),
        1 => "[ -~é語😀]{0,12}".prop_map(String::into_bytes),
    ];
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

const PARTS: &[&[u8]] = &[
    b"\n",
    b"\n",
    b"\n\n",
    b"\r",
    b"\r\r",
    b"\r\n",
    b"\r\n\r\n",
    b"\n\r",
    b":",
    b": ",
    b" ",
    b"\0",
    b"data",
    b"data:",
    b"data: ",
    b"\ndata:",
    b"event",
    b"event:",
    b"event: a",
    b"error",
    b"error:",
    b"error: {}",
    b"id: 1",
    b"retry: 9",
    b"Data:",
    b"\xEF\xBB\xBF",
    b"\xEF",
    b"\xBB",
    b"[DONE]",
    b"{\"n\":1}",
];

/// Where to cut a body of this length, in order; the same place twice gives an empty piece.
fn places(cuts: &[Index], length: usize) -> Vec<usize> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(length + 1)).collect();
    places.sort_unstable();
    places
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn cuts_change_nothing(body in body(), cuts in proptest::collection::vec(any::<Index>(), 0..12)) {
        let whole = read_all([&body[..]]);
        let pieces = cut(&body, &places(&cuts, body.len()));
        prop_assert_eq!(&read_all(pieces), &whole);
        prop_assert_eq!(&read_all(body.chunks(1)), &whole);
    }

    #[test]
    fn cuts_change_nothing_where_a_limit_is_met(
        body in body(),
        cuts in proptest::collection::vec(any::<Index>(), 0..12),
        line in 0_usize..24,
        event in 0_usize..24,
    ) {
        let limits = Limits { line, event };
        let whole = read(limits, [&body[..]]);
        let pieces = cut(&body, &places(&cuts, body.len()));
        prop_assert_eq!(&read(limits, pieces), &whole);
        prop_assert_eq!(&read(limits, body.chunks(1)), &whole);
    }

    #[test]
    fn the_naive_reading_agrees(body in body()) {
        prop_assert_eq!(read_all([&body[..]]), naive::read(&body));
    }

    #[test]
    fn a_bad_byte_spoils_one_event_at_most(
        before in "[a-z]{0,9}", bad in 0x80_u8.., after in "[a-z]{0,9}",
    ) {
        let events = |middle: &[u8]| {
            let body = [b"data: ", before.as_bytes(), b"\n\ndata: ", middle, b"\n\ndata: ",
                after.as_bytes(), b"\n\n"].concat();
            read_all([&body[..]])
        };
        let (spoilt, sound) = (events(&[b'x', bad]), events(b"x"));
        prop_assert_eq!(spoilt.len(), 3);
        prop_assert_eq!((&spoilt[0], &spoilt[2]), (&sound[0], &sound[2]));
    }
}
