//! Owns what must hold against llama.cpp's server and a real model, directly and behind nginx.
//!
//! `ci/real-parts run cargo test -p denom --features real-parts --test real` starts what it needs. Shapes, counts and
//! reasons are asserted, and never a speed: the machine may be as slow as it likes.

mod answers;
mod apis;
mod parts;
mod probe;
mod report;
mod sdks;

use std::sync::LazyLock;

use parts::{Ask, Route};
use report::{Level, Row, Run};

/// Tokens asked for where the model may not stop by itself: at any speed seen here well above the 0.2 s guard.
const OUTPUT_TOKENS: u64 = 64;

static DIRECT: LazyLock<Run> = LazyLock::new(|| {
    let never_stops = Ask::words("1,4", 24, OUTPUT_TOKENS);
    parts::measure("direct", Route::Direct, &never_stops)
});

static HOPS: LazyLock<Run> = LazyLock::new(|| {
    let never_stops = Ask::words("1,4", 12, OUTPUT_TOKENS);
    parts::measure("hops", Route::TwoHops, &never_stops)
});

static NATURAL: LazyLock<Run> = LazyLock::new(|| {
    let questions = Ask::questions("1", 24);
    parts::measure("natural", Route::Direct, &questions)
});

#[test]
fn directly_every_request_streams() {
    let levels = DIRECT.levels();
    assert_eq!(concurrencies(&levels), [1.0, 4.0]);
    for level in &levels {
        answers::all_ok(level);
        let streams = level.shape("streamed") + level.shape("clumped");
        assert_eq!(
            streams,
            level.ok(),
            "a shape that is no stream: {}",
            level.shapes()
        );
        for metric in [level.ttft(), level.generation(), level.end_to_end()] {
            metric.is_shown_for(level.ok());
        }
    }
    for row in DIRECT.rows() {
        assert!(["streamed", "clumped"].contains(&row.shape()), "{row}");
        assert!(row.reasons().is_empty(), "{row}");
        let (ttft, e2e) = (row.ttft_s().expect("a first-content time"), row.e2e_s());
        assert!(0.0 < ttft && ttft < e2e, "{row}");
        assert_eq!(row.rate_used(), "generation_rate", "{row}");
    }
}

#[test]
fn directly_each_chunk_is_a_token_of_the_usage() {
    for row in DIRECT.rows() {
        answers::counted_by_the_server(&row);
        assert_eq!(row.finish(), "length", "{row}");
        assert_eq!(row.billed_tokens(), OUTPUT_TOKENS, "{row}");
        assert_eq!(row.chunks(), OUTPUT_TOKENS, "{row}");
        assert_eq!(row.output_tokens(), OUTPUT_TOKENS, "{row}");
        assert!(!row.has_flag("stop_token"), "{row}");
    }
    answers::agree_with_the_tokenizer(&DIRECT.rows());
}

#[test]
fn the_servers_own_timings_stand_beside_ours() {
    for level in DIRECT.levels() {
        level.declared_generation().is_shown_for(level.ok());
        level.declared_prompt().is_shown_for(level.ok());
        assert_eq!(level.declared_generation().evidence(), "declared");
        assert_eq!(level.generation().evidence(), "observed");
    }
    for row in DIRECT.rows() {
        // Both look at the same tokens: the server from the first it made, we from the first that came.
        let ratio = row.rate() / row.declared_rate();
        assert!(
            (0.5..2.0).contains(&ratio),
            "ours is {ratio:.2} of the server's: {row}"
        );
    }
}

#[test]
fn a_natural_stop_bills_one_token_that_never_arrives() {
    answers::all_ok(&NATURAL.levels()[0]);
    let rows = NATURAL.rows();
    let (stopped, cut): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.finish() == "stop");
    assert!(
        stopped.len() >= 6,
        "only {} answers ended by themselves",
        stopped.len()
    );
    for row in &stopped {
        answers::counted_by_the_server(row);
        assert_eq!(row.chunks(), row.billed_tokens() - 1, "{row}");
        assert_eq!(row.output_tokens(), row.chunks(), "{row}");
        assert!(row.has_flag("stop_token"), "{row}");
    }
    for row in &cut {
        assert_eq!(row.chunks(), row.billed_tokens(), "{row}");
        assert!(!row.has_flag("stop_token"), "{row}");
    }
    answers::agree_with_the_tokenizer(&stopped);
}

#[test]
fn over_http_2_it_streams_the_same() {
    let url = format!("{}/v1", parts::variable("REAL_H2"));
    let never_stops = Ask::words("1,4", 12, OUTPUT_TOKENS);
    let run = parts::measure_at("h2", &url, &["--http", "2"], &never_stops);
    for level in &run.levels() {
        answers::all_ok(level);
        let streams = level.shape("streamed") + level.shape("clumped");
        assert_eq!(streams, level.ok(), "{}", level.shapes());
        level.ttft().is_shown_for(level.ok());
        assert_eq!(level.h2_wait().n(), level.ok());
    }
    for row in run.rows() {
        answers::counted_by_the_server(&row);
        assert_eq!(row.billed_tokens(), OUTPUT_TOKENS, "{row}");
        assert_eq!(row.chunks(), OUTPUT_TOKENS, "{row}");
    }
}

#[test]
fn behind_two_hops_nothing_but_end_to_end_is_shown() {
    let levels = HOPS.levels();
    assert_eq!(concurrencies(&levels), [1.0, 4.0]);
    for level in &levels {
        answers::all_ok(level);
        assert_eq!(level.shape("buffered"), level.ok(), "{}", level.shapes());
        for metric in [level.ttft(), level.generation()] {
            metric.is_withheld();
        }
        level.end_to_end().is_shown_for(level.ok());
        level.e2e().is_shown_for(level.ok());
    }
    for row in HOPS.rows() {
        assert_eq!(row.shape(), "buffered", "{row}");
        assert!(!row.reasons().is_empty(), "{row}");
        assert_eq!(row.ttft_s(), None, "{row}");
        assert_eq!(row.rate_used(), "e2e_rate", "{row}");
    }
}

#[test]
fn the_hops_change_no_count() {
    for row in HOPS.rows() {
        answers::counted_by_the_server(&row);
        let counts = (row.billed_tokens(), row.output_tokens(), row.chunks());
        assert_eq!(
            counts,
            (OUTPUT_TOKENS, OUTPUT_TOKENS, OUTPUT_TOKENS),
            "{row}"
        );
    }
    answers::agree_with_the_tokenizer(&HOPS.rows());
}

#[test]
fn behind_one_hop_it_still_streams() {
    let few = Ask::words("1", 6, OUTPUT_TOKENS);
    let run = parts::measure("one-hop", Route::OneHop, &few);
    answers::all_ok(&run.levels()[0]);
    for row in run.rows() {
        assert!(["streamed", "clumped"].contains(&row.shape()), "{row}");
        assert!(row.ttft_s().is_some(), "{row}");
    }
}

fn concurrencies(levels: &[Level]) -> Vec<f64> {
    levels.iter().map(Level::target).collect()
}
