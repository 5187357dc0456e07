//! Owns the figures of one stream: generation rate, end-to-end rate, their shares of the baseline.

use serde::Serialize;

use super::system::{self, OfArrival, Output};
use super::{Counted, LateBurst, Scene, Selection};
use crate::arrival::Arrival;
use crate::basis::{self, Basis, Interval, Load, Rule};
use crate::count::{Chunk, Count, Token, Unit};
use crate::figure::{Dist, Figure, ShareBasis, Withheld, of_one, range_per_second};
use crate::judge::{Flag, Judged, Shape};
use crate::quantile::{self, Quantile};
use crate::rate::{Billed, EndToEnd, Generation, MayDiffer, Metric, Rate, RatioOfSums};
use crate::time::Length;
use crate::tokens::Source;
use crate::window;

/// Arrivals below which a generation rate carries its range.
const FEW_ARRIVALS: u64 = 10;

/// The rates of one stream.
#[derive(Debug, Clone, Serialize)]
pub struct PerStream {
    /// Visible output after the first arrival, over first to last content.
    pub generation: Dist,
    /// Visible output over sent to end.
    pub end_to_end: Dist,
    /// Billed output over sent to end, where some of it never arrived.
    pub billed: Option<Dist>,
    /// System throughput over held concurrency.
    pub ratio_of_sums: Figure,
    /// Median generation rate over the baseline's.
    pub share_of_baseline: Figure,
    /// Median end-to-end rate over the baseline's: waiting for a slot shows only here.
    pub e2e_share_of_baseline: Figure,
}

/// The medians that other levels' shares are taken of.
#[derive(Debug, Clone)]
pub struct Baseline {
    generation: Median<Generation>,
    end_to_end: Median<EndToEnd>,
}

/// A median rate in whichever unit was counted, or why there is none.
#[derive(Debug, Clone)]
enum Median<M: Metric> {
    Tokens(Rate<Token, basis::PerStream, M>, Source),
    Chunks(Rate<Chunk, basis::PerStream, M>),
    None(Withheld),
}

/// The count and interval of one request's generation rate.
pub(crate) struct Generated<U> {
    pub count: Count<U>,
    pub interval: Interval,
    /// Least and most, where the first arrival's share is uncertain.
    pub range: Option<(Count<U>, Count<U>)>,
}

/// Output after the first arrival, over first to last content. Where only a summary of the
/// reasoning was streamed, from the first answer.
pub(crate) fn generated<U: OfArrival>(request: &Judged) -> Option<Generated<U>> {
    if !request.supports_stream_figures() {
        return None;
    }
    let answers_only = request.trace.reasoning_summary;
    let counts = |arrival: &Arrival| !answers_only || arrival.answer_chunks > 0;
    let mut arrivals = request.arrivals.iter().filter(counts);
    let first = arrivals.next()?;
    let in_first = U::of(&first)?;
    let (mut last, mut all, mut n) = (first.at, in_first, 1);
    for arrival in arrivals {
        (last, n) = (arrival.at, n + 1);
        all += U::of(&arrival)?;
    }
    let rule = if answers_only {
        Rule::FirstAnswerToLastContent
    } else {
        Rule::FirstToLastContent
    };
    let interval = Interval::between(first.at, last, rule)?;
    let count = all.less(in_first)?;
    let uncertain = request.tokens.apportioned || n < FEW_ARRIVALS;
    let range = (uncertain && U::NAME == Token::NAME).then(|| {
        let one = all.less(Count::whole(1)).unwrap_or(Count::ZERO);
        let twice = all.less(in_first + in_first).unwrap_or(Count::ZERO);
        (one.min(twice), one.max(twice))
    });
    Some(Generated {
        count,
        interval,
        range,
    })
}

/// The generation rate of one request.
pub(crate) type GenerationRate<U> = Rate<U, basis::PerStream, Generation>;

/// The rate of one request and the range that its first arrival leaves open.
pub(crate) fn generation_rate<U: OfArrival>(
    request: &Judged,
    load: Load,
) -> Option<(GenerationRate<U>, Option<[f64; 2]>)> {
    let found = generated::<U>(request)?;
    let range = found
        .range
        .and_then(|range| range_per_second(range, found.interval.length()));
    Some((Rate::new(found.count, of_one(found.interval, load)), range))
}

