//! Owns the making of streamed scripts: a tape of steps, and the pace they follow.

use std::ops::Range;

use measure::time::Length;

use super::ask::Ask;
use super::chat::{Chat, Kind, Style, Usage};
use super::script::{Act, Ending, Framing, Head, Script, Step, When, times};

/// When tokens are due.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// From the request to the first token.
    pub first: Length,
    /// From one token to the next.
    pub each: Length,
}

impl Pace {
    /// The pace of most scripts: the first token at 60 ms, then one each 10 ms.
    pub const USUAL: Pace = Pace {
        first: Length::from_millis(60),
        each: Length::from_millis(10),
    };

    /// When token `index` is due, counted from 0.
    pub fn token(self, index: u64) -> Length {
        self.first + times(self.each, index)
    }

    /// When the last of `tokens` is due: the first token's time if there is none.
    pub fn last(self, tokens: u64) -> Length {
        self.token(tokens.saturating_sub(1))
    }
}

/// What follows the last token.
#[derive(Debug, Clone, Copy)]
pub struct Tail {
    /// The finish reason.
    pub reason: &'static str,
    /// The output tokens stated in the usage chunk, and the reasoning among them; `None` for no
    /// usage chunk even if one is asked for.
    pub usage: Option<(u64, u64)>,
    /// Whether the sentinel follows.
    pub done: bool,
}

impl Tail {
    /// An honest tail after `tokens`, of which `reasoning` were reasoning.
    pub fn of(ask: &Ask, tokens: u64, reasoning: u64) -> Self {
        Tail {
            reason: reason(ask, tokens),
            usage: Some((tokens, reasoning)),
            done: true,
        }
    }
}

/// Why an answer of `tokens` ended: at the length asked for, or by itself.
pub fn reason(ask: &Ask, tokens: u64) -> &'static str {
    if ask.max_tokens == Some(tokens) {
        "length"
    } else {
        "stop"
    }
}

/// A streamed script in the making.
pub struct Tape<'a> {
    ask: &'a Ask,
    chat: Chat,
    head: Head,
    framing: Framing,
    steps: Vec<Step>,
}

impl<'a> Tape<'a> {
    /// An empty tape whose head leaves with its first write.
    pub fn new(ask: &'a Ask) -> Self {
        Tape {
            ask,
            chat: Chat::new(ask, Style::PLAIN),
            head: Head::WithFirst,
            framing: Framing::Chunked,
            steps: Vec::new(),
        }
    }

    /// Writes events in another style.
    pub fn style(mut self, style: Style) -> Self {
        self.chat = Chat::new(self.ask, style);
        self
    }

    /// Sends the head at once, in a write of its own.
    pub fn head_first(mut self) -> Self {
        self.head = Head::Own(Length::ZERO);
        self
    }

    /// Ends the body with the connection.
    pub fn until_close(mut self) -> Self {
        self.framing = Framing::UntilClose;
        self
    }

    /// One write of whatever `fill` puts together, which brings `tokens`; no step at all if that is
    /// nothing, since an empty HTTP chunk would end the body.
    pub fn write(
        mut self,
        when: When,
        tokens: u64,
        fill: impl FnOnce(&Chat, &mut Vec<u8>),
    ) -> Self {
        let mut bytes = Vec::with_capacity(self.chat.token_bytes());
        fill(&self.chat, &mut bytes);
        if bytes.is_empty() {
            return self;
        }
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        let act = Act::Write { bytes, tokens };
        self.steps.push(Step { when, act });
        self
    }

    /// The role chunk, in a write of its own.
    pub fn role(self, at: Length) -> Self {
        self.write(When::At(at), 0, |chat, out| chat.role(out))
    }

    /// Each token of `range` in an event and a write of its own, at its pace.
    pub fn tokens(mut self, pace: Pace, kind: Kind, range: Range<u64>) -> Self {
        self.steps
            .reserve(usize::try_from(range.end - range.start).unwrap_or(0));
        for index in range {
            let when = When::At(pace.token(index));
            self = self.write(when, 1, |chat, out| chat.text(out, kind, index..index + 1));
        }
        self
    }

    /// All tokens of `range` in events of their own, but in one write.
    pub fn burst(self, at: Length, range: Range<u64>) -> Self {
        let tokens = range.end - range.start;
        self.write(When::At(at), tokens, |chat, out| events(chat, out, range))
    }

    /// Finish, usage and sentinel in one write, and the proper end of the body, all at `when`.
    pub fn tail(self, when: When, tail: Tail) -> Script {
        let ask = self.ask;
        self.write(when, 0, |chat, out| close(chat, out, ask, tail))
            .end(AT_ONCE, Ending::Proper)
    }

    /// The script, stopped by `ending`.
    pub fn end(mut self, when: When, ending: Ending) -> Script {
        let act = Act::End(ending);
        self.steps.push(Step { when, act });
        Script {
            status: 200,
            headers: vec![
                ("content-type", "text/event-stream; charset=utf-8"),
                ("cache-control", "no-cache"),
            ],
            framing: self.framing,
            head: self.head,
            steps: self.steps,
        }
    }
}

/// At the time of the step in front.
pub const AT_ONCE: When = When::At(Length::ZERO);

/// An event for each token of `range`.
pub fn events(chat: &Chat, out: &mut Vec<u8>, range: Range<u64>) {
    for index in range {
        chat.text(out, Kind::Answer, index..index + 1);
    }
}

/// The events behind the last token.
pub fn close(chat: &Chat, out: &mut Vec<u8>, ask: &Ask, tail: Tail) {
    chat.finish(out, tail.reason);
    if let (true, Some((completion, reasoning))) = (ask.include_usage, tail.usage) {
        let prompt = ask.prompt_tokens;
        chat.usage(
            out,
            Usage {
                prompt,
                completion,
                reasoning,
            },
        );
    }
    if tail.done {
        chat.done(out);
    }
}
