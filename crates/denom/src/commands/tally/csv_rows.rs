//! Owns rows of comma-separated values, and what else stands between them.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use csv::{ByteRecord, ReaderBuilder};
use measure::tally::{Excluded, Row, Tally};

use super::{Columns, LONGEST_ROW};

/// The sign that stands most often in the header: a comma, a semicolon or a tab.
pub(super) fn delimiter(begun: &[u8]) -> u8 {
    let header = begun.split(|byte| *byte == b'\n').next().unwrap_or(begun);
    let count = |sign: u8| header.iter().filter(|byte| **byte == sign).count();
    // The last of equal ones wins, and a comma is the usual one.
    [b'\t', b';', b',']
        .into_iter()
        .max_by_key(|sign| count(*sign))
        .unwrap_or(b',')
}

/// Fails once more than a row's worth of bytes was read without a row: a quote that is never
/// closed would take in the whole file.
struct Limited<R> {
    inner: R,
    since_row: Rc<Cell<u64>>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since_row.get() > LONGEST_ROW {
            return Err(io::Error::other(format!(
                "a row is longer than {LONGEST_ROW} bytes: a quote may not be closed"
            )));
        }
        let read = self.inner.read(buffer)?;
        self.since_row.set(self.since_row.get() + read as u64);
        Ok(read)
    }
}

/// Where the columns are.
struct Places {
    start: usize,
    end: Option<usize>,
    duration: Option<usize>,
    worker: Option<usize>,
    units: Option<usize>,
    all: usize,
}

/// Feeds every row to the tally.
///
/// # Errors
/// Where a column is not there, or the file cannot be read further.
pub(super) fn feed(
    reader: impl Read,
    delimiter: u8,
    columns: &Columns,
    tally: &mut Tally,
) -> Result<(), String> {
    let since_row = Rc::new(Cell::new(0));
    let limited = Limited {
        inner: reader,
        since_row: since_row.clone(),
    };
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(limited);
    let headers = reader
        .byte_headers()
        .map_err(|error| error.to_string())?
        .clone();
    let places = places(&headers, columns)?;
    let mut record = ByteRecord::new();
    loop {
        since_row.set(0);
        match reader.read_byte_record(&mut record) {
            Ok(true) => one(&record, &places, tally),
            Ok(false) => return Ok(()),
            Err(error) => return Err(format!("reading it failed: {error}")),
        }
    }
}

fn places(headers: &ByteRecord, columns: &Columns) -> Result<Places, String> {
    let names: Vec<String> = headers
        .iter()
        .map(|name| String::from_utf8_lossy(name).trim().to_owned())
        .collect();
    let place = |column: &str| {
        names.iter().position(|name| name == column).ok_or_else(|| {
            let listed: Vec<&str> = names.iter().take(40).map(String::as_str).collect();
            format!(
                "it has no column {column:?}; its header names: {}",
                listed.join(", ")
            )
        })
    };
    let maybe = |column: &Option<String>| column.as_deref().map(place).transpose();
    Ok(Places {
        start: place(&columns.start)?,
        end: maybe(&columns.end)?,
        duration: maybe(&columns.duration)?,
        worker: maybe(&columns.worker)?,
        units: maybe(&columns.units)?,
        all: names.len(),
    })
}

fn one(record: &ByteRecord, places: &Places, tally: &mut Tally) {
    let text = |place: usize| {
        record
            .get(place)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
    };
    let of = |place: Option<usize>| place.and_then(text);
    let used = [
        Some(places.start),
        places.end,
        places.duration,
        places.worker,
        places.units,
    ];
    let readable = used
        .into_iter()
        .flatten()
        .all(|place| text(place).is_some());
    if record.len() != places.all || !readable {
        tally.exclude(Excluded::Malformed);
        return;
    }
    tally.add(&Row {
        start: text(places.start),
        end: of(places.end),
        duration: of(places.duration),
        worker: of(places.worker),
        units: of(places.units),
    });
}
