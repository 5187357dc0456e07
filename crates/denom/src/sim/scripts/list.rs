//! Owns the list of scripts: one entry each, with what a client must make of it.

use super::catalog::{Delivered, Entry};
use super::{
    broken, codings, families, faulty, frames, held, hostile, marks, paced, refused, spelled,
};
use crate::sim::dialect::Dialect;

use Dialect::{
    AnthropicMessages, GeminiArray, GeminiSse, OllamaChat, OllamaGenerate, OpenaiChat,
    OpenaiCompletions, OpenaiResponses, Tgi,
};

/// APIs that are server-sent events.
const SSE: &[Dialect] = &[
    OpenaiChat,
    OpenaiCompletions,
    OpenaiResponses,
    AnthropicMessages,
    GeminiSse,
    Tgi,
];
/// APIs whose event may bring more than one token.
const CHUNKY: &[Dialect] = &[
    OpenaiChat,
    OpenaiCompletions,
    OpenaiResponses,
    AnthropicMessages,
    GeminiSse,
    GeminiArray,
    OllamaChat,
    OllamaGenerate,
];
/// APIs that know reasoning.
const REASONING: &[Dialect] = &[
    OpenaiChat,
    OpenaiResponses,
    AnthropicMessages,
    GeminiSse,
    GeminiArray,
    OllamaChat,
    OllamaGenerate,
];
/// APIs that count reasoning apart from the answer.
const COUNTED: &[Dialect] = &[
    OpenaiChat,
    OpenaiResponses,
    AnthropicMessages,
    GeminiSse,
    GeminiArray,
];
/// APIs that can send a summary of reasoning as such.
const SUMMING: &[Dialect] = &[OpenaiResponses, AnthropicMessages, GeminiSse, GeminiArray];
/// APIs that can call a tool.
const CALLING: &[Dialect] = &[
    OpenaiChat,
    OpenaiResponses,
    AnthropicMessages,
    GeminiSse,
    GeminiArray,
    OllamaChat,
];
/// APIs that state prompt, output and their sum.
const SUMMED: &[Dialect] = &[
    OpenaiChat,
    OpenaiCompletions,
    OpenaiResponses,
    GeminiSse,
    GeminiArray,
];
/// APIs whose finish reason can be the content.
const FILTERED: &[Dialect] = &[
    OpenaiChat,
    OpenaiCompletions,
    OpenaiResponses,
    AnthropicMessages,
    GeminiSse,
    GeminiArray,
];
/// APIs with a sentinel behind the finish marker, without which an answer may still be whole.
const SENTINEL: &[Dialect] = &[OpenaiChat, OpenaiCompletions, AnthropicMessages];
/// OpenAI's APIs with `[DONE]`.
const DONE: &[Dialect] = &[OpenaiChat, OpenaiCompletions];
const CHAT: &[Dialect] = &[OpenaiChat];
const RESPONSES: &[Dialect] = &[OpenaiResponses];
const GEMINI: &[Dialect] = &[GeminiSse, GeminiArray];
const OLLAMA: &[Dialect] = &[OllamaChat, OllamaGenerate];

const TEN: Delivered = Delivered::AtMost(10);
const NOTHING: Delivered = Delivered::Nothing;
const HALF: Delivered = Delivered::Share("half", |asked| asked / 2);
/// All but one, and one at least where one is asked for.
const ALL_BUT_ONE: Delivered = Delivered::Share("all but 1", |asked| asked.max(2) - 1);
const VISIBLE: Delivered = Delivered::Share("14 of 78", |asked| asked - asked * 64 / 78);
/// The last quarter, and a quarter of the three quarters in front of it.
const SUMMARY: Delivered = Delivered::Share("7 of 16", |asked| {
    let reasoning = asked * 3 / 4;
    asked - reasoning + reasoning / 4
});

