//! Owns the escaping of text from strangers.

/// The text with control characters shown, not sent.
pub fn terminal(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
/// A block of lines.
pub fn block(text: &str) -> String {
    text.lines().map(terminal).collect::<Vec<_>>().join("\n")
}
