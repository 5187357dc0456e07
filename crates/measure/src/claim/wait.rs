//! Owns the words on the wait for the first token: whether a rate's time contains it.

use std::ops::Range;

use super::lex::Tok;
use super::words::{find, is_feature, stands, word};

/// Words that put the wait for the first token into the time.
const WITH_THE_WAIT: [&str; 20] = [
    "end to end",
    "e2e",
    "including ttft",
    "including prefill",
    "including the prefill",
    "including time to first token",
    "including the wait",
    "including prompt processing",
    "including first token",
    "including the first token",
    "includes ttft",
    "includes prefill",
    "prefill included",
    "ttft included",
    "wall clock",
    "from request to last token",
    "including queueing",
    "including the time to first token",
    "includes the wait",
    "from sending",
];

/// Words that leave it out.
const WITHOUT_THE_WAIT: [&str; 28] = [
    "after the first token",
    "after first token",
    "after first chunk",
    "after the first chunk",
    "excluding ttft",
    "excluding prefill",
    "excluding the prefill",
    "excludes ttft",
    "excluding time to first token",
    "excluding the first token",
    "excluding prompt",
    "without ttft",
    "without prefill",
    "without the wait",
    "not counting ttft",
    "not counting prefill",
    "not including ttft",
    "not including prefill",
    "decode",
    "decoding",
    "decodes",
    "ignoring prefill",
    "ignoring ttft",
    "once it starts",
    "inter token",
    "not counting the wait",
    "excluding the wait",
    "prefill excluded",
];

/// "TTFT of 300 ms not counted", "TTFT excluded", "without counting the prefill".
fn left_out(toks: &[Tok], range: &Range<usize>) -> bool {
    const WAIT: [&str; 4] = ["ttft", "time to first token", "prefill", "first token"];
    const AFTER: [&str; 5] = [
        "excluded",
        "not counted",
        "not included",
        "left out",
        "ignored",
    ];
    const BEFORE: [&str; 3] = ["without counting", "without including", "leaving out"];
    find(toks, range, &WAIT).iter().any(|(at, phrase)| {
        let from = at + phrase.split(' ').count();
        let clause = from..(from..from + 6)
            .find(|i| toks.get(*i).is_none_or(|tok| tok.sign().is_some()))
            .unwrap_or(from + 6);
        let article = usize::from(*at > 0 && word(toks, at - 1) == Some("the"));
        let before = at
            .checked_sub(2 + article)
            .is_some_and(|i| BEFORE.iter().any(|phrase| stands(toks, i, phrase)));
        before || !find(toks, &clause, &AFTER).is_empty()
    })
}

/// Whether the wait for the first token is in the time, where words say so.
pub(super) fn ttft_included(toks: &[Tok], range: &Range<usize>) -> Option<bool> {
    let out = find(toks, range, &WITHOUT_THE_WAIT)
        .iter()
        .any(|(at, phrase)| {
            // "decode GPU" names a machine.
            !phrase.starts_with("decod")
                || !is_feature(toks, *at)
                    && super::entity::entity_of(word(toks, at + 1).unwrap_or("")).is_none()
        })
        || left_out(toks, range);
    let included = find(toks, range, &WITH_THE_WAIT)
        .iter()
        .any(|(at, _)| at.checked_sub(1).and_then(|i| word(toks, i)) != Some("not"));
    match (included, out) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}