/// All output of one request over sent to end.
pub(crate) fn e2e_rate<U: OfArrival>(
    request: &Judged,
    load: Load,
) -> Option<Rate<U, basis::PerStream, EndToEnd>> {
    let all = U::of_all(&request.arrivals)?;
    Some(Rate::new(all, of_one(flight(request)?, load)))
}

/// All billed output of one request over sent to end, where some of it never arrived.
pub(crate) fn billed_rate(
    request: &Judged,
    load: Load,
) -> Option<Rate<Token, basis::PerStream, Billed>> {
    let billed = request
        .tokens
        .billed
        .filter(|_| request.tokens.inconsistent.is_none())
        .filter(|_| request.tokens.hidden.is_some_and(|h| h > 0))?;
    Some(Rate::new(
        Count::whole(billed),
        of_one(flight(request)?, load),
    ))
}

fn flight(request: &Judged) -> Option<Interval> {
    Interval::between(request.trace.sent?, request.trace.end?, Rule::SentToEnd)
}

pub(super) fn figures(scene: &Scene<'_>, baseline: Option<&Baseline>) -> (PerStream, Baseline) {
    match scene.counted {
        Counted::Tokens(source) => in_unit::<Token>(
            scene,
            source,
            baseline,
            |rate| Median::Tokens(rate, source),
            |rate| Median::Tokens(rate, source),
        ),
        Counted::Chunks => in_unit::<Chunk>(
            scene,
            Source::None,
            baseline,
            Median::Chunks,
            Median::Chunks,
        ),
    }
}

fn in_unit<U: OfArrival>(
    scene: &Scene<'_>,
    source: Source,
    baseline: Option<&Baseline>,
    generation_median: impl Fn(Rate<U, basis::PerStream, Generation>) -> Median<Generation>,
    e2e_median: impl Fn(Rate<U, basis::PerStream, EndToEnd>) -> Median<EndToEnd>,
) -> (PerStream, Baseline) {
    let rates: Vec<_> = scene
        .streamed()
        .filter_map(|request| generation_rate::<U>(request, scene.load))
        .map(|(rate, _)| rate)
        .collect();
    let selection = Selection::of(scene);
    let basis = scene.basis(generation_rule(scene), rates.len() as u64);
    let why = why_no_generation(scene, &selection, rates.is_empty());
    let generation = Dist::of_rates(&rates, source, basis).mark_selected(selection.is_partial());
    let generation = match &why {
        Some(why) => generation.withhold(why.clone()),
        None => generation,
    };
    let whole: Vec<_> = scene
        .ok()
        .filter_map(|r| e2e_rate::<U>(r, scene.load))
        .collect();
    let basis = scene.basis(Rule::SentToEnd, whole.len() as u64);
    let end_to_end = Dist::of_rates(&whole, source, basis);
    let end_to_end = match whole.is_empty() {
        true => end_to_end.withhold(why_no_e2e_rate(scene)),
        false => end_to_end,
    };
    let medians = Baseline {
        generation: match why {
            Some(why) => Median::None(why),
            None => median(rates, scene).map_or_else(Median::None, generation_median),
        },
        end_to_end: median(whole, scene).map_or_else(Median::None, e2e_median),
    };
    let per_stream = PerStream {
        share_of_baseline: share(
            scene,
            &medians.generation,
            baseline.map(|b| &b.generation),
            &generation,
        ),
        e2e_share_of_baseline: share(
            scene,
            &medians.end_to_end,
            baseline.map(|b| &b.end_to_end),
            &end_to_end,
        ),
        generation,
        end_to_end,
        billed: billed(scene),
        ratio_of_sums: ratio_of_sums(scene),
    };
    (per_stream, medians)
}

fn generation_rule(scene: &Scene<'_>) -> Rule {
    match scene
        .streamed()
        .any(|request| request.trace.reasoning_summary)
    {
        true => Rule::FirstAnswerToLastContent,
        false => Rule::FirstToLastContent,
    }
}

fn why_no_generation(scene: &Scene<'_>, selection: &Selection, none: bool) -> Option<Withheld> {
    if let Some(why) = why_not_streamed(scene) {
        return Some(why);
    }
    if selection.lost_the_fast() {
        let of = selection.kept + selection.dropped;
        let text = format!(
            "{} of {of} ok requests were too short to tell: the fast ones are the missing ones",
            selection.short
        );
        return Some(Withheld::new("selected_short", text));
    }
    none.then(|| no_counts(scene))
}

