//! Owns the second opinion on a body: read whole and naively, by the API's words, without the
//! decoder. It says what speaks against `ok`, and which flags an `ok` must bear.

use measure::api::Api;
use measure::judge::Flag;
use measure::trace::Transport;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::naive;
use super::seen::Seen;
use super::streams::Form;
use super::whole_string;

/// What a body says.
#[derive(Debug, Default)]
pub struct Opinion {
    /// Why the request cannot be ok.
    pub against: Vec<&'static str>,
    /// Flags that it must bear if it is.
    pub flags: Vec<Flag>,
    /// Some event is JSON that this reading cannot take apart: it has no opinion.
    pub unsure: bool,
}

#[derive(Debug, Default)]
struct Reading {
    finishes: Vec<(u64, bool)>,
    finish: bool,
    fails: bool,
    ended: bool,
    chars: usize,
    after: bool,
    starts: Vec<String>,
    numbers: Vec<u64>,
    /// Events without a number, and the most that the first number may be.
    unnumbered: u64,
    first: u64,
    texts: (usize, usize),
    repeats: bool,
    counts: [Count; 3],
    reasoning: bool,
    opinion: Opinion,
}

/// A stated count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Count {
    #[default]
    Absent,
    Bad,
    Of(u64),
}

/// Reads a body.
pub fn opinion(api: Api, form: Form, body: &[u8], transport: &Transport) -> Opinion {
    let items = match form {
        Form::Sse => whole_string::read(body),
        Form::Lines => naive::ndjson(body),
        Form::Array => naive::array(body),
    };
    let mut reading = Reading::default();
    for item in items {
        match item {
            Seen::Event {
                name,
                data,
                terminated,
            } => {
                reading.event(
                    api,
                    &name,
                    String::from_utf8_lossy(&data).trim(),
                    terminated,
                );
            }
            Seen::ErrorField(_) if !reading.ended => reading.opinion.against.push("an error field"),
            Seen::End => reading.ended = true,
            Seen::Stray(_) if !reading.ended => reading.opinion.against.push("stray bytes"),
            Seen::ErrorField(_) | Seen::Stray(_) | Seen::Comment => {}
        }
    }
    if !matches!(transport, Transport::Complete | Transport::Closed) {
        reading.opinion.against.push("an illegal end");
    }
    if form == Form::Array && !reading.ended {
        reading.opinion.against.push("an array without its end");
    }
    reading.conclude(api)
}

impl Reading {
    fn event(&mut self, api: Api, name: &[u8], data: &str, terminated: bool) {
        if data.is_empty() && name != b"error" {
            return;
        }
        let parsed = serde_json::from_str::<Value>(data);
        let event = match parsed {
            Ok(event) => event,
            Err(_) => return self.no_json(api, name, data, terminated),
        };
        if self.ended {
            self.after |= terminated && content(api, &event) > 0;
            return;
        }
        if name == b"error" || has_error(&event) {
            self.opinion.against.push("an error");
        }
        self.number(api, &event);
        if terminated {
            self.chars += content(api, &event);
        }
        self.reasoning |= event["choices"][0]["delta"]["reasoning_content"].is_string();
        // To the other APIs it is an event of no meaning.
        if event["type"] == "message_start"
            && api == Api::Anthropic
            && let Some(id) = event["message"]["id"].as_str()
        {
            self.starts.push(id.to_owned());
        }
        self.state_counts(api, &event);
        self.end(api, &event);
    }

    /// Takes the number that the event bears, and from where the numbers may begin.
    fn number(&mut self, api: Api, event: &Value) {
        let (number, first) = match api {
            Api::OpenaiResponses => {
                let created = event["type"] == "response.created";
                (&event["sequence_number"], u64::from(created))
            }
            Api::Tgi if event["token"].is_object() => (&event["index"], 1),
            _ => (&Value::Null, 0),
        };
        let Some(number) = number.as_u64() else {
            self.unnumbered += 1;
            return;
        };
        if self.numbers.is_empty() {
            self.first = self.unnumbered + first;
        }
        self.repeats |= self.numbers.iter().any(|known| *known >= number);
        self.numbers.push(number);
    }

