//! Owns what became of an open loop's plan: how much of it was started, and why the rest was not.

use std::collections::BTreeMap;

use serde::Serialize;

use super::verdict::Remark;
use super::{Requests, Scene};
use crate::plan::Arrivals;
use crate::schedule::{Fate, Fates};

/// Of a hundred planned requests so many must be started.
const STARTED_PERCENT: u64 = 99;

/// What became of a level's plan: planned = started + not started, for warm-up and measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// How the planned instants lie.
    pub arrivals: Arrivals,
    /// The most requests that were allowed in flight.
    pub most_in_flight: u32,
    /// Planned after the warm-up.
    pub planned: u64,
    /// Of these, started.
    pub started: u64,
    /// Of these, not started, by the reason; zeros stay out.
    pub not_started: BTreeMap<&'static str, u64>,
    /// Planned in the warm-up.
    pub warmup_planned: u64,
    /// Of these, started.
    pub warmup_started: u64,
    /// Sent alone before the plan began, and no part of it.
    pub before: u64,
}

/// None for a closed loop, and where the file ends before the driver's count.
pub(super) fn figures(scene: &Scene<'_>) -> Option<Planned> {
    let plan = &scene.level.plan;
    let fates = fates(scene)?;
    let measured = fates.measured;
    let reasons = [
        ("in_flight_limit", measured.in_flight_limit),
        ("stopped", measured.stopped),
    ];
    Some(Planned {
        arrivals: plan.arrivals?,
        most_in_flight: plan.streams,
        planned: measured.planned,
        started: measured.started,
        not_started: reasons.into_iter().filter(|(_, n)| *n > 0).collect(),
        warmup_planned: fates.warmup.planned,
        warmup_started: fates.warmup.started,
        before: fates.before,
    })
}

fn fates(scene: &Scene<'_>) -> Option<Fates> {
    scene.level.end.as_ref()?.planned
}

/// Against a level that started too little of its plan. What a person stopped is no part of it.
pub(super) fn started(scene: &Scene<'_>, reasons: &mut Vec<Remark>) {
    let Some(Fates { measured, .. }) = fates(scene) else {
        return;
    };
    let due = measured.planned.saturating_sub(measured.stopped);
    if u128::from(measured.started) * 100 < u128::from(due) * u128::from(STARTED_PERCENT) {
        reasons.push(Remark {
            code: "load_not_held",
            text: format!(
                "{} of {due} planned requests were started, below {STARTED_PERCENT} %: {} came while as many as allowed ({}) were in flight",
                measured.started, measured.in_flight_limit, scene.level.plan.streams
            ),
        });
    }
}

/// Where the plan does not add up: with itself, or with the requests of the file.
pub(super) fn unbalanced(scene: &Scene<'_>, requests: &Requests) -> Option<String> {
    let fates = fates(scene)?;
    let off = |fate: &Fate| fate.accounted() != fate.planned;
    if let Some(fate) = [fates.warmup, fates.measured].iter().find(|fate| off(fate)) {
        return Some(format!(
            "{} requests were planned and {} are accounted for",
            fate.planned,
            fate.accounted()
        ));
    }
    let started = (fates.before + fates.warmup.started, fates.measured.started);
    (started != (requests.warmup, requests.issued)).then(|| {
        format!(
            "the driver started {} requests of the warm-up and {} after it, and the file holds {} and {}",
            started.0, started.1, requests.warmup, requests.issued
        )
    })
}