/// Scripts of servers in good order.
#[rustfmt::skip]
pub(super) const PLAIN: &[Entry] = &[
    Entry::new("normal", "a token each 10 ms from 60 ms on", paced::normal),
    Entry::new("streams", "as normal, from 50 ms on", paced::streams),
    Entry::new("bursts", "silent for 1 s, then at least 1,000 tokens within 1 ms", held::bursts)
        .shape("buffered").brings(Delivered::AtLeast(1_000)),
    Entry::new("shares", "slows down for all as more requests are active", paced::shares),
    Entry::new("burst", "the whole stream in one write at the last token's time", held::burst)
        .row(16).shape("buffered"),
    Entry::new("roleburst", "role at 5 ms, all the rest in one write at the end", held::role_burst)
        .row(16).shape("buffered"),
    Entry::new("firstlate", "one token at the end, the others 2 ms later in one write", held::first_late)
        .row(16).shape("buffered"),
    Entry::new("onechunk", "all text in one chunk at the end", held::one_chunk)
        .row(16).only(CHUNKY).shape("buffered"),
    Entry::new("twoclump", "half of the tokens at half of the time, half at the end", held::two_clump)
        .shape("buffered"),
    Entry::new("nodone", "as normal, without the sentinel", paced::no_done)
        .row(4).only(SENTINEL).flags(&["unterminated"]),
    Entry::new("nousage", "as normal, never any usage", paced::no_usage).row(12),
    Entry::new("spec4", "4 tokens a chunk, a chunk each 40 ms", paced::spec4)
        .only(CHUNKY).flags(&["coalesced"]),
    Entry::new("spec5", "5 tokens a chunk, a chunk each 50 ms", paced::spec5)
        .row(17).only(CHUNKY).flags(&["coalesced"]),
    Entry::new("reason", "three quarters reasoning, then the answer", paced::reasoned).only(REASONING),
    Entry::new("reasoning-summary", "three quarters reasoning, of which a summary is shown", paced::summary)
        .row(14).only(SUMMING).flags(&["hidden_reasoning"]).brings(SUMMARY),
    Entry::new("hidden-reasoning", "64 of 78 tokens are reasoning that is not shown", paced::hidden)
        .row(14).only(COUNTED).flags(&["hidden_reasoning"]).brings(VISIBLE),
    Entry::new("tool", "a tool call whose arguments are the tokens", paced::tool).only(CALLING)
        .buffered_in(&[GeminiSse, GeminiArray, OllamaChat]),
    Entry::new("refusal", "the answer is a refusal", paced::refusal).only(&[OpenaiChat, OpenaiResponses]),
    Entry::new("nospace", "as normal, no space behind data:", spelled::no_space).row(18).only(SSE),
    Entry::new("crlf", "as normal, lines end in CR LF", spelled::crlf).row(18).only(SSE),
    Entry::new("cr", "as normal, lines end in CR", spelled::cr).row(18).only(SSE),
    Entry::new("mixed-eol", "as normal, lines end in LF, CR and CR LF in turn", spelled::mixed_eol)
        .row(18).only(SSE),
    Entry::new("bom", "as normal, behind a byte order mark", spelled::bom).row(18).only(SSE),
    Entry::new("split-bom", "as normal, behind a byte order mark in three writes", spelled::split_bom)
        .row(18).only(SSE),
    Entry::new("one-byte-writes", "as normal, each byte in a write of its own", spelled::one_byte).row(19),
    Entry::new("one-byte-emoji", "signs of several bytes, each byte in a write of its own", spelled::one_byte_emoji)
        .row(19),
    Entry::new("plainjson", "one JSON body at the end though a stream was asked for", held::plain_json)
        .row(23).shape("whole"),
    Entry::new("stoptoken", "ends by itself; usage counts the stop token too", paced::stop_token)
        .flags(&["stop_token"]).brings(ALL_BUT_ONE),
    Entry::new("closes", "as normal, the body ends with the connection", paced::closes),
    Entry::new("keepalives", "as normal, signs of life before the first token", paced::keep_alives),
    Entry::new("early-role", "the role at 5 ms, the first token at 900 ms", paced::early_role).row(10),
    Entry::new("slow_start", "as normal, from 600 ms on", paced::slow_start),
    Entry::new("null", "unpaced: all tokens at once, in large writes", paced::unpaced).shape("buffered"),
    Entry::new("paced100", "a token each 10 ms from 100 ms on", paced::paced100),
    Entry::new("paced20", "a token each 50 ms from 100 ms on", paced::paced20),
    Entry::new("azure-prelude", "a chunk with choices [] comes first", marks::azure_prelude).row(9).only(CHAT),
    Entry::new("choices-null", "a chunk with choices null comes first", marks::choices_null).row(9).only(CHAT),
    Entry::new("choices-missing", "a chunk without choices comes first", marks::choices_missing)
        .row(9).only(CHAT),
    Entry::new("gzip", "as normal, compressed by gzip", codings::gzip).row(26).flags(&["compressed"]),
    Entry::new("deflate", "as normal, compressed by deflate", codings::deflate)
        .row(26).flags(&["compressed"]),
    Entry::new("br", "as normal, compressed by brotli", codings::br).row(26).flags(&["compressed"]),
    Entry::new("stale-keepalive", "as normal; the connection closes as the next request comes", faulty::stale_keepalive)
        .row(33),
];

