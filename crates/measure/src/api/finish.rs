//! Owns the words for why a model stopped, over all APIs.

use crate::trace::Finish;

/// What a server's word for the end means.
pub(super) fn of(reason: &str) -> Finish {
    match reason {
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
    }
}
