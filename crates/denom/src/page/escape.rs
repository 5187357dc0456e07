//! Owns the escaping of text from strangers: what a terminal, Markdown or a spreadsheet would obey.

use unicode_width::UnicodeWidthChar;

/// The most columns one stranger's string may take on a page.
pub const MOST_COLUMNS: usize = 200;
/// The most characters it may have: some take no column.
const MOST_CHARS: usize = 400;

/// The text with control and direction characters written out as `\u{..}`, cut at 200 columns.
pub fn terminal(text: &str) -> String {
    bounded(text, show)
}

/// The text cut at 200 columns and not yet escaped, for a line that is escaped as a whole.
pub fn cut(text: &str) -> String {
    bounded(text, |c, out| out.push(c))
}

/// A whole line with control and direction characters written out; its parts are already cut.
pub fn line(text: &str) -> String {
    let mut out = String::new();
    text.chars().for_each(|c| show(c, &mut out));
    out
}

/// A block of lines, each with control and direction characters written out; only its line feeds
/// are sent.
pub fn block(text: &str) -> String {
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A line as Markdown that no table, link, style or HTML can come of.
pub fn markdown(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' => out.extend(['\\', c]),
            _ => show(c, &mut out),
        }
    }
    out
}

/// A string cell that no spreadsheet takes for a formula, cut at 200 columns.
pub fn csv(text: &str) -> String {
    let shown = terminal(text);
    match text.chars().next() {
        Some('=' | '+' | '-' | '@' | '\t' | '\r' | '\0' | '＝' | '＋' | '－' | '＠') => {
            format!("'{shown}")
        }
        _ => shown,
    }
}

/// A JSON text in which a terminal finds nothing to obey either: what JSON does not escape of
/// itself, DEL and what is beyond ASCII, is written as `\u….` too.
pub fn json(text: String) -> String {
    // Control characters of ASCII are escaped in JSON's strings: one outside is a line feed.
    let bare = |c: char| c != '\n' && is_obeyed(c);
    if !text.contains(bare) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match bare(c) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

fn show(c: char, out: &mut String) {
    match is_obeyed(c) {
        true => out.extend(c.escape_unicode()),
        false => out.push(c),
    }
}

/// C0, DEL, C1, line separators and whatever turns the direction of text.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn bounded(text: &str, add: impl Fn(char, &mut String)) -> String {
    let (mut out, mut columns) = (String::new(), 0);
    for (index, c) in text.chars().enumerate() {
        let mut piece = String::new();
        add(c, &mut piece);
        let wide: usize = piece.chars().map(|c| c.width().unwrap_or(1)).sum();
        if columns + wide >= MOST_COLUMNS || index >= MOST_CHARS {
            let is_last = columns + wide == MOST_COLUMNS && text.chars().nth(index + 1).is_none();
            out.push_str(if is_last { &piece } else { "…" });
            break;
        }
        out.push_str(&piece);
        columns += wide;
    }
    out
}