fn no_counts(scene: &Scene<'_>) -> Withheld {
    match scene
        .ok()
        .find_map(|request| request.tokens.inconsistent.as_ref())
    {
        Some(text) => Withheld::new("usage_inconsistent", text.clone()),
        None => Withheld::new("no_count", "no token count can be placed on the arrivals"),
    }
}

fn why_no_e2e_rate(scene: &Scene<'_>) -> Withheld {
    if scene.ok_count() == 0 {
        no_ok()
    } else {
        no_counts(scene)
    }
}

fn no_ok() -> Withheld {
    Withheld::new("no_ok_request", "no request ended ok")
}

/// Why first-content times and generation rates were not observed; `None` if some were.
pub(super) fn why_not_streamed(scene: &Scene<'_>) -> Option<Withheld> {
    if scene.streamed().next().is_some() {
        return None;
    }
    if scene.ok_count() == 0 {
        return Some(no_ok());
    }
    if scene.late().next().is_some() {
        let text = "all content came in the last tenth of the time after a second of silence; \
                    see the flagged figures";
        return Some(Withheld::new("late_burst", text));
    }
    if scene
        .ok()
        .all(|request| request.shape == Some(Shape::Whole))
    {
        let text = "the response was one whole body, not a stream: when its first content was made cannot be seen";
        return Some(Withheld::new("whole", text));
    }
    let only_short =
        |request: &Judged| matches!(request.reasons.as_slice(), [crate::judge::Reason::Short]);
    if scene.ok().all(only_short) {
        return Some(too_short(scene));
    }
    Some(buffered(scene))
}

fn too_short(scene: &Scene<'_>) -> Withheld {
    let longest = scene
        .ok()
        .max_by_key(|request| request.arrivals.span())
        .map(|request| (request.arrivals.span(), request));
    let least = scene.guards.min_interval;
    let advice = longest.as_ref().and_then(|(interval, request)| {
        let output = request.tokens.visible?;
        let needed =
            u128::from(output) * u128::from(least.nanos()) / u128::from(interval.nanos().max(1));
        // A fifth more than just enough, since answers vary.
        Some(format!(
            "about {} output tokens would do",
            needed * 6 / 5 + 1
        ))
    });
    let seconds = longest.map_or(0.0, |(interval, _)| interval.as_secs_f64());
    let advice =
        advice.unwrap_or_else(|| format!("an interval of {:.2} s would do", least.as_secs_f64()));
    Withheld::new(
        "short",
        format!("too short to tell ({seconds:.2} s of content at most): {advice}"),
    )
}

fn buffered(scene: &Scene<'_>) -> Withheld {
    let mut reasons: Vec<&str> = scene
        .ok()
        .flat_map(|request| &request.reasons)
        .map(|reason| reason.name())
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    let text = format!(
        "the content arrived here in one piece or nearly so ({}): when it was made cannot be seen",
        reasons.join(", ")
    );
    Withheld::new("buffered", text)
}

/// The median rate as a rate of its own, with the requests it rests on.
fn median<U: Unit, M: Metric>(
    mut rates: Vec<Rate<U, basis::PerStream, M>>,
    scene: &Scene<'_>,
) -> Result<Rate<U, basis::PerStream, M>, Withheld> {
    let n = rates.len() as u64;
    let ranks = quantile::ranks(Quantile::MEDIAN, n)
        .map_err(|needed| Withheld::new("too_few", format!("a median of n {n} needs {needed}")))?;
    rates.sort_by(|one, other| one.compare(other));
    let middle = usize::try_from(ranks.point - 1)
        .ok()
        .and_then(|place| rates.get(place));
    let middle = middle.ok_or_else(|| Withheld::new("too_few", "no median"))?;
    let basis = Basis::new(middle.basis().interval(), scene.of_ok(n), scene.load);
    Ok(Rate::new(middle.count(), basis))
}

