//! Owns the proofs that nothing of a stream was lost: the numbers that its events bear, and the
//! text that the server says it sent.

use super::text::Measured;

/// The numbers that events bear, one more each time; an event without one proves nothing.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Events so far, with a number or without.
    events: u64,
    /// The number that the next event must bear, once one bore a number.
    next: Option<u64>,
    /// A number was missing, or came again.
    pub gap: bool,
}

impl Numbers {
    /// Whether an event of this number has been here before. Where one is missing, that is kept:
    /// the first number is at most `first`, and one more for each event that bore none before it.
    pub fn is_repeat(&mut self, number: Option<u64>, first: u64) -> bool {
        let before = self.events;
        self.events += 1;
        let Some(number) = number else { return false };
        let expected = self.next.unwrap_or(number.min(first + before));
        self.gap |= number != expected;
        if number < expected {
            return true;
        }
        self.next = Some(number.saturating_add(1));
        false
    }
}

/// The answer's text as far as it arrived.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// Its characters.
    chars: u64,
    /// Halves of pairs came apart: they count differently from the whole.
    torn: bool,
}

impl Arrived {
    /// Takes a piece of it.
    pub fn add(&mut self, piece: Measured) {
        self.chars += u64::from(piece.chars);
        self.torn |= piece.repaired;
    }

    /// Whether none of it has arrived.
    pub fn is_empty(&self) -> bool {
        self.chars == 0
    }

    /// What of it is known to be lost, where the server states its characters, or where events are
    /// missing and it does not.
    pub fn lost(&self, stated: Option<u64>, gap: bool) -> Option<String> {
        let arrived = self.chars;
        match stated {
            Some(_) if self.torn => None,
            Some(stated) if stated != arrived => Some(format!(
                "the server says its answer has {stated} characters, and {arrived} arrived"
            )),
            None if gap => Some(
                "events are missing by their own numbers, and nothing says what they held".into(),
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(numbers: &[Option<u64>], first: u64) -> bool {
        let mut taken = Numbers::default();
        for number in numbers {
            taken.is_repeat(*number, first);
        }
        taken.gap
    }

    #[test]
    fn numbers_begin_where_they_may_and_go_up_by_one() {
        assert!(!gap(&[Some(0), Some(1), None, Some(2)], 0));
        assert!(gap(&[Some(1), Some(2)], 0) && !gap(&[Some(1), Some(2)], 1));
        assert!(gap(&[Some(2), Some(3)], 1));
        assert!(!gap(&[None, None, Some(2)], 0) && gap(&[None, None, Some(3)], 0));
        assert!(gap(&[Some(0), Some(2)], 0) && gap(&[Some(0), Some(0)], 0));
        assert!(!gap(&[None, None], 0));
    }
}
