//! Owns the grammar of load: how many streams at once.

use super::entity::time_of;
use super::lex::Tok;
use super::quantity::{Bound, Quantity, quantity};
use super::words::word;
use crate::stated::Span;

/// A mention of how many were served at once.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mention {
    /// How many; none where what stands there is no number ("MAX").
    pub streams: Option<Span>,
    pub from: usize,
    pub to: usize,
    /// Its bytes in the text.
    pub text: std::ops::Range<usize>,
    /// It was said by a word for one ("single-stream"), not by a number.
    pub alone: bool,
}

/// Nouns of which a number is a concurrency as they stand.
const STREAMS: [&str; 35] = [
    "users",
    "user",
    "sessions",
    "session",
    "streams",
    "stream",
    "clients",
    "client",
    "agents",
    "agent",
    "connections",
    "connection",
    "slots",
    "slot",
    "lanes",
    "runners",
    "runner",
    "workers",
    "worker",
    "executors",
    "callers",
    "tenants",
    "conversations",
    "sequences",
    "sequence",
    "threads",
    "operators",
    "lines",
    "stations",
    "desks",
    "tills",
    "counters",
    "seats",
    "vus",
    "consumers",
];

/// Nouns of which a number is a concurrency only with a word that says "at once".
const WORK: [&str; 34] = [
    "requests",
    "request",
    "queries",
    "prompts",
    "prompt",
    "generations",
    "calls",
    "jobs",
    "builds",
    "chats",
    "images",
    "documents",
    "people",
    "customers",
    "developers",
    "engineers",
    "employees",
    "tasks",
    "instances",
    "batches",
    "orders",
    "processes",
    "pipelines",
    "players",
    "completions",
    "inferences",
    "conversation",
    "readers",
    "threads",
    "chatters",
    "query",
    "generation",
    "items",
    "pages",
];

const AT_ONCE: [&str; 12] = [
    "concurrent",
    "simultaneous",
    "parallel",
    "outstanding",
    "concurrently",
    "simultaneously",
    "inflight",
    "batched",
    "overlapping",
    "queued",
    "multiplexed",
    "flight",
];

const BETWEEN: [&str; 26] = [
    "concurrent",
    "simultaneous",
    "parallel",
    "active",
    "live",
    "open",
    "independent",
    "simulated",
    "virtual",
    "separate",
    "different",
    "real",
    "streaming",
    "chat",
    "inference",
    "decode",
    "busy",
    "in",
    "flight",
    "support",
    "coding",
    "human",
    "ci",
    "client",
    "request",
    "user",
];

/// All mentions of concurrency, in the order of the text.
pub(super) fn mentions(toks: &[Tok]) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut at = 0;
    while at < toks.len() {
        let mention = keyed(toks, at)
            .or_else(|| all_together(toks, at))
            .or_else(|| attached(toks, at))
            .or_else(|| counted(toks, at))
            .or_else(|| {
                alone(toks, at).map(|found| Mention {
                    alone: true,
                    ..found
                })
            });
        match mention {
            Some(mention) => {
                at = mention.to.max(at + 1);
                found.push(mention);
            }
            None => at += 1,
        }
    }
    found
}

fn mention(toks: &[Tok], streams: Option<Span>, from: usize, to: usize) -> Mention {
    let end = toks.get(to.saturating_sub(1)).map_or(0, |tok| tok.end);
    let start = toks.get(from).map_or(end, |tok| tok.start);
    Mention {
        streams,
        from,
        to,
        text: start..end.max(start),
        alone: false,
    }
}

/// What a quantity says of a number of streams: "up to 64" leaves 1 to 64.
fn span(quantity: &Quantity) -> Option<Span> {
    match quantity.bound {
        Bound::Point => Span::exactly(quantity.low),
        Bound::Range => Span::between(quantity.low, quantity.high),
        Bound::AtLeast => Span::at_least(quantity.low),
        Bound::AtMost => Span::between(1.0_f64.min(quantity.low), quantity.low),
    }
}

