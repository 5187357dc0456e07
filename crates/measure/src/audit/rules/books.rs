//! Owns the rules on requests that failed, went missing or were never finished.

use super::rows::all_rows;
use super::{Found, Scene};
use crate::audit::form::Books;
use crate::stated::number;

/// The share of failures from which percentiles over the successes mislead.
const SOME: f64 = 0.01;

pub fn failures_hidden(scene: &Scene<'_>) -> Option<Found> {
    let books = &scene.run.books;
    let text = unchecked(books)
        .or_else(|| rate_says_none(books))
        .or_else(|| left_out(books))
        .or_else(|| missing(scene))
        .or_else(|| rows_failed(scene))
        .or_else(|| outside_percentiles(scene))?;
    Found::new(text, [])
}

fn unchecked(books: &Books) -> Option<String> {
    let (failed, of) = books.failed_checks.filter(|(failed, _)| *failed > 0.0)?;
    (books.failed == Some(0.0)).then(|| {
        format!(
            "{} of {} checks failed, and the file counts 0 failed requests",
            number(failed),
            number(of)
        )
    })
}

fn rate_says_none(books: &Books) -> Option<String> {
    let failed = books.failed.filter(|failed| *failed > 0.0)?;
    let rate = books.error_rate?;
    let own = failed / (failed + books.completed?);
    (rate < own / 2.0).then(|| {
        format!(
            "{} requests failed ({:.1} %), and the stated error rate is {:.1} %",
            number(failed),
            own * 100.0,
            rate * 100.0
        )
    })
}

fn left_out(books: &Books) -> Option<String> {
    let left = books.left_out.filter(|left| *left > 0.0)?;
    Some(format!(
        "{} requests were cut off by the end of the test: they count in the request rate and not in the success rate",
        number(left)
    ))
}

fn missing(scene: &Scene<'_>) -> Option<String> {
    let books = &scene.run.books;
    let asked = scene.run.config.requests?;
    let told = books.completed? + books.failed.unwrap_or(0.0);
    let gone = asked - told;
    (gone >= 1.0 && !books.cut_short).then(|| {
        format!(
            "{} requests were to be sent, and the file accounts for {}: what became of the other {} is not said",
            number(asked),
            number(told),
            number(gone)
        )
    })
}

/// Requests that failed by their own entry, beyond those that the summary counts.
fn rows_failed(scene: &Scene<'_>) -> Option<String> {
    let rows = all_rows(scene)?;
    let failed = rows.iter().filter(|request| !request.ok).count();
    let counted = scene.run.books.failed;
    let beyond = failed as f64 > counted.unwrap_or(0.0);
    let enough = counted.is_some() || failed as f64 >= SOME * rows.len() as f64;
    (beyond && enough).then(|| {
        format!(
            "{failed} of {} requests have an error of their own, and the summary counts {} failed",
            rows.len(),
            counted.map_or_else(|| "none".into(), number)
        )
    })
}

fn outside_percentiles(scene: &Scene<'_>) -> Option<String> {
    let books = &scene.run.books;
    let (failed, completed) = (books.failed?, books.completed?);
    let share = failed / (failed + completed);
    let states_times = scene
        .run
        .numbers
        .iter()
        .any(|number| number.metric.is_time());
    (completed > 0.0 && share >= SOME && states_times).then(|| {
        format!(
            "{} of {} requests failed ({:.1} %), and every latency is over the successes alone",
            number(failed),
            number(failed + completed),
            share * 100.0
        )
    })
}

pub fn run_cut_short(scene: &Scene<'_>) -> Option<Found> {
    scene.run.books.cut_short.then_some(())?;
    let text = "the file says of itself that its run was cut short or is not valid";
    Found::new(text.into(), [])
}

pub fn non_finite(scene: &Scene<'_>) -> Option<Found> {
    (scene.non_finite > 0).then_some(())?;
    let text = format!(
        "{} values are NaN or Infinity, which JSON does not have: other readers refuse the file, and each stands for a figure that does not exist",
        scene.non_finite
    );
    Found::new(text, [])
}
