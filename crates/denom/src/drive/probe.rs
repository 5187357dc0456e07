//! Owns the driving of a probe: one request after another, the sides in turns, and what heads say.

mod side;

use std::pin::pin;
use std::sync::Arc;

use measure::judge::{Guards, Judged, Outcome, judge, outcome};
use measure::probe::plan::Lengths;
use measure::record::{Footer, Line};
use measure::time::Length;
use measure::trace::Trace;

use super::shared::{Job, Shared};
use super::stream::{refused_form, why_end};
use super::{Signals, no_worker};
use crate::exit::Failure;
use crate::net::wake::Worker;
use crate::recorder::Recorder;
use side::Side;

/// Failures in a row from which no more is asked.
const MOST_FAILURES: u32 = 4;
/// Times that a refused form is asked in another.
const FORMS: u32 = 3;

/// One side: how its server is asked.
#[derive(Debug)]
pub struct Route {
    /// Where, and in which API.
    pub job: Job,
    /// With the headers that SDKs send.
    pub as_sdk: bool,
}

/// What is to be asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Output lengths.
    pub lengths: Lengths,
    /// They may be made shorter for a slow server.
    pub may_shrink: bool,
    /// Places of the lengths, in order.
    pub order: Vec<usize>,
}

/// How a probe goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Going {
    /// Requests done with.
    pub done: u64,
    /// Of how many.
    pub of: u64,
    /// Failures among them.
    pub failed: u64,
    /// Chunks that came.
    pub chunks: u64,
    /// It was asked to end.
    pub ending: bool,
}

/// How a probe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// Output lengths that were asked for.
    pub lengths: Lengths,
    /// The user stopped it.
    pub interrupted: bool,
    /// A first answer ended it; the sentence says why.
    pub ended: Option<String>,
}

/// Asks every side, in turns, and records it. `show` is told how it goes after each request.
///
/// # Errors
/// Where this machine cannot drive it.
pub fn drive(
    routes: Vec<Route>,
    asked: &Asked,
    recorder: &Recorder,
    show: &mut dyn FnMut(&Going),
) -> Result<Probed, Failure> {
    let clock = match routes.first() {
        Some(route) => route.job.clock,
        None => return Err(Failure::usage("there is no side to probe")),
    };
    let worker = Worker::new(clock).map_err(|error| no_worker(&error))?;
    let wake = worker.wake().clone();
    let sides: Vec<Side> = routes
        .into_iter()
        .zip(0..)
        .map(|(route, level)| Side::new(route, level, recorder, wake.clone()))
        .collect();
    let probed = worker.run(async {
        let turns = asked.order.len() as u64 + 1;
        let going = Going {
            done: 0,
            of: sides.len() as u64 * turns,
            failed: 0,
            chunks: 0,
            ending: false,
        };
        let signals = Signals::listen()?;
        Ok(Table {
            sides,
            signals,
            next_id: 0,
            going,
            show,
        }
        .run(asked)
        .await)
    })?;
    Ok(probed)
}

/// Everyone at the table is asked in turn.
struct Table<'a> {
    sides: Vec<Side>,
    signals: Signals,
    next_id: u64,
    going: Going,
    show: &'a mut dyn FnMut(&Going),
}

