//! One client: a connection at a time, and requests side by side on it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Sleep, sleep_until};

use crate::failure::{Failure, FailureClass};
use crate::h2::connection::{self, Connection};
use crate::h2::failure::NoAnswer;
use crate::origin::Url;
use crate::plan::Plan;
use crate::shared::{Answer, FAILURE_PAUSE, RequestTimes, ThreadShared};
use crate::tally::Place;

/// Fields of one connection, which HTTP/2 does not have (RFC 9113 section 8.2.2).
const CONNECTION_FIELDS: [&str; 5] = [
    "connection",
    "host",
    "keep-alive",
    "transfer-encoding",
    "upgrade",
];
/// How often one request is sent again.
const RETRY_COUNT_MAX: u32 = 10;

/// A client, which its streams share.
pub(super) struct Client {
    shared: Rc<ThreadShared>,
    number: usize,
    /// The connection for new streams; those before it serve the streams they have. Who opens one
    /// keeps the others waiting.
    connection: Mutex<Option<Connection>>,
    generations: Cell<u64>,
    /// By the number of the URL; made before the start.
    requests: RefCell<HashMap<usize, Request<()>>>,
    body: Bytes,
    received_bytes: Rc<Cell<u64>>,
}

impl Client {
    pub(super) fn new(shared: Rc<ThreadShared>, number: usize) -> Self {
        Self {
            number,
            connection: Mutex::default(),
            generations: Cell::new(0),
            requests: RefCell::default(),
            body: shared.run.plan.body.clone(),
            received_bytes: Rc::default(),
            shared,
        }
    }

    pub(super) async fn run(self: Rc<Self>, opening: &Semaphore) {
        let run = &self.shared.run;
        {
            // The semaphore is not closed.
            let _permit = opening.acquire().await;
            if let Err(failure) = self.prepare().await {
                let mut tally = self.shared.tally.borrow_mut();
                let place = Place {
                    connection: self.number,
                    ..Place::default()
                };
                tally.fail(Duration::ZERO, place, None, failure);
            }
        }
        run.barrier.wait().await;
        // The first who is here sets it.
        run.start();
        let streams = run.plan.streams.unwrap_or(1);
        let tasks: Vec<_> = (0..streams)
            .map(|_| {
                let client = Rc::clone(&self);
                tokio::task::spawn_local(async move { client.stream().await })
            })
            .collect();
        for task in tasks {
            // A panic is a bug and was printed.
            let _ = task.await;
        }
        self.shared.tally.borrow_mut().received_bytes += self.received_bytes.get();
    }

    /// Before the start: the requests, and a connection if it is to be kept.
    async fn prepare(&self) -> Result<(), Failure> {
        let run = &self.shared.run;
        let origin = run.origin_of(self.number);
        let is_tls = origin.tls.is_some();
        let requests = origin.urls.iter().map(|url| {
            let request = request(&run.plan, url, is_tls);
            request.map(|request| (url.number, request))
        });
        let requests = requests.collect::<Result<_, _>>();
        let wrong = |error: http::Error| Failure::new(FailureClass::Local, error.to_string());
        self.requests.replace(requests.map_err(wrong)?);
        if !run.plan.is_closing {
            self.connection(Instant::now() + run.plan.timeout).await?;
        }
        Ok(())
    }

    /// One request after the other.
    async fn stream(&self) {
        let run = &self.shared.run;
        let mut watch = Watch::new();
        let mut now = Instant::now();
        while let Some(due_at) = self.shared.next(now).await {
            let is_paced = self.shared.due_permits.is_some();
            let sent = if is_paced { Instant::now() } else { due_at };
            let mut port = None;
            let url = self.shared.next_url(self.number).number;
            let outcome = self.request(url, sent, &mut watch, &mut port).await;
            let ended = Instant::now();
            let is_broken = outcome.is_err();
            let times = RequestTimes {
                due_at,
                sent,
                ended,
            };
            let place = Place {
                connection: self.number,
                port,
                url: Some(url),
            };
            self.shared.count(outcome.map(Some), place, &times);
            now = ended;
            if run.plan.is_closing {
                self.connection.lock().await.take();
            }
            if is_broken && !is_paced {
                tokio::time::sleep(FAILURE_PAUSE).await;
                now = Instant::now();
            }
        }
    }

