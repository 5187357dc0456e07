//! Owns the rules on what is counted as output, and on rates that are not tokens ÷ time.

use super::{Found, Scene};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Number, Stat};
use crate::audit::written::rates_off;
use crate::stated::number;

/// Retokenized counts differ by this factor at most for honest reasons.
const RETOKENIZED: f64 = 1.2;
/// Slack of a limit: counts by another vocabulary, and special tokens.
const OVER: f64 = 1.02;
/// How far a system rate may be from tokens ÷ time: tools time by two clocks.
const NEAR: f64 = 0.05;
/// How far a sum of two rates may be from the rate that it is.
const EQUAL: f64 = 0.01;
/// How far a mean of ratios may be from the ratio of means.
const FAR: f64 = 1.5;
/// How far a request's own rate may be from its tokens ÷ latency.
const ROW: f64 = 0.1;

fn differ(one: f64, other: f64, by: f64) -> bool {
    (one / other - 1.0).abs() > by
}

pub fn rate_off_tokens(scene: &Scene<'_>) -> Option<Found> {
    rows_off(scene)
        .or_else(|| stream_off(scene))
        .or_else(|| system_off(scene))
        .or_else(|| engine_off(scene))
        .or_else(|| impossible(scene))
        .or_else(|| of_nothing(scene))
        .or_else(|| requests_off(scene))
}

/// A rate that stands beside a sum that no run can have.
fn impossible(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let sums = run.impossible.join(" and ");
    (!sums.is_empty() && run.has_result()).then_some(())?;
    let rate = run.rate(Metric::SystemOutput);
    let rate = rate.or(run.rate(Metric::Requests))?;
    let text = format!(
        "the file states {sums}, which cannot be, and beside it a rate of {} a second",
        number(rate)
    );
    let fields = [Metric::SystemOutput, Metric::Requests];
    Found::new(text, fields.map(|metric| scene.field(metric)))
}

/// A rate over completed requests, where none completed.
fn of_nothing(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    if run.has_result() {
        return None;
    }
    let over_completed = [
        means::OUTPUT_RUN,
        means::OUTPUT_VALID,
        means::REQUESTS_COMPLETED,
    ];
    let stated = run.numbers.iter().find(|number| {
        let rate = number.known().is_some_and(|rate| rate > 0.0);
        rate && over_completed.contains(&number.definition)
    })?;
    let text = format!(
        "0 requests completed, and over completed requests {} {} are stated",
        number(stated.known()?),
        stated.metric.unit()
    );
    Found::new(text, [Some(stated.field.clone())])
}

/// Completed requests a second, against their number and the duration.
fn requests_off(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let stated = run
        .number(Metric::Requests, Stat::Value)
        .filter(|stated| stated.definition == means::REQUESTS_COMPLETED)?;
    let rate = stated.known().filter(|rate| *rate > 0.0)?;
    let completed = run.books.completed.filter(|completed| *completed > 0.0)?;
    let own = completed / run.totals.duration?;
    // A console writes two decimals.
    if !differ(rate, own, 2.0 * NEAR) || (rate - own).abs() <= 0.01 {
        return None;
    }
    let text = format!(
        "{} completed requests a second are stated, and the file's own requests and time make {}",
        number(rate),
        number((own * 1e4).round() / 1e4)
    );
    Found::new(text, [Some(stated.field.clone())])
}

fn rows_off(scene: &Scene<'_>) -> Option<Found> {
    let found = rates_off(scene.requests, ROW)?;
    if found.off == 0 || (found.off as f64) < 0.1 * found.of as f64 {
        return None;
    }
    let text = format!(
        "{} of {} requests state a rate that is not their tokens ÷ latency: {} tok/s at the median as written, {} as computed",
        found.off,
        found.of,
        number(found.stated),
        number(found.own)
    );
    Found::new(text, [])
}

/// The rate of a stream over its latency, against mean tokens ÷ mean latency.
fn stream_off(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let stated = [Stat::Median, Stat::Mean]
        .into_iter()
        .find_map(|stat| run.number(Metric::StreamEndToEnd, stat))?;
    if stated.definition == means::OUTPUT_LABELLED {
        return None;
    }
    let rate = stated.known().filter(|rate| *rate > 0.0)?;
    let own = run.stream_over_latency()?;
    if own < rate * FAR && rate < own * FAR {
        return None;
    }
    let text = format!(
        "a stream's rate is stated as {} tok/s, and its mean tokens ÷ mean latency make {}: a factor of {}",
        number(rate),
        number(own),
        number((own / rate).max(rate / own).round())
    );
    Found::new(text, [Some(stated.field.clone())])
}

