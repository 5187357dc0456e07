//! Owns HTTP/2's frames (RFC 9113): nine bytes of header, and the payload that each type has.

/// What a client's first bytes are.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The longest payload that a frame may have here, and anywhere until a setting says otherwise.
pub const MOST: usize = 16_384;
/// The largest window there is.
pub const LARGEST_WINDOW: i64 = (1 << 31) - 1;
/// Bytes of a frame's header.
const HEADER: usize = 9;

/// Types of frames.
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub mod flag {
    pub const ACK: u8 = 0x1;
    pub const END_STREAM: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// Names of settings.
pub mod setting {
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// Why a stream or a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    NoError = 0,
    Protocol = 1,
    Internal = 2,
    FlowControl = 3,
    StreamClosed = 5,
    FrameSize = 6,
    RefusedStream = 7,
    Compression = 9,
    EnhanceYourCalm = 11,
}

/// One frame of a client.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 for the connection.
    pub stream: u32,
    /// What follows its header.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The first frame of `bytes` and its length, once all of it is here.
    pub fn first(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Code> {
        let Some((&[a, b, c, kind, flags, s, t, u, v], rest)) = bytes.split_first_chunk::<HEADER>()
        else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if length > MOST {
            return Err(Code::FrameSize);
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = Frame {
            kind,
            flags,
            stream: id([s, t, u, v]),
            payload,
        };
        Ok(Some((frame, HEADER + length)))
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The payload without padding, and without the weight of HEADERS.
    pub fn content(&self) -> Result<&'a [u8], Code> {
        let mut content = self.payload;
        let mut padding = 0;
        if self.has(flag::PADDED) {
            let (length, rest) = content.split_first().ok_or(Code::FrameSize)?;
            (padding, content) = (usize::from(*length), rest);
        }
        if self.kind == kind::HEADERS && self.has(flag::PRIORITY) {
            content = content.get(5..).ok_or(Code::FrameSize)?;
        }
        let length = content.len().checked_sub(padding).ok_or(Code::Protocol)?;
        Ok(&content[..length])
    }

    /// A payload that is one number, without its first bit.
    pub fn number(&self) -> Result<u32, Code> {
        let bytes = <[u8; 4]>::try_from(self.payload).map_err(|_| Code::FrameSize)?;
        Ok(id(bytes))
    }

    /// The settings in a payload.
    pub fn settings(&self) -> Result<impl Iterator<Item = (u16, u32)> + use<'a>, Code> {
        let (all, rest) = self.payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Code::FrameSize);
        }
        let read = |&[a, b, c, d, e, f]: &[u8; 6]| {
            (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))
        };
        Ok(all.iter().map(read))
    }
}

/// A number of 31 bits behind one that is reserved.
fn id(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes) & (u32::MAX >> 1)
}

/// Appends a frame; `payload` fits one.
pub fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    // Above 2^24 bytes the length would lose its first byte: no caller has a payload that long.
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Appends settings.
pub fn settings(out: &mut Vec<u8>, all: &[(u16, u32)]) {
    let mut payload = Vec::with_capacity(6 * all.len());
    for (name, value) in all {
        payload.extend_from_slice(&name.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    put(out, kind::SETTINGS, 0, 0, &payload);
}

/// Appends the end of a connection: streams above `last` were not looked at.
pub fn goaway(out: &mut Vec<u8>, last: u32, code: Code) {
    let payload = [last.to_be_bytes(), (code as u32).to_be_bytes()].concat();
    put(out, kind::GOAWAY, 0, 0, &payload);
}

/// Appends the end of a stream that has no proper one.
pub fn reset(out: &mut Vec<u8>, stream: u32, code: Code) {
    put(
        out,
        kind::RST_STREAM,
        0,
        stream,
        &(code as u32).to_be_bytes(),
    );
}

/// Appends room for `more` bytes on a stream, or on the connection.
pub fn window(out: &mut Vec<u8>, stream: u32, more: u32) {
    put(out, kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
}
