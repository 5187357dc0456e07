//! Owns the scripts by name: what each model of the simulated server does.

mod faulty;
mod held;
mod paced;
#[cfg(test)]
mod tests;

use measure::time::Length;

use super::ask::Ask;
use super::script::{Ending, Script, When};
use super::tape::{Pace, Tape};

/// A script's name, what it does, and the function that makes it.
struct Entry(&'static str, &'static str, fn(&Ask) -> Script);

const ENTRIES: &[Entry] = &[
    Entry("normal", "a token each 10 ms from 60 ms on", paced::normal),
    Entry("streams", "as normal, from 50 ms on", paced::streams),
    Entry(
        "bursts",
        "silent for 1 s, then at least 1,000 tokens within 1 ms",
        held::bursts,
    ),
    Entry(
        "shares",
        "slows down for all as more requests are active",
        paced::shares,
    ),
    Entry(
        "burst",
        "the whole stream in one write at the last token's time",
        held::burst,
    ),
    Entry(
        "roleburst",
        "role at 5 ms, all the rest in one write at the end",
        held::role_burst,
    ),
    Entry(
        "firstlate",
        "one token at the end, the others 2 ms later in one write",
        held::first_late,
    ),
    Entry(
        "onechunk",
        "all text in one chunk at the end",
        held::one_chunk,
    ),
    Entry(
        "twoclump",
        "half of the tokens at half of the time, half at the end",
        held::two_clump,
    ),
    Entry("empty", "a stream without any output", faulty::empty),
    Entry(
        "miderror",
        "10 tokens, an error event, then [DONE]",
        faulty::mid_error,
    ),
    Entry(
        "truncated",
        "10 tokens, then a proper end of the body",
        faulty::truncated,
    ),
    Entry("cut", "10 tokens, then closed inside an event", faulty::cut),
    Entry(
        "reset",
        "10 tokens, then the connection is reset",
        faulty::reset,
    ),
    Entry("nodone", "as normal, without [DONE]", paced::no_done),
    Entry("nousage", "as normal, never any usage", paced::no_usage),
    Entry(
        "spec4",
        "4 tokens a chunk, a chunk each 40 ms",
        paced::spec4,
    ),
    Entry(
        "reason",
        "three quarters reasoning, then the answer",
        paced::reasoned,
    ),
    Entry(
        "nospace",
        "as normal, no space behind data:",
        paced::no_space,
    ),
    Entry("crlf", "as normal, lines end in CR LF", paced::crlf),
    Entry(
        "plainjson",
        "one JSON body at the end though a stream was asked for",
        held::plain_json,
    ),
    Entry(
        "stoptoken",
        "ends by itself; usage counts the stop token too",
        paced::stop_token,
    ),
    Entry(
        "closes",
        "as normal, the body ends with the connection",
        paced::closes,
    ),
    Entry(
        "keepalives",
        "as normal, comments before the first token",
        paced::keep_alives,
    ),
    Entry("stall", "5 tokens, then silence", faulty::stall),
    Entry("slow_start", "as normal, from 600 ms on", paced::slow_start),
    Entry(
        "null",
        "unpaced: all tokens at once, in large writes",
        paced::unpaced,
    ),
    Entry(
        "paced100",
        "a token each 10 ms from 100 ms on",
        paced::paced100,
    ),
    Entry(
        "paced20",
        "a token each 50 ms from 100 ms on",
        paced::paced20,
    ),
    Entry("html", "status 200 and a login page", faulty::html),
    Entry(
        "http401",
        "status 401, and the key in the message",
        faulty::http401,
    ),
    Entry("http404", "status 404", faulty::http404),
    Entry("http429", "status 429, Retry-After 7", faulty::http429),
    Entry("http500", "status 500", faulty::http500),
    Entry(
        "http400_stream_options",
        "status 400 if stream_options is given",
        faulty::no_stream_options,
    ),
    Entry(
        "http400_max_tokens",
        "status 400 if max_tokens is given by that name",
        faulty::no_max_tokens,
    ),
];

/// The script for `ask` by the model of this name; `None` for a name that is not in [`names`].
///
/// Where no stream is asked for, a streamed script becomes one body with the same tokens at the
/// time the stream would have ended, and a stream that stalls stalls.
pub fn script(name: &str, ask: &Ask) -> Option<Script> {
    let Entry(_, _, make) = ENTRIES.iter().find(|entry| entry.0 == name)?;
    let script = make(ask);
    let streamed = script
        .headers
        .iter()
        .any(|(_, value)| value.starts_with("text/event-stream"));
    if ask.stream || !streamed {
        return Some(script);
    }
    let reasoning = if name == "reason" {
        paced::three_quarters(script.tokens())
    } else {
        0
    };
    Some(match script.ending() {
        Some((at, Ending::Stall)) => Tape::new(ask).end(When::At(at), Ending::Stall),
        Some((at, _)) => held::whole(ask, at, script.tokens(), reasoning, name != "nousage"),
        None => script,
    })
}

/// Every name with one line about it.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    ENTRIES.iter().map(|Entry(name, about, _)| (*name, *about))
}

const fn millis(millis: u64) -> Length {
    Length::from_millis(millis)
}

fn at(pace: Pace, token: u64) -> When {
    When::At(pace.token(token))
}
