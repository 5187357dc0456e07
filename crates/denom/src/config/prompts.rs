//! Owns the files that shape requests: prompts by the line, and JSON merged into each body.

use std::io::{BufRead, BufReader};
use std::path::Path;

use measure::prompt::Given;
use serde_json::{Map, Value};

use crate::exit::Failure;

/// The longest line of a prompts file.
const LINE_LIMIT: usize = 16 << 20;
/// The most bytes of a body file.
const BODY_LIMIT: u64 = 16 << 20;
/// The most prompts of a file.
const PROMPTS_LIMIT: usize = 1_000_000;

/// Reads a prompts file: one JSON object a line with `prompt` or `messages`.
///
/// # Errors
/// With the number of the line that cannot be used.
pub fn read(file: &Path) -> Result<Vec<Given>, Failure> {
    let shown = file.display();
    let open = std::fs::File::open(file).map_err(|error| {
        Failure::usage(format!("the prompts file {shown} cannot be read: {error}"))
    })?;
    let mut prompts = Vec::new();
    for (index, line) in BufReader::new(open).lines().enumerate() {
        let number = index + 1;
        let wrong =
            |why: String| Failure::usage(format!("the prompts file {shown}, line {number}: {why}"));
        let line = line.map_err(|error| wrong(format!("cannot be read: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        if line.len() > LINE_LIMIT {
            return Err(wrong("longer than 16 MiB".into()));
        }
        prompts.push(prompt(&line).map_err(wrong)?);
        if prompts.len() > PROMPTS_LIMIT {
            return Err(wrong("more than 1,000,000 prompts: split the file".into()));
        }
    }
    if prompts.is_empty() {
        return Err(Failure::usage(format!(
            "the prompts file {shown} holds no prompt"
        )));
    }
    Ok(prompts)
}

fn prompt(line: &str) -> Result<Given, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
    match (value.get("prompt"), value.get("messages")) {
        (Some(_), Some(_)) => Err("both \"prompt\" and \"messages\": give one of them".into()),
        (Some(Value::String(text)), None) if !text.is_empty() => Ok(Given::Text(text.clone())),
        (Some(_), None) => Err("\"prompt\" must be a text that is not empty".into()),
        (None, Some(turns @ Value::Array(list))) if !list.is_empty() => {
            Ok(Given::Messages(turns.clone()))
        }
        (None, Some(_)) => Err("\"messages\" must be a list that is not empty".into()),
        (None, None) => Err("an object with \"prompt\" or \"messages\" is needed".into()),
    }
}

/// Reads the JSON object that is merged into each request's body.
///
/// # Errors
/// Where the file cannot be read or is no JSON object.
pub fn read_body(file: &Path) -> Result<Map<String, Value>, Failure> {
    let shown = file.display();
    let wrong = |why: String| Failure::usage(format!("the --body file {shown} {why}"));
    let length = std::fs::metadata(file)
        .map_err(|error| wrong(format!("cannot be read: {error}")))?
        .len();
    if length > BODY_LIMIT {
        return Err(wrong("is larger than 16 MiB".into()));
    }
    let text =
        std::fs::read_to_string(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(body)) => Ok(body),
        Ok(_) => Err(wrong("must hold one JSON object".into())),
        Err(error) => Err(wrong(format!("is no JSON: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_prompt_or_turns() {
        assert_eq!(prompt(r#"{"prompt":"a"}"#), Ok(Given::Text("a".into())));
        assert!(matches!(
            prompt(r#"{"messages":[{"role":"user","content":"a"}]}"#),
            Ok(Given::Messages(_))
        ));
        for wrong in [
            "a",
            "{}",
            r#"{"prompt":""}"#,
            r#"{"prompt":1}"#,
            r#"{"messages":[]}"#,
            r#"{"prompt":"a","messages":[]}"#,
        ] {
            assert!(prompt(wrong).is_err(), "{wrong}");
        }
    }
}
