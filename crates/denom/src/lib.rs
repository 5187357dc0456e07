//! The binary around the pure core: flags, clock, sockets, files and pages.
#![forbid(unsafe_code)]

pub mod clock;
pub mod net;
