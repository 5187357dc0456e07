//! Owns the writing of a record file: appended as a run goes, never more than 100 ms behind.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use measure::record::Line;
use measure::time::Length;

use crate::clock::{Clock, RunClock};
use crate::exit::Failure;
use crate::page::escape;

/// Lines that may wait to be written before a worker has to.
const QUEUE: usize = 16_384;
/// Bytes gathered before they are written.
const GATHER: usize = 64 << 10;
/// The longest that a line waits.
const FLUSH: Length = Length::from_millis(50);
/// Most bytes kept in memory once the file takes no more.
const KEPT: usize = 256 << 20;

/// Takes lines from any thread.
#[derive(Debug, Clone)]
pub struct Recorder {
    lines: SyncSender<Line>,
    waits: Arc<AtomicU64>,
    failed: Arc<AtomicBool>,
}

/// The writing thread.
#[derive(Debug)]
pub struct Writer {
    thread: JoinHandle<Written>,
}

/// What became of the file.
#[derive(Debug)]
pub struct Written {
    /// Bytes that the file took.
    pub bytes: u64,
    /// Lines that it did not take: all of them where there is no file.
    pub tail: Vec<u8>,
    /// Lines for which there was no room in memory either.
    pub lost: u64,
    /// Why it took no more.
    pub error: Option<io::Error>,
}

/// Opens a new record file.
///
/// # Errors
/// With code 2 where it exists and may not be overwritten, 74 where it cannot be made.
pub fn create(file: &Path, force: bool) -> Result<std::fs::File, Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let shown = file.display();
    options.open(file).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::usage(format!(
            "the record file {shown} exists: name another, or overwrite it with --force; nothing was sent"
        )),
        _ => Failure::not_written(format!(
            "the record file {shown} cannot be made: {error}; nothing was sent"
        )),
    })
}

/// The record file's name where none is given: by the time it began.
pub fn default_name(began_unix_ns: u64) -> PathBuf {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(began_unix_ns);
    let stamp = humantime::format_rfc3339_millis(at).to_string();
    let name: String = stamp
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .collect();
    PathBuf::from(format!("denom-{name}.denom.jsonl"))
}

/// Starts writing to `file`, or to memory only.
///
/// # Errors
/// Where no thread can be started.
pub fn start(file: Option<std::fs::File>, clock: RunClock) -> io::Result<(Recorder, Writer)> {
    let (lines, queue) = sync_channel(QUEUE);
    let failed = Arc::new(AtomicBool::new(false));
    let desk = Desk {
        file,
        clock,
        failed: Arc::clone(&failed),
        gathered: Vec::new(),
        written: Written {
            bytes: 0,
            tail: Vec::new(),
            lost: 0,
            error: None,
        },
    };
    let thread = std::thread::Builder::new()
        .name("recorder".into())
        .spawn(move || desk.run(&queue))?;
    Ok((
        Recorder {
            lines,
            waits: Arc::default(),
            failed,
        },
        Writer { thread },
    ))
}

impl Recorder {
    /// Hands a line over. Where the queue is full the caller waits, which is counted.
    pub fn record(&self, line: Line) {
        if let Err(TrySendError::Full(line)) = self.lines.try_send(line) {
            self.waits.fetch_add(1, Ordering::Relaxed);
            // The writer ends only after every sender is gone, so this cannot fail.
            if self.lines.send(line).is_err() {
                self.failed.store(true, Ordering::Relaxed);
            }
        }
    }

    /// How often a caller had to wait, since the last time this was asked.
    pub fn take_waits(&self) -> u64 {
        self.waits.swap(0, Ordering::Relaxed)
    }

    /// Whether the file takes no more: then nothing new should be started.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

impl Writer {
    /// Waits until every line is written. All recorders must have been dropped.
    pub fn finish(self) -> Written {
        match self.thread.join() {
            Ok(written) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

struct Desk {
    file: Option<std::fs::File>,
    clock: RunClock,
    failed: Arc<AtomicBool>,
    gathered: Vec<u8>,
    written: Written,
}

impl Desk {
    fn run(mut self, queue: &Receiver<Line>) -> Written {
        let mut oldest = self.clock.now();
        loop {
            match queue.recv_timeout(FLUSH.into()) {
                Ok(line) => {
                    if self.gathered.is_empty() {
                        oldest = self.clock.now();
                    }
                    self.gather(&line);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let waited = self.clock.now().since_or_zero(oldest) >= FLUSH;
            if waited || self.gathered.len() >= GATHER {
                self.write();
            }
        }
        self.write();
        if self.written.error.is_none()
            && let Some(file) = &self.file
            && let Err(error) = file.sync_data()
        {
            self.written.error = Some(error);
        }
        self.written
    }

    fn gather(&mut self, line: &Line) {
        if self.gathered.len() + self.written.tail.len() > KEPT {
            self.written.lost += 1;
            return;
        }
        // Only types that always serialise stand in a line; a failure would be a bug.
        match serde_json::to_string(line) {
            Ok(text) => self
                .gathered
                .extend_from_slice(escape::json(text).as_bytes()),
            Err(_) => self.written.lost += 1,
        }
        self.gathered.push(b'\n');
    }

    fn write(&mut self) {
        let mut from = 0;
        while let Some(file) = self.file.as_mut().filter(|_| from < self.gathered.len()) {
            match file.write(&self.gathered[from..]) {
                Ok(0) => self.fail(ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    from += bytes;
                    self.written.bytes += bytes as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.fail(error),
            }
        }
        self.written.tail.extend_from_slice(&self.gathered[from..]);
        self.gathered.clear();
    }

    /// The file takes no more: what follows stays in memory, for the page.
    fn fail(&mut self, error: io::Error) {
        self.failed.store(true, Ordering::Relaxed);
        self.written.error = Some(error);
        self.file = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::record::{Footer, Note};

    fn note(text: &str) -> Line {
        Line::Note(Note {
            code: "test".into(),
            text: text.into(),
        })
    }

    #[test]
    fn without_a_file_every_line_is_in_the_tail_in_order() {
        let (recorder, writer) = start(None, RunClock::start()).expect("starts");
        recorder.record(note("one"));
        recorder.record(Line::Footer(Footer {
            issued: 1,
            ended: 1,
            interrupted: false,
        }));
        drop(recorder);
        let written = writer.finish();
        let text = String::from_utf8(written.tail).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains("one") && lines[1].contains("footer"));
        assert_eq!((written.bytes, written.lost), (0, 0));
    }

    #[test]
    fn a_file_that_takes_no_more_leaves_the_rest_in_the_tail() {
        // A file opened for reading refuses every write.
        let file = std::fs::File::open("/dev/null").expect("opens");
        let (recorder, writer) = start(Some(file), RunClock::start()).expect("starts");
        recorder.record(note("kept"));
        drop(recorder);
        let written = writer.finish();
        assert!(written.error.is_some());
        assert!(String::from_utf8_lossy(&written.tail).contains("kept"));
    }

    #[test]
    fn the_default_name_is_the_time() {
        let name = default_name(1_796_083_800_123_000_000);
        assert_eq!(name, PathBuf::from("denom-20261201T001000123Z.denom.jsonl"));
    }
}
