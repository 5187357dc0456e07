//! Owns OpenAI Responses: how to ask, and how its events read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::loss::{Arrived, Numbers};
use super::{
    Ask, Dialect, Event, Kept, Messages, Owner, Reader, Route, Started, finish, openai_chat, parse,
    text, timing, usage,
};
use crate::trace::Finish;

/// OpenAI Responses.
pub(super) const DIALECT: Dialect = Dialect {
    name: "openai-responses",
    // The terminal event is the finish marker.
    sentinel: false,
    routes: &[Route::both("/responses")],
    owns: &[
        ("/model", Owner::Model),
        ("/max_output_tokens", Owner::Limit),
        ("/input", Owner::Prompt),
    ],
    ask,
    reader: || Box::new(ResponsesReader::default()),
    ..openai_chat::DIALECT
};

fn ask(ask: &Ask<'_>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    let input = match &ask.messages {
        Messages::User(text) => json!(text),
        Messages::Given(turns) => (*turns).clone(),
    };
    body.insert("input".into(), input);
    body.insert("stream".into(), json!(ask.stream));
    body.insert("max_output_tokens".into(), json!(ask.output_tokens));
    // Nothing of a measurement is to stay on a server.
    body.insert("store".into(), json!(false));
    body
}

/// Reads events, and whether any of them is missing.
#[derive(Debug, Default)]
struct ResponsesReader {
    started: Started,
    numbers: Numbers,
    /// The answer text that arrived.
    arrived: Arrived,
    /// Characters of answer text as the closing events repeat it.
    repeated: u64,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    sequence_number: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    item: Option<Item<'a>>,
    #[serde(borrow, default)]
    response: Option<Response<'a>>,
    #[serde(borrow, default)]
    timings: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(borrow, default)]
    output: Option<Vec<Item<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timings: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow, default)]
    reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<Vec<Part<'a>>>,
    #[serde(borrow, default)]
    summary: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
}

impl Item<'_> {
    /// Whether it is a call that the model makes.
    fn is_call(&self) -> bool {
        self.kind.ends_with("_call")
    }
}

impl Reader for ResponsesReader {
    fn read(&mut self, _: &[u8], data: &str, mut kept: Kept<'_>) -> Result<Event, String> {
        let mut event = Event::default();
        let data = data.trim();
        if data.is_empty() {
            return Ok(event);
        }
        if data.starts_with("[DONE]") {
            event.sentinel = true;
            return Ok(event);
        }
        let data: Data<'_> = parse(data)?;
        // The first is number 0. Some servers begin at 1; what is sent first shows that they do.
        let first = u64::from(data.kind == "response.created");
        let repeat = self.numbers.is_repeat(data.sequence_number, first);
        event.gap = self.numbers.gap;
        if repeat {
            return Ok(event);
        }
        match data.kind.as_ref() {
            "response.created" => {
                let response = data.response.as_ref();
                let id = response.and_then(|response| response.id.as_deref());
                event.restarted = self.started.is_another(id);
            }
            "response.output_item.added" => {
                let call = data.item.filter(Item::is_call);
                let name = call.and_then(|call| call.name);
                event.tool_name = text::measure(name, &mut None).chars > 0;
            }
            "response.output_text.done" => {
                let whole = text::measure(data.text, &mut None).chars;
                self.repeated += u64::from(whole);
            }
            "response.completed" | "response.incomplete" => {
                self.end(&mut event, data.response.as_ref());
                event.declared = data.timings.and_then(timing::llama);
            }
            "response.failed" => event.finish = Some(Finish::Error),
            kind => self.delta(&mut event, kind, data.delta, &mut kept),
        }
        Ok(event)
    }

    fn whole(&mut self, body: &str, mut kept: Kept<'_>) -> Result<Event, String> {
        let response: Response<'_> = parse(body.trim())?;
        let mut event = Event::default();
        for item in response.output.iter().flatten() {
            read_item(&mut event, item, &mut kept);
        }
        event.finish = ending(&response);
        event.usage = response.usage.and_then(usage::openai);
        event.declared = response.timings.and_then(timing::llama);
        Ok(event)
    }
}

