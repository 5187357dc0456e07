//! Owns one small body per rule, each read at every cut.

use measure::frames::{Item, Limits, Part, TooLong};

use super::{Seen, cut, read, read_all};

pub const fn event(data: &'static [u8]) -> Item<'static> {
    named(b"", data)
}

pub const fn named(name: &'static [u8], data: &'static [u8]) -> Item<'static> {
    Item::Event {
        name,
        data,
        terminated: true,
    }
}

pub const fn open(name: &'static [u8], data: &'static [u8]) -> Item<'static> {
    Item::Event {
        name,
        data,
        terminated: false,
    }
}

const fn error(value: &'static [u8]) -> Item<'static> {
    Item::ErrorField(value)
}

/// What a body is about, the body, and what it says.
pub type Vector = (&'static str, &'static [u8], &'static [Item<'static>]);

const LINES: &[Vector] = &[
    ("nothing at all", b"", &[]),
    ("only blank lines", b"\n\r\n\r\r\n\n", &[]),
    ("LF", b"data: a\n\ndata: b\n\n", &[event(b"a"), event(b"b")]),
    (
        "CRLF",
        b"data: a\r\n\r\ndata: b\r\n\r\n",
        &[event(b"a"), event(b"b")],
    ),
    ("CR", b"data: a\r\rdata: b\r\r", &[event(b"a"), event(b"b")]),
    (
        "CR at the very end is a line end",
        b"data: a\n\r",
        &[event(b"a")],
    ),
    (
        "every kind of line end in one body",
        b"data: a\r\ndata: b\rdata: c\n\r\ndata: d\r\r\ndata: e\n\r",
        &[event(b"a\nb\nc"), event(b"d"), event(b"e")],
    ),
    (
        "LF then CR are two line ends",
        b"data: a\n\rdata: b\n\n",
        &[event(b"a"), event(b"b")],
    ),
    (
        "CR CRLF are two, so the LF belongs to the blank line",
        b"data: a\r\r\ndata: b\r\r\n",
        &[event(b"a"), event(b"b")],
    ),
    (
        "only one LF belongs to a CR",
        b"data: a\r\n\ndata: b\n\n",
        &[event(b"a"), event(b"b")],
    ),
    (
        "other separators of Unicode are data",
        "data: a\u{2028}b\u{85}c\x0bd\x0ce\n\n".as_bytes(),
        &[event("a\u{2028}b\u{85}c\x0bd\x0ce".as_bytes())],
    ),
];

const BYTE_ORDER_MARKS: &[Vector] = &[
    (
        "one is stripped",
        b"\xEF\xBB\xBFdata: a\n\n",
        &[event(b"a")],
    ),
    (
        "a second one makes the name of its field unknown",
        b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n",
        &[event(b"b")],
    ),
    (
        "a later one likewise",
        b"data: a\n\n\xEF\xBB\xBFdata: b\n\ndata: c\n\n",
        &[event(b"a"), event(b"c")],
    ),
    (
        "before a comment",
        b"\xEF\xBB\xBF:\ndata: a\n\n",
        &[Item::Comment, event(b"a")],
    ),
    (
        "before a blank line",
        b"\xEF\xBB\xBF\n\xEF\xBB\xBFdata: a\n\n",
        &[],
    ),
    ("nothing else", b"\xEF\xBB\xBF", &[]),
    (
        "a part of one is part of a name",
        b"\xEF\xBBdata: a\n\ndata: b\n\n",
        &[event(b"b")],
    ),
    (
        "in the data",
        b"data: \xEF\xBB\xBFa\n\n",
        &[event(b"\xEF\xBB\xBFa")],
    ),
];

