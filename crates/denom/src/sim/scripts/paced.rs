//! Owns the scripts that stream: output comes while it would be made.

use measure::time::Length;

use super::{at, millis};
use crate::sim::ask::Ask;
use crate::sim::chat::{Chat, Kind, Style};
use crate::sim::script::{Script, When};
use crate::sim::tape::{AT_ONCE, Pace, Tail, Tape, events};

/// Head and role at once, as servers do that have accepted a request; then a token a write.
pub(super) fn paced(tape: Tape<'_>, pace: Pace, tokens: u64) -> Tape<'_> {
    tape.role(Length::ZERO)
        .tokens(pace, Kind::Answer, 0..tokens)
}

fn steady(ask: &Ask, pace: Pace) -> Script {
    let tokens = ask.tokens();
    paced(Tape::new(ask), pace, tokens).tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

fn styled(ask: &Ask, style: Style) -> Script {
    let tokens = ask.tokens();
    let tape = Tape::new(ask).style(style);
    paced(tape, Pace::USUAL, tokens).tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

fn tailed(ask: &Ask, alter: fn(Tail) -> Tail) -> Script {
    let tokens = ask.tokens();
    let tail = alter(Tail::of(ask, tokens, 0));
    paced(Tape::new(ask), Pace::USUAL, tokens).tail(AT_ONCE, tail)
}

pub(super) fn normal(ask: &Ask) -> Script {
    steady(ask, Pace::USUAL)
}

pub(super) fn streams(ask: &Ask) -> Script {
    steady(
        ask,
        Pace {
            first: millis(50),
            each: millis(10),
        },
    )
}

pub(super) fn slow_start(ask: &Ask) -> Script {
    steady(
        ask,
        Pace {
            first: millis(600),
            each: millis(10),
        },
    )
}

pub(super) fn paced100(ask: &Ask) -> Script {
    steady(
        ask,
        Pace {
            first: millis(100),
            each: millis(10),
        },
    )
}

pub(super) fn paced20(ask: &Ask) -> Script {
    steady(
        ask,
        Pace {
            first: millis(100),
            each: millis(50),
        },
    )
}

/// Alone a token each 10 ms; with 16 active requests each of them gets one each 32 ms.
pub(super) fn shares(ask: &Ask) -> Script {
    let pace = When::Paced {
        base: Length::from_nanos(8_533_333),
        each: Length::from_nanos(1_466_667),
    };
    let tokens = ask.tokens();
    let mut tape = Tape::new(ask).role(Length::ZERO).burst(millis(50), 0..1);
    for index in 1..tokens {
        tape = tape.write(pace, 1, |chat, out| events(chat, out, index..index + 1));
    }
    tape.tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

/// The first chunk at 60 ms; the end where one token each 10 ms would have ended.
pub(super) fn spec4(ask: &Ask) -> Script {
    const CHUNK: u64 = 4;
    let tokens = ask.tokens();
    let mut tape = Tape::new(ask).role(Length::ZERO);
    for from in (0..tokens).step_by(4) {
        let to = tokens.min(from + CHUNK);
        tape = tape.write(at(Pace::USUAL, from), to - from, |chat, out| {
            chat.text(out, Kind::Answer, from..to);
        });
    }
    tape.tail(When::At(Pace::USUAL.last(tokens)), Tail::of(ask, tokens, 0))
}

pub(super) fn three_quarters(tokens: u64) -> u64 {
    tokens * 3 / 4
}

pub(super) fn reasoned(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let reasoning = three_quarters(tokens);
    Tape::new(ask)
        .role(Length::ZERO)
        .tokens(Pace::USUAL, Kind::Reasoning, 0..reasoning)
        .tokens(Pace::USUAL, Kind::Answer, reasoning..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, reasoning))
}

pub(super) fn no_done(ask: &Ask) -> Script {
    tailed(ask, |tail| Tail {
        done: false,
        ..tail
    })
}

pub(super) fn no_usage(ask: &Ask) -> Script {
    tailed(ask, |tail| Tail {
        usage: None,
        ..tail
    })
}

/// One token less than asked for, and the stop token that is counted and never arrives.
pub(super) fn stop_token(ask: &Ask) -> Script {
    let counted = ask.tokens().max(2);
    let tail = Tail {
        reason: "stop",
        usage: Some((counted, 0)),
        done: true,
    };
    paced(Tape::new(ask), Pace::USUAL, counted - 1).tail(AT_ONCE, tail)
}

pub(super) fn no_space(ask: &Ask) -> Script {
    styled(
        ask,
        Style {
            field: "data:",
            ..Style::PLAIN
        },
    )
}

pub(super) fn crlf(ask: &Ask) -> Script {
    styled(
        ask,
        Style {
            eol: "\r\n",
            ..Style::PLAIN
        },
    )
}

pub(super) fn closes(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let tape = Tape::new(ask).until_close();
    paced(tape, Pace::USUAL, tokens).tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

pub(super) fn keep_alives(ask: &Ask) -> Script {
    let (tokens, pace) = (ask.tokens(), Pace::USUAL);
    let mut tape = Tape::new(ask).head_first();
    for ping in [10, 20, 30, 40, 50] {
        tape = tape.write(When::At(millis(ping)), 0, |chat, out| chat.ping(out));
    }
    tape.role(pace.first)
        .tokens(pace, Kind::Answer, 0..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

/// Writes of about 16 KiB, none of them planned later than the request.
pub(super) fn unpaced(ask: &Ask) -> Script {
    const WRITE: usize = 16 * 1024;
    let tokens = ask.tokens();
    let bytes = Chat::new(ask, Style::PLAIN).token_bytes();
    let group = u64::try_from(WRITE / bytes).unwrap_or(1).max(1);
    let mut tape = Tape::new(ask).role(Length::ZERO);
    let mut from = 0;
    while from < tokens {
        let to = tokens.min(from + group);
        tape = tape.burst(Length::ZERO, from..to);
        from = to;
    }
    tape.tail(AT_ONCE, Tail::of(ask, tokens, 0))
}
