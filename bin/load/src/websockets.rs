//! Long-lived connections: WebSockets that send a message now and then and expect it back.
//!
//! They are what a reload affects most: none may break, and none may become silent. A WebSocket
//! that breaks is counted once and not opened again.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use crate::failure::{Failure, FailureClass};
use crate::frame;
use crate::origin::{Origin, Url};
use crate::plan::Hold;
use crate::run::Run;
use crate::socket::Socket;
use crate::stream::Stream;
use crate::tally::{Place, Tally};

/// How many connections of a thread are opened concurrently before the start.
const OPENING_COUNT_MAX: usize = 64;
/// A longer response to the handshake is malformed.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// With more fields it is malformed.
const FIELD_COUNT_MAX: usize = 100;
/// How long the peer may take to close after our close frame.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Runs the connections of one thread to their end.
pub(crate) async fn work(run: &Arc<Run>, worker: usize) -> Tally {
    let tally = Rc::new(RefCell::new(run.tally_of(worker)));
    let opening = Rc::new(Semaphore::new(OPENING_COUNT_MAX));
    let tasks: Vec<_> = (worker..run.plan.connections)
        .step_by(run.plan.threads)
        .map(|number| {
            let (tally, opening) = (Rc::clone(&tally), Rc::clone(&opening));
            let run = Arc::clone(run);
            tokio::task::spawn_local(async move { live(&run, number, &tally, &opening).await })
        })
        .collect();
    for task in tasks {
        // A panic is a bug and was printed; the other connections are counted nevertheless.
        let _ = task.await;
    }
    tally.replace(Tally::new(None))
}

/// Runs one WebSocket.
async fn live(run: &Run, number: usize, tally: &RefCell<Tally>, opening: &Semaphore) {
    let origin = run.origin_of(number);
    let url = origin.url(number / run.plan.origins.len());
    let mut place = Place {
        connection: number,
        port: None,
        url: Some(url.number),
    };
    let opened = {
        // The semaphore is not closed.
        let _permit = opening.acquire().await;
        WebSocket::open(run, (origin, url), number, tally).await
    };
    run.barrier.wait().await;
    let start = run.start();
    let mut at = Duration::ZERO;
    let is_open = opened.is_ok();
    let outcome = match opened {
        Ok(mut socket) => {
            place.port = socket.port;
            let lived = socket.live(run, place, tally).await;
            at = start.elapsed();
            tally.borrow_mut().received_bytes += socket.received_bytes;
            lived
        }
        Err(failure) => Err(failure),
    };
    let mut tally = tally.borrow_mut();
    match outcome {
        Ok(()) => tally.alive += 1,
        Err(failure) => {
            *tally.ends.entry(end_of(&failure, is_open)).or_default() += 1;
            tally.fail(at, place, None, failure);
        }
    }
}

/// How a WebSocket ended: one of few texts.
fn end_of(failure: &Failure, is_open: bool) -> String {
    match (is_open, failure.class) {
        (false, class) => format!("not opened: {}", class.word()),
        // Of these there are two, and one for each close code.
        (true, FailureClass::Closed) => failure.reason.clone(),
        (true, class) => class.word().to_owned(),
    }
}

/// A message that was sent and not echoed yet.
struct Message {
    text: String,
    sent: Instant,
}

struct WebSocket {
    stream: Stream,
    port: Option<u16>,
    hold: Hold,
    received: Vec<u8>,
    received_bytes: u64,
    scratch: Vec<u8>,
}

