//! Owns the progress on stderr: one line with live counts, or a line every 10 s without a terminal.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};
use measure::time::{Instant, Length};

use crate::clock::{Clock, RunClock};
use crate::drive::Shown;

/// How often a line is printed where stderr is no terminal.
const EVERY: Length = Length::from_secs(10);

/// Shows how a run goes.
pub enum Progress {
    /// Nothing.
    Quiet,
    /// One line that changes.
    Line(ProgressBar),
    /// A line now and then.
    Lines {
        /// The run's clock.
        clock: RunClock,
        /// When the last one was printed.
        last: Instant,
    },
}

impl Progress {
    /// As fits stderr.
    pub fn new(quiet: bool, clock: RunClock) -> Self {
        if quiet {
            return Progress::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Progress::Lines {
                clock,
                last: clock.now(),
            };
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        Progress::Line(bar)
    }

    /// Shows it.
    pub fn show(&mut self, shown: &Shown) {
        match self {
            Progress::Quiet => {}
            Progress::Line(bar) => {
                bar.set_message(text(shown));
                bar.tick();
            }
            Progress::Lines { clock, last } => {
                let now = clock.now();
                if now.since_or_zero(*last) >= EVERY {
                    *last = now;
                    // Progress that cannot be printed changes no number.
                    let _ = writeln!(std::io::stderr(), "{}", text(shown));
                }
            }
        }
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if let Progress::Line(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn text(shown: &Shown) -> String {
    let of = shown.of.map_or(String::new(), |of| format!(" of {of}"));
    let ending = if shown.ending {
        " · ending: Ctrl-C again stops at once"
    } else {
        ""
    };
    format!(
        "level {} of {} ({}) · {}{of} done · {} in flight · {} failed · {} chunks{ending}",
        shown.level,
        shown.levels,
        shown.target,
        shown.done,
        shown.in_flight,
        shown.failed,
        shown.chunks
    )
}