    fn no_json(&mut self, api: Api, name: &[u8], data: &str, terminated: bool) {
        let done = data
            .get(..6)
            .is_some_and(|start| start.eq_ignore_ascii_case("[DONE]"));
        let sentinel = match api {
            Api::OpenaiChat | Api::OpenaiCompletions => done,
            Api::OpenaiResponses => data.starts_with("[DONE]"),
            _ => false,
        };
        if self.ended {
            return;
        }
        if name == b"error" && terminated {
            self.opinion.against.push("an event named error");
        }
        if sentinel {
            self.ended = true;
        } else if serde_json::from_str::<IgnoredAny>(data).is_ok() {
            self.opinion.unsure = true;
        } else if terminated && !data.is_empty() && !data.starts_with("[DONE]") {
            self.opinion.against.push("an event that is no JSON");
        }
    }

    /// Takes what ends an answer.
    fn end(&mut self, api: Api, event: &Value) {
        let kind = event["type"].as_str().unwrap_or("");
        match api {
            Api::OpenaiChat | Api::OpenaiCompletions => {
                for choice in event["choices"].as_array().into_iter().flatten() {
                    let index = choice["index"].as_u64().unwrap_or(0);
                    let finished = choice["finish_reason"].is_string();
                    self.fails |= is_failing(&choice["finish_reason"]);
                    self.finish |= finished;
                    match self.finishes.iter_mut().find(|(known, _)| *known == index) {
                        Some((_, before)) => *before |= finished,
                        None => self.finishes.push((index, finished)),
                    }
                }
            }
            Api::OpenaiResponses => match kind {
                "response.output_text.delta" => self.texts.0 += chars(&event["delta"]),
                "response.completed" | "response.incomplete" => {
                    let part = &event["response"]["output"][0]["content"][0];
                    if part["type"] == "output_text" {
                        self.texts.1 = chars(&part["text"]);
                    }
                    let response = &event["response"];
                    let status = response["status"].as_str().unwrap_or("completed");
                    let ended = matches!(status, "completed" | "incomplete");
                    self.finish |= response.is_object() && ended;
                    self.ended = true;
                }
                _ => {}
            },
            Api::Anthropic => {
                let reason = &event["delta"]["stop_reason"];
                self.finish |= kind == "message_delta" && reason.is_string();
                self.fails |= kind == "message_delta" && is_failing(reason);
                self.ended |= kind == "message_stop";
            }
            Api::Gemini => {
                let reason = &event["candidates"][0]["finishReason"];
                self.finish |= reason.is_string();
                self.fails |= is_failing(reason);
            }
            Api::Ollama => {
                let done = event["done"] == true;
                self.finish |= done;
                self.ended |= done && chars(&event["done_reason"]) > 0;
                self.fails |= done && is_failing(&event["done_reason"]);
            }
            Api::Tgi => {
                let reason = &event["details"]["finish_reason"];
                self.finish |= reason.is_string();
                self.fails |= is_failing(reason);
                self.ended |= self.finish;
                // The repeated text may lack the white space that the answer starts with.
                let start =
                    |text: &Value| text.as_str().map_or(0, |t| t.trim_start().chars().count());
                self.texts.0 += match event["token"]["special"] == true {
                    true => 0,
                    false if self.texts.0 == 0 => start(&event["token"]["text"]),
                    false => chars(&event["token"]["text"]),
                };
                self.texts.1 = self.texts.1.max(start(&event["generated_text"]));
            }
        }
    }

    /// Input, output and total as last stated.
    fn state_counts(&mut self, api: Api, event: &Value) {
        let kind = &event["type"];
        let (block, names) = match api {
            Api::OpenaiChat | Api::OpenaiCompletions => (
                &event["usage"],
                ["prompt_tokens", "completion_tokens", "total_tokens"],
            ),
            Api::OpenaiResponses if kind == "response.completed" => (
                &event["response"]["usage"],
                ["input_tokens", "output_tokens", "total_tokens"],
            ),
            Api::Anthropic if kind == "message_delta" => {
                (&event["usage"], ["input_tokens", "output_tokens", ""])
            }
            Api::Gemini => (
                &event["usageMetadata"],
                [
                    "promptTokenCount",
                    "candidatesTokenCount",
                    "totalTokenCount",
                ],
            ),
            Api::Ollama if event["done"] == true => {
                (event, ["prompt_eval_count", "eval_count", ""])
            }
            Api::Tgi => (&event["details"], ["input_length", "generated_tokens", ""]),
            _ => return,
        };
        // An empty name stands for a count that the API does not state.
        let stated = names.into_iter().enumerate();
        for (place, name) in stated.filter(|(_, name)| !name.is_empty()) {
            match &block[name] {
                Value::Null => {}
                given => self.counts[place] = given.as_u64().map_or(Count::Bad, Count::Of),
            }
        }
    }

