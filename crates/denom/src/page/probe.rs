//! Owns the probe's pages: a verdict for people, for a README, and for a CI server.

use measure::figure::{Dist, Figure};
use measure::probe::compare::Difference;
use measure::probe::rows::{Middle, Row};
use measure::probe::verdict::{Kind, Verdict};
use measure::probe::{Comparison, Path, Report, Way};
use measure::rate::significant;

use super::Style;
use super::escape::{cut, line, markdown as escaped};
use super::facts::Fact;
use super::grid::Grid;
use super::markdown::{list, table};
use super::text::Paper;

/// The report as text, with a line feed at its end.
pub fn text(report: &Report, style: Style) -> String {
    let mut paper = Paper::new(style);
    paper.line("", &title(report));
    for alarm in alarms(report) {
        paper.loud(&alarm);
    }
    for path in &report.paths {
        paper.gap();
        paper.line("", &path_title(path));
        let verdict = verdict_line(&path.verdict);
        for part in textwrap::wrap(&line(&verdict), style.width.max(20)) {
            paper.out.push_str(&style.bold(&part));
            paper.out.push('\n');
        }
        paper.facts(&needed(&path.verdict));
        paper.facts(&evidence(path));
        paper.table(&observed(path));
        paper.facts(&inferred(path));
        paper.facts(&says(path));
    }
    for comparison in &report.comparisons {
        paper.gap();
        paper.line("", &comparison_title(comparison));
        paper.line("", &comparison.text);
        paper.table(&changes(comparison));
    }
    paper.facts(&notes(report));
    paper.out
}

/// The report as Markdown, with a line feed at its end.
pub fn markdown(report: &Report) -> String {
    let mut out = format!("## {}\n\n", escaped(&title(report)));
    for alarm in alarms(report) {
        out.push_str(&format!("**{}**\n\n", escaped(&alarm)));
    }
    for path in &report.paths {
        out.push_str(&format!("### {}\n\n", escaped(&path_title(path))));
        out.push_str(&format!(
            "**{}**\n\n",
            escaped(&verdict_line(&path.verdict))
        ));
        list(&mut out, &needed(&path.verdict));
        list(&mut out, &evidence(path));
        out.push_str(&format!("\n{}", table(&observed(path))));
        list(&mut out, &inferred(path));
        list(&mut out, &says(path));
        out.push('\n');
    }
    for comparison in &report.comparisons {
        out.push_str(&format!(
            "### {}\n\n",
            escaped(&comparison_title(comparison))
        ));
        out.push_str(&format!(
            "{}\n\n{}",
            escaped(&comparison.text),
            table(&changes(comparison))
        ));
    }
    list(&mut out, &notes(report));
    out
}

/// The report as one JSON object, indented, with a line feed at its end.
pub fn json(report: &Report) -> String {
    super::indented(report)
}

/// The report as JUnit XML: a test case a side, failed where it does not stream, in error where it
/// cannot be told.
pub fn junit(report: &Report) -> String {
    let count = |kind: fn(Kind) -> bool| {
        let of = report.paths.iter().filter(|path| kind(path.verdict.kind));
        of.count()
    };
    let failed = |kind| !matches!(kind, Kind::Streams | Kind::CannotTell);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"denom probe\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
        report.paths.len(),
        count(failed),
        count(|kind| kind == Kind::CannotTell)
    );
    for path in &report.paths {
        let (way, url) = (path.way.name(), xml(&cut(&path.url)));
        out.push_str(&format!(
            "  <testcase classname=\"denom.probe\" name=\"{way} {url} streams\">\n"
        ));
        let said = xml(&verdict_line(&path.verdict));
        let kind = path.verdict.kind.name();
        let tag = match path.verdict.kind {
            Kind::Streams => None,
            Kind::CannotTell => Some("error"),
            _ => Some("failure"),
        };
        let facts: Vec<Fact> = [evidence(path), inferred(path), says(path)].concat();
        let body: Vec<String> = facts
            .iter()
            .map(|(label, said)| format!("{label}: {said}"))
            .collect();
        let body = xml(&body.join("\n"));
        match tag {
            Some(tag) => out.push_str(&format!(
                "    <{tag} type=\"{kind}\" message=\"{said}\">{body}</{tag}>\n"
            )),
            None => out.push_str(&format!("    <system-out>{said}\n{body}</system-out>\n")),
        }
        out.push_str("  </testcase>\n");
    }
    out + "</testsuite>\n"
}

