//! Owns the search for numbers that are claims: rates first, then what only looks like one.

use std::ops::Range;

use super::entity::{Class, Time, entity_of, time_of};
use super::lex::Tok;
use super::machines::Devices;
use super::numerals::number;
use super::quantity::{Bound, Quantity, quantity};
use super::unit::{Unit, unit};
use super::words::word;

/// What sort of number it is, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    /// So many of something in a base of time.
    Rate,
    /// So many times something else.
    Ratio,
    /// So many of something in a length of time, both stated: the rate is computed.
    CountOver,
    /// So many of something per machine, worker or cost, without a time.
    PerEntity,
    /// A length of time.
    Duration,
    /// A length of time that one request or token takes.
    Latency,
    /// A number without a unit.
    Bare,
}

/// A number that may be the claim.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub quantity: Quantity,
    pub sort: Sort,
    pub unit: Option<Unit>,
    /// Where the unit was written; empty where it was taken over from the number before.
    pub unit_at: Range<usize>,
    /// First token of it.
    pub from: usize,
    /// First token after it.
    pub to: usize,
    /// Of a count over a time: the base of that time, and how many of it.
    pub over: Option<(Time, f64)>,
}

/// All numbers of the text that are claims, in its order.
pub(super) fn candidates(
    toks: &[Tok],
    load: &[Range<usize>],
    machines: &[Devices],
) -> Vec<Candidate> {
    let mut found = after_numbers(toks, load);
    if !found.iter().any(|candidate| candidate.sort == Sort::Rate) {
        found.extend(before_numbers(toks, load));
        found.sort_by_key(|candidate| candidate.from);
    }
    if found.is_empty() {
        found = bare(toks, load, machines);
    }
    // A length of time or a bare number beside a rate is no claim of its own.
    if found
        .iter()
        .any(|candidate| candidate.sort < Sort::Duration)
    {
        found.retain(|candidate| candidate.sort < Sort::Duration);
    }
    found
}

/// Which of the candidates is the claim: the first of the best sort.
pub(super) fn first(candidates: &[Candidate]) -> Option<usize> {
    (0..candidates.len()).min_by_key(|index| candidates[*index].sort)
}

fn after_numbers(toks: &[Tok], load: &[Range<usize>]) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    // "batch 32 per GPU" is no rate.
    let of_load = |at: usize| load.iter().any(|used| used.contains(&at));
    let mut at = 0;
    while at < toks.len() {
        let next = quantity(toks, at)
            .filter(|_| !is_price(toks, at))
            .and_then(|quantity| {
                let last = found.iter().rev().find(|c| c.sort == Sort::Rate);
                with_unit(toks, &quantity)
                    .or_else(|| inherited(toks, &quantity, last.filter(|_| !of_load(at))))
                    .or_else(|| ratio(toks, &quantity))
                    .or_else(|| duration(toks, &quantity))
            })
            .or_else(|| multiple(toks, at));
        match next {
            Some(candidate) => {
                at = candidate.to.max(at + 1);
                found.push(candidate);
            }
            // Past the number, so that "two hundred" is not read again as "hundred".
            None => at = number(toks, at).map_or(at + 1, |(_, to)| to.max(at + 1)),
        }
    }
    found
}

fn is_price(toks: &[Tok], at: usize) -> bool {
    at > 0 && matches!(toks[at - 1].sign(), Some('$' | '€' | '£'))
}

fn with_unit(toks: &[Tok], quantity: &Quantity) -> Option<Candidate> {
    let unit = unit(toks, quantity.to)?;
    // "500 tok/s plus": the bound may follow the unit.
    let (quantity, to) = match or_more(toks, unit.to) {
        Some(to) => (
            &Quantity {
                bound: Bound::AtLeast,
                ..quantity.clone()
            },
            to,
        ),
        None => (quantity, unit.to),
    };
    // "500-token requests" are that long.
    if unit.time.is_none() && word(toks, unit.to - 1) == Some("token") {
        return None;
    }
    let of = |sort, over, to| Candidate {
        quantity: quantity.clone(),
        sort,
        unit: Some(unit.clone()),
        unit_at: quantity.to..unit.to,
        from: quantity.from,
        to,
        over,
    };
    if unit.time.is_some() {
        return Some(of(Sort::Rate, None, to));
    }
    if let Some((time, count, end)) = within(toks, to) {
        return Some(of(Sort::CountOver, Some((time, count)), end));
    }
    let per = unit.per.map(|per| per.class)?;
    // "2,000 tokens per request" is a length, not a rate that lost its time.
    (per != Class::Stream).then(|| of(Sort::PerEntity, None, to))
}

