//! Owns the tests.
