//! Owns the reading of an experiment from the lines of its record file.

use super::head::Head;
use crate::record::{Footer, Line, Note};
use crate::trace::Trace;

/// What the lines hold of an experiment, by side: the levels of the file are its sides.
#[derive(Debug, Default)]
pub struct Records {
    sides: Vec<(Vec<Trace>, Vec<Head>)>,
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
                    return Err(format!("a request of side {side}: there are no so many"));
                }
                self.side(side).0.push(*trace);
            }
            Line::Head(head) => {
                let side = self.side_of(head.id).ok_or("a head without its request")?;
                self.side(side).1.push(*head);
            }
            Line::Note(note) => self.notes.push(note),
            Line::Footer(footer) => self.footer = Some(footer),
            Line::Header(_) | Line::Sent(_) | Line::Level(_) => {}
        }
        Ok(())
    }

    fn side(&mut self, side: usize) -> &mut (Vec<Trace>, Vec<Head>) {
        if self.sides.len() <= side {
            self.sides.resize_with(side + 1, Default::default);
        }
        &mut self.sides[side]
    }

    /// The side whose last request this head belongs to.
    fn side_of(&self, id: u64) -> Option<usize> {
        let last = |(traces, _): &(Vec<Trace>, Vec<Head>)| {
            traces.last().is_some_and(|trace| trace.id == id)
        };
        self.sides.iter().position(last)
    }

    /// The requests and heads of one side, in the order in which they were sent.
    pub fn take_side(&mut self, side: usize) -> (Vec<Trace>, Vec<Head>) {
        self.sides
            .get_mut(side)
            .map(std::mem::take)
            .unwrap_or_default()
    }
}
