//! Owns the turns between hyper and the socket.
//!
//! hyper's connection has no task of its own: the exchange polls it. Between two reads of the socket
//! it lets hyper and the body run until neither has anything left to do, and only then grants the
//! next read. So a piece of the body belongs to the read that brought its last byte, whatever hyper
//! buffers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker, ready};

use hyper::Response;

use super::answer::{self, Framing};
use super::deadline::Deadlines;
use super::exchange::{BodyEnd, Break, Sink};
use super::http::{Body, Broke, Driver, Piece};
use super::tap::{Gate, Tap};

/// Reads of one exchange in a row, before the worker's other streams get their turn.
const READS_A_POLL: usize = 8;
/// Turns that hyper gets to find out that an answer is over; it needs two.
const TURNS_TO_REST: usize = 16;

/// How the body ended, or the error in place of a head.
pub(super) type End = Result<BodyEnd, Broke>;

/// An exchange under way.
pub(super) struct Turns<'a, R, S> {
    response: Pin<&'a mut R>,
    driver: &'a mut Option<Driver>,
    tap: &'a Tap,
    body: Option<(Body, Framing)>,
    sink: &'a mut S,
    deadlines: Deadlines,
    stir: Arc<Stir>,
}

/// Woken when one of hyper's halves has something for the other. The task itself is not: it runs.
#[derive(Debug, Default)]
struct Stir(AtomicBool);

impl Wake for Stir {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

impl<'a, R, S> Turns<'a, R, S>
where
    R: Future<Output = Result<Response<Body>, Broke>>,
    S: Sink,
{
    pub(super) fn new(
        response: Pin<&'a mut R>,
        driver: &'a mut Option<Driver>,
        tap: &'a Tap,
        sink: &'a mut S,
        deadlines: Deadlines,
    ) -> Self {
        Turns {
            response,
            driver,
            tap,
            body: None,
            sink,
            deadlines,
            stir: Arc::default(),
        }
    }

    pub(super) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// Takes in what there is, up to some reads; wakes the task again if there may be more.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        for _ in 0..READS_A_POLL {
            if let Some(end) = self.settle() {
                return Poll::Ready(end);
            }
            if !grant_a_read(self.driver, self.tap, cx) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// After the end of the body, lets hyper find out whether the connection goes on. False if not,
    /// or if its body makes it unfit to.
    pub(super) fn come_to_rest(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.stir));
        for _ in 0..TURNS_TO_REST {
            poll_driver(self.driver, &mut Context::from_waker(&waker));
            if !self.stir.0.swap(false, Relaxed) {
                break;
            }
        }
        let delimited = matches!(&self.body, Some((_, Framing::Delimited)));
        delimited && self.driver.is_some()
    }

    /// Lets hyper and the body run, without the socket, until neither has anything for the other.
    fn settle(&mut self) -> Option<End> {
        let waker = Waker::from(Arc::clone(&self.stir));
        let mut cx = Context::from_waker(&waker);
        loop {
            poll_driver(self.driver, &mut cx);
            if let Poll::Ready(end) = self.poll_answer(&mut cx) {
                return Some(end);
            }
            if !self.stir.0.swap(false, Relaxed) {
                // hyper hands an end to the body before it goes; this is for a day when it does not.
                return self.driver.is_none().then(|| Ok(abandoned()));
            }
        }
    }

    /// Gives all that has come to the sink.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            let Some((body, framing)) = &mut self.body else {
                ready!(self.poll_head(cx))?;
                continue;
            };
            let framing = *framing;
            match ready!(body.poll_piece(cx)) {
                None => return Poll::Ready(Ok(framing.end())),
                Some(Ok(Piece::Trailers(trailers))) => self.sink.trailers(&trailers),
                Some(Ok(Piece::Data(data))) => {
                    if self.take_data(&data) {
                        return Poll::Ready(Ok(BodyEnd::Stopped));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Ok(answer::broken(&error))),
            }
        }
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broke>> {
        let (head, body) = ready!(self.response.as_mut().poll(cx))?.into_parts();
        if let Some(stamp) = self.tap.stamp() {
            self.sink.version(head.version);
            self.sink.head(stamp, head.status.as_u16(), &head.headers);
        }
        let framing = Framing::of(&head.headers, body.is_sized());
        self.body = Some((body, framing));
        Poll::Ready(Ok(()))
    }

    /// Gives a piece of the body to the sink; true if it wants no more.
    fn take_data(&mut self, data: &[u8]) -> bool {
        let Some(stamp) = self.tap.stamp().filter(|_| !data.is_empty()) else {
            return false;
        };
        let progress = self.sink.data(stamp, data);
        if progress.content {
            self.deadlines.content(stamp.at);
        }
        if progress.terminal {
            self.deadlines.terminal(stamp.at);
        }
        progress.stop
    }
}

fn abandoned() -> BodyEnd {
    BodyEnd::Broken {
        how: Break::Cut,
        text: "the connection ended before the body did".to_owned(),
    }
}

/// Lets hyper run with one read of the socket granted. True if it was used or hyper has finished:
/// then there may be more to do at once. Else the task is woken when there is.
fn grant_a_read(driver: &mut Option<Driver>, tap: &Tap, cx: &mut Context<'_>) -> bool {
    tap.set_gate(Gate::Once);
    let finished = poll_driver(driver, cx);
    let used = tap.gate() == Gate::Shut;
    tap.set_gate(Gate::Shut);
    used || finished
}

/// Lets hyper look at an idle connection once, to hear that it was closed.
pub(super) fn look_once(driver: &mut Option<Driver>, tap: &Tap) {
    let waker = Waker::from(Arc::new(Stir::default()));
    grant_a_read(driver, tap, &mut Context::from_waker(&waker));
}

/// Polls the half of the connection that reads and writes, if it has not finished. True if it finishes
/// now; what went wrong it tells the response or the body.
fn poll_driver(driver: &mut Option<Driver>, cx: &mut Context<'_>) -> bool {
    let finished = driver
        .as_mut()
        .is_some_and(|running| running.as_mut().poll(cx).is_ready());
    if finished {
        *driver = None;
    }
    finished
}