/// "concurrency 16", "batch size of 32", "bs=1", "c=16", "concurrency: MAX".
fn keyed(toks: &[Tok], at: usize) -> Option<Mention> {
    let key = word(toks, at)?;
    let short = matches!(key, "c" | "n" | "bs" | "conc" | "np" | "running");
    let long = matches!(
        key,
        "concurrency" | "concurrencies" | "parallelism" | "batch" | "batchsize" | "batches" | "bsz"
    );
    if !short && !long {
        return None;
    }
    let equals = |i: usize| matches!(toks.get(i).and_then(Tok::sign), Some('=' | ':'));
    if matches!(key, "c" | "n" | "np" | "running") && !equals(at + 1) {
        return None;
    }
    let mut next = at + 1;
    while next < at + 4 && (equals(next) || fills(toks, next)) {
        next += 1;
    }
    let bounded = (next..=next + 3).find_map(|i| quantity(toks, i).filter(|q| q.from <= next));
    match bounded.filter(|quantity| unit_free(toks, quantity.to)) {
        Some(quantity) => Some(mention(toks, span(&quantity), at, quantity.to)),
        None => no_number(toks, at, next),
    }
}

/// Words between "concurrency" and its number.
fn fills(toks: &[Tok], at: usize) -> bool {
    const WORDS: [&str; 11] = [
        "of", "size", "sizes", "level", "levels", "is", "was", "at", "to", "set", "from",
    ];
    toks.get(at).and_then(Tok::sign) == Some('(')
        || word(toks, at).is_some_and(|w| WORDS.contains(&w))
}

/// "concurrency: MAX", "unlimited concurrency": said, and no number.
fn no_number(toks: &[Tok], key_at: usize, next: usize) -> Option<Mention> {
    const AFTER: [&str; 8] = [
        "max",
        "maximum",
        "unlimited",
        "inf",
        "infinite",
        "infinity",
        "auto",
        "saturation",
    ];
    const BEFORE: [&str; 5] = ["max", "maximum", "unlimited", "infinite", "full"];
    let key = word(toks, key_at)?;
    let stands = |at: Option<usize>, words: &[&str]| {
        at.and_then(|at| word(toks, at))
            .is_some_and(|w| words.contains(&w))
    };
    let before = stands(key_at.checked_sub(1), &BEFORE);
    let from = key_at - usize::from(before);
    match key {
        "concurrency" | "batch" | "c" | "bs" | "conc" | "parallelism" | "batchsize"
            if stands(Some(next), &AFTER) =>
        {
            Some(mention(toks, None, from, next + 1))
        }
        "concurrency" | "batch" | "parallelism" if before => {
            Some(mention(toks, None, from, key_at + 1))
        }
        _ => None,
    }
}

/// A number after "batch" that is the value of the claim is no batch size.
fn unit_free(toks: &[Tok], to: usize) -> bool {
    super::unit::unit(toks, to).is_none_or(|unit| unit.time.is_none())
}

/// "bs64", "c16", "batch32" written as one word.
fn attached(toks: &[Tok], at: usize) -> Option<Mention> {
    let text = word(toks, at)?;
    let digits = ["bs", "c", "batch", "conc", "concurrency"]
        .iter()
        .find_map(|key| text.strip_prefix(key))?;
    let number: f64 = digits
        .chars()
        .all(|c| c.is_ascii_digit())
        .then(|| digits.parse().ok())??;
    Some(mention(toks, Some(Span::exactly(number)?), at, at + 1))
}

