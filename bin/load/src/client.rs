//! The requests: every connection is a task that sends what is due.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::answer::Response;
use crate::exchange::{Connection, NoResponse, OutgoingRequest};
use crate::failure::{Class, Fault};
use crate::plan::{Expect, Origin};
use crate::run::Run;
use crate::tally::Tally;

/// The pause of a connection after a failure, without a rate: it would otherwise retry in a tight
/// loop while a listener is gone, and the number of failures would only measure our speed.
const FAILURE_PAUSE: Duration = Duration::from_millis(1);
/// How many connections of a thread are opened concurrently before the start.
const OPENING_COUNT_MAX: usize = 64;

/// State shared by the connections of one thread.
struct ThreadShared {
    run: Arc<Run>,
    worker: usize,
    tally: RefCell<Tally>,
    /// Requests that may still be started.
    left: Cell<u64>,
    /// Permits for requests that are due; none without a rate.
    due: Option<Arc<Semaphore>>,
}

impl ThreadShared {
    /// Waits for the next request; returns when it is, or was, due. `now` saves reading the clock.
    async fn next(&self, now: Instant) -> Option<Instant> {
        let Some(permits) = &self.due else {
            let is_over = self.left.get() == 0
                || self.run.stop.is_closed()
                || self.run.end().is_some_and(|end| now >= end);
            if is_over {
                return None;
            }
            self.begin();
            return Some(now);
        };
        permits.acquire().await.ok()?.forget();
        self.run.begun.fetch_add(1, Ordering::Relaxed);
        let number = self.begin();
        let workers = self.run.plan.threads as u64;
        let rate = self.run.plan.rate?;
        Some(self.run.start() + rate.due(number * workers + self.worker as u64))
    }

    /// Starts a request; returns its number within this thread.
    fn begin(&self) -> u64 {
        let mut tally = self.tally.borrow_mut();
        tally.begun += 1;
        self.left.set(self.left.get().saturating_sub(1));
        tally.begun - 1
    }
}

/// Runs the connections of one thread to their end.
pub(crate) async fn work(run: &Arc<Run>, worker: usize, due: Option<Arc<Semaphore>>) -> Tally {
    let shared = Rc::new(ThreadShared {
        run: Arc::clone(run),
        worker,
        tally: RefCell::new(Tally::new(run.plan.timeline)),
        left: Cell::new(run.share(worker)),
        due,
    });
    let opening = Rc::new(Semaphore::new(OPENING_COUNT_MAX));
    let tasks: Vec<_> = (worker..run.plan.connections)
        .step_by(run.plan.threads)
        .map(|number| {
            let (shared, opening) = (Rc::clone(&shared), Rc::clone(&opening));
            tokio::task::spawn_local(async move { Client::new(shared, number).run(&opening).await })
        })
        .collect();
    for task in tasks {
        // A panic is a bug and was printed; the other connections are counted nevertheless.
        let _ = task.await;
    }
    shared.tally.replace(Tally::new(None))
}

/// One client: one connection after another.
struct Client {
    shared: Rc<ThreadShared>,
    run: Arc<Run>,
    connection: Connection,
    number: usize,
    /// The index of the origin's next request.
    turn: usize,
}

impl Client {
    fn new(shared: Rc<ThreadShared>, number: usize) -> Self {
        Self {
            run: Arc::clone(&shared.run),
            connection: Connection::new(),
            shared,
            number,
            turn: number,
        }
    }

    async fn run(mut self, opening: &Semaphore) {
        let run = Arc::clone(&self.run);
        if !run.plan.is_closing {
            // The semaphore is not closed.
            let _permit = opening.acquire().await;
            if let Err(broken) = self.open(Instant::now() + run.plan.timeout).await {
                let mut tally = self.shared.tally.borrow_mut();
                tally.fail(Duration::ZERO, (self.number, None), broken.fault);
            }
        }
        run.barrier.wait().await;
        let start = run.start();
        let mut now = Instant::now();
        while let Some(due) = self.shared.next(now).await {
            let sent = if self.shared.due.is_some() {
                Instant::now()
            } else {
                due
            };
            let outcome = self.request(sent).await;
            now = Instant::now();
            let (is_broken, is_closing) = match &outcome {
                Ok(answer) => (false, answer.is_closing),
                Err(_) => (true, false),
            };
            self.count(outcome, due, sent, now - start, now);
            if is_closing {
                self.connection.await_close().await;
                now = Instant::now();
            } else if run.plan.is_closing {
                self.connection.close();
            }
            if is_broken && self.shared.due.is_none() {
                tokio::time::sleep(FAILURE_PAUSE).await;
                now = Instant::now();
            }
        }
        self.shared.tally.borrow_mut().received_bytes += self.connection.received_bytes;
    }

