//! Owns the frames that several APIs share: a server-sent event, a comment.

/// Appends `json` as an event of the default type.
pub fn data(out: &mut Vec<u8>, json: &[u8]) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(json);
    out.extend_from_slice(b"\n\n");
}

/// Appends `json` as an event of a named type.
pub fn named(out: &mut Vec<u8>, kind: &str, json: &[u8]) {
    for part in ["event: ", kind, "\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    data(out, json);
}

/// Appends a comment, which is a sign of life and no event.
pub fn comment(out: &mut Vec<u8>) {
    out.extend_from_slice(b": ping\n\n");
}

/// Appends all parts one after the other.
pub fn parts(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
}
