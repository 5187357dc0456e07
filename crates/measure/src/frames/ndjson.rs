//! Owns the reading of NDJSON: pieces of a body in, one event a line out, however the bytes were cut.

use std::mem;

use memchr::memchr;
use serde::de::IgnoredAny;

use super::limits::within;
use super::{Item, Limits, Part, TooLong};

/// Reads one body of JSON objects, each ended by a line feed.
///
/// Only a line feed ends a line: a CR, or a line separator of Unicode inside a string, does not.
/// Blank lines are no events.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// A byte order mark is data from the first line's end on.
    started: bool,
}

impl Parser {
    /// A parser at the start of a body.
    pub fn new(limits: Limits) -> Self {
        Parser {
            limits,
            line: Vec::new(),
            started: false,
        }
    }

    /// Reads the next piece of the body and hands each line it completes to `on`, in order.
    ///
    /// # Errors
    /// A line is over its limit; the parser is then fit only to be dropped.
    pub fn feed<F: FnMut(Item<'_>)>(&mut self, piece: &[u8], mut on: F) -> Result<(), TooLong> {
        let mut rest = piece;
        while let Some(end) = memchr(b'\n', rest) {
            let (head, next) = (&rest[..end], &rest[end + 1..]);
            if self.line.is_empty() {
                within(head.len(), Part::Line, self.limits.line)?;
                self.hand_out(head, |_| true, &mut on);
            } else {
                self.keep(head)?;
                let mut line = mem::take(&mut self.line);
                self.hand_out(&line, |_| true, &mut on);
                line.clear();
                line.shrink_to(super::KEPT);
                self.line = line;
            }
            rest = next;
        }
        self.keep(rest)
    }

    /// The body is over. A last line without its line feed is whole if it is JSON.
    pub fn finish<F: FnMut(Item<'_>)>(&mut self, mut on: F) {
        let line = mem::take(&mut self.line);
        let is_whole = |data: &[u8]| serde_json::from_slice::<IgnoredAny>(data).is_ok();
        self.hand_out(&line, is_whole, &mut on);
        *self = Parser::new(self.limits);
    }

    fn hand_out<F: FnMut(Item<'_>)>(
        &mut self,
        line: &[u8],
        is_whole: impl Fn(&[u8]) -> bool,
        on: &mut F,
    ) {
        let mut line = line;
        if !mem::replace(&mut self.started, true) {
            line = line.strip_prefix(super::BYTE_ORDER_MARK).unwrap_or(line);
        }
        let data = line.trim_ascii();
        if !data.is_empty() {
            on(Item::Event {
                name: b"",
                data,
                terminated: is_whole(data),
            });
        }
    }

    fn keep(&mut self, more: &[u8]) -> Result<(), TooLong> {
        within(self.line.len() + more.len(), Part::Line, self.limits.line)?;
        self.line.extend_from_slice(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8], pieces: &[usize]) -> Vec<(String, bool)> {
        let mut parser = Parser::new(Limits::default());
        let mut found = Vec::new();
        let mut take = |item: Item<'_>| match item {
            Item::Event {
                data, terminated, ..
            } => found.push((String::from_utf8_lossy(data).into_owned(), terminated)),
            other => panic!("{other:?}"),
        };
        let mut from = 0;
        for to in pieces.iter().copied().chain([body.len()]) {
            parser.feed(&body[from..to], &mut take).expect("short");
            from = to;
        }
        parser.finish(&mut take);
        found
    }

    #[test]
    fn only_a_line_feed_ends_a_line_at_every_cut() {
        let body = "{\"a\":1}\r\n\n  \n{\"b\":\"\u{2028}\u{85}\"}\n{\"c\":2}".as_bytes();
        let expected = vec![
            ("{\"a\":1}".to_owned(), true),
            ("{\"b\":\"\u{2028}\u{85}\"}".to_owned(), true),
            ("{\"c\":2}".to_owned(), true),
        ];
        for cut in 0..=body.len() {
            assert_eq!(read(body, &[cut]), expected, "{cut}");
        }
    }

    #[test]
    fn a_last_line_cut_off_is_not_terminated() {
        assert_eq!(read(b"{\"a\":", &[]), vec![("{\"a\":".to_owned(), false)]);
        assert_eq!(read(b"", &[]), vec![]);
    }

    #[test]
    fn what_stands_around_a_last_line_does_not_cut_it_off() {
        let whole = vec![("{}".to_owned(), true)];
        assert_eq!(read(b"\xEF\xBB\xBF{}", &[2]), whole);
        assert_eq!(read(b"{}\x0c", &[]), whole);
    }

    #[test]
    fn a_line_over_its_limit_is_refused() {
        let mut parser = Parser::new(Limits { line: 8, event: 8 });
        assert!(parser.feed(b"12345678\n", |_| {}).is_ok());
        assert!(parser.feed(b"1234", |_| {}).is_ok());
        assert!(parser.feed(b"56789", |_| {}).is_err());
    }
}
