//! Owns the question that a claim puts to a run, or why it can put none.

use crate::claim::{Bound, Claim, Class, Fields};
use crate::stated::Scope;

/// A measured figure may be this far from the value, as a share of it, and still agree.
const TOLERANCE: f64 = 0.1;

/// What a run has to measure for a claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Question {
    pub accepted: (f64, Option<f64>),
    pub value: f64,
    /// The upper end of a range, else the value.
    pub high: f64,
    pub what: What,
    pub wait: Option<bool>,
    pub scope: Option<Scope>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Output,
    Input,
    Total,
    Requests,
}

/// Whether a run can speak to a claim at all; what is asked before anything is sent.
///
/// # Errors
/// With a sentence on what is missing.
pub fn testable(claim: &Claim) -> Result<(), String> {
    question(&claim.fields).map(|_| ())
}

pub(super) fn question(fields: &Fields) -> Result<Question, String> {
    let per_second = fields
        .per_second
        .ok_or("the claim is no rate: there is no number with a base of time to test")?;
    let what = match (
        fields
            .unit
            .as_deref()
            .and_then(|unit| unit.split('/').next()),
        fields.counted.as_deref(),
    ) {
        (Some("tok"), Some("input")) => What::Input,
        (Some("tok"), Some("total")) => What::Total,
        (Some("tok"), _) => What::Output,
        (Some("req"), _) => What::Requests,
        (unit, _) => {
            return Err(format!(
                "a run counts tokens and requests, not {}: such a claim can be read, and a log of the work tallied, but not tested against an endpoint",
                unit.unwrap_or("a thing without unit")
            ));
        }
    };
    let machines = match (fields.per.map(|per| per.class), fields.devices) {
        (Some(Class::Cost), _) => {
            return Err("the claim is per cost or power, which a run does not measure".into());
        }
        (Some(Class::Machine), Some(count)) => count,
        (Some(Class::Machine), None) => {
            return Err("the claim is per machine and does not say how many there are: add that to the text".into());
        }
        _ => 1.0,
    };
    let value = per_second * machines;
    let high = fields
        .value_to
        .zip(fields.value)
        .map_or(value, |(high, low)| value * high / low);
    Ok(Question {
        accepted: accepted(value, high, fields.bound.unwrap_or(Bound::Point)),
        value,
        high,
        what,
        wait: fields.ttft_included,
        scope: fields.scope,
    })
}

/// The value ± 10 %; a bound is open to its side.
fn accepted(low: f64, high: f64, bound: Bound) -> (f64, Option<f64>) {
    let from = low * (1.0 - TOLERANCE);
    let to = high * (1.0 + TOLERANCE);
    match bound {
        Bound::Point | Bound::Range => (from, Some(to)),
        Bound::AtLeast => (from, None),
        Bound::AtMost => (0.0, Some(to)),
    }
}
