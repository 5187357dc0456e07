//! Owns the reading of token counts as servers write them, and OpenAI's block of them.

use serde_json::Value;
use serde_json::value::RawValue;

use super::text;
use crate::trace::Usage;

/// The largest count that a float holds exactly.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// Reads counts out of one block, and remembers whether one of them was no count.
pub(super) struct Counts<'a> {
    block: &'a Value,
    /// One was negative, fractional, too large or no number.
    pub bad: bool,
}

impl<'a> Counts<'a> {
    /// For the counts in `block`.
    pub fn of(block: &'a Value) -> Self {
        Counts { block, bad: false }
    }

    /// The count at a JSON pointer; `None` where it is absent, null or no count.
    pub fn at(&mut self, pointer: &str) -> Option<u64> {
        match self.block.pointer(pointer)? {
            Value::Null => None,
            Value::Number(number) => {
                let whole = number
                    .as_f64()
                    .filter(|v| v.fract() == 0.0 && (0.0..=LARGEST).contains(v));
                let found = number.as_u64().or(whole.map(|v| v as u64));
                self.bad |= found.is_none();
                found
            }
            _ => {
                self.bad = true;
                None
            }
        }
    }
}

/// Counts in a block that cannot be read, though it is there.
pub(super) const UNREADABLE: Usage = Usage {
    input: None,
    output: None,
    total: None,
    reasoning: None,
    cached: None,
    rejected: None,
    bad: true,
};

/// OpenAI's `usage`, in its chat or its Responses names.
pub(super) fn openai(raw: &RawValue) -> Option<Usage> {
    let Some(given) = text::value(raw.get()) else {
        return Some(UNREADABLE);
    };
    given.as_object()?;
    let mut counts = Counts::of(&given);
    let usage = Usage {
        input: counts.at("/prompt_tokens").or(counts.at("/input_tokens")),
        output: counts
            .at("/completion_tokens")
            .or(counts.at("/output_tokens")),
        total: counts.at("/total_tokens"),
        reasoning: counts
            .at("/completion_tokens_details/reasoning_tokens")
            .or(counts.at("/output_tokens_details/reasoning_tokens")),
        cached: counts
            .at("/prompt_tokens_details/cached_tokens")
            .or(counts.at("/input_tokens_details/cached_tokens"))
            .or(counts.at("/prompt_cache_hit_tokens")),
        rejected: counts
            .at("/completion_tokens_details/rejected_prediction_tokens")
            .or(counts.at("/output_tokens_details/rejected_prediction_tokens")),
        bad: false,
    };
    let bad = counts.bad;
    Some(Usage { bad, ..usage })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_taken_as_given_and_oddities_are_marked() {
        let read = |text: &str| {
            let raw: &RawValue = serde_json::from_str(text).expect("JSON");
            openai(raw).expect("an object")
        };
        let usage = read(
            r#"{"prompt_tokens":9,"completion_tokens":78.0,"total_tokens":87,"completion_tokens_details":{"reasoning_tokens":64},"prompt_tokens_details":{"cached_tokens":3}}"#,
        );
        assert_eq!(
            (usage.output, usage.reasoning, usage.cached, usage.bad),
            (Some(78), Some(64), Some(3), false)
        );
        let usage = read(
            r#"{"input_tokens":9,"output_tokens":5,"total_tokens":14,"output_tokens_details":{"reasoning_tokens":2}}"#,
        );
        assert_eq!(
            (usage.input, usage.output, usage.reasoning),
            (Some(9), Some(5), Some(2))
        );
        for odd in ["-1", "1.5", "1e300", "\"7\""] {
            let usage = read(&format!("{{\"completion_tokens\":{odd}}}"));
            assert_eq!((usage.output, usage.bad), (None, true), "{odd}");
        }
        assert!(!read(r#"{"completion_tokens":null}"#).bad);
    }

    #[test]
    fn a_block_with_a_surrogate_alone_is_read_and_one_beyond_numbers_is_bad() {
        let read = |text: &str| {
            let raw: &RawValue = serde_json::from_str(text).expect("JSON");
            openai(raw).expect("an object")
        };
        let usage = read(r#"{"completion_tokens":7,"note":"\ud83d"}"#);
        assert_eq!((usage.output, usage.bad), (Some(7), false));
        assert!(read(r#"{"completion_tokens":1e400}"#).bad);
    }
}
