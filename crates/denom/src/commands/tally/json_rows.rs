//! Owns rows of JSON lines.

use std::io::{BufRead, Read};

use measure::tally::{Excluded, Row, Tally};
use serde_json::Value;

use super::{Columns, LONGEST_ROW};

/// Feeds every line to the tally; empty ones are no rows.
///
/// # Errors
/// Where the file cannot be read further.
pub(super) fn feed(
    reader: &mut impl BufRead,
    columns: &Columns,
    tally: &mut Tally,
) -> Result<(), String> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader
            .by_ref()
            .take(LONGEST_ROW)
            .read_until(b'\n', &mut line)
            .map_err(|error| format!("reading it failed: {error}"))?;
        if read == 0 {
            return Ok(());
        }
        let ended = line.last() == Some(&b'\n');
        if !ended && read as u64 == LONGEST_ROW {
            tally.exclude(Excluded::TooLong);
            skip_line(reader)?;
            continue;
        }
        if !line.iter().all(u8::is_ascii_whitespace) {
            one(&line, columns, tally);
        }
    }
}

fn skip_line(reader: &mut impl BufRead) -> Result<(), String> {
    loop {
        let buffer = reader
            .fill_buf()
            .map_err(|error| format!("reading it failed: {error}"))?;
        let (used, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        reader.consume(used);
        if ended {
            return Ok(());
        }
    }
}

fn one(line: &[u8], columns: &Columns, tally: &mut Tally) {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let Ok(value @ Value::Object(_)) = serde_json::from_slice::<Value>(line) else {
        tally.exclude(Excluded::Malformed);
        return;
    };
    let of = |column: &Option<String>| column.as_deref().and_then(|path| member(&value, path));
    let (start, end) = (member(&value, &columns.start), of(&columns.end));
    let (duration, worker, units) = (
        of(&columns.duration),
        of(&columns.worker),
        of(&columns.units),
    );
    tally.add(&Row {
        start: start.as_deref(),
        end: end.as_deref(),
        duration: duration.as_deref(),
        worker: worker.as_deref(),
        units: units.as_deref(),
    });
}

/// A member by its name, else by a path of names with points between, as text.
fn member(value: &Value, path: &str) -> Option<String> {
    let found = value.get(path).or_else(|| {
        path.split('.')
            .try_fold(value, |value, name| value.get(name))
    })?;
    match found {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