    fn count(
        &self,
        outcome: Result<Response, Fault>,
        due: Instant,
        sent: Instant,
        at: Duration,
        now: Instant,
    ) {
        let mut tally = self.shared.tally.borrow_mut();
        let latency = now.saturating_duration_since(due);
        let is_measured = match &outcome {
            Ok(answer) => {
                tally.status(answer.status);
                true
            }
            // Leaving it out would hide the slowest requests from the latencies.
            Err(fault) => fault.class == Class::Timeout,
        };
        if is_measured {
            tally.latency.record(latency);
            tally.slowest.note(at, self.number, latency);
            if self.shared.due.is_some() {
                tally.from_sending.record(now - sent);
            }
        }
        match outcome.and_then(|answer| judge(&answer, &self.run.plan.expect)) {
            Ok(()) => tally.succeed(at, latency),
            Err(fault) => {
                let port = self.connection.port();
                tally.fail(at, (self.number, port), fault);
            }
        }
    }

    /// Sends a request; once more, on a new connection, when the peer had closed the kept one
    /// before any response (RFC 9112 section 9.3.1).
    async fn request(&mut self, sent: Instant) -> Result<Response, Fault> {
        let turn = self.turn;
        self.turn = self.turn.wrapping_add(1);
        let deadline = sent + self.run.plan.timeout;
        let was_kept = self.connection.is_open();
        let first = self.attempt(turn, deadline).await;
        let answer = match first {
            Err(broken)
                if was_kept
                    && broken.is_before_answer
                    && matches!(broken.fault.class, Class::Closed | Class::Reset)
                    && self.run.plan.may_retry
                    && self.run.plan.is_idempotent() =>
            {
                self.shared.tally.borrow_mut().retried += 1;
                self.attempt(turn, deadline).await
            }
            first => first,
        };
        answer.map_err(|broken| broken.fault)
    }

    async fn attempt(&mut self, turn: usize, deadline: Instant) -> Result<Response, NoResponse> {
        if !self.connection.is_open() {
            self.open(deadline).await?;
        }
        let plan = &self.run.plan;
        let requests = &origin_of(&self.run, self.number).requests;
        let sent = OutgoingRequest {
            request: &requests[turn % requests.len()],
            is_bodyless: plan.is_bodyless(),
            prefix: &plan.expect.body_prefix,
            deadline: deadline.into(),
        };
        self.connection.exchange(sent).await
    }

    async fn open(&mut self, deadline: Instant) -> Result<(), NoResponse> {
        let began = Instant::now();
        let origin = origin_of(&self.run, self.number);
        let opened = self.connection.open(&origin.address, deadline.into()).await;
        opened.map_err(|fault| NoResponse {
            fault,
            is_before_answer: true,
        })?;
        let mut tally = self.shared.tally.borrow_mut();
        tally.opened += 1;
        tally.connect.record(began.elapsed());
        Ok(())
    }
}

/// The origin of the connection with this number.
fn origin_of(run: &Run, number: usize) -> &Origin {
    &run.plan.origins[number % run.plan.origins.len()]
}

/// Whether the response is as expected.
fn judge(answer: &Response, expect: &Expect) -> Result<(), Fault> {
    let status = answer.status;
    if !expect.statuses.iter().any(|range| range.contains(&status)) {
        return Err(Fault::new(Class::WrongStatus, format!("status {status}")));
    }
    let bytes = answer.body_bytes;
    if let Some(due) = expect.body_bytes.filter(|due| *due != bytes) {
        let reason = format!("a body of {bytes} bytes instead of {due} (status {status})");
        return Err(Fault::new(Class::WrongBody, reason));
    }
    if !answer.has_prefix || bytes < expect.body_prefix.len() as u64 {
        let reason = format!("a body of {bytes} bytes that begins otherwise (status {status})");
        return Err(Fault::new(Class::WrongBody, reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(answer: &[u8], expect: &Expect) -> Option<Class> {
        let mut read = Response::new(false);
        read.advance(answer, &expect.body_prefix).unwrap();
        judge(&read, expect).err().map(|fault| fault.class)
    }

    #[test]
    fn an_answer_is_judged_by_status_length_and_beginning() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let mut expect = Expect {
            statuses: vec![200..=204],
            body_bytes: Some(5),
            body_prefix: b"hell".to_vec(),
        };
        assert_eq!(class(answer, &expect), None);
        expect.body_bytes = Some(6);
        assert_eq!(class(answer, &expect), Some(Class::WrongBody));
        expect.body_bytes = None;
        expect.body_prefix = b"hello, world".to_vec();
        assert_eq!(class(answer, &expect), Some(Class::WrongBody));
        expect.body_prefix = b"bye".to_vec();
        assert_eq!(class(answer, &expect), Some(Class::WrongBody));
        expect.statuses = vec![201..=204];
        assert_eq!(class(answer, &expect), Some(Class::WrongStatus));
    }
}
