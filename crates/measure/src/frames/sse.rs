//! Owns the reading of server-sent events: pieces of a response body in, events out, however the bytes were cut.

use std::mem;

use memchr::{memchr, memchr2};

use super::depth::Depth;
use super::limits::within;
use super::{BYTE_ORDER_MARK, Item, KEPT, Limits, Part, TooLong};

/// Reads one response body as server-sent events, as the bytes come in.
///
/// The items depend on the bytes alone, never on how they were cut into pieces, and each is
/// handed out with the byte that completes it: a CR ends its line at once, without a look at
/// whether an LF follows. Retry times and event ids are left out, since a measured request is
/// never repeated.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    /// The first line is over: a byte order mark is data from now on.
    started: bool,
    /// The last byte was a CR: an LF that comes next belongs to it.
    after_cr: bool,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The name of the open event, as far as earlier pieces gave it.
    name: Vec<u8>,
    /// The data of the open event from earlier pieces, and whether there was a data line at all.
    data: Vec<u8>,
    has_data: bool,
    /// Lines of no field, from one that began like JSON on.
    loose: Loose,
}

/// Lines that belong to no field and began with a bracket: JSON that was never framed. Some
/// servers report a failed generation so. The lines mean nothing to the standard, and collecting
/// them changes nothing else.
#[derive(Debug, Default)]
struct Loose {
    text: Vec<u8>,
    depth: Depth,
}

/// The most of loose JSON that is kept: what is longer is no error object.
const LOOSE_LIMIT: usize = 64 * 1024;

impl Loose {
    /// Takes a line of no field; whether the JSON is whole with it.
    fn take(&mut self, line: &[u8]) -> bool {
        let begins = matches!(line.trim_ascii_start().first(), Some(b'{' | b'['));
        if self.text.is_empty() && !begins {
            return false;
        }
        if self.text.len() + line.len() >= LOOSE_LIMIT {
            *self = Loose::default();
            return false;
        }
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        line.iter().for_each(|byte| {
            self.depth.step(*byte);
        });
        self.depth.is_outside()
    }
}

/// What the piece at hand told about the open event. It is copied into the parser only where the
/// piece ends before the event does, or where data lines must be joined.
#[derive(Default)]
struct Held<'p> {
    name: Option<&'p [u8]>,
    /// The event's only data line: never set while the parser has data of its own.
    data: Option<&'p [u8]>,
}

impl Parser {
    /// A parser at the start of a body.
    pub fn new(limits: Limits) -> Self {
        Parser {
            limits,
            started: false,
            after_cr: false,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            loose: Loose::default(),
        }
    }

    /// Reads the next piece of the body and hands each item it completes to `on`, in order.
    ///
    /// # Errors
    /// A line or an event is over its limit. What was complete before it has been handed out; the
    /// parser has lost its place and is fit only to be dropped.
    pub fn feed<F: FnMut(Item<'_>)>(&mut self, piece: &[u8], mut on: F) -> Result<(), TooLong> {
        let mut rest = self.past_second_half_of_crlf(piece);
        let mut carried = Vec::new();
        let mut held = Held::default();
        if !self.line.is_empty() {
            let Some(end) = memchr2(b'\r', b'\n', rest) else {
                return self.keep_line(rest);
            };
            self.keep_line(&rest[..end])?;
            carried = mem::take(&mut self.line);
            rest = self.past_line_end(&rest[end..]);
            self.take_line(&carried, &mut held, &mut on)?;
        }
        while let Some(end) = memchr2(b'\r', b'\n', rest) {
            let line = &rest[..end];
            within(line.len(), Part::Line, self.limits.line)?;
            rest = self.past_line_end(&rest[end..]);
            self.take_line(line, &mut held, &mut on)?;
        }
        self.keep_event(held);
        if carried.capacity() > 0 {
            empty(&mut carried);
            self.line = carried;
        }
        self.keep_line(rest)
    }