    /// Sends a request, and again where the server says that it did not process it; once more when
    /// the kept connection was lost before any response.
    async fn request(
        &self,
        url: usize,
        sent: Instant,
        watch: &mut Watch,
        port: &mut Option<u16>,
    ) -> Result<Answer, Failure> {
        let plan = &self.shared.run.plan;
        let deadline = sent + plan.timeout;
        let mut may_retry = plan.may_retry && plan.is_idempotent();
        let mut told = 0;
        loop {
            let was_kept = self.generations.get();
            let connection = self.connection(deadline).await?;
            let was_kept = was_kept == connection.generation;
            *port = connection.port;
            let generation = connection.generation;
            let attempt = self.attempt(connection, url);
            let outcome = match watch.until(deadline, attempt).await {
                Some(outcome) => outcome,
                None => {
                    let reason = "no complete answer";
                    return Err(Failure::new(FailureClass::Timeout, reason));
                }
            };
            let no_answer = match outcome {
                Ok(answer) => return Ok(answer),
                Err(no_answer) => no_answer,
            };
            let is_over = self.judge(no_answer, was_kept, &mut may_retry)?;
            if is_over {
                self.leave(generation).await;
            }
            told += 1;
            if told > RETRY_COUNT_MAX {
                let reason = format!("sent {told} times, and never processed");
                return Err(Failure::new(FailureClass::StreamReset, reason));
            }
        }
    }

    /// Counts why there was no answer, and lets the request be sent again: true when on another
    /// connection.
    fn judge(
        &self,
        no_answer: NoAnswer,
        was_kept: bool,
        may_retry: &mut bool,
    ) -> Result<bool, Failure> {
        let mut tally = self.shared.tally.borrow_mut();
        match no_answer {
            NoAnswer::Unsent => Ok(true),
            NoAnswer::ToldByGoaway => {
                tally.h2.goaway += 1;
                Ok(true)
            }
            NoAnswer::Refused => {
                tally.h2.refused += 1;
                let code = "REFUSED_STREAM".to_owned();
                *tally.h2.codes.entry(code).or_default() += 1;
                Ok(false)
            }
            NoAnswer::Failed {
                failure,
                code,
                is_lost_before_answer,
            } => {
                if let Some(code) = code {
                    *tally.h2.codes.entry(code).or_default() += 1;
                }
                if !(is_lost_before_answer && was_kept && *may_retry) {
                    return Err(failure);
                }
                *may_retry = false;
                tally.retried += 1;
                Ok(true)
            }
        }
    }

    /// The connection for the next stream: the present one if it takes streams, else a new one.
    async fn connection(&self, deadline: Instant) -> Result<Connection, Failure> {
        let run = &self.shared.run;
        let mut present = self.connection.lock().await;
        if let Some(connection) = &mut *present {
            // After GOAWAY and after its end it takes none. That it is full is none of this.
            let is_over = poll_fn(|cx| match connection.sender.poll_ready(cx) {
                std::task::Poll::Ready(Err(_)) => std::task::Poll::Ready(true),
                _ => std::task::Poll::Ready(false),
            });
            if !is_over.await {
                return Ok(connection.clone());
            }
        }
        let origin = run.origin_of(self.number);
        let mut tls = None;
        if let (Some(client), Some(host)) = (&run.plan.tls, &origin.tls) {
            tls = Some(client.hello(client.name(self.shared.next_name(), host))?);
        }
        let received = Rc::clone(&self.received_bytes);
        let opened = connection::open(&origin.address, tls, deadline.into(), received).await?;
        let mut tally = self.shared.tally.borrow_mut();
        tally.open(opened.connecting, opened.handshake.as_ref());
        self.generations.set(self.generations.get() + 1);
        let connection = Connection {
            sender: opened.sender,
            port: opened.port,
            generation: self.generations.get(),
        };
        *present = Some(connection.clone());
        Ok(connection)
    }

