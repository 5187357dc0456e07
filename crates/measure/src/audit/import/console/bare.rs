//! Owns the taking away of what a terminal, a logger or a quotation put around console text.

use crate::audit::import::{loadgen, sglang};

/// The most different prefixes that are known at once.
const MOST_PREFIXES: usize = 8;
/// The longest prefix, in bytes.
const LONGEST_PREFIX: usize = 200;
/// What a table's header row holds.
const TABLE: &str = "| test ";

/// The text without colours, overwritten progress bars, quote marks, and what a logger put before
/// each line of a summary.
pub fn bare(text: &str) -> String {
    let plain = without_escapes(text);
    let lines: Vec<&str> = plain
        .lines()
        .map(|line| unquoted(last_shown(line)))
        .collect();
    let mut prefixes: Vec<&str> = Vec::new();
    for prefix in lines.iter().filter_map(|line| prefix(line)) {
        if prefixes.len() < MOST_PREFIXES && !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    let mut out = String::with_capacity(plain.len());
    for line in lines {
        let rest = prefixes.iter().find_map(|prefix| after(line, prefix));
        out.push_str(rest.unwrap_or(line));
        out.push('\n');
    }
    out
}

/// What stands before a summary's title or a table, rules apart.
fn prefix(line: &str) -> Option<&str> {
    let titles = [sglang::TITLE, loadgen::TITLE];
    let title = titles.iter().find_map(|title| line.find(title));
    let at = title.or_else(|| line.find('|').filter(|_| line.contains(TABLE)))?;
    let prefix = line[..at].trim_end_matches(['=', ' ']);
    (!prefix.is_empty() && prefix.len() <= LONGEST_PREFIX).then_some(prefix)
}

/// The rest of a line that begins as `prefix` does; runs of digits may be other ones.
fn after<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let is_digit = |c: char| c.is_ascii_digit();
    let (mut rest, mut wanted) = (line, prefix);
    while let Some(c) = wanted.chars().next() {
        if is_digit(c) {
            rest.starts_with(is_digit).then_some(())?;
            rest = rest.trim_start_matches(is_digit);
            wanted = wanted.trim_start_matches(is_digit);
        } else {
            rest = rest.strip_prefix(c)?;
            wanted = &wanted[c.len_utf8()..];
        }
    }
    Some(rest)
}

/// What a line shows once carriage returns have overwritten what stood there.
fn last_shown(line: &str) -> &str {
    let mut parts = line.rsplit('\r');
    parts
        .find(|part| !part.trim().is_empty())
        .unwrap_or_default()
}

/// The line without the marks of a quotation.
fn unquoted(line: &str) -> &str {
    line.trim_start().trim_start_matches(['>', ' '])
}

/// The text without a terminal's control sequences: ESC `[` … letter.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, sequence)) = rest.split_once('\u{1b}') {
        out.push_str(before);
        rest = match sequence.strip_prefix('[') {
            Some(control) => control
                .trim_start_matches(|c: char| (' '..='?').contains(&c))
                .strip_prefix(|c: char| ('@'..='~').contains(&c))
                .unwrap_or(control),
            None => sequence,
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str =
        "rate: 2\n\n==== Serving Benchmark Result ====\nMean TTFT (ms): 1.5\n====\n";

    fn each(change: impl Fn(&str) -> String) -> String {
        SUMMARY.lines().map(|line| change(line) + "\n").collect()
    }

    #[test]
    fn colours_quotes_and_loggers_leave_the_same_lines() {
        let trimmed = |text: &str| -> Vec<String> {
            let text = bare(text);
            text.lines().map(|line| line.trim().to_owned()).collect()
        };
        let own = trimmed(SUMMARY);
        for changed in [
            each(|line| format!("\u{1b}[1;32m{line}\u{1b}[0m")),
            each(|line| format!("> {line}")),
            each(|line| format!("12:00:0{} INFO {line}", line.len() % 10)),
            each(|line| format!("(pid={}) | {line}", 7 + line.len())),
            SUMMARY.replace("Mean", " 10%|##  |\rMean"),
        ] {
            assert_eq!(trimmed(&changed), own, "{changed:?}");
        }
    }

    #[test]
    fn a_line_without_the_prefix_stays_as_it_is() {
        let mixed = "INFO == Serving Benchmark Result ==\nWARN Mean TTFT (ms): 1\n";
        assert!(bare(mixed).contains("WARN Mean"));
        assert_eq!(bare("\u{1b}[31"), "31\n");
    }
}
