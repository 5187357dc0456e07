//! Owns the notes: what a reader of a claim should know before the number is used.

use super::attach::Found;
use super::entity::Class;
use super::find::Sort;
use super::quantity::Bound;
use super::words::find;
use super::{Fields, Note, Statistic};
use crate::stated::{Scope, number};

/// How far two stated rates may be apart and still be one run's: rounding of what people write.
const AGREES: f64 = 0.1;

/// All notes on a claim: `first` is its number, `also` the others of the text.
pub(super) fn notes(
    found: &Found<'_>,
    sort: Option<Sort>,
    first: &Fields,
    also: &[Fields],
) -> Vec<Note> {
    let all: Vec<&Fields> = std::iter::once(first).chain(also).collect();
    let mut notes: Vec<Option<Note>> = vec![
        two_operating_points(&all),
        both_given(&all),
        peak_against_mean(&all).or_else(|| peak_beside_mean(&all)),
        no_number(found),
        several_concurrencies(found, first),
        of_counted(first),
        per_cost(first),
        per_machine(first),
        held(first),
        wait_apart(found, first),
        softened(first),
    ];
    notes.push(sort.and_then(|sort| of_sort(sort, first)));
    notes.into_iter().flatten().collect()
}

fn note(code: &'static str, text: impl Into<String>) -> Option<Note> {
    Some(Note {
        code,
        text: text.into(),
    })
}

fn is_extreme(fields: &Fields) -> bool {
    fields.statistic == Some(Statistic::Peak)
        || matches!(fields.bound, Some(Bound::AtLeast | Bound::AtMost))
}

/// Two extremes of different scope are reached under different loads.
fn two_operating_points(all: &[&Fields]) -> Option<Note> {
    let rates = || all.iter().filter(|f| f.time_base.is_some());
    let extremes = rates().filter(|f| is_extreme(f)).count();
    let mut scopes: Vec<_> = rates()
        .map(|f| (f.scope, f.per.map(|per| per.name)))
        .collect();
    scopes.dedup();
    let one_unit = {
        let mut units: Vec<_> = rates().filter_map(|f| f.unit.as_deref()).collect();
        units.dedup();
        units.len() == 1
    };
    let differ = scopes.len() > 1 || all.iter().any(|f| f.concurrency != all[0].concurrency);
    let given_together = both_given(all).is_some();
    (rates().count() > 1 && extremes > 0 && (extremes > 1 || differ) && one_unit && !given_together)
        .then(|| {
            let shown: Vec<String> = rates().map(|f| super::ask::shown(f)).collect();
            note(
                "two_operating_points",
                format!(
                    "{} are two operating points: an extreme is reached under a load of its own, so neither may be quoted as if the other held with it.",
                    shown.join(" and ")
                ),
            )
        })
        .flatten()
}

/// A system rate and a per-stream rate at one concurrency can be checked against each other.
fn both_given(all: &[&Fields]) -> Option<Note> {
    let of = |scope: Scope| {
        all.iter()
            .find(|f| f.scope == Some(scope) && f.per_second.is_some() && f.value_to.is_none())
    };
    let (system, stream) = (of(Scope::System)?, of(Scope::PerStream)?);
    let streams = match (system.concurrency, stream.concurrency) {
        (Some(n), Some(m)) if n != m => return None,
        (n, m) => n.or(m)?,
    };
    if system.unit != stream.unit || system.per.is_some_and(|per| per.class == Class::Machine) {
        return None;
    }
    let (sum, one) = (system.value?, stream.value?);
    let implied = sum / streams;
    let unit = system.unit.as_deref().unwrap_or("");
    let off = (implied - one).abs() / one;
    match off <= AGREES {
        true => note(
            "both_given",
            format!(
                "Both readings are given and agree: {} {unit} over {} is {} {unit} each.",
                number(sum),
                number(streams),
                number(implied)
            ),
        ),
        false => note(
            "both_given_disagree",
            format!(
                "Both readings are given and do not agree: {} {unit} over {} is {} {unit} each, not {}. Streams that wait, or a rate timed after the first token, are the usual reasons.",
                number(sum),
                number(streams),
                number(implied),
                number(one)
            ),
        ),
    }
}

/// A peak beside a total over a longer time.
fn peak_against_mean(all: &[&Fields]) -> Option<Note> {
    let base = |f: &&&Fields| f.time_base.map_or(0.0, |time| time.seconds);
    let rates = || all.iter().filter(|f| f.per_second.is_some());
    let (short, long) = (
        rates().min_by(|a, b| base(a).total_cmp(&base(b)))?,
        rates().max_by(|a, b| base(a).total_cmp(&base(b)))?,
    );
    let noun = |f: &Fields| {
        f.unit
            .as_deref()
            .and_then(|u| u.split('/').next())
            .map(str::to_owned)
    };
    let (peak, mean) = (short.per_second?, long.per_second?);
    let longer = base(&long) >= 60.0 * base(&short);
    let same_noun = noun(short) == noun(long);
    (longer && same_noun && peak > mean && short.scope != Some(Scope::PerStream))
        .then(|| {
            note(
                "peak_vs_mean",
                format!(
                    "{} is {} times the mean of {} {}/s that {} makes: the first holds for a moment, the second for the whole {}.",
                    super::ask::shown(short), number(peak / mean), number(mean), noun(long).unwrap_or_default(),
                    super::ask::shown(long), long.time_base.map_or("time", |time| time.name)
                ),
            )
        })
        .flatten()
}

