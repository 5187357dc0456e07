//! Owns the scripts that only HTTP/2 can play: streams refused or reset, connections that go away.

use super::at;
use super::faulty::begun;
use super::paced::paced;
use crate::sim::ask::Ask;
use crate::sim::script::{Act, Ending, Framing, Head, Script, Step};
use crate::sim::tape::{AT_ONCE, Pace, Tail, Tape};

/// No answer, not even a head.
fn unanswered(ending: Ending) -> Script {
    Script {
        status: 200,
        headers: Vec::new(),
        framing: Framing::Chunked,
        head: Head::WithFirst,
        steps: vec![Step {
            when: AT_ONCE,
            act: Act::End(ending),
        }],
        most_at_once: None,
    }
}

pub(super) fn goaway(_: &Ask) -> Script {
    unanswered(Ending::GoneAway)
}

pub(super) fn refused(_: &Ask) -> Script {
    unanswered(Ending::RefusedStream)
}

pub(super) fn reset(ask: &Ask) -> Script {
    let (tape, next) = begun(ask, 10);
    tape.end(at(Pace::USUAL, next), Ending::ResetStream)
}

/// All of `normal`, with another end.
fn whole(ask: &Ask, ending: Ending) -> Script {
    let tokens = ask.tokens();
    paced(Tape::new(ask), Pace::USUAL, tokens)
        .write(AT_ONCE, 0, |speech| speech.close(Tail::of(ask, tokens, 0)))
        .end(AT_ONCE, ending)
}

pub(super) fn last(ask: &Ask) -> Script {
    whole(ask, Ending::LastStream)
}

pub(super) fn wait(ask: &Ask) -> Script {
    whole(ask, Ending::Pause)
}
