//! The binary around the pure core: flags, clock, sockets, files and pages.
#![forbid(unsafe_code)]

pub mod cli;
pub mod clock;
pub mod commands;
pub mod config;
pub mod crash;
pub mod drive;
pub mod exit;
pub mod net;
pub mod page;
pub mod record_file;
pub mod recorder;
pub mod sim;
pub mod tokenizer;
