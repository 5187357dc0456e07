//! Owns what an answer rests on: the figures of a level that speak to a claim.

use super::{Question, Rests, What};
use crate::figure::{Dist, Figure, Withheld};
use crate::level::LevelReport;
use crate::stated::Scope;

pub(super) fn of_system(level: &LevelReport, question: &Question) -> Rests {
    let system = &level.system;
    let figure = match question.what {
        What::Output | What::Total => &system.output,
        What::Input => &system.input,
        What::Requests => &system.requests,
    };
    let mut rests = of_figure(level, figure, question);
    if question.what == What::Total {
        let both = figure
            .value()
            .zip(system.input.value())
            .map(|(output, input)| output + input);
        rests.metric = "system_throughput of output and input";
        rests.unit = "tok/s".into();
        rests.value = both;
        rests.interval = both.map(|value| [value, value]);
        rests.withheld = both.is_none().then(|| no_input(system.input.reason()));
    }
    settle(rests, question)
}

fn no_input(reason: Option<&Withheld>) -> Withheld {
    reason
        .cloned()
        .unwrap_or_else(|| Withheld::new("no_count", "output or input tokens are not known"))
}

fn of_figure(level: &LevelReport, figure: &Figure, question: &Question) -> Rests {
    let population = figure.population();
    Rests {
        reading: Scope::System,
        metric: figure.metric(),
        unit: question.unit(figure.unit()),
        value: figure.value(),
        interval: figure.value().map(|value| [value, value]),
        seconds: figure.timed().and_then(|timed| timed.seconds()),
        rule: figure.timed().map(|timed| timed.rule()),
        kept: population.kept,
        of: population.of,
        concurrency: level.load.target,
        held: level.load.held,
        agrees: None,
        withheld: figure.reason().cloned(),
    }
}

/// The rates of one stream that the claim may mean: with the wait, without it, or, where it does
/// not say, either.
pub(super) fn of_stream(level: &LevelReport, question: &Question) -> Vec<Rests> {
    let (generation, whole) = (&level.per_stream.generation, &level.per_stream.end_to_end);
    let dists = match (question.what, question.wait) {
        (What::Output, Some(true)) => vec![whole],
        (What::Output, Some(false)) => vec![generation],
        (What::Output, None) => vec![generation, whole],
        _ => vec![whole],
    };
    dists
        .into_iter()
        .map(|dist| settle(of_dist(level, dist, question), question))
        .collect()
}

fn of_dist(level: &LevelReport, dist: &Dist, question: &Question) -> Rests {
    let median = dist.median();
    let mut rests = Rests {
        reading: Scope::PerStream,
        metric: dist.metric(),
        unit: question.unit(dist.unit()),
        value: median.value,
        interval: median.ci95,
        seconds: dist.timed().seconds(),
        rule: Some(dist.timed().rule()),
        kept: dist.population().kept,
        of: dist.population().of,
        concurrency: level.load.target,
        held: level.load.held,
        agrees: None,
        withheld: median.withheld,
    };
    if question.what != What::Output {
        rests.value = None;
        rests.interval = None;
        rests.withheld = Some(Withheld::new(
            "no_such_metric",
            "a run has no rate of one stream for input, for all tokens or for requests",
        ));
    }
    rests
}

/// Answers whether a figure agrees; one in another unit is withheld.
pub(super) fn settle(mut rests: Rests, question: &Question) -> Rests {
    let wanted = if question.what == What::Requests {
        "req/s"
    } else {
        "tok/s"
    };
    if rests.value.is_some() && rests.unit != wanted {
        rests.withheld = Some(Withheld::new(
            "no_tokens",
            format!(
                "the endpoint's rate is in {}: nobody counted tokens, so it cannot stand beside tok/s",
                rests.unit
            ),
        ));
        (rests.value, rests.interval) = (None, None);
    }
    let (from, to) = question.accepted;
    rests.agrees = rests
        .interval
        .map(|[low, high]| high >= from && to.is_none_or(|to| low <= to));
    rests
}

impl Question {
    /// Input tokens are tokens here: the claim says which it counts.
    fn unit(&self, unit: &str) -> String {
        let input = matches!(self.what, What::Input | What::Total);
        unit.strip_prefix("input ")
            .filter(|_| input)
            .unwrap_or(unit)
            .to_owned()
    }
}
