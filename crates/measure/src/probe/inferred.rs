//! Owns the speed behind a path: inferred from several answers, never mixed with what was observed.

use serde::Serialize;

use super::counted::{Counted, Lengthened, Obeyed};
use super::sample::Sample;
use super::slope::Residuals;
use super::verdict::Fits;
use crate::basis::{Basis, Interval, Load, Loop, PerStream, Population, Rule};
use crate::count::{Chunk, Count, Token, Unit};
use crate::figure::{Dist, DistBasis, Evidence, Figure, Withheld};
use crate::rate::{Generation, InferredGeneration, Rate};
use crate::time::Length;
use crate::tokens::Source;

/// Half of an interval's width over its value, above which the value is withheld. In simulation
/// fewer than one in twenty of all experiments then show a value more than 5 % off, whatever the
/// jitter of the service.
const WIDEST: f64 = 0.05;
/// The middle length may lie so far off the line, as a share of the rise.
const MOST_BEND: f64 = 0.05;
/// What drifted with the order of sending may be so large, as a share of the rise.
const MOST_DRIFT: f64 = 0.05;
/// The name of the time one unit takes.
const TIME_PER_TOKEN: &str = "inferred_time_per_token";

/// What the slope of end-to-end time over output says of the model behind the path.
#[derive(Debug, Clone, Serialize)]
pub struct Inferred {
    /// Seconds for one more token.
    pub time_per_token: Figure,
    /// The same upside down, for one stream.
    pub generation: Figure,
    /// What the line leaves; none where there is no line.
    pub residuals: Option<Residuals>,
}

/// What the server says of its own speed.
#[derive(Debug, Clone, Serialize)]
pub struct Declared {
    /// Its output tokens over the time it says they took.
    pub generation: Dist,
}

fn load() -> Load {
    Load {
        kind: Loop::Closed,
        target_milli: 1_000,
        held_milli: None,
    }
}

fn population(kept: usize, of: u64) -> Population {
    Population {
        kept: kept as u64,
        of,
        what: "requests",
    }
}

/// The inferred speed, or the reason why it is withheld. `of` requests were measured.
pub fn infer(
    samples: &[Sample],
    counted: Counted,
    lengthened: &Lengthened,
    fits: Option<&Fits>,
    of: u64,
) -> Inferred {
    match counted {
        Counted::Tokens => infer_in::<Token>(samples, counted, lengthened, fits, of),
        Counted::Chunks | Counted::Characters => {
            infer_in::<Chunk>(samples, counted, lengthened, fits, of)
        }
    }
}

fn infer_in<U: Unit>(
    samples: &[Sample],
    counted: Counted,
    lengthened: &Lengthened,
    fits: Option<&Fits>,
    of: u64,
) -> Inferred {
    let population = population(samples.len(), of);
    let residuals = fits.map(|fits| fits.e2e_residuals);
    let rate = doubt(counted, lengthened, fits)
        .and_then(|fits| Ok((fits, rate::<U>(lengthened, fits, &population)?)));
    match rate {
        Ok((fits, rate)) => {
            let source = match counted {
                Counted::Tokens => Source::Server,
                Counted::Chunks | Counted::Characters => Source::None,
            };
            let [low, high] = [fits.e2e.low, fits.e2e.high];
            Inferred {
                time_per_token: Figure::time_each(TIME_PER_TOKEN, &rate, source)
                    .with_interval(Some([low, high]))
                    .as_evidence(Evidence::Inferred),
                generation: Figure::of(&rate, source)
                    .with_interval(Some([1.0 / high, 1.0 / low]))
                    .as_evidence(Evidence::Inferred),
                residuals,
            }
        }
        Err(why) => Inferred {
            time_per_token: Figure::time_each_withheld::<U, PerStream, InferredGeneration>(
                TIME_PER_TOKEN,
                why.clone(),
                population.clone(),
                load(),
            )
            .as_evidence(Evidence::Inferred),
            generation: Figure::withheld::<U, PerStream, InferredGeneration>(
                why,
                None,
                population,
                load(),
            )
            .as_evidence(Evidence::Inferred),
            residuals,
        },
    }
}

/// The fits, unless something speaks against reading a speed from them.
fn doubt<'a>(
    counted: Counted,
    lengthened: &Lengthened,
    fits: Option<&'a Fits>,
) -> Result<&'a Fits, Withheld> {
    let withhold = |code, text: String| Err(Withheld::new(code, text));
    if lengthened.obeyed != Obeyed::Yes {
        return withhold(
            "length_ignored",
            format!(
                "only {} of {} answers had the length asked for",
                lengthened.right, lengthened.of
            ),
        );
    }
    if counted == Counted::Characters {
        return withhold("no_tokens", "nobody counted tokens or chunks".into());
    }
    let Some(fits) = fits else {
        return withhold(
            "no_slope",
            "time does not grow with output beyond its jitter".into(),
        );
    };
    let (width, left) = (fits.e2e.relative_half_width(), &fits.e2e_residuals);
    if width > WIDEST {
        return withhold(
            "wide_interval",
            format!(
                "service varied too much: the slope is known to ± {:.0} % only",
                100.0 * width
            ),
        );
    }
    if left.bend > MOST_BEND {
        return withhold(
            "bent_line",
            format!(
                "time does not grow in proportion: the middle length lies {:.0} % of the rise off the line",
                100.0 * left.bend
            ),
        );
    }
    if left.drift && left.drift_share > MOST_DRIFT {
        return withhold(
            "drift",
            format!(
                "the server or the path changed meanwhile, by {:.0} % of what the longest answer adds",
                100.0 * left.drift_share
            ),
        );
    }
    Ok(fits)
}

/// The output between the outer lengths over the time that the slope gives it.
fn rate<U: Unit>(
    lengthened: &Lengthened,
    fits: &Fits,
    population: &Population,
) -> Result<Rate<U, PerStream, InferredGeneration>, Withheld> {
    let [short, _, long] = lengthened.medians;
    let span = long.zip(short).map(|(long, short)| (long - short).round());
    let span = span.filter(|span| *span >= 1.0).unwrap_or(1.0);
    let nanos = (fits.e2e.value * span * 1e9).round();
    let interval = Interval::of(Length::from_nanos(nanos as u64), Rule::SlopeOfSentToEnd)
        .ok_or_else(|| Withheld::new("no_slope", "time does not grow with output"))?;
    let basis = Basis::new(interval, population.clone(), load());
    Ok(Rate::new(Count::whole(span as u64), basis))
}

/// What the server declares; none where it declares nothing. `of` requests were measured.
pub fn declared(samples: &[Sample], of: u64) -> Option<Declared> {
    let rates: Vec<Rate<Token, PerStream, Generation>> = samples
        .iter()
        .filter_map(|sample| {
            let declared = sample.judged.trace.declared.as_ref()?;
            let interval = Interval::of(declared.output?, Rule::Declared)?;
            let basis = Basis::new(interval, population(1, 1), load());
            Some(Rate::new(Count::whole(declared.output_tokens?), basis))
        })
        .collect();
    let basis = DistBasis {
        rule: Rule::Declared,
        population: population(rates.len(), of),
        load: load(),
    };
    let generation = Dist::of_rates(&rates, Source::Server, basis).as_evidence(Evidence::Declared);
    (!rates.is_empty()).then_some(Declared { generation })
}
