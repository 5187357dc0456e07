//! Owns the kinds of JSON that trip parsers, made here: what must be read (`y`), what must be
//! refused (`n`), and what may be either as long as nothing falls (`i`); as events, as whole
//! bodies, and inside the fields of every API.

use std::thread;

use measure::api::Api;
use measure::judge::{Failure, Outcome};

use super::{framed, judged, traced};

/// Deeper than any stack: each level is a bracket.
const DEEP: usize = 100_000;
/// Deeper than a worker's stack, and quick enough to be tried in every field of every API.
const DEEP_INSIDE: usize = 4_000;

fn accepted() -> Vec<String> {
    [
        r#"{}"#,
        r#"{"":0}"#,
        r#"{"a":null,"b":true,"c":false}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":{"a":{"a":{"a":[]}}}}"#,
        " {\t\"a\"\t : 1 } ",
        r#"{"a":-0}"#,
        r#"{"a":-0.0e-10}"#,
        r#"{"a":123456789.5E+2}"#,
        r#"{"a":18446744073709551616}"#,
        r#"{"a":1e400}"#,
        r#"{"a":0.00000000000000000000000000000000000000000000000001}"#,
        r#"{"a":"\"\\\/\b\f\n\r\t"}"#,
        r#"{"a":"\u0000\u001f\uD83D\uDe00\uFFFF"}"#,
        r#"{"\u0000\"":"x"}"#,
        "{\"a\":\"\u{2028}\u{2029}\u{7f}\u{85}\u{feff}😀\"}",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn refused() -> Vec<String> {
    let mut all: Vec<String> = [
        "{",
        "}",
        "{]",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1}}",
        "{\"a\":1}{\"b\":2}",
        "{\"a\":1}x",
        "{\"a\":01}",
        "{\"a\":+1}",
        "{\"a\":.5}",
        "{\"a\":1.}",
        "{\"a\":1e}",
        "{\"a\":0x1}",
        "{\"a\":NaN}",
        "{\"a\":-Infinity}",
        "{\"a\":tru}",
        "{\"a\":nul}",
        "{\"a\":\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u12G4\"}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\0\"}",
        "{\"a\":/*x*/1}",
        "{\"a\":1}//",
        "{\"a\":[1,]}",
        "{\"a\":[1 2]}",
        "{\"a\":[}",
        "{1:1}",
        "{null:1}",
        "{\"a\":\u{a0}1}",
    ]
    .map(str::to_owned)
    .to_vec();
    all.push("{\"a\":".repeat(DEEP));
    all.push(format!("{{\"a\":{}", "[".repeat(DEEP)));
    all
}

/// Legal by some readings: none may make anything fall.
fn either(deep: usize) -> Vec<Vec<u8>> {
    let nested = |open: &str, inside: &str, close: &str| {
        [open.repeat(deep), inside.to_owned(), close.repeat(deep)].concat()
    };
    let mut all: Vec<Vec<u8>> = [
        r#"{"a":"\ud83d"}"#,
        r#"{"a":"\ude00\ud83d"}"#,
        r#"{"a":"\ud83d\ud83d\ude00"}"#,
        r#"{"\ud83d":1}"#,
        r#"{"a":-1e999}"#,
        r#"{"a":123123e100000}"#,
        r#"{"a":-9223372036854775809}"#,
        "null",
        "true",
        "1",
        "\"x\"",
        "[]",
        "[[]]",
        "[null]",
        "[1,\"a\",{}]",
        "\u{feff}{}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    all.extend([
        b"{\"a\":\"\xFF\"}".to_vec(),
        b"{\"a\":\"\xE0\x80\x80\xED\xA0\x80\xF4\xBF\xBF\xBF\"}".to_vec(),
        b"{\"\xC3\":1}".to_vec(),
        b"\xFF\xFE{\x00}\x00".to_vec(),
        nested("{\"a\":", "1", "}").into_bytes(),
        nested("[", "", "]").into_bytes(),
        nested("[{\"text\":", "\"x\"", "}]").into_bytes(),
        format!("{{\"a\":{}}}", nested("[", "", "]")).into_bytes(),
        format!("{{\"a\":\"{}\"}}", "\\ud83d".repeat(deep)).into_bytes(),
        format!("{{\"a\":{}}}", "9".repeat(deep)).into_bytes(),
        format!("{{{}\"a\":1}}", "\"a\":1,".repeat(deep / 10)).into_bytes(),
    ]);
    all
}

