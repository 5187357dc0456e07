//! Owns the escaping of text from strangers: what a terminal, Markdown or a spreadsheet would obey.

use unicode_width::UnicodeWidthChar;

/// The most columns one stranger's string may take on a page.
pub const MOST_COLUMNS: usize = 200;
/// The most characters it may have: some take no column.
const MOST_CHARS: usize = 400;

/// The text with control and direction characters written out as `\u{..}`, cut at 200 columns.
pub fn terminal(text: &str) -> String {
    bounded(text, |c, out| {
        if is_obeyed(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    })
}

/// The text cut at 200 columns and not yet escaped, for a line that is escaped as a whole.
pub fn cut(text: &str) -> String {
    bounded(text, |c, out| out.push(c))
}

/// A whole line with control and direction characters written out; its parts are already cut.
pub fn line(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        if is_obeyed(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    })
}

/// A line as Markdown that no table, link, style or HTML can come of.
pub fn markdown(text: &str) -> String {
    line(text).chars().fold(String::new(), |mut out, c| {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
        out
    })
}

/// A string cell that no spreadsheet takes for a formula, cut at 200 columns.
pub fn csv(text: &str) -> String {
    let cut = cut(text);
    match cut.chars().next() {
        Some('=' | '+' | '-' | '@' | '\t' | '\r') => format!("'{cut}"),
        _ => cut,
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
