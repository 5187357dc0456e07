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

/// A body that is an array of objects, with a comma between each two and white space anywhere.
pub fn array(body: &[u8]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let stray = |rest: &[u8]| rest.first().map(|byte| Seen::Stray(vec![*byte]));
    let body = json_trimmed(body);
    let Some(mut rest) = body.strip_prefix(b"[").map(json_trimmed) else {
        seen.extend(stray(body));
        return seen;
    };
    while rest.starts_with(b"{") {
        let Some(end) = element(rest) else {
            seen.push(event(rest, false));
            return seen;
        };
        seen.push(event(&rest[..end], true));
        rest = json_trimmed(&rest[end..]);
        let Some(next) = rest.strip_prefix(b",").map(json_trimmed) else {
            return closed(seen, rest);
        };
        if !next.starts_with(b"{") {
            seen.extend(stray(next));
            return seen;
        }
        rest = next;
    }
    closed(seen, rest)
}

/// What stands where only the closing bracket may.
fn closed(mut seen: Vec<Seen>, rest: &[u8]) -> Vec<Seen> {
    let behind = rest.strip_prefix(b"]").map(json_trimmed);
    seen.extend(behind.map(|_| Seen::End));
    let stray = behind.unwrap_or(rest).first();
    seen.extend(stray.map(|byte| Seen::Stray(vec![*byte])));
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

/// Without the white space of JSON at its start.
fn json_trimmed(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !b" \t\r\n".contains(byte));
    &text[start.unwrap_or(text.len())..]
}