    /// Opens no more streams on this connection.
    async fn leave(&self, generation: u64) {
        let mut present = self.connection.lock().await;
        if present
            .as_ref()
            .is_some_and(|one| one.generation == generation)
        {
            present.take();
        }
    }

    /// One stream, to the end of its response.
    async fn attempt(&self, connection: Connection, url: usize) -> Result<Answer, NoAnswer> {
        let request = {
            let requests = self.requests.borrow();
            match requests.get(&url) {
                Some(request) => request.clone(),
                None => {
                    let reason = "the request cannot be written";
                    return Err(NoAnswer::failed(Failure::new(FailureClass::Local, reason)));
                }
            }
        };
        let has_body = !self.body.is_empty();
        let before =
            |error: h2::Error| NoAnswer::of(&error, "before the head of the answer", false);
        let ready = connection.sender.ready().await;
        let mut sender = ready.map_err(|_| NoAnswer::Unsent)?;
        let (response, mut stream) = sender.send_request(request, !has_body).map_err(before)?;
        if has_body {
            stream.send_data(self.body.clone(), true).map_err(before)?;
        }
        let (head, mut body) = response.await.map_err(before)?.into_parts();
        let prefix = &self.shared.run.plan.expect.body_prefix;
        let mut answer = Answer {
            status: head.status.as_u16(),
            body_bytes: 0,
            has_prefix: true,
        };
        let within = |error: h2::Error, bytes: u64| {
            let status = head.status.as_u16();
            let doing = format!("after {bytes} bytes of body (status {status})");
            NoAnswer::of(&error, &doing, true)
        };
        while let Some(piece) = body.data().await {
            let piece = piece.map_err(|error| within(error, answer.body_bytes))?;
            let start = usize::try_from(answer.body_bytes).unwrap_or(usize::MAX);
            let expected = prefix.get(start..).unwrap_or_default();
            answer.has_prefix &= expected.iter().zip(&piece).all(|(one, other)| one == other);
            answer.body_bytes += piece.len() as u64;
            // It fails for a stream that has ended.
            let _ = body.flow_control().release_capacity(piece.len());
        }
        let trailers = body.trailers().await;
        trailers.map_err(|error| within(error, answer.body_bytes))?;
        Ok(answer)
    }
}

/// The head of a request for this URL.
fn request(plan: &Plan, url: &Url, is_tls: bool) -> Result<Request<()>, http::Error> {
    let scheme = if is_tls { "https" } else { "http" };
    let fields = plan.fields.iter().filter_map(|field| field.split_once(':'));
    let fields: Vec<_> = fields
        .map(|(name, value)| (name.trim(), value.trim()))
        .collect();
    let host = fields
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let authority = host.map_or(url.host.as_str(), |(_, value)| value);
    let uri = Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(url.path.as_str())
        .build()?;
    let method = Method::from_bytes(plan.method.as_bytes())?;
    let mut request = Request::builder().method(method).uri(uri).body(())?;
    for (name, value) in fields {
        if !CONNECTION_FIELDS
            .iter()
            .any(|one| name.eq_ignore_ascii_case(one))
        {
            let name = HeaderName::from_bytes(name.as_bytes())?;
            request
                .headers_mut()
                .append(name, HeaderValue::from_str(value)?);
        }
    }
    let has_body = !plan.body.is_empty();
    if has_body && !request.headers().contains_key(header::CONTENT_LENGTH) {
        request
            .headers_mut()
            .insert(header::CONTENT_LENGTH, plan.body.len().into());
    }
    Ok(request)
}

/// A timer that fires at or before the deadline, and is only reset when it fires: a timer per
/// request would cost more than the request.
struct Watch(Pin<Box<Sleep>>);

impl Watch {
    fn new() -> Self {
        Self(Box::pin(sleep_until(tokio::time::Instant::now())))
    }

    /// The output of the future, unless the deadline passes first.
    async fn until<T>(&mut self, deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|cx| {
            use std::task::Poll;
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            while self.0.as_mut().poll(cx).is_ready() {
                if Instant::now() >= deadline {
                    return Poll::Ready(None);
                }
                self.0.as_mut().reset(deadline.into());
            }
            Poll::Pending
        })
        .await
    }
}
