//! Owns the reading of a JSON array as it grows: pieces of a body in, one event an element out.

use std::mem;

use super::depth::Depth;
use super::limits::within;
use super::{Item, Limits, Part, TooLong};

/// Reads one body that is a JSON array of objects, handing out each with the byte that ends it.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    place: Place,
    depth: Depth,
    /// The element whose end has not come yet.
    element: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The opening bracket has not come.
    Before,
    /// Behind the opening bracket.
    Opened,
    /// Behind an element.
    Behind,
    /// Behind the comma that follows an element.
    Comma,
    /// Inside an element.
    Inside,
    /// Behind the closing bracket.
    After,
    /// A stray byte came: nothing more can be read.
    Lost,
}

impl Parser {
    /// A parser at the start of a body.
    pub fn new(limits: Limits) -> Self {
        Parser {
            limits,
            place: Place::Before,
            depth: Depth::default(),
            element: Vec::new(),
        }
    }

    /// Reads the next piece of the body and hands each item it completes to `on`, in order.
    ///
    /// # Errors
    /// An element is over its limit; the parser is then fit only to be dropped.
    pub fn feed<F: FnMut(Item<'_>)>(&mut self, piece: &[u8], mut on: F) -> Result<(), TooLong> {
        let mut rest = piece;
        while !rest.is_empty() {
            rest = match self.place {
                Place::Inside => self.inside(rest, &mut on)?,
                Place::Lost => return Ok(()),
                _ => self.outside(rest, &mut on),
            };
        }
        Ok(())
    }

    /// The body is over. An array without its closing bracket hands out no [`Item::End`].
    pub fn finish<F: FnMut(Item<'_>)>(&mut self, mut on: F) {
        if self.place == Place::Inside {
            on(Item::Event {
                name: b"",
                data: &self.element,
                terminated: false,
            });
        }
        *self = Parser::new(self.limits);
    }

    fn inside<'p, F: FnMut(Item<'_>)>(
        &mut self,
        rest: &'p [u8],
        on: &mut F,
    ) -> Result<&'p [u8], TooLong> {
        let end = rest.iter().position(|byte| {
            self.depth.step(*byte);
            self.depth.is_outside()
        });
        let Some(end) = end else {
            self.keep(rest)?;
            return Ok(&[]);
        };
        self.keep(&rest[..=end])?;
        let mut element = mem::take(&mut self.element);
        on(Item::Event {
            name: b"",
            data: &element,
            terminated: true,
        });
        element.clear();
        element.shrink_to(super::KEPT);
        self.element = element;
        self.place = Place::Behind;
        Ok(&rest[end + 1..])
    }

    fn outside<'p, F: FnMut(Item<'_>)>(&mut self, rest: &'p [u8], on: &mut F) -> &'p [u8] {
        match (self.place, rest[0]) {
            (_, b' ' | b'\t' | b'\r' | b'\n') => {}
            (Place::Before, b'[') => self.place = Place::Opened,
            (Place::Behind, b',') => self.place = Place::Comma,
            (Place::Opened | Place::Comma, b'{') => {
                self.place = Place::Inside;
                self.depth = Depth::default();
                return rest;
            }
            (Place::Opened | Place::Behind, b']') => {
                self.place = Place::After;
                on(Item::End);
            }
            _ => {
                self.place = Place::Lost;
                on(Item::Stray(&rest[..1]));
            }
        }
        &rest[1..]
    }

    fn keep(&mut self, more: &[u8]) -> Result<(), TooLong> {
        let whole = self.element.len() + more.len();
        within(whole, Part::Event, self.limits.event)?;
        self.element.extend_from_slice(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8], cut: usize) -> Vec<String> {
        let mut parser = Parser::new(Limits::default());
        let mut found = Vec::new();
        let mut take = |item: Item<'_>| {
            found.push(match item {
                Item::Event {
                    data, terminated, ..
                } => format!("{} {terminated}", String::from_utf8_lossy(data)),
                other => format!("{other:?}"),
            });
        };
        parser.feed(&body[..cut], &mut take).expect("short");
        parser.feed(&body[cut..], &mut take).expect("short");
        parser.finish(&mut take);
        found
    }

    #[test]
    fn elements_come_whole_at_every_cut_and_brackets_in_strings_are_text() {
        let body = br#" [{"a":"}]\"{"}
,
{"b":[1,{}]}]
"#;
        for cut in 0..=body.len() {
            assert_eq!(
                read(body, cut),
                [r#"{"a":"}]\"{"} true"#, r#"{"b":[1,{}]} true"#, "End"],
                "{cut}"
            );
        }
    }

    #[test]
    fn an_array_cut_off_has_no_end_and_strays_are_told() {
        assert_eq!(
            read(b"[{\"a\":1},{\"b\"", 5),
            [r#"{"a":1} true"#, r#"{"b" false"#]
        );
        assert_eq!(read(b"[]x", 1), ["End", "Stray([120])"]);
        assert_eq!(read(b"[1]", 1), ["Stray([49])"]);
        assert_eq!(read(b"[,{}]", 1), ["Stray([44])"]);
        for (body, stray) in [("[{}{}]", 123), ("[{},,{}]", 44), ("[{},]", 93)] {
            let expected = ["{} true".to_owned(), format!("Stray([{stray}])")];
            assert_eq!(read(body.as_bytes(), 3), expected, "{body}");
        }
    }

    #[test]
    fn an_element_over_its_limit_is_refused() {
        let mut parser = Parser::new(Limits { line: 8, event: 8 });
        assert!(parser.feed(b"[{\"a\":10}", |_| {}).is_ok());
        assert!(parser.feed(b",{\"a\":100}", |_| {}).is_err());
    }
}
