//! Owns what is compared: denom by either stamp, or another client by its command line.

use crate::Failed;
use crate::process;

/// One client.
#[derive(Debug, Clone)]
pub enum Subject {
    /// Denom, by this kind of stamp.
    Denom(&'static str),
    /// Another.
    Peer(Peer),
}

/// Another client.
#[derive(Debug, Clone)]
pub struct Peer {
    name: String,
    command: String,
}

/// What a client is to do.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Where.
    pub url: &'a str,
    /// The simulated server's script.
    pub model: &'a str,
    /// Streams at once.
    pub streams: u64,
    /// Requests of all streams together.
    pub requests: u64,
    /// Tokens of each answer.
    pub tokens: u64,
    /// Requests ahead of the measured ones, where the client can be told.
    pub warmup: u64,
    /// Its file of results.
    pub out: &'a str,
}

impl Peer {
    /// Takes `NAME=COMMAND`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, command) = text.split_once('=').ok_or("NAME=COMMAND is wanted")?;
        Ok(Peer {
            name: name.to_owned(),
            command: command.to_owned(),
        })
    }
}

impl Subject {
    /// Its name in the tables.
    pub fn name(&self) -> String {
        match self {
            Subject::Denom(stamp) => format!("denom --stamp {stamp}"),
            Subject::Peer(peer) => peer.name.clone(),
        }
    }

    /// The command that does `task`.
    pub fn command(&self, task: &Task<'_>) -> Result<Vec<String>, Failed> {
        match self {
            Subject::Denom(stamp) => denom(stamp, task),
            Subject::Peer(peer) => Ok(peer.filled(task)),
        }
    }
}

/// The first request of a run goes alone: with a warm-up of one it is not measured.
fn denom(stamp: &str, task: &Task<'_>) -> Result<Vec<String>, Failed> {
    let binary = process::binary()?;
    let mut command = vec![
        binary.to_str().ok_or("a path that is no text")?.to_owned(),
        "run".into(),
        task.url.into(),
    ];
    let mut flag = |name: &str, value: String| command.extend([name.to_owned(), value]);
    flag("-m", task.model.into());
    flag("-c", task.streams.to_string());
    flag("--requests", task.requests.to_string());
    flag("--warmup", task.warmup.to_string());
    flag("--output-tokens", task.tokens.to_string());
    flag("--input-tokens", "32".into());
    flag("--stamp", stamp.into());
    flag("-o", task.out.into());
    command.extend(["--no-baseline", "--no-self-check", "-q"].map(str::to_owned));
    Ok(command)
}

impl Peer {
    /// By a shell, as it was typed.
    fn filled(&self, task: &Task<'_>) -> Vec<String> {
        let values = [
            ("{url}", task.url.to_owned()),
            ("{base}", task.url.trim_end_matches("/v1").to_owned()),
            ("{model}", task.model.to_owned()),
            ("{streams}", task.streams.to_string()),
            ("{requests}", task.requests.to_string()),
            ("{tokens}", task.tokens.to_string()),
            ("{out}", task.out.to_owned()),
        ];
        let filled = values
            .iter()
            .fold(self.command.clone(), |text, (name, value)| {
                text.replace(name, value)
            });
        vec!["sh".into(), "-c".into(), filled]
    }
}
