//! Owns the grammar of units: what is counted, per what, in which time.

use super::entity::{Class, Entity, MINUTE, SECOND, Time, entity_of, is_accelerator, time_of};
use super::lex::Tok;

/// A unit as it stands in the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unit {
    /// What is counted, in the singular where it is known: `tok`, `req`, `pages`.
    pub noun: String,
    pub time: Option<Time>,
    pub per: Option<Entity>,
    /// First token after it.
    pub to: usize,
}

impl Unit {
    /// `tok/s`, `papers/h`; without a base of time `chats`.
    pub fn short(&self) -> String {
        match self.time {
            Some(time) => format!("{}/{}", self.noun, time.short),
            None => self.noun.clone(),
        }
    }

    pub fn is_tokens(&self) -> bool {
        self.noun == "tok"
    }
}

/// The counted thing by a known word; `None` for a word that has to be followed by a time.
fn noun_of(word: &str) -> Option<&'static str> {
    Some(match word {
        "tok" | "toks" | "token" | "tokens" | "tk" | "tks" => "tok",
        "req" | "reqs" | "request" | "requests" | "query" | "queries" | "prompts" => "req",
        "page" | "pages" => "pages",
        "paper" | "papers" => "papers",
        "document" | "documents" | "docs" => "documents",
        "image" | "images" => "images",
        "order" | "orders" => "orders",
        "payment" | "payments" => "payments",
        "transaction" | "transactions" | "txn" | "txns" => "transactions",
        "ticket" | "tickets" => "tickets",
        "chat" | "chats" => "chats",
        "conversations" => "conversations",
        "build" | "builds" => "builds",
        "job" | "jobs" => "jobs",
        "message" | "messages" => "messages",
        "call" | "calls" => "calls",
        "email" | "emails" => "emails",
        "invoice" | "invoices" => "invoices",
        "file" | "files" => "files",
        "word" | "words" => "words",
        "character" | "characters" | "chars" => "chars",
        "chunk" | "chunks" => "chunk",
        "sample" | "samples" => "samples",
        "sequence" | "sequences" => "sequences",
        "frame" | "frames" => "frames",
        "item" | "items" => "items",
        "record" | "records" => "records",
        "parcel" | "parcels" => "parcels",
        "claim" | "claims" => "claims",
        _ => return None,
    })
}

/// Units that are one word.
fn abbreviation(word: &str) -> Option<(&'static str, Time)> {
    Some(match word {
        "tps" | "toks" => ("tok", SECOND),
        "tpm" => ("tok", MINUTE),
        "rps" | "qps" => ("req", SECOND),
        "rpm" | "qpm" => ("req", MINUTE),
        "fps" => ("frames", SECOND),
        _ => return None,
    })
}

/// Words that may stand between a number and what it counts.
const BEFORE: [&str; 58] = [
    "output",
    "input",
    "total",
    "prompt",
    "prefill",
    "decode",
    "decoded",
    "decoding",
    "generated",
    "generation",
    "completion",
    "response",
    "combined",
    "aggregate",
    "aggregated",
    "overall",
    "sustained",
    "peak",
    "mean",
    "average",
    "median",
    "effective",
    "equivalent",
    "reasoning",
    "streaming",
    "streamed",
    "visible",
    "billed",
    "processed",
    "concurrent",
    "simultaneous",
    "parallel",
    "new",
    "raw",
    "real",
    "actual",
    "net",
    "total",
    "plus",
    "and",
    "of",
    "worth",
    "separate",
    "support",
    "customer",
    "successful",
    "completed",
    "closed",
    "finished",
    "open",
    "scanned",
    "single",
    "resolved",
    "max",
    "maximum",
    "active",
    "live",
    "user",
];

/// Words that may stand between what is counted and "per".
const BETWEEN: [&str; 22] = [
    "output",
    "input",
    "generated",
    "total",
    "processed",
    "worth",
    "of",
    "equivalent",
    "equivalents",
    "throughput",
    "in",
    "aggregate",
    "combined",
    "decoded",
    "prefill",
    "decode",
    "created",
    "served",
    "paid",
    "resolved",
    "handled",
    "closed",
];

