//! Owns the entry of one fuzz target.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| denom_fuzz::json_array(data));