    fn conclude(mut self, api: Api) -> Opinion {
        let mut against = |is: bool, text| {
            if is {
                self.opinion.against.push(text);
            }
        };
        against(!self.finish, "no finish marker");
        against(self.fails, "a finish that fails");
        against(self.chars == 0, "no content");
        against(
            self.finishes.iter().any(|(_, finished)| !finished),
            "a choice without its finish",
        );
        let (arrived, stated) = self.texts;
        against(
            stated > 0 && stated != arrived && !self.repeats,
            "less text than the server says",
        );
        let mut must = |is: bool, flag| {
            if is {
                self.opinion.flags.push(flag);
            }
        };
        must(
            self.numbers.windows(2).any(|pair| pair[1] != pair[0] + 1)
                || self
                    .numbers
                    .first()
                    .is_some_and(|first| *first > self.first),
            Flag::SeqGap,
        );
        must(
            self.starts.iter().any(|id| *id != self.starts[0]),
            Flag::RestartedStream,
        );
        must(self.after, Flag::PostDoneData);
        must(api.has_sentinel() && !self.ended, Flag::Unterminated);
        let several = self.finishes.len() > 1;
        must(
            contradicts(
                self.counts,
                self.chars,
                several || self.reasoning || self.repeats,
            ),
            Flag::UsageInconsistent,
        );
        self.opinion
    }
}

/// Whether counts contradict each other, or the text; `only_sums` where the text cannot tell.
fn contradicts(counts: [Count; 3], chars: usize, only_sums: bool) -> bool {
    if counts.contains(&Count::Bad) {
        return true;
    }
    let [input, output, total] = counts;
    let sum = match (input, output, total) {
        (Count::Of(input), Count::Of(output), Count::Of(total)) if !only_sums => {
            input.checked_add(output) != Some(total)
        }
        _ => false,
    };
    let ratio = match output {
        Count::Of(0) => true,
        Count::Of(output) => {
            (chars as u64) * 5 < output || chars as u64 > output.saturating_mul(12)
        }
        _ => false,
    };
    sum || (ratio && !only_sums)
}

fn is_failing(reason: &Value) -> bool {
    ["content_filter", "refusal", "SAFETY", "error"]
        .iter()
        .any(|word| reason == word)
}

fn chars(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}

/// Characters of content in an event.
fn content(api: Api, event: &Value) -> usize {
    let kind = event["type"].as_str().unwrap_or("");
    match api {
        Api::OpenaiChat | Api::OpenaiCompletions => {
            let choices = event["choices"].as_array().into_iter().flatten();
            choices
                .map(|choice| {
                    let delta = &choice["delta"];
                    chars(&delta["content"])
                        + chars(&delta["reasoning_content"])
                        + chars(&choice["text"])
                })
                .sum()
        }
        Api::OpenaiResponses if kind == "response.output_text.delta" => chars(&event["delta"]),
        Api::Anthropic
            if kind == "content_block_delta" && event["delta"]["type"] == "text_delta" =>
        {
            chars(&event["delta"]["text"])
        }
        Api::Gemini => chars(&event["candidates"][0]["content"]["parts"][0]["text"]),
        Api::Ollama => chars(&event["message"]["content"]) + chars(&event["response"]),
        Api::Tgi if event["token"]["special"] != true => chars(&event["token"]["text"]),
        _ => 0,
    }
}

/// Whether any of the places where errors are put holds one.
fn has_error(event: &Value) -> bool {
    let is = |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && value != "";
    let choices = event["choices"].as_array().into_iter().flatten();
    is(&event["error"])
        || is(&event["x_groq"]["error"])
        || is(&event["response"]["error"])
        || event["type"] == "error"
        || event["object"] == "error"
        || event["type"] == "response.failed"
        || choices
            .into_iter()
            .any(|choice| is(&choice["error"]) || choice["finish_reason"] == "error")
}
