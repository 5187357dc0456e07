//! Owns the making of scripts that answer: a tape of steps, the pace they follow, and the speech
//! that fills them.

use std::ops::Range;

use measure::time::Length;

use super::ask::Ask;
use super::replies;
use super::script::{Act, Ending, Framing, Head, Script, Step, When, times};
use super::voices::whole::{Memory, Said};
use super::voices::{self, Close, Kind, Reason, Tool, Usage, Voice, words};

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
    pub reason: Reason,
    /// The counts that are told where the API or the request wants them; `None` for none at all.
    pub usage: Option<Usage>,
    /// Whether the sentinel follows.
    pub done: bool,
}

impl Tail {
    /// An honest tail after `tokens`, of which `reasoning` were reasoning.
    pub fn of(ask: &Ask, tokens: u64, reasoning: u64) -> Self {
        Tail {
            reason: reason(ask, tokens),
            usage: Some(Usage {
                prompt: ask.prompt_tokens,
                completion: tokens,
                reasoning,
                total: ask.prompt_tokens + tokens,
            }),
            done: true,
        }
    }

    /// The same for another reason.
    pub fn because(self, reason: Reason) -> Self {
        Tail { reason, ..self }
    }
}

/// Why an answer of `tokens` ended: at the length asked for, or by itself.
pub fn reason(ask: &Ask, tokens: u64) -> Reason {
    if ask.max_tokens == Some(tokens) {
        Reason::Length
    } else {
        Reason::Stop
    }
}

/// Who speaks: an API's voice, or, where no stream is wanted, a memory of what was said.
enum Mouth {
    Aloud(Box<dyn Voice>),
    Silent(Memory),
}

/// What a step's filling is said with. Every method appends whole events.
pub struct Speech<'a> {
    /// The bytes of the step so far.
    pub out: Vec<u8>,
    ask: &'a Ask,
    mouth: Mouth,
    /// When the step is due.
    at: Length,
    /// When the first token was due.
    first: Option<Length>,
}

impl Speech<'_> {
    fn voice(&mut self) -> (&mut dyn Voice, &mut Vec<u8>) {
        match &mut self.mouth {
            Mouth::Aloud(voice) => (voice.as_mut(), &mut self.out),
            Mouth::Silent(memory) => (memory, &mut self.out),
        }
    }

    /// What comes in front of all output, if the API has that.
    pub fn open(&mut self) {
        let (voice, out) = self.voice();
        voice.open(out);
    }

    /// One event with the text of all tokens in `range`.
    pub fn tokens(&mut self, kind: Kind, range: Range<u64>) {
        let words = words(self.ask.serial, range);
        self.text(kind, &words);
    }

    /// An event for each token of `range`, all of them answer.
    pub fn each(&mut self, range: Range<u64>) {
        for index in range {
            self.tokens(Kind::Answer, index..index + 1);
        }
    }

    /// One event with this text, as it stands between the quotes of a JSON string.
    pub fn text(&mut self, kind: Kind, escaped: &[u8]) {
        self.begin();
        let (voice, out) = self.voice();
        voice.text(out, kind, escaped);
    }

    /// A part of the tool call.
    pub fn tool(&mut self, part: Tool<'_>) {
        self.begin();
        let (voice, out) = self.voice();
        voice.tool(out, part);
    }

    fn begin(&mut self) {
        self.first.get_or_insert(self.at);
    }

    /// Finish, usage and sentinel.
    pub fn close(&mut self, tail: Tail) {
        let at = self.at;
        let close = Close {
            reason: tail.reason,
            usage: tail.usage,
            first: self.first.unwrap_or(at),
            at,
        };
        let (voice, out) = self.voice();
        voice.close(out, &close);
        if tail.done {
            voice.done(out);
        }
    }

    /// The sentinel, if the API has one.
    pub fn done(&mut self) {
        let (voice, out) = self.voice();
        voice.done(out);
    }

    /// An error in the middle of a stream.
    pub fn error(&mut self) {
        self.error_saying("the engine stopped while it was generating");
    }

    /// An error with this message.
    pub fn error_saying(&mut self, message: &str) {
        let (voice, out) = self.voice();
        voice.error(out, message);
    }

    /// A sign of life that says nothing.
    pub fn ping(&mut self) {
        let (voice, out) = self.voice();
        voice.ping(out);
    }

    /// An event of this type with whatever stands in `json`.
    pub fn event(&mut self, kind: &str, json: &[u8]) {
        let (voice, out) = self.voice();
        voice.event(out, kind, json);
    }
}

/// A script in the making.
pub struct Tape<'a> {
    speech: Speech<'a>,
    head: Head,
    framing: Framing,
    headers: Vec<(String, String)>,
    steps: Vec<Step>,
    /// Tokens said that no step has brought yet, since the API tells them later.
    owed: u64,
}

impl<'a> Tape<'a> {
    /// An empty tape whose head leaves with its first write.
    pub fn new(ask: &'a Ask) -> Self {
        if !ask.stream {
            return Tape::whole(ask);
        }
        Tape::spoken(ask, Mouth::Aloud(voices::voice(ask)))
    }

    /// An empty tape for one body that holds all, whatever was asked for.
    pub fn whole(ask: &'a Ask) -> Self {
        Tape::spoken(ask, Mouth::Silent(Memory::default()))
    }

