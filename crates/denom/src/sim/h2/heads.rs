//! Owns HTTP/2's header blocks: a request out of one, the head of a response into one.

use loona_hpack::Decoder;

use super::frame::{self, Code, flag, kind};
use crate::sim::http::{self, Request, Version};
use crate::sim::script::{Framing, Script};

/// The longest list of fields, by HTTP/2's count: names, values, and 32 bytes each.
pub const LIST_LIMIT: usize = 64 * 1024;
const FIELD: usize = 32;
/// The dynamic table that a client may use here: what the protocol begins with.
const TABLE: usize = 4_096;

/// Fields with their values, in order.
pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// What is kept between one header block and the next.
pub struct Blocks(Decoder<'static>);

impl Blocks {
    /// Nothing yet.
    pub fn new() -> Self {
        let mut decoder = Decoder::new();
        decoder.set_max_allowed_table_size(TABLE);
        Blocks(decoder)
    }

    /// The fields of a block. A list above its limit is counted to its end and not kept.
    pub fn read(&mut self, block: &[u8]) -> Result<Fields, Code> {
        let mut fields = Fields::new();
        let mut size = 0;
        let outcome = self.0.decode_with_cb(block, |name, value| {
            size += name.len() + value.len() + FIELD;
            if size <= LIST_LIMIT {
                fields.push((name.into_owned(), value.into_owned()));
            }
        });
        match outcome {
            Err(_) => Err(Code::Compression),
            Ok(()) if size > LIST_LIMIT => Err(Code::EnhanceYourCalm),
            Ok(()) => Ok(fields),
        }
    }
}

/// The request of these fields and the length that they state for its body; `None` if they are
/// malformed.
pub fn request(fields: &Fields, stream: u32) -> Option<(Request, Option<usize>)> {
    let pseudo = |name: &[u8]| name.starts_with(b":");
    let behind = fields.iter().skip_while(|(name, _)| pseudo(name));
    let in_order = behind.clone().all(|(name, _)| is_plain(name));
    let known: [&[u8]; 4] = [b":method", b":path", b":scheme", b":authority"];
    let twice = known
        .iter()
        .any(|known| fields.iter().filter(|(name, _)| name == known).count() > 1);
    let foreign = fields
        .iter()
        .any(|(name, _)| pseudo(name) && !known.contains(&name.as_slice()));
    if !in_order || twice || foreign {
        return None;
    }
    let field = |wanted: &str| {
        let named = fields
            .iter()
            .find(|(name, _)| name == wanted.as_bytes())
            .map(|(_, value)| value);
        named.and_then(|value| str::from_utf8(value).ok())
    };
    let (method, path) = (field(":method")?, field(":path")?);
    field(":scheme")?;
    let length = match field("content-length") {
        Some(value) => Some(value.parse().ok()?),
        None => None,
    };
    let version = Version::Http2 { stream };
    Some((http::request(method, path, field, version), length))
}

/// Whether a name is one of a field: lower case, no pseudo-field, nothing of one connection only.
fn is_plain(name: &[u8]) -> bool {
    let of_connection: [&[u8]; 4] = [
        b"connection",
        b"keep-alive",
        b"transfer-encoding",
        b"upgrade",
    ];
    !name.is_empty()
        && !name.starts_with(b":")
        && !name.iter().any(u8::is_ascii_uppercase)
        && !of_connection.contains(&name)
}

/// Appends the response head of `script`: literals that no table keeps, so that no state can part
/// from the client's.
pub fn response(out: &mut Vec<u8>, script: &Script, length: u64, stream: u32) {
    let mut block = Vec::new();
    field(&mut block, ":status", &script.status.to_string());
    field(&mut block, "server", "denom-sim");
    for (name, value) in &script.headers {
        let name = name.to_ascii_lowercase();
        if is_plain(name.as_bytes()) {
            field(&mut block, &name, value);
        }
    }
    if script.framing == Framing::ContentLength {
        field(&mut block, "content-length", &length.to_string());
    }
    let mut parts = block.chunks(frame::MOST).peekable();
    let mut kind_of_part = kind::HEADERS;
    while let Some(part) = parts.next() {
        let flags = match parts.peek() {
            Some(_) => 0,
            None => flag::END_HEADERS,
        };
        frame::put(out, kind_of_part, flags, stream, part);
        kind_of_part = kind::CONTINUATION;
    }
}

/// Appends a literal that is not to be indexed, its name written out.
fn field(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        length(block, text.len());
        block.extend_from_slice(text.as_bytes());
    }
}

/// Appends the length of a string that is not Huffman-coded: seven bits, then seven a byte.
fn length(block: &mut Vec<u8>, length: usize) {
    const PREFIX: u8 = 0x7f;
    let Some(mut rest) = length.checked_sub(usize::from(PREFIX)) else {
        // It is below 127.
        block.push(length as u8);
        return;
    };
    block.push(PREFIX);
    while rest > usize::from(PREFIX) {
        block.push((rest as u8) | !PREFIX);
        rest >>= 7;
    }
    block.push(rest as u8);
}
