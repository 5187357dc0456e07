//! Owns the reading of an experiment from the lines of its record file.

use crate::record::{Footer, Line, Note};
use crate::trace::Trace;

/// What the lines hold of an experiment, by side: the levels of the file are its sides.
#[derive(Debug, Default)]
pub struct Records {
    sides: Vec<Vec<Trace>>,
    /// Notes, in order.
    pub notes: Vec<Note>,
    /// The last line of an experiment that was not killed.
    pub footer: Option<Footer>,
}

impl Records {
    /// Takes one line. `Err` says what is wrong with it.
    pub fn line(&mut self, text: &[u8]) -> Result<(), String> {
        match serde_json::from_slice(text).map_err(|error| error.to_string())? {
            Line::Ended(trace) => {
                let side = trace.level as usize;
                if side >= super::plan::MOST_SIDES {
                    return Err(format!("a request of side {side}: there are not so many"));
                }
                if self.sides.len() <= side {
                    self.sides.resize_with(side + 1, Vec::new);
                }
                self.sides[side].push(*trace);
            }
            Line::Note(note) => self.notes.push(note),
            Line::Footer(footer) => self.footer = Some(footer),
            Line::Header(_) | Line::Sent(_) | Line::Gap(_) | Line::Level(_) => {}
        }
        Ok(())
    }

    /// The requests of one side, in the order in which they were sent.
    pub fn take_side(&mut self, side: usize) -> Vec<Trace> {
        self.sides
            .get_mut(side)
            .map(std::mem::take)
            .unwrap_or_default()
    }
}