impl ResponsesReader {
    fn delta(
        &mut self,
        event: &mut Event,
        kind: &str,
        delta: Option<&RawValue>,
        kept: &mut Kept<'_>,
    ) {
        match kind {
            "response.output_text.delta" => {
                let found = text::measure(delta, kept);
                self.arrived.add(found);
                event.answer(found);
            }
            "response.refusal.delta" => event.answer(text::measure(delta, kept)),
            "response.reasoning_text.delta" => event.reasoning(text::measure(delta, kept)),
            "response.reasoning_summary_text.delta" => {
                event.summary = true;
                event.reasoning(text::measure(delta, kept));
            }
            "response.audio.delta" => {
                event.other_output = text::measure(delta, &mut None).chars > 0;
            }
            "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta"
            | "response.mcp_call_arguments.delta"
            | "response.code_interpreter_call_code.delta"
            | "response.shell_call_command.delta"
            | "response.audio.transcript.delta" => event.answer(text::measure(delta, &mut None)),
            _ => {}
        }
    }

    fn end(&mut self, event: &mut Event, response: Option<&Response<'_>>) {
        event.sentinel = true;
        let Some(response) = response else {
            event.lost = Some("the last event has no response".into());
            return;
        };
        event.finish = match response.status {
            // Said to be over, and not how.
            None => Some(Finish::Other),
            Some(_) => ending(response),
        };
        event.usage = response.usage.and_then(usage::openai);
        event.declared = response.timings.and_then(timing::llama);
        let stated = answer_text(response).or((self.repeated > 0).then_some(self.repeated));
        event.lost = self.arrived.lost(stated, self.numbers.gap);
    }
}

/// Characters of answer text in the response that the terminal event repeats; `None` where it
/// repeats none.
fn answer_text(response: &Response<'_>) -> Option<u64> {
    let parts = response
        .output
        .iter()
        .flatten()
        .flat_map(|item| item.content.iter().flatten())
        .filter(|part| part.kind == "output_text");
    let chars: u64 = parts
        .map(|part| u64::from(text::measure(part.text, &mut None).chars))
        .sum();
    (chars > 0).then_some(chars)
}

fn ending(response: &Response<'_>) -> Option<Finish> {
    let called = response.output.iter().flatten().any(Item::is_call);
    match response.status.as_deref()? {
        "completed" if called => Some(Finish::Tool),
        "completed" => Some(Finish::Stop),
        "incomplete" => {
            let details = response.incomplete_details.as_ref();
            let reason = details.and_then(|details| details.reason.as_deref());
            reason.and_then(finish::of).or(Some(Finish::Other))
        }
        "failed" => Some(Finish::Error),
        // Cancelled, queued or still in progress: it has not ended.
        _ => None,
    }
}