/// Scripts that say the same as servers of one family do.
#[rustfmt::skip]
pub(super) const FAMILIES: &[Entry] = &[
    Entry::new("llama-cpp", "llama.cpp: role without text, timings beside the usage", families::llama_cpp)
        .only(CHAT),
    Entry::new("groq", "Groq: usage twice, with times, on the finish chunk", families::groq).only(CHAT),
    Entry::new("fireworks", "Fireworks: usage and perf_metrics on the finish chunk", families::fireworks)
        .only(CHAT),
    Entry::new("deepseek", "DeepSeek: reasoning, nulls, usage on the finish chunk", families::deepseek)
        .only(CHAT),
    Entry::new("openrouter", "OpenRouter: delta.reasoning, a provider", families::openrouter).only(CHAT),
    Entry::new("xai", "xAI: role with text, no finish_reason before the end", families::xai).only(CHAT),
    Entry::new("moonshot", "Moonshot: last text, finish and usage in one chunk", families::moonshot)
        .only(CHAT),
    Entry::new("litellm", "LiteLLM: the usage chunk has a choice", families::litellm).only(CHAT),
    Entry::new("mistral", "Mistral: content as a list of parts, some thinking", families::mistral).only(CHAT),
    Entry::new("vllm-counts", "vLLM: the usage so far on every chunk", families::vllm_counts).only(CHAT),
    Entry::new("text-finish", "vLLM: the finish reason stands on the last text", families::text_finish)
        .only(&[OpenaiCompletions]),
    Entry::new("unnumbered", "llama.cpp: Responses without numbers, started twice", families::unnumbered)
        .only(RESPONSES),
    Entry::new("late-counts", "LiteLLM: Messages with a ping first, true counts last", families::late_counts)
        .only(&[AnthropicMessages]),
    Entry::new("running-counts", "Gemini with counts and a null finish on every object", families::running_counts)
        .only(GEMINI),
];

