//! Owns how much of a stream the parser is ready to hold, and what it says when that is not enough.

use std::error::Error;
use std::fmt;

/// How much of a stream the parser is ready to hold, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest line, without its line end.
    pub line: usize,
    /// The most data one event may bring: its data lines and the line feeds that join them.
    pub event: usize,
}

impl Default for Limits {
    /// 4 MiB for a line, 4 MiB for an event.
    fn default() -> Self {
        Limits {
            line: 4 << 20,
            event: 4 << 20,
        }
    }
}

/// What grew beyond its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// One line.
    Line,
    /// The data of one event.
    Event,
}

/// The stream asked for more memory than it is given; the parser cannot go on with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// What grew beyond its limit.
    pub part: Part,
    /// The limit, in bytes.
    pub limit: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            Part::Line => "a line",
            Part::Event => "the data of one event",
        };
        write!(
            f,
            "{part} of the event stream is longer than {} bytes: the response was left there, and \
             counts as failed. Look at what this URL answers (curl -N shows it): a token stream \
             has short lines, each event ended by a blank line",
            self.limit
        )
    }
}

impl Error for TooLong {}

pub(super) fn within(bytes: usize, part: Part, limit: usize) -> Result<(), TooLong> {
    match bytes <= limit {
        true => Ok(()),
        false => Err(TooLong { part, limit }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_was_too_long_and_what_to_do() {
        let text = TooLong {
            part: Part::Line,
            limit: 4096,
        }
        .to_string();
        assert!(
            text.contains("a line") && text.contains("4096 bytes"),
            "{text}"
        );
        assert!(text.contains("curl"), "{text}");
        let text = TooLong {
            part: Part::Event,
            limit: 1,
        }
        .to_string();
        assert!(text.contains("the data of one event"), "{text}");
    }
}
