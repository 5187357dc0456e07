//! Owns the check of every voice: the same script in every API, read by that API's own rules.

use super::heard::{Heard, hear};
use super::*;
use crate::sim::voices::words;
use Dialect::{
    AnthropicMessages, GeminiArray, GeminiSse, OllamaChat, OllamaGenerate, OpenaiChat,
    OpenaiCompletions, OpenaiResponses, Tgi,
};

const TOKENS: u64 = 8;

fn said_by(name: &str, dialect: Dialect, max_tokens: Option<u64>) -> (Heard, Script) {
    let ask = Ask {
        dialect,
        max_tokens,
        ..Ask::of(name)
    };
    let script = made(name, &ask);
    assert_eq!(script.status, 200, "{name} in {dialect:?}");
    let body = String::from_utf8(body_of(&script)).expect("the script is text");
    (hear(dialect, &body), script)
}

fn said(name: &str, dialect: Dialect) -> (Heard, Script) {
    said_by(name, dialect, Some(TOKENS))
}

fn text(range: std::ops::Range<u64>) -> String {
    String::from_utf8(words(0, range)).expect("words are text")
}

/// Why it ended, at the limit and by itself, as the API calls it.
fn reasons(dialect: Dialect) -> [&'static str; 2] {
    match dialect {
        OpenaiChat | OpenaiCompletions | OllamaChat | OllamaGenerate => ["length", "stop"],
        OpenaiResponses => ["response.incomplete", "response.completed"],
        AnthropicMessages => ["max_tokens", "end_turn"],
        GeminiSse | GeminiArray => ["MAX_TOKENS", "STOP"],
        Tgi => ["length", "eos_token"],
    }
}

fn has_sentinel(dialect: Dialect) -> bool {
    !matches!(dialect, OpenaiResponses | GeminiSse | Tgi)
}

#[test]
fn normal_is_the_same_answer_in_every_api() {
    for &dialect in Dialect::ALL {
        for (asked, tokens, reason) in [(Some(TOKENS), TOKENS, 0), (None, 64, 1)] {
            let (heard, script) = said_by("normal", dialect, asked);
            // Text Generation Inference counts its stop token.
            let stop = u64::from(dialect == Tgi && reason == 1);
            let expected = Heard {
                answer: text(0..tokens),
                finish: Some(reasons(dialect)[reason].to_owned()),
                usage: Some((16, tokens + stop, 0)),
                pings: u64::from(dialect == AnthropicMessages),
                done: has_sentinel(dialect),
                ..Heard::default()
            };
            assert_eq!(heard, expected, "{dialect:?}");
            assert_eq!(script.headers[0].1, dialect.content_type());
            assert_eq!(script.tokens(), tokens, "{dialect:?}");
            assert_eq!(script.head_at(), Length::ZERO, "{dialect:?}");
            let end = millis(60 + 10 * (tokens - 1));
            assert_eq!(script.ending(), Some((end, Ending::Proper)), "{dialect:?}");
        }
    }
}

/// Where a request can ask for usage, it comes in a chunk of its own behind the finish.
#[test]
fn asked_for_usage_is_a_chunk_without_choices() {
    for dialect in [OpenaiChat, OpenaiCompletions] {
        let ask = Ask {
            dialect,
            ..Ask::of("normal")
        };
        let body = String::from_utf8(body_of(&made("normal", &ask))).expect("it is text");
        let (front, usage) = body
            .split_once("\"choices\":[],\"usage\":{")
            .expect("it is there");
        assert!(front.contains("\"finish_reason\":\"stop\"") && !usage.contains("choices"));
    }
}

#[test]
fn each_token_comes_in_its_own_write_at_its_own_time() {
    for &dialect in Dialect::ALL {
        let (_, script) = said("normal", dialect);
        for token in 0..TOKENS {
            let word = words(0, token..token + 1);
            let timeline = script.timeline();
            let (at, bytes) = timeline
                .iter()
                .find(|(_, bytes)| bytes.windows(word.len()).any(|window| window == word))
                .expect("every token is there");
            assert_eq!(*at, millis(60 + 10 * token), "{dialect:?}");
            let next = words(0, token + 1..token + 2);
            assert!(!bytes.windows(next.len()).any(|window| window == next));
        }
    }
}

#[test]
fn reasoning_is_told_apart_from_the_answer() {
    for &dialect in Dialect::ALL {
        if matches!(dialect, OpenaiCompletions | Tgi) {
            assert_eq!(
                made(
                    "reason",
                    &Ask {
                        dialect,
                        ..Ask::of("reason")
                    }
                )
                .status,
                400
            );
            continue;
        }
        let (heard, _) = said("reason", dialect);
        assert_eq!(
            (heard.reasoning, heard.answer),
            (text(0..6), text(6..8)),
            "{dialect:?}"
        );
        let counted = matches!(
            dialect,
            OpenaiChat | OpenaiResponses | GeminiSse | GeminiArray
        );
        let usage = (16, 8, if counted { 6 } else { 0 });
        assert_eq!(heard.usage, Some(usage), "{dialect:?}");
    }
}

#[test]
fn a_summary_and_hidden_reasoning_are_counted_and_not_shown() {
    for (name, dialect, shown) in [
        ("reasoning-summary", OpenaiResponses, 1),
        ("reasoning-summary", AnthropicMessages, 1),
        ("reasoning-summary", GeminiSse, 1),
        ("hidden-reasoning", OpenaiChat, 0),
        ("hidden-reasoning", OpenaiResponses, 0),
        ("hidden-reasoning", AnthropicMessages, 0),
        ("hidden-reasoning", GeminiArray, 0),
    ] {
        let (heard, _) = said(name, dialect);
        assert_eq!(heard.reasoning, text(0..shown), "{name} {dialect:?}");
        assert_eq!(heard.answer, text(6..8), "{name} {dialect:?}");
        assert_eq!(heard.usage, Some((16, 8, 6)), "{name} {dialect:?}");
    }
}