impl WebSocket {
    /// Connects and performs the handshake, within the timeout of a request.
    async fn open(
        run: &Run,
        (origin, url): (&Origin, &Url),
        number: usize,
        tally: &RefCell<Tally>,
    ) -> Result<Self, Failure> {
        let (began, deadline) = (Instant::now(), Instant::now() + run.plan.timeout);
        let late = |what: &str| Failure::new(FailureClass::Timeout, what);
        let socket = Socket::connect(&origin.address, deadline.into()).await?;
        let connecting = began.elapsed();
        let port = socket.port();
        let tls = run.plan.tls.as_ref().zip(origin.tls.as_ref());
        let tls = tls.map(|(client, host)| client.hello(client.name(number, host)));
        let tls = tls.transpose()?;
        let (stream, handshake) = Stream::open(socket, tls, deadline.into()).await?;
        tally.borrow_mut().open(connecting, handshake.as_ref());
        let mut opened = Self {
            stream,
            port,
            hold: run.plan.hold,
            received: Vec::new(),
            received_bytes: 0,
            scratch: Vec::new(),
        };
        let key = frame::key(number as u64, u64::from(std::process::id()));
        let head = format!(
            "{}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: {key}\r\n\r\n",
            run.plan.head(url)
        );
        let accept = frame::accept(&key);
        let shaken = opened.upgrade(head.as_bytes(), &accept, tally);
        timeout_at(deadline.into(), shaken)
            .await
            .map_err(|_| late("the handshake: no answer in time"))??;
        Ok(opened)
    }

    async fn upgrade(
        &mut self,
        head: &[u8],
        accept: &str,
        tally: &RefCell<Tally>,
    ) -> Result<(), Failure> {
        self.send(head).await?;
        loop {
            if self.receive().await? == 0 {
                let class = match self.received.len() {
                    0 => FailureClass::Closed,
                    _ => FailureClass::Truncated,
                };
                return Err(Failure::new(class, "the peer closed within the handshake"));
            }
            let mut fields = [httparse::EMPTY_HEADER; FIELD_COUNT_MAX];
            let mut answer = httparse::Response::new(&mut fields);
            let parsed = answer.parse(&self.received).map_err(|error| {
                Failure::new(
                    FailureClass::Malformed,
                    format!("the answer's head: {error}"),
                )
            })?;
            let httparse::Status::Complete(length) = parsed else {
                if self.received.len() > HEAD_BYTES_MAX {
                    let reason = format!("a head of more than {HEAD_BYTES_MAX} bytes");
                    return Err(Failure::new(FailureClass::Malformed, reason));
                }
                continue;
            };
            let status = answer.code.unwrap_or(0);
            tally.borrow_mut().status(status);
            if status != 101 {
                let reason = format!("status {status} instead of 101");
                return Err(Failure::new(FailureClass::WrongStatus, reason));
            }
            let proof = answer
                .headers
                .iter()
                .find(|field| field.name.eq_ignore_ascii_case("sec-websocket-accept"));
            if proof.is_none_or(|field| field.value != accept.as_bytes()) {
                let reason = "101 with a wrong Sec-WebSocket-Accept, or none";
                return Err(Failure::new(FailureClass::WrongBody, reason));
            }
            self.received.drain(..length);
            return Ok(());
        }
    }

    /// Sends and receives until the end of the run.
    async fn live(
        &mut self,
        run: &Run,
        place: Place,
        tally: &RefCell<Tally>,
    ) -> Result<(), Failure> {
        let (plan, number) = (&run.plan, place.connection);
        let start = run.start();
        // Not all at once: the messages of all connections are spread over the interval.
        let spread = plan.every.mul_f64(number as f64 / plan.connections as f64);
        let mut due_at = start + spread;
        let mut sequence = 0u64;
        let mut waiting: Option<Message> = None;
        loop {
            let is_over =
                run.stop.is_closed() || run.end().is_some_and(|end| Instant::now() >= end);
            if is_over && waiting.is_none() {
                return self.say_goodbye().await;
            }
            let wake = match &waiting {
                Some(message) => message.sent + plan.timeout,
                None => run.end().map_or(due_at, |end| due_at.min(end)),
            };
            tokio::select! {
                // Received bytes are checked before a message is declared late.
                biased;
                received = self.receive() => {
                    if received? == 0 {
                        return Err(Failure::new(FailureClass::Closed, "closed without a close frame"));
                    }
                    self.process_frames(&mut waiting, tally, (place, start)).await?;
                }
                () = tokio::time::sleep_until(wake.into()) => if let Some(message) = &waiting {
                    if message.sent.elapsed() >= plan.timeout {
                        let what = match self.hold {
                            Hold::Echo(_) => "echo of message",
                            Hold::Ping => "pong to ping",
                        };
                        let reason = format!("no {what} {sequence}");
                        return Err(Failure::new(FailureClass::Timeout, reason));
                    }
                } else if Instant::now() >= due_at && !is_over {
                    sequence += 1;
                    due_at += plan.every;
                    let text = match self.hold {
                        Hold::Echo(length) => format!("{:x<length$}", format!("{number}:{sequence}:")),
                        Hold::Ping => format!("{number}:{sequence}"),
                    };
                    waiting = Some(self.send_message(text, sequence, plan.timeout).await?);
                    tally.borrow_mut().requests_started += 1;
                },
                _ = run.stop.acquire(), if !is_over => {}
            }
        }
    }

