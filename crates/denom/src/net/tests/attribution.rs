//! Owns attribution.