/// Text as XML takes it; characters that no XML may hold are written out.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                out.extend(c.escape_unicode())
            }
            c => out.push(c),
        }
    }
    out
}

fn title(report: &Report) -> String {
    let url = report
        .paths
        .first()
        .map_or(String::new(), |path| cut(&path.url));
    let requests: u64 = report
        .paths
        .iter()
        .map(|path| path.requests.measured + path.requests.discarded)
        .sum();
    let [short, middle, long] = report.lengths.tokens();
    format!(
        "{url} · {} · {} · {requests} requests, one at a time, for {short}, {middle} and {long} output tokens",
        cut(&report.model),
        report.api
    )
}

fn alarms(report: &Report) -> Vec<String> {
    let mut all = Vec::new();
    if report.interrupted {
        all.push("INTERRUPTED: the experiment was stopped before its plan was done".into());
    }
    all
}

fn way(way: Way) -> &'static str {
    match way {
        Way::Path => "the URL",
        Way::AsSdk => "the URL, asked as an SDK asks (compression offered)",
        Way::Direct => "the other URL (--direct)",
    }
}

fn path_title(path: &Path) -> String {
    let requests = &path.requests;
    let mut text = format!(
        "{}: {} · {} of {} requests ok, {} discarded",
        way(path.way),
        cut(&path.url),
        requests.ok,
        requests.measured,
        requests.discarded
    );
    for (kind, n) in &requests.failed {
        text.push_str(&format!(", {n} {kind}"));
    }
    for said in &requests.failure_texts {
        text.push_str(&format!(" “{}”", cut(said)));
    }
    text
}

fn verdict_line(verdict: &Verdict) -> String {
    let name = match verdict.kind {
        Kind::Streams => "STREAMS",
        Kind::BundlesBySize => "BUNDLES BY SIZE",
        Kind::BundlesByTime => "BUNDLES BY TIME",
        Kind::Buffers => "BUFFERS",
        Kind::CannotTell => "CANNOT TELL",
    };
    format!("{name}: {}", verdict.text)
}

fn needed(verdict: &Verdict) -> Vec<Fact> {
    let needed = verdict.needed.iter();
    needed.map(|text| ("needed", text.clone())).collect()
}

fn evidence(path: &Path) -> Vec<Fact> {
    let each = path.evidence.iter();
    each.map(|one| ("evidence", one.text.clone())).collect()
}

/// The speed behind the path: never in a table with what was observed.
fn inferred(path: &Path) -> Vec<Fact> {
    let (time, rate) = (&path.inferred.time_per_token, &path.inferred.generation);
    let mut facts = vec![("INFERRED", speed(time, rate))];
    if let Some(left) = path.inferred.residuals.filter(|_| time.value().is_some()) {
        facts.push((
            "INFERRED",
            format!(
                "its line leaves {} ms at the median and {} ms at most, and {} s at no output",
                significant(left.median * 1e3),
                significant(left.largest * 1e3),
                significant(left.intercept)
            ),
        ));
    }
    if let Some(declared) = &path.declared {
        facts.push((
            "DECLARED",
            format!(
                "{}, the server's own claim",
                declared_rate(&declared.generation)
            ),
        ));
    }
    facts
}

fn speed(time: &Figure, rate: &Figure) -> String {
    let unit = time.unit().trim_start_matches("s/");
    let word = if unit == "tok" { "token" } else { unit };
    let values = time
        .value()
        .zip(time.interval95())
        .zip(rate.value().zip(rate.interval95()));
    match values {
        Some(((each, [low, high]), (speed, [slow, fast]))) => format!(
            "the model behind takes {} ms a {word} ({} to {}), which is {} {} for one stream ({} to {}): the slope of {} end-to-end times over output, not observed",
            significant(each * 1e3),
            significant(low * 1e3),
            significant(high * 1e3),
            significant(speed),
            rate.unit(),
            significant(slow),
            significant(fast),
            time.population().kept
        ),
        None => format!(
            "time a {word} withheld: {}",
            time.reason().map_or("", |why| why.text.as_str())
        ),
    }
}

