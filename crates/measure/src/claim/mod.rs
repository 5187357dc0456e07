//! Owns the claim: a number someone states, what was said with it, what was not, and both readings.

mod ask;
mod attach;
mod binding;
mod entity;
mod find;
mod interval;
pub mod judge;
mod lex;
mod load;
mod machines;
mod notes;
mod numerals;
mod quantity;
mod read;
mod scope;
mod unit;
mod wait;
mod words;

use serde::{Serialize, Serializer};

use crate::stated::{Reading, Scope, Span};

pub use entity::{Class, Entity, Time};
pub use quantity::Bound;
pub use read::{Given, Wrong, of_parts, read};

/// The schema's name and version.
pub const SCHEMA: &str = "denom.claim/1";

/// Bytes of text that are read; a claim is a sentence or a few.
pub const LONGEST: usize = 16 * 1024;

/// What a number of tokens counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Output only.
    Output,
    /// Input only.
    Input,
    /// Input and output.
    Total,
}

/// Which of several measurements the number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The most that was reached.
    Peak,
    /// An average.
    Mean,
    /// The middle.
    Median,
    /// Said to be held for some time.
    Sustained,
    /// The least.
    Slowest,
    /// A far quantile.
    Tail,
}

/// What a claim says of one number. What was not said is none, in JSON null.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Fields {
    /// The number; the lower end of a range.
    pub value: Option<f64>,
    /// The upper end of a range.
    pub value_to: Option<f64>,
    /// Point, limit or range.
    pub bound: Option<Bound>,
    /// The unit in its usual spelling, other denominators than time left to `per`.
    pub unit: Option<String>,
    /// The unit as the author wrote it.
    pub unit_text: Option<String>,
    /// The number for one second, where its unit has a base of time.
    pub per_second: Option<f64>,
    /// `output`, `input`, `total`, or what else is counted.
    pub counted: Option<String>,
    /// The denominator other than time: `user`, `GPU`, `node`, `MW`, …
    #[serde(serialize_with = "entity_name")]
    pub per: Option<Entity>,
    /// What it is summed over, by explicit words only.
    pub scope: Option<Scope>,
    /// How many at once, where that is one number.
    pub concurrency: Option<f64>,
    /// How many at once, where that is a range; its upper end is null where it is open.
    pub concurrency_range: Option<Span>,
    /// How many at once on average, by Little's law, where a rate of requests and their mean
    /// latency were stated and no concurrency was.
    pub held_concurrency: Option<f64>,
    /// How many machines.
    pub devices: Option<f64>,
    /// What machines.
    pub device: Option<&'static str>,
    /// What it was taken over, in the author's words.
    pub interval: Option<String>,
    /// That, in seconds, where it is a length of time.
    pub interval_s: Option<f64>,
    /// The unit's base of time.
    #[serde(serialize_with = "time_name")]
    pub time_base: Option<Time>,
    /// Peak, mean, …
    pub statistic: Option<Statistic>,
    /// Whether the wait for the first token is in the time.
    pub ttft_included: Option<bool>,
    /// Words that soften the number or its unit.
    pub softeners: Vec<&'static str>,
}

fn entity_name<S: Serializer>(entity: &Option<Entity>, out: S) -> Result<S::Ok, S::Error> {
    entity.map(|entity| entity.name).serialize(out)
}

fn time_name<S: Serializer>(time: &Option<Time>, out: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.name).serialize(out)
}

/// What was not said, and what to ask the author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The field's name.
    pub field: &'static str,
    /// The question to send.
    pub question: String,
}

/// Something a reader of the claim should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A short name that scripts may test for.
    pub code: &'static str,
    /// One sentence or two.
    pub text: String,
}

/// Whether the author stated the scope that a reading takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The author's words say so.
    Stated,
    /// The author's words do not tell.
    Open,
    /// The author's words say the other.
    NotStated,
}

/// A reading with its standing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimReading {
    /// The two figures.
    #[serde(flatten)]
    pub reading: Reading,
    /// Whether the author stated this scope.
    pub standing: Standing,
}

/// A claim, read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The text that was read; null where the claim was given as flags.
    pub text: Option<String>,
    /// What was said of the claim's number.
    pub fields: Fields,
    /// Other numbers of the text, with what was said of each.
    pub also: Vec<Fields>,
    /// What was not said.
    pub missing: Vec<Missing>,
    /// What the number means as an aggregate, and as a per-stream rate; empty where it is no rate.
    pub readings: Vec<ClaimReading>,
    /// What to know when reading it.
    pub notes: Vec<Note>,
    /// What a run said of it; null where none was made.
    pub tested: Option<judge::Tested>,
}
