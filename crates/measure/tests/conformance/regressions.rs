//! Owns one test for each fault that fuzzing or mutation found, named by it.

use measure::api::Api;
use measure::judge::{Failure, Flag, Outcome};

use super::{framed, judged, traced};

const STREAM: Option<&str> = Some("text/event-stream");
const HI: &str = r#"data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;

fn outcome(api: Api, body: &str) -> (Outcome, Vec<Flag>) {
    let judged = judged(api, traced(api, STREAM, [body.as_bytes()]));
    (judged.outcome, judged.flags)
}

/// What a body is was decided by its first piece alone, so that a cut in `data` made it nothing.
#[test]
fn a_cut_within_the_first_word_of_a_body_changes_nothing() {
    let events = format!("\u{feff}\n{HI}\n\ndata: [DONE]\n\n");
    let lines = "\n {\"response\":\"Hi\",\"done\":true,\"done_reason\":\"stop\"}\n";
    let array = " [{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"STOP\"}]}]";
    for (api, body) in [
        (Api::OpenaiChat, events.as_bytes()),
        (Api::Ollama, lines.as_bytes()),
        (Api::Gemini, array.as_bytes()),
    ] {
        let whole = traced(api, None, [body]);
        assert_eq!(judged(api, whole.clone()).outcome, Outcome::Ok, "{api:?}");
        for cut in 0..=body.len() {
            let (one, other) = body.split_at(cut);
            assert_eq!(
                traced(api, None, [one, other]),
                whole,
                "{api:?} cut at {cut}"
            );
        }
    }
}

