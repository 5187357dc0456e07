//! Owns the pages of single requests, each with its evidence.

use std::cmp::Ordering;

use measure::rows::Row;
use serde::Serialize;

use super::cells::Scale;
use super::grid::{Grid, plain};
use super::{Style, csv as table, escape, indented, markdown as marked, text::Paper};

/// The schema's name and version.
pub const SCHEMA: &str = "denom.rows/1";

/// Which rows, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// So many with the lowest rates, lowest first.
    Slowest(usize),
    /// So many with the highest rates, highest first.
    Fastest(usize),
    /// All, as they are.
    All,
}

/// The rows asked for: by the rate used for each, then by duration. Those without a rate come last.
pub fn select(mut rows: Vec<Row>, order: Order) -> Vec<Row> {
    let n = match order {
        Order::All => return rows,
        Order::Slowest(n) | Order::Fastest(n) => n,
    };
    let fastest = matches!(order, Order::Fastest(_));
    rows.sort_by(|one, other| {
        let rate = |row: &Row| row.rate.as_ref().and_then(|rate| rate.value());
        let turned = |ordering: Ordering| {
            if fastest {
                ordering.reverse()
            } else {
                ordering
            }
        };
        present(rate(one), rate(other), |a, b| turned(a.total_cmp(&b)))
            .then_with(|| present(one.e2e_s, other.e2e_s, |a, b| turned(b.total_cmp(&a))))
    });
    rows.truncate(n);
    rows
}

fn present(one: Option<f64>, other: Option<f64>, by: impl Fn(f64, f64) -> Ordering) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => by(one, other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}

/// The rows as a text table, and what failed ones said.
pub fn text(rows: &[Row], style: Style) -> String {
    let mut paper = Paper::new(style);
    paper.table(&grid(rows));
    for (label, said) in said(rows) {
        paper.line(&label, &said);
    }
    paper.out
}

/// The rows as a Markdown table, and what failed ones said.
pub fn markdown(rows: &[Row]) -> String {
    let mut out = marked::table(&grid(rows));
    for (label, said) in said(rows) {
        out.push_str(&format!("- {label}{}\n", escape::markdown(&said)));
    }
    out
}

/// What needs more than a cell: a failure's text, and the formula that fails on a burst.
fn said(rows: &[Row]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for row in rows {
        let label = format!("request {}: ", row.id);
        if let Some(detail) = &row.detail {
            lines.push((label.clone(), escape::cut(detail)));
        }
        if let Some(why) = &row.usage_inconsistent {
            lines.push((label.clone(), escape::cut(why)));
        }
        if let Some(naive) = row.naive.as_ref().and_then(|naive| naive.value()) {
            let rate = measure::rate::significant(naive);
            let text = format!(
                "tokens ÷ (total time − time to first content) would print {rate} tok/s, over the delivery alone"
            );
            lines.push((label, text));
        }
    }
    lines
}

fn grid(rows: &[Row]) -> Grid {
    let ttft = Scale::of_times(rows.iter().filter_map(|row| row.ttft_s));
    let e2e = Scale::of_times(rows.iter().filter_map(|row| row.e2e_s));
    let content = Scale::of_times(rows.iter().filter_map(|row| row.content_s));
    let gap = Scale::of_times(rows.iter().filter_map(|row| row.gap_max_s));
    let time = |scale: Scale, value: Option<f64>| value.map_or("–".into(), |v| scale.number(v));
    Grid {
        header: [
            "id".to_owned(),
            "at".into(),
            "outcome".into(),
            "shape".into(),
            "rate".into(),
            format!("TTFT {}", ttft.unit()),
            format!("content {}", content.unit()),
            format!("max gap {}", gap.unit()),
            format!("e2e {}", e2e.unit()),
            "chunks / arrivals".into(),
            "tokens".into(),
        ]
        .to_vec(),
        rows: rows
            .iter()
            .map(|row| {
                vec![
                    row.id.to_string(),
                    plain(row.target),
                    outcome(row),
                    shape(row),
                    rate(row),
                    time(ttft, row.ttft_s),
                    time(content, row.content_s),
                    time(gap, row.gap_max_s),
                    time(e2e, row.e2e_s),
                    format!("{} / {}", row.chunks, row.arrivals),
                    row.output_tokens.map_or("–".into(), |n| n.to_string()),
                ]
            })
            .collect(),
        bold: Vec::new(),
    }
}

