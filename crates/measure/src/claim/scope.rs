//! Owns the scope of a number: system or one stream, by explicit words and by nothing else.

use std::ops::Range;

use super::entity::{Class, Entity, entity_of, time_of};
use super::lex::Tok;
use super::words::{find, word};
use crate::stated::Scope;

/// What the words around a number say of its scope; where they say both, nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Said {
    pub scope: Option<Scope>,
    pub per: Option<Entity>,
}

/// The scope of a number whose unit is written at `unit_at` within `range`.
pub(super) fn said(toks: &[Tok], range: &Range<usize>, unit_at: &Range<usize>) -> Said {
    let per = per_entity(toks, range, unit_at);
    let of_entity = per.and_then(|entity| scope_of(entity.class));
    let stream = of_entity == Some(Scope::PerStream) || !find(toks, range, &STREAM).is_empty();
    let system = of_entity == Some(Scope::System) || is_system(toks, range, unit_at.end);
    let scope = match (system, stream) {
        (true, false) => Some(Scope::System),
        (false, true) => Some(Scope::PerStream),
        _ => None,
    };
    Said {
        scope,
        per: per.filter(|_| !(system && stream)),
    }
}

/// What a denominator says of the scope. A cost does not.
pub(super) fn scope_of(class: Class) -> Option<Scope> {
    match class {
        Class::Stream | Class::Worker => Some(Scope::PerStream),
        Class::Machine | Class::Whole => Some(Scope::System),
        Class::Cost => None,
    }
}

const STREAM: [&str; 22] = [
    "apiece",
    "single user",
    "single stream",
    "single request",
    "single session",
    "single client",
    "single sequence",
    "single query",
    "single conversation",
    "individual user",
    "individual users",
    "individual stream",
    "individual streams",
    "individual request",
    "individual requests",
    "one user",
    "one stream",
    "one session",
    "user level",
    "user facing",
    "per stream",
    "any one user",
];

/// Words for all streams together.
const SYSTEM: [&str; 40] = [
    "aggregate",
    "aggregated",
    "aggregates",
    "in aggregate",
    "combined",
    "collectively",
    "altogether",
    "cumulative",
    "in total",
    "system wide",
    "systemwide",
    "cluster wide",
    "fleet wide",
    "server wide",
    "total throughput",
    "total output throughput",
    "total rate",
    "total speed",
    "total capacity",
    "total system",
    "overall throughput",
    "overall rate",
    "system throughput",
    "system output",
    "server throughput",
    "cluster throughput",
    "node throughput",
    "whole system",
    "whole server",
    "whole cluster",
    "whole fleet",
    "whole machine",
    "entire system",
    "entire server",
    "entire cluster",
    "entire fleet",
    "across all",
    "summed",
    "sum of",
    "sum over",
];

fn is_system(toks: &[Tok], range: &Range<usize>, unit_end: usize) -> bool {
    let found = find(toks, range, &SYSTEM);
    let combined_tokens = |at: usize| {
        matches!(
            toks.get(at).and_then(Tok::word),
            Some("combined" | "aggregate")
        ) && word(toks, at + 1) == Some("tokens")
            && word(toks, at) == Some("combined")
    };
    let named = found.iter().any(|(at, _)| !combined_tokens(*at));
    // "500 tok/s total", "for all users", "all sixteen streams together".
    let trailing = range.clone().any(|at| {
        let all = word(toks, at) == Some("all") && {
            let next = at + 1 + usize::from(super::quantity::number(toks, at + 1).is_some());
            word(toks, next)
                .and_then(entity_of)
                .is_some_and(|e| e.class == Class::Stream)
                && matches!(word(toks, next + 1), Some("together" | "combined"))
        };
        at == unit_end && matches!(word(toks, at), Some("total" | "overall")) || all
    });
    named || trailing
}

/// "per GPU", "for each user", "every session", and "each" alone.
fn per_entity(toks: &[Tok], range: &Range<usize>, unit_at: &Range<usize>) -> Option<Entity> {
    for at in range.clone().filter(|at| !unit_at.contains(at)) {
        let Some(first) = word(toks, at) else {
            continue;
        };
        let entity = match first {
            "per" if !counts_before(toks, at) => after_qualifiers(toks, at + 1),
            "each" | "every" => each(toks, range, at),
            _ => None,
        };
        if entity.is_some() {
            return entity;
        }
    }
    None
}

/// "2,000 tokens per request" says how long a request is.
fn counts_before(toks: &[Tok], at: usize) -> bool {
    at.checked_sub(1)
        .and_then(|i| word(toks, i))
        .is_some_and(|w| {
            matches!(
                w,
                "token"
                    | "tokens"
                    | "tok"
                    | "requests"
                    | "words"
                    | "users"
                    | "streams"
                    | "sessions"
                    | "turns"
                    | "dollars"
                    | "gpus"
                    | "input"
                    | "output"
            )
        })
}

fn after_qualifiers(toks: &[Tok], from: usize) -> Option<Entity> {
    (from..from + 3)
        .find_map(|at| word(toks, at).and_then(entity_of))
        .filter(|_| word(toks, from).and_then(time_of).is_none())
}

fn each(toks: &[Tok], range: &Range<usize>, at: usize) -> Option<Entity> {
    let next = word(toks, at + 1);
    if next.and_then(time_of).is_some() || toks.get(at + 1).is_some_and(|t| t.number().is_some()) {
        return None;
    }
    // "each of the five users", "each user".
    let named = (at + 1..at + 5)
        .take_while(|i| toks.get(*i).is_some_and(|tok| tok.sign().is_none()))
        .find_map(|i| word(toks, i).and_then(entity_of));
    if named.is_some() {
        return named;
    }
    if word(toks, at) == Some("every") {
        return None;
    }
    // "eight GPUs at 10,000 tok/s each": what was named before it, if that is of one class.
    let before: Vec<Entity> = (0..at)
        .rev()
        .take_while(|i| toks[*i].sign() != Some('.'))
        .filter_map(|i| word(toks, i).and_then(entity_of).map(|entity| (i, entity)))
        .filter(|(i, e)| match e.class {
            Class::Stream | Class::Worker => true,
            // "sixteen users on one server, 31 tok/s each" is not of the server.
            Class::Machine => several(toks, *i),
            _ => false,
        })
        .map(|(_, entity)| entity)
        .collect();
    let machine = before.iter().any(|e| e.class == Class::Machine);
    let stream = before.iter().any(|e| e.class != Class::Machine);
    match (machine, stream) {
        (true, true) => None,
        (false, false) => entity_of("stream").filter(|_| range.contains(&at)),
        _ => before.first().copied(),
    }
}

/// Whether the machine named at `at` is more than one: "GPUs", "8 H100".
fn several(toks: &[Tok], at: usize) -> bool {
    let number = at
        .checked_sub(1)
        .and_then(|i| toks.get(i))
        .and_then(Tok::number);
    number.is_some_and(|n| n > 1.0) || word(toks, at).is_some_and(|w| w.ends_with('s'))
}
