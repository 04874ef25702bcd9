//! What the connections of one thread share: what is due, and the counts.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::failure::{Failure, FailureClass};
use crate::origin::Url;
use crate::plan::Expect;
use crate::run::Run;
use crate::tally::{Place, Tally};

/// The pause of a connection after a failure, without a rate: it would otherwise retry in a tight
/// loop while a listener is gone, and the number of failures would only measure our speed.
pub(crate) const FAILURE_PAUSE: Duration = Duration::from_millis(1);
/// State shared by the connections of one thread.
pub(crate) struct ThreadShared {
    pub(crate) run: Arc<Run>,
    worker: usize,
    pub(crate) tally: RefCell<Tally>,
    /// Requests that may still be started.
    requests_left: Cell<u64>,
    /// Permits for requests that are due; none without a rate.
    pub(crate) due_permits: Option<Arc<Semaphore>>,
    /// Over TLS: how many connections asked for a name.
    names_used: Cell<usize>,
    /// How many requests each origin has had.
    turns: Vec<Cell<usize>>,
}

impl ThreadShared {
    pub(crate) fn new(run: &Arc<Run>, worker: usize, due_permits: Option<Arc<Semaphore>>) -> Self {
        Self {
            run: Arc::clone(run),
            worker,
            tally: RefCell::new(run.tally_of(worker)),
            requests_left: Cell::new(run.requests_of_worker(worker)),
            due_permits,
            names_used: Cell::new(0),
            turns: vec![Cell::new(0); run.plan.origins.len()],
        }
    }

    /// Waits for the next request; returns when it is, or was, due. `now` saves reading the clock.
    pub(crate) async fn next(&self, now: Instant) -> Option<Instant> {
        let Some(permits) = &self.due_permits else {
            let is_over = self.requests_left.get() == 0
                || self.run.stop.is_closed()
                || self.run.end().is_some_and(|end| now >= end);
            if is_over {
                return None;
            }
            self.begin();
            return Some(now);
        };
        permits.acquire().await.ok()?.forget();
        self.run.requests_started.fetch_add(1, Ordering::Relaxed);
        let number = self.begin();
        let workers = self.run.plan.threads as u64;
        let rate = self.run.plan.rate?;
        Some(self.run.start() + rate.due_after(number * workers + self.worker as u64))
    }

    /// The URL of a connection's next request.
    pub(crate) fn next_url(&self, connection: usize) -> &Url {
        let origin = self.run.plan.shares[connection];
        let turn = self.turns[origin].get();
        self.turns[origin].set(turn.wrapping_add(1));
        let number = turn
            .wrapping_mul(self.run.plan.threads)
            .wrapping_add(self.worker);
        self.run.plan.origins[origin].url(number)
    }

    /// The number of the next connection over TLS, in the order of the whole run.
    pub(crate) fn next_name(&self) -> usize {
        let number = self.names_used.get();
        self.names_used.set(number + 1);
        number * self.run.plan.threads + self.worker
    }

    /// Starts a request; returns its number within this thread.
    fn begin(&self) -> u64 {
        let mut tally = self.tally.borrow_mut();
        tally.requests_started += 1;
        self.requests_left
            .set(self.requests_left.get().saturating_sub(1));
        tally.requests_started - 1
    }

    /// Counts a request that has ended, or a handshake, which has no answer.
    pub(crate) fn count(
        &self,
        outcome: Result<Option<Answer>, Failure>,
        place: Place,
        times: &RequestTimes,
    ) {
        let mut tally = self.tally.borrow_mut();
        let at = times.ended - self.run.start();
        let latency = times.ended.saturating_duration_since(times.due_at);
        let is_measured = match &outcome {
            Ok(Some(answer)) => {
                tally.status(answer.status);
                true
            }
            Ok(None) => true,
            // Leaving it out would hide the slowest requests from the latencies.
            Err(failure) => matches!(
                failure.class,
                FailureClass::Timeout | FailureClass::HandshakeTimeout
            ),
        };
        if is_measured && self.due_permits.is_some() {
            tally.from_sending.record(times.ended - times.sent);
        }
        let judged = outcome.and_then(|answer| match answer {
            Some(answer) => check_answer(&answer, &self.run.plan.expect),
            None => Ok(()),
        });
        match judged {
            Ok(()) => tally.count_success(at, place, latency),
            Err(failure) => tally.fail(at, place, is_measured.then_some(latency), failure),
        }
    }
}

/// What is judged of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    /// The body begins as expected, as far as it goes.
    pub(crate) has_prefix: bool,
}

/// The times of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTimes {
    pub(crate) due_at: Instant,
    pub(crate) sent: Instant,
    pub(crate) ended: Instant,
}

/// Whether the response is as expected.
fn check_answer(answer: &Answer, expect: &Expect) -> Result<(), Failure> {
    let status = answer.status;
    if !expect.statuses.iter().any(|range| range.contains(&status)) {
        return Err(Failure::new(
            FailureClass::WrongStatus,
            format!("status {status}"),
        ));
    }
    let bytes = answer.body_bytes;
    if let Some(expected) = expect.body_bytes.filter(|expected| *expected != bytes) {
        let reason = format!("a body of {bytes} bytes instead of {expected} (status {status})");
        return Err(Failure::new(FailureClass::WrongBody, reason));
    }
    if !answer.has_prefix || bytes < expect.body_prefix.len() as u64 {
        let reason = format!("a body of {bytes} bytes that begins otherwise (status {status})");
        return Err(Failure::new(FailureClass::WrongBody, reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Response;

    fn class(answer: &[u8], expect: &Expect) -> Option<FailureClass> {
        let mut read = Response::new(false);
        read.advance(answer, &expect.body_prefix).unwrap();
        let read = Answer {
            status: read.status,
            body_bytes: read.body_bytes,
            has_prefix: read.has_prefix,
        };
        check_answer(&read, expect)
            .err()
            .map(|failure| failure.class)
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
        assert_eq!(class(answer, &expect), Some(FailureClass::WrongBody));
        expect.body_bytes = None;
        expect.body_prefix = b"hello, world".to_vec();
        assert_eq!(class(answer, &expect), Some(FailureClass::WrongBody));
        expect.body_prefix = b"bye".to_vec();
        assert_eq!(class(answer, &expect), Some(FailureClass::WrongBody));
        expect.statuses = vec![201..=204];
        assert_eq!(class(answer, &expect), Some(FailureClass::WrongStatus));
    }
}
