//! Owns which "per …" and "each …" of a text stands with a rate: only one that shares its phrase.

use std::ops::Range;

use super::entity::{Class, Entity, entity_of, time_of};
use super::lex::Tok;
use super::numerals::number;
use super::words::word;

/// "per GPU", "for each user", "every session" and "each" alone, where they stand with the rate at
/// `rate`. Those of another phrase ("8 GPUs each", "each request had 1,000 tokens") say nothing.
pub(super) fn per_entity(
    toks: &[Tok],
    range: &Range<usize>,
    rate: &Range<usize>,
) -> Option<Entity> {
    range
        .clone()
        .filter(|at| !rate.contains(at))
        .find_map(|at| match word(toks, at)? {
            "per" => per(toks, at, rate),
            "each" | "every" => each(toks, at, rate),
            _ => None,
        })
}

/// Words that may stand between a rate and what it is per.
const BETWEEN: [&str; 22] = [
    "for",
    "to",
    "on",
    "in",
    "by",
    "from",
    "output",
    "decode",
    "decoding",
    "generation",
    "generated",
    "throughput",
    "speed",
    "rate",
    "of",
    "or",
    "more",
    "plus",
    "sustained",
    "total",
    "equivalent",
    "served",
];

/// Whether only such words stand in `gap`, from a rate's end to "per" or "each".
fn follows(toks: &[Tok], gap: Range<usize>) -> bool {
    let last = gap.end.saturating_sub(1);
    let opens = |at: usize| at == last && matches!(toks[at].sign(), Some('(' | ','));
    gap.len() <= 4
        && gap
            .clone()
            .all(|at| opens(at) || word(toks, at).is_some_and(|w| BETWEEN.contains(&w)))
}

/// Whether the words in `gap`, from "each user" to a rate, make the one the subject of the other:
/// no other subject, no other clause, and no other number unless "and" joins it.
fn leads(toks: &[Tok], gap: Range<usize>) -> bool {
    let mut number_open = false;
    for at in gap {
        let Some(word_here) = word(toks, at) else {
            if toks[at]
                .sign()
                .is_some_and(|sign| !"~≈<>≤≥=".contains(sign))
            {
                return false;
            }
            number_open = true;
            continue;
        };
        let other_clause = matches!(
            word_here,
            "while" | "whereas" | "when" | "where" | "but" | "so" | "then" | "we" | "it" | "they"
        );
        let other_subject =
            entity_of(word_here).is_some_and(|e| matches!(e.class, Class::Machine | Class::Whole));
        if other_clause || other_subject {
            return false;
        }
        if word_here == "and" {
            if matches!(
                word(toks, at + 1),
                Some("the" | "our" | "a" | "this" | "its")
            ) {
                return false;
            }
            number_open = false;
        }
    }
    !number_open
}

/// "per user" right after a rate, or before it as a word of the rate: "per-user speed of 30 tok/s".
fn per(toks: &[Tok], at: usize, rate: &Range<usize>) -> Option<Entity> {
    let entity_at = (at + 1..at + 4).find(|i| word(toks, *i).and_then(entity_of).is_some())?;
    let entity = word(toks, entity_at).and_then(entity_of)?;
    if word(toks, at + 1).and_then(time_of).is_some() {
        return None;
    }
    if at >= rate.end {
        return follows(toks, rate.end..at).then_some(entity);
    }
    let of_the_rate = at.checked_sub(1).is_none_or(|before| {
        word(toks, before).is_none_or(|w| RATE_WORDS.contains(&w))
            && toks[before].number().is_none()
    });
    let plain = (entity_at + 1..rate.start).all(|i| {
        toks[i].number().is_none() && !matches!(toks[i].sign(), Some(';' | ',' | '.' | '|'))
    });
    (of_the_rate && plain).then_some(entity)
}

/// Words before "per" that make it a rate's.
const RATE_WORDS: [&str; 24] = [
    "throughput",
    "speed",
    "speeds",
    "rate",
    "rates",
    "performance",
    "tps",
    "decode",
    "generation",
    "output",
    "is",
    "was",
    "a",
    "an",
    "the",
    "of",
    "with",
    "at",
    "as",
    "and",
    "or",
    "means",
    "reached",
    "measured",
];