fn declared_rate(dist: &Dist) -> String {
    match (dist.median().value, dist.min(), dist.max()) {
        (Some(value), ..) => format!(
            "{} {} (median of {})",
            significant(value),
            dist.unit(),
            dist.n()
        ),
        (None, Some(low), Some(high)) => format!(
            "{} to {} {} (n {})",
            significant(low),
            significant(high),
            dist.unit(),
            dist.n()
        ),
        _ => "nothing".into(),
    }
}

fn says(path: &Path) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for said in &path.says {
        let suggests = match said.suggests {
            "" => String::new(),
            text => format!(": {text}"),
        };
        facts.push((
            "says",
            format!("{} {}{suggests}", said.what, cut(&said.value)),
        ));
    }
    for change in &path.changes {
        facts.push(("change", format!("{}: {}", change.at, change.set)));
    }
    for ability in &path.supports {
        facts.push(("supports", format!("{}: {}", ability.what, ability.text)));
    }
    facts
}

fn notes(report: &Report) -> Vec<Fact> {
    report
        .notes
        .iter()
        .map(|text| ("note", cut(text)))
        .collect()
}

/// What was observed at each length.
fn observed(path: &Path) -> Grid {
    let unit = path.counted.name();
    let header = [
        "asked",
        unit,
        "chunks",
        "arrivals",
        "KiB",
        "head s",
        "first s",
        "spread s",
        "gap ms",
        "max gap s",
        "e2e s",
    ];
    let row = |row: &Row| {
        vec![
            format!("{} (n {})", row.asked, row.n),
            middle(row.output, 1.0),
            middle(row.chunks, 1.0),
            middle(row.arrivals, 1.0),
            middle(row.bytes, 1.0 / 1024.0),
            middle(row.head_s, 1.0),
            middle(row.first_content_s, 1.0),
            middle(row.content_s, 1.0),
            middle(row.gap_s, 1e3),
            middle(row.gap_max_s, 1.0),
            middle(row.e2e_s, 1.0),
        ]
    };
    Grid {
        header: header.map(str::to_owned).to_vec(),
        rows: path.observed.iter().map(row).collect(),
        bold: vec![6, 10],
    }
}

fn middle(middle: Option<Middle>, scale: f64) -> String {
    middle.map_or("–".into(), |middle| plain(middle.median * scale))
}

/// Whole small numbers without a point, others with three digits.
fn plain(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e6 {
        true => format!("{value}"),
        false => significant(value),
    }
}

fn comparison_title(comparison: &Comparison) -> String {
    let differs = match comparison.differs {
        true => "the shape changes",
        false => "the same shape",
    };
    format!("the URL against {}: {differs}", way(comparison.with))
}

/// By how much times differ, in s: the URL's less the other side's.
fn changes(comparison: &Comparison) -> Grid {
    let header = ["asked", "first content s", "longest gap s", "end-to-end s"];
    let rows = comparison.changes.iter().map(|change| {
        vec![
            change.asked.to_string(),
            difference(change.first_content_s),
            difference(change.gap_max_s),
            difference(change.e2e_s),
        ]
    });
    Grid {
        header: header.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        bold: vec![1],
    }
}

fn difference(found: Option<Difference>) -> String {
    let signed = |value: f64| {
        format!(
            "{}{}",
            if value < 0.0 { "−" } else { "+" },
            significant(value.abs())
        )
    };
    match found {
        Some(Difference {
            median,
            ci95: Some([low, high]),
            ..
        }) => {
            format!("{} ({} to {})", signed(median), signed(low), signed(high))
        }
        Some(Difference { median, n, .. }) => format!("{} (n {n})", signed(median)),
        None => "–".into(),
    }
}
