//! Owns a second reading of the rules: slow, over the whole body at once, without any state kept
//! between bytes. It shares nothing with the parser but the rules.

use super::Seen;

/// What a body says, read in one go.
pub fn read(body: &[u8]) -> Vec<Seen> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut lines: Vec<Vec<u8>> = unix(body)
        .split(|&b| b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    // What follows the last line end is a line only if there is something of it.
    let tail = lines.pop().filter(|tail| !tail.is_empty());

    let mut seen = Vec::new();
    let (mut name, mut data) = (Vec::new(), Vec::new());
    for line in lines.into_iter().chain(tail) {
        if line.is_empty() {
            seen.extend(event(&name, &data, true));
            (name, data) = (Vec::new(), Vec::new());
            continue;
        }
        let (field, value) = field(&line);
        if line[0] == b':' {
            seen.push(Seen::Comment);
        } else if field == b"event" {
            name = value;
        } else if field == b"data" {
            data.extend(value);
            data.push(b'\n');
        } else if field == b"error" {
            seen.push(Seen::ErrorField(value));
        }
    }
    seen.extend(event(&name, &data, false));
    seen
}

/// Every kind of line end as LF.
fn unix(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (place, &byte) in body.iter().enumerate() {
        match byte {
            b'\n' if place > 0 && body[place - 1] == b'\r' => {}
            b'\r' => out.push(b'\n'),
            other => out.push(other),
        }
    }
    out
}

fn field(line: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut halves = line.splitn(2, |&byte| byte == b':');
    let name = halves.next().unwrap_or_default().to_vec();
    let mut value = halves.next().unwrap_or_default().to_vec();
    if value.first() == Some(&b' ') {
        value.remove(0);
    }
    (name, value)
}

fn event(name: &[u8], data: &[u8], terminated: bool) -> Option<Seen> {
    let (_, data) = data.split_last()?;
    Some(Seen::Event {
        name: name.to_vec(),
        data: data.to_vec(),
        terminated,
    })
}
