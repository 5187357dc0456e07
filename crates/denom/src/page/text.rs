//! Owns the text page: tables and labelled lines, set to a width.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, presets};
use measure::report::Report;
use textwrap::Options;

use super::Style;
use super::cells::Reasons;
use super::escape::line;
use super::facts::{self, Fact};
use super::grid::{self, Grid};

/// The report as text, with a line feed at its end.
pub fn text(report: &Report, style: Style) -> String {
    let mut paper = Paper::new(style);
    let mut reasons = Reasons::default();
    paper.line("", &facts::title(report));
    for alarm in facts::alarms(report) {
        paper.loud(&alarm);
    }
    let levels = grid::levels(report, &mut reasons);
    let rest = grid::end_to_end(report, &mut reasons);
    let basis = facts::basis(report, &mut reasons);
    let conditions = facts::conditions(report, &mut reasons);
    if !levels.rows.is_empty() {
        paper.table(&levels);
    }
    for (index, reason) in reasons.texts().iter().enumerate() {
        paper.line(&format!("[{}] ", index + 1), reason);
    }
    paper.facts(&basis);
    if let Some(rest) = rest {
        paper.gap();
        paper.line(
            "",
            "end-to-end: only the whole of these requests was observed",
        );
        paper.table(&rest);
    }
    for said in facts::end_to_end(report) {
        paper.line("", &said);
    }
    paper.gap();
    paper.facts(&conditions);
    paper.facts(&facts::verdicts(report));
    paper.facts(facts::next(report).as_slice());
    paper.out
}

/// What a page is written on.
pub(super) struct Paper {
    pub(super) out: String,
    style: Style,
}

impl Paper {
    pub(super) fn new(style: Style) -> Self {
        Paper {
            out: String::new(),
            style,
        }
    }

    pub(super) fn gap(&mut self) {
        self.out.push('\n');
    }

    /// One paragraph behind its label, its further lines set in as far.
    pub(super) fn line(&mut self, label: &str, said: &str) {
        let deep = " ".repeat(label.chars().count().min(12));
        let options = Options::new(self.style.width.max(20))
            .initial_indent(label)
            .subsequent_indent(&deep);
        self.out.push_str(&textwrap::fill(&line(said), options));
        self.out.push('\n');
    }

    pub(super) fn loud(&mut self, said: &str) {
        let said = format!("!! {} !!", line(said));
        for part in textwrap::wrap(&said, self.style.width.max(20)) {
            let part = self.style.bold(&part);
            self.out.push_str(&part);
            self.out.push('\n');
        }
    }

    pub(super) fn facts(&mut self, facts: &[Fact]) {
        let mut last = "";
        for (label, said) in facts {
            let shown = if *label == last { "" } else { *label };
            let label_width = 11;
            if shown.chars().count() > label_width {
                self.line("", &format!("{shown}: {said}"));
            } else {
                self.line(&format!("{shown:<label_width$} "), said);
            }
            last = label;
        }
    }

    pub(super) fn table(&mut self, grid: &Grid) {
        let mut table = Table::new();
        table
            .load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(self.style.width).unwrap_or(u16::MAX))
            .set_header(&grid.header);
        for row in &grid.rows {
            let cell = |(index, text): (usize, &String)| match grid.bold.contains(&index) {
                true => self.style.bold(&line(text)),
                false => line(text),
            };
            table.add_row(row.iter().enumerate().map(cell));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 1));
            column.set_cell_alignment(CellAlignment::Left);
        }
        for row in table.lines() {
            self.out.push_str(row.trim_end());
            self.out.push('\n');
        }
    }
}
