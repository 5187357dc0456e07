//! The pure core of denom: stamps and counts in, figures with their denominators out.
//!
//! Nothing here reads a clock, opens a socket or a file, or spawns anything.
#![forbid(unsafe_code)]

pub mod sse;
pub mod stamp;
pub mod time;
