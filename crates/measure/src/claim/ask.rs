//! Owns the questions: what a claim left unsaid, in words that can be sent to its author.

use super::entity::Class;
use super::find::Sort;
use super::{Fields, Missing};
use crate::stated::{Scope, number};

/// What is missing of a number of this sort, the weightiest first.
pub(super) fn missing(fields: &Fields, sort: Option<Sort>) -> Vec<Missing> {
    let Some(sort) = sort else {
        let question = "What is the number, and in which unit?";
        return vec![Missing {
            field: "value",
            question: question.into(),
        }];
    };
    let shown = shown(fields);
    let all = match sort {
        Sort::Ratio => vec![
            base(&shown),
            concurrency(fields, &shown, true),
            interval(fields, &shown),
        ],
        Sort::Latency => vec![
            concurrency(fields, &shown, false),
            interval(fields, &shown),
            statistic(fields, &shown),
        ],
        Sort::Duration => vec![
            sum_or_elapsed(fields, &shown),
            concurrency(fields, &shown, false),
            statistic(fields, &shown),
        ],
        _ => vec![
            unit(fields, &shown),
            time_base(fields, sort, &shown),
            scope(fields, &shown),
            concurrency(fields, &shown, false),
            counted(fields, &shown),
            devices(fields, &shown),
            interval(fields, &shown),
            statistic(fields, &shown),
            wait(fields, &shown),
        ],
    };
    all.into_iter().flatten().collect()
}

/// The number as a person would write it: "500 tok/s per user".
pub(super) fn shown(fields: &Fields) -> String {
    let value = match (fields.value, fields.value_to) {
        (Some(low), Some(high)) => format!("{} to {}", number(low), number(high)),
        (Some(value), None) => number(value),
        _ => "the number".into(),
    };
    let unit = fields
        .unit
        .as_deref()
        .map(|unit| format!(" {unit}"))
        .unwrap_or_default();
    let per = fields
        .per
        .map(|per| format!(" per {}", per.name))
        .unwrap_or_default();
    format!("{value}{unit}{per}")
}

fn ask(field: &'static str, absent: bool, question: String) -> Option<Missing> {
    absent.then_some(Missing { field, question })
}

fn is_tokens(fields: &Fields) -> bool {
    fields
        .unit
        .as_deref()
        .is_some_and(|unit| unit.split('/').next() == Some("tok"))
}

fn unit(fields: &Fields, shown: &str) -> Option<Missing> {
    ask(
        "unit",
        fields.unit.is_none(),
        format!("{shown} of what, and in which time?"),
    )
}

fn time_base(fields: &Fields, sort: Sort, shown: &str) -> Option<Missing> {
    let lost = sort == Sort::PerEntity && is_tokens(fields);
    ask(
        "time_base",
        lost,
        format!("{shown} in which time: a second, an hour, the whole run?"),
    )
}

fn scope(fields: &Fields, shown: &str) -> Option<Missing> {
    let question = format!("Is {shown} the sum over all streams, or the rate of one of them?");
    // One at once is the system and a stream at the same time.
    let same = fields.concurrency == Some(1.0);
    ask("scope", fields.scope.is_none() && !same, question)
}

fn concurrency(fields: &Fields, shown: &str, both: bool) -> Option<Missing> {
    let absent = fields.concurrency.is_none()
        && fields.concurrency_range.is_none()
        && fields.held_concurrency.is_none();
    let question = match (both, fields.per.filter(|per| per.class == Class::Machine)) {
        (true, _) => format!("How many were served at once on either side of {shown}?"),
        (_, Some(per)) if fields.scope == Some(Scope::System) => {
            format!(
                "How many streams ran at once on each {} at {shown}?",
                per.name
            )
        }
        _ => format!("How many ran at once at {shown}, as configured and as held on average?"),
    };
    ask("concurrency", absent, question)
}

fn counted(fields: &Fields, shown: &str) -> Option<Missing> {
    let question = format!("Does {shown} count output tokens only, or input tokens as well?");
    ask(
        "counted",
        is_tokens(fields) && fields.counted.is_none(),
        question,
    )
}

fn devices(fields: &Fields, shown: &str) -> Option<Missing> {
    let per = fields.per.filter(|per| per.class == Class::Machine)?;
    let question = format!("How many {}s were in use in all at {shown}?", per.name);
    ask("devices", fields.devices.is_none(), question)
}

fn interval(fields: &Fields, shown: &str) -> Option<Missing> {
    let question = format!(
        "Over what time or how many requests was {shown} taken, ramp and drain included or not?"
    );
    ask("interval", fields.interval.is_none(), question)
}

fn statistic(fields: &Fields, shown: &str) -> Option<Missing> {
    let question = format!("Is {shown} a mean, a median or the best that was seen?");
    ask("statistic", fields.statistic.is_none(), question)
}

fn wait(fields: &Fields, shown: &str) -> Option<Missing> {
    let question = format!("Is the wait for the first token part of the time under {shown}?");
    ask(
        "ttft_included",
        is_tokens(fields) && fields.ttft_included.is_none(),
        question,
    )
}

fn base(shown: &str) -> Option<Missing> {
    let question = format!("{shown} of what: which two rates, in which unit, measured how?");
    ask("base", true, question)
}

fn sum_or_elapsed(fields: &Fields, shown: &str) -> Option<Missing> {
    let question = format!("Is {shown} the sum over all workers, or the time from start to end?");
    ask("scope", fields.scope.is_none(), question)
}
