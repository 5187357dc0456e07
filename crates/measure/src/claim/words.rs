//! Owns the words around a number: softeners, statistic, what is counted.

use std::ops::Range;

use super::entity::time_of;
use super::lex::Tok;
use super::numerals::number;
use super::quantity::quantity;
use super::{Counted, Statistic};

pub(super) fn word(toks: &[Tok], at: usize) -> Option<&str> {
    toks.get(at).and_then(Tok::word)
}

/// Whether `phrase`, words apart by spaces, stands at token `at`.
pub(super) fn stands(toks: &[Tok], at: usize, phrase: &str) -> bool {
    phrase
        .split(' ')
        .enumerate()
        .all(|(i, want)| word(toks, at + i) == Some(want))
}

/// Where any of `phrases` begins within `range`.
pub(super) fn find<'a>(
    toks: &[Tok],
    range: &Range<usize>,
    phrases: &[&'a str],
) -> Vec<(usize, &'a str)> {
    let at = |i: usize| {
        phrases
            .iter()
            .find(|phrase| stands(toks, i, phrase))
            .map(|p| (i, *p))
    };
    range.clone().filter_map(at).collect()
}

const SOFTENERS: [&str; 40] = [
    "worth of",
    "effective",
    "effectively",
    "equivalent",
    "equivalents",
    "up to",
    "as much as",
    "as many as",
    "as high as",
    "as fast as",
    "about",
    "around",
    "roughly",
    "approximately",
    "nearly",
    "almost",
    "close to",
    "theoretical",
    "theoretically",
    "estimated",
    "projected",
    "simulated",
    "potential",
    "potentially",
    "capable of",
    "can reach",
    "can hit",
    "or so",
    "ideal",
    "best case",
    "blended",
    "normalized",
    "extrapolated",
    "typically",
    "expected",
    "could",
    "reportedly",
    "advertised",
    "nominal",
    "some",
];

/// Words that soften the unit or the number, in the order of the text, each once.
pub(super) fn softeners(toks: &[Tok], range: &Range<usize>) -> Vec<&'static str> {
    let mut found: Vec<(usize, &'static str)> = find(toks, range, &SOFTENERS);
    found.retain(|(at, phrase)| match *phrase {
        // "some 500", not "some of the users"; "the simulated users" soften no rate.
        "some" | "around" | "about" => number(toks, at + 1).is_some(),
        "simulated" => !matches!(word(toks, at + 1), Some("users" | "clients" | "sessions")),
        _ => true,
    });
    for at in range.clone() {
        if matches!(toks[at].sign(), Some('~' | '≈')) {
            found.push((at, "~"));
        }
    }
    found.sort_unstable();
    let mut names = Vec::new();
    for (_, name) in found {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Words of a statistic.
const STATISTICS: [(&str, Statistic); 31] = [
    ("peak", Statistic::Peak),
    ("peaks", Statistic::Peak),
    ("peaked", Statistic::Peak),
    ("peaking", Statistic::Peak),
    ("max", Statistic::Peak),
    ("maximum", Statistic::Peak),
    ("maxes", Statistic::Peak),
    ("best", Statistic::Peak),
    ("record", Statistic::Peak),
    ("highest", Statistic::Peak),
    ("fastest", Statistic::Peak),
    ("burst", Statistic::Peak),
    ("bursts", Statistic::Peak),
    ("tops out", Statistic::Peak),
    ("mean", Statistic::Mean),
    ("average", Statistic::Mean),
    ("averages", Statistic::Mean),
    ("averaged", Statistic::Mean),
    ("averaging", Statistic::Mean),
    ("avg", Statistic::Mean),
    ("median", Statistic::Median),
    ("p50", Statistic::Median),
    ("sustained", Statistic::Sustained),
    ("sustains", Statistic::Sustained),
    ("sustain", Statistic::Sustained),
    ("steady", Statistic::Sustained),
    ("minimum", Statistic::Slowest),
    ("slowest", Statistic::Slowest),
    ("worst", Statistic::Slowest),
    ("p95", Statistic::Tail),
    ("p99", Statistic::Tail),
];

/// Peak, mean, … by the word nearest to the number at `at`, words of the load apart.
pub(super) fn statistic(
    toks: &[Tok],
    range: &Range<usize>,
    at: usize,
    load: &[Range<usize>],
) -> Option<Statistic> {
    let phrases: Vec<&str> = STATISTICS.iter().map(|(word, _)| *word).collect();
    let mut found = find(toks, range, &phrases);
    let of_load = |w: Option<&str>| {
        matches!(
            w,
            Some("concurrency" | "batch" | "users" | "requests" | "tokens" | "length" | "seqs")
        )
    };
    // "mean latency 40 s" is of the latency.
    let of_time = |w: Option<&str>| {
        matches!(
            w,
            Some(
                "latency"
                    | "ttft"
                    | "tpot"
                    | "itl"
                    | "e2e"
                    | "wait"
                    | "delay"
                    | "length"
                    | "input"
                    | "prompt"
                    | "time"
                    | "request"
                    | "response"
                    | "effort"
            )
        )
    };
    found.retain(|(i, word_found)| {
        let extreme = *word_found == "max" || *word_found == "maximum";
        let before = i.checked_sub(1).and_then(|b| word(toks, b));
        !load.iter().any(|used| used.contains(i))
            && !of_time(word(toks, i + 1))
            && !(extreme && (of_load(word(toks, i + 1)) || of_load(before)))
    });
    let (_, nearest) = found.into_iter().min_by_key(|(i, _)| i.abs_diff(at))?;
    STATISTICS
        .iter()
        .find(|(word, _)| *word == nearest)
        .map(|(_, s)| *s)
}

const OUTPUT: [&str; 16] = [
    "output",
    "outputs",
    "generated",
    "generation",
    "generates",
    "generate",
    "generating",
    "generative",
    "decode",
    "decodes",
    "decoded",
    "decoding",
    "completion",
    "produces",
    "produced",
    "writes",
];
const INPUT: [&str; 6] = [
    "input",
    "prompt",
    "prefill",
    "prefills",
    "prompts",
    "prefilling",
];

/// Output, input or total, for a claim about tokens. Lengths ("8K input") say nothing of it.
pub(super) fn counted(toks: &[Tok], range: &Range<usize>) -> Option<Counted> {
    if is_total(toks, range) {
        return Some(Counted::Total);
    }
    let told = |words: &[&str]| {
        find(toks, range, words).iter().any(|(at, _)| {
            !is_length(toks, *at) && !of_the_wait(toks, *at) && !is_feature(toks, *at)
        })
    };
    match (told(&OUTPUT), told(&INPUT)) {
        (true, true) if joined(toks, range) => Some(Counted::Total),
        (true, false) => Some(Counted::Output),
        (false, true) => Some(Counted::Input),
        _ => None,
    }
}

/// "output tokens" of a count over a time, where its unit says it.
pub(super) fn counted_in_unit(toks: &[Tok], unit_at: &Range<usize>) -> Option<Counted> {
    let told = |words: &[&str]| !find(toks, unit_at, words).is_empty();
    match (told(&OUTPUT), told(&INPUT)) {
        (true, false) => Some(Counted::Output),
        (false, true) => Some(Counted::Input),
        _ => None,
    }
}

/// "speculative decoding", "prefill caching": what a server can do, not what is counted.
pub(super) fn is_feature(toks: &[Tok], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|i| word(toks, i));
    matches!(
        before,
        Some(
            "speculative"
                | "chunked"
                | "disaggregated"
                | "guided"
                | "constrained"
                | "greedy"
                | "structured"
        )
    ) || matches!(
        word(toks, at + 1),
        Some("caching" | "cache" | "cached" | "chunking" | "disaggregation")
    )
}

/// "including prefill" says what is in the time, not what is counted.
fn of_the_wait(toks: &[Tok], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).and_then(|i| word(toks, i));
    let names = |w: Option<&str>| {
        matches!(
            w,
            Some(
                "including"
                    | "includes"
                    | "excluding"
                    | "excludes"
                    | "without"
                    | "counting"
                    | "ignoring"
                    | "after"
                    | "with"
            )
        )
    };
    names(before(1)) || before(1) == Some("the") && names(before(2))
}