fn system_off(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let over_the_run = [
        means::OUTPUT_RUN,
        means::OUTPUT_VALID,
        means::OUTPUT_WITH_FAILURES,
    ];
    let stated = [Stat::Value, Stat::Mean]
        .into_iter()
        .find_map(|stat| run.number(Metric::SystemOutput, stat))
        .filter(|stated: &&Number| over_the_run.contains(&stated.definition))?;
    let rate = stated.known().filter(|rate| *rate > 0.0)?;
    let by_time = run
        .totals
        .output
        .zip(run.totals.duration)
        .filter(|(tokens, seconds)| *tokens > 0.0 && *seconds > 0.0)
        .map(|(tokens, seconds)| tokens / seconds);
    let by_requests = run
        .rate(Metric::Requests)
        .zip(run.value(Metric::OutputLength, Stat::Mean))
        .filter(|(requests, tokens)| *requests > 0.0 && *tokens > 0.0)
        .map(|(requests, tokens)| requests * tokens);
    let own = by_time.or(by_requests)?;
    let allowed = match by_time {
        Some(_) => NEAR,
        None => 2.0 * NEAR,
    };
    if !differ(rate, own, allowed) || total_is_output(scene) {
        return None;
    }
    let text = format!(
        "the output rate is stated as {} tok/s, and the file's own tokens and time make {}",
        number(rate),
        number(own)
    );
    Found::new(text, [Some(stated.field.clone())])
}

/// Of a file without a server: tokens ÷ time of its repetitions.
fn engine_off(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let stated = run
        .number(Metric::StreamGeneration, Stat::Mean)
        .filter(|stated| stated.definition == means::OUTPUT_BATCH_ONE)?;
    let rate = stated.known().filter(|rate| *rate > 0.0)?;
    let seconds = run.totals.duration.filter(|seconds| *seconds > 0.0)?;
    let own = run.totals.output? / seconds;
    if !differ(rate, own, NEAR) {
        return None;
    }
    let text = format!(
        "the rate is stated as {} tok/s, and tokens ÷ mean time make {}",
        number(rate),
        number(own)
    );
    Found::new(text, [Some(stated.field.clone())])
}

/// Whether the system's output rate is that of input and output.
fn total_is_output(scene: &Scene<'_>) -> bool {
    let run = scene.run;
    let numbers = (
        run.rate(Metric::SystemOutput),
        run.totals.duration,
        run.totals.output,
        run.totals.input,
    );
    let (Some(rate), Some(seconds), Some(output), Some(input)) = numbers else {
        return false;
    };
    let all = (output + input) / seconds;
    input > 0.1 * output && seconds > 0.0 && !differ(rate, all, EQUAL)
}

pub fn total_as_output(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    if total_is_output(scene) {
        let text = format!(
            "the output rate of {} tok/s is that of input and output together",
            number(run.rate(Metric::SystemOutput)?)
        );
        return Found::new(text, [scene.field(Metric::SystemOutput)]);
    }
    let total = run.rate(Metric::GpuTotal)?;
    let (output, input) = (run.rate(Metric::GpuOutput)?, run.rate(Metric::GpuInput)?);
    if input <= 0.0 || differ(total, output + input, EQUAL) {
        return None;
    }
    let text = format!(
        "the throughput of {} tok/s per GPU counts input: {} of it is output and {} input",
        number(total),
        number(output),
        number(input)
    );
    let all = [Metric::GpuTotal, Metric::GpuOutput, Metric::GpuInput];
    Found::new(text, all.map(|metric| scene.field(metric)))
}

pub fn requested_length(scene: &Scene<'_>) -> Option<Found> {
    let totals = &scene.run.totals;
    let (output, again) = (totals.output?, totals.retokenized?);
    if again <= 0.0 || output < RETOKENIZED * again {
        return None;
    }
    let text = format!(
        "{} output tokens are counted, and the text that came has {}: the length asked for was counted as output ({} × too much)",
        number(output),
        number(again),
        number((output / again * 100.0).round() / 100.0)
    );
    let fields = ["total_output_tokens", "total_output_tokens_retokenized"];
    Found::new(text, fields.map(|field| Some(field.to_owned())))
}

pub fn completed_empty(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let completed = run.books.completed.unwrap_or(0.0);
    let rows = scene
        .requests
        .iter()
        .filter(|request| request.ok && request.output == Some(0))
        .count();
    let field = run.field(Metric::OutputLength, Stat::Min);
    let least = run.value(Metric::OutputLength, Stat::Min);
    let text = if rows > 0 {
        format!("{rows} requests count as successes and brought no token")
    } else if run.totals.output == Some(0.0) && completed > 0.0 {
        format!(
            "{} requests count as successes, and not one token came",
            number(completed)
        )
    } else if least.is_some_and(|least| least < 1.0) && run.has_result() {
        "the shortest success has 0 output tokens: empty answers count as completed".into()
    } else if run.totals.output.is_some_and(|tokens| tokens < completed) {
        format!(
            "{} completed requests share {} output tokens: some of them brought none",
            number(completed),
            number(run.totals.output?)
        )
    } else {
        return None;
    };
    Found::new(text, [field])
}

pub fn tokens_over_limit(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let allowed = |limit: f64| limit * OVER + 1.0;
    if let Some(limit) = run.config.output_limit.filter(|limit| *limit > 0.0) {
        let most = run.value(Metric::OutputLength, Stat::Max);
        let mean = run.mean_output();
        let rows = scene.requests.iter().filter_map(|request| request.output);
        let most = most.or(rows.max().map(|tokens| tokens as f64)).or(mean)?;
        if most > allowed(limit) {
            let text = format!(
                "at most {} output tokens were asked for, and up to {} are counted",
                number(limit),
                number(most)
            );
            return Found::new(text, [run.field(Metric::OutputLength, Stat::Max)]);
        }
    }
    None
}
