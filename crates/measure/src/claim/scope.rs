//! Owns the scope of a number: system or one stream, by explicit words and by nothing else.

use std::ops::Range;

use super::binding;
use super::entity::{Class, Entity, entity_of};
use super::lex::Tok;
use super::words::{find, word};
use crate::stated::Scope;

/// What the words around a number say of its scope; where they say both, nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Said {
    pub scope: Option<Scope>,
    pub per: Option<Entity>,
}

/// The scope of the rate that stands at `rate` within `range`. `in_unit` is the denominator that
/// its unit has.
pub(super) fn said(
    toks: &[Tok],
    range: &Range<usize>,
    rate: &Range<usize>,
    in_unit: Option<Entity>,
) -> Said {
    let per = in_unit.or_else(|| binding::per_entity(toks, range, rate));
    let of_entity = per.and_then(|entity| scope_of(entity.class));
    let stream = of_entity == Some(Scope::PerStream) || !find(toks, range, &STREAM).is_empty();
    let system = of_entity == Some(Scope::System) || is_system(toks, range, rate.end);
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

const STREAM: [&str; 20] = [
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

fn is_system(toks: &[Tok], range: &Range<usize>, rate_end: usize) -> bool {
    let found = find(toks, range, &SYSTEM);
    let combined_tokens = |at: usize| {
        matches!(
            toks.get(at).and_then(Tok::word),
            Some("combined" | "aggregate")
        ) && word(toks, at + 1) == Some("tokens")
            && word(toks, at) == Some("combined")
    };
    // "25 tok/s per user, aggregate 400": the word belongs to the number after it.
    let of_next = |(at, phrase): &(usize, &str)| {
        let after = at + phrase.split(' ').count();
        *at >= rate_end && toks.get(after).is_some_and(|tok| tok.number().is_some())
    };
    let named = found
        .iter()
        .any(|hit| !combined_tokens(hit.0) && !of_next(hit));
    // "500 tok/s total", "for all users", "all sixteen streams together".
    let trailing = range.clone().any(|at| {
        let all = word(toks, at) == Some("all") && {
            let next = super::numerals::number(toks, at + 1).map_or(at + 1, |(_, to)| to);
            let noun = word(toks, next)
                .and_then(entity_of)
                .is_some_and(|e| e.class == Class::Stream);
            let counted = noun || next > at + 1;
            let end = next + usize::from(noun);
            counted && matches!(word(toks, end), Some("together" | "combined"))
        };
        at == rate_end && matches!(word(toks, at), Some("total" | "overall")) || all
    });
    named || trailing
}