/// "total tokens", "tokens in total" is the system's; "input plus output" is the sum.
fn is_total(toks: &[Tok], range: &Range<usize>) -> bool {
    let phrases = [
        "total tokens",
        "total token",
        "total tok",
        "total tps",
        "total toks",
        "all tokens",
        "combined tokens",
        "total t",
        "tokens processed",
        "processed tokens",
        "overall tokens",
        "total tk",
        "prompt tokens included",
        "prompt included",
        "input included",
        "including prompt tokens",
        "including input tokens",
        "including the prompt",
        "counting prompt",
        "counting input",
        "counts prompt",
        "counts input",
    ];
    !find(toks, range, &phrases).is_empty()
}

/// "input + output", "prompt and generation", "in plus out".
fn joined(toks: &[Tok], range: &Range<usize>) -> bool {
    range.clone().any(|at| {
        let plus = toks[at].sign() == Some('+')
            || matches!(toks[at].word(), Some("plus" | "and" | "with"));
        let beside = |i: Option<usize>, words: &[&str]| {
            i.and_then(|i| word(toks, i))
                .is_some_and(|w| words.contains(&w))
        };
        let (before, after) = (at.checked_sub(1), Some(at + 1));
        let skip = |i: Option<usize>| match i.and_then(|i| word(toks, i)) {
            Some("tokens" | "token") => i.and_then(|i| i.checked_sub(1)),
            _ => i,
        };
        plus && (beside(skip(before), &INPUT) && beside(after, &OUTPUT)
            || beside(skip(before), &OUTPUT) && beside(after, &INPUT))
    })
}

/// "1K output", "2,048 output tokens" without a time: a length of what was asked.
fn is_length(toks: &[Tok], at: usize) -> bool {
    let back = |n: usize| at.checked_sub(n).and_then(|i| toks.get(i));
    let number_before = back(1).is_some_and(|t| t.number().is_some())
        || matches!(
            back(1).and_then(Tok::word),
            Some("tokens" | "token" | "tok")
        ) && back(2).is_some_and(|t| t.number().is_some());
    let rate = super::unit::unit(toks, at).is_some_and(|unit| unit.time.is_some());
    let named_length = matches!(
        word(toks, at + 1),
        Some("length" | "lengths" | "len" | "sequence")
    );
    // "input 1024 output 128".
    let number_after = quantity(toks, at + 1).is_some_and(|quantity| {
        super::unit::unit(toks, quantity.to).is_none_or(|unit| unit.time.is_none())
    });
    named_length || number_after || number_before && !rate && !after_rate(toks, at)
}

/// "500 tokens/s output": the number before belongs to a rate that ended here.
fn after_rate(toks: &[Tok], at: usize) -> bool {
    at.checked_sub(1)
        .and_then(|i| word(toks, i))
        .is_some_and(|w| time_of(w).is_some() || w == "tps")
}
