//! Owns the scripts that stream: output comes while it would be made.

use measure::time::Length;

use super::{at, millis};
use crate::sim::ask::Ask;
use crate::sim::script::{Script, When};
use crate::sim::tape::{AT_ONCE, Pace, Tail, Tape};
use crate::sim::voices::{Kind, Reason, Tool, Usage, words};

/// Head and role at once, as servers do that have accepted a request; then a token a write.
pub(super) fn paced(tape: Tape<'_>, pace: Pace, tokens: u64) -> Tape<'_> {
    tape.role(Length::ZERO)
        .tokens(pace, Kind::Answer, 0..tokens)
}

fn steady(ask: &Ask, first: u64, each: u64) -> Script {
    let tokens = ask.tokens();
    let pace = Pace {
        first: millis(first),
        each: millis(each),
    };
    paced(Tape::new(ask), pace, tokens).tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

fn tailed(ask: &Ask, alter: fn(Tail) -> Tail) -> Script {
    let tokens = ask.tokens();
    let tail = alter(Tail::of(ask, tokens, 0));
    paced(Tape::new(ask), Pace::USUAL, tokens).tail(AT_ONCE, tail)
}

pub(super) fn normal(ask: &Ask) -> Script {
    steady(ask, 60, 10)
}

pub(super) fn streams(ask: &Ask) -> Script {
    steady(ask, 50, 10)
}

pub(super) fn slow_start(ask: &Ask) -> Script {
    steady(ask, 600, 10)
}

pub(super) fn paced100(ask: &Ask) -> Script {
    steady(ask, 100, 10)
}

pub(super) fn paced20(ask: &Ask) -> Script {
    steady(ask, 100, 50)
}

/// What comes first is not the first text.
pub(super) fn early_role(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let pace = Pace {
        first: millis(900),
        each: millis(10),
    };
    Tape::new(ask)
        .role(millis(5))
        .tokens(pace, Kind::Answer, 0..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
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
        tape = tape.write(pace, 1, |speech| speech.each(index..index + 1));
    }
    tape.tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

/// The first chunk at 60 ms; the end where one token each 10 ms would have ended.
fn chunked(ask: &Ask, chunk: u64) -> Script {
    let tokens = ask.tokens();
    let mut tape = Tape::new(ask).role(Length::ZERO);
    let mut from = 0;
    while from < tokens {
        let to = tokens.min(from + chunk);
        tape = tape.write(at(Pace::USUAL, from), to - from, |speech| {
            speech.tokens(Kind::Answer, from..to);
        });
        from = to;
    }
    tape.tail(When::At(Pace::USUAL.last(tokens)), Tail::of(ask, tokens, 0))
}

pub(super) fn spec4(ask: &Ask) -> Script {
    chunked(ask, 4)
}

pub(super) fn spec5(ask: &Ask) -> Script {
    chunked(ask, 5)
}

fn three_quarters(tokens: u64) -> u64 {
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

/// A quarter of the reasoning's length is shown, in summary; all of it is counted.
pub(super) fn summary(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let reasoning = three_quarters(tokens);
    Tape::new(ask)
        .role(Length::ZERO)
        .tokens(Pace::USUAL, Kind::Summary, 0..reasoning / 4)
        .tokens(Pace::USUAL, Kind::Answer, reasoning..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, reasoning))
}

/// Of 78 tokens, 64 are reasoning that nobody sees; the rest comes when it is over.
pub(super) fn hidden(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let reasoning = tokens * 64 / 78;
    let mut tape = Tape::new(ask).role(Length::ZERO);
    let pace = Pace {
        first: Pace::USUAL.token(reasoning),
        each: millis(30),
    };
    for index in reasoning..tokens {
        tape = tape.write(at(pace, index - reasoning), 1, |speech| {
            speech.each(index..index + 1);
        });
    }
    tape.tail(AT_ONCE, Tail::of(ask, tokens, reasoning))
}

/// The name with the first token; each token is a piece of the arguments.
pub(super) fn tool(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    let mut tape = Tape::new(ask).role(Length::ZERO);
    for index in 0..tokens {
        let word = words(ask.serial, index..index + 1);
        let word = String::from_utf8_lossy(&word).into_owned();
        tape = tape.write(at(Pace::USUAL, index), 1, |speech| {
            if index == 0 {
                speech.tool(Tool::Begin);
                speech.tool(Tool::Arguments("{\"text\":\""));
            }
            speech.tool(Tool::Arguments(&word));
            if index + 1 == tokens {
                speech.tool(Tool::Arguments("\"}"));
                speech.tool(Tool::End);
            }
        });
    }
    tape.tail(AT_ONCE, Tail::of(ask, tokens, 0).because(Reason::Tool))
}

pub(super) fn refusal(ask: &Ask) -> Script {
    let tokens = ask.tokens();
    Tape::new(ask)
        .role(Length::ZERO)
        .tokens(Pace::USUAL, Kind::Refusal, 0..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
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

/// The usage is honest with itself and wrong about the text.
pub(super) fn wrong_usage(ask: &Ask) -> Script {
    const STATED: u64 = 5;
    tailed(ask, |tail| Tail {
        usage: tail.usage.map(|usage| Usage {
            completion: STATED,
            total: usage.prompt + STATED,
            ..usage
        }),
        ..tail
    })
}

pub(super) fn wrong_total(ask: &Ask) -> Script {
    tailed(ask, |tail| Tail {
        usage: tail.usage.map(|usage| Usage {
            total: usage.total + 7,
            ..usage
        }),
        ..tail
    })
}

/// One token less than asked for, and the stop token that is counted and never arrives.
pub(super) fn stop_token(ask: &Ask) -> Script {
    let counted = ask.tokens().max(2);
    let tail = Tail::of(ask, counted, 0).because(Reason::Stop);
    paced(Tape::new(ask), Pace::USUAL, counted - 1).tail(AT_ONCE, tail)
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
        tape = tape.write(When::At(millis(ping)), 0, |speech| speech.ping());
    }
    tape.role(pace.first)
        .tokens(pace, Kind::Answer, 0..tokens)
        .tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

/// Writes of about 16 KiB, none of them planned later than the request.
pub(super) fn unpaced(ask: &Ask) -> Script {
    const GROUP: u64 = 16 * 1024 / 330;
    let tokens = ask.tokens();
    let mut tape = Tape::new(ask).role(Length::ZERO);
    let mut from = 0;
    while from < tokens {
        let to = tokens.min(from + GROUP);
        tape = tape.burst(Length::ZERO, from..to);
        from = to;
    }
    tape.tail(AT_ONCE, Tail::of(ask, tokens, 0))
}
