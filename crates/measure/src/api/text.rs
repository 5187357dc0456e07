//! Owns text inside JSON: how many characters a raw string holds, without building it.

use memchr::{memchr_iter, memmem};
use serde_json::value::RawValue;

/// What a raw JSON value holds as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// Characters (Unicode scalar values) after unescaping.
    pub chars: u32,
    /// A surrogate stood alone: counted as one character.
    pub repaired: bool,
}

impl Measured {
    fn add(&mut self, other: Measured) {
        self.chars = self.chars.saturating_add(other.chars);
        self.repaired |= other.repaired;
    }
}

/// What a content field holds: text of the answer, and of the reasoning that some servers put
/// into the same list of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Split {
    /// Answer text.
    pub answer: Measured,
    /// Reasoning text.
    pub reasoning: Measured,
}

/// Deepest lists of parts inside parts that are read: Mistral's thinking lies in the second.
const PARTS_INSIDE: u32 = 8;

/// Measures a value that may be null, a string, or a list of parts with text inside, and
/// appends the text to `kept` where it is to be kept.
pub fn split(raw: Option<&RawValue>, kept: &mut Option<&mut String>) -> Split {
    let mut found = Split::default();
    match raw.map(RawValue::get) {
        Some(list) if list.starts_with('[') => measure_parts(list, kept, &mut found, PARTS_INSIDE),
        _ => found.answer = measure(raw, kept),
    }
    found
}

/// As [`split`], with all of it together.
pub fn measure(raw: Option<&RawValue>, kept: &mut Option<&mut String>) -> Measured {
    measure_inside(raw, kept, PARTS_INSIDE)
}

/// As [`measure`], with lists inside each other to this depth: a list that is deeper has no text,
/// and cannot exhaust the stack.
fn measure_inside(raw: Option<&RawValue>, kept: &mut Option<&mut String>, deeper: u32) -> Measured {
    let Some(raw) = raw.map(RawValue::get) else {
        return Measured::default();
    };
    match raw.as_bytes().first() {
        Some(b'"') => {
            if let Some(kept) = kept {
                unescape(raw, kept);
            }
            measure_string(raw)
        }
        Some(b'[') => {
            let mut found = Split::default();
            measure_parts(raw, kept, &mut found, deeper);
            found.answer.add(found.reasoning);
            found.answer
        }
        _ => Measured::default(),
    }
}

/// One part of a list: its text lies under the name of its kind.
#[derive(serde::Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
}

/// Lists of parts are rare: this path may build a list.
fn measure_parts(raw: &str, kept: &mut Option<&mut String>, found: &mut Split, deeper: u32) {
    let Some(deeper) = deeper.checked_sub(1) else {
        return;
    };
    let parts: Vec<Part<'_>> = serde_json::from_str(raw).unwrap_or_default();
    for part in &parts {
        found
            .reasoning
            .add(measure_inside(part.thinking, kept, deeper));
        for field in [part.text, part.content] {
            found.answer.add(measure_inside(field, kept, deeper));
        }
    }
}

/// The text of a raw string; empty for anything else.
pub fn string(raw: &RawValue) -> String {
    let mut text = String::new();
    if raw.get().starts_with('"') {
        unescape(raw.get(), &mut text);
    }
    text
}

/// A JSON text as a value, surrogates that stand alone mended; `None` where it is no JSON.
pub fn value(raw: &str) -> Option<serde_json::Value> {
    serde_json::from_str(raw)
        .or_else(|_| serde_json::from_str(&mend(raw)))
        .ok()
}

/// Whether JSON may hold this word in a key or a value. No means no: a letter, a digit, a dot or a
/// line below that is written as an escape, as no encoder writes it, may stand for any of the word.
pub(crate) fn may_hold(json: &str, word: &str) -> bool {
    memmem::find(json.as_bytes(), word.as_bytes()).is_some() || hides_letters(json.as_bytes())
}

/// Whether an escape stands for a character that words are made of.
fn hides_letters(json: &[u8]) -> bool {
    let is_of_words = |place: usize| {
        let unit = unit(&json[place..]).and_then(|unit| u8::try_from(unit).ok());
        unit.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'))
    };
    memchr_iter(b'\\', json).any(is_of_words)
}

/// An event's JSON written anew, where the parser of fields refuses what is JSON all the same: of
/// a key that stands twice the last counts, and surrogates alone are mended. Whether any were.
pub(super) fn anew(data: &str) -> Option<(String, bool)> {
    match serde_json::from_str::<serde_json::Value>(data) {
        Ok(value) => Some((value.to_string(), false)),
        Err(_) => Some((value(data)?.to_string(), true)),
    }
}

