//! Owns the rules on how fast tokens are said to come.

use super::{Found, Scene};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Stat, Tool};
use crate::audit::written::rates_off;
use crate::judge::Reason;
use crate::stated::number;

/// A time per token up to this is no time between arrivals: reads this near are one arrival.
const ONE_ARRIVAL: f64 = 0.000_2;
/// A time below this is none: its reciprocal would not fit a page.
const SHORTEST: f64 = 1e-12;
/// Above this many tokens a second, a stream's rate is a burst's.
const TOO_FAST: f64 = 5_000.0;
/// What the rows above which are counted as absurd in a sentence.
const ABSURD: f64 = 4_000.0;
/// A gap this many times the time per token holds more than one token.
const SEVERAL: f64 = 1.5;
/// A gap below this share of the time per token is mostly no gap at all.
const NEARLY_NONE: f64 = 0.1;
/// The share of requests from which single bursts are a finding.
const SOME: f64 = 0.01;
/// A run shorter than this has no whole one-second bucket inside.
const SHORTEST_FOR_BUCKETS: f64 = 2.0;

fn ms(seconds: f64) -> String {
    match seconds.abs() < SHORTEST {
        true => "0 ms".into(),
        false => format!("{} ms", number(seconds * 1e3)),
    }
}

pub fn burst_rate(scene: &Scene<'_>) -> Option<Found> {
    if !scene.run.has_result() || scene.tool == Tool::Denom {
        return None;
    }
    from_times(scene)
        .or_else(|| from_rates(scene))
        .or_else(|| from_requests(scene))
}

fn from_times(scene: &Scene<'_>) -> Option<Found> {
    if scene.run.mean_output().is_some_and(|tokens| tokens <= 1.0) {
        return None;
    }
    for metric in [Metric::Tpot, Metric::Itl] {
        for stat in [Stat::Median, Stat::Mean] {
            let Some(value) = scene.run.value(metric, stat).filter(|v| *v <= ONE_ARRIVAL) else {
                continue;
            };
            let rate = match value > SHORTEST {
                true => format!("{} tok/s a stream", number(1.0 / value)),
                false => "no finite rate".into(),
            };
            let text = format!(
                "{} {} of {} is {rate}: tokens that came together, not a pace",
                stat.name(),
                metric.name(),
                ms(value)
            );
            return Found::new(text, [scene.run.field(metric, stat)]);
        }
    }
    None
}

fn from_rates(scene: &Scene<'_>) -> Option<Found> {
    let (stat, rate) = scene.central(Metric::StreamGeneration)?;
    if rate <= TOO_FAST {
        return None;
    }
    let text = format!(
        "{} of {} tok/s for one stream: tokens that came together, not a pace",
        stat.name(),
        number(rate)
    );
    Found::new(text, [scene.run.field(Metric::StreamGeneration, stat)])
}

fn from_requests(scene: &Scene<'_>) -> Option<Found> {
    let short_only = [Reason::Short];
    let fell: Vec<_> = scene
        .requests
        .iter()
        .filter(|request| request.falls_back() && request.reasons != short_only)
        // A single token has no pace that it could be mistaken for.
        .filter(|request| request.output.is_none_or(|tokens| tokens > 1))
        .collect();
    let all = scene.requests.len();
    if fell.is_empty() || (fell.len() as f64) < SOME * all as f64 {
        return None;
    }
    let naive = |request: &&&crate::audit::observe::Request| {
        request.naive().is_some_and(|rate| rate > ABSURD)
    };
    let absurd = fell.iter().filter(naive).count();
    let most = fell
        .iter()
        .filter_map(|request| request.naive())
        .fold(0.0, f64::max);
    let few = fell
        .iter()
        .filter(|request| request.reasons.contains(&Reason::FewChunks))
        .count();
    let mut text = format!(
        "{} of {all} requests were buffered ({few} of them in fewer than 3 chunks): they support end-to-end figures only",
        fell.len()
    );
    if absurd > 0 {
        text.push_str(&format!(
            "; {absurd} would print more than 4,000 tok/s, {} at most",
            number(most)
        ));
    }
    Found::new(text, [])
}

pub fn peak_below_mean(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let peak = run.rate(Metric::SystemPeak).filter(|_| run.has_result())?;
    let mean = run.rate(Metric::SystemOutput)?;
    // What rounding alone can do is no finding.
    if peak >= mean - 1.0 {
        return None;
    }
    let short = run
        .totals
        .duration
        .filter(|duration| *duration < SHORTEST_FOR_BUCKETS);
    let why = match short {
        Some(duration) => format!(
            "the peak is of one-second buckets, and the run took {} s",
            number(duration)
        ),
        None => "the peak counts chunks, and the mean tokens".into(),
    };
    let text = format!(
        "the peak of {} tok/s lies below the mean of {} tok/s: {why}",
        number(peak),
        number(mean)
    );
    let fields = [Metric::SystemPeak, Metric::SystemOutput].map(|metric| scene.field(metric));
    Found::new(text, fields)
}

pub fn chunks_as_tokens(scene: &Scene<'_>) -> Option<Found> {
    if !scene.run.has_result() {
        return None;
    }
    gaps_hold_several(scene)
        .or_else(|| steady_counts_chunks(scene))
        .or_else(|| peak_counts_chunks(scene))
        .or_else(|| field_counts_chunks(scene))
}