/// Scripts whose stream goes wrong.
#[rustfmt::skip]
pub(super) const FAULTS: &[Entry] = &[
    Entry::new("empty", "a stream without any output", faulty::empty).row(15).fails("empty", NOTHING),
    Entry::new("length-hidden", "all tokens go into reasoning that is not shown", faulty::length_hidden)
        .row(15).only(COUNTED).fails("empty", NOTHING),
    Entry::new("miderror", "10 tokens, an error event, then the sentinel", faulty::mid_error)
        .row(1).fails("server_error", TEN),
    Entry::new("error-no-done", "10 tokens, an error event, no sentinel", faulty::error_no_done)
        .row(1).fails("server_error", TEN),
    Entry::new("early-error", "an error event before any token", faulty::early_error)
        .row(8).fails("server_error", NOTHING),
    Entry::new("error-field", "10 tokens, then an error as a field of the event stream", marks::error_field)
        .row(7).only(DONE).fails("server_error", TEN),
    Entry::new("choice-error", "10 tokens, then an error inside a choice", marks::choice_error)
        .row(1).only(CHAT).fails("server_error", TEN),
    Entry::new("x-groq-error", "10 tokens, then an error inside x_groq", marks::x_groq_error)
        .row(1).only(CHAT).fails("server_error", TEN),
    Entry::new("router-error", "10 tokens, then an error beside a finish reason", marks::router_error)
        .row(1).only(CHAT).fails("server_error", TEN),
    Entry::new("finish-error", "10 tokens, then the finish reason is error; response.failed", faulty::finish_error)
        .row(1).only(&[OpenaiChat, OpenaiCompletions, OpenaiResponses, GeminiSse, GeminiArray])
        .fails("server_error", TEN),
    Entry::new("bare-error", "10 tokens, then an error over several lines, unframed", marks::bare_error)
        .row(1).only(&[GeminiSse]).fails("server_error", TEN),
    Entry::new("truncated", "10 tokens, then a proper end of the body", faulty::truncated)
        .row(2).fails("truncated", TEN),
    Entry::new("cut", "10 tokens, then closed inside an event", faulty::cut).row(3).fails("truncated", TEN),
    Entry::new("cut-in-string", "10 tokens, then closed inside a JSON string", faulty::cut_in_string)
        .row(3).fails("truncated", TEN),
    Entry::new("reset", "10 tokens, then the connection is reset", faulty::reset)
        .row(3).fails("truncated", TEN),
    Entry::new("reset-in-string", "10 tokens, then reset inside a JSON string", faulty::reset_in_string)
        .row(3).fails("truncated", TEN),
    Entry::new("end-in-string", "10 tokens, then the body's proper end inside a JSON string", faulty::end_in_string)
        .row(3).fails("truncated", TEN),
    Entry::new("done-without-finish", "10 tokens, then the sentinel and no finish reason", faulty::done_without_finish)
        .row(2).only(&[OpenaiChat, OpenaiCompletions, AnthropicMessages, GeminiArray])
        .fails("truncated", TEN),
    Entry::new("array-without-end", "as normal, without the array's end", paced::no_done)
        .row(2).only(&[GeminiArray]).fails("truncated", Delivered::All),
    Entry::new("done-unclosed", "as normal, no line end behind the sentinel", marks::done_unclosed)
        .row(5).only(SENTINEL).flags(&["unterminated_tail"]),
    Entry::new("done-twice", "as normal, the sentinel twice", marks::done_twice).row(6).only(SENTINEL),
    Entry::new("after-done", "as normal, three more tokens behind the sentinel", marks::after_done)
        .row(6).only(SENTINEL).flags(&["post_done_data"]),
    Entry::new("no-done-reason", "as normal, the last line without done_reason", marks::no_done_reason)
        .row(4).only(OLLAMA).flags(&["unterminated"]),
    Entry::new("load-only", "the model was loaded and nothing generated", marks::load_only)
        .row(15).only(OLLAMA).fails("empty", NOTHING),
    Entry::new("content-filter", "10 tokens, then stopped for what they say", faulty::content_filter)
        .only(FILTERED).fails("blocked", TEN),
    Entry::new("prompt-blocked", "the prompt is blocked", marks::prompt_blocked)
        .only(GEMINI).fails("blocked", NOTHING),
    Entry::new("stall", "5 tokens, then silence", faulty::stall)
        .row(11).fails("timeout", Delivered::AtMost(5)),
    Entry::new("comments-only", "signs of life without end", faulty::comments_only)
        .row(11).fails("timeout", NOTHING),
    Entry::new("wrong-usage", "as normal, usage says 5 tokens", paced::wrong_usage)
        .row(13).flags(&["usage_inconsistent"]),
    Entry::new("wrong-total", "as normal, the total is 7 more than its parts", paced::wrong_total)
        .row(13).only(SUMMED).flags(&["usage_inconsistent"]),
    Entry::new("bad-json", "an event in the middle is no JSON", broken::bad_json)
        .row(21).fails("protocol_error", HALF),
    Entry::new("huge-event", "10 tokens, then an event of 32 MiB", broken::huge_event)
        .row(24).fails("limit_exceeded", TEN),
    Entry::new("endless-line", "a line without end", broken::endless_line)
        .row(24).fails("limit_exceeded", NOTHING),
    Entry::new("deep-json", "an event in the middle holds 100,000 arrays in each other", broken::deep_json)
        .row(24).fails("limit_exceeded", HALF),
    Entry::new("endless", "a token each 10 ms, without end: until the client says that it is enough", faulty::endless)
        .row(25).fails("timeout", Delivered::Endless),
    Entry::new("endless-fast", "tokens as fast as the client takes them, without end", faulty::endless_fast)
        .row(25).fails("limit_exceeded", Delivered::Endless),
    Entry::new("gzip-bomb", "1 MiB of gzip that becomes 1 GiB", codings::gzip_bomb)
        .row(26).fails("limit_exceeded", NOTHING),
    Entry::new("br-bomb", "a few KiB of brotli that become 1 GiB", codings::br_bomb)
        .row(26).fails("limit_exceeded", NOTHING),
    Entry::new("unknown-coding", "as normal, and the head says x-sim compressed it", codings::unknown_coding)
        .row(26).fails("decode_error", NOTHING),
    Entry::new("second-start", "another message starts in the middle", marks::second_start)
        .row(40).only(&[AnthropicMessages]).flags(&["restarted_stream"]),
    Entry::new("seq-gap", "a numbered event with text is never sent", marks::seq_gap)
        .row(40).only(RESPONSES).fails("protocol_error", ALL_BUT_ONE),
    Entry::new("seq-jump", "a numbered event without text is never sent", marks::seq_jump)
        .row(40).only(RESPONSES),
    Entry::new("duplicate-event", "a numbered event is sent twice", marks::duplicate_event)
        .row(40).only(RESPONSES),
];