/// Measures a raw string, quotes included. The JSON parser has already checked its syntax.
fn measure_string(raw: &str) -> Measured {
    let inner = &raw.as_bytes()[1..raw.len() - 1];
    if !inner.contains(&b'\\') {
        return Measured {
            chars: characters(inner),
            repaired: false,
        };
    }
    let mut found = Measured::default();
    let mut rest = inner;
    while let Some(place) = rest.iter().position(|b| *b == b'\\') {
        found.chars += characters(&rest[..place]);
        let (taken, repaired) = escape_length(&rest[place..]);
        found.add(Measured { chars: 1, repaired });
        rest = &rest[(place + taken).min(rest.len())..];
    }
    found.chars += characters(rest);
    found
}

fn characters(bytes: &[u8]) -> u32 {
    // A continuation byte of UTF-8 starts with the bits 10.
    let count = bytes.iter().filter(|b| (**b as i8) >= -0x40).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The length of the escape at the start of `bytes`, and whether it is a surrogate alone.
fn escape_length(bytes: &[u8]) -> (usize, bool) {
    match unit(bytes) {
        None => (2, false),
        Some(0xD800..=0xDBFF) => match bytes.get(6..).and_then(unit) {
            Some(0xDC00..=0xDFFF) => (12, false),
            _ => (6, true),
        },
        Some(0xDC00..=0xDFFF) => (6, true),
        Some(_) => (6, false),
    }
}

/// The code unit of a `\uXXXX` at the start of `bytes`.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Appends the text of a raw string; a surrogate alone becomes U+FFFD.
fn unescape(raw: &str, kept: &mut String) {
    if let Ok(text) = serde_json::from_str::<String>(raw) {
        kept.push_str(&text);
        return;
    }
    let mended = mend(raw);
    kept.push_str(&serde_json::from_str::<String>(&mended).unwrap_or(mended));
}

/// JSON with each escape that is a surrogate alone replaced.
fn mend(raw: &str) -> String {
    let mut mended = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(place) = rest.find('\\') {
        let (taken, alone) = escape_length(&rest.as_bytes()[place..]);
        mended.push_str(&rest[..place]);
        let end = (place + taken).min(rest.len());
        match rest.get(place..end) {
            Some(escape) if !alone => mended.push_str(escape),
            _ => mended.push('\u{FFFD}'),
        }
        rest = rest.get(end..).unwrap_or_default();
    }
    mended.push_str(rest);
    mended
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> (u32, bool, String) {
        let raw: &RawValue = serde_json::from_str(json).expect("legal JSON");
        let mut text = String::new();
        let found = measure(Some(raw), &mut Some(&mut text));
        (found.chars, found.repaired, text)
    }

    #[test]
    fn characters_are_counted_after_unescaping() {
        assert_eq!(of(r#""""#), (0, false, String::new()));
        assert_eq!(of(r#""Grüße""#), (5, false, "Grüße".into()));
        assert_eq!(of(r#""a\n\"\\b\u00e9""#), (6, false, "a\n\"\\bé".into()));
        assert_eq!(of(r#""\ud83d\ude00!""#), (2, false, "😀!".into()));
    }

    #[test]
    fn a_lone_surrogate_costs_one_character_and_is_noted() {
        assert_eq!(of(r#""a\ud83d""#), (2, true, "a\u{FFFD}".into()));
        assert_eq!(of(r#""\ude00b""#), (2, true, "\u{FFFD}b".into()));
        assert_eq!(of(r#""\ud83d\n""#), (2, true, "\u{FFFD}\n".into()));
        assert_eq!(of(r#""\ud83dx\u0041""#), (3, true, "\u{FFFD}xA".into()));
    }

    #[test]
    fn a_word_may_be_held_as_written_or_behind_escapes_of_its_letters() {
        for held in [
            r#"{"error":1}"#,
            r#"{"\u0065rror":1}"#,
            r#"{"\u0065\u0072r\u006Fr":1}"#,
        ] {
            assert!(may_hold(held, "error"), "{held}");
        }
        assert!(may_hold(
            r#"{"type":"response\u002efailed"}"#,
            "response.failed"
        ));
        for plain in [
            r#"{"a":"\n\"\\\u00e9\u003c\u0026\ud83d\ude00"}"#,
            r#"{"a":"\u00"}"#,
            "\\",
        ] {
            assert!(!may_hold(plain, "error"), "{plain}");
        }
    }

    #[test]
    fn null_is_no_text_and_parts_are_read_inside() {
        assert_eq!(of("null"), (0, false, String::new()));
        let parts = r#"[{"type":"thinking","thinking":[{"type":"text","text":"We"}]},{"type":"text","text":"Hi"}]"#;
        assert_eq!(of(parts), (4, false, "WeHi".into()));
        let raw: &RawValue = serde_json::from_str(parts).expect("legal JSON");
        let found = split(Some(raw), &mut None);
        assert_eq!((found.answer.chars, found.reasoning.chars), (2, 2));
    }
}
