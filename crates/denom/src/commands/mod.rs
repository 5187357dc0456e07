//! Owns the commands: one module each, with its `run`.

pub mod audit;
pub mod claim;
pub mod demo;
pub mod probe;
mod ready;
pub mod report;
pub mod run;
pub mod serve;
pub mod tally;

mod discover;
mod header;
mod progress;
mod self_check;
