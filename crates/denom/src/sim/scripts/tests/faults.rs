//! Owns the check that each script plays the fault it is named for, byte by byte.

use std::io::Read;

use flate2::read::{GzDecoder, ZlibDecoder};

use super::heard::hear;
use super::*;
use Dialect::{AnthropicMessages, GeminiArray, GeminiSse, OllamaChat, OpenaiChat, OpenaiResponses};

fn bytes_by(name: &str, dialect: Dialect) -> Vec<u8> {
    let ask = Ask {
        dialect,
        max_tokens: Some(12),
        ..Ask::of("m")
    };
    body_of(&made(name, &ask))
}

fn text_by(name: &str, dialect: Dialect) -> String {
    String::from_utf8(bytes_by(name, dialect)).expect("the script is text")
}

fn chat(name: &str) -> String {
    text_by(name, OpenaiChat)
}

fn header(script: &Script, name: &str) -> Option<String> {
    let found = script.headers.iter().find(|(found, _)| found == name);
    found.map(|(_, value)| value.clone())
}

#[test]
fn other_spellings_are_normal_once_they_are_undone() {
    for &dialect in Dialect::ALL.iter().filter(|dialect| dialect.is_sse()) {
        let plain = text_by("normal", dialect);
        let crlf = text_by("crlf", dialect);
        assert_eq!(crlf.matches('\n').count(), crlf.matches("\r\n").count());
        assert!(crlf.replace("\r\n", "\n") == plain);
        let cr = text_by("cr", dialect);
        assert!(!cr.contains('\n'));
        assert!(cr.replace('\r', "\n") == plain);
        let mixed = text_by("mixed-eol", dialect);
        assert!(mixed.replace("\r\n", "\n").replace('\r', "\n") == plain);
        assert!(mixed.contains("\r\n") && mixed.contains('\r') && mixed.contains('\n'));
        for name in ["bom", "split-bom"] {
            assert_eq!(
                text_by(name, dialect).strip_prefix('\u{feff}'),
                Some(plain.as_str())
            );
        }
        let bare = text_by("nospace", dialect);
        assert!(!bare.contains("\ndata: ") && !bare.starts_with("data: "));
        assert_eq!(
            bare.replace("data:", "").replace("event:", ""),
            plain
                .replace("data: ", "")
                .replace("data:", "")
                .replace("event: ", "")
        );
    }
    let split = made("split-bom", &Ask::of("split-bom"));
    let first: Vec<usize> = split
        .timeline()
        .iter()
        .take(3)
        .map(|(_, b)| b.len())
        .collect();
    assert_eq!(first, [1, 1, 1]);
    assert_eq!(made("one-byte-writes", &Ask::of("a")).most_at_once, Some(1));
    let signs = chat("one-byte-emoji");
    assert!(signs.contains('🙂') && signs.contains("\\ud83d\\ude42"));
}

#[test]
fn sentinels_are_missing_doubled_or_followed() {
    assert!(chat("done-unclosed").ends_with("data: [DONE]"));
    assert!(text_by("done-unclosed", AnthropicMessages).ends_with("\"message_stop\"}"));
    assert_eq!(chat("done-twice").matches("data: [DONE]\n\n").count(), 2);
    let after = chat("after-done");
    let (_, behind) = after
        .split_once("[DONE]\n\n")
        .expect("the sentinel is there");
    assert_eq!(behind.matches("\"content\"").count(), 3);
    let bare = chat("done-without-finish");
    assert!(bare.ends_with("[DONE]\n\n") && !bare.contains("\"finish_reason\":\""));
    let array = text_by("array-without-end", GeminiArray);
    assert!(array.starts_with('[') && !array.ends_with(']') && array.contains("finishReason"));
    let last = text_by("no-done-reason", OllamaChat);
    assert!(last.contains("\"done\":true") && !last.contains("done_reason"));
    assert!(last.contains("\"eval_count\":12"));
}

