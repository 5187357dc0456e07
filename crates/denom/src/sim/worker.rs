//! Owns the server's one loop: it accepts, reads, and plays what is due, all on one thread.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;

use super::alarm;
use super::clock::monotonic_nanos;
use super::connection::{Connection, READ};
use super::ledger::{End, Keeper};
use super::library::Library;
use super::play::{Play, Turn};
use super::routes::{self, Known, Past};
use super::server::Config;
use super::tls::Tls;
use super::wire::Wire;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
/// A connection on which no byte moves for so long is closed: 10 minutes.
const IDLE_NANOS: u64 = 600_000_000_000;
/// From one look for idle connections to the next: 10 s.
const SWEEP_NANOS: u64 = 10_000_000_000;
/// Before another try when the system has no descriptor left: 10 ms.
const RETRY_NANOS: u64 = 10_000_000;

/// What passed through a server's hands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub connections: u64,
    /// Connections closed at once because too many were open.
    pub turned_away: u64,
    /// Times the system refused to accept a connection, most often for want of descriptors.
    pub accept_errors: u64,
    /// Connections closed because no byte moved on them for 10 minutes.
    pub idle: u64,
    /// Requests answered, of whatever kind.
    pub requests: u64,
}

/// When a connection's next step is due: time, slot, and the connection's id.
type Due = Reverse<(u64, usize, u64)>;

/// Everything the loop knows.
pub struct Worker {
    poll: Poll,
    listener: TcpListener,
    stop: Arc<AtomicBool>,
    most_connections: usize,
    connections: Slab<Connection>,
    due: BinaryHeap<Due>,
    /// Connections with something to begin on, by slot and id, in the order in which it came.
    waiting: VecDeque<(usize, u64)>,
    /// Requests being answered.
    active: u64,
    /// Bytes of their scripts.
    held: usize,
    next_sweep: u64,
    /// When to accept again after the system refused.
    accept_at: Option<u64>,
    scratch: Box<[u8; READ]>,
    counts: Counts,
    past: Past,
    library: Library,
    tls: Option<Tls>,
    only: Option<&'static str>,
}