fn read_item(event: &mut Event, item: &Item<'_>, kept: &mut Kept<'_>) {
    for part in item.content.iter().flatten() {
        match part.kind.as_ref() {
            "reasoning_text" => event.reasoning(text::measure(part.text, kept)),
            _ => {
                event.answer(text::measure(part.text, kept));
                event.answer(text::measure(part.refusal, kept));
            }
        }
    }
    for part in item.summary.iter().flatten() {
        event.summary = true;
        event.reasoning(text::measure(part.text, kept));
    }
    if item.is_call() {
        event.tool_name |= text::measure(item.name, &mut None).chars > 0;
        event.answer(text::measure(item.arguments, &mut None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reader: &mut ResponsesReader, data: &str) -> Event {
        reader.read(b"", data, None).expect("reads")
    }

    fn delta(number: u64, text: &str) -> String {
        json!({"type": "response.output_text.delta", "sequence_number": number, "delta": text})
            .to_string()
    }

    fn completed(number: u64, text: &str) -> String {
        json!({"type": "response.completed", "sequence_number": number, "response": {
            "id": "r", "status": "completed",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}],
            "usage": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}}})
        .to_string()
    }

    #[test]
    fn a_whole_stream_is_content_then_a_terminal_event_with_counts() {
        let mut reader = ResponsesReader::default();
        let created = r#"{"type":"response.created","sequence_number":0,"response":{"id":"r"}}"#;
        assert!(!read(&mut reader, created).is_content());
        assert_eq!(read(&mut reader, &delta(1, "Hi")).answer_chars, 2);
        assert_eq!(read(&mut reader, &delta(2, "!")).answer_chars, 1);
        let done = r#"{"type":"response.output_text.done","sequence_number":3,"text":"Hi!"}"#;
        assert!(
            !read(&mut reader, done).is_content(),
            "the text again is no content"
        );
        let end = read(&mut reader, &completed(4, "Hi!"));
        assert!(end.sentinel && end.usage.is_some() && !end.gap);
        assert_eq!((end.finish, end.lost), (Some(Finish::Stop), None));
    }

    #[test]
    fn reasoning_and_its_summary_are_told_apart_and_calls_count_by_name() {
        let mut reader = ResponsesReader::default();
        let plain = read(
            &mut reader,
            r#"{"type":"response.reasoning_text.delta","delta":"We"}"#,
        );
        assert_eq!((plain.reasoning_chars, plain.summary), (2, false));
        let summary = read(
            &mut reader,
            r#"{"type":"response.reasoning_summary_text.delta","delta":"So"}"#,
        );
        assert_eq!((summary.reasoning_chars, summary.summary), (2, true));
        let call = read(
            &mut reader,
            r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}"#,
        );
        assert!(call.is_bare());
        let tool = read(
            &mut reader,
            r#"{"type":"response.shell_call_output_content.delta","delta":"ls"}"#,
        );
        assert!(!tool.is_content(), "a tool's output is not the model's");
    }

    #[test]
    fn a_number_missing_is_a_gap_and_lost_text_is_said() {
        let mut reader = ResponsesReader::default();
        read(&mut reader, &delta(1, "a"));
        assert!(read(&mut reader, &delta(3, "c")).gap);
        let end = read(&mut reader, &completed(4, "abc"));
        assert_eq!(
            end.lost.as_deref(),
            Some("the server says its answer has 3 characters, and 2 arrived")
        );
        let mut reader = ResponsesReader::default();
        read(&mut reader, &delta(1, "a"));
        let end = read(&mut reader, &completed(3, "a"));
        assert!(
            end.gap && end.lost.is_none(),
            "an event without text was lost"
        );
    }

    #[test]
    fn a_number_that_came_before_brings_no_content_again() {
        let mut reader = ResponsesReader::default();
        read(&mut reader, &delta(1, "a"));
        let again = read(&mut reader, &delta(1, "a"));
        assert!(again.gap && !again.is_content());
        assert_eq!(read(&mut reader, &completed(2, "a")).lost, None);
    }

    #[test]
    fn the_same_start_again_is_no_restart_and_another_is() {
        let created = |id| format!(r#"{{"type":"response.created","response":{{"id":"{id}"}}}}"#);
        let mut reader = ResponsesReader::default();
        assert!(!read(&mut reader, &created("r")).restarted);
        assert!(!read(&mut reader, &created("r")).restarted);
        assert!(read(&mut reader, &created("s")).restarted);
    }

    #[test]
    fn the_first_number_is_0_or_that_of_a_start_numbered_from_1() {
        let created = |number: u64| {
            json!({"type": "response.created", "sequence_number": number}).to_string()
        };
        for (first, gap) in [
            (created(0), false),
            (created(1), false),
            (created(2), true),
            (delta(0, "a"), false),
            (delta(1, "a"), true),
            (delta(5, "a"), true),
        ] {
            assert_eq!(
                read(&mut ResponsesReader::default(), &first).gap,
                gap,
                "{first}"
            );
        }
    }

    #[test]
    fn a_last_event_ends_an_answer_by_the_status_of_its_response() {
        let end = |response: &str| {
            let data = format!(r#"{{"type":"response.completed"{response}}}"#);
            let end = read(&mut ResponsesReader::default(), &data);
            assert!(end.sentinel);
            (end.finish, end.lost.is_some())
        };
        let status = |status: &str| end(&format!(r#","response":{{"status":"{status}"}}"#));
        assert_eq!(status("completed"), (Some(Finish::Stop), false));
        assert_eq!(status("failed"), (Some(Finish::Error), false));
        for open in ["cancelled", "in_progress", "queued"] {
            assert_eq!(status(open), (None, false), "{open}");
        }
        assert_eq!(end(r#","response":{}"#), (Some(Finish::Other), false));
        for missing in ["", r#","response":null"#] {
            assert_eq!(end(missing), (None, true), "{missing}");
        }
    }

    #[test]
    fn why_it_is_incomplete_is_a_finish() {
        let mut reader = ResponsesReader::default();
        let end = read(
            &mut reader,
            r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#,
        );
        assert_eq!(end.finish, Some(Finish::Length));
    }

    #[test]
    fn a_whole_body_reads_its_output_items() {
        let body = r#"{"status":"completed","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"So"}]},{"type":"message","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":9,"output_tokens":1,"total_tokens":10}}"#;
        let event = ResponsesReader::default().whole(body, None).expect("reads");
        assert_eq!(
            (event.answer_chars, event.reasoning_chars, event.summary),
            (2, 2, true)
        );
        assert_eq!(event.finish, Some(Finish::Stop));
    }
}
