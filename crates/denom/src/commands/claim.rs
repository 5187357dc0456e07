//! Owns `denom claim`: reads a stated number, lists what is missing, computes both readings.

use measure::claim::{self, Claim, Given, Wrong};
use measure::stated::{Scope, Span};

use super::run::{out, style};
use crate::cli::{ClaimArgs, ClaimFormat, ScopeName};
use crate::exit::{self, Failure};
use crate::page;

/// The JSON schema of a claim.
const CLAIM_SCHEMA: &str = include_str!("../../../../docs/schema/claim-1.json");

/// Runs the command.
///
/// # Errors
/// With code 2 where the claim cannot be read.
pub fn run(args: &ClaimArgs) -> Result<u8, Failure> {
    if args.schema {
        out(CLAIM_SCHEMA)?;
        return Ok(exit::DONE);
    }
    let claim = read(args)?;
    out(&match args.format {
        ClaimFormat::Text => page::claim::text(&claim, style()),
        ClaimFormat::Json => page::claim::json(&claim),
        ClaimFormat::Markdown => page::claim::markdown(&claim),
    })?;
    Ok(exit::DONE)
}

fn read(args: &ClaimArgs) -> Result<Claim, Failure> {
    let given = Given {
        concurrency: args.concurrency.map(|streams| streams.0),
        scope: args.scope.map(|scope| match scope {
            ScopeName::System => Scope::System,
            ScopeName::PerStream => Scope::PerStream,
        }),
    };
    let read = match (&args.text, &args.value, &args.unit) {
        (Some(text), ..) => claim::read(text, given),
        (None, Some(value), Some(unit)) => claim::of_parts(value, unit, given),
        _ => {
            return Err(Failure::usage(
                "a claim needs its text, or --value and --unit: denom claim '500 tok/s over sixteen sessions'",
            ));
        }
    };
    read.map_err(|wrong| Failure::usage(sentence(&wrong)))
}

fn sentence(wrong: &Wrong) -> String {
    match wrong {
        Wrong::TooLong => format!(
            "the text is longer than {} bytes: give the sentence that holds the number",
            claim::LONGEST
        ),
        Wrong::Contradicts { flag, said } => format!(
            "{flag} contradicts the text, which says {said}: leave out the flag, or that part of the text"
        ),
        Wrong::NoValue => "--value is no number: give 500, 22.3k, 1.5M or 50-100".into(),
        Wrong::NoUnit => {
            "--unit is no unit that can be read: give tok/s, tokens/s/user, req/min, pages/h".into()
        }
    }
}

/// A number of streams as typed: `16`, `3.5`, `4-8`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamsFlag(pub Span);

impl std::str::FromStr for StreamsFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let span = match text.split_once('-') {
            Some((low, high)) => number(low)
                .zip(number(high))
                .and_then(|(low, high)| Span::between(low, high)),
            None => number(text).and_then(Span::exactly),
        };
        span.map(StreamsFlag).ok_or_else(|| {
            format!("{text:?} is no number of streams: give 16, or a range such as 4-8")
        })
    }
}
