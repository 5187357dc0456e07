//! Owns the figures of one load level: every number of a page's row, with its basis.

mod client;
mod doubts;
mod end_to_end;
mod h2;
mod latency;
mod planned;
pub(crate) mod streams;
pub(crate) mod streams_of;
mod system;
mod verdict;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::basis::{Load, Loop, Population, Rule};
use crate::figure::{Dist, DistBasis, Figure, Withheld};
use crate::judge::{Flag, Guards, Judged, Outcome, Reason, Shape};
use crate::record::{self, Gap, GapKind};
use crate::tokens::Source;
use crate::window::{self, Window};

pub use client::Client;
pub use end_to_end::EndToEndOnly;
pub use latency::{Connection, Declared, FailuresIncluded, Latency};
pub use planned::Planned;
pub use streams::{Baseline, PerStream};
pub use system::System;
pub use verdict::{Remark, Verdict, Warning};

/// What counts as output on a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Tokens, by this source.
    Tokens(Source),
    /// Chunks: nobody counted tokens.
    Chunks,
}

/// The figures of one level.
#[derive(Debug, Clone, Serialize)]
pub struct LevelReport {
    /// The load asked for and held.
    pub load: LoadShown,
    /// The stretch of time that system figures rest on.
    pub window: Option<WindowShown>,
    /// The thresholds that shapes were judged by.
    pub guards: GuardsShown,
    /// What became of the requests.
    pub requests: Requests,
    /// Summed over all streams.
    pub system: System,
    /// One stream.
    pub per_stream: PerStream,
    /// Ok requests of which only the whole was observed.
    pub end_to_end_only: EndToEndOnly,
    /// Requests whose stream figures stand apart.
    pub flagged: Flagged,
    /// Times.
    pub latency: Latency,
    /// Times with failed requests as the worst.
    pub failures_included: FailuresIncluded,
    /// What the server says of itself.
    pub declared: Declared,
    /// How connections came about.
    pub connection: Connection,
    /// What this client may have added.
    pub client: Client,
    /// Requests that met the objectives; none were given where there is no value.
    pub goodput: Figure,
    /// Whether the numbers may be used.
    pub verdict: Verdict,
    /// Doubts, each with what to do.
    pub warnings: Vec<Warning>,
    /// For use within a page only.
    #[serde(skip)]
    pub baseline: bool,
}

/// The load asked for and held.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LoadShown {
    /// Open or closed loop.
    #[serde(rename = "loop")]
    pub kind: Loop,
    /// Target.
    pub target: f64,
    /// Requests in flight on average over the window.
    pub held: Option<f64>,
    /// `concurrency` or `req/s`.
    pub unit: &'static str,
}

/// The window as shown.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct WindowShown {
    /// By which rule.
    pub rule: Rule,
    /// Start, from the run's origin.
    pub start_s: f64,
    /// End, from the run's origin.
    pub end_s: f64,
    /// Of this, time paused at the server's word, which does not count.
    pub paused_s: f64,
}

/// The guards as shown.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct GuardsShown {
    /// Least chunks and arrivals.
    pub min_chunks: u64,
    /// Least interval.
    pub min_interval_s: f64,
}

/// What became of a level's requests: issued = ok + drained + failed.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Requests {
    /// Sent after the warm-up.
    pub issued: u64,
    /// Sent before.
    pub warmup: u64,
    /// What became of the plan of an open loop, as its driver counted.
    pub plan: Option<Planned>,
    /// With a finish marker, a legal end and content.
    pub ok: u64,
    /// Still running when the run ended.
    pub drained: u64,
    /// Failures by kind.
    pub failed: BTreeMap<&'static str, u64>,
    /// Ok requests by why the model stopped.
    pub finish: BTreeMap<&'static str, u64>,
    /// Prompt tokens that came from a cache, where the server says so.
    pub cached_prompt_tokens: Option<u64>,
    /// Ok requests by shape.
    pub shapes: BTreeMap<&'static str, u64>,
    /// Buffered requests by reason; one may have several.
    pub reasons: BTreeMap<&'static str, u64>,
    /// Requests by flag.
    pub flags: BTreeMap<&'static str, u64>,
    /// Prompt tokens of ok requests, as the server counted them.
    pub input_tokens: Option<u64>,
    /// Prompt tokens a request, over the ok requests for which the server stated them.
    pub input_tokens_mean: Option<f64>,
    /// Output tokens of ok requests, arrived or not.
    pub output_tokens: Option<u64>,
    /// Of these, tokens that never arrived.
    pub hidden_tokens: Option<u64>,
    /// Up to three messages of failed requests.
    pub failure_texts: Vec<String>,
}