/// A finish behind the sentinel completed an answer that was not complete.
#[test]
fn a_choice_that_finishes_behind_the_sentinel_has_not_finished() {
    let body = r#"data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"},{"index":1,"delta":{"content":"b"}}]}

data: [DONE]

data: {"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}

"#;
    let (outcome, _) = outcome(Api::OpenaiChat, body);
    assert_eq!(outcome, Outcome::Failed(Failure::Truncated));
}

/// A jump of the numbers was forgotten where the event that showed it lacked its blank line.
#[test]
fn a_gap_shown_by_an_unterminated_last_event_is_a_gap() {
    let body = r#"data: {"type":"response.output_text.delta","sequence_number":1,"delta":"Hi"}

data: {"type":"response.completed","sequence_number":3,"response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}}"#;
    let (found, flags) = outcome(Api::OpenaiResponses, body);
    assert_eq!(found, Outcome::Ok);
    assert!(flags.contains(&Flag::SeqGap), "{flags:?}");
    let (found, _) = outcome(
        Api::OpenaiResponses,
        &body.replace(r#""text":"Hi""#, r#""text":"Hi!""#),
    );
    assert_eq!(found, Outcome::Failed(Failure::ProtocolError));
}

/// What stood in a read behind the event that met a limit was still read; with another cut it was
/// not.
#[test]
fn nothing_counts_behind_an_event_that_met_a_limit() {
    let deep = "[".repeat(200);
    let body = format!("data: {{\"a\":{deep}\n\ndata: nonsense\n\ndata: {{\"error\":\"x\"}}\n\n");
    let (found, _) = outcome(Api::OpenaiChat, &body);
    assert_eq!(found, Outcome::Failed(Failure::LimitExceeded));
    let trace = traced(Api::OpenaiChat, STREAM, [body.as_bytes()]);
    assert_eq!((trace.malformed, trace.error), (None, None));
}

/// An error behind the sentinel turned an answer that was over into a failure, or left no trace.
#[test]
fn an_error_behind_the_sentinel_is_noted_and_no_more() {
    for error in ["data: {\"error\":\"gone\"}", "error: gone"] {
        let (found, flags) = outcome(
            Api::OpenaiChat,
            &format!("{HI}\n\ndata: [DONE]\n\n{error}\n\n"),
        );
        assert_eq!(
            (found, flags),
            (Outcome::Ok, vec![Flag::PostDoneData]),
            "{error}"
        );
    }
}

/// A count that is none went by unseen where the output's count was sound.
#[test]
fn a_prompt_count_that_is_none_is_inconsistent() {
    let usage = r#","usage":{"prompt_tokens":1.5,"completion_tokens":1}}"#;
    let body = format!(
        "{}{usage}\n\ndata: [DONE]\n\n",
        HI.strip_suffix('}').expect("an object")
    );
    let (found, flags) = outcome(Api::OpenaiChat, &body);
    assert_eq!((found, flags), (Outcome::Ok, vec![Flag::UsageInconsistent]));
}

/// Sums stopped at the largest number, and so agreed with a total that is the largest number.
#[test]
fn a_sum_beyond_the_largest_number_agrees_with_no_total() {
    let most = u64::MAX;
    let usage = format!(
        r#","usage":{{"prompt_tokens":{most},"completion_tokens":1,"total_tokens":{most}}}}}"#
    );
    let chunk = HI.strip_suffix('}').expect("an object");
    let body = format!("{chunk}{usage}\n\ndata: [DONE]\n\n");
    let (found, flags) = outcome(Api::OpenaiChat, &body);
    assert_eq!((found, flags), (Outcome::Ok, vec![Flag::UsageInconsistent]));
}

/// A server that writes an empty reason on every chunk, and is cut, was taken for one that finished.
#[test]
fn an_empty_finish_reason_on_every_chunk_is_no_finish() {
    for word in ["", "null"] {
        let body = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"Hi\"}},\"finish_reason\":\"{word}\"}}]}}\n\n"
        );
        let truncated = Outcome::Failed(Failure::Truncated);
        assert_eq!(outcome(Api::OpenaiChat, &body).0, truncated, "{word:?}");
    }
    let gemini = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"\"}]}\n\n";
    let truncated = Outcome::Failed(Failure::Truncated);
    assert_eq!(outcome(Api::Gemini, gemini).0, truncated);
}

/// A proxy's page among the events went unseen where the answer was then completed.
#[test]
fn a_page_in_html_among_the_events_is_no_answer() {
    let body = format!("<!DOCTYPE html>\n<p>502</p>\n\n{HI}\n\ndata: [DONE]\n\n");
    let wrong = Outcome::Failed(Failure::ProtocolError);
    assert_eq!(outcome(Api::OpenaiChat, &body).0, wrong);
    let body = format!("{HI}\n\n<html>\n\ndata: [DONE]\n\n");
    assert_eq!(outcome(Api::OpenaiChat, &body).0, wrong);
}

/// An event with content and one that ends the answer well, in each API.
fn answer(api: Api) -> [&'static str; 2] {
    match api {
        Api::OpenaiChat => [
            r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        ],
        Api::OpenaiCompletions => [
            r#"{"choices":[{"index":0,"text":"Hi","finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}"#,
        ],
        Api::OpenaiResponses => [
            r#"{"type":"response.output_text.delta","delta":"Hi"}"#,
            r#"{"type":"response.completed","response":{"status":"completed"}}"#,
        ],
        Api::Anthropic => [
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        ],
        Api::Gemini => [
            r#"{"candidates":[{"index":0,"content":{"parts":[{"text":"Hi"}]}}]}"#,
            r#"{"candidates":[{"index":0,"content":{"parts":[]},"finishReason":"STOP"}]}"#,
        ],
        Api::Ollama => [
            r#"{"response":"Hi","done":false}"#,
            r#"{"response":"","done":true,"done_reason":"stop"}"#,
        ],
        Api::Tgi => [
            r#"{"token":{"text":"Hi","special":false}}"#,
            r#"{"token":{"text":"</s>","special":true},"details":{"finish_reason":"eos_token"}}"#,
        ],
    }
}

/// The outcome of events, framed as the API's are.
fn of_events(api: Api, events: &[&str]) -> Outcome {
    let (body, content_type) = framed(api, events);
    judged(api, traced(api, Some(content_type), [&body[..]])).outcome
}

/// An error was looked for by its word, so that an escape in the word hid it and the answer was ok.
#[test]
fn an_error_whose_words_are_escaped_is_an_error_in_every_api() {
    for api in Api::ALL {
        let [content, end] = answer(*api);
        assert_eq!(of_events(*api, &[content, end]), Outcome::Ok, "{api:?}");
        for error in [
            r#"{"\u0065rror":{"message":"engine died","code":500}}"#,
            r#"{"\u0065rro\u0072":"engine died"}"#,
            r#"{"type":"\u0065rror","message":"engine died"}"#,
            r#"{"type":"respons\u0065.failed","response":{}}"#,
            r#"{"choices":[{"index":0,"delta":{},"e\u0072ror":{"message":"engine died"}}]}"#,
        ] {
            let found = of_events(*api, &[content, error, end]);
            let failed = Outcome::Failed(Failure::ServerError);
            assert_eq!(found, failed, "{api:?} {error}");
        }
    }
    let array = r#"[{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]},{"\u0065rror":{"code":503}}]"#;
    let found = traced(Api::Gemini, Some("application/json"), [array.as_bytes()]);
    let failed = Outcome::Failed(Failure::ServerError);
    assert_eq!(judged(Api::Gemini, found).outcome, failed);
    let loose = format!("{HI}\n\n{{\"\\u0065rror\":\"gone\"}}\n\ndata: [DONE]\n\n");
    assert_eq!(outcome(Api::OpenaiChat, &loose).0, failed);
}

/// A later end overwrote a failing one, and so did one beside it: an answer that a filter had cut
/// was ok.
#[test]
fn a_failing_end_holds_whatever_ends_well_beside_or_behind_it() {
    let chat = |index, reason| {
        format!(
            r#"{{"choices":[{{"index":{index},"delta":{{"content":"Hi"}},"finish_reason":"{reason}"}}]}}"#
        )
    };
    let text = |index, reason| {
        format!(r#"{{"choices":[{{"index":{index},"text":"Hi","finish_reason":"{reason}"}}]}}"#)
    };
    let message =
        |reason| format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#);
    let gemini = |index, reason| {
        format!(
            r#"{{"candidates":[{{"index":{index},"content":{{"parts":[{{"text":"Hi"}}]}},"finishReason":"{reason}"}}]}}"#
        )
    };
    let both = r#"{"choices":[{"index":1,"delta":{"content":"a"},"finish_reason":"content_filter"},{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}"#;
    let block = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"candidates":[]}"#;
    let (blocked, failed) = (Failure::Blocked, Failure::ServerError);
    for (api, failing, good, failure) in [
        (
            Api::OpenaiChat,
            chat(0, "content_filter"),
            chat(0, "stop"),
            blocked,
        ),
        (
            Api::OpenaiChat,
            chat(1, "content_filter"),
            chat(0, "stop"),
            blocked,
        ),
        (Api::OpenaiChat, both.to_owned(), chat(0, "stop"), blocked),
        (
            Api::OpenaiChat,
            chat(0, "insufficient_system_resource"),
            chat(0, "stop"),
            failed,
        ),
        (
            Api::OpenaiCompletions,
            text(0, "content_filter"),
            text(0, "stop"),
            blocked,
        ),
        (
            Api::OpenaiCompletions,
            text(1, "content_filter"),
            text(0, "stop"),
            blocked,
        ),
        (
            Api::Anthropic,
            message("refusal"),
            message("end_turn"),
            blocked,
        ),
        (
            Api::Anthropic,
            message("error"),
            message("end_turn"),
            failed,
        ),
        (Api::Gemini, gemini(0, "SAFETY"), gemini(0, "STOP"), blocked),
        (Api::Gemini, gemini(1, "SAFETY"), gemini(0, "STOP"), blocked),
        (Api::Gemini, block.to_owned(), gemini(0, "STOP"), blocked),
    ] {
        let [content, _] = answer(api);
        for events in [[content, &failing, &good], [content, &good, &failing]] {
            assert_eq!(
                of_events(api, &events),
                Outcome::Failed(failure),
                "{api:?} {events:?}"
            );
        }
    }
    let [content, _] = answer(Api::Gemini);
    let found = of_events(Api::Gemini, &[content, block]);
    assert_eq!(found, Outcome::Failed(blocked));
}

/// One candidate's end was taken for the end of all.
#[test]
fn a_candidate_without_its_finish_is_cut_off_whatever_another_did() {
    let two = r#"{"candidates":[{"index":0,"content":{"parts":[{"text":"a"}]}},{"index":1,"content":{"parts":[{"text":"b"}]}}]}"#;
    let end = |index| format!(r#"{{"candidates":[{{"index":{index},"finishReason":"STOP"}}]}}"#);
    let found = of_events(Api::Gemini, &[two, &end(0)]);
    assert_eq!(found, Outcome::Failed(Failure::Truncated));
    assert_eq!(
        of_events(Api::Gemini, &[two, &end(0), &end(1)]),
        Outcome::Ok
    );
}

/// Elements without commas between them were read all the same.
#[test]
fn an_array_whose_commas_are_missing_is_no_array() {
    let [content, end] = answer(Api::Gemini);
    for (body, expected) in [
        (format!("[{content},{end}]"), Outcome::Ok),
        (
            format!("[{content}{end}]"),
            Outcome::Failed(Failure::ProtocolError),
        ),
        (
            format!("[{content}\n\n{end}\n]"),
            Outcome::Failed(Failure::ProtocolError),
        ),
        (
            format!("[{content},,{end}]"),
            Outcome::Failed(Failure::ProtocolError),
        ),
        (
            format!("[{content},{end},]"),
            Outcome::Failed(Failure::ProtocolError),
        ),
    ] {
        let found = traced(Api::Gemini, Some("application/json"), [body.as_bytes()]);
        assert_eq!(judged(Api::Gemini, found).outcome, expected, "{body}");
    }
}

/// Numbers that began too high were taken for the server's beginning, so that what had come before
/// them was not missed.
#[test]
fn a_stream_whose_first_events_are_lost_has_a_gap() {
    let delta = r#"{"type":"response.output_text.delta","sequence_number":5,"delta":"Hi"}"#;
    let end = |text: &str| {
        format!(
            r#"{{"type":"response.completed","sequence_number":6,"response":{{"status":"completed","output":[{{"content":[{{"type":"output_text","text":"{text}"}}]}}]}}}}"#
        )
    };
    let found = |events: &[&str]| {
        let (body, content_type) = framed(Api::OpenaiResponses, events);
        let trace = traced(Api::OpenaiResponses, Some(content_type), [&body[..]]);
        let judged = judged(Api::OpenaiResponses, trace);
        (judged.outcome, judged.flags.contains(&Flag::SeqGap))
    };
    let lost = Outcome::Failed(Failure::ProtocolError);
    assert_eq!(found(&[delta, &end("Hi")]), (Outcome::Ok, true));
    assert_eq!(found(&[delta, &end("Oh! Hi")]), (lost, true));
    let silent =
        r#"{"type":"response.completed","sequence_number":6,"response":{"status":"completed"}}"#;
    assert_eq!(found(&[delta, silent]), (lost, true));
    let created = r#"{"type":"response.created","sequence_number":1,"response":{"id":"r"}}"#;
    let delta = delta.replace('5', "2");
    let silent = silent.replace('6', "3");
    assert_eq!(found(&[created, &delta, &silent]), (Outcome::Ok, false));
}

/// The numbers of TGI's tokens, and the text that it repeats, were not looked at.
#[test]
fn a_token_that_never_came_is_missed() {
    let token =
        |index: u64| format!(r#"{{"index":{index},"token":{{"text":"a","special":false}}}}"#);
    let last = |index: u64, text: &str| {
        format!(
            r#"{{"index":{index},"token":{{"text":"b","special":false}},"generated_text":{text},"details":{{"finish_reason":"length"}}}}"#
        )
    };
    let found = |events: &[&str]| {
        let (body, content_type) = framed(Api::Tgi, events);
        let judged = judged(Api::Tgi, traced(Api::Tgi, Some(content_type), [&body[..]]));
        (judged.outcome, judged.flags.contains(&Flag::SeqGap))
    };
    let lost = Outcome::Failed(Failure::ProtocolError);
    let (one, two) = (token(1), token(2));
    assert_eq!(
        found(&[&one, &two, &last(3, "\"aab\"")]),
        (Outcome::Ok, false)
    );
    assert_eq!(found(&[&one, &last(3, "\"aab\"")]), (lost, true));
    assert_eq!(found(&[&one, &last(3, "null")]), (lost, true));
    assert_eq!(found(&[&one, &last(3, "\"ab\"")]), (Outcome::Ok, true));
    assert_eq!(found(&[&one, &last(2, "\"ab and more\"")]), (lost, false));
}

/// A last event was a good end whatever its response said of itself, and without one.
#[test]
fn a_completed_event_whose_response_is_not_completed_is_no_good_end() {
    let [content, _] = answer(Api::OpenaiResponses);
    for (response, failure) in [
        (r#","response":{"status":"cancelled"}"#, Failure::Truncated),
        (
            r#","response":{"status":"in_progress"}"#,
            Failure::Truncated,
        ),
        (r#","response":{"status":"queued"}"#, Failure::Truncated),
        (r#","response":{"status":"failed"}"#, Failure::ServerError),
        ("", Failure::ProtocolError),
        (r#","response":null"#, Failure::ProtocolError),
    ] {
        let end = format!(r#"{{"type":"response.completed"{response}}}"#);
        let found = of_events(Api::OpenaiResponses, &[content, &end]);
        assert_eq!(found, Outcome::Failed(failure), "{end}");
    }
}

/// Only the last of a server's running counts was looked at, whatever it had counted before.
#[test]
fn a_running_count_that_falls_is_inconsistent() {
    let chunk = |index: u64, count: u64| {
        format!(
            r#"{{"choices":[{{"index":{index},"delta":{{"content":"abc"}},"finish_reason":"stop"}}],"usage":{{"completion_tokens":{count}}}}}"#
        )
    };
    let total = |count: u64| format!(r#"{{"choices":[],"usage":{{"completion_tokens":{count}}}}}"#);
    let found = |events: &[String]| {
        let events: Vec<&str> = events
            .iter()
            .map(String::as_str)
            .chain(["[DONE]"])
            .collect();
        let (body, content_type) = framed(Api::OpenaiChat, &events);
        let trace = traced(Api::OpenaiChat, Some(content_type), [&body[..]]);
        let judged = judged(Api::OpenaiChat, trace);
        assert_eq!(judged.outcome, Outcome::Ok);
        (
            judged.flags.contains(&Flag::UsageInconsistent),
            judged.tokens.inconsistent,
        )
    };
    let (is_flagged, text) = found(&[chunk(0, 10), chunk(0, 20), chunk(0, 30), total(3)]);
    let text = text.expect("a reason");
    assert!(
        is_flagged && text.contains("states 3 ") && text.contains("stated 30 "),
        "{text}"
    );
    assert!(found(&[chunk(0, 3), chunk(0, 2), chunk(0, 3), total(3)]).0);
    assert!(!found(&[chunk(0, 1), chunk(0, 2), chunk(0, 3), total(3)]).0);
    // Some servers count each of several choices apart.
    assert!(!found(&[chunk(0, 1), chunk(1, 1), chunk(0, 3), chunk(1, 2), total(5)]).0);
}

/// A page in HTML behind the sentinel left no trace where it was framed as nothing.
#[test]
fn a_page_in_html_behind_the_sentinel_is_noted() {
    for page in ["<html>502</html>", "data: <html>502</html>"] {
        let body = format!("{HI}\n\ndata: [DONE]\n\n{page}\n\n");
        let noted = (Outcome::Ok, vec![Flag::PostDoneData]);
        assert_eq!(outcome(Api::OpenaiChat, &body), noted, "{page}");
    }
}
