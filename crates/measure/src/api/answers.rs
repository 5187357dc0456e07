//! Owns the watch over the several answers of one response: each that began must say how it ended.

use smallvec::SmallVec;

/// Most answers of one response that are told apart; further ones are read, but not watched for
/// their end.
const WATCHED: usize = 128;

/// Each answer seen, by its index, and whether its finish came.
#[derive(Debug, Default)]
pub(super) struct Answers(SmallVec<[(u64, bool); 1]>);

impl Answers {
    /// Takes an event of the answer at this index.
    pub fn watch(&mut self, index: u64, finished: bool) {
        if let Some((_, known)) = self.0.iter_mut().find(|(i, _)| *i == index) {
            *known |= finished;
        } else if self.0.len() < WATCHED {
            self.0.push((index, finished));
        }
    }

    /// Whether all that began have ended.
    pub fn are_finished(&self) -> bool {
        self.0.iter().all(|(_, finished)| *finished)
    }

    /// Whether there is more than one.
    pub fn are_several(&self) -> bool {
        self.0.len() > 1
    }
}
