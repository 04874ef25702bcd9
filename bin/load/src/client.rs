//! The requests: every connection is a task that sends what is due.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::answer::Response;
use crate::exchange::{Connection, NoResponse, OutgoingRequest};
use crate::failure::{Failure, FailureClass};
use crate::origin::Url;
use crate::plan::Mode;
use crate::run::Run;
use crate::shared::{Answer, FAILURE_PAUSE, RequestTimes, ThreadShared};
use crate::tally::{Place, Tally};
use crate::tls::ClientHello;

/// How many connections of a thread are opened concurrently before the start.
pub(crate) const OPENING_COUNT_MAX: usize = 64;

/// How many handshakes may fail to bring a session for a connection.
const WARMING_COUNT_MAX: usize = 3;

/// Runs the connections of one thread to their end.
pub(crate) async fn work(
    run: &Arc<Run>,
    worker: usize,
    due_permits: Option<Arc<Semaphore>>,
) -> Tally {
    let shared = Rc::new(ThreadShared::new(run, worker, due_permits));
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
    /// Over TLS: names without a session get one before they are measured. It ends with a server
    /// that gives none.
    may_warm: bool,
}

/// The end of an operation that did not fail.
enum Outcome {
    /// A handshake, when nothing else was asked.
    Handshake,
    Response(Response),
}

impl Client {
    fn new(shared: Rc<ThreadShared>, number: usize) -> Self {
        Self {
            run: Arc::clone(&shared.run),
            connection: Connection::new(),
            shared,
            number,
            may_warm: true,
        }
    }

    async fn run(mut self, opening: &Semaphore) {
        let (run, shared) = (Arc::clone(&self.run), Rc::clone(&self.shared));
        {
            // The semaphore is not closed.
            let _permit = opening.acquire().await;
            if let Err(failure) = self.prepare().await {
                let mut tally = self.shared.tally.borrow_mut();
                tally.fail(Duration::ZERO, self.place(None), None, failure);
            }
        }
        run.barrier.wait().await;
        // The first who is here sets it.
        run.start();
        let mut now = Instant::now();
        while let Some(due_at) = self.shared.next(now).await {
            let sent = if self.shared.due_permits.is_some() {
                Instant::now()
            } else {
                due_at
            };
            let url = shared.next_url(self.number);
            let (outcome, ended) = if run.plan.mode == Mode::Handshakes {
                self.handshake(sent).await
            } else {
                let answer = self.request(url, sent).await;
                (answer.map(Outcome::Response), Instant::now())
            };
            now = Instant::now();
            let (is_broken, is_closing) = match &outcome {
                Ok(Outcome::Response(answer)) => (false, answer.is_closing),
                Ok(Outcome::Handshake) => (false, false),
                Err(_) => (true, false),
            };
            let times = RequestTimes {
                due_at,
                sent,
                ended,
            };
            let outcome = outcome.map(|outcome| match outcome {
                Outcome::Response(answer) => Some(Answer {
                    status: answer.status,
                    body_bytes: answer.body_bytes,
                    has_prefix: answer.has_prefix,
                }),
                Outcome::Handshake => None,
            });
            shared.count(outcome, self.place(Some(url.number)), &times);
            if is_closing {
                // The response is complete: what happens now is nobody's failure.
                let _ = self.connection.await_close().await;
                now = Instant::now();
            } else if run.plan.is_closing {
                self.connection.close();
            }
            if is_broken && self.shared.due_permits.is_none() {
                tokio::time::sleep(FAILURE_PAUSE).await;
                now = Instant::now();
            }
        }
        let mut tally = self.shared.tally.borrow_mut();
        tally.received_bytes += self.connection.received_bytes;
        tally.tls.unclean_closes += self.connection.unclean_closes;
    }

    fn place(&self, url: Option<usize>) -> Place {
        Place {
            connection: self.number,
            port: url.and_then(|_| self.connection.port()),
            url,
        }
    }

