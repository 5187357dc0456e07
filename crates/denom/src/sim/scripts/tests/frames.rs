//! Owns the check of the scripts that need HTTP/2, and of who does not.

use super::*;

/// Scripts that need HTTP/2 say so to who asks for them over HTTP/1.1, and all others are the same
/// over both.
#[test]
fn only_what_needs_http2_differs_over_it() {
    // What these say takes its time to make.
    let costly = |name: &str| name.ends_with("-bomb") || name.starts_with("long-");
    for entry in catalog::entries().filter(|entry| !costly(entry.name)) {
        let ask = |http2| Ask { http2, ..asked(3) };
        let [one, two] = [false, true].map(|http2| made(entry.name, &ask(http2)));
        if entry.http2 {
            let message = String::from_utf8(body_of(&one)).expect("an error is text");
            assert_eq!((one.status, two.status), (505, 200), "{}", entry.name);
            assert!(message.contains("needs HTTP/2"), "{message}");
        } else {
            assert_eq!(one, two, "{}", entry.name);
        }
    }
    let needing = catalog::entries().filter(|entry| entry.http2);
    assert_eq!(needing.count(), 5);
}

#[test]
fn scripts_of_http2_end_as_named() {
    for (name, tokens, end, ending) in [
        ("h2-goaway", 0, 0, Ending::GoneAway),
        ("h2-refused", 0, 0, Ending::RefusedStream),
        ("h2-reset", 10, 160, Ending::ResetStream),
        ("h2-last", 64, 690, Ending::LastStream),
        ("h2-wait", 64, 690, Ending::Pause),
    ] {
        let ask = Ask {
            http2: true,
            ..asked(64)
        };
        let script = made(name, &ask);
        let ended = (Length::from_millis(end), ending);
        assert_eq!(script.ending(), Some(ended), "{name}");
        assert_eq!(script.tokens(), tokens, "{name}");
    }
}
