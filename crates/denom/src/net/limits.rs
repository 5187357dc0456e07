//! Owns the check that the system lets this process open the sockets of a run.

use std::fmt;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Open files that are not streams: the program's own, and room for connections closing.
const OWN_FILES: u64 = 64;

/// The system allows fewer open files than the run needs, and denom may not raise it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooFewFiles {
    /// Streams asked for.
    pub streams: u64,
    /// Open files needed for them.
    pub needed: u64,
    /// The most this process may allow itself.
    pub hard: u64,
}

impl fmt::Display for TooFewFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFewFiles {
            streams,
            needed,
            hard,
        } = self;
        write!(
            f,
            "{streams} streams need {needed} open files, and this shell may open at most {hard}: \
             connections would fail for want of them. In this shell run `{}`, then start denom \
             again, or ask for at most {} streams",
            raise(*needed),
            hard.saturating_sub(OWN_FILES) / 2
        )
    }
}

impl std::error::Error for TooFewFiles {}

/// The command that raises the limits of the shell it is typed in.
fn raise(needed: u64) -> String {
    if cfg!(target_os = "linux") {
        format!("sudo prlimit --pid $$ --nofile={needed}:{needed}")
    } else {
        format!("sudo launchctl limit maxfiles {needed} {needed}; ulimit -n {needed}")
    }
}

/// Makes sure that `streams` streams at once can be opened, raising the soft limit of open files up
/// to the hard one where it is too low.
///
/// # Errors
/// Where the hard limit is too low, with the command that raises it.
pub fn ensure_open_files(streams: u64) -> Result<(), TooFewFiles> {
    let needed = needed_files(streams);
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        // A system that does not tell its limit is left to tell it when a socket is refused.
        return Ok(());
    };
    if soft >= needed {
        return Ok(());
    }
    let raised = hard >= needed && setrlimit(Resource::RLIMIT_NOFILE, needed, hard).is_ok();
    let most = if hard >= needed { soft } else { hard };
    raised.then_some(()).ok_or(TooFewFiles {
        streams,
        needed,
        hard: most,
    })
}

/// Two a stream, since one may still be closing as its successor opens, and the program's own.
fn needed_files(streams: u64) -> u64 {
    streams.saturating_mul(2).saturating_add(OWN_FILES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_any_size_gets_its_files_or_the_command_that_would_do() {
        assert_eq!(ensure_open_files(1), Ok(()));
        let error = ensure_open_files(u64::MAX / 4).expect_err("no system opens so many");
        let text = error.to_string();
        assert!(text.contains(&raise(error.needed)), "{text}");
    }

    #[test]
    fn the_soft_limit_is_raised_where_the_hard_one_allows() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
        setrlimit(Resource::RLIMIT_NOFILE, 600.min(hard), hard).expect("lowering is allowed");
        let streams = (hard.min(4_000) - OWN_FILES) / 2;
        assert_eq!(ensure_open_files(streams), Ok(()));
        let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
        assert!(soft >= needed_files(streams), "{soft}");
    }
}
