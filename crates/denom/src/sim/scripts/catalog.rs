//! Owns what is known of every script beforehand: the fault it plays, the APIs that can say it, and
//! what a client must make of it.

use super::list;
use crate::sim::ask::Ask;
use crate::sim::dialect::Dialect;
use crate::sim::script::Script;

/// One script.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The model's name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// The row of the table of faults that it plays, if it plays one.
    pub row: Option<u8>,
    /// The APIs that can say it.
    pub dialects: &'static [Dialect],
    /// Whether it needs HTTP/2: over HTTP/1.1 it is a refusal by status 505, and all that stands
    /// below is of HTTP/2.
    pub http2: bool,
    /// The outcome a client must arrive at, by its name in records.
    pub outcome: &'static str,
    /// The shape of an `ok` response of 64 tokens, by its name in records.
    pub shape: Option<&'static str>,
    /// APIs in which it is `buffered` instead, since they say in one event what others stream.
    pub buffered_in: &'static [Dialect],
    /// Flags that the request must carry in every one of these APIs, by their names in records.
    /// Others may come with the API: `hidden_reasoning` where it only ever shows a summary.
    pub flags: &'static [&'static str],
    /// Tokens that arrive before the end, or before the fault.
    pub delivered: Delivered,
    /// Makes it.
    pub(super) make: fn(&Ask) -> Script,
}

/// How many of the tokens asked for arrive.
#[derive(Debug, Clone, Copy)]
pub enum Delivered {
    /// All of them.
    All,
    /// So many at most.
    AtMost(u64),
    /// So many at least, whatever was asked for.
    AtLeast(u64),
    /// A share, as text and by the number asked for.
    Share(&'static str, fn(u64) -> u64),
    /// None.
    Nothing,
    /// Tokens without end.
    Endless,
}

impl Delivered {
    /// Tokens that arrive when `asked` are asked for; `None` where there is no end to them.
    pub fn of(self, asked: u64) -> Option<u64> {
        match self {
            Delivered::All => Some(asked),
            Delivered::AtMost(most) => Some(asked.min(most)),
            Delivered::AtLeast(least) => Some(asked.max(least)),
            Delivered::Share(_, of) => Some(of(asked)),
            Delivered::Nothing => Some(0),
            Delivered::Endless => None,
        }
    }
}

impl Entry {
    /// A script that streams all that is asked for in every API, and plays no fault.
    pub(super) const fn new(
        name: &'static str,
        about: &'static str,
        make: fn(&Ask) -> Script,
    ) -> Self {
        Entry {
            name,
            about,
            row: None,
            dialects: Dialect::ALL,
            http2: false,
            outcome: "ok",
            shape: Some("streamed"),
            buffered_in: &[],
            flags: &[],
            delivered: Delivered::All,
            make,
        }
    }

    /// As a row of the table of faults.
    pub(super) const fn row(self, row: u8) -> Self {
        Entry {
            row: Some(row),
            ..self
        }
    }

    /// In these APIs only.
    pub(super) const fn only(self, dialects: &'static [Dialect]) -> Self {
        Entry { dialects, ..self }
    }

    /// Over HTTP/2 only.
    pub(super) const fn http2(self) -> Self {
        Entry {
            http2: true,
            ..self
        }
    }

    /// In another shape.
    pub(super) const fn shape(self, shape: &'static str) -> Self {
        Entry {
            shape: Some(shape),
            ..self
        }
    }

    /// As `buffered` in these APIs.
    pub(super) const fn buffered_in(self, buffered_in: &'static [Dialect]) -> Self {
        Entry {
            buffered_in,
            ..self
        }
    }

    /// With these flags.
    pub(super) const fn flags(self, flags: &'static [&'static str]) -> Self {
        Entry { flags, ..self }
    }

    /// A failure, after so many tokens.
    pub(super) const fn fails(self, outcome: &'static str, delivered: Delivered) -> Self {
        Entry {
            outcome,
            shape: None,
            delivered,
            ..self
        }
    }

    /// With so many tokens.
    pub(super) const fn brings(self, delivered: Delivered) -> Self {
        Entry { delivered, ..self }
    }
}

impl Entry {
    /// What it is for a client that asks over HTTP/1.1: itself, or a refusal if it needs HTTP/2.
    pub fn over_http1(&self) -> Self {
        match self.http2 {
            true => self.fails("http_error", Delivered::Nothing),
            false => *self,
        }
    }

    /// The shape that an `ok` response of 64 tokens has in an API.
    pub fn shape_in(&self, dialect: Dialect) -> Option<&'static str> {
        match self.buffered_in.contains(&dialect) {
            true => Some("buffered"),
            false => self.shape,
        }
    }
}

/// Every script, those without a fault first.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    list::PLAIN
        .iter()
        .chain(list::FAMILIES)
        .chain(list::FAULTS)
        .chain(list::FRAMES)
        .chain(list::TEXTS)
        .chain(list::REPLIES)
}

/// The catalog as a table, a line a script, columns separated by tabs.
pub fn table() -> String {
    let mut table = "name\tfault row\tapis\toutcome\tshape\tflags\ttokens\tabout\n".to_owned();
    for entry in entries() {
        let dialects: Vec<&str> = entry.dialects.iter().map(|d| d.name()).collect();
        let dialects = if entry.dialects == Dialect::ALL {
            "all".to_owned()
        } else {
            dialects.join(",")
        };
        let row = entry.row.map_or("-".to_owned(), |row| row.to_string());
        let tokens = match entry.delivered {
            Delivered::All => "all".to_owned(),
            Delivered::AtMost(most) => format!("<={most}"),
            Delivered::AtLeast(least) => format!(">={least}"),
            Delivered::Share(text, _) => text.to_owned(),
            Delivered::Nothing => "0".to_owned(),
            Delivered::Endless => "endless".to_owned(),
        };
        let flags = if entry.flags.is_empty() {
            "-".to_owned()
        } else {
            entry.flags.join(",")
        };
        let columns = [
            entry.name,
            &row,
            &dialects,
            entry.outcome,
            entry.shape.unwrap_or("-"),
            &flags,
            &tokens,
            entry.about,
        ];
        table += &columns.join("\t");
        table.push('\n');
    }
    table
}
