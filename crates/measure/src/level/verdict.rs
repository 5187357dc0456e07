//! Owns the verdict on a level and its warnings: what forbids its numbers, and what to doubt.

use serde::Serialize;

use super::latency::{Latency, slow_write};
use super::{Client, Requests, Scene, Selection, System, client, planned, streams};
use crate::basis::{Loop, Rule};
use crate::count::Token;
use crate::plan::Stop;
use crate::quantile::Quantile;
use crate::rate::significant;
use crate::record::{GapKind, Level};
use crate::time::Length;
use crate::trace::Stamps;
use crate::window;

/// Fewest ok requests of a valid level.
const LEAST_OK: u64 = 6;
/// The share of this client's own ceiling up to which its numbers are taken for the server's.
const HALF: f64 = 0.5;

/// Whether a level's numbers may be used.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// They may.
    pub valid: bool,
    /// Why they may not.
    pub reasons: Vec<Remark>,
}

/// One reason against a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// A short name that scripts may test for.
    pub code: &'static str,
    /// One sentence.
    pub text: String,
}

/// A doubt with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// A short name that scripts may test for.
    pub code: &'static str,
    /// One sentence.
    pub text: String,
    /// What to try.
    pub hint: String,
}

impl Verdict {
    /// Whether the client or this machine was the limit.
    pub fn is_client_limited(&self) -> bool {
        self.reasons
            .iter()
            .any(|r| matches!(r.code, "client_limited" | "local_resource"))
    }
}

pub(super) fn of(
    scene: &Scene<'_>,
    requests: &Requests,
    system: &System,
    client: &Client,
    latency: &Latency,
) -> (Verdict, Vec<Warning>) {
    let mut reasons = Vec::new();
    load_held(scene, latency, &mut reasons);
    enough(requests, &mut reasons);
    client_limited(scene, client, latency, requests, &mut reasons);
    books(scene, requests, &mut reasons);
    clock(scene, &mut reasons);
    if scene.mixed_sources {
        let text =
            "some ok requests state token counts and some do not, so rates are in chunks".into();
        reasons.push(Remark {
            code: "two_token_sources",
            text,
        });
    }
    let mut warnings = Vec::new();
    window_warning(scene, &mut warnings);
    request_warnings(scene, requests, &mut warnings);
    stream_warnings(scene, requests, &mut warnings);
    gap_warnings(scene, system, &mut warnings);
    edge_warning(scene, system, &mut warnings);
    warnings.extend(super::h2::warning(scene));
    super::doubts::of(client, &mut warnings);
    (
        Verdict {
            valid: reasons.is_empty(),
            reasons,
        },
        warnings,
    )
}

fn load_held(scene: &Scene<'_>, latency: &Latency, reasons: &mut Vec<Remark>) {
    let load = scene.load;
    match load.kind {
        Loop::Closed => {
            let held = load.held_milli.unwrap_or(0);
            if u128::from(held) * 10 < u128::from(load.target_milli) * 9 {
                let text = format!(
                    "{:.2} requests were in flight on average and {} were wanted: below 90 %",
                    held as f64 / 1e3,
                    load.target()
                );
                reasons.push(Remark {
                    code: "load_not_held",
                    text,
                });
            }
        }
        Loop::Open => {
            planned::started(scene, reasons);
            send_lag_held(scene, latency, reasons);
        }
    }
}

/// The p99 of the send lag in seconds, at its nearest rank for any number of requests: a verdict
/// needs no interval.
fn send_lag_p99(scene: &Scene<'_>) -> Option<f64> {
    let mut all: Vec<Length> = client::send_lags(scene).collect();
    let rank = (all.len() * 99).div_ceil(100).checked_sub(1)?;
    Some(all.select_nth_unstable(rank).1.as_secs_f64())
}

fn send_lag_held(scene: &Scene<'_>, latency: &Latency, reasons: &mut Vec<Remark>) {
    let limit = latency
        .ttft
        .median()
        .value
        .map_or(1e-3, |ttft| (ttft / 100.0).max(1e-3));
    if let Some(lag) = send_lag_p99(scene).filter(|lag| *lag > limit) {
        let text = format!(
            "requests were sent {} ms after their planned instant at p99, and {} ms is the limit",
            significant(lag * 1e3),
            significant(limit * 1e3)
        );
        reasons.push(Remark {
            code: "load_not_held",
            text,
        });
    }
}

fn enough(requests: &Requests, reasons: &mut Vec<Remark>) {
    if requests.ok < LEAST_OK {
        let text = format!(
            "{} requests ended ok, and a level needs {LEAST_OK}",
            requests.ok
        );
        reasons.push(Remark {
            code: "too_few_ok",
            text,
        });
    }
    let failures = requests.failures();
    if failures * 2 > requests.issued {
        let text = format!("{failures} of {} requests failed", requests.issued);
        reasons.push(Remark {
            code: "failures",
            text,
        });
    }
}

