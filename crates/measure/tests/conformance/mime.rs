//! Owns what the web platform tests ask of a content type. A browser refuses what is not named an
//! event stream; here it is read, since a measurement wants to know what came, and noted.

use measure::api::Api;
use measure::judge::{Flag, Outcome};

use super::{judged, traced};

const BODY: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"Moin\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn flags(content_type: Option<&str>, body: &[u8]) -> Option<Vec<Flag>> {
    let api = Api::OpenaiChat;
    let judged = judged(api, traced(api, content_type, [body]));
    (judged.outcome == Outcome::Ok).then_some(judged.flags)
}

#[test]
fn format_mime_trailing_semicolon_and_format_mime_valid_bogus_are_event_streams() {
    for kind in [
        "text/event-stream",
        "text/event-stream;",
        "text/event-stream;x=bogus",
        "text/event-stream; charset=UTF-8",
        "Text/Event-Stream",
        " text/event-stream ",
    ] {
        assert_eq!(flags(Some(kind), BODY), Some(vec![]), "{kind}");
    }
}

#[test]
fn format_mime_bogus_is_read_and_noted() {
    for kind in [
        Some("text/event-stream-bogus"),
        Some("x bogus"),
        Some(""),
        None,
    ] {
        assert_eq!(flags(kind, BODY), Some(vec![Flag::ContentType]), "{kind:?}");
    }
}

#[test]
fn what_is_no_event_stream_by_its_bytes_is_none_whatever_it_is_called() {
    for kind in [None, Some("text/event-stream"), Some("text/html")] {
        assert_eq!(flags(kind, b"<html>sign in</html>"), None, "{kind:?}");
    }
}
