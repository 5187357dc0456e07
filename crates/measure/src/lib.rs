//! The pure core of denom: stamps and counts in, figures with their denominators out.
//!
//! Nothing here reads a clock, opens a socket or a file, or spawns anything.
#![forbid(unsafe_code)]

pub mod api;
pub mod arrival;
pub mod audit;
pub mod basis;
pub mod claim;
pub mod count;
pub mod decode;
pub mod export;
pub mod figure;
pub mod frames;
mod inflate;
pub mod judge;
pub mod level;
pub mod plan;
pub mod probe;
pub mod prompt;
pub mod quantile;
pub mod rate;
pub mod record;
pub mod report;
pub mod rows;
pub mod schedule;
pub mod scrub;
pub mod stamp;
pub mod stated;
pub mod tally;
pub mod time;
pub mod tokens;
pub mod trace;
pub mod window;
