//! Owns the commands: one module each, with its flags and its `run`.

pub mod serve;