const FIELDS: &[Vector] = &[
    (
        "no space after the colon",
        b"data:{\"n\":1}\n\n",
        &[event(b"{\"n\":1}")],
    ),
    (
        "one space is removed, not two",
        b"data:  a \n\n",
        &[event(b" a ")],
    ),
    ("a tab is not a space", b"data:\ta\n\n", &[event(b"\ta")]),
    (
        "the first colon splits",
        b"data: a: b:c\n\n",
        &[event(b"a: b:c")],
    ),
    (
        "data lines are joined",
        b"data: a\ndata\ndata:\ndata: b\n\n",
        &[event(b"a\n\n\nb")],
    ),
    (
        "data without a colon is an empty line",
        b"data\n\n",
        &[event(b"")],
    ),
    (
        "data with nothing behind the colon",
        b"data:\n\n",
        &[event(b"")],
    ),
    ("data with only the space", b"data: \n\n", &[event(b"")]),
    ("two empty data lines", b"data\ndata:\n\n", &[event(b"\n")]),
    (
        "names are exact",
        b" data: a\ndata : b\nData: c\ndatas: d\ndat: e\ndata\0: f\n\n",
        &[],
    ),
    (
        "id, retry and unknown fields leave the event as it is",
        b"id: 7\nretry: 10\ndata: a\nid\nfoo: bar\n{\"x\":1}\ndata: b\nretry: x\n\n",
        &[event(b"a\nb")],
    ),
    (
        "bytes that are no text stay as they are",
        b"data: \xFF\0\xC3\n\ndata: \xED\xA0\x80\n\ndata: b\n\n",
        &[event(b"\xFF\0\xC3"), event(b"\xED\xA0\x80"), event(b"b")],
    ),
    (
        "a name",
        b"event: ping\ndata: a\n\n",
        &[named(b"ping", b"a")],
    ),
    (
        "a name after the data",
        b"data: a\nevent:ping\n\n",
        &[named(b"ping", b"a")],
    ),
    (
        "the last name counts",
        b"event: a\nevent: b\ndata: c\n\n",
        &[named(b"b", b"c")],
    ),
    (
        "a name can be taken back",
        b"event: a\ndata: c\nevent\n\n",
        &[event(b"c")],
    ),
    (
        "a name is not inherited",
        b"event: a\ndata: b\n\ndata: c\n\n",
        &[named(b"a", b"b"), event(b"c")],
    ),
    (
        "a name without data is no event, and is forgotten",
        b"event: a\n\ndata: b\n\n",
        &[event(b"b")],
    ),
];

const COMMENTS_AND_ERRORS: &[Vector] = &[
    ("a bare colon", b":\n\n", &[Item::Comment]),
    (
        "keep-alives between events",
        b": ping\n\ndata: a\n\n:\r\n\r\n",
        &[Item::Comment, event(b"a"), Item::Comment],
    ),
    (
        "one inside an event leaves the event as it is",
        b"event: x\n: data: no\ndata: a\n:\ndata: b\n\n",
        &[Item::Comment, Item::Comment, named(b"x", b"a\nb")],
    ),
    (
        "an error field, and what follows it",
        b"data: a\n\nerror: {\"code\":500}\n\ndata: [DONE]\n\n",
        &[event(b"a"), error(b"{\"code\":500}"), event(b"[DONE]")],
    ),
    (
        "an error field inside an event does not disturb it",
        b"event: x\ndata: a\nerror:b\ndata: c\n\n",
        &[error(b"b"), named(b"x", b"a\nc")],
    ),
    (
        "an error field without a value",
        b"error\nerror:\n\n",
        &[error(b""), error(b"")],
    ),
    (
        "an error field is exact too",
        b"Error: a\nerrors: b\n error: c\n\n",
        &[],
    ),
    (
        "an event named error is an event",
        b"event: error\ndata: a\n\n",
        &[named(b"error", b"a")],
    ),
];

const ENDS: &[Vector] = &[
    (
        "an end mark without its blank line",
        b"data: a\n\ndata: [DONE]\n",
        &[event(b"a"), open(b"", b"[DONE]")],
    ),
    (
        "an end mark without its line end",
        b"data: [DONE]",
        &[open(b"", b"[DONE]")],
    ),
    (
        "an end mark and a CR",
        b"data: [DONE]\r",
        &[open(b"", b"[DONE]")],
    ),
    (
        "an event cut in its data",
        b"event: x\ndata: a\ndata: b",
        &[open(b"x", b"a\nb")],
    ),
    (
        "a name alone is nothing to hand out",
        b"data: a\n\nevent: x\n",
        &[event(b"a")],
    ),
    ("a field cut in its name", b"data: a\n\ndat", &[event(b"a")]),
    ("a comment without its line end", b": a", &[Item::Comment]),
    (
        "an error field without its line end",
        b"error: a",
        &[error(b"a")],
    ),
];

