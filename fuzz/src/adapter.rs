//! Owns the target of the adapters: the events of one response, read into the normal form.

use std::sync::OnceLock;

use measure::api::{Api, Event};

/// Names the API to read as; without it the first byte of the input picks one.
const VARIABLE: &str = "FUZZ_API";

fn asked() -> Option<Api> {
    static ASKED: OnceLock<Option<Api>> = OnceLock::new();
    *ASKED.get_or_init(|| {
        let name = std::env::var(VARIABLE).ok()?;
        let found = Api::ALL.iter().find(|api| api.name() == name);
        Some(*found.unwrap_or_else(|| panic!("{VARIABLE}={name} is no API: {:?}", Api::ALL)))
    })
}

/// The API that a byte picks.
pub fn picked(byte: u8) -> Api {
    Api::ALL[usize::from(byte) % Api::ALL.len()]
}

/// One event a line, as text: the decoder hands out nothing else. The first byte's highest bit asks
/// for a second reading that keeps no text, and must come to the same.
pub fn adapter(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let api = asked().unwrap_or_else(|| picked(*first));
    let text = String::from_utf8_lossy(rest);
    let found = read(api, &text, true);
    if first & 0x80 != 0 {
        assert_eq!(
            read(api, &text, false),
            found,
            "keeping the text changes the reading"
        );
    }
}

type Found = (Vec<Result<Event, String>>, bool, Result<Event, String>);

/// The events of a stream, whether it is finished, and the same text as a whole body.
fn read(api: Api, text: &str, keep: bool) -> Found {
    let mut reader = (api.dialect().reader)();
    let mut kept = String::new();
    let mut events = Vec::new();
    for line in text.split('\n') {
        kept.clear();
        let event = reader.read(b"", line, keep.then_some(&mut kept));
        measured(&event, line, &kept);
        events.push(event);
    }
    let finished = reader.is_finished();
    let mut reader = (api.dialect().reader)();
    kept.clear();
    let whole = reader.whole(text, keep.then_some(&mut kept));
    measured(&whole, text, &kept);
    (events, finished, whole)
}

/// No text can be longer than what it was read from: an escape is longer than its character, but
/// for a surrogate alone, and the same text may stand under two names of which one counts.
fn measured(event: &Result<Event, String>, data: &str, kept: &str) {
    let Ok(event) = event else { return };
    let chars = u64::from(event.answer_chars) + u64::from(event.reasoning_chars);
    assert!(
        chars <= data.len() as u64,
        "{chars} characters of {} bytes",
        data.len()
    );
    assert!(
        kept.len() <= data.len(),
        "{} bytes kept of {}",
        kept.len(),
        data.len()
    );
}
