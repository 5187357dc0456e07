//! Owns the scripts whose texts harm whoever prints or parses them carelessly.

use super::spelled::texts;
use crate::sim::ask::Ask;
use crate::sim::replies::refusal;
use crate::sim::script::Script;
use crate::sim::voices::escaped;

/// A formula, the end of a script element, a write to the clipboard, an erased screen, text that
/// runs backwards, table borders, a NUL.
const TEXTS: [&str; 8] = [
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd",
    "</script><script>alert(1)</script>",
    "\u{1b}]52;c;c2lt\u{7}",
    "\u{1b}[2J\u{1b}[31m",
    "\u{202e}gnp.exe\u{2066}",
    "| `a` | <b> &",
    "\u{0}\u{9b}31m",
];
/// A long text has so many characters.
const LONG: usize = 1 << 20;

pub(super) fn hostile_text(ask: &Ask) -> Script {
    let escapes: Vec<Vec<u8>> = TEXTS.iter().map(|text| escaped(text)).collect();
    let views: Vec<&[u8]> = escapes.iter().map(Vec::as_slice).collect();
    texts(ask, &views)
}

pub(super) fn hostile_error(ask: &Ask) -> Script {
    let message = TEXTS.join(" ");
    refusal(ask.dialect, 500, &message, &message, Some(&message))
}

pub(super) fn hostile_mid_error(ask: &Ask) -> Script {
    let (tape, next) = super::faulty::begun(ask, 10);
    let message = TEXTS.join(" ");
    tape.write(
        super::at(crate::sim::tape::Pace::USUAL, next),
        0,
        |speech| {
            speech.error_saying(&message);
        },
    )
    .end(
        crate::sim::tape::AT_ONCE,
        crate::sim::script::Ending::Proper,
    )
}

/// The answer names another model than was asked for, which is a hostile text.
pub(super) fn hostile_model(ask: &Ask) -> Script {
    let ask = Ask {
        model: TEXTS.join(" "),
        ..ask.clone()
    };
    super::paced::normal(&ask)
}

/// An error message of 1 MiB.
pub(super) fn long_error(ask: &Ask) -> Script {
    let message = "=long ".repeat(LONG / 6);
    refusal(ask.dialect, 500, &message, "server_error", None)
}

/// The first token's text has 1 MiB.
pub(super) fn long_text(ask: &Ask) -> Script {
    let ask = Ask {
        max_tokens: Some(ask.tokens().min(4)),
        ..ask.clone()
    };
    let long = b"=long ".repeat(LONG / 6);
    texts(&ask, &[&long, b" b", b" c", b" d"])
}

/// Half of a surrogate pair, escaped: no text, and no reason to lose what else its event says.
pub(super) fn lone_surrogate(ask: &Ask) -> Script {
    texts(ask, &[b" aaaaaaa", b" \\ud83d aaa"])
}

pub(super) fn invalid_utf8(ask: &Ask) -> Script {
    texts(ask, &[b" aaaaaaa", b" aa\xff\xc3 aa", b" aa\xf0\x9f aa"])
}

pub(super) fn nul(ask: &Ask) -> Script {
    texts(ask, &[b" aaaaaaa", b" aa\\u0000aa"])
}

/// Signs that some take for line ends: U+2028, U+2029, U+0085.
pub(super) fn line_separators(ask: &Ask) -> Script {
    texts(ask, &[b" aaaaaaa", " a\u{2028}b\u{2029}c\u{85}".as_bytes()])
}