    /// The body is over: hands out what is still open and is then at the start of a body again.
    ///
    /// A last line without a line end is read as a line, and an event without its blank line comes
    /// as not `terminated`.
    ///
    /// # Errors
    /// The last line brings its event over the limit; that event is not handed out.
    pub fn finish<F: FnMut(Item<'_>)>(&mut self, mut on: F) -> Result<(), TooLong> {
        let tail = mem::take(&mut self.line);
        let mut held = Held::default();
        let read = match tail.is_empty() {
            true => Ok(()),
            false => self.take_line(&tail, &mut held, &mut on),
        };
        if read.is_ok() {
            self.close_event(&mut held, false, &mut on);
        }
        if !self.loose.text.is_empty() {
            on(Item::Loose(&self.loose.text));
        }
        *self = Parser::new(self.limits);
        read
    }

    /// Reads one whole line, without its line end.
    fn take_line<'p, F: FnMut(Item<'_>)>(
        &mut self,
        line: &'p [u8],
        held: &mut Held<'p>,
        on: &mut F,
    ) -> Result<(), TooLong> {
        let mut line = line;
        if !self.started {
            self.started = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.close_event(held, true, on);
            return Ok(());
        }
        // Nearly every line that is not blank is one of these: no search for its colon.
        if let Some(value) = line.strip_prefix(b"data:") {
            return self.take_data(without_space(value), held);
        }
        let (name, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], without_space(&line[colon + 1..])),
            None => (line, &b""[..]),
        };
        match name {
            b"" => on(Item::Comment),
            b"data" => self.take_data(value, held)?,
            b"event" => held.name = Some(value),
            b"error" => on(Item::ErrorField(value)),
            b"id" | b"retry" => {}
            _ if is_page(line) => on(Item::Loose(line.trim_ascii_start())),
            _ => self.take_loose(line, on),
        }
        Ok(())
    }

    fn take_data<'p>(&mut self, value: &'p [u8], held: &mut Held<'p>) -> Result<(), TooLong> {
        if !self.has_data && held.data.is_none() {
            within(value.len(), Part::Event, self.limits.event)?;
            held.data = Some(value);
            return Ok(());
        }
        if let Some(first) = held.data.take() {
            self.keep_data(first);
        }
        let joined = self.data.len() + 1 + value.len();
        within(joined, Part::Event, self.limits.event)?;
        self.keep_data(value);
        Ok(())
    }

    fn take_loose<F: FnMut(Item<'_>)>(&mut self, line: &[u8], on: &mut F) {
        if self.loose.take(line) {
            on(Item::Loose(&self.loose.text));
            self.loose = Loose::default();
        }
    }

    /// Ends the open event: by its blank line, or by the end of the body.
    fn close_event<F: FnMut(Item<'_>)>(
        &mut self,
        held: &mut Held<'_>,
        terminated: bool,
        on: &mut F,
    ) {
        let name = held.name.take().unwrap_or(&self.name);
        let own = self.has_data.then_some(&self.data[..]);
        if let Some(data) = held.data.take().or(own) {
            on(Item::Event {
                name,
                data,
                terminated,
            });
        }
        empty(&mut self.name);
        empty(&mut self.data);
        self.has_data = false;
    }

    fn keep_event(&mut self, held: Held<'_>) {
        if let Some(name) = held.name {
            empty(&mut self.name);
            self.name.extend_from_slice(name);
        }
        if let Some(data) = held.data {
            self.keep_data(data);
        }
    }

    fn keep_data(&mut self, line: &[u8]) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(line);
    }

    fn keep_line(&mut self, more: &[u8]) -> Result<(), TooLong> {
        within(self.line.len() + more.len(), Part::Line, self.limits.line)?;
        self.line.extend_from_slice(more);
        Ok(())
    }

    fn past_second_half_of_crlf<'p>(&mut self, piece: &'p [u8]) -> &'p [u8] {
        match piece {
            [] => piece,
            _ if !mem::take(&mut self.after_cr) => piece,
            _ => piece.strip_prefix(b"\n").unwrap_or(piece),
        }
    }

    /// `rest` begins with the CR or LF that ends a line.
    fn past_line_end<'p>(&mut self, rest: &'p [u8]) -> &'p [u8] {
        self.after_cr = rest == b"\r";
        match rest {
            [b'\r', b'\n', next @ ..] | [_, next @ ..] => next,
            [] => rest,
        }
    }
}

