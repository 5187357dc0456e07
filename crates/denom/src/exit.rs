//! Owns the exit codes and the errors that end a command with one.

use std::io::Write;
use std::process::ExitCode;

use measure::report::Ending;

use crate::page::escape;

/// Done; numbers valid.
pub const DONE: u8 = 0;
/// Done; a claim, a path or a requirement failed, or an audit found faults.
pub const FAILED: u8 = 1;
/// Usage or configuration error; nothing was measured.
pub const USAGE: u8 = 2;
/// No result.
pub const NO_RESULT: u8 = 3;
/// A level is invalid.
pub const INVALID: u8 = 4;
/// Local resources or the client itself were the limit.
pub const CLIENT_LIMITED: u8 = 5;
/// Records could not be written.
pub const NOT_WRITTEN: u8 = 74;
/// Interrupted.
pub const INTERRUPTED: u8 = 130;

/// An expected error: a sentence for the user, and the code that the command ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// What happened, what it means, what to do next.
    pub text: String,
}

impl Failure {
    /// The user's input cannot be used.
    pub fn usage(text: impl Into<String>) -> Self {
        Failure {
            code: USAGE,
            text: text.into(),
        }
    }

    /// There is no result.
    pub fn no_result(text: impl Into<String>) -> Self {
        Failure {
            code: NO_RESULT,
            text: text.into(),
        }
    }

    /// This machine was out of something.
    pub fn local(text: impl Into<String>) -> Self {
        Failure {
            code: CLIENT_LIMITED,
            text: text.into(),
        }
    }

    /// Records could not be written.
    pub fn not_written(text: impl Into<String>) -> Self {
        Failure {
            code: NOT_WRITTEN,
            text: text.into(),
        }
    }
}

/// The code of a run by how it ended.
pub fn code(ending: Ending) -> u8 {
    match ending {
        Ending::Done => DONE,
        Ending::Invalid => INVALID,
        Ending::NoResult => NO_RESULT,
        Ending::ClientLimited => CLIENT_LIMITED,
        Ending::Interrupted => INTERRUPTED,
    }
}

/// Writes a line to stderr. Where nobody reads it any more, nothing is lost that a run needs.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Ends a command: an error is said on stderr, whole, since what to do stands at its end. Texts of
/// a server in it were cut when they were taken in.
pub fn end(result: Result<u8, Failure>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            say(&format!("denom: {}", escape::line(&failure.text)));
            ExitCode::from(failure.code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_endings_the_worst_is_no_matter_of_its_number() {
        use Ending::{ClientLimited, Done, Interrupted, Invalid, NoResult};
        let mut all = [NoResult, Interrupted, Done, ClientLimited, Invalid];
        all.sort_unstable();
        let from_the_worst: Vec<u8> = all.into_iter().rev().map(code).collect();
        assert_eq!(from_the_worst, [130, 5, 3, 4, 0]);
    }
}
