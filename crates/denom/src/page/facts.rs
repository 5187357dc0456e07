//! Owns the lines under the tables: what holds for all rows, and what to doubt.

use measure::figure::Dist;
use measure::level::LevelReport;
use measure::rate::significant;
use measure::record::SelfCheck;
use measure::report::Report;
use measure::tokens::Source;

use super::cells::{Reasons, Scale, percent};
use super::escape::cut;
use super::grid::{has_end_to_end_row, name, rate_column, time_column, why_end_to_end};

/// One labelled line.
pub type Fact = (&'static str, String);

/// What was measured, in one line.
pub fn title(report: &Report) -> String {
    let target = &report.target;
    let mut kinds: Vec<_> = report
        .levels
        .iter()
        .map(|level| match level.load.kind {
            measure::basis::Loop::Closed => "closed loop",
            measure::basis::Loop::Open => "open loop",
        })
        .collect();
    kinds.dedup();
    let (url, model, api) = (cut(&target.url), cut(&target.model), target.api);
    let http = match target.http.as_str() {
        "1.1" => String::new(),
        other => format!("HTTP/{} · ", cut(other)),
    };
    format!("{url} · {model} · {api} · {http}{}", kinds.join(" and "))
}

/// What a reader must know before any number.
pub fn alarms(report: &Report) -> Vec<String> {
    let mut all = Vec::new();
    if report.target.tls == "insecure" {
        all.push("INSECURE TLS: the server's certificate was not checked".into());
    }
    if report.run.interrupted {
        all.push("INTERRUPTED: the run was stopped before its plan was done".into());
    }
    if report.run.cut_short {
        all.push("CUT SHORT: the record file ends before the run does".into());
    }
    if report.levels.is_empty() {
        all.push("NOTHING MEASURED: no request was sent".into());
    }
    all
}

/// One line a fact: once where it is the same on all levels, else by level.
fn by_level(report: &Report, of: impl FnMut(&LevelReport) -> Option<String>) -> Option<String> {
    let texts: Vec<Option<String>> = report.levels.iter().map(of).collect();
    if texts.windows(2).all(|pair| pair[0] == pair[1]) {
        return texts.into_iter().next().flatten();
    }
    let said = report.levels.iter().zip(texts);
    let parts: Vec<_> = said
        .filter_map(|(level, text)| Some(format!("{}: {}", at(level), text?)))
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn at(level: &LevelReport) -> String {
    format!("at {}", name(level))
}

/// Names with their counts, those with none left out.
fn tally<'a>(counts: impl IntoIterator<Item = (&'a &'static str, &'a u64)>) -> Option<String> {
    let parts: Vec<_> = counts
        .into_iter()
        .filter(|(_, n)| **n > 0)
        .map(|(name, n)| format!("{n} {name}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn push(facts: &mut Vec<Fact>, label: &'static str, text: Option<String>) {
    facts.extend(text.map(|text| (label, text)));
}

/// What is one for all rows of the table of levels.
pub fn basis(report: &Report, reasons: &mut Reasons) -> Vec<Fact> {
    let mut facts = Vec::new();
    push(&mut facts, "selected", selected(report));
    push(
        &mut facts,
        "tokens",
        by_level(report, |level| source(report, level)),
    );
    push(&mut facts, "shapes", by_level(report, shapes));
    push(
        &mut facts,
        "guards",
        by_level(report, |level| Some(guards(level))),
    );
    let in_flight = |level: &LevelReport| {
        let ratio = &level.per_stream.ratio_of_sums;
        Some(format!("{} {}", significant(ratio.value()?), ratio.unit()))
    };
    push(
        &mut facts,
        "per stream in flight",
        by_level(report, in_flight).map(|text| text + " (system rate over held concurrency)"),
    );
    push(&mut facts, "input", by_level(report, input));
    push(
        &mut facts,
        "stopped by",
        by_level(report, |level| tally(&level.requests.finish)),
    );
    push(
        &mut facts,
        "flags",
        by_level(report, |level| tally(&level.requests.flags)),
    );
    push(
        &mut facts,
        "SERVER'S OWN CLAIM",
        by_level(report, |level| declared(level, reasons))
            .map(|text| text + " (declared by the server, not observed here)"),
    );
    facts
}

fn selected(report: &Report) -> Option<String> {
    let text = by_level(report, |level| {
        let dist = &level.per_stream.generation;
        let population = dist.population();
        let is_some = dist.is_selected() || level.latency.ttft.is_selected();
        is_some.then(|| {
            format!(
                "{} of {} {}",
                population.kept, population.of, population.what
            )
        })
    })?;
    Some(format!(
        "* rests only on the requests that passed the guards: {text}"
    ))
}

fn source(report: &Report, level: &LevelReport) -> Option<String> {
    Some(match level.per_stream.end_to_end.source()? {
        Source::Server => "counted by the server".into(),
        Source::Tokenizer => {
            let vocabulary = report.target.vocabulary.as_deref().unwrap_or("a tokenizer");
            format!("counted here after the run, by {}", cut(vocabulary))
        }
        Source::None => "nobody counted tokens, so rates are in chunks".into(),
    })
}

/// Shapes of the ok requests; one that was only short is not called buffered.
fn shapes(level: &LevelReport) -> Option<String> {
    let mut counts = level.requests.shapes.clone();
    let short = level.end_to_end_only.too_short;
    if let Some(buffered) = counts.get_mut("buffered") {
        *buffered = buffered.saturating_sub(short);
    }
    counts.insert("too short to tell", short);
    tally(&counts)
}

fn guards(level: &LevelReport) -> String {
    let guards = &level.guards;
    format!(
        "a stream has at least {} chunks in as many arrivals, over at least {} s",
        guards.min_chunks,
        significant(guards.min_interval_s)
    )
}

fn input(level: &LevelReport) -> Option<String> {
    let requests = &level.requests;
    let mean = significant(requests.input_tokens_mean?);
    let cached = requests.cached_prompt_tokens.zip(requests.input_tokens);
    let cached = match cached.filter(|(_, all)| *all > 0) {
        Some((cached, all)) => format!(
            ", {} of them from a cache",
            percent(cached as f64 / all as f64)
        ),
        None => String::new(),
    };
    Some(format!("{mean} tokens a request{cached}"))
}

fn declared(level: &LevelReport, reasons: &mut Reasons) -> Option<String> {
    let generation = &level.declared.generation;
    (generation.n() > 0).then(|| rate_column(generation.unit()).both(generation, reasons))
}

/// A text as one word of a shell: the server chose it, and a user may copy the line.
fn word(text: &str) -> String {
    let text = cut(text);
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/:@=+-,%[]".contains(c);
    match text.is_empty() || !text.chars().all(plain) {
        true => format!("'{}'", text.replace('\'', "'\\''")),
        false => text,
    }
}

/// What is said under the end-to-end table: the few without a row, and the false formula.
pub fn end_to_end(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let few = by_level_always(report, |level| {
        let n = level.end_to_end_only.n;
        (n > 0 && !has_end_to_end_row(level)).then(|| {
            format!(
                "{n} of {} ok requests end-to-end only: {}",
                level.requests.ok,
                why_end_to_end(level)
            )
        })
    });
    lines.extend(few);
    let only_short =
        |level: &LevelReport| level.end_to_end_only.too_short == level.end_to_end_only.n;
    let formula = "Tokens ÷ (total time − time to first content) would have printed";
    let of = |level: &LevelReport, short| naive(level).filter(|_| only_short(level) == short);
    if let Some(text) = by_level_always(report, |level| of(level, false)) {
        lines.push(format!(
            "{formula} {text}. That is false: its denominator is only the time the delivery took, not the time the tokens took to make."
        ));
    }
    if let Some(text) = by_level_always(report, |level| of(level, true)) {
        lines.push(format!(
            "{formula} {text}. Nothing here supports it: so short a denominator may be only the time the delivery took."
        ));
    }
    lines
}

fn by_level_always(
    report: &Report,
    mut of: impl FnMut(&LevelReport) -> Option<String>,
) -> Option<String> {
    let parts: Vec<_> = report
        .levels
        .iter()
        .filter_map(|level| Some(format!("{} {}", of(level)?, at(level))))
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn naive(level: &LevelReport) -> Option<String> {
    let only = &level.end_to_end_only;
    let zero = only.naive_divides_by_zero;
    let dist = &only.naive;
    let value = match (dist.median().value, dist.min(), dist.max()) {
        (Some(value), ..) => Some(format!("{} {} (median)", significant(value), dist.unit())),
        (None, Some(low), Some(high)) if low < high => Some(format!(
            "{} to {} {}",
            significant(low),
            significant(high),
            dist.unit()
        )),
        (None, Some(low), _) => Some(format!("{} {}", significant(low), dist.unit())),
        _ => None,
    };
    match (value, zero) {
        (Some(value), 0) => Some(value),
        (Some(value), zero) => Some(format!("{value}, and a division by zero for {zero},")),
        (None, 0) => None,
        (None, zero) => Some(format!("a division by zero for {zero}")),
    }
}

/// Windows, the client's part, failures, late bursts and notes.
pub fn conditions(report: &Report, reasons: &mut Reasons) -> Vec<Fact> {
    let mut facts = Vec::new();
    push(&mut facts, "window", by_level(report, window));
    push(&mut facts, "plan", by_level(report, plan));
    push(
        &mut facts,
        "from plan",
        by_level(report, |level| from_plan(level, reasons)),
    );
    push(
        &mut facts,
        "client lag",
        by_level(report, |level| lag(level, reasons)),
    );
    push(&mut facts, "client ceiling", ceiling(report));
    push(&mut facts, "failures", by_level(report, failures));
    push(
        &mut facts,
        "late bursts",
        by_level(report, |level| late(level, reasons)),
    );
    for (label, text) in warnings(report) {
        facts.push((label, text));
    }
    for note in &report.run.notes {
        facts.push(("note", cut(&note.text)));
    }
    facts
}

fn window(level: &LevelReport) -> Option<String> {
    let window = level.window?;
    let timed = level
        .system
        .output
        .timed()
        .and_then(|timed| timed.seconds());
    let length = timed.map_or(String::new(), |length| {
        format!("{} s, ", significant(length))
    });
    let paused = match window.paused_s > 0.0 {
        true => format!(" without {} s of pauses", significant(window.paused_s)),
        false => String::new(),
    };
    let (start, end) = (significant(window.start_s), significant(window.end_s));
    Some(format!(
        "{length}{} (from {start} to {end} s{paused})",
        window.rule.words()
    ))
}

/// What the self-check found, and how much of it each level took; or that it was left out.
fn ceiling(report: &Report) -> Option<String> {
    match report.run.self_check {
        SelfCheck::NotDue => None,
        SelfCheck::Skipped => Some("not measured: the self-check was skipped".into()),
        SelfCheck::Ceiling(chunks) => {
            let share = |level: &LevelReport| {
                let share = level.client.ceiling_share? * 100.0;
                Some(format!("{} %", significant(share)))
            };
            let shares = by_level(report, share)
                .map_or(String::new(), |text| format!("; {text} of it arrived"));
            Some(format!(
                "{} chunks a second, measured before the run{shares}",
                significant(chunks as f64)
            ))
        }
    }
}

/// What became of an open loop's plan, and how late its requests went out.
fn plan(level: &LevelReport) -> Option<String> {
    let plan = level.requests.plan.as_ref()?;
    let missing = match tally(&plan.not_started) {
        Some(reasons) => format!(", not started: {reasons}"),
        None => String::new(),
    };
    let warm = match plan.warmup_planned - plan.warmup_started.min(plan.warmup_planned) {
        0 => String::new(),
        n => format!(", and {n} of the warm-up were not"),
    };
    let lag = &level.client.send_lag;
    let scale = Scale::of_dists([lag].into_iter());
    let column = super::cells::Column {
        unit: scale.unit(),
        ..time_column(scale)
    };
    let lag = match column.tail(lag) {
        tail if tail.is_empty() => String::new(),
        tail => format!("; sent after its instant: {tail}"),
    };
    Some(format!(
        "{} arrivals, {} of {} planned requests started{missing}{warm}{lag}",
        plan.arrivals.name(),
        plan.started,
        plan.planned
    ))
}

/// Latencies of an open loop from the planned instant, as a user's wait counts.
fn from_plan(level: &LevelReport, reasons: &mut Reasons) -> Option<String> {
    let (ttft, e2e) = (&level.latency.ttft_from_plan, &level.latency.e2e_from_plan);
    let shown = |name: &str, dist: &Dist, reasons: &mut Reasons| {
        let scale = Scale::of_dists([dist].into_iter());
        let column = super::cells::Column {
            unit: scale.unit(),
            ..time_column(scale)
        };
        let median = column.median(dist, reasons);
        match column.tail(dist) {
            tail if tail.is_empty() => format!("{name} {median}"),
            tail => format!("{name} p50 {median}, {tail}"),
        }
    };
    let all: Vec<String> = [("TTFT", ttft), ("end to end", e2e)]
        .into_iter()
        .filter(|(_, dist)| dist.n() > 0)
        .map(|(name, dist)| shown(name, dist, reasons))
        .collect();
    let open = level.load.kind == measure::basis::Loop::Open;
    (open && !all.is_empty()).then(|| all.join("; "))
}

/// At least and at most so late, by the furthest quantile.
fn lag(level: &LevelReport, reasons: &mut Reasons) -> Option<String> {
    let (low, high) = (&level.client.read_lag, &level.client.read_lag_bound);
    if high.n() == 0 {
        return None;
    }
    let scale = Scale::of_dists([high].into_iter());
    let column = |dist: &Dist, reasons: &mut Reasons| {
        let column = super::cells::Column {
            unit: scale.unit(),
            ..time_column(scale)
        };
        match column.tail(dist) {
            tail if tail.is_empty() => column.median(dist, reasons),
            tail => tail,
        }
    };
    let most = column(high, reasons);
    Some(match low.n() {
        0 => format!("at most {most}; its lower end is not known"),
        _ => format!("at least {}, at most {most}", column(low, reasons)),
    })
}

fn failures(level: &LevelReport) -> Option<String> {
    let kinds = tally(&level.requests.failed)?;
    let texts = level.requests.failure_texts.iter().take(3);
    let texts: Vec<String> = texts.map(|text| format!("“{}”", cut(text))).collect();
    Some(match texts.is_empty() {
        true => kinds,
        false => format!("{kinds}: {}", texts.join(", ")),
    })
}

fn late(level: &LevelReport, reasons: &mut Reasons) -> Option<String> {
    let late = &level.flagged.late_burst;
    let scale = Scale::of_dists([&late.ttft].into_iter());
    let rate = rate_column(late.generation.unit());
    (late.n > 0).then(|| {
        format!(
            "{} answers came wholly in the last tenth of their time and stand apart from the table: {}, TTFT {} {}",
            late.n,
            rate.both(&late.generation, reasons),
            time_column(scale).both(&late.ttft, reasons),
            scale.unit()
        )
    })
}

/// Warnings, each once with its levels and what to do.
fn warnings(report: &Report) -> Vec<Fact> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for warning in report.levels.iter().flat_map(|level| &level.warnings) {
        let key = (warning.code, warning.hint.as_str());
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    let one = |(code, hint): (&str, &str)| {
        let mut texts: Vec<(&str, Vec<String>)> = Vec::new();
        for level in &report.levels {
            let same = level
                .warnings
                .iter()
                .filter(|w| w.code == code && w.hint == hint);
            for warning in same {
                match texts.iter_mut().find(|(text, _)| *text == warning.text) {
                    Some((_, levels)) => levels.push(name(level)),
                    None => texts.push((&warning.text, vec![name(level)])),
                }
            }
        }
        let texts: Vec<_> = texts
            .iter()
            .map(|(text, levels)| format!("at {}: {text}", levels.join(", ")))
            .collect();
        ("warning", format!("{} → {hint}", texts.join("; ")))
    };
    seen.into_iter().map(one).collect()
}

/// The verdict on each level.
pub fn verdicts(report: &Report) -> Vec<Fact> {
    let one = |level: &LevelReport| {
        let reasons: Vec<_> = level
            .verdict
            .reasons
            .iter()
            .map(|r| r.text.as_str())
            .collect();
        let text = match level.verdict.valid {
            true => format!("{}: valid", at(level)),
            false => format!("{}: INVALID because {}", at(level), reasons.join("; and ")),
        };
        ("verdict", text)
    };
    report.levels.iter().map(one).collect()
}

/// What to ask next where no answer of the run was seen to stream: only an experiment tells a
/// path that holds back from answers that are short.
pub fn next(report: &Report) -> Option<Fact> {
    let shapes = |level: &LevelReport, name| level.requests.shapes.get(name).copied().unwrap_or(0);
    let held = |level: &LevelReport| {
        let streamed = shapes(level, "streamed") + shapes(level, "clumped");
        streamed == 0 && shapes(level, "buffered") > 0
    };
    let can_be_asked = !report.run.endpoint_gone && !report.levels.is_empty();
    let all = can_be_asked && report.levels.iter().all(held);
    let (url, model) = (word(&report.target.url), word(&report.target.model));
    all.then(|| {
        (
            "next",
            format!(
                "denom probe {url} -m {model} tells whether the path holds answers back, and how fast the model behind it is"
            ),
        )
    })
}
