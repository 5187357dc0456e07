//! Owns what a test keeps of an item.

use measure::frames::Item;

/// An item that outlives the bytes it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Event {
        name: Vec<u8>,
        data: Vec<u8>,
        terminated: bool,
    },
    Comment,
    ErrorField(Vec<u8>),
    End,
    Stray(Vec<u8>),
}

impl Seen {
    /// What the standard knows of an item: loose JSON is nothing to it.
    pub fn of(item: Item<'_>) -> Option<Self> {
        Some(match item {
            Item::Event {
                name,
                data,
                terminated,
            } => Seen::Event {
                name: name.to_vec(),
                data: data.to_vec(),
                terminated,
            },
            Item::Comment => Seen::Comment,
            Item::ErrorField(value) => Seen::ErrorField(value.to_vec()),
            Item::Loose(_) => return None,
            Item::End => Seen::End,
            Item::Stray(bytes) => Seen::Stray(bytes.to_vec()),
        })
    }
}