#[test]
fn errors_stand_where_their_servers_put_them() {
    let field = chat("error-field");
    assert!(field.contains("\n\nerror: {") && field.ends_with("data: [DONE]\n\n"));
    assert!(chat("choice-error").contains("\"choices\":[{\"delta\":{},\"error\":{"));
    assert!(chat("x-groq-error").contains("\"x_groq\":{\"error\":\"over capacity\""));
    assert!(chat("router-error").contains("\"finish_reason\":\"error\""));
    assert!(chat("finish-error").contains("\"finish_reason\":\"error\""));
    assert!(text_by("finish-error", OpenaiResponses).contains("event: response.failed\n"));
    let bare = text_by("bare-error", GeminiSse);
    let (_, error) = bare.split_once("\n\n{\n").expect("it stands unframed");
    assert!(serde_json::from_str::<Value>(&format!("{{{error}")).is_ok());
    assert!(!chat("error-no-done").contains("[DONE]"));
    let early = chat("early-error");
    assert!(early.starts_with("data: {\"error\""));
    assert!(text_by("early-error", OllamaChat).starts_with("{\"error\":\""));
    let blocked = text_by("prompt-blocked", GeminiArray);
    assert!(blocked.contains("blockReason") && blocked.ends_with(']'));
}

#[test]
fn a_torn_string_is_torn_inside_its_text() {
    for (name, ending) in [
        ("cut-in-string", Ending::Cut),
        ("reset-in-string", Ending::Reset),
        ("end-in-string", Ending::Proper),
    ] {
        for &dialect in Dialect::ALL {
            let ask = Ask {
                dialect,
                ..Ask::of(name)
            };
            let script = made(name, &ask);
            let body = body_of(&script);
            // The eleventh word, by half.
            assert!(body.ends_with(b" aaa"), "{name} {dialect:?}");
            assert_eq!(script.ending().map(|(_, ending)| ending), Some(ending));
            assert_eq!(script.tokens(), 10, "{name} {dialect:?}");
        }
    }
}

#[test]
fn preludes_come_first_and_say_nothing() {
    for (name, choices) in [
        ("azure-prelude", "\"choices\":[]"),
        ("choices-null", "\"choices\":null"),
        ("choices-missing", ""),
    ] {
        let body = chat(name);
        let (first, rest) = body.split_once("\n\n").expect("there are events");
        assert!(
            first.contains(choices) && !first.contains("delta"),
            "{first}"
        );
        assert_eq!(hear(OpenaiChat, rest).usage, Some((16, 12, 0)));
    }
}

#[test]
fn counts_are_wrong_as_named() {
    let usage = |name: &str| {
        let body = chat(name);
        let (_, usage) = body.split_once("\"usage\":{").expect("usage is told");
        let (usage, _) = usage.split_once('}').expect("it ends");
        serde_json::from_str::<Value>(&format!("{{{usage}}}")).expect("it is JSON")
    };
    assert_eq!(usage("wrong-usage")["completion_tokens"], 5);
    assert_eq!(usage("wrong-usage")["total_tokens"], 16 + 5);
    assert_eq!(usage("wrong-total")["completion_tokens"], 12);
    assert_eq!(usage("wrong-total")["total_tokens"], 16 + 12 + 7);
    let hidden = hear(OpenaiChat, &chat("length-hidden"));
    assert_eq!(hidden.usage, Some((16, 12, 12)));
    assert_eq!(
        (hidden.answer.as_str(), hidden.finish.as_deref()),
        ("", Some("length"))
    );
}

/// The numbers of all events of a Responses stream, and its text.
fn numbered(name: &str) -> (Vec<u64>, usize) {
    let body = text_by(name, OpenaiResponses);
    let events = body.split("data: ").skip(1);
    let events: Vec<Value> = events
        .map(|event| event.split('\n').next().unwrap_or_default())
        .map(|data| serde_json::from_str(data).expect("data is JSON"))
        .collect();
    let deltas = events
        .iter()
        .filter(|e| e["type"] == "response.output_text.delta");
    let deltas = deltas.count();
    let numbers = events
        .iter()
        .map(|e| e["sequence_number"].as_u64().expect("numbered"));
    (numbers.collect(), deltas)
}