/// Where each API's events have members that are looked into; `@` stands for what is put there.
const PLACES: &[&str] = &[
    r#"{"choices":@}"#,
    r#"{"choices":[@]}"#,
    r#"{"choices":[{"delta":@}]}"#,
    r#"{"choices":[{"delta":{"content":@}}]}"#,
    r#"{"choices":[{"delta":{"audio":@,"tool_calls":[{"function":{"arguments":@}}]}}]}"#,
    r#"{"choices":[{"index":0,"text":@,"finish_reason":@}],"usage":@,"timings":@}"#,
    r#"{"x_groq":@,"usage":{"prompt_tokens":@,"completion_tokens":@},"perf_metrics":@}"#,
    r#"{"type":"response.output_text.delta","delta":@,"sequence_number":@}"#,
    r#"{"type":"response.completed","response":{"output":[{"content":[{"text":@}]}],"usage":@}}"#,
    r#"{"type":"response.output_item.added","item":@}"#,
    r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":@}}"#,
    r#"{"type":"content_block_start","content_block":{"type":"tool_use","name":@,"input":@}}"#,
    r#"{"type":"message_start","message":{"id":@,"usage":@}}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":@},"usage":@}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":@,"functionCall":{"args":@}}]}}],"usageMetadata":@}"#,
    r#"{"promptFeedback":@,"candidates":@}"#,
    r#"{"message":{"content":@,"tool_calls":[{"function":{"arguments":@}}]},"response":@,"done":false}"#,
    r#"{"done":true,"done_reason":@,"eval_count":@,"total_duration":@}"#,
    r#"{"token":{"text":@},"generated_text":@,"details":@}"#,
    r#"{"error":@,"detail":@}"#,
    r#"{"type":"error","error":{"message":@,"type":@},"code":@}"#,
];

/// On a stack as small as a worker's, since that is where it is read.
fn on_a_small_stack(run: fn()) {
    let thread = thread::Builder::new().stack_size(2 << 20).spawn(run);
    thread.expect("a thread").join().expect("nothing falls");
}

fn outcomes(api: Api, body: &[u8]) -> [Outcome; 2] {
    let whole = traced(api, Some("application/json"), [body]);
    let (mut stream, kind) = framed(api, &["@"]);
    let place = stream
        .iter()
        .position(|byte| *byte == b'@')
        .expect("a place");
    stream.splice(place..=place, body.iter().copied());
    [whole, traced(api, Some(kind), [&stream[..]])].map(|trace| judged(api, trace).outcome)
}

#[test]
fn what_is_json_is_no_protocol_error_as_an_event_of_any_api() {
    for (api, text) in Api::ALL
        .iter()
        .flat_map(|api| accepted().into_iter().map(move |t| (api, t)))
    {
        let (body, kind) = framed(*api, &[&text]);
        let trace = traced(*api, Some(kind), [&body[..]]);
        assert_eq!(trace.malformed, None, "{api:?} {text}");
        assert_eq!(trace.events, 1, "{api:?} {text}");
    }
}

#[test]
fn what_is_no_json_is_a_protocol_error_or_beyond_a_limit() {
    for (api, text) in Api::ALL
        .iter()
        .flat_map(|api| refused().into_iter().map(move |t| (api, t)))
    {
        let (body, kind) = framed(*api, &[&text]);
        let outcome = judged(*api, traced(*api, Some(kind), [&body[..]])).outcome;
        let is_refusal = matches!(
            outcome,
            Outcome::Failed(Failure::ProtocolError | Failure::LimitExceeded)
        );
        let start: String = text.chars().take(80).collect();
        assert!(is_refusal, "{api:?} {start}: {outcome:?}");
    }
}

#[test]
fn nothing_falls_over_any_json_anywhere_in_any_api() {
    on_a_small_stack(|| {
        let texts = accepted()
            .into_iter()
            .chain(refused())
            .map(String::into_bytes);
        let values: Vec<Vec<u8>> = texts.chain(either(DEEP)).collect();
        for (api, value) in Api::ALL
            .iter()
            .flat_map(|api| values.iter().map(move |v| (api, v)))
        {
            for outcome in outcomes(*api, value) {
                assert_ne!(outcome, Outcome::Ok, "{api:?} {}", value.escape_ascii());
            }
        }
    });
}