/// The unit that begins at token `at`, directly or after words that qualify it.
pub(super) fn unit(toks: &[Tok], at: usize) -> Option<Unit> {
    let word = |i: usize| toks.get(i).and_then(Tok::word);
    let mut noun_at = at;
    if toks.get(at).and_then(Tok::sign) == Some('(') {
        noun_at += 1;
    }
    for _ in 0..6 {
        if let Some(found) = noun_with_denominators(toks, noun_at) {
            // "build minutes a day": a noun may qualify the one that is counted.
            let bare = found.time.is_none() && found.per.is_none();
            let next = || noun_with_denominators(toks, noun_at + 1);
            let counted = bare.then(next).flatten().filter(|next| next.time.is_some());
            return counted.or(Some(found));
        }
        let plus = toks.get(noun_at).and_then(Tok::sign) == Some('+');
        if !plus && !word(noun_at).is_some_and(|w| BEFORE.contains(&w)) {
            return None;
        }
        noun_at += 1;
    }
    None
}

fn noun_with_denominators(toks: &[Tok], at: usize) -> Option<Unit> {
    let word = |i: usize| toks.get(i).and_then(Tok::word);
    let noun = word(at)?;
    if let Some((noun, time)) = abbreviation(noun)
        && !(noun == "tok" && word(at) == Some("toks") && begins_denominator(toks, at + 1))
    {
        let (per, _, to) = denominators(toks, at + 1);
        return Some(Unit {
            noun: noun.into(),
            time: Some(time),
            per,
            to,
        });
    }
    let known = match noun {
        "t" => (toks.get(at + 1)?.sign() == Some('/')).then_some("tok"),
        _ => noun_of(noun),
    };
    let (per, time, to) = denominators(toks, after_noun(toks, at, known.is_some()));
    let name = match (known, time_of(noun)) {
        (Some(known), _) => known,
        // A word that the table does not know counts if a time follows: "parcels an hour".
        (None, Some(hours)) if time.is_some() => hours.short,
        (None, None) if time.is_some() && is_plain_noun(noun) => noun,
        _ => return None,
    };
    Some(Unit {
        noun: name.into(),
        time,
        per,
        to,
    })
}

/// Where the denominators of the noun at `at` begin: after it, or after words that qualify it.
fn after_noun(toks: &[Tok], at: usize, known: bool) -> usize {
    let qualifies = |i: usize| {
        let word = toks.get(i).and_then(Tok::word);
        word.is_some_and(|w| BETWEEN.contains(&w)) && !begins_denominator(toks, i)
    };
    let mut next = at + 1;
    while known && next < at + 4 && qualifies(next) {
        next += 1;
    }
    match begins_denominator(toks, next) {
        true => next,
        false => at + 1,
    }
}

fn is_plain_noun(word: &str) -> bool {
    let function = [
        "is", "was", "as", "its", "this", "has", "does", "us", "times", "x", "bps", "gbps", "users",
    ];
    word.len() > 2
        && word.ends_with('s')
        && !function.contains(&word)
        && word.chars().all(char::is_alphabetic)
}

fn begins_denominator(toks: &[Tok], at: usize) -> bool {
    let (per, time, _) = denominators(toks, at);
    per.is_some() || time.is_some()
}

