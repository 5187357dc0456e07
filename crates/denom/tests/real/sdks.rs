//! Owns what must hold for the vendors' own SDKs: they stream from the simulated server without an error.

use std::process::Command;

use crate::parts;

/// The script checks texts, counts and finishes itself, and prints a line a case.
#[test]
fn the_vendors_sdks_stream_from_every_api_of_the_simulated_server() {
    let python = std::env::var("REAL_SDK_PYTHON").unwrap_or_else(|_| {
        panic!("REAL_SDK_PYTHON is not set, so there are no SDKs to test with: run this test through `ci/real-parts run`")
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/sdk_streams.py");
    let mut sdks = Command::new(python);
    sdks.args([script, env!("CARGO_BIN_EXE_denom")]);
    let output = parts::finished(&mut sdks);
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
