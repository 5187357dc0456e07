//! Owns what holds for the two JSON framings and any bytes: cuts change nothing, the naive reading
//! agrees, and on valid input serde_json finds the same values.

use measure::frames::{Frames, Limits, TooLong, json_array, ndjson};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;

use super::{Seen, naive};

fn read<'p>(
    mut parser: Frames,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> (Vec<Seen>, Result<(), TooLong>) {
    let mut seen = Vec::new();
    for piece in pieces {
        if let Err(refused) = parser.feed(piece, |item| seen.extend(Seen::of(item))) {
            return (seen, Err(refused));
        }
    }
    let ended = parser.finish(|item| seen.extend(Seen::of(item)));
    (seen, ended)
}

fn lines(limits: Limits) -> Frames {
    Frames::Ndjson(ndjson::Parser::new(limits))
}

fn array(limits: Limits) -> Frames {
    Frames::Array(json_array::Parser::new(limits))
}

const PARTS: &[&[u8]] = &[
    b"{",
    b"}",
    b"{}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"\\\"",
    b"\"}\"",
    b",",
    b":",
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"\x0c",
    b"1",
    b"{\"a\":1}",
    b"\xEF\xBB\xBF",
    b"\xE2\x80\xA8",
    b"\xFF",
    b"\0",
];

fn body() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        12 => select(PARTS).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
}

/// Objects with text that holds brackets, quotes and separators of lines.
fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~é😀\u{2028}\u{85}\\n\\r\"\\\\{}\\[\\]]{0,12}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z\"{]{0,3}", inner, 0..4).prop_map(|members| {
                members
                    .into_iter()
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            }),
        ]
    });
    proptest::collection::btree_map("[a-z]{1,3}", value, 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// The values that a parser hands out, each whole.
fn values(seen: Vec<Seen>) -> Vec<Value> {
    let each = seen.into_iter().filter_map(|item| match item {
        Seen::Event {
            data,
            terminated: true,
            ..
        } => Some(serde_json::from_slice(&data).expect("an event is JSON")),
        Seen::End => None,
        other => panic!("{other:?}"),
    });
    each.collect()
}

fn pieces<'b>(body: &'b [u8], cuts: &[Index]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut found: Vec<&[u8]> = Vec::new();
    for place in places.into_iter().chain([body.len()]) {
        found.push(&body[from..place]);
        from = place;
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn cuts_change_nothing_and_the_naive_reading_agrees(
        body in body(),
        cuts in proptest::collection::vec(any::<Index>(), 0..8),
        small in 0_usize..24,
    ) {
        let naive: [(fn(Limits) -> Frames, fn(&[u8]) -> Vec<Seen>); 2] =
            [(lines, naive::ndjson), (array, naive::array)];
        for (parser, naive) in naive {
            let whole = read(parser(Limits::default()), [&body[..]]);
            prop_assert_eq!(&whole, &(naive(&body), Ok(())));
            for limits in [Limits::default(), Limits { line: small, event: small }] {
                let whole = read(parser(limits), [&body[..]]);
                prop_assert_eq!(&read(parser(limits), pieces(&body, &cuts)), &whole);
                prop_assert_eq!(&read(parser(limits), body.chunks(1)), &whole);
            }
        }
    }

    #[test]
    fn serde_json_finds_the_same_values(
        objects in proptest::collection::vec(object(), 0..6),
        pretty in any::<bool>(),
        cuts in proptest::collection::vec(any::<Index>(), 0..8),
    ) {
        let mut body: String = objects.iter().map(|object| format!("{object}\r\n")).collect();
        body.truncate(body.trim_end().len());
        let theirs: Vec<Value> = serde_json::Deserializer::from_str(&body)
            .into_iter()
            .collect::<Result<_, _>>()
            .expect("valid");
        let (seen, _) = read(lines(Limits::default()), pieces(body.as_bytes(), &cuts));
        prop_assert_eq!(&values(seen), &theirs);

        let body = match pretty {
            true => serde_json::to_string_pretty(&objects).expect("writes"),
            false => serde_json::to_string(&objects).expect("writes"),
        };
        let theirs: Vec<Value> = serde_json::from_str(&body).expect("valid");
        let (seen, _) = read(array(Limits::default()), pieces(body.as_bytes(), &cuts));
        prop_assert_eq!(seen.last(), Some(&Seen::End));
        prop_assert_eq!(&values(seen), &theirs);
    }
}
