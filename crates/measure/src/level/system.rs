//! Owns the figures summed over all streams: throughput of output, requests and input.

use serde::Serialize;

use super::{Counted, Scene};
use crate::arrival::{Arrival, Arrivals};
use crate::basis::{self, Basis, Population};
use crate::count::{Chunk, Count, InputToken, Request, Token, Unit};
use crate::figure::{Figure, Withheld};
use crate::judge::{Judged, Outcome};
use crate::rate::{Goodput, Rate, Throughput};
use crate::tokens::Source;
use crate::window::Window;

/// Throughput over all streams.
#[derive(Debug, Clone, Serialize)]
pub struct System {
    /// Output that arrived inside the window, whichever request it belongs to.
    pub output: Figure,
    /// Requests that ended ok inside the window.
    pub requests: Figure,
    /// Input tokens of requests that ended ok inside the window.
    pub input: Figure,
}

/// A unit that arrivals can be counted in.
pub(crate) trait OfArrival: Unit {
    /// How many an arrival brought; `None` where that is not known.
    fn of(arrival: &Arrival) -> Option<Count<Self>>;
    /// How many all arrivals of a request brought.
    fn of_all(arrivals: &Arrivals) -> Option<Count<Self>>;
}

impl OfArrival for Token {
    fn of(arrival: &Arrival) -> Option<Count<Token>> {
        arrival.tokens
    }

    fn of_all(arrivals: &Arrivals) -> Option<Count<Token>> {
        arrivals.tokens()
    }
}

impl OfArrival for Chunk {
    fn of(arrival: &Arrival) -> Option<Count<Chunk>> {
        Some(Count::whole(arrival.chunks))
    }

    fn of_all(arrivals: &Arrivals) -> Option<Count<Chunk>> {
        Some(Count::whole(arrivals.chunks()))
    }
}

/// Output inside the window, in tokens where at most a tenth had to be estimated.
pub(crate) enum Output {
    Tokens(Count<Token>, Source),
    Chunks(Count<Chunk>),
}

pub(crate) fn output(scene: &Scene<'_>, window: &Window) -> Output {
    if let Counted::Tokens(source) = scene.counted
        && let Some(count) = tokens_inside(scene, window)
    {
        return Output::Tokens(count, source);
    }
    let inside = scene
        .level
        .requests
        .iter()
        .flat_map(|request| &request.arrivals);
    Output::Chunks(
        inside
            .filter(|a| window.holds(a.at))
            .filter_map(|a| Chunk::of(&a))
            .sum(),
    )
}

/// Tokens inside the window. A request whose own total is not known takes the level's tokens per
/// character; `None` where more than a tenth would come from such.
fn tokens_inside(scene: &Scene<'_>, window: &Window) -> Option<Count<Token>> {
    let (mut counted, mut chars_inside) = (Count::ZERO, 0);
    let (mut level_tokens, mut level_chars) = (Count::<Token>::ZERO, 0);
    for request in &scene.level.requests {
        let inside = request
            .arrivals
            .iter()
            .filter(|arrival| window.holds(arrival.at));
        if let Some(all) = request.arrivals.tokens() {
            counted += inside.filter_map(|a| Token::of(&a)).sum();
            if request.outcome == Outcome::Ok {
                level_tokens += all;
                level_chars += request.arrivals.chars();
            }
        } else {
            chars_inside += inside.map(|arrival| arrival.chars).sum::<u64>();
        }
    }
    let estimated = match chars_inside {
        0 => Count::ZERO,
        chars => level_tokens.share(chars, level_chars)?,
    };
    let all = counted + estimated;
    (u128::from(estimated.millionths()) * 10 <= u128::from(all.millionths())).then_some(all)
}

pub(super) fn figures(scene: &Scene<'_>) -> System {
    // As with output, whichever request it is: one of the warm-up may end inside the window.
    let all_ok = || {
        scene
            .level
            .requests
            .iter()
            .filter(|request| request.outcome == Outcome::Ok)
    };
    let ended = all_ok().filter(|request| {
        scene
            .window
            .zip(request.trace.end)
            .is_some_and(|(window, end)| window.holds(end))
    });
    let ended: Vec<&Judged> = ended.collect();
    let input: Option<u64> = ended.iter().map(|request| request.tokens.input).sum();
    let sent = scene.with_output();
    let ended_ok = Population {
        kept: ended.len() as u64,
        of: all_ok().count() as u64,
        what: "ok requests, warm-up included",
    };
    let output = match scene.window.map(|window| output(scene, &window)) {
        Some(Output::Tokens(count, source)) => throughput(scene, Some(count), source, sent),
        Some(Output::Chunks(count)) => throughput(scene, Some(count), Source::None, sent),
        None => throughput::<Token>(scene, None, Source::None, sent),
    };
    let requests = Some(Count::<Request>::whole(ended.len() as u64));
    let input = input.map(Count::<InputToken>::whole);
    System {
        output,
        requests: throughput(scene, requests, Source::None, ended_ok.clone()),
        input: throughput(scene, input, Source::Server, ended_ok),
    }
}

fn throughput<U: Unit>(
    scene: &Scene<'_>,
    count: Option<Count<U>>,
    source: Source,
    population: Population,
) -> Figure {
    let withheld = |why| {
        let interval = scene.window.map(|window| window.interval);
        Figure::withheld::<U, basis::System, Throughput>(
            why,
            interval,
            population.clone(),
            scene.load,
        )
    };
    let window = match scene.window() {
        Ok(window) => window,
        Err(why) => return withheld(why),
    };
    let Some(count) = count else {
        return withheld(Withheld::new(
            "not_stated",
            "the server did not state this count",
        ));
    };
    if count.is_zero() {
        let text = format!("no {} was observed inside the window", U::NAME);
        return withheld(Withheld::new("nothing_arrived", text));
    }
    let basis = Basis::new(window.interval, population, scene.load);
    Figure::of(
        &Rate::<U, basis::System, Throughput>::new(count, basis),
        source,
    )
}

pub(super) fn goodput(scene: &Scene<'_>) -> Figure {
    let why = Withheld::new("no_objective", "no objective was given");
    let population = Population {
        kept: 0,
        of: scene.members().count() as u64,
        what: "issued requests",
    };
    let interval = scene.window.map(|window| window.interval);
    Figure::withheld::<Request, basis::System, Goodput>(why, interval, population, scene.load)
}
