//! Owns tests of TLS.