/// Whether a page in HTML begins with this line, as proxies answer with in the middle of a stream.
fn is_page(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    [&b"<!doctype"[..], b"<html"].iter().any(|start| {
        line.get(..start.len())
            .is_some_and(|begins| begins.eq_ignore_ascii_case(start))
    })
}

fn without_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}

fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(KEPT);
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Parser {
        fn capacity(&self) -> usize {
            self.line.capacity() + self.name.capacity() + self.data.capacity()
        }
    }

    /// Feeds a piece again and again, to well past the limits; how often it was accepted, and the refusal.
    fn feed_endlessly(parser: &mut Parser, piece: &[u8]) -> (usize, TooLong) {
        (0..1024)
            .find_map(|accepted| Some((accepted, parser.feed(piece, |_| {}).err()?)))
            .expect("a refusal before 64 MiB")
    }

    #[test]
    fn an_endless_line_is_refused_before_it_is_stored() {
        let mut parser = Parser::new(Limits::default());
        let limit = Limits::default().line;
        let piece = vec![b'x'; 64 << 10];
        let (accepted, refused) = feed_endlessly(&mut parser, &piece);
        let part = Part::Line;
        assert_eq!(refused, TooLong { part, limit });
        assert_eq!(accepted, limit / piece.len());
        assert!(parser.capacity() <= 2 * limit);
    }

    #[test]
    fn an_endless_event_is_refused_before_it_is_stored() {
        let mut parser = Parser::new(Limits::default());
        let limit = Limits::default().event;
        let piece = [&b"data: "[..], &vec![b'x'; 64 << 10], b"\n"].concat();
        let (_, refused) = feed_endlessly(&mut parser, &piece);
        let part = Part::Event;
        assert_eq!(refused, TooLong { part, limit });
        assert!(parser.capacity() <= 2 * limit);
    }

    #[test]
    fn the_buffer_of_a_cut_line_is_used_again() {
        let mut parser = Parser::new(Limits::default());
        parser.feed(b"data: a", |_| {}).expect("within the limits");
        let (buffer, capacity) = (parser.line.as_ptr(), parser.line.capacity());
        for _ in 0..3 {
            parser
                .feed(b"\n\ndata: a", |_| {})
                .expect("within the limits");
            assert_eq!(
                (parser.line.as_ptr(), parser.line.capacity()),
                (buffer, capacity)
            );
        }
    }

    #[test]
    fn a_32_mib_event_in_one_piece_is_not_copied() {
        let mut parser = Parser::new(Limits::default());
        let piece = [&b"data: "[..], &vec![b'x'; 32 << 20], b"\n\n"].concat();
        assert!(parser.feed(&piece, |_| {}).is_err());
        assert_eq!(parser.capacity(), 0);
    }

    #[test]
    fn the_memory_of_a_large_event_is_given_back() {
        let mut parser = Parser::new(Limits::default());
        let large = vec![b'x'; 1 << 20];
        let mut seen = 0;
        for piece in [
            b"event: ",
            &large[..],
            b"\ndata: ",
            &large,
            b"\ndata: ",
            &large,
            b"\n\n",
        ] {
            parser
                .feed(piece, |_| seen += 1)
                .expect("within the limits");
        }
        assert_eq!(seen, 1);
        parser.feed(b"data: s", |_| {}).expect("within the limits");
        assert!(parser.capacity() <= 3 * KEPT, "{}", parser.capacity());
    }

    #[test]
    fn an_event_whole_in_one_piece_is_borrowed_from_it() {
        let mut parser = Parser::new(Limits::default());
        let piece = b"event: delta\ndata: {\"n\":1}\n\ndata:{\"n\":2}\r\n\r\n";
        let mut borrowed = 0;
        parser
            .feed(piece, |item| {
                if let Item::Event { name, data, .. } = item {
                    let inside = |part: &[u8]| piece.as_ptr_range().contains(&part.as_ptr());
                    assert!(inside(data));
                    assert!(name.is_empty() || inside(name));
                    borrowed += 1;
                }
            })
            .expect("within the limits");
        assert_eq!(borrowed, 2);
        assert_eq!(parser.capacity(), 0);
    }
}
