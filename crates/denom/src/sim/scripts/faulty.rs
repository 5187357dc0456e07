//! Owns the scripts whose stream fails, stops early, or never stops.

use measure::time::Length;

use super::at;
use super::paced::paced;
use crate::sim::ask::Ask;
use crate::sim::dialect::Dialect;
use crate::sim::script::{Ending, Script, When};
use crate::sim::tape::{AT_ONCE, Pace, Tail, Tape};
use crate::sim::voices::{Kind, Reason, WORD};

/// The first tokens of `normal`, at most `most`, and the index at which the fault strikes.
pub(super) fn begun(ask: &Ask, most: u64) -> (Tape<'_>, u64) {
    let tokens = ask.tokens().min(most);
    (paced(Tape::new(ask), Pace::USUAL, tokens), tokens)
}

pub(super) fn empty(ask: &Ask) -> Script {
    let first = Pace::USUAL.first;
    Tape::new(ask)
        .role(Length::ZERO)
        .tail(When::At(first), Tail::of(ask, 0, 0))
}

/// All tokens went into reasoning that nobody sees.
pub(super) fn length_hidden(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let tail = Tail::of(ask, tokens, tokens).because(Reason::Length);
    Tape::new(ask)
        .role(Length::ZERO)
        .tail(When::At(Pace::USUAL.last(tokens)), tail)
}

/// Whether the API's servers send the sentinel behind an error too, or must close an array.
fn ends_errors(ask: &Ask) -> bool {
    matches!(
        ask.dialect,
        Dialect::OpenaiChat | Dialect::OpenaiCompletions | Dialect::GeminiArray
    )
}

pub(super) fn mid_error(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    tape.write(at(Pace::USUAL, next), 0, |speech| {
        speech.error();
        if ends_errors(ask) {
            speech.done();
        }
    })
    .end(AT_ONCE, Ending::Proper)
}

/// As llama.cpp does: the body ends behind the error.
pub(super) fn error_no_done(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    tape.write(at(Pace::USUAL, next), 0, |speech| speech.error())
        .end(AT_ONCE, Ending::Proper)
}

pub(super) fn early_error(ask: &Ask) -> Script {
    Tape::new(ask)
        .head_first()
        .write(When::At(Pace::USUAL.first), 0, |speech| {
            speech.error();
            if ends_errors(ask) {
                speech.done();
            }
        })
        .end(AT_ONCE, Ending::Proper)
}

pub(super) fn truncated(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    tape.end(at(Pace::USUAL, next), Ending::Proper)
}

fn torn(ask: &Ask, ending: Ending, keep: fn(&[u8], &[u8]) -> usize) -> Script {
    let (tape, next) = begun(ask, 10);
    tape.write(at(Pace::USUAL, next), 0, |speech| {
        speech.tokens(Kind::Answer, next..next + 1);
        let word = crate::sim::voices::words(ask.serial, next..next + 1);
        let keep = keep(&speech.out, &word);
        speech.out.truncate(keep);
    })
    .end(AT_ONCE, ending)
}

pub(super) fn cut(ask: &Ask) -> Script {
    torn(ask, Ending::Cut, |event, _| event.len() / 2)
}

/// The event's bytes up to the middle of its text.
fn in_string(event: &[u8], word: &[u8]) -> usize {
    let start = event.windows(WORD).position(|window| window == word);
    start.map_or(event.len() / 2, |start| start + WORD / 2)
}

pub(super) fn cut_in_string(ask: &Ask) -> Script {
    torn(ask, Ending::Cut, in_string)
}

pub(super) fn reset_in_string(ask: &Ask) -> Script {
    torn(ask, Ending::Reset, in_string)
}

/// The body's proper end, inside a string.
pub(super) fn end_in_string(ask: &Ask) -> Script {
    torn(ask, Ending::Proper, in_string)
}

pub(super) fn reset(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    tape.end(at(Pace::USUAL, next), Ending::Reset)
}

pub(super) fn stall(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 5);
    tape.end(at(Pace::USUAL, next), Ending::Stall)
}

/// Signs of life without end: five a second.
pub(super) fn comments_only(ask: &Ask) -> Script {
    let every = Length::from_millis(200);
    Tape::new(ask)
        .head_first()
        .repeat(When::At(every), every, None, 0, |speech| speech.ping())
        .end(AT_ONCE, Ending::Stall)
}

fn without_end(ask: &Ask, every: Length, group: u64) -> Script {
    Tape::new(ask)
        .role(Length::ZERO)
        .repeat(When::At(Pace::USUAL.first), every, None, group, |speech| {
            speech.each(0..group);
        })
        .end(AT_ONCE, Ending::Stall)
}

pub(super) fn endless(ask: &Ask) -> Script {
    without_end(ask, Pace::USUAL.each, 1)
}

/// As fast as the client takes it.
pub(super) fn endless_fast(ask: &Ask) -> Script {
    without_end(ask, Length::ZERO, 100)
}

/// The connection stays open behind a whole answer, until another request comes.
pub(super) fn stale_keepalive(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    paced(Tape::new(ask), Pace::USUAL, tokens)
        .write(AT_ONCE, 0, |speech| speech.close(Tail::of(ask, tokens, 0)))
        .end(AT_ONCE, Ending::Stale)
}

/// An answer that ends for this reason.
fn because(ask: &Ask, reason: Reason) -> Script {
    let (tape, tokens) = begun(ask, 10);
    tape.tail(AT_ONCE, Tail::of(ask, tokens, 0).because(reason))
}

pub(super) fn content_filter(ask: &Ask) -> Script {
    because(ask, Reason::Filter)
}

pub(super) fn finish_error(ask: &Ask) -> Script {
    because(ask, Reason::Error)
}

/// The sentinel, and nothing that says why.
pub(super) fn done_without_finish(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    tape.write(at(Pace::USUAL, next), 0, |speech| speech.done())
        .end(AT_ONCE, Ending::Proper)
}
