//! Owns the scripts that are `normal` in other spellings: line ends, marks, fields, small writes.

use measure::time::Length;

use super::paced::{normal, paced};
use crate::sim::ask::Ask;
use crate::sim::script::{Act, Script, Step, When};
use crate::sim::tape::{AT_ONCE, Pace, Tail, Tape};
use crate::sim::voices::Kind;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// `script` with the bytes of each write spelled anew; not of an answer that is no stream.
pub(super) fn respelled(
    ask: &Ask,
    mut script: Script,
    mut spell: impl FnMut(&[u8]) -> Vec<u8>,
) -> Script {
    if ask.stream {
        for step in &mut script.steps {
            if let Act::Write { bytes, .. } | Act::Repeat { bytes, .. } = &mut step.act {
                *bytes = spell(bytes);
            }
        }
    }
    script
}

/// Every line end by `end`. JSON holds no bare line end, so each of them ends a line.
fn ended(bytes: &[u8], mut end: impl FnMut() -> &'static [u8]) -> Vec<u8> {
    let mut spelled = Vec::with_capacity(bytes.len() * 2);
    for &byte in bytes {
        if byte == b'\n' {
            spelled.extend_from_slice(end());
        } else {
            spelled.push(byte);
        }
    }
    spelled
}

pub(super) fn crlf(ask: &Ask) -> Script {
    respelled(ask, normal(ask), |bytes| ended(bytes, || b"\r\n"))
}

pub(super) fn cr(ask: &Ask) -> Script {
    respelled(ask, normal(ask), |bytes| ended(bytes, || b"\r"))
}

/// LF, CR LF and CR in turn. A CR is never followed by a LF of the next line end, which would make
/// one line end of two: behind a CR comes CR LF.
pub(super) fn mixed_eol(ask: &Ask) -> Script {
    let mut ends = [b"\n".as_slice(), b"\r", b"\r\n"].into_iter().cycle();
    respelled(ask, normal(ask), |bytes| {
        ended(bytes, || ends.next().unwrap_or(b"\n"))
    })
}

pub(super) fn no_space(ask: &Ask) -> Script {
    respelled(ask, normal(ask), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.split_inclusive('\n');
        lines
            .map(|line| line.replacen("data: ", "data:", usize::from(line.starts_with("data: "))))
            .map(|line| {
                line.replacen(
                    "event: ",
                    "event:",
                    usize::from(line.starts_with("event: ")),
                )
            })
            .collect::<String>()
            .into_bytes()
    })
}

pub(super) fn bom(ask: &Ask) -> Script {
    let mut mark = Some(BOM);
    respelled(ask, normal(ask), |bytes| {
        [mark.take().unwrap_or_default(), bytes].concat()
    })
}

/// Each byte of the mark in a write of its own.
pub(super) fn split_bom(ask: &Ask) -> Script {
    let mut script = normal(ask);
    if ask.stream {
        let marks = BOM.iter().map(|byte| Step {
            when: When::At(Length::ZERO),
            act: Act::Write {
                bytes: vec![*byte],
                tokens: 0,
            },
        });
        script.steps.splice(0..0, marks);
    }
    script
}

pub(super) fn one_byte(ask: &Ask) -> Script {
    Script {
        most_at_once: Some(1),
        ..normal(ask)
    }
}

/// `normal` with another text in its tokens, which are as many; each text as it stands in JSON.
pub(super) fn texts(ask: &Ask, texts: &[&[u8]]) -> Script {
    let tokens = ask.tokens();
    let mut tape = paced(Tape::new(ask), Pace::USUAL, 0);
    for (index, text) in (0..tokens).zip(texts.iter().cycle()) {
        tape = tape.write(When::At(Pace::USUAL.token(index)), 1, |speech| {
            speech.text(Kind::Answer, text);
        });
    }
    tape.tail(AT_ONCE, Tail::of(ask, tokens, 0))
}

/// Signs of two, three and four bytes, and a pair of escapes, byte by byte.
pub(super) fn one_byte_emoji(ask: &Ask) -> Script {
    let signs: [&[u8]; 4] = [
        " é".as_bytes(),
        " 中文".as_bytes(),
        " 🙂".as_bytes(),
        b" \\ud83d\\ude42",
    ];
    Script {
        most_at_once: Some(1),
        ..texts(ask, &signs)
    }
}
