//! Owns console summaries: blocks of `label: number` lines under a title.

use super::fields::believed;

mod bare;

pub use bare::bare;

/// The most blocks that one text may hold.
const MOST_BLOCKS: usize = 1_000;
/// The longest label that is taken for one.
const LONGEST_LABEL: usize = 80;

/// One summary: its lines' labels and numbers, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Block {
    /// The nearest line with text before the title.
    pub before: Option<String>,
    /// Labels with their numbers.
    pub numbers: Vec<(String, f64)>,
    /// Labels whose value is no number.
    pub words: Vec<(String, String)>,
}

impl Block {
    /// The number behind a label.
    pub fn number(&self, label: &str) -> Option<f64> {
        self.numbers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(label))
            .map(|(_, value)| *value)
    }

    /// The words behind a label.
    pub fn word(&self, label: &str) -> Option<&str> {
        self.words
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(label))
            .map(|(_, words)| words.as_str())
    }

    /// Takes a line in, where it is a label with a value.
    pub fn take(&mut self, line: &str) {
        let Some((label, value)) = line.rsplit_once(':') else {
            return;
        };
        let (label, value) = (label.trim(), value.trim());
        if label.is_empty() || label.len() > LONGEST_LABEL {
            return;
        }
        match value.parse::<f64>().ok().and_then(believed) {
            Some(number) => self.numbers.push((label.to_owned(), number)),
            None if !value.is_empty() => self.words.push((label.to_owned(), value.to_owned())),
            None => {}
        }
    }
}

/// The summaries of a text: each starts at a line with `title` and ends at a line of `=` alone.
pub fn blocks(text: &str, title: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut open, mut before) = (false, None);
    for line in text.lines() {
        let line = line.trim();
        if line.contains(title) {
            if found.len() == MOST_BLOCKS {
                break;
            }
            let before = before.take();
            found.push(Block {
                before,
                ..Block::default()
            });
            open = true;
            continue;
        }
        let rule = !line.is_empty() && line.chars().all(|c| c == '=');
        match found.last_mut().filter(|_| open) {
            Some(_) if rule => open = false,
            Some(block) => block.take(line),
            None if !line.is_empty() && line.len() < LONGEST_LABEL => {
                before = Some(line.trim_start_matches(['#', ' ']).to_owned());
            }
            None => {}
        }
    }
    found
}