/// "plus", "+", "or more" after a unit, where nothing is added by it.
fn or_more(toks: &[Tok], at: usize) -> Option<usize> {
    let adds = |next: usize| {
        toks.get(next).is_some_and(|tok| tok.number().is_some()) || unit(toks, next).is_some()
    };
    match (word(toks, at), word(toks, at + 1)) {
        (Some("plus"), _) => (!adds(at + 1)).then_some(at + 1),
        (Some("or" | "and"), Some("more" | "up" | "better" | "above" | "higher")) => Some(at + 2),
        _ => (toks.get(at)?.sign()? == '+' && !adds(at + 1)).then_some(at + 1),
    }
}

/// "in 4.3 minutes" within a few words after a count.
fn within(toks: &[Tok], from: usize) -> Option<(Time, f64, usize)> {
    let last = |at: usize| matches!(word(toks, at), Some("last" | "this" | "past" | "previous"));
    if last(from)
        && let Some(time) = word(toks, from + 1).and_then(time_of)
    {
        return Some((time, 1.0, from + 2));
    }
    let at = (from..from + 6).find(|at| {
        matches!(
            word(toks, *at),
            Some("in" | "within" | "over" | "during" | "every")
        )
    })?;
    let stops = |at: &usize| matches!(toks.get(*at).and_then(Tok::sign), Some('.' | ';' | ','));
    if (from..at).any(|at| stops(&at)) {
        return None;
    }
    let article = usize::from(matches!(
        word(toks, at + 1),
        Some("a" | "an" | "one" | "that" | "the" | "single" | "last" | "this")
    ));
    let (count, to) = match number(toks, at + 1) {
        Some((count, to)) => (count, to),
        None if article == 1 => (1.0, at + 2),
        None => return None,
    };
    let time = word(toks, to).and_then(time_of)?;
    (count > 0.0).then_some((time, count, to + 1))
}

/// "2.7 per stream", "25 each" after a rate: the unit is that of the rate.
fn inherited(toks: &[Tok], quantity: &Quantity, last: Option<&Candidate>) -> Option<Candidate> {
    let last = last?.unit.as_ref()?;
    // "3.2M payments daily, peak 250/s".
    let slash = toks.get(quantity.to).and_then(Tok::sign) == Some('/');
    if let Some(time) = word(toks, quantity.to + 1)
        .and_then(time_of)
        .filter(|_| slash)
    {
        let to = quantity.to + 2;
        return Some(Candidate {
            quantity: quantity.clone(),
            sort: Sort::Rate,
            unit: Some(Unit {
                time: Some(time),
                per: None,
                noun: last.noun.clone(),
                to,
            }),
            unit_at: quantity.to..to,
            from: quantity.from,
            to,
            over: None,
        });
    }
    let (entity, to) = match (word(toks, quantity.to), word(toks, quantity.to + 1)) {
        (Some("each" | "apiece"), next) if next.and_then(time_of).is_none() => (None, quantity.to),
        (Some("per"), Some(next)) => (Some(entity_of(next)?), quantity.to + 2),
        (Some("aggregate" | "combined"), _) => (None, quantity.to),
        (None, _) if each_gets(toks, quantity.from) => (None, quantity.to),
        _ => return None,
    };
    Some(Candidate {
        quantity: quantity.clone(),
        sort: Sort::Rate,
        unit: Some(Unit {
            per: entity,
            ..last.clone()
        }),
        unit_at: quantity.to..to,
        from: quantity.from,
        to,
        over: None,
    })
}

/// "16 users each getting 31": the words before the number at `at`.
fn each_gets(toks: &[Tok], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).and_then(|i| word(toks, i));
    let gets = matches!(
        before(1),
        Some("getting" | "gets" | "get" | "seeing" | "sees" | "see" | "receiving" | "receives")
    );
    gets && before(2) == Some("each")
}

/// "24x", "3.5 times higher", "40 % faster".
fn ratio(toks: &[Tok], quantity: &Quantity) -> Option<Candidate> {
    let at = quantity.to;
    let compares = |at: usize| {
        matches!(
            word(toks, at),
            Some(
                "faster"
                    | "higher"
                    | "more"
                    | "better"
                    | "greater"
                    | "lower"
                    | "slower"
                    | "less"
                    | "quicker"
                    | "the"
                    | "as"
                    | "speedup"
                    | "improvement"
                    | "increase"
                    | "gain"
            )
        )
    };
    let multiplied = match (word(toks, at), toks.get(at).and_then(Tok::sign)) {
        // "8x B200" counts machines, and "16 × 500 tok/s" is a product.
        (Some("x"), _) | (_, Some('×')) => {
            word(toks, at + 1).and_then(entity_of).is_none() && number(toks, at + 1).is_none()
        }
        (Some("times"), _) => compares(at + 1),
        (_, Some('%')) => compares(at + 1),
        (Some("percent"), _) => compares(at + 1),
        _ => false,
    };
    multiplied.then(|| Candidate {
        quantity: quantity.clone(),
        sort: Sort::Ratio,
        unit: None,
        unit_at: at..at + 1,
        from: quantity.from,
        to: at + 1,
        over: None,
    })
}

