//! Owns the plan's thread: it sleeps until each planned instant and hands a request over.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use measure::prompt::Prompt;
use measure::schedule::{Fates, Schedule};
use measure::time::{Instant, Length};

use super::{Crew, LOOK};
use crate::clock::{self, Clock};
use crate::drive::request;
use crate::drive::shared::Shared;

/// The first planned instant lies so far ahead of the plan's begin: who makes ready is then done.
const LEAD: Length = Length::from_millis(20);

/// A request on its way from the plan to a worker.
pub(super) struct Dispatch {
    pub id: u64,
    pub planned: Instant,
    pub warmup: bool,
    pub prompt: Prompt,
    /// Built before its instant; the error is hyper's.
    pub request: Result<Request<Full<Bytes>>, hyper::http::Error>,
}

/// Hands out every request of `schedule` at its instant. No answer is waited for.
pub(super) fn run(shared: &Shared, schedule: &Schedule, crew: &Crew) -> Fates {
    clock::sharpen_sleep();
    let mut fates = Fates::default();
    let mut made = Some(make(shared));
    let origin = shared.job.clock.now() + LEAD;
    for (turn, offset) in schedule.offsets().iter().enumerate() {
        let warmup = turn < schedule.warmup();
        let fate = match warmup {
            true => &mut fates.warmup,
            false => &mut fates.measured,
        };
        fate.planned += 1;
        let planned = origin + *offset;
        if !wait_until(shared, planned) {
            fate.stopped += 1;
            continue;
        }
        if !crew.take_room() {
            fate.in_flight_limit += 1;
            continue;
        }
        let (id, prompt, request) = made.take().unwrap_or_else(|| make(shared));
        let dispatch = Dispatch {
            id,
            planned,
            warmup,
            prompt,
            request,
        };
        match crew.hand(turn, dispatch) {
            true => fate.started += 1,
            false => fate.stopped += 1,
        }
        // The time until the next instant is there to make its request in.
        made = (turn + 1 < schedule.offsets().len()).then(|| make(shared));
    }
    fates
}

type Made = (
    u64,
    Prompt,
    Result<Request<Full<Bytes>>, hyper::http::Error>,
);

fn make(shared: &Shared) -> Made {
    let id = shared.take_id();
    let prompt = shared.job.prompts.prompt(id);
    let body = request::body(&shared.job, &prompt, shared.form());
    (id, prompt, request::build(&shared.job, id, &body))
}

/// Sleeps until `planned`; `false` if the run is to end before.
fn wait_until(shared: &Shared, planned: Instant) -> bool {
    loop {
        if shared.is_stopping() {
            return false;
        }
        match planned.since(shared.job.clock.now()) {
            Some(left) if !left.is_zero() => std::thread::sleep(left.min(LOOK).into()),
            _ => return true,
        }
    }
}