#[test]
fn sequence_numbers_show_the_loss_and_the_double() {
    let steps = |numbers: &[u64]| -> Vec<u64> {
        numbers.windows(2).map(|pair| pair[1] - pair[0]).collect()
    };
    let odd = |name: &str| -> (Vec<u64>, usize) {
        let (numbers, deltas) = numbered(name);
        (
            steps(&numbers)
                .into_iter()
                .filter(|step| *step != 1)
                .collect(),
            deltas,
        )
    };
    assert_eq!(odd("normal"), (vec![], 12));
    assert_eq!(odd("seq-gap"), (vec![2], 11));
    assert_eq!(odd("seq-jump"), (vec![2], 12));
    assert_eq!(odd("duplicate-event"), (vec![0], 13));
    let starts = text_by("second-start", AnthropicMessages);
    assert_eq!(starts.matches("event: message_start").count(), 2);
    assert!(starts.contains("msg_sim_other"));
}

#[test]
fn compressed_streams_are_normal_once_they_are_read() {
    let plain = bytes_by("normal", OpenaiChat);
    let mut read = Vec::new();
    let body = bytes_by("gzip", OpenaiChat);
    // The trailer is not sent: what was flushed can be read all the same.
    let _ = GzDecoder::new(body.as_slice()).read_to_end(&mut read);
    assert!(read == plain);
    read.clear();
    let body = bytes_by("deflate", OpenaiChat);
    let _ = ZlibDecoder::new(body.as_slice()).read_to_end(&mut read);
    assert!(read == plain);
    read.clear();
    let body = bytes_by("br", OpenaiChat);
    let _ = brotli::Decompressor::new(body.as_slice(), 4096).read_to_end(&mut read);
    assert!(read == plain);
    for (name, coding) in [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("br", "br"),
        ("gzip-bomb", "gzip"),
    ] {
        let script = made(name, &Ask::of(name));
        assert_eq!(header(&script, "content-encoding").as_deref(), Some(coding));
    }
}

/// Bombs are small on the wire and in memory. Only their beginning is unpacked here.
#[test]
fn bombs_are_small_and_become_large() {
    const READ: u64 = 16 << 20;
    for (name, most) in [("gzip-bomb", 2 << 20), ("br-bomb", 64 << 10)] {
        let script = made(name, &Ask::of(name));
        let body = body_of(&script);
        assert!(body.len() < most, "{name} has {} bytes", body.len());
        let held: u64 = script.steps.iter().map(|step| step.act.held()).sum();
        assert!(held < 8 << 10, "{name} holds {held}");
        let mut read = Vec::new();
        let unpacked = if name == "br-bomb" {
            brotli::Decompressor::new(body.as_slice(), 4096)
                .take(READ)
                .read_to_end(&mut read)
        } else {
            GzDecoder::new(body.as_slice())
                .take(READ)
                .read_to_end(&mut read)
        };
        assert_eq!(unpacked.ok(), Some(16 << 20), "{name}");
        assert!(read.iter().all(|byte| *byte == b' '));
    }
}

#[test]
fn what_is_too_much_is_held_once() {
    let held = |script: &Script| -> u64 { script.steps.iter().map(|step| step.act.held()).sum() };
    let huge = made("huge-event", &Ask::of("huge-event"));
    let sent: usize = huge.timeline().iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(sent > 32 << 20 && held(&huge) < 128 << 10);
    let body = body_of(&huge);
    let longest = body.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
    assert!(longest > Some(32 << 20));
    assert!(hear(OpenaiChat, &String::from_utf8_lossy(&body)).done);
    for name in ["endless", "endless-fast", "endless-line", "comments-only"] {
        let script = made(name, &Ask::of(name));
        assert!(
            script
                .steps
                .iter()
                .any(|step| matches!(step.act, Act::Repeat { count: None, .. }))
        );
        assert!(held(&script) < 128 << 10, "{name}");
    }
    let deep = chat("deep-json");
    assert!(deep.contains(&"[".repeat(100_000)));
}