/// Scripts of HTTP/2's own ways to wait and to fail.
#[rustfmt::skip]
pub(super) const FRAMES: &[Entry] = &[
    Entry::new("h2-goaway", "HTTP/2: GOAWAY below the request's stream, then closed", frames::goaway)
        .row(36).http2().fails("stale_conn", NOTHING),
    Entry::new("h2-refused", "HTTP/2: the stream is reset by REFUSED_STREAM", frames::refused)
        .row(36).http2().fails("connect_error", NOTHING),
    Entry::new("h2-reset", "HTTP/2: 10 tokens, then the stream is reset by INTERNAL_ERROR", frames::reset)
        .row(36).http2().fails("truncated", TEN),
    Entry::new("h2-last", "HTTP/2: as normal, GOAWAY behind the head, closed at the end", frames::last)
        .row(36).http2(),
    Entry::new("h2-wait", "HTTP/2: as normal, then no stream may be opened for 300 ms", frames::wait)
        .row(36).http2(),
];

/// Scripts whose texts are the danger.
#[rustfmt::skip]
pub(super) const TEXTS: &[Entry] = &[
    Entry::new("lone-surrogate", "half of an escaped pair in every other token", hostile::lone_surrogate)
        .row(20).flags(&["text_repaired"]),
    Entry::new("invalid-utf8", "bytes that are no UTF-8 in most tokens", hostile::invalid_utf8)
        .row(20).flags(&["text_repaired"]),
    Entry::new("nul-text", "a NUL in every other token", hostile::nul).row(20),
    Entry::new("line-separators", "U+2028, U+2029 and U+0085 in every other token", hostile::line_separators)
        .row(20),
    Entry::new("hostile-text", "formulas, scripts, terminal escapes, bidi signs", hostile::hostile_text)
        .row(39),
    Entry::new("hostile-model", "the answer bears a hostile model name", hostile::hostile_model).row(39),
    Entry::new("long-text", "a first token of 1 MiB, then three", hostile::long_text)
        .row(39).shape("buffered").flags(&["usage_inconsistent"]).brings(Delivered::AtMost(4)),
    Entry::new("hostile-error", "status 500 and a hostile message", hostile::hostile_error)
        .row(39).fails("http_error", NOTHING),
    Entry::new("long-error", "status 500 and a message of 1 MiB", hostile::long_error)
        .row(39).fails("http_error", NOTHING),
    Entry::new("hostile-mid-error", "10 tokens, then an error with a hostile message", hostile::hostile_mid_error)
        .row(39).fails("server_error", TEN),
];

/// Scripts that refuse before any stream.
#[rustfmt::skip]
pub(super) const REPLIES: &[Entry] = &[
    Entry::new("html", "status 200 and a login page", refused::html)
        .row(22).fails("protocol_error", NOTHING),
    Entry::new("http401", "status 401, and the key in the message", refused::http401)
        .row(27).fails("http_error", NOTHING),
    Entry::new("http401-base64", "status 401, and the key in base64", refused::http401_base64)
        .row(27).fails("http_error", NOTHING),
    Entry::new("http401-percent", "status 401, and the key percent-encoded", refused::http401_percent)
        .row(27).fails("http_error", NOTHING),
    Entry::new("http403", "status 403, and the key in the message", refused::http403)
        .row(27).fails("http_error", NOTHING),
    Entry::new("http404", "status 404", refused::http404).row(27).fails("http_error", NOTHING),
    Entry::new("http422", "status 422, and the key in the message", refused::http422)
        .row(27).fails("http_error", NOTHING),
    Entry::new("http429", "status 429, Retry-After 7", refused::http429)
        .row(28).fails("rate_limited", NOTHING),
    Entry::new("http429-date", "status 429, Retry-After a date", refused::http429_date)
        .row(28).fails("rate_limited", NOTHING),
    Entry::new("http429-junk", "status 429, Retry-After is no time", refused::http429_junk)
        .row(28).fails("rate_limited", NOTHING),
    Entry::new("http429-huge", "status 429, Retry-After a billion seconds", refused::http429_huge)
        .row(28).fails("rate_limited", NOTHING),
    Entry::new("http500", "status 500", refused::http500).fails("http_error", NOTHING),
    Entry::new("loading", "status 503 for 3 requests (loading=N: N), then as normal", refused::loading)
        .row(29).fails("http_error", NOTHING),
    Entry::new("http307", "status 307 to another origin (http307=URL: to that)", refused::http307)
        .row(30).fails("http_error", NOTHING),
    Entry::new("http400_stream_options", "status 400 if stream_options is given", refused::no_stream_options)
        .only(DONE).fails("http_error", NOTHING),
    Entry::new("http400_max_tokens", "status 400 if max_tokens is given by that name", refused::no_max_tokens)
        .only(CHAT).fails("http_error", NOTHING),
];
