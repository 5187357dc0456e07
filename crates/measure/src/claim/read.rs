//! Owns the reading of a claim: from a text or from flags to its fields, questions and readings.

use super::attach::{Found, regions};
use super::entity::Class;
use super::find::{self, Candidate, Sort, candidates};
use super::quantity::Bound;
use super::{
    Claim, ClaimReading, Fields, LONGEST, SCHEMA, Standing, ask, lex, load, machines, notes,
    quantity,
};
use crate::stated::{Scope, Span, Stated, Streams, readings};

/// What the user adds to a text, or gives instead of one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Given {
    /// How many at once.
    pub concurrency: Option<Span>,
    /// What the number is summed over.
    pub scope: Option<Scope>,
}

/// Why a claim cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// Longer than [`LONGEST`].
    TooLong,
    /// A flag says one thing and the text another: the flag, and what the text says.
    Contradicts {
        /// The flag.
        flag: &'static str,
        /// What the text says.
        said: String,
    },
    /// What was given as value is none.
    NoValue,
    /// What was given as unit is none.
    NoUnit,
}

/// Reads a text. What `given` adds must not contradict it.
///
/// ```
/// use measure::claim::{Given, read};
/// let claim = read("500 tok/s plus over sixteen sessions", Given::default()).unwrap();
/// assert_eq!(claim.fields.concurrency, Some(16.0));
/// assert_eq!(claim.fields.scope, None);
/// assert_eq!(claim.readings[0].reading.per_stream.value(), Some(31.25));
/// ```
///
/// # Errors
/// Where the text is too long, or says other than what was given.
pub fn read(text: &str, given: Given) -> Result<Claim, Wrong> {
    if text.len() > LONGEST {
        return Err(Wrong::TooLong);
    }
    let toks = lex::lex(text);
    let mentions = load::mentions(&toks);
    let machines = machines::devices(&toks);
    let ranges: Vec<_> = mentions
        .iter()
        .map(|mention| mention.from..mention.to)
        .collect();
    let candidates = candidates(&toks, &ranges, &machines);
    let found = Found {
        text,
        toks: &toks,
        candidates: &candidates,
        mentions: &mentions,
        machines: &machines,
    };
    let regions = regions(&toks, &candidates);
    let mut all: Vec<Fields> = regions
        .iter()
        .enumerate()
        .filter(|(index, _)| *index < candidates.len())
        .map(|(index, region)| found.fields(index, region))
        .collect();
    let index = find::first(&candidates);
    let first = index.map(|index| &candidates[index]);
    let mut fields = match index {
        Some(index) => all.remove(index),
        None => without_number(&mentions),
    };
    fill(&mut fields, given, &mentions)?;
    let notes = notes::notes(&found, first.map(|c| c.sort), &fields, &all);
    Ok(Claim {
        schema: SCHEMA,
        text: Some(text.to_owned()),
        missing: ask::missing(&fields, first.map(|c| c.sort)),
        readings: both(&fields, first),
        also: all,
        tested: None,
        notes,
        fields,
    })
}

/// Reads a claim given in parts: a value such as `500` or `1.5M` and a unit such as `tok/s`.
///
/// # Errors
/// Where either is not what it should be.
pub fn of_parts(value: &str, unit: &str, given: Given) -> Result<Claim, Wrong> {
    let toks = lex::lex(value);
    let end = (0..toks.len())
        .find_map(|at| quantity::quantity(&toks, at))
        .map(|q| (q.from, q.to));
    if end != Some((0, toks.len())) {
        return Err(Wrong::NoValue);
    }
    let mut claim = read(&format!("{value} {unit}"), given)?;
    if claim.fields.unit.is_none() || !claim.also.is_empty() {
        return Err(Wrong::NoUnit);
    }
    claim.text = None;
    Ok(claim)
}

