//! Owns the page of a claim: what was said, both readings, what is missing, and what a run says.

use measure::claim::judge::{Rests, Tested};
use measure::claim::{Bound, Claim, Fields, Standing};
use measure::rate::significant;
use measure::stated::{Scope, number};

use super::escape::{cut, markdown as escaped};
use super::grid::Grid;
use super::text::Paper;
use super::{Style, indented};

/// The claim as one JSON object.
pub fn json(claim: &Claim) -> String {
    indented(claim)
}

/// The claim as text.
pub fn text(claim: &Claim, style: Style) -> String {
    let mut paper = Paper::new(style);
    paper.line("", &title(claim));
    paper.gap();
    paper.facts(&facts(claim));
    if !claim.readings.is_empty() {
        paper.gap();
        paper.table(&readings(claim));
    }
    if !claim.missing.is_empty() {
        paper.gap();
        paper.line("", "not said; to ask the author:");
        for missing in &claim.missing {
            paper.line("  - ", &missing.question);
        }
    }
    if !claim.notes.is_empty() {
        paper.gap();
        paper.facts(&notes(claim));
    }
    if let Some(tested) = &claim.tested {
        paper.gap();
        paper.line("", &tested.text);
        paper.table(&evidence(tested));
        for reason in withheld(tested) {
            paper.line("  ", &reason);
        }
    }
    paper.out
}

