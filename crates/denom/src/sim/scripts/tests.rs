//! Owns the check of every script: its bytes, counts and times, without a socket.

use serde_json::Value;

mod faults;
mod frames;
mod heard;
mod voices;
mod whole;

use super::*;
use crate::sim::dialect::Dialect;
use crate::sim::script::{Act, Ending, Framing};

/// What a naive reader finds in a script. Times are nanoseconds since the request.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Time and tokens of each delta with answer text.
    answer: Vec<(u64, u64)>,
    /// The same for reasoning text.
    reasoning: Vec<(u64, u64)>,
    role: Option<u64>,
    finish: Option<String>,
    usage: Option<u64>,
    reasoning_usage: Option<u64>,
    comments: u64,
    errors: u64,
    done: bool,
    /// Bytes behind the last blank line.
    torn: bool,
}

impl Seen {
    fn read(script: &Script) -> Seen {
        let mut seen = Seen::default();
        let mut rest = String::new();
        for (at, bytes) in script.timeline() {
            rest.push_str(str::from_utf8(bytes).expect("scripts are text"));
            rest = rest.replace("\r\n", "\n");
            while let Some((event, behind)) = rest.split_once("\n\n") {
                seen.event(at.nanos(), event);
                rest = behind.to_owned();
            }
        }
        seen.torn = !rest.is_empty();
        seen
    }

    fn event(&mut self, at: u64, event: &str) {
        if event.starts_with(':') {
            self.comments += 1;
            return;
        }
        let data = event
            .strip_prefix("data:")
            .expect("an event is one data line");
        if data.trim() == "[DONE]" {
            self.done = true;
            return;
        }
        let chunk: Value = serde_json::from_str(data).expect("data is JSON");
        self.errors += u64::from(chunk["error"].is_object());
        let delta = &chunk["choices"][0]["delta"];
        for (key, found) in [
            ("content", &mut self.answer),
            ("reasoning_content", &mut self.reasoning),
        ] {
            match delta[key].as_str() {
                Some(text) if !text.is_empty() => found.push((at, tokens_of(text))),
                _ => {}
            }
        }
        if delta["role"] == "assistant" {
            self.role = Some(at);
        }
        if let Some(reason) = chunk["choices"][0]["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        if chunk["usage"].is_object() {
            let usage = &chunk["usage"];
            assert_eq!(chunk["choices"], Value::Array(Vec::new()));
            self.usage = usage["completion_tokens"].as_u64();
            self.reasoning_usage = usage["completion_tokens_details"]["reasoning_tokens"].as_u64();
        }
    }

    fn tokens(&self) -> u64 {
        let both = self.answer.iter().chain(&self.reasoning);
        both.map(|(_, tokens)| tokens).sum()
    }
}

fn tokens_of(text: &str) -> u64 {
    assert_eq!(text.len() % 8, 0, "{text:?}");
    text.len() as u64 / 8
}

fn asked(max_tokens: u64) -> Ask {
    Ask {
        max_tokens: Some(max_tokens),
        ..Ask::of("any")
    }
}

fn made(name: &str, ask: &Ask) -> Script {
    script(name, ask).unwrap_or_else(|| panic!("no script {name}"))
}

fn seen(name: &str, ask: &Ask) -> (Seen, Script) {
    let script = made(name, ask);
    (Seen::read(&script), script)
}

const MS: u64 = 1_000_000;

/// Streams of 64 tokens in chunks of one: when each token comes, and how the stream ends.
#[test]
fn paced_scripts_bring_a_token_at_a_time() {
    for (name, first, each) in [
        ("normal", 60, 10),
        ("streams", 50, 10),
        ("slow_start", 600, 10),
        ("paced100", 100, 10),
        ("paced20", 100, 50),
        ("nospace", 60, 10),
        ("crlf", 60, 10),
        ("closes", 60, 10),
        ("keepalives", 60, 10),
        ("http400_stream_options", 60, 10),
        ("http400_max_tokens", 60, 10),
    ] {
        let ask = Ask {
            stream_options: name != "http400_stream_options",
            ..Ask::of(name)
        };
        let (seen, script) = seen(name, &ask);
        let answer: Vec<_> = (0..64).map(|k| ((first + each * k) * MS, 1)).collect();
        let expected = Seen {
            answer,
            role: Some(if name == "keepalives" { 60 * MS } else { 0 }),
            finish: Some("stop".to_owned()),
            usage: Some(64),
            comments: if name == "keepalives" { 5 } else { 0 },
            done: true,
            ..Seen::default()
        };
        assert_eq!(seen, expected, "{name}");
        let end = Length::from_millis(first + each * 63);
        assert_eq!(script.ending(), Some((end, Ending::Proper)), "{name}");
    }
}