fn share<M: Metric>(
    scene: &Scene<'_>,
    here: &Median<M>,
    baseline: Option<&Median<M>>,
    dist: &Dist,
) -> Figure {
    let basis = ShareBasis {
        interval: Some(dist.timed()),
        population: dist.population().clone(),
        load: scene.load,
    };
    let differ = |text: String| Withheld::new("not_comparable", text);
    let share = match (here, baseline) {
        (_, None) => Err(Withheld::new(
            "no_baseline",
            "there is no level at concurrency 1 to compare with",
        )),
        (Median::None(why), _) => Err(why.clone()),
        (_, Some(Median::None(why))) => Err(Withheld::new(
            "baseline_withheld",
            format!("the baseline has no such rate: {}", why.text),
        )),
        (Median::Tokens(here, one), Some(Median::Tokens(base, other))) if one == other => here
            .over(base, MayDiffer::Load)
            .map_err(|mismatch| differ(mismatch.to_string())),
        (Median::Chunks(here), Some(Median::Chunks(base))) => here
            .over(base, MayDiffer::Load)
            .map_err(|mismatch| differ(mismatch.to_string())),
        _ => Err(differ("the two levels count by different sources".into())),
    };
    Figure::share::<basis::PerStream, M>(share, basis)
}

fn billed(scene: &Scene<'_>) -> Option<Dist> {
    let rates: Vec<_> = scene
        .ok()
        .filter_map(|request| billed_rate(request, scene.load))
        .collect();
    let basis = scene.basis(Rule::SentToEnd, rates.len() as u64);
    (!rates.is_empty()).then(|| Dist::of_rates(&rates, Source::Server, basis))
}

fn ratio_of_sums(scene: &Scene<'_>) -> Figure {
    let population = scene.with_output();
    let withheld = |why| {
        Figure::withheld::<Token, basis::PerStream, RatioOfSums>(
            why,
            None,
            population.clone(),
            scene.load,
        )
    };
    let window = match scene.window() {
        Ok(window) => window,
        Err(why) => return withheld(why),
    };
    let in_flight: Length = window::in_flight(&scene.level.requests, &window);
    let Some(interval) = Interval::of(in_flight, Rule::InFlight) else {
        return withheld(Withheld::new(
            "nothing_sent",
            "nothing was in flight inside the window",
        ));
    };
    let basis = Basis::new(interval, population.clone(), scene.load);
    match system::output(scene, &window) {
        Output::Tokens(count, _) if count.is_zero() => withheld(Withheld::new(
            "nothing_arrived",
            "no output was observed inside the window",
        )),
        Output::Tokens(count, source) => Figure::of(
            &Rate::<Token, basis::PerStream, RatioOfSums>::new(count, basis),
            source,
        ),
        Output::Chunks(count) if count.is_zero() => withheld(Withheld::new(
            "nothing_arrived",
            "no output was observed inside the window",
        )),
        Output::Chunks(count) => Figure::of(
            &Rate::<Chunk, basis::PerStream, RatioOfSums>::new(count, basis),
            Source::None,
        ),
    }
}

/// The figures of late bursts, which enter no others.
pub(super) fn late_burst(scene: &Scene<'_>) -> LateBurst {
    let late: Vec<&Judged> = scene.late().collect();
    let n = late.len() as u64;
    let none = Withheld::new("no_late_burst", "no request was a late burst");
    let basis = scene.basis(Rule::FirstToLastContent, n);
    let generation = match scene.counted {
        Counted::Tokens(source) => {
            let rates: Vec<_> = late
                .iter()
                .filter_map(|r| generation_rate::<Token>(r, scene.load))
                .map(|(r, _)| r)
                .collect();
            Dist::of_rates(&rates, source, basis)
        }
        Counted::Chunks => {
            let rates: Vec<_> = late
                .iter()
                .filter_map(|r| generation_rate::<Chunk>(r, scene.load))
                .map(|(r, _)| r)
                .collect();
            Dist::of_rates(&rates, Source::None, basis)
        }
    };
    let waits = late
        .iter()
        .filter_map(|request| request.trace.first_content?.since(request.trace.sent?));
    let ttft = Dist::of_lengths("ttft", waits, 0, scene.basis(Rule::SentToFirstContent, n));
    match n {
        0 => LateBurst {
            n,
            generation: generation.withhold(none.clone()),
            ttft: ttft.withhold(none),
        },
        _ => LateBurst {
            n,
            generation,
            ttft,
        },
    }
}

/// Whether a request's tokens or chunks may enter per-token figures.
pub(super) fn enters_per_token(request: &Judged) -> bool {
    request.shape == Some(Shape::Streamed) && !request.flags.contains(&Flag::ClientBundled)
}
