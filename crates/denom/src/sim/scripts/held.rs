//! Owns the scripts that hold their answer back, whole or in part.

use measure::time::Length;

use super::millis;
use super::paced::paced;
use crate::sim::ask::Ask;
use crate::sim::script::{Ending, Script, When};
use crate::sim::tape::{AT_ONCE, Pace, Speech, Tail, Tape};
use crate::sim::voices::Kind;

/// Ten writes, 0.05 ms apart: what a path that holds a whole answer back lets go.
pub(super) fn bursts(ask: &Ask) -> Script {
    const WRITES: u64 = 10;
    let tokens = ask.tokens().max(1_000);
    let pace = Pace {
        first: Length::from_secs(1),
        each: Length::from_micros(50),
    };
    let mut tape = Tape::new(ask).role(pace.first);
    for index in 0..WRITES {
        let (from, to) = (tokens * index / WRITES, tokens * (index + 1) / WRITES);
        tape = tape.burst(pace.token(index), from..to);
    }
    tape.tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

pub(super) fn burst(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let when = When::At(Pace::USUAL.last(tokens));
    Tape::new(ask)
        .write(when, tokens, |speech| {
            speech.open();
            rest(speech, ask, tokens);
        })
        .end(AT_ONCE, Ending::Proper)
}

pub(super) fn role_burst(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let when = When::At(Pace::USUAL.last(tokens));
    Tape::new(ask)
        .role(millis(5))
        .write(when, tokens, |speech| rest(speech, ask, tokens))
        .end(AT_ONCE, Ending::Proper)
}

fn rest(speech: &mut Speech<'_>, ask: &Ask, tokens: u64) {
    speech.each(0..tokens);
    speech.close(Tail::of(ask, tokens, 0));
}

pub(super) fn first_late(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let late = Pace::USUAL.last(tokens);
    let tape = Tape::new(ask).role(late).burst(late, 0..1);
    tape.burst(late + millis(2), 1..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

pub(super) fn one_chunk(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let when = When::At(Pace::USUAL.last(tokens));
    Tape::new(ask)
        .write(when, tokens, |speech| {
            speech.open();
            speech.tokens(Kind::Answer, 0..tokens);
            speech.close(Tail::of(ask, tokens, 0));
        })
        .end(AT_ONCE, Ending::Proper)
}

pub(super) fn two_clump(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let last = Pace::USUAL.last(tokens);
    let half = Length::from_nanos(last.nanos() / 2);
    Tape::new(ask)
        .role(half)
        .burst(half, 0..tokens / 2)
        .burst(last, tokens / 2..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

pub(super) fn plain_json(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    paced(Tape::whole(ask), Pace::USUAL, tokens).tail(AT_ONCE, Tail::of(ask, tokens, 0))
}