/// "500 tok/s over sixteen sessions" spreads over them; "serving over 1,000 users" bounds.
fn spread(toks: &[Tok], quantity: Quantity) -> Quantity {
    let bounds = quantity
        .from
        .checked_sub(1)
        .and_then(|before| word(toks, before))
        .is_some_and(|before| {
            matches!(
                before,
                "with"
                    | "by"
                    | "for"
                    | "to"
                    | "from"
                    | "of"
                    | "at"
                    | "serving"
                    | "serves"
                    | "supports"
                    | "supporting"
                    | "handles"
                    | "handling"
                    | "sustains"
                    | "has"
                    | "holds"
            )
        });
    match word(toks, quantity.from) {
        Some("over") if !bounds => Quantity {
            bound: if quantity.low < quantity.high {
                Bound::Range
            } else {
                Bound::Point
            },
            from: quantity.from + 1,
            ..quantity
        },
        _ => quantity,
    }
}

/// "16 users", "sixteen concurrent requests", "16 requests in parallel", "16-way", "16 at once".
fn counted(toks: &[Tok], at: usize) -> Option<Mention> {
    let quantity = spread(toks, quantity(toks, at)?);
    if ends_a_list(toks, quantity.from) {
        return None;
    }
    let streams = span(&quantity);
    let mut next = quantity.to;
    if matches!(word(toks, next), Some("x" | "way")) {
        next += 1;
        if word(toks, next - 1) == Some("way") {
            return Some(mention(toks, streams, quantity.from, next));
        }
    }
    if word(toks, next) == Some("of") && matches!(word(toks, next + 1), Some("them" | "these")) {
        next += 2;
    }
    if let Some(to) = at_once(toks, next) {
        return Some(mention(toks, streams, quantity.from, to));
    }
    let mut said = false;
    while next < quantity.to + 4
        && word(toks, next).is_some_and(|w| BETWEEN.contains(&w) || AT_ONCE.contains(&w))
        && !ends_here(toks, next)
    {
        said |= word(toks, next).is_some_and(|w| AT_ONCE.contains(&w));
        next += 1;
    }
    // "at 4 concurrent": the noun is left out.
    if said && word(toks, next).is_none() {
        return Some(mention(toks, streams, quantity.from, next));
    }
    let noun = word(toks, next)?;
    let after = next + 1;
    if is_rate(toks, after) {
        return None;
    }
    if matches!(noun, "concurrency" | "parallelism") {
        return Some(mention(toks, streams, quantity.from, after));
    }
    if STREAMS.contains(&noun) {
        let to = at_once(toks, after).unwrap_or(after);
        return Some(mention(toks, streams, quantity.from, to));
    }
    let known = WORK.contains(&noun) || said && (noun.ends_with('s') || quantity.low == 1.0);
    if !known {
        return None;
    }
    match (said, at_once(toks, after)) {
        (true, to) => Some(mention(toks, streams, quantity.from, to.unwrap_or(after))),
        (false, Some(to)) => Some(mention(toks, streams, quantity.from, to)),
        _ => None,
    }
}

/// "at 10 and 20 users": which of them is meant is not said.
fn ends_a_list(toks: &[Tok], at: usize) -> bool {
    let joins = at > 0 && matches!(word(toks, at - 1), Some("and" | "or"));
    let before = at
        .checked_sub(2)
        .filter(|_| joins)
        .and_then(|i| toks.get(i));
    before.is_some_and(|tok| {
        let list = |w: &str| w.contains(',') && w.starts_with(|c: char| c.is_ascii_digit());
        tok.number().is_some() || tok.word().is_some_and(list)
    })
}

/// "all 32 together", "all 32 combined".
fn all_together(toks: &[Tok], at: usize) -> Option<Mention> {
    let quantity = quantity(toks, at + 1).filter(|_| word(toks, at) == Some("all"))?;
    matches!(word(toks, quantity.to), Some("together" | "combined"))
        .then(|| mention(toks, span(&quantity), at, quantity.to + 1))
}

/// "client" and "user" qualify only where a noun follows: "16 client connections".
fn ends_here(toks: &[Tok], at: usize) -> bool {
    let follows = |w: &str| {
        STREAMS.contains(&w) || WORK.contains(&w) || BETWEEN.contains(&w) || AT_ONCE.contains(&w)
    };
    matches!(word(toks, at), Some("client" | "request" | "user"))
        && !word(toks, at + 1).is_some_and(follows)
}

