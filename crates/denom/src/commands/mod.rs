//! Owns the commands: one module each, with its `run`.

pub mod claim;
pub mod demo;
mod ready;
pub mod report;
pub mod run;
pub mod serve;

mod discover;
mod header;
mod progress;