fn outcome(row: &Row) -> String {
    match row.warmup {
        true => format!("{} (warm-up)", row.outcome),
        false => row.outcome.into(),
    }
}

/// The shape with the guards that failed; an answer that was only short is not called buffered.
fn shape(row: &Row) -> String {
    match (row.shape, row.reasons.as_slice()) {
        (None, _) => "–".into(),
        (Some(_), ["short"]) => {
            let length = row.content_s.unwrap_or_default();
            format!(
                "too short to tell ({} s)",
                measure::rate::significant(length)
            )
        }
        (Some(shape), []) => shape.into(),
        (Some(shape), reasons) => format!("{shape}: {}", reasons.join(", ")),
    }
}

fn rate(row: &Row) -> String {
    let value = row
        .rate
        .as_ref()
        .and_then(|rate| Some((rate.value()?, rate.unit())));
    let kind = if row.rate_used == Some("e2e_rate") {
        " e2e"
    } else {
        ""
    };
    value.map_or("–".into(), |(value, unit)| {
        format!("{} {unit}{kind}", measure::rate::significant(value))
    })
}

/// The rows as CSV with a header.
pub fn csv(rows: &[Row]) -> String {
    let header = [
        "id",
        "level",
        "target",
        "stream",
        "warmup",
        "outcome",
        "detail",
        "status",
        "shape",
        "reasons",
        "flags",
        "planned_s",
        "sent_s",
        "e2e_s",
        "ttft_s",
        "content_s",
        "gap_max_s",
        "chunks",
        "arrivals",
        "output_tokens",
        "billed_tokens",
        "input_tokens",
        "finish",
        "rate_used",
        "rate_unit",
        "rate_per_s",
        "e2e_rate_per_s",
        "declared_rate_per_s",
        "lag_low_s",
        "lag_high_s",
    ];
    let rows = rows.iter().map(csv_row);
    table::written(header.map(str::to_owned).to_vec(), rows)
}

fn csv_row(row: &Row) -> Vec<String> {
    let whole = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
    let rate = |figure: &Option<measure::figure::Figure>| {
        table::number(figure.as_ref().and_then(|f| f.value()))
    };
    vec![
        row.id.to_string(),
        row.level.to_string(),
        plain(row.target),
        row.stream.to_string(),
        row.warmup.to_string(),
        row.outcome.into(),
        escape::csv(row.detail.as_deref().unwrap_or_default()),
        whole(row.status.map(u64::from)),
        row.shape.unwrap_or_default().into(),
        row.reasons.join(" "),
        row.flags.join(" "),
        table::number(row.planned_s),
        table::number(row.sent_s),
        table::number(row.e2e_s),
        table::number(row.ttft_s),
        table::number(row.content_s),
        table::number(row.gap_max_s),
        row.chunks.to_string(),
        row.arrivals.to_string(),
        whole(row.output_tokens),
        whole(row.billed_tokens),
        whole(row.input_tokens),
        row.finish.unwrap_or_default().into(),
        row.rate_used.unwrap_or_default().into(),
        row.rate
            .as_ref()
            .map(|rate| rate.unit().to_owned())
            .unwrap_or_default(),
        rate(&row.rate),
        rate(&row.e2e_rate),
        rate(&row.declared_rate),
        table::number(row.lag_low_s),
        table::number(row.lag_high_s),
    ]
}

/// The rows as one JSON object.
pub fn json(rows: &[Row]) -> String {
    #[derive(Serialize)]
    struct Rows<'a> {
        schema: &'static str,
        rows: &'a [Row],
    }
    indented(&Rows {
        schema: SCHEMA,
        rows,
    })
}