impl Table<'_> {
    async fn run(mut self, asked: &Asked) -> Probed {
        let mut lengths = asked.lengths;
        let mut ended = None;
        for place in 0..self.sides.len() {
            let [_, middle, _] = asked.lengths.tokens();
            match self.first(place, middle).await {
                Ok(speed) if asked.may_shrink => {
                    let fits = |(first, each)| asked.lengths.within_budget(first, each);
                    lengths = shorter(lengths, speed.map_or(lengths, fits));
                }
                Ok(_) => {}
                Err(why) => {
                    ended = Some(why);
                    break;
                }
            }
        }
        if ended.is_none() {
            self.measure(lengths, &asked.order).await;
        }
        self.close();
        Probed {
            lengths,
            interrupted: self.going.ending,
            ended,
        }
    }

    /// A side's first request, which is discarded: it may be cold, and shows the server's speed.
    async fn first(
        &mut self,
        place: usize,
        tokens: u64,
    ) -> Result<Option<(Length, Length)>, String> {
        for _ in 0..=FORMS {
            let Some(trace) = self.ask(place, tokens, true).await else {
                return Ok(None);
            };
            let shared = &self.sides[place].shared;
            if let Some((form, what)) = refused_form(shared.form(), &trace) {
                let text =
                    format!("the server refused {what}; requests go without it, in the other form");
                shared.set_form(form, super::note("retried_form", text));
                continue;
            }
            let said = trace.error.as_ref().map(|error| error.message.clone());
            if let Some(why) = why_end(shared, &trace, &said.unwrap_or_default()) {
                return Err(why);
            }
            let guards = Guards::default();
            return Ok(speed(&judge(trace, &guards, shared.job.api.has_sentinel())));
        }
        Ok(None)
    }

    async fn measure(&mut self, lengths: Lengths, order: &[usize]) {
        let tokens = lengths.tokens();
        let count = self.sides.len();
        let mut failures = vec![0; count];
        for (turn, length) in order.iter().enumerate() {
            for step in 0..count {
                // Whoever begins changes from turn to turn, so no side always goes second.
                let place = (turn + step) % count;
                if failures.iter().any(|failed| *failed >= MOST_FAILURES) {
                    return;
                }
                let Some(trace) = self.ask(place, tokens[*length], false).await else {
                    return;
                };
                let failed = outcome(&trace) != Outcome::Ok;
                failures[place] = if failed { failures[place] + 1 } else { 0 };
            }
        }
    }

    /// One request of a side; none once the user has asked for the end.
    async fn ask(&mut self, place: usize, tokens: u64, discard: bool) -> Option<Trace> {
        if self.going.ending || self.sides[place].shared.recorder.has_failed() {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        let endings: Vec<Arc<Shared>> = self.sides.iter().map(|s| Arc::clone(&s.shared)).collect();
        let (side, signals) = (&mut self.sides[place], &mut self.signals);
        let going = &mut self.going;
        let mut asking = pin!(side.ask(id, tokens, discard));
        let trace = loop {
            tokio::select! {
                trace = &mut asking => break trace,
                () = signals.next() => {
                    going.ending = true;
                    (self.show)(going);
                    endings.iter().for_each(|shared| shared.endings.ask());
                }
            }
        };
        going.done += 1;
        going.failed += u64::from(outcome(&trace) != Outcome::Ok);
        going.chunks += trace.chunks();
        (self.show)(going);
        Some(trace)
    }

    /// Writes each side's books, and the end.
    fn close(&self) {
        let Some(first) = self.sides.first() else {
            return;
        };
        let mut issued = 0;
        let mut notes = Vec::new();
        for side in &self.sides {
            issued += side.end(self.going.ending);
            // What befell the machine is known to each side, and is said once.
            for note in side.shared.notes() {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        for note in notes {
            first.shared.recorder.record(Line::Note(note));
        }
        first.shared.recorder.record(Line::Footer(Footer {
            issued,
            ended: issued,
            interrupted: self.going.ending,
        }));
    }
}

/// The shorter of two sets of lengths.
fn shorter(one: Lengths, other: Lengths) -> Lengths {
    match one.tokens()[2] <= other.tokens()[2] {
        true => one,
        false => other,
    }
}

/// Time to first content and time a token, as one answer shows them: at most so fast.
fn speed(judged: &Judged) -> Option<(Length, Length)> {
    let trace = &judged.trace;
    let sent = trace.sent.filter(|_| judged.outcome == Outcome::Ok)?;
    let (first, last) = (trace.first_content?, trace.last_content?);
    let chunks = judged.arrivals.chunks();
    let tokens = judged.tokens.billed.unwrap_or(chunks).max(1);
    let spread = last.since_or_zero(first);
    let total = trace.end?.since_or_zero(sent);
    // Where the answer came in a piece, all of its time may be the tokens'.
    let (first, all) = match spread.nanos() * 2 >= total.nanos() {
        true => (first.since_or_zero(sent), spread),
        false => (Length::ZERO, total),
    };
    Some((first, Length::from_nanos(all.nanos() / tokens)))
}
