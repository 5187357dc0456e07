//! The program `denom`.
#![forbid(unsafe_code)]

fn main() {}
