//! Owns the server as its user holds it: where it listens, how it starts and stops.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::ledger::{Keeper, Ledger, Lost};
use super::library::Library;
use super::tls::Tls;
pub use super::worker::Counts;
use super::worker::Worker;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// A new file for the ledger, a JSON line a request.
    pub ledger_file: Option<PathBuf>,
    /// Writes that the ledger in memory keeps, over all its records; 0 for none.
    pub ledger_writes: usize,
    /// Connections held at once; further ones are closed as they come, and counted.
    pub connections: usize,
    /// Scripts besides its own.
    pub library: Library,
    /// Whether it speaks TLS, and how.
    pub tls: Option<Tls>,
    /// The script that it plays whatever the model's name is.
    pub only: Option<&'static str>,
}

impl Default for Config {
    /// A free port of the loopback address, a ledger in memory of at most 64 MB, and at most 16,384
    /// connections.
    fn default() -> Self {
        Config {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            ledger_file: None,
            ledger_writes: 4_000_000,
            connections: 16_384,
            library: Library::default(),
            tls: None,
            only: None,
        }
    }
}

/// The simulated server.
#[derive(Debug)]
pub struct Server;

/// A server at work. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    secured: bool,
    ledger: Ledger,
    stop: Arc<AtomicBool>,
    waker: mio::Waker,
    thread: Option<JoinHandle<Counts>>,
}

/// What a server did until it stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// What passed through its hands.
    pub counts: Counts,
    /// What its ledger could not keep.
    pub lost: Lost,
}

impl Server {
    /// Starts a server on a thread of its own. Fails if the address cannot be listened on or the
    /// ledger's file exists.
    pub fn start(config: &Config) -> io::Result<Running> {
        let ledger = Ledger::new(config.ledger_writes);
        let stop = Arc::new(AtomicBool::new(false));
        let (mut worker, waker) = Worker::new(config, Arc::clone(&stop))?;
        let addr = worker.addr()?;
        // Last, so that a failure above leaves no empty file behind.
        let keeper = Keeper::start(ledger.clone(), config.ledger_file.as_deref())?;
        let builder = std::thread::Builder::new().name("sim-server".to_owned());
        let thread = builder.spawn(move || {
            let counts = worker.run(&keeper);
            keeper.finish();
            counts
        })?;
        Ok(Running {
            addr,
            secured: config.tls.is_some(),
            ledger,
            stop,
            waker,
            thread: Some(thread),
        })
    }
}

impl Running {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its address as a client writes it, without a path.
    pub fn url(&self) -> String {
        let scheme = if self.secured { "https" } else { "http" };
        format!("{scheme}://{}", self.addr)
    }

    /// What it has written so far, and when.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Closes every connection, returns when the thread and the ledger's file are done.
    pub fn stop(mut self) -> Summary {
        let counts = self.end().unwrap_or_default();
        let lost = self.ledger.lost();
        Summary { counts, lost }
    }

    /// `None` if it had ended already, or its thread panicked.
    fn end(&mut self) -> Option<Counts> {
        let thread = self.thread.take()?;
        self.stop.store(true, Ordering::Release);
        // Only a poll that is gone cannot be woken, and then its thread is over too.
        let _ = self.waker.wake();
        thread.join().ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
