//! Owns the pages' tests: synthetic traces in, whole pages out.

mod escapes;
mod make;
mod pages;