/// The claim as Markdown.
pub fn markdown(claim: &Claim) -> String {
    let mut out = format!("## {}\n\n", escaped(&title(claim)));
    let list = |out: &mut String, facts: &[(&'static str, String)]| {
        for (label, said) in facts {
            out.push_str(&format!("- {label}: {}\n", escaped(said)));
        }
        out.push('\n');
    };
    list(&mut out, &facts(claim));
    if !claim.readings.is_empty() {
        out.push_str(&super::markdown::table(&readings(claim)));
    }
    if !claim.missing.is_empty() {
        out.push_str("Not said; to ask the author:\n\n");
        for missing in &claim.missing {
            out.push_str(&format!("- {}\n", escaped(&missing.question)));
        }
        out.push('\n');
    }
    if !claim.notes.is_empty() {
        list(&mut out, &notes(claim));
    }
    if let Some(tested) = &claim.tested {
        out.push_str(&format!("**{}**\n\n", escaped(&tested.text)));
        out.push_str(&super::markdown::table(&evidence(tested)));
        for reason in withheld(tested) {
            out.push_str(&format!("{}  \n", escaped(&reason)));
        }
    }
    out
}

fn title(claim: &Claim) -> String {
    match &claim.text {
        Some(text) => format!("claim: \"{}\"", cut(text)),
        None => "claim, given as flags".into(),
    }
}

type Fact = (&'static str, String);

fn facts(claim: &Claim) -> Vec<Fact> {
    let fields = &claim.fields;
    let mut facts = vec![("said", said(fields))];
    for also in &claim.also {
        facts.push(("also", said(also)));
    }
    let scope = match fields.scope {
        Some(Scope::System) => "the system, by the author's words",
        Some(Scope::PerStream) => "one stream, by the author's words",
        None if claim.readings.is_empty() => "not said, and no reading is computed",
        None => "not said: both readings stand",
    };
    facts.push(("scope", scope.into()));
    facts
}

fn notes(claim: &Claim) -> Vec<Fact> {
    let note = |note: &measure::claim::Note| ("note", note.text.clone());
    claim.notes.iter().map(note).collect()
}

/// Everything that was said of one number, on one line.
fn said(fields: &Fields) -> String {
    let Some(value) = fields.value else {
        return "no number with a unit".into();
    };
    let value = match (fields.value_to, fields.bound) {
        (Some(high), _) => format!("{} to {}", number(value), number(high)),
        (None, Some(Bound::AtLeast)) => format!("{} or more", number(value)),
        (None, Some(Bound::AtMost)) => format!("{} or less", number(value)),
        _ => number(value),
    };
    let unit = fields.unit.as_deref().unwrap_or("without unit");
    let mut parts = vec![format!("{value} {unit}")];
    parts.extend(fields.per.map(|per| format!("per {}", per.name)));
    let is_tokens = unit.starts_with("tok");
    parts.extend(
        fields
            .counted
            .as_ref()
            .filter(|_| is_tokens)
            .map(|counted| format!("{counted} tokens")),
    );
    let streams = fields
        .concurrency
        .map(number)
        .or(fields.concurrency_range.map(|span| span.to_string()));
    parts.extend(streams.map(|streams| format!("{streams} at once")));
    parts.extend(
        fields
            .devices
            .zip(fields.device)
            .map(|(count, device)| format!("{} × {device}", number(count))),
    );
    parts.extend(
        fields
            .statistic
            .map(|statistic| format!("{statistic:?}").to_lowercase()),
    );
    parts.extend(fields.interval.as_deref().map(cut));
    parts.extend(fields.ttft_included.map(|included| match included {
        true => "the wait included".to_owned(),
        false => "the wait not included".to_owned(),
    }));
    if !fields.softeners.is_empty() {
        parts.push(format!("softened by: {}", fields.softeners.join(", ")));
    }
    parts.join(" · ")
}

fn readings(claim: &Claim) -> Grid {
    let row = |reading: &measure::claim::ClaimReading| {
        let name = match reading.reading.given {
            Scope::System => "the system's",
            Scope::PerStream => "one stream's",
        };
        let standing = match reading.standing {
            Standing::Stated => "yes",
            Standing::Open => "not said",
            Standing::NotStated => "says the other",
        };
        vec![
            name.to_owned(),
            reading.reading.system.to_string(),
            reading.reading.per_stream.to_string(),
            standing.to_owned(),
        ]
    };
    Grid {
        header: [
            "if the number is",
            "system",
            "per stream",
            "the author says so",
        ]
        .map(str::to_owned)
        .into(),
        rows: claim.readings.iter().map(row).collect(),
        bold: Vec::new(),
    }
}

fn evidence(tested: &Tested) -> Grid {
    let header = [
        "measured",
        "streams / held",
        "value",
        "95 % interval",
        "timed",
        "requests",
        "agrees",
    ];
    Grid {
        header: header.map(str::to_owned).into(),
        rows: tested
            .rests_on
            .iter()
            .chain(&tested.alone)
            .map(evidence_row)
            .collect(),
        bold: Vec::new(),
    }
}

fn evidence_row(rests: &Rests) -> Vec<String> {
    let none = || "–".to_owned();
    let held = rests.held.map_or_else(none, significant);
    let interval = match rests.interval {
        Some([low, high]) if low < high => format!("{} to {}", significant(low), significant(high)),
        Some(_) => "none: a sum".into(),
        None => none(),
    };
    vec![
        format!("{} {}", rests.reading.name(), rests.metric),
        format!("{} / {held}", rests.concurrency),
        rests.value.map_or_else(none, |value| {
            format!("{} {}", significant(value), rests.unit)
        }),
        interval,
        rests
            .seconds
            .zip(rests.rule)
            .map_or_else(none, |(seconds, rule)| {
                format!("{} s, {}", significant(seconds), rule.words())
            }),
        format!("{} of {}", rests.kept, rests.of),
        rests.agrees.map_or_else(
            none,
            |agrees| if agrees { "yes".into() } else { "no".into() },
        ),
    ]
}

/// Each reason for a missing value once.
fn withheld(tested: &Tested) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for rests in tested.rests_on.iter().chain(&tested.alone) {
        let Some(why) = &rests.withheld else { continue };
        let text = format!("{} at {}: {}", rests.metric, rests.concurrency, why.text);
        if !reasons.contains(&text) {
            reasons.push(text);
        }
    }
    reasons
}
