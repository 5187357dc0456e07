//! Owns the Markdown page: the text page's tables and lines, escaped for Markdown.

use measure::report::Report;

use super::cells::Reasons;
use super::escape::markdown as escaped;
use super::facts;
use super::grid::{self, Grid};

/// The report as Markdown, with a line feed at its end.
pub fn markdown(report: &Report) -> String {
    let mut reasons = Reasons::default();
    let mut out = format!("## {}\n\n", escaped(&facts::title(report)));
    for alarm in facts::alarms(report) {
        out.push_str(&format!("**{}**\n\n", escaped(&alarm)));
    }
    let levels = grid::levels(report, &mut reasons);
    let rest = grid::end_to_end(report, &mut reasons);
    let basis = facts::basis(report, &mut reasons);
    let conditions = facts::conditions(report, &mut reasons);
    if !levels.rows.is_empty() {
        out.push_str(&table(&levels));
    }
    for (index, reason) in reasons.texts().iter().enumerate() {
        out.push_str(&format!("\\[{}\\] {}  \n", index + 1, escaped(reason)));
    }
    out.push('\n');
    list(&mut out, &basis);
    if let Some(rest) = rest {
        out.push_str("\n### end-to-end\n\n");
        out.push_str(&table(&rest));
    }
    for said in facts::end_to_end(report) {
        out.push_str(&format!("\n{}\n", escaped(&said)));
    }
    out.push('\n');
    list(&mut out, &conditions);
    list(&mut out, &facts::verdicts(report));
    list(&mut out, facts::next(report).as_slice());
    out
}

pub(super) fn list(out: &mut String, facts: &[facts::Fact]) {
    for (label, said) in facts {
        out.push_str(&format!("- {label}: {}\n", escaped(said)));
    }
}

/// A table; a blank line follows it.
pub(super) fn table(grid: &Grid) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = "| --- ".repeat(grid.header.len());
    let mut out = format!("{}{rule}|\n", row(&grid.header));
    for cells in &grid.rows {
        out.push_str(&row(cells));
    }
    out.push('\n');
    out
}
