//! Owns what the experiment saw of the API's abilities.

use serde::Serialize;

use super::counted::{Counted, Lengthened, Obeyed};
use super::head::Head;
use super::rows::Middle;
use super::sample::Sample;
use crate::rate::significant;
use crate::trace::Finish;

/// One ability.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ability {
    /// A short name that scripts may test for.
    pub code: &'static str,
    /// What it is, for a person.
    pub what: &'static str,
    /// Whether it was seen; none where the experiment does not say.
    pub seen: Option<bool>,
    /// What was seen.
    pub text: String,
}

fn ability(code: &'static str, what: &'static str, seen: Option<bool>, text: String) -> Ability {
    Ability {
        code,
        what,
        seen,
        text,
    }
}

/// What was seen, in a fixed order.
pub fn abilities(
    samples: &[Sample],
    heads: &[Head],
    counted: Counted,
    lengthened: &Lengthened,
) -> Vec<Ability> {
    vec![
        usage(samples),
        reasoning(samples, heads),
        tools(samples),
        tokens_per_chunk(samples),
        length(counted, lengthened),
        cache(samples),
    ]
}

fn usage(samples: &[Sample]) -> Ability {
    let streams: Vec<&Sample> = samples.iter().filter(|sample| !sample.whole).collect();
    let stated = streams
        .iter()
        .filter(|sample| sample.judged.trace.usage.is_some())
        .count();
    let (seen, text) = match (streams.len(), stated) {
        (0, _) => (None, "no answer was a stream".into()),
        (_, 0) => (
            Some(false),
            "no: tokens cannot be counted from what the server says".into(),
        ),
        (all, stated) => (Some(true), format!("yes, in {stated} of {all} streams")),
    };
    ability("usage_in_stream", "token counts in the stream", seen, text)
}

fn reasoning(samples: &[Sample], heads: &[Head]) -> Ability {
    let arrivals = |sample: &Sample| {
        let mut arrivals = sample.judged.arrivals.iter();
        arrivals.any(|arrival| arrival.answer_chars < arrival.chars)
    };
    let apart = samples.iter().filter(|sample| arrivals(sample)).count();
    let inside = heads.iter().filter(|head| head.reasoning_inside).count();
    let hidden = samples
        .iter()
        .filter(|sample| sample.judged.tokens.hidden.is_some_and(|hidden| hidden > 0))
        .count();
    let n = samples.len();
    let (seen, text) = match (apart, inside, hidden) {
        (0, 0, 0) => (Some(false), "none was seen".into()),
        (0, 0, hidden) => (
            Some(true),
            format!("kept back: {hidden} of {n} answers bill tokens that never came"),
        ),
        (0, inside, _) => (
            Some(true),
            format!(
                "inside the answer's text, in {inside} of {} answers",
                heads.len()
            ),
        ),
        (apart, _, _) => (
            Some(true),
            format!("apart from the answer, in {apart} of {n} answers"),
        ),
    };
    ability("reasoning", "reasoning", seen, text)
}

fn tools(samples: &[Sample]) -> Ability {
    let called = samples
        .iter()
        .filter(|sample| sample.judged.trace.finish_reason == Some(Finish::Tool))
        .count();
    let (seen, text) = match called {
        0 => (
            None,
            "none was offered to the model: give \"tools\" through --body".into(),
        ),
        called => (
            Some(true),
            format!("{called} of {} answers ended in one", samples.len()),
        ),
    };
    ability("tool_calls", "tool calls", seen, text)
}

fn tokens_per_chunk(samples: &[Sample]) -> Ability {
    let each = |sample: &Sample| {
        let chunks = sample.chunks();
        let visible = sample.judged.tokens.visible?;
        (chunks > 0 && !sample.whole && sample.tokens().is_some())
            .then(|| visible as f64 / chunks as f64)
    };
    match Middle::of(samples.iter().filter_map(each).collect()) {
        Some(each) => ability(
            "tokens_per_chunk",
            "tokens a chunk",
            Some(true),
            format!("{} (median)", significant(each.median)),
        ),
        None => ability(
            "tokens_per_chunk",
            "tokens a chunk",
            None,
            "nobody counted tokens".into(),
        ),
    }
}

fn length(counted: Counted, lengthened: &Lengthened) -> Ability {
    let (right, of, unit) = (lengthened.right, lengthened.of, counted.name());
    let (seen, text) = match lengthened.obeyed {
        _ if of == 0 => (None, "no answer was ok".into()),
        Obeyed::Yes => (
            Some(true),
            format!("yes: {right} of {of} answers, counted in {unit}"),
        ),
        Obeyed::Partly => (
            Some(false),
            format!("in part: {right} of {of} answers, counted in {unit}"),
        ),
        Obeyed::No => (
            Some(false),
            format!("no: {right} of {of} answers, counted in {unit}"),
        ),
    };
    ability("length_obeyed", "output length as asked for", seen, text)
}

fn cache(samples: &[Sample]) -> Ability {
    let stated: Vec<u64> = samples
        .iter()
        .filter_map(|sample| sample.judged.tokens.cached)
        .collect();
    let hits = stated.iter().filter(|cached| **cached > 0).count();
    let (seen, text) = match (stated.len(), hits) {
        (0, _) => (None, "the server does not say".into()),
        (_, 0) => (Some(false), "not used: no prompt was sent twice".into()),
        (all, hits) => {
            let most = stated.iter().max().copied().unwrap_or_default();
            (
                Some(true),
                format!("seen in {hits} of {all} answers, up to {most} prompt tokens"),
            )
        }
    };
    ability("prompt_cache", "prompt cache", seen, text)
}