/// A peak and a mean in one unit: "1,500 at peak, 220 on average".
fn peak_beside_mean(all: &[&Fields]) -> Option<Note> {
    let of = |statistic: Statistic| all.iter().find(|f| f.statistic == Some(statistic));
    let (peak, mean) = (of(Statistic::Peak)?, of(Statistic::Mean)?);
    let (most, usual) = (peak.per_second?, mean.per_second?);
    let same = peak.unit == mean.unit && peak.per == mean.per;
    (same && most > usual)
        .then(|| {
            note(
                "peak_vs_mean",
                format!(
                    "{} is {} times {}: the first holds for a moment only.",
                    super::ask::shown(peak),
                    number(most / usual),
                    super::ask::shown(mean)
                ),
            )
        })
        .flatten()
}

fn no_number(found: &Found<'_>) -> Option<Note> {
    let mention = found
        .mentions
        .iter()
        .find(|mention| mention.streams.is_none())?;
    let words = found.text.get(mention.text.clone()).unwrap_or("MAX");
    note(
        "concurrency_no_number",
        format!("\"{words}\" is no number of streams: nothing can be divided by it."),
    )
}

fn several_concurrencies(found: &Found<'_>, first: &Fields) -> Option<Note> {
    let mut named: Vec<String> = found
        .mentions
        .iter()
        .filter_map(|m| m.streams)
        .map(|span| span.to_string())
        .collect();
    named.dedup();
    let taken = first
        .concurrency
        .map(number)
        .or(first.concurrency_range.map(|span| span.to_string()));
    (named.len() > 1)
        .then(|| {
            let text = match taken {
                Some(taken) => format!(
                    "Several numbers at once are named ({}): {taken} stands nearest and is taken.",
                    named.join(", ")
                ),
                None => format!(
                    "Several numbers at once are named ({}), none with this number: none is taken.",
                    named.join(", ")
                ),
            };
            note("several_concurrencies", text)
        })
        .flatten()
}

fn of_counted(first: &Fields) -> Option<Note> {
    match first.counted.as_deref() {
        Some("total") => note(
            "total_is_not_output",
            "It counts input and output tokens together: it is not comparable with a rate of output tokens, and input is read many times faster than output is made.",
        ),
        Some("input") => note(
            "input_is_not_output",
            "It counts input tokens: it says how fast prompts are read, not how fast answers come.",
        ),
        _ => None,
    }
}

fn per_cost(first: &Fields) -> Option<Note> {
    let per = first.per.filter(|per| per.class == Class::Cost)?;
    let text = format!(
        "It is per {0}: without the number of {0} in use it is neither a system's rate nor a stream's, and no reading is computed.",
        per.name
    );
    note("per_cost", text)
}

fn per_machine(first: &Fields) -> Option<Note> {
    let per = first
        .per
        .filter(|per| per.class == Class::Machine && first.scope == Some(Scope::System))?;
    let text = match first.devices.zip(first.value) {
        Some((count, value)) => format!(
            "Per {}: over {} of them it is {} {} in all, if every one of them did that.",
            per.name,
            number(count),
            number(value * count),
            first.unit.as_deref().unwrap_or("")
        ),
        None => format!(
            "Per {}: how many there are was not said, so the rate of the whole is not known.",
            per.name
        ),
    };
    note("per_machine", text.trim_end())
}

fn held(first: &Fields) -> Option<Note> {
    let held = first.held_concurrency?;
    note(
        "held_by_littles_law",
        format!(
            "{} were in flight on average, by Little's law: the stated rate of requests times their mean latency.",
            number(held)
        ),
    )
}

fn wait_apart(found: &Found<'_>, first: &Fields) -> Option<Note> {
    let whole = 0..found.toks.len();
    let named = !find(
        found.toks,
        &whole,
        &["time to first token", "ttft", "first token"],
    )
    .is_empty();
    (named && first.ttft_included.is_none() && first.time_base.is_some())
        .then(|| {
            note(
                "wait_stated_apart",
                "The wait for the first token is named apart; whether the rate's time contains it is not said.",
            )
        })
        .flatten()
}

fn softened(first: &Fields) -> Option<Note> {
    (!first.softeners.is_empty())
        .then(|| {
            note(
                "softened",
                format!("Words that soften it: {}.", first.softeners.join(", ")),
            )
        })
        .flatten()
}

fn of_sort(sort: Sort, first: &Fields) -> Option<Note> {
    match sort {
        Sort::Ratio => note(
            "ratio_without_base",
            "A ratio has no unit: without the rate below it, and the load on both sides, it says nothing of any speed.",
        ),
        Sort::PerEntity if first.unit.as_deref() == Some("tok") => note(
            "unit_lost",
            "There is no time in the unit: it cannot be read as a rate.",
        ),
        Sort::PerEntity => note(
            "not_a_rate",
            "There is no time in the unit: it says how many, not how fast.",
        ),
        Sort::Latency => note(
            "not_a_rate",
            "It is a latency, of one request or token: however many run at once, it is neither divided nor multiplied by them.",
        ),
        Sort::Duration => note(
            "sum_vs_elapsed",
            "Minutes of parallel workers add up to more than the clock shows: a sum over workers and a time from start to end are different things.",
        ),
        Sort::CountOver => note(
            "rate_computed",
            "The rate is computed here, from the count and the time as stated.",
        ),
        Sort::Bare => note(
            "unit_lost",
            "There is no unit: what is counted, and in which time, is not said.",
        ),
        Sort::Rate => None,
    }
}