#[test]
fn a_tool_is_called_with_the_tokens() {
    for (dialect, finish) in [
        (OpenaiChat, "tool_calls"),
        (OpenaiResponses, "response.completed"),
        (AnthropicMessages, "tool_use"),
        (GeminiSse, "STOP"),
        (GeminiArray, "STOP"),
        (OllamaChat, "stop"),
    ] {
        let (heard, script) = said("tool", dialect);
        assert_eq!(heard.tools, ["note"], "{dialect:?}");
        let arguments: Value = serde_json::from_str(&heard.arguments).expect("they are JSON");
        assert_eq!(arguments["text"], text(0..TOKENS), "{dialect:?}");
        assert_eq!(heard.finish.as_deref(), Some(finish), "{dialect:?}");
        assert_eq!(
            (heard.answer.as_str(), script.tokens()),
            ("", TOKENS),
            "{dialect:?}"
        );
    }
    for dialect in [OpenaiChat, OpenaiResponses] {
        assert_eq!(said("refusal", dialect).0.refusal, text(0..TOKENS));
    }
}

#[test]
fn an_error_is_the_apis_own() {
    for &dialect in Dialect::ALL {
        let (heard, _) = said("miderror", dialect);
        assert_eq!((heard.errors, heard.finish), (1, None), "{dialect:?}");
        assert_eq!(heard.answer, text(0..TOKENS), "{dialect:?}");
        let done = matches!(dialect, OpenaiChat | OpenaiCompletions | GeminiArray);
        assert_eq!(heard.done, done, "{dialect:?}");
    }
}

#[test]
fn an_answer_without_a_stream_has_the_apis_shape_and_the_same_text() {
    for (dialect, place) in [
        (OpenaiChat, "/choices/0/message/content"),
        (OpenaiCompletions, "/choices/0/text"),
        (OpenaiResponses, "/output/0/content/0/text"),
        (AnthropicMessages, "/content/0/text"),
        (GeminiSse, "/candidates/0/content/parts/0/text"),
        (GeminiArray, "/candidates/0/content/parts/0/text"),
        (OllamaChat, "/message/content"),
        (OllamaGenerate, "/response"),
        (Tgi, "/generated_text"),
    ] {
        let ask = Ask {
            dialect,
            stream: false,
            ..asked(TOKENS)
        };
        let script = made("normal", &ask);
        let body: Value = serde_json::from_slice(&body_of(&script)).expect("it is JSON");
        let found = body.pointer(place).and_then(Value::as_str);
        assert_eq!(found, Some(text(0..TOKENS).as_str()), "{dialect:?}");
        assert_eq!(script.headers[0].1, "application/json");
        assert_eq!(script.tokens(), TOKENS);
        let failed = made("miderror", &ask);
        assert_eq!(failed.status, 500, "{dialect:?}");
    }
}

/// Ollama declares where its time went, in nanoseconds.
#[test]
fn ollama_declares_its_durations() {
    let (_, script) = said("normal", OllamaGenerate);
    let body = body_of(&script);
    let last = body
        .split(|byte| *byte == b'\n')
        .rfind(|line| !line.is_empty());
    let last: Value = serde_json::from_slice(last.expect("there are lines")).expect("JSON");
    let told = [
        "total_duration",
        "load_duration",
        "prompt_eval_duration",
        "eval_duration",
    ]
    .map(|name| last[name].as_u64().expect(name) / 1_000_000);
    assert_eq!(told, [130, 1, 59, 70]);
}

#[test]
fn a_script_of_another_api_is_refused_and_says_where_it_belongs() {
    let ask = Ask {
        dialect: Tgi,
        ..Ask::of("seq-gap")
    };
    let script = made("seq-gap", &ask);
    let body: Value = serde_json::from_slice(&body_of(&script)).expect("it is JSON");
    assert_eq!(script.status, 400);
    let message = body["error"]
        .as_str()
        .expect("an error of this API is a text");
    assert!(message.contains("openai-responses"), "{message}");
}

/// What each family says is the same answer, by the rules of its API.
#[test]
fn families_say_what_normal_says() {
    for (name, dialects, reasoning) in [
        ("llama-cpp", &[OpenaiChat][..], 0),
        ("groq", &[OpenaiChat], 0),
        ("fireworks", &[OpenaiChat], 0),
        ("deepseek", &[OpenaiChat], 48),
        ("xai", &[OpenaiChat], 0),
        ("moonshot", &[OpenaiChat], 0),
        ("litellm", &[OpenaiChat], 0),
        ("vllm-counts", &[OpenaiChat], 0),
        ("text-finish", &[OpenaiCompletions], 0),
        ("late-counts", &[AnthropicMessages], 0),
        ("running-counts", &[GeminiSse, GeminiArray], 0),
    ] {
        for &dialect in dialects {
            let (heard, script) = said_by(name, dialect, None);
            assert_eq!(heard.reasoning, text(0..reasoning), "{name}");
            assert_eq!(heard.answer, text(reasoning..64), "{name}");
            assert_eq!(heard.finish.as_deref(), Some(reasons(dialect)[1]), "{name}");
            assert_eq!(heard.usage, Some((16, 64, reasoning)), "{name}");
            assert_eq!(
                script.ending(),
                Some((millis(690), Ending::Proper)),
                "{name}"
            );
        }
    }
}
