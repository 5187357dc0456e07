//! Owns the check of answers that are no stream.

use super::*;

/// Without a stream, and from `plainjson` with one: the same tokens in one object at the end.
#[test]
fn a_whole_answer_has_the_tokens_of_its_stream() {
    for (name, tokens, reasoning, usage, end) in [
        ("normal", 64, 0, Some(64), 690),
        ("plainjson", 64, 0, Some(64), 690),
        ("reason", 64, 48, Some(64), 690),
        ("nousage", 64, 0, None, 690),
        ("empty", 0, 0, Some(0), 60),
        ("slow_start", 64, 0, Some(64), 1_230),
    ] {
        let stream = name == "plainjson";
        let ask = Ask {
            stream,
            ..Ask::of(name)
        };
        let script = made(name, &ask);
        let timeline = script.timeline();
        assert_eq!(timeline.len(), 1, "{name}");
        assert_eq!(timeline[0].0, Length::from_millis(end), "{name}");
        let body: Value = serde_json::from_slice(timeline[0].1).expect("the body is JSON");
        let message = &body["choices"][0]["message"];
        let count = |key: &str| message[key].as_str().map_or(0, tokens_of);
        assert_eq!(count("content"), tokens - reasoning, "{name}");
        assert_eq!(count("reasoning_content"), reasoning, "{name}");
        assert_eq!(body["usage"]["completion_tokens"].as_u64(), usage, "{name}");
        assert_eq!(script.framing, Framing::ContentLength, "{name}");
    }
    let ask = Ask {
        stream: false,
        ..Ask::of("stall")
    };
    let stalled = made("stall", &ask);
    assert!(stalled.timeline().is_empty());
    assert!(matches!(stalled.ending(), Some((_, Ending::Stall))));
}

/// A stream that breaks is a body that breaks, and an error in it an error by status.
#[test]
fn a_whole_answer_fails_where_its_stream_does() {
    for (name, status, ending) in [
        ("truncated", 200, Ending::Proper),
        ("cut", 200, Ending::Cut),
        ("reset", 200, Ending::Reset),
        ("miderror", 500, Ending::Proper),
    ] {
        for &dialect in Dialect::ALL {
            let ask = Ask {
                dialect,
                stream: false,
                ..Ask::of(name)
            };
            let script = made(name, &ask);
            assert_eq!(script.status, status, "{name} {dialect:?}");
            assert_eq!(script.ending().map(|(_, ending)| ending), Some(ending));
            let whole = serde_json::from_slice::<Value>(&body_of(&script)).is_ok();
            assert_eq!(whole, status != 200, "{name} {dialect:?}");
            assert_eq!(script.tokens(), 0, "{name} {dialect:?}");
        }
    }
}
