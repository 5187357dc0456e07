//! Owns the words on time beside a number: what it was taken over, and a mean latency.

use std::ops::Range;

use super::entity::time_of;
use super::lex::Tok;
use super::numerals::number;
use super::quantity::quantity;
use super::words::word;

/// "mean latency 43.6 s", "a 4 s average latency": in seconds.
pub(super) fn mean_latency(toks: &[Tok]) -> Option<f64> {
    let is_mean = |at: usize| matches!(word(toks, at), Some("mean" | "average" | "avg"));
    let fills = |at: usize| {
        matches!(
            word(toks, at),
            Some("of" | "is" | "was" | "request" | "e2e" | "end" | "to" | "about")
        ) || matches!(
            toks.get(at).and_then(Tok::sign),
            Some(':' | '=' | '(' | '~')
        )
    };
    (0..toks.len())
        .filter(|at| word(toks, *at) == Some("latency"))
        .find_map(|at| {
            (at.saturating_sub(4)..at).find(|at| is_mean(*at))?;
            let after = (at + 1..at + 5).find(|i| !fills(*i));
            let before = (at.saturating_sub(5)..at).find(|i| number(toks, *i).is_some());
            let length = |from: Option<usize>| {
                let (count, to) = number(toks, from?)?;
                Some(count * word(toks, to).and_then(time_of)?.seconds)
            };
            length(after).or_else(|| length(before))
        })
}

/// What the number was taken over.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Timed {
    pub tokens: Range<usize>,
    /// Where it is a length of time.
    pub seconds: Option<f64>,
}

/// "over 60 seconds", "a ten-minute run", "across 100 requests", "median of 3".
pub(super) fn interval(
    toks: &[Tok],
    range: &Range<usize>,
    taken: &[Range<usize>],
) -> Option<Timed> {
    let free = |from: usize| !taken.iter().any(|used| used.contains(&from));
    let found = range.clone().filter(|at| free(*at));
    let mut runs = None;
    for at in found {
        if let Some(timed) = length(toks, at) {
            return Some(timed);
        }
        if runs.is_none() {
            runs = repeats(toks, at);
        }
    }
    runs
}

fn length(toks: &[Tok], at: usize) -> Option<Timed> {
    let opens = matches!(
        word(toks, at),
        Some("over" | "for" | "in" | "during" | "within" | "across" | "throughout")
    );
    let article = |i: usize| {
        usize::from(matches!(
            word(toks, i),
            Some("a" | "an" | "the" | "one" | "full")
        ))
    };
    if opens {
        let skip = at
            + 1
            + article(at + 1) * usize::from(number(toks, at + 1).is_none_or(|(n, _)| n == 1.0));
        let (count, to) = number(toks, skip).or((skip > at + 1).then_some((1.0, skip)))?;
        let time = word(toks, to).and_then(time_of)?;
        return Some(Timed {
            tokens: at..to + 1,
            seconds: Some(count * time.seconds),
        });
    }
    let (count, to) = number(toks, at)?;
    let time = word(toks, to).and_then(time_of)?;
    let run = matches!(
        word(toks, to + 1),
        Some(
            "run"
                | "runs"
                | "test"
                | "window"
                | "benchmark"
                | "period"
                | "soak"
                | "interval"
                | "average"
                | "measurement"
        )
    );
    run.then_some(Timed {
        tokens: at..to + 2,
        seconds: Some(count * time.seconds),
    })
}

fn repeats(toks: &[Tok], at: usize) -> Option<Timed> {
    let q = quantity(toks, at)?;
    let noun = word(toks, q.to);
    let counted = matches!(
        noun,
        Some(
            "requests"
                | "prompts"
                | "runs"
                | "samples"
                | "trials"
                | "iterations"
                | "queries"
                | "repeats"
                | "repetitions"
                | "measurements"
                | "attempts"
        )
    );
    let of = at.checked_sub(1).and_then(|i| word(toks, i)) == Some("of")
        && at
            .checked_sub(2)
            .and_then(|i| word(toks, i))
            .is_some_and(|w| {
                matches!(
                    w,
                    "median" | "mean" | "average" | "best" | "worst" | "avg" | "fastest"
                )
            });
    let small = q.low <= 1e6 && q.low.fract() == 0.0;
    let rate = super::unit::unit(toks, q.to).is_some_and(|unit| unit.time.is_some());
    (small && !rate && (counted || of)).then_some(Timed {
        tokens: if of {
            at - 2..q.to + usize::from(counted)
        } else {
            at..q.to + 1
        },
        seconds: None,
    })
}