fn client_limited(
    scene: &Scene<'_>,
    client: &Client,
    latency: &Latency,
    requests: &Requests,
    reasons: &mut Vec<Remark>,
) {
    if client.bundled_arrivals * 100 > client.arrivals {
        let text = format!(
            "this client read late and may have merged {} of {} arrivals",
            client.bundled_arrivals, client.arrivals
        );
        reasons.push(Remark {
            code: "client_limited",
            text,
        });
    }
    let by_clock = client.stamps == Stamps::Read || client.stamps == Stamps::Mixed;
    let limit = latency
        .ttft
        .median()
        .value
        .map_or(2e-3, |ttft| (ttft / 50.0).max(2e-3));
    let lag = client.read_lag_bound.point(Quantile::ALL[7]).value;
    if by_clock && let Some(lag) = lag.filter(|lag| *lag > limit) {
        let text = format!(
            "this client may have read up to {:.1} ms late at p99, and its stamps are clock reads",
            lag * 1e3
        );
        reasons.push(Remark {
            code: "client_limited",
            text,
        });
    }
    if let (Some(share), Some(ceiling)) = (client.ceiling_share, client.ceiling)
        && share > HALF
    {
        let text = format!(
            "{:.0} % of what this client can take in arrived; it took in {ceiling} chunks a second at most before the run, and above half of that it may bend what it measures",
            share * 100.0
        );
        reasons.push(Remark {
            code: "client_limited",
            text,
        });
    }
    if let Some(n) = requests.failed.get("local_resource") {
        let text = format!("{n} requests failed because this machine was out of something");
        reasons.push(Remark {
            code: "local_resource",
            text,
        });
    }
    if scene.load.kind == Loop::Open && client.send_lag.n() == 0 && requests.issued > 0 {
        reasons.push(Remark {
            code: "load_not_held",
            text: "no request was sent".into(),
        });
    }
}

/// Issued = ok + drained + failed, and the driver's integral equals the sum over the file.
fn books(scene: &Scene<'_>, requests: &Requests, reasons: &mut Vec<Remark>) {
    let mut wrong = |text: String| {
        reasons.push(Remark {
            code: "books",
            text,
        })
    };
    let classes = requests.ok + requests.drained + requests.failures();
    if classes != requests.issued {
        wrong(format!(
            "{} requests were issued and {classes} are accounted for",
            requests.issued
        ));
    }
    if scene.level.unmatched > 0 {
        wrong(format!(
            "{} requests stand in the file twice or without a start",
            scene.level.unmatched
        ));
    }
    if let Some(text) = planned::unbalanced(scene, requests) {
        wrong(text);
    }
    let Some(end) = &scene.level.end else { return };
    let recorded = requests.issued + requests.warmup;
    if end.issued != recorded {
        wrong(format!(
            "the driver issued {} requests and the file holds {recorded}",
            end.issued
        ));
    }
    let sojourn = scene
        .level
        .requests
        .iter()
        .map(|request| request.trace.finish.since_or_zero(request.trace.start))
        .fold(Length::ZERO, |sum, length| sum + length);
    if scene.level.open > 0 {
        wrong(format!(
            "{} requests have a start and no end in the file",
            scene.level.open
        ));
    } else if sojourn != end.in_flight {
        wrong(format!(
            "the driver counted {} ns in flight and the file's requests make {} ns",
            end.in_flight.nanos(),
            sojourn.nanos()
        ));
    }
}

fn clock(scene: &Scene<'_>, reasons: &mut Vec<Remark>) {
    let stalls = scene.level.gaps(GapKind::Stall);
    let stood: Vec<Length> = stalls.map(|gap| gap.to.since_or_zero(gap.from)).collect();
    if let Some(longest) = stood.iter().max() {
        let text = format!(
            "this process stood still {} times, for {} s at the longest",
            stood.len(),
            significant(longest.as_secs_f64())
        );
        reasons.push(Remark {
            code: "stalled",
            text,
        });
    }
    let Some(end) = &scene.level.end else { return };
    if end.suspends > 0 {
        let text = format!(
            "this machine was suspended {} times during the level",
            end.suspends
        );
        reasons.push(Remark {
            code: "suspended",
            text,
        });
    }
    if end.clock_steps > 0 {
        let text = format!(
            "the wall clock jumped {} times against the monotonic one; kernel stamps count by it",
            end.clock_steps
        );
        reasons.push(Remark {
            code: "clock_step",
            text,
        });
    }
}

