//! Owns a second reading of the two JSON framings: slow, over the whole body at once, sharing
//! nothing with the parsers but the rules.

use super::Seen;

fn event(data: &[u8], terminated: bool) -> Seen {
    Seen::Event {
        name: Vec::new(),
        data: data.to_vec(),
        terminated,
    }
}

/// A body of lines, each ended by a line feed and by nothing else.
pub fn ndjson(body: &[u8]) -> Vec<Seen> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').collect();
    let whole = lines.len() - 1;
    let each = lines.iter().enumerate().map(|(i, line)| {
        let line = line.trim_ascii();
        let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
        (!line.is_empty()).then(|| event(line, i < whole || is_json()))
    });
    each.flatten().collect()
}

/// A body that is an array of objects: white space and commas may stand between them.
pub fn array(body: &[u8]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut rest = body.trim_ascii_start_of(b"");
    let Some(inner) = rest.strip_prefix(b"[") else {
        seen.extend(rest.first().map(|byte| Seen::Stray(vec![*byte])));
        return seen;
    };
    rest = inner.trim_ascii_start_of(b",");
    while let Some(first) = rest.first() {
        match first {
            b'{' => match element(rest) {
                Some(end) => {
                    seen.push(event(&rest[..end], true));
                    rest = &rest[end..];
                }
                None => {
                    seen.push(event(rest, false));
                    return seen;
                }
            },
            b']' => {
                seen.push(Seen::End);
                rest = rest[1..].trim_ascii_start_of(b"");
                seen.extend(rest.first().map(|byte| Seen::Stray(vec![*byte])));
                return seen;
            }
            other => {
                seen.push(Seen::Stray(vec![*other]));
                return seen;
            }
        }
        rest = rest.trim_ascii_start_of(b",");
    }
    seen
}

/// Where the object at the start of `text` ends: its strings are blanked out first, so that what
/// is left has brackets that count and nothing else.
fn element(text: &[u8]) -> Option<usize> {
    let mut blank = text.to_vec();
    let mut place = 0;
    while let Some(open) = find(&blank, place, b'"') {
        if let Some(end) = balanced(&blank[..open]) {
            return Some(end);
        }
        let mut close = open + 1;
        while *text.get(close)? != b'"' {
            close += 1 + usize::from(text[close] == b'\\');
        }
        blank[open..=close].fill(b' ');
        place = close + 1;
    }
    balanced(&blank)
}

fn find(bytes: &[u8], from: usize, wanted: u8) -> Option<usize> {
    let found = bytes.get(from..)?.iter().position(|byte| *byte == wanted);
    found.map(|place| from + place)
}

/// Just behind the byte at which as many brackets have closed as opened.
fn balanced(blank: &[u8]) -> Option<usize> {
    let count = |upto: usize, of: &[u8]| blank[..upto].iter().filter(|b| of.contains(b)).count();
    let mut closers = (0..blank.len()).filter(|i| matches!(blank[*i], b'}' | b']'));
    let end = closers.find(|i| count(i + 1, b"}]") >= count(i + 1, b"{["))?;
    Some(end + 1)
}

/// Without the white space of JSON, and these bytes, at its start.
trait Trim {
    fn trim_ascii_start_of(&self, more: &[u8]) -> &[u8];
}

impl Trim for [u8] {
    fn trim_ascii_start_of(&self, more: &[u8]) -> &[u8] {
        let is_space = |byte: &u8| b" \t\r\n".contains(byte) || more.contains(byte);
        let start = self.iter().position(|byte| !is_space(byte));
        &self[start.unwrap_or(self.len())..]
    }
}
