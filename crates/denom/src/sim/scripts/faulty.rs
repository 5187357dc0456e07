//! Owns the scripts that fail, in the stream or before it.

use measure::time::Length;

use super::at;
use super::paced::{normal, paced};
use crate::sim::ask::Ask;
use crate::sim::chat::{Chat, Kind};
use crate::sim::replies;
use crate::sim::script::{Ending, Script, When};
use crate::sim::tape::{AT_ONCE, Pace, Tail, Tape};

/// The first tokens of `normal`, at most `most`, and the index at which the fault strikes.
fn begun(ask: &Ask, most: u64) -> (Tape<'_>, u64) {
    let tokens = ask.tokens().min(most);
    (paced(Tape::new(ask), Pace::USUAL, tokens), tokens)
}

pub(super) fn empty(ask: &Ask) -> Script {
    let first = Pace::USUAL.first;
    Tape::new(ask)
        .role(Length::ZERO)
        .tail(When::At(first), Tail::of(ask, 0, 0))
}

pub(super) fn mid_error(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    let fault = |chat: &Chat, out: &mut Vec<u8>| {
        chat.error(out);
        chat.done(out);
    };
    tape.write(at(Pace::USUAL, next), 0, fault)
        .end(AT_ONCE, Ending::Proper)
}

pub(super) fn truncated(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    tape.end(at(Pace::USUAL, next), Ending::Proper)
}

pub(super) fn cut(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    let half = |chat: &Chat, out: &mut Vec<u8>| {
        chat.text(out, Kind::Answer, next..next + 1);
        out.truncate(out.len() / 2);
    };
    tape.write(at(Pace::USUAL, next), 0, half)
        .end(AT_ONCE, Ending::Cut)
}

pub(super) fn reset(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    tape.end(at(Pace::USUAL, next), Ending::Reset)
}

pub(super) fn stall(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 5);
    tape.end(at(Pace::USUAL, next), Ending::Stall)
}

pub(super) fn html(_: &Ask) -> Script {
    const PAGE: &str = "<!doctype html>\n<title>Sign in</title>\n\
                        <p>This network asks you to sign in first.</p>\n";
    replies::body(200, "text/html; charset=utf-8", PAGE.into(), Length::ZERO)
}

/// Servers do echo the key they refuse.
pub(super) fn http401(ask: &Ask) -> Script {
    let key = ask.key.as_deref().unwrap_or("(none)");
    let message = format!("this key is not accepted: {key}");
    replies::error(
        401,
        &message,
        "invalid_request_error",
        Some("invalid_api_key"),
    )
}

pub(super) fn http404(ask: &Ask) -> Script {
    replies::unknown_model(&ask.model)
}

pub(super) fn http429(_: &Ask) -> Script {
    let message = "too many requests: try again in 7 s";
    let mut script = replies::error(
        429,
        message,
        "rate_limit_error",
        Some("rate_limit_exceeded"),
    );
    script.headers.push(("retry-after", "7"));
    script
}

pub(super) fn http500(_: &Ask) -> Script {
    replies::error(500, "the engine is not running", "server_error", None)
}

pub(super) fn no_stream_options(ask: &Ask) -> Script {
    if ask.stream_options {
        return replies::parameter(
            "stream_options",
            "stream_options is not known to this server",
        );
    }
    normal(ask)
}

pub(super) fn no_max_tokens(ask: &Ask) -> Script {
    if ask.legacy_max_tokens {
        let message = "max_tokens is not known to this server: use max_completion_tokens";
        return replies::parameter("max_tokens", message);
    }
    normal(ask)
}