/// Scripts that hold content back: the deltas, by time and tokens.
#[test]
fn held_scripts_bring_it_all_late() {
    let ones = |at: u64, count: usize| vec![(at * MS, 1); count];
    let cases = [
        ("burst", ones(690, 64), 690, 690),
        ("roleburst", ones(690, 64), 5, 690),
        (
            "firstlate",
            [ones(690, 1), ones(692, 63)].concat(),
            690,
            692,
        ),
        ("onechunk", vec![(690 * MS, 64)], 690, 690),
        (
            "twoclump",
            [ones(345, 32), ones(690, 32)].concat(),
            345,
            690,
        ),
        ("null", ones(0, 64), 0, 0),
    ];
    for (name, answer, role, end) in cases {
        let (seen, script) = seen(name, &asked(64));
        let expected = Seen {
            answer,
            role: Some(role * MS),
            finish: Some("length".to_owned()),
            usage: Some(64),
            done: true,
            ..Seen::default()
        };
        assert_eq!(seen, expected, "{name}");
        let end = Length::from_millis(end);
        assert_eq!(script.ending(), Some((end, Ending::Proper)), "{name}");
    }
}

#[test]
fn a_burst_is_one_write_and_an_unpaced_stream_few() {
    let writes = |name: &str, tokens: u64| made(name, &asked(tokens)).timeline().len();
    assert_eq!(writes("burst", 64), 1);
    assert_eq!(writes("onechunk", 64), 1);
    assert_eq!(writes("roleburst", 64), 2);
    let sizes: Vec<usize> = made("null", &asked(20_000))
        .timeline()
        .iter()
        .map(|(_, bytes)| bytes.len())
        .collect();
    assert!(sizes.iter().all(|size| *size <= 16 * 1024));
    assert!(sizes.len() < 20_000 / 32, "{}", sizes.len());
}

#[test]
fn bursts_brings_a_thousand_tokens_within_a_millisecond_after_a_second() {
    for (asked_for, given) in [(64, 1_000), (1_000, 1_000), (1_500, 1_500)] {
        let (seen, script) = seen("bursts", &asked(asked_for));
        let times: Vec<u64> = seen.answer.iter().map(|(at, _)| *at).collect();
        assert_eq!(times.iter().min(), Some(&(1_000 * MS)));
        assert_eq!(times.iter().max(), Some(&(1_000 * MS + 450_000)));
        assert_eq!((seen.tokens(), seen.usage), (given, Some(given)));
        assert_eq!(script.timeline().len(), 12);
    }
}

#[test]
fn shares_slows_down_with_the_requests_that_are_active() {
    let (seen, script) = seen("shares", &Ask::of("shares"));
    let answer: Vec<_> = (0..64).map(|k| ((50 + 10 * k) * MS, 1)).collect();
    assert_eq!(seen.answer, answer);
    let paced = script.steps.iter().find_map(|step| match step.when {
        When::Paced { .. } => Some(step.when.planned(Length::ZERO, 16).nanos()),
        When::At(_) => None,
    });
    assert_eq!(paced, Some(32_000_005));
}

#[test]
fn spec4_brings_four_tokens_a_chunk() {
    let (seen, script) = seen("spec4", &Ask::of("spec4"));
    let answer: Vec<_> = (0..16).map(|k| ((60 + 40 * k) * MS, 4)).collect();
    assert_eq!(seen.answer, answer);
    assert_eq!(
        script.ending(),
        Some((Length::from_millis(690), Ending::Proper))
    );
    let rest = Seen::read(&made("spec4", &asked(6)));
    assert_eq!(rest.answer, [(60 * MS, 4), (100 * MS, 2)]);
}

#[test]
fn reason_thinks_for_three_quarters() {
    let (seen, _) = seen("reason", &Ask::of("reason"));
    let times = |from: u64, to: u64| {
        (from..to)
            .map(|k| ((60 + 10 * k) * MS, 1))
            .collect::<Vec<_>>()
    };
    assert_eq!(seen.reasoning, times(0, 48));
    assert_eq!(seen.answer, times(48, 64));
    assert_eq!((seen.usage, seen.reasoning_usage), (Some(64), Some(48)));
}