/// Denominators from token `at` on, in any order: "/s", "per second per user", "/GPU/hour".
fn denominators(toks: &[Tok], mut at: usize) -> (Option<Entity>, Option<Time>, usize) {
    let (mut per, mut time) = (None, None);
    for _ in 0..4 {
        let word = |i: usize| toks.get(i).and_then(Tok::word);
        let sign = |i: usize| toks.get(i).and_then(Tok::sign);
        // "tokens/second (per user)".
        let open = usize::from(sign(at) == Some('(') && word(at + 1) == Some("per"));
        let start = at + open;
        let found = match (sign(start), word(start)) {
            (Some('/'), _) => denominator(toks, start + 1, true),
            (_, Some("per")) => denominator(toks, start + 1, true),
            (_, Some("a" | "an" | "each" | "every")) => denominator(toks, start + 1, false),
            (_, Some("daily" | "hourly" | "weekly" | "monthly")) => word(start)
                .and_then(time_of)
                .map(|t| (None, Some(t), start + 1)),
            _ => None,
        };
        match found {
            Some((Some(entity), _, to)) if per.is_none() => (per, at) = (Some(entity), to),
            Some((_, Some(base), to)) if time.is_none() => (time, at) = (Some(base), to),
            _ => break,
        }
        if open == 1 && toks.get(at).and_then(Tok::sign) == Some(')') {
            at += 1;
        }
    }
    (per, time, at)
}

/// Words between "per" and what a rate is per.
const QUALIFIERS: [&str; 22] = [
    "single",
    "individual",
    "active",
    "concurrent",
    "decode",
    "prefill",
    "deployed",
    "nvidia",
    "amd",
    "support",
    "million",
    "parallel",
    "human",
    "dgx",
    "blackwell",
    "hopper",
    "generation",
    "ci",
    "physical",
    "one",
    "inference",
    "compute",
];

/// One denominator: a time, or, where `any`, an entity after words that qualify it.
fn denominator(
    toks: &[Tok],
    at: usize,
    any: bool,
) -> Option<(Option<Entity>, Option<Time>, usize)> {
    let word = |i: usize| toks.get(i).and_then(Tok::word);
    if toks.get(at)?.sign() == Some('$') && any {
        let dollar = Entity {
            name: "dollar",
            class: Class::Cost,
        };
        let number = usize::from(toks.get(at + 1).and_then(Tok::number).is_some());
        return Some((Some(dollar), None, at + 1 + number));
    }
    if let Some(time) = word(at).and_then(time_of) {
        return Some((None, Some(time), at + 1));
    }
    let qualifying = |w: &str| QUALIFIERS.contains(&w) || is_accelerator(w);
    let mut end = at;
    while any && end < at + 3 && word(end).is_some_and(qualifying) {
        end += 1;
    }
    if !any {
        return None;
    }
    match word(end).and_then(entity_of) {
        Some(entity) => Some((Some(entity), None, end + 1)),
        None => {
            let last = end.checked_sub(1).filter(|last| *last >= at)?;
            let entity = word(last).and_then(entity_of)?;
            Some((Some(entity), None, end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lex::lex;
    use super::*;

    fn read(text: &str) -> Option<(String, Option<&'static str>)> {
        let found = unit(&lex(text), 0)?;
        Some((found.short(), found.per.map(|per| per.name)))
    }

    #[test]
    fn units_of_many_spellings() {
        for (text, short, per) in [
            ("tok/s", "tok/s", None),
            ("tokens per second per user", "tok/s", Some("user")),
            ("TPS/GPU", "tok/s", Some("GPU")),
            ("t/s", "tok/s", None),
            ("toks/sec", "tok/s", None),
            ("output tokens a second", "tok/s", None),
            ("tokens worth of output per second", "tok/s", None),
            ("papers/GPU/hour", "papers/h", Some("GPU")),
            ("tokens per B200 GPU per second", "tok/s", Some("GPU")),
            ("tok/s/MW", "tok/s", Some("MW")),
            ("tokens per dollar", "tok", Some("dollar")),
            ("widgets an hour", "widgets/h", None),
            ("hours a day", "h/day", None),
            ("chats per agent", "chats", Some("agent")),
            ("tickets monthly", "tickets/month", None),
            ("tokens (per user)", "tok", Some("user")),
        ] {
            assert_eq!(read(text), Some((short.to_owned(), per)), "{text}");
        }
        for none in ["users", "GPUs", "fast", "is a second", "times", ""] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
