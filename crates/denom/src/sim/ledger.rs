//! Owns the ledger: for each chat request, the instant before every write, kept in memory and in a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Records that may wait for the file before further ones are dropped.
const QUEUE: usize = 4_096;

/// One write to a socket, in the file as `[nanoseconds, bytes, tokens]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(u64, u32, u32)", from = "(u64, u32, u32)")]
pub struct Sent {
    /// CLOCK_MONOTONIC directly before the write, in nanoseconds.
    pub at: u64,
    /// Bytes the system took, HTTP framing included.
    pub bytes: u32,
    /// Output tokens whose last byte was among them.
    pub tokens: u32,
}

/// How a request ended, as the server saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All of the script was written.
    Done,
    /// Closed by the server before a proper end: by script, or because it stopped.
    Cut,
    /// Reset by the script.
    Reset,
    /// The client left or stopped reading.
    ClientGone,
}

/// One request in the ledger. All times are CLOCK_MONOTONIC in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The client's `x-request-id`.
    pub request: Option<String>,
    /// The model asked for; empty if the body could not be read.
    pub model: String,
    /// The first 64 characters of the last message.
    pub prompt_head: String,
    /// When the request had been read whole: the origin of its script.
    pub received_ns: u64,
    /// Every write, head included, in order.
    pub writes: Vec<Sent>,
    /// When it ended.
    pub end_ns: u64,
    /// How it ended.
    pub end: End,
}

/// What the ledger could not keep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lost {
    /// Records not kept in memory, because it was full.
    pub memory: u64,
    /// Records not written to the file, because it was too slow or failed.
    pub file: u64,
    /// The file's first error.
    pub error: Option<String>,
}

/// The ledger of one server, shared with whoever reads it.
#[derive(Debug, Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    kept: Mutex<Kept>,
    changed: Condvar,
    limit: usize,
}

#[derive(Debug, Default)]
struct Kept {
    records: Vec<Record>,
    /// Memory taken, counted in writes.
    size: usize,
    lost: Lost,
}

/// The end of the ledger that the server writes to.
pub struct Keeper {
    ledger: Ledger,
    file: Option<(SyncSender<Record>, JoinHandle<()>)>,
}

impl Ledger {
    /// An empty ledger that keeps records in memory while their writes number at most `limit`.
    pub fn new(limit: usize) -> Self {
        let shared = Shared {
            kept: Mutex::default(),
            changed: Condvar::new(),
            limit,
        };
        Ledger {
            shared: Arc::new(shared),
        }
    }

    /// Every record kept so far, in the order in which requests ended.
    pub fn records(&self) -> Vec<Record> {
        self.kept().records.clone()
    }

    /// As [`Ledger::records`], once there are at least `count`. `None` if there are not in time.
    pub fn wait_for(&self, count: usize, at_most: Duration) -> Option<Vec<Record>> {
        let short = |kept: &mut Kept| kept.records.len() < count;
        let waited = self
            .shared
            .changed
            .wait_timeout_while(self.kept(), at_most, short);
        let (kept, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        (!outcome.timed_out()).then(|| kept.records.clone())
    }

    /// What could not be kept so far.
    pub fn lost(&self) -> Lost {
        self.kept().lost.clone()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A reader that panicked has changed nothing.
        self.shared
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, record: Record) {
        let mut kept = self.kept();
        let size = record.writes.len() + 1;
        if kept.size + size > self.shared.limit {
            kept.lost.memory += 1;
            return;
        }
        kept.size += size;
        kept.records.push(record);
        self.shared.changed.notify_all();
    }
}

impl Keeper {
    /// A keeper for `ledger`, which also writes a line a record to a new file, from a thread of its
    /// own. Fails if the file exists or cannot be made.
    pub fn start(ledger: Ledger, file: Option<&Path>) -> io::Result<Self> {
        let Some(path) = file else {
            return Ok(Keeper { ledger, file: None });
        };
        let file = File::create_new(path)?;
        let (sender, receiver) = sync_channel(QUEUE);
        let thread = {
            let ledger = ledger.clone();
            let builder = std::thread::Builder::new().name("sim-ledger".to_owned());
            builder.spawn(move || write_all(file, &receiver, &ledger))?
        };
        let file = Some((sender, thread));
        Ok(Keeper { ledger, file })
    }

    /// Enters one record.
    pub fn enter(&self, record: Record) {
        let Some((sender, _)) = &self.file else {
            return self.ledger.keep(record);
        };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            sender.try_send(record.clone())
        {
            self.ledger.kept().lost.file += 1;
        }
        self.ledger.keep(record);
    }

    /// Returns when all that was entered is in the file.
    pub fn finish(self) {
        if let Some((sender, thread)) = self.file {
            drop(sender);
            // A panic of the writing thread has been printed by then.
            let _ = thread.join();
        }
    }
}

fn write_all(mut file: File, records: &Receiver<Record>, ledger: &Ledger) {
    let mut line = Vec::new();
    for record in records {
        line.clear();
        let outcome = serde_json::to_writer(&mut line, &record)
            .map_err(io::Error::from)
            .and_then(|()| {
                line.push(b'\n');
                file.write_all(&line)
            });
        if let Err(error) = outcome {
            let mut kept = ledger.kept();
            kept.lost.file += 1;
            kept.lost.error.get_or_insert(error.to_string());
        }
    }
}

impl From<Sent> for (u64, u32, u32) {
    fn from(sent: Sent) -> Self {
        (sent.at, sent.bytes, sent.tokens)
    }
}

impl From<(u64, u32, u32)> for Sent {
    fn from((at, bytes, tokens): (u64, u32, u32)) -> Self {
        Sent { at, bytes, tokens }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(writes: usize) -> Record {
        let sent = Sent {
            at: 5,
            bytes: 20,
            tokens: 1,
        };
        Record {
            request: None,
            model: "normal".to_owned(),
            prompt_head: "hello".to_owned(),
            received_ns: 3,
            writes: vec![sent; writes],
            end_ns: 9,
            end: End::ClientGone,
        }
    }

    #[test]
    fn a_record_is_one_line_with_bare_writes() {
        let line = serde_json::to_string(&record(2)).expect("a record has a JSON form");
        let expected = r#"{"request":null,"model":"normal","prompt_head":"hello","received_ns":3,"writes":[[5,20,1],[5,20,1]],"end_ns":9,"end":"client_gone"}"#;
        assert_eq!(line, expected);
        assert_eq!(serde_json::from_str::<Record>(&line).ok(), Some(record(2)));
    }

    #[test]
    fn a_full_ledger_counts_what_it_drops() {
        let ledger = Ledger::new(10);
        let keeper = Keeper::start(ledger.clone(), None).expect("no file is asked for");
        for writes in [4, 4, 0, 3] {
            keeper.enter(record(writes));
        }
        assert_eq!(ledger.records(), [record(4), record(4)]);
        assert_eq!(ledger.lost().memory, 2);
        assert_eq!(ledger.wait_for(2, Duration::ZERO), Some(vec![record(4); 2]));
        assert_eq!(ledger.wait_for(3, Duration::ZERO), None);
    }
}