/// Faults: tokens, usage, finish, sentinel, errors, a torn event, and when and how it ends.
#[test]
fn faulty_scripts_fail_as_named() {
    let proper = Ending::Proper;
    #[rustfmt::skip]
    let cases = [
        ("empty",     0,  Some(0),  Some("stop"), true,  0, false, 60,  proper),
        ("miderror",  10, None,     None,         true,  1, false, 160, proper),
        ("truncated", 10, None,     None,         false, 0, false, 160, proper),
        ("cut",       10, None,     None,         false, 0, true,  160, Ending::Cut),
        ("reset",     10, None,     None,         false, 0, false, 160, Ending::Reset),
        ("stall",     5,  None,     None,         false, 0, false, 110, Ending::Stall),
        ("nodone",    64, Some(64), Some("stop"), false, 0, false, 690, proper),
        ("nousage",   64, None,     Some("stop"), true,  0, false, 690, proper),
        ("stoptoken", 63, Some(64), Some("stop"), true,  0, false, 680, proper),
    ];
    for (name, tokens, usage, finish, done, errors, torn, end, ending) in cases {
        let (seen, script) = seen(name, &Ask::of(name));
        assert_eq!((seen.tokens(), seen.usage), (tokens, usage), "{name}");
        assert_eq!(
            (seen.finish.as_deref(), seen.done),
            (finish, done),
            "{name}"
        );
        assert_eq!((seen.errors, seen.torn), (errors, torn), "{name}");
        let ended = (Length::from_millis(end), ending);
        assert_eq!(script.ending(), Some(ended), "{name}");
    }
}

#[test]
fn a_refusal_is_a_status_and_an_error_object() {
    let body = |script: &Script| -> Value {
        serde_json::from_slice(&body_of(script)).expect("an error is JSON")
    };
    for (name, status) in [
        ("http401", 401),
        ("http404", 404),
        ("http429", 429),
        ("http500", 500),
        ("http400_stream_options", 400),
        ("http400_max_tokens", 400),
    ] {
        let ask = Ask {
            legacy_max_tokens: true,
            key: Some("a-key".to_owned()),
            ..Ask::of(name)
        };
        let script = made(name, &ask);
        let message = body(&script)["error"]["message"].clone();
        let message = message.as_str().expect("an error has a message").to_owned();
        assert_eq!(script.status, status, "{name}");
        if let Some(parameter) = name.strip_prefix("http400_") {
            assert!(message.contains(parameter), "{message}");
        }
        assert_eq!(message.contains("a-key"), name == "http401", "{message}");
    }
    assert!(
        made("http429", &Ask::of("m"))
            .headers
            .contains(&("retry-after".to_owned(), "7".to_owned()))
    );
    let page = made("html", &Ask::of("html"));
    assert_eq!(
        (page.status, page.headers[0].1.as_str()),
        (200, "text/html; charset=utf-8")
    );
}

fn body_of(script: &Script) -> Vec<u8> {
    let writes = script.timeline().into_iter();
    writes
        .flat_map(|(_, bytes)| bytes.iter().copied())
        .collect()
}

/// What holds for every script in every API, at any length: it ends once, and no write is empty (an
/// empty HTTP chunk would end the body).
#[test]
fn every_script_is_well_formed_at_any_length() {
    for entry in catalog::entries() {
        let name = entry.name;
        for &dialect in Dialect::ALL {
            // What these hold does not depend on the length, and takes its time to make.
            let costly = name.ends_with("-bomb") || name.starts_with("long-");
            let chat = dialect == Dialect::OpenaiChat;
            let lengths: &[u64] = match (costly, chat) {
                (true, true) => &[3],
                (true, false) => &[],
                (false, true) => &[1, 2, 3, 64],
                (false, false) => &[1, 5],
            };
            for &tokens in lengths {
                let ask = |stream| Ask {
                    dialect,
                    stream,
                    http2: entry.http2,
                    ..asked(tokens)
                };
                well_formed(name, &made(name, &ask(true)));
                well_formed(name, &made(name, &ask(false)));
            }
        }
    }
}

fn well_formed(name: &str, script: &Script) {
    let ends = script
        .steps
        .iter()
        .filter(|step| matches!(step.act, Act::End(_)));
    assert_eq!(ends.count(), 1, "{name}");
    let last = script.steps.last().map(|step| &step.act);
    assert!(matches!(last, Some(Act::End(_))), "{name}");
    let timeline = script.timeline();
    let empty = timeline.iter().find(|(_, bytes)| bytes.is_empty());
    assert_eq!(empty, None, "{name}");
    assert!(timeline.is_sorted_by_key(|(at, _)| *at), "{name}");
}

#[test]
fn usage_is_told_only_when_asked_for() {
    let ask = Ask {
        include_usage: false,
        ..Ask::of("normal")
    };
    let script = made("normal", &ask);
    let bytes = body_of(&script);
    assert!(!String::from_utf8_lossy(&bytes).contains("usage"));
    assert_eq!(script.tokens(), 64);
}

#[test]
fn a_name_that_is_not_listed_has_no_script() {
    assert_eq!(script("nobody", &Ask::of("nobody")), None);
}