impl Requests {
    /// All failures.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }
}

/// Requests whose stream figures stand apart from the others.
#[derive(Debug, Clone, Serialize)]
pub struct Flagged {
    /// All content in the last tenth of the time, after a second of silence.
    pub late_burst: LateBurst,
}

/// Figures of late bursts.
#[derive(Debug, Clone, Serialize)]
pub struct LateBurst {
    /// How many.
    pub n: u64,
    /// Their generation rate.
    pub generation: Dist,
    /// Their time to first content.
    pub ttft: Dist,
}

/// A level while its figures are made.
pub(crate) struct Scene<'a> {
    /// As the file tells it.
    pub level: &'a record::Level,
    /// The thresholds.
    pub guards: Guards,
    /// The window, where anything was sent.
    pub window: Option<Window<'a>>,
    /// The load.
    pub load: Load,
    /// What counts as output.
    pub counted: Counted,
    /// Ok requests disagree about who counts tokens.
    pub mixed_sources: bool,
}

impl<'a> Scene<'a> {
    /// The window, or that there is none.
    pub fn window(&self) -> Result<Window<'a>, Withheld> {
        self.window.ok_or_else(|| {
            Withheld::new("nothing_sent", "no request was sent, so there is no window")
        })
    }

    /// Requests sent after the warm-up.
    pub fn members(&self) -> impl Iterator<Item = &'a Judged> + use<'a> {
        self.level
            .requests
            .iter()
            .filter(|request| !request.trace.warmup)
    }

    /// Ok requests sent after the warm-up.
    pub fn ok(&self) -> impl Iterator<Item = &'a Judged> + use<'a> {
        self.members()
            .filter(|request| request.outcome == Outcome::Ok)
    }

    /// Ok requests whose first-content time and generation rate were observed; late bursts apart.
    pub fn streamed(&self) -> impl Iterator<Item = &'a Judged> + use<'a> {
        self.supported()
            .filter(|request| !request.flags.contains(&Flag::LateBurst))
    }

    /// Ok requests whose content came all in the last tenth.
    pub fn late(&self) -> impl Iterator<Item = &'a Judged> + use<'a> {
        self.supported()
            .filter(|request| request.flags.contains(&Flag::LateBurst))
    }

    fn supported(&self) -> impl Iterator<Item = &'a Judged> + use<'a> {
        self.ok()
            .filter(|request| request.supports_stream_figures())
    }

    /// How many ok requests.
    pub fn ok_count(&self) -> u64 {
        self.ok().count() as u64
    }

    /// A distribution's basis over `kept` of the ok requests.
    pub fn basis(&self, rule: Rule, kept: u64) -> DistBasis {
        DistBasis {
            rule,
            population: self.of_ok(kept),
            load: self.load,
        }
    }

    /// The basis of a distribution that may rest on any issued request, not on ok ones alone.
    pub fn issued_basis(&self, rule: Rule, kept: u64) -> DistBasis {
        let mut basis = self.basis(rule, kept);
        basis.population.of = self.members().count() as u64;
        basis.population.what = "issued requests";
        basis
    }

    /// Requests with output, of all of the level: what throughput is counted over.
    pub fn with_output(&self) -> Population {
        let requests = &self.level.requests;
        let with_output = requests
            .iter()
            .filter(|request| !request.arrivals.is_empty());
        Population {
            kept: with_output.count() as u64,
            of: requests.len() as u64,
            what: "requests with output, warm-up included",
        }
    }

    /// `kept` of the ok requests.
    pub fn of_ok(&self, kept: u64) -> Population {
        Population {
            kept,
            of: self.ok_count(),
            what: "ok requests",
        }
    }
}