/// A text without a claim may still say how many there were.
fn without_number(mentions: &[load::Mention]) -> Fields {
    let streams = mentions.iter().find_map(|mention| mention.streams);
    Fields {
        concurrency: streams.and_then(Span::point),
        concurrency_range: streams.filter(|span| span.point().is_none()),
        ..Fields::default()
    }
}

/// Adds what was given. A flag may name another of the numbers at once that the text names, and
/// it may replace a "single stream" that the number is only compared with.
fn fill(fields: &mut Fields, given: Given, mentions: &[load::Mention]) -> Result<(), Wrong> {
    if let Some(span) = given.concurrency {
        let said = fields
            .concurrency
            .and_then(Span::exactly)
            .or(fields.concurrency_range);
        match said {
            Some(said) if said != span && !named(mentions, span) => {
                return Err(Wrong::Contradicts {
                    flag: "--concurrency",
                    said: said.to_string(),
                });
            }
            _ => {
                fields.held_concurrency = None;
                fields.concurrency = span.point();
                fields.concurrency_range = Some(span).filter(|span| span.point().is_none());
            }
        }
    }
    if let Some(scope) = given.scope {
        match fields.scope {
            Some(said) if said != scope => {
                return Err(Wrong::Contradicts {
                    flag: "--scope",
                    said: said.name().into(),
                });
            }
            _ => fields.scope = Some(scope),
        }
    }
    Ok(())
}

/// Both readings, where the number is one that can be summed over parallel work.
fn both(fields: &Fields, candidate: Option<&Candidate>) -> Vec<ClaimReading> {
    let sort = candidate.map(|candidate| candidate.sort);
    let cost = fields.per.is_some_and(|per| per.class == Class::Cost);
    let summed = matches!(
        sort,
        Some(Sort::Rate | Sort::CountOver | Sort::Duration | Sort::Bare)
    );
    let Some(value) = fields.span().filter(|_| summed && !cost) else {
        return Vec::new();
    };
    let streams = fields.streams();
    let machine = fields
        .per
        .filter(|per| per.class == Class::Machine && fields.scope == Some(Scope::System));
    let (value, unit, streams) = match (machine, fields.devices) {
        (Some(_), Some(count)) => match value.times(count) {
            Some(scaled) => (scaled, fields.shown_unit(), streams),
            None => return Vec::new(),
        },
        // How many of them share the streams is not known.
        (Some(per), None) => (
            value,
            format!("{}/{}", fields.shown_unit(), per.name),
            Streams::Unknown,
        ),
        (None, _) => (value, fields.shown_unit(), streams),
    };
    let stated = Stated {
        seconds: fields.interval_s,
        at_most: fields.bound == Some(Bound::AtMost),
        ..Stated::new(value, unit)
    };
    readings(&stated, streams)
        .map(|reading| ClaimReading {
            standing: match fields.scope {
                None => Standing::Open,
                Some(scope) if scope == reading.given => Standing::Stated,
                Some(_) => Standing::NotStated,
            },
            reading,
        })
        .into()
}

impl Fields {
    /// The value as stated, where it can be computed with.
    pub fn span(&self) -> Option<Span> {
        match (self.value?, self.value_to) {
            (low, Some(high)) => Span::between(low, high),
            (value, None) => Span::exactly(value),
        }
    }

    /// How many at once, as stated, else as held by Little's law.
    pub fn streams(&self) -> Streams {
        let stated = self.concurrency.and_then(Span::exactly);
        let held = self.held_concurrency.and_then(Span::exactly);
        match (stated.or(self.concurrency_range), held) {
            (Some(span), _) => Streams::Target(span),
            (None, Some(span)) => Streams::Held(span),
            (None, None) => Streams::Unknown,
        }
    }

    fn shown_unit(&self) -> String {
        self.unit
            .clone()
            .unwrap_or_else(|| "of an unnamed unit".into())
    }
}

fn named(mentions: &[load::Mention], span: Span) -> bool {
    mentions.iter().any(|mention| mention.streams == Some(span))
        || mentions.iter().all(|mention| mention.alone)
}