/// How many times the mean time per token the mean gap is, where the median agrees.
fn gap_over_token(scene: &Scene<'_>) -> Option<f64> {
    let run = scene.run;
    let ratio = |stat| {
        let token = run.value(Metric::Tpot, stat).filter(|t| *t > ONE_ARRIVAL)?;
        Some(run.value(Metric::Itl, stat)? / token)
    };
    let named_so = run
        .numbers
        .iter()
        .any(|number| number.metric == Metric::Itl && number.definition == means::ITL_CHUNK_GAPS);
    let mean = ratio(Stat::Mean).filter(|_| named_so)?;
    let median = ratio(Stat::Median).unwrap_or(mean);
    (mean >= SEVERAL && median >= SEVERAL).then_some(mean)
}

fn gaps_hold_several(scene: &Scene<'_>) -> Option<Found> {
    let several = gap_over_token(scene)?;
    let text = format!(
        "what the file calls time between tokens is time between chunks of about {} tokens: {} against {} a token",
        number((several * 100.0).round() / 100.0),
        ms(scene.run.value(Metric::Itl, Stat::Mean)?),
        ms(scene.run.value(Metric::Tpot, Stat::Mean)?)
    );
    let fields = [Metric::Itl, Metric::Tpot].map(|metric| scene.run.field(metric, Stat::Mean));
    Found::new(text, fields)
}

fn steady_counts_chunks(scene: &Scene<'_>) -> Option<Found> {
    let steady = scene.run.rate(Metric::SystemSteadyOutput)?;
    let whole = scene.run.rate(Metric::SystemOutput)?;
    (steady > 0.0 && whole / steady >= SEVERAL).then_some(())?;
    let text = format!(
        "the steady rate of {} tok/s counts chunks: over the whole run it is {} tok/s",
        number(steady),
        number(whole)
    );
    let both = [Metric::SystemSteadyOutput, Metric::SystemOutput];
    Found::new(text, both.map(|metric| scene.field(metric)))
}

fn peak_counts_chunks(scene: &Scene<'_>) -> Option<Found> {
    let duration = scene.run.totals.duration?;
    let found = peak_below_mean(scene).filter(|_| duration >= SHORTEST_FOR_BUCKETS)?;
    Some(Found {
        text: format!("{}: its unit is the chunk", found.text),
        fields: found.fields,
    })
}

/// A per-request rate far below tokens ÷ latency, from a tool whose older versions counted chunks.
fn field_counts_chunks(scene: &Scene<'_>) -> Option<Found> {
    let (stated, own) = match rates_off(scene.requests, 0.1) {
        Some(off) => (off.stated, off.own),
        None => {
            let field = scene
                .run
                .number(Metric::StreamEndToEnd, Stat::Median)
                .filter(|number| number.definition == means::USER_AS_FIELD)?;
            (field.known()?, scene.run.stream_over_latency()?)
        }
    };
    (stated > 0.0 && own / stated >= SEVERAL).then_some(())?;
    let text = format!(
        "the field named tokens per second holds {} at the median, and tokens ÷ latency make {}: it counts chunks of about {} tokens",
        number(stated),
        number(own),
        number((own / stated * 10.0).round() / 10.0)
    );
    Found::new(text, [scene.field(Metric::StreamEndToEnd)])
}

pub fn gap_disagrees(scene: &Scene<'_>) -> Option<Found> {
    if !scene.run.has_result() {
        return None;
    }
    gap_against_token(scene).or_else(|| rest_against_token(scene))
}

fn gap_against_token(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let several = gap_over_token(scene);
    let gap = run.value(Metric::Itl, Stat::Mean)?;
    let token = run.value(Metric::Tpot, Stat::Mean)?;
    let none = token > ONE_ARRIVAL && gap < NEARLY_NONE * token;
    if several.is_none() && !none {
        return None;
    }
    let text = format!(
        "mean gap {} and mean time per token {} cannot both be of tokens that come one by one",
        ms(gap),
        ms(token)
    );
    let fields = [Metric::Itl, Metric::Tpot].map(|metric| run.field(metric, Stat::Mean));
    Found::new(text, fields)
}

/// The time after the first token, over the tokens after it, against the stated time per token.
fn rest_against_token(scene: &Scene<'_>) -> Option<Found> {
    let run = scene.run;
    let of = |metric| run.value(metric, Stat::Mean);
    let (token, e2e, ttft) = (of(Metric::Tpot)?, of(Metric::E2e)?, of(Metric::Ttft)?);
    let tokens = run.mean_output().filter(|tokens| *tokens >= 2.0)?;
    let rest = (e2e - ttft) / (tokens - 1.0);
    (token > ONE_ARRIVAL && rest / token >= SEVERAL).then_some(())?;
    let text = format!(
        "(latency − TTFT) ÷ (tokens − 1) makes {} a token, and the stated time per token is {}: {} × as much",
        ms(rest),
        ms(token),
        number((rest / token * 100.0).round() / 100.0)
    );
    let all = [Metric::Tpot, Metric::E2e, Metric::Ttft];
    Found::new(text, all.map(|metric| run.field(metric, Stat::Mean)))
}
