//! Owns the scripts whose body is no answer of its API: broken JSON, JSON without measure.

use measure::time::Length;

use super::at;
use super::marks::halved;
use super::paced::paced;
use crate::sim::ask::Ask;
use crate::sim::script::{Ending, Script, When};
use crate::sim::tape::{AT_ONCE, Pace, Tail, Tape};
use crate::sim::voices::Kind;

/// Bytes of the event that is too long: 32 MiB.
const HUGE: u64 = 32 * 1024 * 1024;
/// Bytes of a piece of it.
const PIECE: u64 = 64 * 1024;
/// Arrays within each other.
const DEEP: usize = 100_000;

/// An event in the middle is no JSON; what comes behind it is in order.
pub(super) fn bad_json(ask: &Ask) -> Script {
    halved(ask, |speech| {
        speech.event(
            "message_delta",
            b"{\"id\":\"x\",\"choices\":[{\"index\":0,,\"delta\":}]}",
        );
    })
}

pub(super) fn deep_json(ask: &Ask) -> Script {
    halved(ask, |speech| {
        let mut json = b"{\"extra\":".to_vec();
        json.resize(json.len() + DEEP, b'[');
        json.resize(json.len() + DEEP, b']');
        json.push(b'}');
        speech.event("ping", &json);
    })
}

/// 10 tokens, then one event that is longer than any client should hold.
pub(super) fn huge_event(ask: &Ask) -> Script {
    const MARK: &[u8] = b"@";
    let tokens = ask.tokens().min(10);
    let mut behind = Vec::new();
    paced(Tape::new(ask), Pace::USUAL, tokens)
        .write(at(Pace::USUAL, tokens), 0, |speech| {
            speech.text(Kind::Answer, MARK);
            let mark = speech.out.iter().rposition(|byte| *byte == b'@');
            behind = speech.out.split_off(mark.unwrap_or(0));
            behind.retain(|byte| *byte != b'@');
        })
        .repeat(AT_ONCE, Length::ZERO, Some(HUGE / PIECE), 0, |speech| {
            speech.out.resize(64 * 1024, b'a');
        })
        .write(AT_ONCE, 0, |speech| speech.out.append(&mut behind))
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

/// A line without end.
pub(super) fn endless_line(ask: &Ask) -> Script {
    Tape::new(ask)
        .role(Length::ZERO)
        .repeat(
            When::At(Pace::USUAL.first),
            Length::ZERO,
            None,
            0,
            |speech| {
                speech.out.resize(64 * 1024, b'a');
            },
        )
        .end(AT_ONCE, Ending::Stall)
}