/// The figures of a level. `baseline` are the medians that shares are taken of.
pub fn report(
    level: &record::Level,
    guards: Guards,
    baseline: Option<&Baseline>,
) -> (LevelReport, Baseline) {
    let pauses: Vec<Gap> = level.gaps(GapKind::Pause).copied().collect();
    let scene = scene(level, guards, &pauses);
    let requests = count(&scene);
    let system = system::figures(&scene);
    let (per_stream, medians) = streams::figures(&scene, baseline);
    let latency = latency::figures(&scene);
    let client = client::figures(&scene);
    let (verdict, warnings) = verdict::of(&scene, &requests, &system, &client, &latency);
    let report = LevelReport {
        load: LoadShown {
            kind: scene.load.kind,
            target: scene.load.target(),
            held: scene.load.held(),
            unit: match scene.load.kind {
                Loop::Closed => "concurrency",
                Loop::Open => "req/s",
            },
        },
        window: scene.window.map(|window| WindowShown {
            rule: window.interval.rule(),
            start_s: window
                .start
                .since_or_zero(crate::time::Instant::ORIGIN)
                .as_secs_f64(),
            end_s: window
                .end
                .since_or_zero(crate::time::Instant::ORIGIN)
                .as_secs_f64(),
            paused_s: window.paused().as_secs_f64(),
        }),
        guards: GuardsShown {
            min_chunks: guards.min_chunks,
            min_interval_s: guards.min_interval.as_secs_f64(),
        },
        end_to_end_only: end_to_end::figures(&scene),
        flagged: Flagged {
            late_burst: streams::late_burst(&scene),
        },
        failures_included: latency::failures_included(&scene),
        declared: latency::declared(&scene),
        connection: latency::connection(&scene),
        goodput: system::goodput(&scene),
        baseline: level.plan.baseline,
        requests,
        system,
        per_stream,
        latency,
        client,
        verdict,
        warnings,
    };
    (report, medians)
}

fn scene<'a>(level: &'a record::Level, guards: Guards, pauses: &'a [Gap]) -> Scene<'a> {
    let window = window::choose(level, pauses);
    let held_milli = window
        .map(|window| window::held_milli(window::in_flight(&level.requests, &window), &window));
    let load = Load {
        kind: level.plan.kind,
        target_milli: level.plan.target_milli,
        held_milli,
    };
    let mut scene = Scene {
        level,
        guards,
        window,
        load,
        counted: Counted::Chunks,
        mixed_sources: false,
    };
    let mut sources: Vec<Source> = scene.ok().map(|request| request.tokens.source).collect();
    sources.sort_unstable();
    sources.dedup();
    scene.mixed_sources = sources.len() > 1;
    scene.counted = match sources.as_slice() {
        [source @ (Source::Server | Source::Tokenizer)] => Counted::Tokens(*source),
        _ => Counted::Chunks,
    };
    scene
}

fn count(scene: &Scene<'_>) -> Requests {
    let mut counts = Requests {
        warmup: scene
            .level
            .requests
            .iter()
            .filter(|request| request.trace.warmup)
            .count() as u64,
        plan: planned::figures(scene),
        ..Requests::default()
    };
    for shape in [
        Shape::Streamed,
        Shape::Clumped,
        Shape::Buffered,
        Shape::Whole,
    ] {
        counts.shapes.insert(shape.name(), 0);
    }
    for request in scene.members() {
        counts.issued += 1;
        match request.outcome {
            Outcome::Ok => count_ok(request, &mut counts),
            Outcome::Drained => counts.drained += 1,
            Outcome::Failed(failure) => {
                *counts.failed.entry(failure.name()).or_default() += 1;
                let text = failure_text(request);
                if counts.failure_texts.len() < 3 && !counts.failure_texts.contains(&text) {
                    counts.failure_texts.push(text);
                }
            }
        }
        for flag in &request.flags {
            *counts.flags.entry(flag.name()).or_default() += 1;
        }
    }
    let stated = scene.ok().filter(|request| request.tokens.input.is_some());
    counts.input_tokens_mean = counts
        .input_tokens
        .map(|sum| sum as f64 / stated.count().max(1) as f64);
    counts
}

