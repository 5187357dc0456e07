//! Owns what must hold for every API that the real server speaks, directly and through a gateway that translates.

use crate::parts::{self, Ask, Route};
use crate::report::{Row, Run};
use crate::{OUTPUT_TOKENS, answers};

/// The APIs that llama.cpp's server speaks.
const SPOKEN: [&str; 4] = [
    "openai-chat",
    "openai-completions",
    "openai-responses",
    "anthropic",
];

/// Every request ended well, streamed, and was counted by the server.
fn streams_and_counts(name: &str, run: &Run) {
    for level in &run.levels() {
        answers::all_ok(level);
        let streams = level.shape("streamed") + level.shape("clumped");
        assert_eq!(streams, level.ok(), "{name}: {}", level.shapes());
        level.ttft().is_shown_for(level.ok());
        level.generation().is_shown_for(level.ok());
    }
    for row in run.rows() {
        answers::counted_by_the_server(&row);
        as_many_as_asked_for(name, &row);
    }
    let mut first: Vec<f64> = run.rows().iter().filter_map(|row| row.ttft_s()).collect();
    first.sort_by(f64::total_cmp);
    println!(
        "{name}: TTFT of {} requests, in s: {first:.3?}",
        first.len()
    );
}

/// The answer has all the tokens asked for, a chunk each; or, in the one API whose translation in the server drops
/// `ignore_eos`, ended by itself before, with the one token that is billed and never arrives.
fn as_many_as_asked_for(name: &str, row: &Row) {
    if name == "anthropic" && row.finish() == "stop" {
        assert!(row.billed_tokens() <= OUTPUT_TOKENS, "{name}: {row}");
        assert_eq!(row.chunks() + 1, row.billed_tokens(), "{name}: {row}");
    } else {
        assert_eq!(row.billed_tokens(), OUTPUT_TOKENS, "{name}: {row}");
        assert_eq!(row.chunks(), OUTPUT_TOKENS, "{name}: {row}");
    }
}

#[test]
fn every_api_of_the_server_gives_the_same_count() {
    for api in SPOKEN {
        let never_stops = Ask::words("1", 6, OUTPUT_TOKENS);
        let url = Route::Direct.url();
        let run = parts::measure_at(api, &url, &["--api", api], &never_stops);
        streams_and_counts(api, &run);
    }
}

#[test]
fn a_gateway_that_translates_is_read_in_the_apis_it_speaks() {
    let (url, key) = parts::gateway();
    let bearer = format!("Authorization: Bearer {key}");
    for (api, path) in [
        ("anthropic", "/v1/messages"),
        (
            "gemini",
            "/v1beta/models/smol:streamGenerateContent?alt=sse",
        ),
        ("openai-chat", "/v1/chat/completions"),
    ] {
        let ask = Ask::up_to("1", 6, OUTPUT_TOKENS);
        let flags = ["-m", "smol", "--header", &bearer];
        let name = format!("gateway-{api}");
        let run = parts::measure_at(&name, &format!("{url}{path}"), &flags, &ask);
        for level in &run.levels() {
            answers::all_ok(level);
        }
        for row in run.rows() {
            answers::counted_by_the_server(&row);
            assert!(row.billed_tokens() <= OUTPUT_TOKENS, "{api}: {row}");
            assert!(!row.text().is_empty(), "{api}: {row}");
        }
        assert!(
            !run.to_string().contains(&key),
            "{api}: the key is in the report"
        );
    }
}