    fn spoken(ask: &'a Ask, mouth: Mouth) -> Self {
        Tape {
            speech: Speech {
                out: Vec::new(),
                ask,
                mouth,
                at: Length::ZERO,
                first: None,
            },
            head: Head::WithFirst,
            framing: Framing::Chunked,
            headers: Vec::new(),
            steps: Vec::new(),
            owed: 0,
        }
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

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// One write of whatever `fill` says, which brings `tokens`; no step at all if that is nothing,
    /// since an empty HTTP chunk would end the body.
    pub fn write(mut self, when: When, tokens: u64, fill: impl FnOnce(&mut Speech<'a>)) -> Self {
        self.owed += tokens;
        self.speech.at = when.planned(self.speech.at, 1);
        fill(&mut self.speech);
        let bytes = std::mem::take(&mut self.speech.out);
        if bytes.is_empty() || matches!(self.speech.mouth, Mouth::Silent(_)) {
            return self;
        }
        let tokens = u32::try_from(std::mem::take(&mut self.owed)).unwrap_or(u32::MAX);
        let act = Act::Write { bytes, tokens };
        self.steps.push(Step { when, act });
        self
    }

    /// The same bytes again and again, `count` times or without end, `every` so long.
    pub fn repeat(
        mut self,
        when: When,
        every: Length,
        count: Option<u64>,
        tokens: u64,
        fill: impl FnOnce(&mut Speech<'a>),
    ) -> Self {
        let before = self.steps.len();
        self = self.write(when, tokens, fill);
        let Some(step) = self.steps.get_mut(before) else {
            return self;
        };
        if let Act::Write { bytes, tokens } = &mut step.act {
            step.act = Act::Repeat {
                bytes: std::mem::take(bytes),
                tokens: *tokens,
                every,
                count,
            };
        }
        self
    }

    /// What comes in front of all output, in a write of its own; at least the head, where the API
    /// says nothing then.
    pub fn role(mut self, at: Length) -> Self {
        let before = self.steps.len();
        self = self.write(When::At(at), 0, Speech::open);
        if before == 0 && self.steps.is_empty() && self.head == Head::WithFirst {
            self.head = Head::Own(at);
        }
        self
    }

    /// Each token of `range` in an event and a write of its own, at its pace.
    pub fn tokens(mut self, pace: Pace, kind: Kind, range: Range<u64>) -> Self {
        self.steps
            .reserve(usize::try_from(range.end - range.start).unwrap_or(0));
        for index in range {
            let when = When::At(pace.token(index));
            self = self.write(when, 1, |speech| speech.tokens(kind, index..index + 1));
        }
        self
    }

    /// All tokens of `range` in events of their own, but in one write.
    pub fn burst(self, at: Length, range: Range<u64>) -> Self {
        let tokens = range.end - range.start;
        self.write(When::At(at), tokens, |speech| speech.each(range))
    }

    /// Finish, usage and sentinel in one write, and the proper end of the body, all at `when`.
    pub fn tail(self, when: When, tail: Tail) -> Script {
        self.write(when, 0, |speech| speech.close(tail))
            .end(AT_ONCE, Ending::Proper)
    }

    /// The script, stopped by `ending`.
    pub fn end(mut self, when: When, ending: Ending) -> Script {
        let act = Act::End(ending);
        self.steps.push(Step { when, act });
        let ask = self.speech.ask;
        if let Mouth::Silent(memory) = self.speech.mouth {
            let at = when.planned(self.speech.at, 1);
            let mut script = one_body(ask, &memory.said, at, self.owed, ending);
            script.headers.extend(self.headers);
            return script;
        }
        let mut headers = replies::headers(ask.dialect.content_type());
        headers.push(("cache-control".to_owned(), "no-cache".to_owned()));
        headers.extend(self.headers);
        Script {
            status: 200,
            headers,
            framing: self.framing,
            head: self.head,
            steps: self.steps,
            most_at_once: None,
        }
    }
}

/// What a script is for who wants no stream: one body with all that was said, at the time the stream
/// would have ended. Where the stream breaks, so does the body, in its middle.
fn one_body(ask: &Ask, said: &Said, at: Length, tokens: u64, ending: Ending) -> Script {
    if let Some(message) = &said.error {
        let mut script = replies::refusal(ask.dialect, 500, message, "server_error", None);
        script
            .steps
            .iter_mut()
            .for_each(|step| step.when = When::At(at));
        return script;
    }
    let mut body = voices::whole(ask, said).to_string().into_bytes();
    let broken = said.close.is_none() || !ending.is_proper();
    let mut script = if ending == Ending::Stall {
        replies::reply(200, "application/json", Vec::new(), at, 0)
    } else if broken {
        body.truncate(body.len() / 2);
        replies::reply(200, "application/json", body, at, 0)
    } else {
        replies::reply(200, "application/json", body, at, tokens)
    };
    if broken {
        // A stated length would be the broken body's own, and so hide the break.
        script.framing = Framing::Chunked;
    }
    script
        .steps
        .retain(|step| !matches!(&step.act, Act::Write { bytes, .. } if bytes.is_empty()));
    if let Some(last) = script.steps.last_mut() {
        last.act = Act::End(ending);
    }
    script
}

/// At the time of the step in front.
pub const AT_ONCE: When = When::At(Length::ZERO);