fn each(toks: &[Tok], at: usize, rate: &Range<usize>) -> Option<Entity> {
    let next = toks.get(at + 1);
    let time = word(toks, at + 1).and_then(time_of).is_some();
    if time || next.is_some_and(|tok| tok.number().is_some()) {
        return None;
    }
    // "500 tok/s, each request had 1,000 tokens" begins a clause of its own.
    let after_comma = at > 0 && toks[at - 1].sign() == Some(',');
    if at >= rate.end && after_comma && next.is_some_and(|tok| tok.word().is_some()) {
        return None;
    }
    if let Some((entity, to)) = named(toks, at + 1) {
        let bound = match at < rate.start {
            true => leads(toks, to..rate.start),
            false => follows(toks, rate.end..at),
        };
        return bound.then_some(entity);
    }
    if word(toks, at) == Some("every") {
        return None;
    }
    match at < rate.start {
        true => subject(toks, at).filter(|_| leads(toks, at + 1..rate.start)),
        false if follows(toks, rate.end..at) => named_elsewhere(toks, at, rate),
        false => None,
    }
}

/// "each of the five users", "each active user": the entity, and the token after it.
fn named(toks: &[Tok], from: usize) -> Option<(Entity, usize)> {
    const FILLS: [&str; 14] = [
        "of",
        "the",
        "our",
        "these",
        "those",
        "its",
        "my",
        "all",
        "active",
        "single",
        "individual",
        "concurrent",
        "parallel",
        "simultaneous",
    ];
    let mut at = from;
    while at < from + 5 {
        if let Some(entity) = word(toks, at).and_then(entity_of) {
            return Some((entity, at + 1));
        }
        match number(toks, at) {
            Some((_, to)) => at = to,
            None if word(toks, at).is_some_and(|w| FILLS.contains(&w)) => at += 1,
            None => return None,
        }
    }
    None
}

/// "16 users each get 31 tok/s": the noun before "each". "nodes of 8 GPUs each" is not of the GPUs.
fn subject(toks: &[Tok], each_at: usize) -> Option<Entity> {
    let noun_at = each_at.checked_sub(1)?;
    let entity = word(toks, noun_at).and_then(entity_of)?;
    let part = (noun_at.saturating_sub(3)..noun_at)
        .any(|at| matches!(word(toks, at), Some("of" | "with" | "having" | "x")));
    (!part || entity.class != Class::Machine).then_some(entity)
}

/// "eight GPUs at 10,000 tok/s each": what was named before it, else after it, if that is of one
/// class; a stream where the text names none of either.
fn named_elsewhere(toks: &[Tok], each_at: usize, rate: &Range<usize>) -> Option<Entity> {
    let sentence = |at: &usize| !matches!(toks[*at].sign(), Some('.' | '!' | '?'));
    let mut all = entities(toks, (0..rate.start).rev().take_while(sentence));
    if all.is_empty() {
        all = entities(toks, (each_at + 1..toks.len()).take_while(sentence));
    }
    let machine = all.iter().any(|e| e.class == Class::Machine);
    let stream = all.iter().any(|e| e.class != Class::Machine);
    match (machine, stream) {
        (true, true) => None,
        (false, false) => entity_of("stream"),
        _ => all.first().copied(),
    }
}

fn entities(toks: &[Tok], at: impl Iterator<Item = usize>) -> Vec<Entity> {
    at.filter_map(|i| word(toks, i).and_then(entity_of).map(|entity| (i, entity)))
        .filter(|(i, entity)| match entity.class {
            Class::Stream | Class::Worker => true,
            // "sixteen users on one server, 31 tok/s each" is not of the server.
            Class::Machine => several(toks, *i),
            _ => false,
        })
        .map(|(_, entity)| entity)
        .collect()
}

/// Whether the machine named at `at` is more than one: "GPUs", "8 H100".
fn several(toks: &[Tok], at: usize) -> bool {
    let number = at
        .checked_sub(1)
        .and_then(|i| toks.get(i))
        .and_then(Tok::number);
    number.is_some_and(|n| n > 1.0) || word(toks, at).is_some_and(|w| w.ends_with('s'))
}