    async fn send_message(
        &mut self,
        text: String,
        seed: u64,
        timeout: Duration,
    ) -> Result<Message, Failure> {
        let mask = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
        let sent = Instant::now();
        let opcode = match self.hold {
            Hold::Echo(_) => frame::TEXT,
            Hold::Ping => frame::PING,
        };
        self.frame(opcode, text.as_bytes(), mask.to_be_bytes(), timeout)
            .await?;
        Ok(Message { text, sent })
    }

    /// Processes all complete frames.
    async fn process_frames(
        &mut self,
        waiting: &mut Option<Message>,
        tally: &RefCell<Tally>,
        (place, start): (Place, Instant),
    ) -> Result<(), Failure> {
        while let Some(frame) = frame::read(&self.received)? {
            let (opcode, length) = (frame.opcode, frame.length);
            let is_expected = |message: &Message| frame.payload == message.text.as_bytes();
            let answered = match (opcode, self.hold) {
                (frame::CLOSE, _) => {
                    let reason = match frame::close_code(frame.payload) {
                        Some(code) => format!("close frame with code {code}"),
                        None => "close frame without a code".to_owned(),
                    };
                    return Err(Failure::new(FailureClass::Closed, reason));
                }
                (frame::PING, _) => {
                    let payload = frame.payload.to_vec();
                    self.frame(frame::PONG, &payload, [0; 4], CLOSE_WAIT)
                        .await?;
                    None
                }
                (frame::PONG, Hold::Ping) => waiting.take_if(|message| is_expected(message)),
                (frame::PONG, Hold::Echo(_)) | (_, Hold::Ping) => None,
                (_, Hold::Echo(_)) => {
                    let is_text = opcode == frame::TEXT && frame.is_whole;
                    let echo = waiting.take_if(|message| is_text && is_expected(message));
                    let reason = "a message that is not the echo of ours";
                    let wrong = || Failure::new(FailureClass::WrongBody, reason);
                    Some(echo.ok_or_else(wrong)?)
                }
            };
            if let Some(message) = answered {
                let latency = message.sent.elapsed();
                let mut tally = tally.borrow_mut();
                tally.count_success(start.elapsed(), place, latency);
            }
            self.received.drain(..length);
        }
        Ok(())
    }

    /// Closes properly (RFC 6455 section 7.1.2), and briefly waits for the peer to do the same.
    async fn say_goodbye(&mut self) -> Result<(), Failure> {
        let normal = 1000u16.to_be_bytes();
        self.frame(frame::CLOSE, &normal, [0; 4], CLOSE_WAIT)
            .await?;
        let closed = async { while matches!(self.receive().await, Ok(1..)) {} };
        // If the peer does not close, we do.
        let _ = tokio::time::timeout(CLOSE_WAIT, closed).await;
        Ok(())
    }

    async fn frame(
        &mut self,
        opcode: u8,
        payload: &[u8],
        mask: [u8; 4],
        timeout: Duration,
    ) -> Result<(), Failure> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        frame::write(opcode, payload, mask, &mut scratch);
        let sent = tokio::time::timeout(timeout, self.send(&scratch)).await;
        self.scratch = scratch;
        sent.unwrap_or_else(|_| {
            Err(Failure::new(
                FailureClass::Timeout,
                "the peer does not read",
            ))
        })
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let sent = self.write_all(bytes).await;
        sent.map_err(|error| Failure::of_connection(&error, "sending"))
    }

    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    async fn receive(&mut self) -> Result<usize, Failure> {
        let length = self.stream.read_buf(&mut self.received).await;
        let length = length.map_err(|error| Failure::of_connection(&error, "waiting"))?;
        self.received_bytes += length as u64;
        Ok(length)
    }
}