/// Six requests a stream are enough where streams end alike; where they did not do, more is needed.
fn steady_hint(level: &Level) -> String {
    let plan = &level.plan;
    let Some(enough) = window::requests_for_steady(level) else {
        return "no request ended ok, so nobody knows how many requests would do".into();
    };
    match plan.stop {
        _ if plan.kind == Loop::Open => format!("--requests {enough} would do"),
        Stop::Requests(n) if n >= enough => {
            format!(
                "streams ended far apart or failed: more than {n} requests are needed, --requests {}",
                n * 2
            )
        }
        _ => format!("--requests {enough} would do"),
    }
}

fn window_warning(scene: &Scene<'_>, warnings: &mut Vec<Warning>) {
    if scene
        .window
        .is_some_and(|window| window.interval.rule() == Rule::Run)
    {
        warnings.push(Warning {
            code: "no_steady_window",
            text: "there is no steady window: system figures are over the whole run, ramp and drain included".into(),
            hint: steady_hint(scene.level),
        });
    }
    if scene.level.end.as_ref().is_some_and(|end| end.interrupted) {
        warnings.push(Warning {
            code: "interrupted",
            text: "the level was stopped before its plan was done".into(),
            hint: "run it again to its end before comparing it".into(),
        });
    }
    if scene.level.end.is_none() {
        warnings.push(Warning {
            code: "cut_short",
            text: "the file ends before the level does: its books cannot be closed".into(),
            hint: "what was measured until then is shown; run it again for the rest".into(),
        });
    }
}

fn request_warnings(scene: &Scene<'_>, requests: &Requests, warnings: &mut Vec<Warning>) {
    let failures = requests.failures();
    if failures * 100 >= requests.issued && failures > 0 {
        let kinds: Vec<String> = requests
            .failed
            .iter()
            .map(|(kind, n)| format!("{n} {kind}"))
            .collect();
        warnings.push(Warning {
            code: "failures",
            text: format!("{failures} of {} requests failed: {}", requests.issued, kinds.join(", ")),
            hint: "denom report --rows shows each; figures with failed requests as the worst stand beside".into(),
        });
    }
    if let (Some(cached), Some(input)) = (requests.cached_prompt_tokens, requests.input_tokens)
        && cached * 100 > input
    {
        warnings.push(Warning {
            code: "cached_prompt",
            text: format!("{cached} of {input} prompt tokens came from the server's cache"),
            hint: "first-content times are those of a warm cache; no prompt was sent twice by this run".into(),
        });
    }
    for flag in ["usage_inconsistent", "unterminated", "late_burst"] {
        if let Some(n) = requests.flags.get(flag) {
            warnings.push(flag_warning(flag, *n, requests.issued));
        }
    }
    let slow = scene
        .streamed()
        .filter(|request| slow_write(request))
        .count();
    if slow > 0 {
        warnings.push(Warning {
            code: "slow_write",
            text: format!("for {slow} requests, writing the request took more than 5 % of the time to first content"),
            hint: "the time to first content starts when writing begins: part of it is the upload".into(),
        });
    }
}

fn flag_warning(flag: &'static str, n: u64, of: u64) -> Warning {
    let (text, hint) = match flag {
        "usage_inconsistent" => (
            format!(
                "{n} of {of} requests state token counts that contradict their sum or their text"
            ),
            "their rates in tokens are withheld; denom report --rows shows both numbers",
        ),
        "unterminated" => (
            format!(
                "{n} of {of} streams ended with a finish marker and without the API's last event"
            ),
            "they count as ok; a proxy or an old server may drop the last event",
        ),
        _ => (
            format!(
                "{n} of {of} answers came all in the last tenth of their time, after a second of silence"
            ),
            "a held-back stream and a long prompt with a short answer look the same: ask for more output",
        ),
    };
    Warning {
        code: flag,
        text,
        hint: hint.into(),
    }
}

fn stream_warnings(scene: &Scene<'_>, requests: &Requests, warnings: &mut Vec<Warning>) {
    let selection = Selection::of(scene);
    if selection.is_partial() {
        warnings.push(Warning {
            code: "selected",
            text: format!(
                "{} of {} ok requests support stream figures; the others do not ({})",
                selection.kept,
                requests.ok,
                shares(requests)
            ),
            hint: "first-content times and generation rates are those of the selected ones".into(),
        });
    }
    let rates: Vec<_> = scene
        .streamed()
        .filter_map(|r| streams::generation_rate::<Token>(r, scene.load))
        .map(|(r, _)| r)
        .collect();
    let mut values: Vec<f64> = rates.iter().map(|rate| rate.per_second()).collect();
    values.sort_by(f64::total_cmp);
    let Some(median) = values.len().checked_sub(1).map(|last| values[last / 2]) else {
        return;
    };
    let fast: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| *value > 3.0 * median)
        .collect();
    if let Some(fastest) = fast.last() {
        warnings.push(Warning {
            code: "fast_request",
            text: format!(
                "{} of {} requests ran at more than 3 × the median of {} tok/s, the fastest at {} tok/s",
                fast.len(),
                values.len(),
                significant(median),
                significant(*fastest)
            ),
            hint: "denom report --rows --fastest 5 shows the evidence for each".into(),
        });
    }
}