/// "10 users a second" counts users and is no concurrency.
fn is_rate(toks: &[Tok], at: usize) -> bool {
    let separator = toks.get(at).and_then(Tok::sign) == Some('/')
        || matches!(word(toks, at), Some("per" | "a" | "an" | "each" | "every"));
    separator && word(toks, at + 1).and_then(time_of).is_some()
}

/// The token after "at once" and its like, if they stand at `at`.
fn at_once(toks: &[Tok], at: usize) -> Option<usize> {
    const PHRASES: [&[&str]; 14] = [
        &["at", "the", "same", "time"],
        &["all", "at", "once"],
        &["side", "by", "side"],
        &["at", "a", "time"],
        &["at", "one", "time"],
        &["running", "at", "once"],
        &["running", "concurrently"],
        &["running", "in", "parallel"],
        &["at", "once"],
        &["in", "parallel"],
        &["in", "flight"],
        &["concurrently"],
        &["simultaneously"],
        &["inflight"],
    ];
    PHRASES
        .iter()
        .find(|phrase| {
            phrase
                .iter()
                .enumerate()
                .all(|(i, want)| word(toks, at + i) == Some(want))
        })
        .map(|phrase| at + phrase.len())
}

/// "single-user", "single stream", "one request at a time", "unbatched": one at once.
fn alone(toks: &[Tok], at: usize) -> Option<Mention> {
    let one = Span::exactly(1.0);
    let per = at > 0
        && (matches!(word(toks, at - 1), Some("per" | "each" | "every" | "for"))
            || toks[at - 1].sign() == Some('/'));
    match word(toks, at)? {
        "single" | "lone" | "solo" if !per => {
            let noun = word(toks, at + 1)?;
            let is_stream = STREAMS.contains(&noun)
                || matches!(
                    noun,
                    "request" | "prompt" | "query" | "generation" | "flight" | "conversation"
                );
            is_stream.then(|| mention(toks, one, at, at + 2))
        }
        "one" if at_once(toks, at + 1).is_some() => {
            Some(mention(toks, one, at, at_once(toks, at + 1)?))
        }
        "unbatched" | "serial" | "serially" | "sequentially" => {
            Some(mention(toks, one, at, at + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::lex::lex;
    use super::*;

    fn read(text: &str) -> Option<String> {
        let found = mentions(&lex(text));
        assert!(found.len() < 2, "{text}: {found:?}");
        let first = found.into_iter().next()?;
        Some(
            first
                .streams
                .map_or("no number".into(), |span| span.to_string()),
        )
    }

    #[test]
    fn concurrency_in_many_words() {
        for (text, streams) in [
            ("over sixteen sessions on one server", "16"),
            ("with 1,024 concurrent users", "1,024"),
            ("concurrency of 32", "32"),
            ("at batch size 256", "256"),
            ("bs=1", "1"),
            ("c=16", "16"),
            ("bs64", "64"),
            ("64-way concurrency", "64"),
            ("8 requests in parallel", "8"),
            ("twelve at once", "12"),
            ("eight agents", "8"),
            ("up to 64 users", "1 to 64"),
            ("500+ clients", "at least 500"),
            ("4-8 streams", "4 to 8"),
            ("batch 4 to 8", "4 to 8"),
            ("single-user", "1"),
            ("one request at a time", "1"),
            ("concurrency: MAX", "no number"),
            ("max concurrency", "no number"),
            ("3.5 simultaneous chats", "3.5"),
            ("on four runners", "4"),
            ("16 client connections", "16"),
        ] {
            assert_eq!(read(text).as_deref(), Some(streams), "{text}");
        }
    }

    #[test]
    fn what_is_no_concurrency() {
        for text in [
            "100 requests",
            "per single user",
            "tokens per second per user",
            "500 tok/s",
            "sixteen GPUs",
            "10 users a second",
            "a batch of tests",
            "Llama 3.1 70B",
            "16 pages",
            "per user",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
