//! Owns the pages.
pub mod escape;