fn count_ok(request: &Judged, counts: &mut Requests) {
    counts.ok += 1;
    if let Some(finish) = request.trace.finish_reason {
        *counts.finish.entry(finish.name()).or_default() += 1;
    }
    if let Some(shape) = request.shape {
        *counts.shapes.entry(shape.name()).or_default() += 1;
    }
    for reason in &request.reasons {
        *counts.reasons.entry(reason.name()).or_default() += 1;
    }
    let add = |sum: &mut Option<u64>, more: Option<u64>| {
        if let Some(more) = more {
            *sum = Some(sum.unwrap_or(0).saturating_add(more));
        }
    };
    add(&mut counts.cached_prompt_tokens, request.tokens.cached);
    add(&mut counts.input_tokens, request.tokens.input);
    add(&mut counts.output_tokens, request.tokens.billed);
    add(&mut counts.hidden_tokens, request.tokens.hidden);
}

/// What a failed request says of itself, for a page.
pub fn failure_text(request: &Judged) -> String {
    use crate::trace::Transport;
    let kind = match (request.outcome, request.trace.status) {
        (Outcome::Failed(_), Some(status)) if status != 200 => format!("HTTP status {status}"),
        (outcome, _) => outcome.name().to_owned(),
    };
    let detail = match (
        &request.trace.error,
        &request.trace.malformed,
        &request.trace.transport,
    ) {
        (Some(error), _, _) => error.message.clone(),
        (_, Some(text), _) => text.clone(),
        (
            _,
            _,
            Transport::Broken { text } | Transport::Limit { text } | Transport::NoResponse { text },
        ) => text.clone(),
        (_, _, Transport::NoConnection { text, .. }) => text.clone(),
        (_, _, Transport::Stale) => {
            "the server was closing the connection as the request was sent on it".into()
        }
        (_, _, Transport::Timeout { phase }) => {
            format!("in phase {}", crate::rows::phase_name(*phase))
        }
        _ if hidden_only(request) => {
            let billed = request.tokens.billed.unwrap_or(0);
            format!("all {billed} tokens went into hidden reasoning: raise --output-tokens")
        }
        _ => match request.outcome {
            Outcome::Failed(crate::judge::Failure::Empty) => {
                "the answer ended well and held no output".into()
            }
            Outcome::Failed(crate::judge::Failure::Truncated) => {
                "the body ended without a finish marker".into()
            }
            _ => String::new(),
        },
    };
    if detail.is_empty() {
        kind
    } else {
        format!("{kind}: {detail}")
    }
}

fn hidden_only(request: &Judged) -> bool {
    request.trace.first_content.is_none()
        && request.tokens.billed.is_some_and(|billed| billed > 0)
        && request.trace.finish_reason == Some(crate::trace::Finish::Length)
}

/// Whether the guards put ok requests on both sides, and how many fell out as short.
pub(crate) struct Selection {
    /// Ok requests that support stream figures.
    pub kept: u64,
    /// Ok requests that do not.
    pub dropped: u64,
    /// Of these, with the reason `short` alone: a burst is short too, and not for being fast.
    pub short: u64,
}

impl Selection {
    pub(crate) fn of(scene: &Scene<'_>) -> Self {
        let kept = scene.supported().count() as u64;
        let short = scene
            .ok()
            .filter(|request| request.reasons.as_slice() == [Reason::Short])
            .count();
        Selection {
            kept,
            dropped: scene.ok_count() - kept,
            short: short as u64,
        }
    }

    /// Ok requests lie on both sides of a guard.
    pub fn is_partial(&self) -> bool {
        self.kept > 0 && self.dropped > 0
    }

    /// A fifth or more fell out as short: the fast ones are the missing ones.
    pub fn lost_the_fast(&self) -> bool {
        self.kept > 0 && self.short * 5 >= self.kept + self.dropped
    }
}