impl Worker {
    /// A worker as `config` says, and the waker that makes it look at `stop`.
    pub fn new(config: &Config, stop: Arc<AtomicBool>) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(config.listen)?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(registry, WAKER)?;
        let worker = Worker {
            poll,
            listener,
            stop,
            most_connections: config.connections,
            connections: Slab::new(),
            due: BinaryHeap::new(),
            waiting: VecDeque::new(),
            active: 0,
            held: 0,
            next_sweep: monotonic_nanos() + SWEEP_NANOS,
            accept_at: None,
            scratch: Box::new([0; READ]),
            counts: Counts::default(),
            past: Past::default(),
            library: config.library.clone(),
            tls: config.tls.clone(),
            only: config.only,
        };
        Ok((worker, waker))
    }

    /// Where it listens.
    pub fn addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until told to stop, then closes every connection.
    pub fn run(&mut self, keeper: &Keeper) -> Counts {
        let mut events = Events::with_capacity(1_024);
        while !self.stop.load(Ordering::Acquire) {
            let until = match self.waiting.is_empty() {
                true => self.next_time(),
                false => 0,
            };
            let waited = alarm::wait(&mut self.poll, &mut events, until);
            if waited.is_err_and(|error| error.kind() != ErrorKind::Interrupted) {
                break;
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    WAKER => {}
                    Token(slot) => self.stirred(slot, event, keeper),
                }
            }
            self.on_time(keeper);
            self.begin_next(keeper);
        }
        for slot in self.slots(|_| true) {
            self.leave(slot, End::Cut, keeper);
        }
        self.counts
    }

    /// When the loop must look again, whatever the sockets do.
    fn next_time(&self) -> u64 {
        let due = self.due.peek().map(|Reverse((time, ..))| *time);
        let times = [due, self.accept_at, Some(self.next_sweep)];
        times.into_iter().flatten().min().unwrap_or(self.next_sweep)
    }

    /// Everything that the time has come for.
    fn on_time(&mut self, keeper: &Keeper) {
        let now = monotonic_nanos();
        // What becomes due meanwhile waits for the next round, after the sockets.
        for _ in 0..self.due.len() {
            let Some(&Reverse((time, slot, id))) = self.due.peek() else {
                break;
            };
            if time > now {
                break;
            }
            self.due.pop();
            match self.connections.get(slot) {
                Some(connection) if connection.id != id => {}
                Some(connection) if connection.play.is_some() => self.play(slot, keeper),
                Some(_) => self.begin(slot, keeper),
                None => {}
            }
        }
        if self.accept_at.is_some_and(|at| at <= now) {
            self.accept();
        }
        if self.next_sweep <= now {
            self.sweep(now, keeper);
        }
    }

    fn accept(&mut self) {
        self.accept_at = None;
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.welcome(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.counts.accept_errors += 1;
                    self.accept_at = Some(monotonic_nanos() + RETRY_NANOS);
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, mut stream: TcpStream) {
        self.counts.connections += 1;
        if self.connections.len() >= self.most_connections {
            self.counts.turned_away += 1;
            return;
        }
        let entry = self.connections.vacant_entry();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        let ready = stream
            .set_nodelay(true)
            .and_then(|()| registry.register(&mut stream, Token(entry.key()), interest));
        if ready.is_err() {
            self.counts.accept_errors += 1;
            return;
        }
        let wire = match &self.tls {
            None => Ok(Wire::Plain(stream)),
            Some(tls) => tls.session(stream).map(|new| Wire::Secured(Box::new(new))),
        };
        let Ok(wire) = wire else {
            self.counts.accept_errors += 1;
            return;
        };
        entry.insert(Connection::new(
            wire,
            self.counts.connections,
            monotonic_nanos(),
        ));
    }

    fn stirred(&mut self, slot: usize, event: &Event, keeper: &Keeper) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        if event.is_readable() {
            connection.alive = monotonic_nanos();
            let waited = connection.http2().is_some_and(|http2| http2.is_ready());
            let received = connection.receive(&mut self.scratch);
            let is_http2 = connection.http2().is_some();
            if received.is_err() || (connection.stale && !is_http2) {
                return self.leave(slot, End::ClientGone, keeper);
            }
            if !waited {
                connection.since = connection.alive;
            }
            if connection.play.is_none() && !connection.waits {
                connection.waits = true;
                self.waiting.push_back((slot, connection.id));
            }
        }
        self.stirred_frames(slot, event, keeper);
    }

    /// What a stir of the socket means for an answer in progress, and for frames that wait.
    fn stirred_frames(&mut self, slot: usize, event: &Event, keeper: &Keeper) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let cancelled = connection.http2().map(|http2| http2.is_cancelled());
        match cancelled {
            Some(true) => self.over(slot, End::ClientGone, keeper),
            // The client may have opened its window, and not only the socket.
            Some(false) if connection.blocked => self.play(slot, keeper),
            None if connection.blocked && event.is_writable() => self.play(slot, keeper),
            _ if event.is_writable() && connection.send_waiting(false).is_err() => {
                self.leave(slot, End::ClientGone, keeper);
            }
            _ => {}
        }
    }

    /// Starts on one request of those that wait. To make a script takes longer than to read a
    /// request: one at a time, so that those that come meanwhile are read, and count from then.
    fn begin_next(&mut self, keeper: &Keeper) {
        let Some((slot, id)) = self.waiting.pop_front() else {
            return;
        };
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        if connection.id != id {
            return;
        }
        connection.waits = false;
        if connection.play.is_none() {
            self.begin(slot, keeper);
        }
    }

    /// Starts on the next request of a connection that is answering none, if one is whole.
    fn begin(&mut self, slot: usize, keeper: &Keeper) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let Some(request) = connection.next_request() else {
            return;
        };
        if connection.stale {
            return self.leave(slot, End::Cut, keeper);
        }
        let received = connection.since;
        self.active += 1;
        let known = Known {
            past: &mut self.past,
            library: &self.library,
            only: self.only,
            held: self.held,
        };
        let answer = routes::answer(request, received, known);
        self.counts.requests = self.past.requests;
        let play = Play::new(answer, received, self.active);
        self.held += play.size();
        connection.play = Some(play);
        self.play(slot, keeper);
    }

    /// Gives the play of a connection its turn.
    fn play(&mut self, slot: usize, keeper: &Keeper) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let Some(turn) = connection.turn(self.active) else {
            return;
        };
        match turn {
            Turn::Due(at) => {
                connection.alive = monotonic_nanos();
                self.due.push(Reverse((at, slot, connection.id)));
            }
            Turn::Blocked | Turn::Stalled => {}
            Turn::Over(end) => self.over(slot, end, keeper),
        }
    }

    /// Enters a finished request into the ledger; closes its connection if it cannot go on.
    fn over(&mut self, slot: usize, end: End, keeper: &Keeper) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let Some(play) = connection.play.take() else {
            return;
        };
        self.active -= 1;
        self.held -= play.size();
        connection.stale = play.leaves_stale();
        connection.since = monotonic_nanos();
        connection.blocked = false;
        let cancelled = connection.http2().is_some_and(|http2| {
            let cancelled = http2.is_cancelled();
            http2.finish();
            cancelled
        });
        let goes_on = play.goes_on(if cancelled { End::Done } else { end });
        if let Some(record) = play.into_record(end) {
            keeper.enter(record);
        }
        if cancelled {
            // If that fails, the next read does too.
            let _ = connection.send_waiting(true);
        }
        if goes_on {
            // The next request may be here already.
            self.due.push(Reverse((0, slot, connection.id)));
            return;
        }
        let mut connection = self.connections.remove(slot);
        match end {
            End::Reset => connection.reset(),
            End::Done => connection.stream.finish(),
            End::Cut | End::ClientGone => {}
        }
    }

    /// Drops a connection, whatever it is doing.
    fn leave(&mut self, slot: usize, end: End, keeper: &Keeper) {
        self.over(slot, end, keeper);
        self.connections.try_remove(slot);
    }

    fn sweep(&mut self, now: u64, keeper: &Keeper) {
        self.next_sweep = now + SWEEP_NANOS;
        let idle = |connection: &Connection| now.saturating_sub(connection.alive) > IDLE_NANOS;
        let slots = self.slots(idle);
        self.counts.idle += slots.len() as u64;
        for slot in slots {
            self.leave(slot, End::Cut, keeper);
        }
    }

    fn slots(&self, which: impl Fn(&Connection) -> bool) -> Vec<usize> {
        let chosen = self
            .connections
            .iter()
            .filter(|(_, connection)| which(connection));
        chosen.map(|(slot, _)| slot).collect()
    }
}
