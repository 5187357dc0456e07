//! Owns the copying of an item into what a test keeps of it.

use measure::frames::Item;

use super::Seen;

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
