//! Documents are part of the product: what they say is held against what the code does.

mod check;
mod edges;
mod export;
mod metrics;
mod open;
mod probe;
mod runs;
mod schema;
