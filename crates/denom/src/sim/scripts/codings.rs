//! Owns the scripts that compress, though nobody asked for it.

use std::io::Write;

use brotli::CompressorWriter;
use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::{Compress, Compression, Crc, FlushCompress};
use measure::time::Length;

use super::paced::normal;
use super::spelled::respelled;
use crate::sim::ask::Ask;
use crate::sim::script::{Ending, Script, When};
use crate::sim::tape::{AT_ONCE, Pace, Tape};

/// Bytes that one block of a bomb becomes.
const BLOCK: usize = 1 << 20;
/// Blocks of a bomb: 1 GiB in all.
const BLOCKS: u64 = 1 << 10;
/// What a bomb is filled with: a comment's or a text's worth of nothing.
const FILL: u8 = b' ';

/// `normal` with each write compressed and flushed, so that it still streams.
fn coded<W: Write>(
    ask: &Ask,
    coding: &str,
    mut encoder: W,
    take: impl Fn(&mut W) -> Vec<u8>,
) -> Script {
    let mut script = respelled(ask, normal(ask), |bytes| {
        // Writing to memory cannot fail.
        let _ = encoder.write_all(bytes).and_then(|()| encoder.flush());
        take(&mut encoder)
    });
    if ask.stream {
        script.headers.push(encoding(coding));
    }
    script
}

fn encoding(coding: &str) -> (String, String) {
    ("content-encoding".to_owned(), coding.to_owned())
}

pub(super) fn gzip(ask: &Ask) -> Script {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    coded(ask, "gzip", encoder, |encoder| {
        std::mem::take(encoder.get_mut())
    })
}

pub(super) fn deflate(ask: &Ask) -> Script {
    let encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    coded(ask, "deflate", encoder, |encoder| {
        std::mem::take(encoder.get_mut())
    })
}

pub(super) fn br(ask: &Ask) -> Script {
    let encoder = CompressorWriter::new(Vec::new(), 4096, 5, 20);
    coded(ask, "br", encoder, |encoder| {
        std::mem::take(encoder.get_mut())
    })
}

/// Says that it is compressed by a coding that nobody knows.
pub(super) fn unknown_coding(ask: &Ask) -> Script {
    let mut script = normal(ask);
    script.headers.push(encoding("x-sim"));
    script
}

/// A stream that becomes 1 GiB, a thousand times its length: the same block again and again.
pub(super) fn gzip_bomb(ask: &Ask) -> Script {
    let fill = vec![FILL; BLOCK];
    let mut block = Vec::with_capacity(4 * 1024);
    // There is room for the whole block, and its state is new: this cannot fail.
    let _ = Compress::new(Compression::best(), false).compress_vec(
        &fill,
        &mut block,
        FlushCompress::Full,
    );
    let mut one = Crc::new();
    one.update(&fill);
    let mut all = Crc::new();
    (0..BLOCKS).for_each(|_| all.combine(&one));
    let mut close = vec![3, 0];
    close.extend_from_slice(&all.sum().to_le_bytes());
    close.extend_from_slice(&all.amount().to_le_bytes());
    bomb(ask, "gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\xff", block, &close)
}

/// A stream that becomes 1 GiB, several ten thousand times its length.
pub(super) fn br_bomb(ask: &Ask) -> Script {
    let fill = vec![FILL; BLOCK];
    let mut encoder = CompressorWriter::new(Vec::new(), 4096, 5, 20);
    let mut blocks = Vec::new();
    for _ in 0..3 {
        // Writing to memory cannot fail.
        let _ = encoder.write_all(&fill).and_then(|()| encoder.flush());
        blocks.push(std::mem::take(encoder.get_mut()));
    }
    let close = encoder.into_inner();
    // From the second block on, all are alike.
    let [open, _, block] = blocks.try_into().unwrap_or_default();
    bomb(ask, "br", &open, block, &close)
}

fn bomb(ask: &Ask, coding: &str, open: &[u8], block: Vec<u8>, close: &[u8]) -> Script {
    let first = When::At(Pace::USUAL.first);
    Tape::new(ask)
        .header("content-encoding", coding)
        .write(first, 0, |speech| speech.out.extend_from_slice(open))
        .repeat(AT_ONCE, Length::ZERO, Some(BLOCKS), 0, |speech| {
            speech.out = block;
        })
        .write(AT_ONCE, 0, |speech| speech.out.extend_from_slice(close))
        .end(AT_ONCE, Ending::Proper)
}
