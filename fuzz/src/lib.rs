//! Owns the fuzz targets: one function each, a few lines in `fuzz_targets/` to call it, and the
//! parts that several of them share.
#![forbid(unsafe_code)]

mod adapter;
mod decoder;
mod frames;
#[path = "../../crates/measure/tests/conformance/naive.rs"]
mod naive;
mod record;
#[path = "../../crates/measure/tests/sse/seen.rs"]
mod seen;
#[path = "../../crates/measure/tests/sse/naive.rs"]
mod whole_string;

pub use adapter::adapter;
pub use decoder::{decoder, inflate};
pub use frames::{json_array, ndjson, sse};
pub use record::record;

use seen::Seen;

/// Cuts `body` into pieces whose lengths `seed` decides, so that a crash can be played again.
fn pieces(seed: u8, body: &[u8]) -> Vec<&[u8]> {
    let mut rest = body;
    let mut state = u32::from(seed) | 0x100;
    let mut found = Vec::new();
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, next) = rest.split_at(((state >> 24) as usize % 23).min(rest.len()));
        found.push(piece);
        rest = next;
    }
    found
}