/// "twice as fast", "doubles the throughput".
fn multiple(toks: &[Tok], at: usize) -> Option<Candidate> {
    let value = match word(toks, at)? {
        "twice" | "double" | "doubles" | "doubled" => 2.0,
        "triple" | "triples" | "tripled" => 3.0,
        _ => return None,
    };
    let quantity = Quantity {
        low: value,
        high: value,
        bound: Bound::Point,
        from: at,
        to: at + 1,
    };
    Some(Candidate {
        quantity,
        sort: Sort::Ratio,
        unit: None,
        unit_at: at..at + 1,
        from: at,
        to: at + 1,
        over: None,
    })
}

fn duration(toks: &[Tok], quantity: &Quantity) -> Option<Candidate> {
    let at = quantity.to;
    let qualified = at
        + usize::from(matches!(
            word(toks, at),
            Some("ci" | "build" | "compute" | "runner" | "gpu" | "machine" | "billed")
        ));
    let time = word(toks, qualified).and_then(time_of)?;
    let unit = Unit {
        noun: time.short.into(),
        time: None,
        per: None,
        to: qualified + 1,
    };
    let sort = match time.seconds < 1.0 || is_latency(toks, quantity.from, qualified + 1) {
        true => Sort::Latency,
        false => Sort::Duration,
    };
    Some(Candidate {
        quantity: quantity.clone(),
        sort,
        unit: Some(unit),
        unit_at: at..qualified + 1,
        from: quantity.from,
        to: qualified + 1,
        over: None,
    })
}

/// Whether the length of time at `from..to` is said to be what one request or token takes.
fn is_latency(toks: &[Tok], from: usize, to: usize) -> bool {
    let named = |at: usize| {
        matches!(
            word(toks, at),
            Some("latency" | "latencies" | "tpot" | "ttft" | "itl" | "delay" | "wait" | "waits")
        )
    };
    (from.saturating_sub(5)..from).any(named) || (to..to + 3).any(named)
}

/// A unit and then its number: "throughput (tok/s): 2186.7".
fn before_numbers(toks: &[Tok], load: &[Range<usize>]) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < toks.len() {
        let explained = |c: &Candidate| load.iter().any(|used| used.contains(&c.quantity.from));
        match before_number(toks, at).filter(|c| !explained(c)) {
            Some(candidate) => {
                at = candidate.to.max(at + 1);
                found.push(candidate);
            }
            None => at += 1,
        }
    }
    found
}

fn before_number(toks: &[Tok], at: usize) -> Option<Candidate> {
    let unit = unit(toks, at).filter(|unit| unit.time.is_some())?;
    let fills = |i: usize| {
        matches!(
            toks.get(i).and_then(Tok::sign),
            Some('(' | ')' | ':' | '=' | '|' | '[' | ']')
        ) || matches!(
            word(toks, i),
            Some("of" | "is" | "was" | "at" | "reached" | "hit" | "rate" | "speed")
        )
    };
    let mut next = unit.to;
    while next < unit.to + 4 && fills(next) {
        next += 1;
    }
    let quantity = (next..=next + 3).find_map(|i| quantity(toks, i).filter(|q| q.from <= next))?;
    Some(Candidate {
        sort: Sort::Rate,
        unit_at: at..unit.to,
        unit: Some(unit),
        from: at,
        to: quantity.to,
        quantity,
        over: None,
    })
}

/// A number that nothing else explains, if the text holds just one.
fn bare(toks: &[Tok], load: &[Range<usize>], machines: &[Devices]) -> Vec<Candidate> {
    let explained = |at: usize| {
        load.iter().any(|used| used.contains(&at))
            || machines.iter().any(|m| (m.from..m.to).contains(&at))
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at < toks.len() {
        let Some(quantity) = quantity(toks, at) else {
            at += 1;
            continue;
        };
        // Words such as "one" are rarely a number by themselves.
        if !explained(at) && !is_price(toks, at) && toks[at].number().is_some() {
            found.push(Candidate {
                sort: Sort::Bare,
                unit: None,
                unit_at: quantity.to..quantity.to,
                from: quantity.from,
                to: quantity.to,
                over: None,
                quantity: quantity.clone(),
            });
        }
        at = quantity.to.max(at + 1);
    }
    found.truncate(if found.len() == 1 { 1 } else { 0 });
    found
}