fn vectors() -> impl Iterator<Item = &'static Vector> {
    [
        LINES,
        BYTE_ORDER_MARKS,
        FIELDS,
        COMMENTS_AND_ERRORS,
        ENDS,
        super::wpt::VECTORS,
        super::wpt::EXAMPLES,
    ]
    .into_iter()
    .flatten()
}

#[test]
fn every_rule_holds_at_every_cut() {
    for (rule, body, items) in vectors() {
        let wanted: Vec<Seen> = items.iter().filter_map(|&item| Seen::of(item)).collect();
        assert_eq!(read_all([*body]), wanted, "{rule}: in one piece");
        assert_eq!(read_all(body.chunks(1)), wanted, "{rule}: byte by byte");
        for first in 0..=body.len() {
            for second in first..=body.len() {
                let pieces = cut(body, &[first, second]);
                assert_eq!(
                    read_all(pieces),
                    wanted,
                    "{rule}: cut at {first} and {second}"
                );
            }
        }
    }
}

#[test]
fn the_naive_reading_holds_the_rules_too() {
    for (rule, body, items) in vectors() {
        let wanted: Vec<Seen> = items.iter().filter_map(|&item| Seen::of(item)).collect();
        assert_eq!(super::naive::read(body), wanted, "{rule}");
    }
}

#[test]
fn an_event_comes_with_the_byte_that_completes_it() {
    let mut parser = measure::frames::sse::Parser::new(Limits::default());
    let mut count = |piece: &[u8]| {
        let mut items = 0;
        parser
            .feed(piece, |_| items += 1)
            .expect("within the limits");
        items
    };
    // The second CR is enough: whether an LF follows it changes nothing.
    let counts = [
        &b"data: a"[..],
        b"\r",
        b"\r",
        b"\n",
        b": b",
        b"\r",
        b"\nerror: c",
        b"\n",
    ]
    .map(&mut count);
    assert_eq!(counts, [0, 0, 1, 0, 0, 1, 0, 1]);
}

#[test]
fn after_the_end_a_parser_is_at_the_start() {
    let mut parser = measure::frames::sse::Parser::new(Limits::default());
    let mut seen: Vec<Seen> = Vec::new();
    for _ in 0..2 {
        let body = b"\xEF\xBB\xBFdata: a\n\nevent: x\ndata: b\ndata: c\r";
        parser
            .feed(body, |item| seen.extend(Seen::of(item)))
            .expect("within the limits");
        parser
            .finish(|item| seen.extend(Seen::of(item)))
            .expect("within the limits");
    }
    let once = [event(b"a"), open(b"x", b"b\nc")];
    let twice = once.iter().chain(&once).copied();
    assert_eq!(seen, twice.filter_map(Seen::of).collect::<Vec<_>>());
    parser
        .feed(b"\n\ndata: d\n\n", |item| seen.extend(Seen::of(item)))
        .expect("within the limits");
    assert_eq!(seen.len(), 5);
}

#[test]
fn limits_are_met_exactly() {
    let limits = Limits { line: 12, event: 6 };
    let over = |part, limit| Err(TooLong { part, limit });
    let ends: &[(&[u8], usize, Result<(), TooLong>)] = &[
        (b"event: abcde\ndata: a\n\n", 1, Ok(())),
        (b"event: abcdef\ndata: a\n\n", 0, over(Part::Line, 12)),
        (b"data: a\n\nevent: abcdef", 1, over(Part::Line, 12)),
        (b": a comment.\n", 1, Ok(())),
        (b": a comment..\n", 0, over(Part::Line, 12)),
        (b"data: abcdef\n\n", 1, Ok(())),
        (b"data:abcdefg\n\n", 0, over(Part::Event, 6)),
        (b"data: a\n\ndata:abcdefg", 1, over(Part::Event, 6)),
        (b"data:ab\ndata:cde\n\n", 1, Ok(())),
        (b"data:abc\ndata:def\n\n", 0, over(Part::Event, 6)),
        (b"data: a\n\ndata:abc\ndata:\ndata\ndata", 2, Ok(())),
        (b"data: a\n\ndata:abc\ndata:def", 1, over(Part::Event, 6)),
    ];
    for &(body, items, end) in ends {
        for first in 0..=body.len() {
            let (seen, ended) = read(limits, cut(body, &[first]));
            assert_eq!(
                (seen.len(), ended),
                (items, end),
                "{} cut at {first}",
                body.escape_ascii()
            );
        }
    }
}
