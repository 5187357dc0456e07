//! Owns the reading of a stranger's file: JSON in its loose forms, or text, within limits.

use serde_json::Value;

/// The largest file that is read, in bytes.
pub const MOST_BYTES: usize = 64 << 20;
/// The most values one file may hold, concatenated or one a line.
pub const MOST_DOCUMENTS: usize = 200_000;
/// Letters that writers put where JSON has no number, longest first.
const NO_NUMBERS: [&str; 7] = ["Infinity", "infinity", "NaN", "nan", "Inf", "inf", "NAN"];

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Its JSON values: one, or many as JSONL, concatenated, or members of one list.
    pub documents: Vec<Value>,
    /// The whole file, where it is no JSON.
    pub text: Option<String>,
    /// `NaN` and `Infinity` where JSON has no such number; each was read as null.
    pub non_finite: u64,
    /// Why the rest of the file was not read.
    pub torn: Option<String>,
}

/// Why a file was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRead(pub String);

/// Reads a file's bytes. JSON may be concatenated, one value a line, and hold `NaN`.
///
/// # Errors
/// Where the file is too large, empty, no UTF-8, or starts as JSON and is none.
pub fn read(bytes: &[u8]) -> Result<Content, NotRead> {
    if bytes.len() > MOST_BYTES {
        let text = format!(
            "it has {} bytes; at most {MOST_BYTES} are read",
            bytes.len()
        );
        return Err(NotRead(text));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes)
        .map_err(|error| NotRead(format!("it is no UTF-8 text ({error})")))?;
    match text.trim_start().chars().next() {
        None => Err(NotRead("it is empty".into())),
        Some('{' | '[') => json(text).or_else(|refused| as_text(text, refused)),
        Some(_) => Ok(plain(text)),
    }
}

/// Text that only begins like JSON, such as a log line in brackets, is text.
fn as_text(text: &str, refused: NotRead) -> Result<Content, NotRead> {
    match text.trim_start().starts_with("{\"") {
        true => Err(refused),
        false if text.lines().count() > 1 && !text.contains("\":") => Ok(plain(text)),
        false => Err(refused),
    }
}

fn plain(text: &str) -> Content {
    Content {
        documents: Vec::new(),
        text: Some(text.to_owned()),
        non_finite: 0,
        torn: None,
    }
}

fn json(text: &str) -> Result<Content, NotRead> {
    let (clean, non_finite) = without_non_finite(text);
    let mut content = Content {
        documents: Vec::new(),
        text: None,
        non_finite,
        torn: None,
    };
    for value in serde_json::Deserializer::from_str(&clean).into_iter::<Value>() {
        match value {
            Ok(Value::Array(members)) => content.documents.extend(members),
            Ok(value) => content.documents.push(value),
            Err(error) if content.documents.is_empty() => {
                return Err(NotRead(format!("it starts as JSON and is none: {error}")));
            }
            Err(error) => {
                content.torn = Some(format!("the rest is no JSON: {error}"));
                break;
            }
        }
        if content.documents.len() > MOST_DOCUMENTS {
            content.documents.truncate(MOST_DOCUMENTS);
            content.torn = Some(format!("only the first {MOST_DOCUMENTS} values were read"));
            break;
        }
    }
    Ok(content)
}

/// The text with every bare `NaN`, `Infinity` and the like as `null`, and how many there were.
fn without_non_finite(text: &str) -> (String, u64) {
    let (mut out, mut found) = (String::with_capacity(text.len()), 0);
    let (mut inside, mut escaped, mut rest) = (false, false, text);
    while let Some(c) = rest.chars().next() {
        if !inside && let Some(length) = non_finite(rest) {
            out.push_str("null");
            found += 1;
            rest = &rest[length..];
            continue;
        }
        match (inside, escaped, c) {
            (true, true, _) => escaped = false,
            (true, false, '\\') => escaped = true,
            (_, false, '"') => inside = !inside,
            _ => {}
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    (out, found)
}

/// The length of the bare word at the start, sign included, if it stands for no number.
fn non_finite(rest: &str) -> Option<usize> {
    let word = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let name = NO_NUMBERS.iter().find(|name| word.starts_with(**name))?;
    let after = word[name.len()..].chars().next();
    let ends = after.is_none_or(|c| c.is_whitespace() || matches!(c, ',' | '}' | ']'));
    ends.then(|| rest.len() - word.len() + name.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn documents(text: &str) -> Vec<Value> {
        read(text.as_bytes()).expect("read").documents
    }

    #[test]
    fn lines_concatenation_and_lists_are_one_form() {
        let both = [json!({"a": 1}), json!({"a": 2})];
        for text in [
            "{\"a\":1}\n{\"a\":2}\n",
            "{\"a\":1}{\"a\":2}",
            "[{\"a\":1},{\"a\":2}]",
        ] {
            assert_eq!(documents(text), both, "{text}");
        }
    }

    #[test]
    fn no_numbers_become_null_and_are_counted_but_texts_stay() {
        let read =
            read(br#"{"a": NaN, "b": [-Infinity, inf], "c": "NaN, \"Infinity\"", "d":-nan}"#)
                .expect("read");
        assert_eq!(read.non_finite, 4);
        assert_eq!(
            read.documents[0],
            json!({"a": null, "b": [null, null], "c": "NaN, \"Infinity\"", "d": null})
        );
    }

    #[test]
    fn a_file_cut_short_keeps_what_was_whole_and_says_so() {
        let read = read(b"{\"a\":1}\n{\"a\":").expect("read");
        assert_eq!(read.documents.len(), 1);
        assert!(read.torn.is_some_and(|why| why.contains("no JSON")));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let why = |bytes: &[u8]| read(bytes).expect_err("refused").0;
        assert!(why(b"  \n").contains("empty"));
        assert!(why(b"\xff\xfe{}").contains("UTF-8"));
        assert!(why(b"{\"a\": }").contains("none"));
        let deep = "[".repeat(100_000);
        assert!(why(deep.as_bytes()).contains("recursion"));
        assert!(why(&vec![b' '; MOST_BYTES + 1]).contains("at most"));
    }
}
