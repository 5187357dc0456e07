//! Owns what a test keeps of an item.

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