#[test]
fn nothing_falls_over_any_json_inside_the_fields_of_any_api() {
    on_a_small_stack(|| {
        for value in either(DEEP_INSIDE) {
            let value = String::from_utf8_lossy(&value).into_owned();
            for place in PLACES {
                let body = place.replace('@', &value);
                for api in Api::ALL {
                    let (stream, kind) = framed(*api, &[&body]);
                    traced(*api, Some(kind), [&stream[..]]);
                }
            }
        }
    });
}

/// A stream of one answer with a surrogate alone in it, as servers send that cut a character in
/// two; everything else of the same event must arrive.
fn cut_character(api: Api) -> Vec<&'static str> {
    match api {
        Api::OpenaiChat => vec![
            r#"{"id":"\ud83d","choices":[{"index":0,"delta":{"content":"a\ud83d"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"note":"\ud83d"}}"#,
            "[DONE]",
        ],
        Api::OpenaiCompletions => vec![
            r#"{"choices":[{"text":"a\ud83d","finish_reason":"stop","note":"\ude00"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#,
            "[DONE]",
        ],
        Api::OpenaiResponses => vec![
            r#"{"type":"response.output_text.delta","item_id":"\ud83d","delta":"a\ud83d"}"#,
            r#"{"type":"response.completed","response":{"id":"\ud83d","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a\ud83d"}]}],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}}"#,
        ],
        Api::Anthropic => vec![
            r#"{"type":"message_start","message":{"id":"\ud83d","usage":{"input_tokens":1,"note":"\ud83d"}}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a\ud83d"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"\ud83d"},"usage":{"output_tokens":2,"note":"\ud83d"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        Api::Gemini => vec![
            r#"{"candidates":[{"content":{"parts":[{"text":"a\ud83d"}]},"finishReason":"STOP","finishMessage":"\ud83d"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"totalTokenCount":3,"note":"\ud83d"}}"#,
        ],
        Api::Ollama => vec![
            r#"{"model":"\ud83d","message":{"content":"a\ud83d"},"done":true,"done_reason":"stop","prompt_eval_count":1,"eval_count":2}"#,
        ],
        Api::Tgi => vec![
            r#"{"token":{"text":"a\ud83d","special":false},"generated_text":"a\ud83d","details":{"finish_reason":"length","generated_tokens":2,"input_length":1,"note":"\ud83d"}}"#,
        ],
    }
}

#[test]
fn a_surrogate_alone_loses_neither_finish_nor_counts_of_its_event() {
    for api in Api::ALL {
        let (body, kind) = framed(*api, &cut_character(*api));
        let judged = judged(*api, traced(*api, Some(kind), [&body[..]]));
        assert_eq!(judged.outcome, Outcome::Ok, "{api:?} {:?}", judged.trace);
        let usage = judged.trace.usage.expect("counts");
        assert_eq!((usage.output, usage.bad), (Some(2), false), "{api:?}");
        assert_eq!(judged.trace.text.as_deref(), Some("a\u{FFFD}"), "{api:?}");
        let repaired = measure::judge::Flag::TextRepaired;
        assert!(judged.flags.contains(&repaired), "{api:?}");
    }
}

/// Members that come again behind.
const TWICE: &str = r#"{"choices":null,"type":null,"done":false,"details":null,"candidates":null,"#;

#[test]
fn a_key_that_stands_twice_loses_nothing_either() {
    for api in Api::ALL {
        let events: Vec<String> = cut_character(*api)
            .into_iter()
            .map(|event| event.replacen('{', TWICE, 1))
            .collect();
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let (body, kind) = framed(*api, &events);
        let judged = judged(*api, traced(*api, Some(kind), [&body[..]]));
        assert_eq!(judged.outcome, Outcome::Ok, "{api:?} {:?}", judged.trace);
        assert_eq!(
            judged.trace.usage.and_then(|usage| usage.output),
            Some(2),
            "{api:?}"
        );
    }
}