    /// Before the start: sessions to resume, and a connection if it is to be kept.
    async fn prepare(&mut self) -> Result<(), Failure> {
        let run = Arc::clone(&self.run);
        let deadline = || Instant::now() + run.plan.timeout;
        if let (Some(client), Some(host)) = (&run.plan.tls, &run.origin_of(self.number).tls) {
            for name in client.names_to_warm(self.number, run.plan.connections, host) {
                if run.stop.is_closed() {
                    break;
                }
                self.warm(client.hello(name)?, deadline()).await?;
            }
        }
        if run.plan.is_closing {
            return Ok(());
        }
        self.open(deadline()).await.map_err(|broken| broken.failure)
    }

    /// Fetches a session by a handshake that is counted as no other.
    async fn warm(&mut self, hello: ClientHello, deadline: Instant) -> Result<(), Failure> {
        let run = Arc::clone(&self.run);
        let address = &run.origin_of(self.number).address;
        let opening = self.connection.open(address, Some(hello), deadline.into());
        opening.await?;
        self.connection.finish().await?;
        self.shared.tally.borrow_mut().tls.warming += 1;
        Ok(())
    }

    /// Connects, makes the handshake and closes; also returns when the handshake was complete.
    async fn handshake(&mut self, sent: Instant) -> (Result<Outcome, Failure>, Instant) {
        let opened = self.open(sent + self.run.plan.timeout).await;
        let ended = Instant::now();
        let outcome = match opened {
            Ok(()) => match self.connection.finish().await {
                // In TLS 1.3 a server judges the client's certificate after the client is done.
                Err(failure) if failure.class == FailureClass::HandshakeRefused => Err(failure),
                _ => Ok(Outcome::Handshake),
            },
            Err(broken) => Err(broken.failure),
        };
        (outcome, ended)
    }

    /// Sends a request; once more, on a new connection, when the peer had closed the kept one
    /// before any response (RFC 9112 section 9.3.1).
    async fn request(&mut self, url: &Url, sent: Instant) -> Result<Response, Failure> {
        let deadline = sent + self.run.plan.timeout;
        let was_kept = self.connection.is_open();
        let first = self.attempt(url, deadline).await;
        let answer = match first {
            Err(broken)
                if was_kept
                    && broken.is_before_answer
                    && matches!(
                        broken.failure.class,
                        FailureClass::Closed | FailureClass::Reset
                    )
                    && self.run.plan.may_retry
                    && self.run.plan.is_idempotent() =>
            {
                self.shared.tally.borrow_mut().retried += 1;
                self.attempt(url, deadline).await
            }
            first => first,
        };
        answer.map_err(|broken| broken.failure)
    }

    async fn attempt(&mut self, url: &Url, deadline: Instant) -> Result<Response, NoResponse> {
        if !self.connection.is_open() {
            self.open(deadline).await?;
        }
        let plan = &self.run.plan;
        let sent = OutgoingRequest {
            head: &url.head,
            body: &plan.body,
            is_bodyless: plan.is_bodyless(),
            prefix: &plan.expect.body_prefix,
            deadline: deadline.into(),
        };
        self.connection.exchange(sent).await
    }

    async fn open(&mut self, deadline: Instant) -> Result<(), NoResponse> {
        let opened = self.try_open(deadline).await;
        opened.map_err(|failure| NoResponse {
            failure,
            is_before_answer: true,
        })
    }

    async fn try_open(&mut self, deadline: Instant) -> Result<(), Failure> {
        let run = Arc::clone(&self.run);
        let origin = run.origin_of(self.number);
        let mut tls = None;
        if let (Some(client), Some(host)) = (&run.plan.tls, &origin.tls) {
            let name = client.name(self.shared.next_name(), host);
            let mut hello = client.hello(name.clone())?;
            // Others may take the session that one of these brings.
            for _ in 0..WARMING_COUNT_MAX {
                if hello.lacks_session && self.may_warm {
                    self.warm(hello, deadline).await?;
                    hello = client.hello(name.clone())?;
                }
            }
            self.may_warm &= !hello.lacks_session;
            tls = Some(hello);
        }
        let deadline = deadline.into();
        let opening = self.connection.open(&origin.address, tls, deadline).await?;
        let mut tally = self.shared.tally.borrow_mut();
        tally.open(opening.connecting, opening.handshake.as_ref());
        Ok(())
    }
}
