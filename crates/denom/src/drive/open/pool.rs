//! Owns a worker's idle connections: opened before they are needed, used again where they stay open.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use measure::time::{Instant, Length};
use measure::trace;

use crate::clock::{Clock, RunClock};
use crate::drive::request;
use crate::drive::shared::Shared;
use crate::net::{ConnectError, Connection, Wake, connect::connect};

/// The time between two looks for idle connections that the server has closed.
const SWEEP: Length = Length::from_secs(1);
/// Most idle connections that a worker keeps for use again.
const MOST_IDLE: usize = 1_024;

/// A connection that no request is on.
pub(super) struct Idle {
    pub connection: Connection<RunClock>,
    /// How it came about, until its first request has taken note of it.
    pub how: trace::Connection,
    /// Its number within the level.
    pub number: u32,
}

/// The idle connections of one worker.
pub(super) struct Pool {
    shared: Arc<Shared>,
    wake: Wake,
    /// Connections to have ready ahead of need.
    spare: usize,
    /// Most idle connections kept.
    most: usize,
    idle: RefCell<Vec<Idle>>,
    opening: Cell<usize>,
    /// The last attempt failed: then one at a time is enough.
    failing: Cell<bool>,
    swept: Cell<Instant>,
    /// The next connection's number, and the step to the one after.
    next: Cell<u32>,
    step: u32,
}

impl Pool {
    /// An empty pool whose connections are numbered from `first` on, `step` apart.
    pub fn new(shared: Arc<Shared>, wake: Wake, spare: usize, first: u32, step: u32) -> Self {
        let swept = Cell::new(shared.job.clock.now());
        Pool {
            shared,
            wake,
            spare,
            most: spare.max(MOST_IDLE),
            idle: RefCell::default(),
            opening: Cell::new(0),
            failing: Cell::new(false),
            swept,
            next: Cell::new(first),
            step,
        }
    }

    /// The connection that was used last, if one is open that may carry a request.
    pub fn take(&self) -> Option<Idle> {
        loop {
            let mut idle = self.idle.borrow_mut().pop()?;
            if self.may_carry(&mut idle) {
                return Some(idle);
            }
        }
    }

    fn may_carry(&self, idle: &mut Idle) -> bool {
        let used_up = idle.how.reused && self.shared.closes.load(Relaxed);
        idle.connection.is_open() && !used_up
    }

    /// Takes a connection back after an answer; beyond the most kept it is closed.
    pub fn give(&self, mut idle: Idle) {
        let mut all = self.idle.borrow_mut();
        if all.len() < self.most && self.may_carry(&mut idle) {
            all.push(idle);
        }
    }

    /// Opens a connection that is to have this number.
    pub async fn open(&self, number: u32) -> Result<Idle, ConnectError> {
        let job = &self.shared.job;
        let opened = connect(&job.target, &job.connect, &job.clock, &self.wake).await;
        self.failing.set(opened.is_err());
        let connection = opened?;
        Ok(Idle {
            how: request::opened(&connection, None),
            connection,
            number,
        })
    }

    /// A number that no other connection of the level has.
    pub fn number(&self) -> u32 {
        let number = self.next.get();
        self.next.set(number.wrapping_add(self.step));
        number
    }

    /// Opens what is missing, without waiting for it. What cannot be opened is tried again when
    /// the next request is due; that request then opens its own, and has the error.
    pub fn top_up(self: &Rc<Self>) -> Vec<tokio::task::JoinHandle<()>> {
        self.sweep();
        let there = self.idle.borrow().len() + self.opening.get();
        let missing = match (self.spare.saturating_sub(there), self.failing.get()) {
            (missing, false) => missing,
            (missing, true) => missing.min(1_usize.saturating_sub(self.opening.get())),
        };
        let open = |_| {
            let pool = Rc::clone(self);
            self.opening.set(self.opening.get() + 1);
            tokio::task::spawn_local(async move {
                let opened = pool.open(pool.number()).await;
                pool.opening.set(pool.opening.get().saturating_sub(1));
                if let Ok(idle) = opened {
                    // Under those that have carried an answer: they are known to work.
                    pool.idle.borrow_mut().insert(0, idle);
                }
            })
        };
        (0..missing).map(open).collect()
    }

    /// Once a second: what the server has closed is no reserve.
    fn sweep(&self) {
        let now = self.shared.job.clock.now();
        if now.since_or_zero(self.swept.get()) >= SWEEP {
            self.swept.set(now);
            self.idle
                .borrow_mut()
                .retain_mut(|idle| self.may_carry(idle));
        }
    }
}