fn shares(requests: &Requests) -> String {
    let parts: Vec<String> = requests
        .reasons
        .iter()
        .map(|(reason, n)| match *reason {
            "short" => format!("{n} too short to tell"),
            reason => format!("{n} {reason}"),
        })
        .collect();
    if parts.is_empty() {
        "whole bodies".into()
    } else {
        parts.join(", ")
    }
}

/// Stretches in which requests were held back: pauses stand outside the window, outages in it, and
/// then the rate over the rest of it is said too.
fn gap_warnings(scene: &Scene<'_>, system: &System, warnings: &mut Vec<Warning>) {
    let seconds = |kind| {
        let lengths = scene
            .level
            .gaps(kind)
            .map(|gap| gap.to.since_or_zero(gap.from));
        lengths.fold(Length::ZERO, |sum, length| sum + length)
    };
    let paused = seconds(GapKind::Pause);
    if !paused.is_zero() {
        warnings.push(Warning {
            code: "paused",
            text: format!(
                "requests were paused {} times at the server's word, for {} s in all",
                scene.level.gaps(GapKind::Pause).count(),
                significant(paused.as_secs_f64())
            ),
            hint: "that time is no part of the window; a lower load would not be refused".into(),
        });
    }
    let out = seconds(GapKind::Outage);
    if !out.is_zero() {
        warnings.push(Warning {
            code: "outage",
            text: format!(
                "the server took no connections for {} s{}",
                significant(out.as_secs_f64()),
                without_outages(scene, system).unwrap_or_default()
            ),
            hint: "the window holds that time; see why the server was away, and measure again"
                .into(),
        });
    }
}

/// The system's rate over the part of the window in which the server was there.
fn without_outages(scene: &Scene<'_>, system: &System) -> Option<String> {
    let window = scene.window?;
    let outages = scene.level.gaps(GapKind::Outage);
    let inside = outages
        .map(|gap| window.overlap(gap.from, gap.to))
        .fold(Length::ZERO, |sum, length| sum + length);
    let rest = window.interval.length().less(inside);
    let value = system
        .output
        .value()
        .filter(|_| !inside.is_zero() && !rest.is_zero())?;
    let without = value * window.interval.length().as_secs_f64() / rest.as_secs_f64();
    Some(format!(
        ", {} s of them in the window: {} {} with them, {} over the rest of the window",
        significant(inside.as_secs_f64()),
        significant(value),
        system.output.unit(),
        significant(without)
    ))
}

/// Bursts right outside the window were partly made inside it: with few requests that shows.
fn edge_warning(scene: &Scene<'_>, system: &System, warnings: &mut Vec<Warning>) {
    let Some(window) = scene
        .window
        .filter(|window| window.interval.rule() == Rule::Steady)
    else {
        return;
    };
    let (mut inside, mut late, mut early) = (0u128, 0u128, 0u128);
    for request in scene.level.requests.iter() {
        let (Some(sent), Some(end)) = (request.trace.sent, request.trace.end) else {
            continue;
        };
        let chars = request.arrivals.chars();
        let arrived: u64 = request
            .arrivals
            .iter()
            .filter(|a| window.holds(a.at))
            .map(|a| a.chars)
            .sum();
        let flight = end.since_or_zero(sent).nanos().max(1);
        let made =
            u128::from(chars) * u128::from(window.overlap(sent, end).nanos()) / u128::from(flight);
        inside += u128::from(arrived);
        late += made.saturating_sub(u128::from(arrived));
        early += u128::from(arrived).saturating_sub(made);
    }
    let off = late.abs_diff(early);
    if system.output.value().is_some() && inside > 0 && off * 20 > inside {
        let percent = off as f64 * 100.0 / inside as f64;
        let word = if late > early { "low" } else { "high" };
        warnings.push(Warning {
            code: "burst_edges",
            text: format!("answers arrived in bursts at the window's edges: the system rate may be {percent:.0} % too {word}"),
            hint: "more requests a stream make the edges matter less".into(),
        });
    }
}
