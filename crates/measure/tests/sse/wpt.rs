//! Owns the vectors of the web platform tests for event sources: what each of their files asks of
//! a parser, in bytes of our own. `format-mime-*` asks something of a decoder: see `conformance`.

use measure::frames::Item;

use super::vectors::{Vector, event, named, open};

/// The files whose subject is the stream's format, by name.
pub const VECTORS: &[Vector] = &[
    (
        "format-bom: one mark is dropped",
        b"\xEF\xBB\xBFdata:one\n\ndata:two\n\n",
        &[event(b"one"), event(b"two")],
    ),
    (
        "format-bom-2: of two marks the second spoils its field's name",
        b"\xEF\xBB\xBF\xEF\xBB\xBFdata:one\n\ndata:two\n\ndata:three\n\n",
        &[event(b"two"), event(b"three")],
    ),
    (
        "format-comments: anywhere, of any length, with any line end",
        b"data:p\r:\0\n:\r\ndata:q\n:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\rdata:r\n:data:no\r:xxxxxxxx\ndata:s\n\n",
        &[
            Item::Comment,
            Item::Comment,
            Item::Comment,
            Item::Comment,
            Item::Comment,
            event(b"p\nq\nr\ns"),
        ],
    ),
    (
        "format-data-before-final-empty-line: nothing without its blank line",
        b"retry:1000\ndata:one\n\nid:x\ndata:two",
        &[event(b"one"), open(b"", b"two")],
    ),
    (
        "format-field-data: with and without a colon, empty, twice",
        b"data:\n\ndata\ndata\n\ndata:one\n\n",
        &[event(b""), event(b"\n"), event(b"one")],
    ),
    (
        "format-field-event: names one event only",
        b"event:greeting\ndata:x\n\ndata:x\n\n",
        &[named(b"greeting", b"x"), event(b"x")],
    ),
    (
        "format-field-event-empty: an empty name is none",
        b"event: \ndata:x\n\n",
        &[event(b"x")],
    ),
    (
        "field-name-event: a name beside data in any order",
        b"data:1\nevent: tick\n\nevent: tick\ndata: 2\n\n",
        &[named(b"tick", b"1"), named(b"tick", b"2")],
    ),
    (
        "format-field-id: belongs to no event's data",
        b"id: 1\ndata:x\n\ndata:y\n\n",
        &[event(b"x"), event(b"y")],
    ),
    (
        "format-field-id-2: stands, moves and is taken back without a trace in the data",
        b"data:x\nid:1\n\ndata:x\n\ndata:x\nid\n\n",
        &[event(b"x"), event(b"x"), event(b"x")],
    ),
    (
        "format-field-id-3: an empty one likewise, with and without a colon",
        b"id\ndata:x\n\nid:\ndata:y\n\n",
        &[event(b"x"), event(b"y")],
    ),
    (
        "format-field-id-null: one with a NUL is ignored and the event is not",
        b"data:x\nid:1\x00\xE2\x80\xA6\n\ndata:y\n\n",
        &[event(b"x"), event(b"y")],
    ),
    (
        "format-field-parsing: a NUL, a space or a case more is another name",
        b"data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\ndata:4\n\n",
        &[event(b"\0\n 2\n1\n3\n\n4")],
    ),
    (
        "format-field-retry: a time is no data",
        b"retry:03000\ndata:x\n\n",
        &[event(b"x")],
    ),
    (
        "format-field-retry-bogus: neither is what is no time",
        b"retry:3000\nretry:1000x\ndata:x\n\n",
        &[event(b"x")],
    ),
    (
        "format-field-retry-empty: nor nothing",
        b"retry\ndata:test\n\n",
        &[event(b"test")],
    ),
    (
        "format-field-unknown: fields of no meaning change nothing",
        b"data:a\n data:b\ndata\nfoo:bar\njust text\ndata:c\n\n",
        &[event(b"a\n\nc")],
    ),
    (
        "format-leading-space: one space is dropped, a tab is not",
        b"data:\ta\rdata: b\ndata:  c\r\n\n",
        &[event(b"\ta\nb\n c")],
    ),
    (
        "format-newlines: all three line ends, mixed",
        b"data:a\r\ndata\ndata:b\r\n\r",
        &[event(b"a\n\nb")],
    ),
    (
        "format-null-character: is data",
        b"data:\0\n\n\n\n",
        &[event(b"\0")],
    ),
    (
        "format-utf-8: bytes beyond ASCII come through as they are",
        b"data:\xC3\xBCber ok\xE2\x80\xA6\n\ndata:\xF0\x9F\x98\x80\n\n",
        &[
            event(b"\xC3\xBCber ok\xE2\x80\xA6"),
            event(b"\xF0\x9F\x98\x80"),
        ],
    ),
    (
        "event-data: single lines, several, empty ones, and a last without its end",
        b"data:one\n\ndata:one\ndata:two\n\n:c\n\ndata\n\ndata:end\n",
        &[
            event(b"one"),
            event(b"one\ntwo"),
            Item::Comment,
            event(b""),
            open(b"", b"end"),
        ],
    ),
    (
        "eventsource-onmessage: the plain case",
        b"data: data\n\n",
        &[event(b"data")],
    ),
    (
        "eventsource-close: what comes before the end of the body counts",
        b"data:1\n\ndata:2\n\n",
        &[event(b"1"), event(b"2")],
    ),
    (
        "eventsource-reconnect: a time and an id alone are no event",
        b"retry:2\nid:7\n\ndata:opened\n\n",
        &[event(b"opened")],
    ),
    (
        "eventsource-request-cancellation: a body cut in a field",
        b"data:1\n\nda",
        &[event(b"1")],
    ),
    (
        "eventsource-from-readable-stream: several events in one piece",
        b"id:1\ndata:a\n\nid:2\ndata:b\n\nid:3\nevent:e\ndata:c\n\n",
        &[event(b"a"), event(b"b"), named(b"e", b"c")],
    ),
];

/// The specification's own examples, which the files grew out of.
pub const EXAMPLES: &[Vector] = &[
    (
        "three data lines are one event",
        b"data: left\ndata: +7\ndata: 31\n\n",
        &[event(b"left\n+7\n31")],
    ),
    (
        "four blocks: a comment, data with an id, an empty id, a last without its end",
        b": first\n\ndata: one\nid: 1\n\ndata:two\nid\n\ndata:  three",
        &[
            Item::Comment,
            event(b"one"),
            event(b"two"),
            open(b"", b" three"),
        ],
    ),
    (
        "data alone is an event, twice is one with a line feed, and the last is not dispatched",
        b"data\n\ndata\ndata\n\ndata:",
        &[event(b""), event(b"\n"), open(b"", b"")],
    ),
    (
        "the space behind the colon makes no difference",
        b"data:test\n\ndata: test\n\n",
        &[event(b"test"), event(b"test")],
    ),
    (
        "kinds of event by name",
        b"event: add\ndata: 41\n\nevent: remove\ndata: 42\n\nevent: add\ndata: 43\n\n",
        &[
            named(b"add", b"41"),
            named(b"remove", b"42"),
            named(b"add", b"43"),
        ],
    ),
    (
        "keep-alive comments every while",
        b":\n\n:\r\n\r\n:\r\r",
        &[Item::Comment, Item::Comment, Item::Comment],
    ),
];
