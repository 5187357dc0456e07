//! Owns a worker of an open loop: each request that is handed to it goes out at once, on a
//! connection that stands ready.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc as plain;

use measure::record::{Line, Sent};
use measure::time::Instant;
use measure::trace::{Trace, Transport};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::pace::Dispatch;
use super::pool::{Idle, Pool};
use crate::clock::Clock;
use crate::drive::books::Books;
use crate::drive::heart::Heart;
use crate::drive::shared::{Shared, Totals};
use crate::drive::{request, stream};
use crate::net::ConnectError;
use crate::net::wake::Worker;

/// What a worker is to do.
pub(super) struct Duty {
    pub shared: Arc<Shared>,
    pub level: u32,
    /// Which of the level's workers it is.
    pub number: u32,
    /// How many there are.
    pub workers: u32,
    /// Connections it keeps ready.
    pub spare: usize,
    /// Requests in flight among all workers.
    pub in_flight: Arc<AtomicU32>,
}

/// Works until the plan hands nothing more over and every request has ended. `ready` is dropped
/// once the spare connections are open, or could not be opened.
pub(super) fn run(
    duty: Duty,
    mut queue: mpsc::Receiver<Dispatch>,
    ready: plain::Sender<()>,
) -> io::Result<Totals> {
    let worker = Worker::new(duty.shared.job.clock)?;
    let pool = Rc::new(Pool::new(
        Arc::clone(&duty.shared),
        worker.wake().clone(),
        duty.spare,
        duty.number,
        duty.workers,
    ));
    let sender = Rc::new(Sender {
        books: RefCell::new(Books::open(duty.shared.job.clock.now())),
        pool,
        duty,
    });
    let heart = Heart::new(sender.duty.shared.job.clock);
    worker.run(async {
        let beats = tokio::task::spawn_local(Heart::beat(Rc::clone(&heart)));
        sender.make_ready().await;
        drop(ready);
        let mut requests = JoinSet::new();
        while let Some(dispatch) = queue.recv().await {
            requests.spawn_local(Rc::clone(&sender).request(dispatch));
            // Let it write first: reserves can wait.
            tokio::task::yield_now().await;
            sender.pool.top_up();
            while let Some(ended) = requests.try_join_next() {
                reap(ended);
            }
        }
        while let Some(ended) = requests.join_next().await {
            reap(ended);
        }
        beats.abort();
    });
    let (issued, in_flight) = sender.books.borrow().totals();
    Ok(Totals {
        issued,
        in_flight,
        planned: None,
        workers: Some(heart.borrow().fared()),
    })
}

/// A panic of a task is one of its worker.
fn reap(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

struct Sender {
    duty: Duty,
    books: RefCell<Books>,
    pool: Rc<Pool>,
}

impl Sender {
    /// Opens the spare connections, unless the run is to end meanwhile.
    async fn make_ready(&self) {
        let cancel = self.duty.shared.endings.cancel();
        for opening in self.pool.top_up() {
            tokio::select! {
                opened = opening => reap(opened),
                () = cancel.cancelled() => return,
            }
        }
    }

    async fn request(self: Rc<Self>, dispatch: Dispatch) {
        let shared = &self.duty.shared;
        let clock = shared.job.clock;
        let start = clock.now();
        self.books.borrow_mut().begin(start);
        shared.live.issued.fetch_add(1, Relaxed);
        let idle = self.pool.take();
        let stream = idle
            .as_ref()
            .map_or_else(|| self.pool.number(), |idle| idle.number);
        let trace = self.begun(&dispatch, stream, start);
        let (mut trace, idle) = self.send(dispatch.request, trace, idle).await;
        trace.start = start;
        trace.planned = dispatch.planned;
        trace.finish = clock.now();
        self.books.borrow_mut().end(trace.finish);
        self.duty.in_flight.fetch_sub(1, Relaxed);
        shared.live.count(&trace);
        shared.holds.learn(&trace);
        let first = !trace.connection.reused;
        shared.recorder.record(Line::Ended(Box::new(trace)));
        if let Some(mut idle) = idle {
            if first && !shared.closes.load(Relaxed) {
                stream::wait_for_close(shared, &mut idle.connection).await;
            }
            self.pool.give(idle);
        }
    }

    fn begun(&self, dispatch: &Dispatch, stream: u32, start: Instant) -> Trace {
        let shared = &self.duty.shared;
        let sent = Sent {
            id: dispatch.id,
            level: self.duty.level,
            stream,
            warmup: dispatch.warmup,
            start,
            planned: Some(dispatch.planned),
        };
        request::begun(shared, sent, &dispatch.prompt)
    }

    /// Sends on the connection given, else on one that is opened first, which shows as send lag.
    async fn send(
        &self,
        request: Built,
        mut trace: Trace,
        idle: Option<Idle>,
    ) -> (Trace, Option<Idle>) {
        let shared = &self.duty.shared;
        let mut idle = match idle {
            Some(idle) => idle,
            None => match self.open(trace.stream).await {
                Ok(Some(idle)) => idle,
                Ok(None) => {
                    trace.transport = match shared.endings.is_drain() {
                        true => Transport::Drained,
                        false => Transport::Cancelled,
                    };
                    return (trace, None);
                }
                Err(error) => {
                    return (request::unconnected(trace, &error, &shared.job.scrub), None);
                }
            },
        };
        trace.connection = request::used(&mut idle.how);
        match request {
            Ok(request) => {
                let connection = &mut idle.connection;
                let trace = request::exchange(shared, connection, request, trace, false).await;
                (trace, Some(idle))
            }
            Err(error) => (request::unbuilt(trace, &error), Some(idle)),
        }
    }

    /// A connection for a request that found none ready; none if the run is cut off meanwhile.
    async fn open(&self, number: u32) -> Result<Option<Idle>, ConnectError> {
        tokio::select! {
            opened = self.pool.open(number) => opened.map(Some),
            () = self.duty.shared.endings.cancel().cancelled() => Ok(None),
        }
    }
}

type Built = Result<hyper::Request<http_body_util::Full<bytes::Bytes>>, hyper::http::Error>;
