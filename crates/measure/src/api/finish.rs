//! Owns the words for why a model stopped, over all APIs.

use crate::trace::Finish;

/// What a server's word for the end means; `None` for a word that says that there is no end yet,
/// as some write it on every chunk, or no block.
pub(super) fn of(reason: &str) -> Option<Finish> {
    let finish = match reason {
        "" | "null" | "None" | "FINISH_REASON_UNSPECIFIED" | "BLOCK_REASON_UNSPECIFIED" => {
            return None;
        }
        "stop" | "eos" | "eos_token" | "word" | "stop_sequence" | "end_turn" | "STOP" => {
            Finish::Stop
        }
        "tool_calls" | "function_call" | "tool_use" => Finish::Tool,
        "length"
        | "limit"
        | "max_tokens"
        | "MAX_TOKENS"
        | "max_output_tokens"
        | "CONTINUATION"
        | "model_context_window_exceeded" => Finish::Length,
        "content_filter" | "refusal" | "SAFETY" | "RECITATION" | "BLOCKLIST"
        | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" | "MODEL_ARMOR" => Finish::Filter,
        "error"
        | "abort"
        | "insufficient_system_resource"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "OTHER" => Finish::Error,
        other if other.starts_with("MALFORMED_") => Finish::Error,
        _ => Finish::Other,
    };
    Some(finish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_word_is_no_end() {
        for word in ["", "null", "None", "FINISH_REASON_UNSPECIFIED"] {
            assert_eq!(of(word), None, "{word:?}");
        }
        assert_eq!(of("stop"), Some(Finish::Stop));
        assert_eq!(of("anything else"), Some(Finish::Other));
    }
}
