//! Owns the reading of a record file, line by line, whether whole or cut short.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use measure::judge::Guards;
use measure::record::{Reader, Run};

use crate::exit::Failure;

/// The longest line that is read.
const LINE_LIMIT: u64 = 256 << 20;

/// Reads the run in `file`, judged by `guards` or by those the run was made with.
///
/// # Errors
/// With code 2 where the file cannot be read or is no record file.
pub fn read(file: &Path, guards: Option<Guards>) -> Result<Run, Failure> {
    let shown = file.display();
    let open = std::fs::File::open(file).map_err(|error| {
        Failure::usage(format!("the record file {shown} cannot be read: {error}"))
    })?;
    read_from(open, guards).map_err(|text| Failure::usage(format!("{shown}: {text}")))
}

/// Reads a run whose file took only `bytes`, and whose rest is in `tail`.
///
/// # Errors
/// As [`read`].
pub fn read_with_tail(file: Option<&Path>, bytes: u64, tail: &[u8]) -> Result<Run, Failure> {
    let failed =
        |text: String| Failure::usage(format!("the run's own records cannot be read: {text}"));
    match file {
        Some(file) => {
            let open = std::fs::File::open(file).map_err(|error| failed(error.to_string()))?;
            read_from(open.take(bytes).chain(tail), None).map_err(failed)
        }
        None => read_from(tail, None).map_err(failed),
    }
}

fn read_from(source: impl Read, guards: Option<Guards>) -> Result<Run, String> {
    let mut reader = Reader::new(guards);
    each_line(source, |text| {
        reader.line(text).map_err(|error| error.to_string())
    })?;
    reader.finish().map_err(|error| error.to_string())
}

/// Gives each line of a file that took only `bytes`, and of the rest in `tail`, to `take`.
///
/// # Errors
/// With code 2 where the file cannot be read, or `take` refuses a line.
pub fn lines(
    file: Option<&Path>,
    bytes: u64,
    tail: &[u8],
    take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), Failure> {
    let failed =
        |text: String| Failure::usage(format!("the run's own records cannot be read: {text}"));
    match file {
        Some(file) => {
            let open = std::fs::File::open(file).map_err(|error| failed(error.to_string()))?;
            each_line(open.take(bytes).chain(tail), take).map_err(failed)
        }
        None => each_line(tail, take).map_err(failed),
    }
}

fn each_line(
    source: impl Read,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let mut source = BufReader::with_capacity(256 << 10, source);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = source
            .by_ref()
            .take(LINE_LIMIT)
            .read_until(b'\n', &mut line);
        match read.map_err(|error| error.to_string())? {
            0 => return Ok(()),
            n if n as u64 == LINE_LIMIT => return Err("a line is longer than 256 MiB".into()),
            _ => {}
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        take(text)?;
    }
}