#[test]
fn texts_are_as_hostile_as_named() {
    let has = |name: &str, bytes: &[u8]| {
        let body = bytes_by(name, OpenaiChat);
        assert!(
            body.windows(bytes.len()).any(|window| window == bytes),
            "{name}"
        );
    };
    has("lone-surrogate", b"\\ud83d aaa");
    has("invalid-utf8", b"\xff\xc3 ");
    has("nul-text", b"\\u0000");
    has("line-separators", "\u{2028}".as_bytes());
    has("hostile-text", b"</script>");
    has("hostile-text", b"\\u001b]52;c;");
    has("hostile-text", b"=cmd|");
    has("hostile-text", "\u{202e}".as_bytes());
    has("hostile-model", b"</script>");
    has("hostile-error", b"</script>");
    has("hostile-mid-error", b"</script>");
    has("bad-json", b",,");
    assert!(bytes_by("long-text", OpenaiChat).len() > 1 << 20);
    assert!(bytes_by("long-error", OpenaiChat).len() > 1 << 20);
}

#[test]
fn refusals_have_the_status_and_the_echo_they_are_named_for() {
    for &dialect in Dialect::ALL {
        for (name, status, echo) in [
            ("http401", 401, "k/ey+"),
            ("http401-base64", 401, "ay9leSs="),
            ("http401-percent", 401, "%6B%2F%65%79%2B"),
            ("http403", 403, "k/ey+"),
            ("http422", 422, "k/ey+"),
            ("http404", 404, "http404"),
            ("http500", 500, "engine"),
        ] {
            let ask = Ask {
                dialect,
                key: Some("k/ey+".to_owned()),
                ..Ask::of(name)
            };
            let script = made(name, &ask);
            let body = String::from_utf8(body_of(&script)).expect("it is text");
            assert_eq!(script.status, status, "{name}");
            assert!(body.contains(echo), "{name} {dialect:?}: {body}");
        }
    }
    for (name, after) in [
        ("http429", "7"),
        ("http429-date", "Fri, 31 Dec 2027 23:59:59 GMT"),
        ("http429-junk", "soon"),
        ("http429-huge", "1000000000"),
    ] {
        let script = made(name, &Ask::of(name));
        assert_eq!(header(&script, "retry-after").as_deref(), Some(after));
    }
    let moved = Ask::of("http307=http://127.0.0.1:1/x\r\ny: z");
    let script = made("http307", &moved);
    let expected = "http://127.0.0.1:1/xy: z";
    assert_eq!(header(&script, "location").as_deref(), Some(expected));
}

#[test]
fn a_model_is_loaded_after_some_requests() {
    let status = |model: &str, before| {
        let ask = Ask {
            before,
            ..Ask::of(model)
        };
        made("loading", &ask).status
    };
    assert_eq!(
        [0, 2, 3, 9].map(|n| status("loading", n)),
        [503, 503, 200, 200]
    );
    assert_eq!([0, 1].map(|n| status("loading=1", n)), [503, 200]);
}

/// What the catalog says of tokens is what the scripts bring.
#[test]
fn the_catalog_counts_what_is_delivered() {
    for entry in catalog::entries() {
        for &dialect in entry.dialects {
            for asked in [12, 78] {
                let ask = Ask {
                    dialect,
                    max_tokens: Some(asked),
                    legacy_max_tokens: true,
                    http2: entry.http2,
                    ..Ask::of(entry.name)
                };
                let script = made(entry.name, &ask);
                let Some(expected) = entry.delivered.of(asked) else {
                    continue;
                };
                // Some go on behind the fault, or cannot be read.
                let more = matches!(entry.name, "bad-json" | "deep-json" | "unknown-coding")
                    && expected < script.tokens();
                assert!(
                    script.tokens() == expected || more,
                    "{} {dialect:?} {asked}: {} for {expected}",
                    entry.name,
                    script.tokens()
                );
            }
        }
    }
}
