//! A connection, and a request and its response on it.
//!
//! Writing and reading happen at the same time: a server that responds before it has read the whole
//! request would otherwise wait for us while we wait for it.

use std::future::{Future as _, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::answer::Response;
use crate::failure::{Failure, FailureClass};
use crate::socket::{Address, Socket};
use crate::stream::Stream;
use crate::tls::{ClientHello, Handshake};

/// The size of the read buffer.
const BUFFER_BYTES: usize = 16 << 10;
/// A longer head makes a response malformed.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a peer that announced a close may take before we close.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Why there was no response.
#[derive(Debug)]
pub(crate) struct NoResponse {
    pub(crate) failure: Failure,
    /// No byte of the response had arrived: the server may not have seen the request.
    pub(crate) is_before_answer: bool,
}

/// A request to send, and what is known about its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingRequest<'a> {
    /// Ready to be written.
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
    /// The response has no body whatever its head says (HEAD).
    pub(crate) is_bodyless: bool,
    /// What the response's body must begin with.
    pub(crate) prefix: &'a [u8],
    /// The response must be complete by then.
    pub(crate) deadline: Instant,
}

impl OutgoingRequest<'_> {
    fn length(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Writes what follows the first `written` bytes, as much as the stream takes at once.
    fn poll_write(
        &self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        written: usize,
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(stream);
        match written.checked_sub(self.head.len()) {
            Some(written) => stream.poll_write(cx, &self.body[written..]),
            None if self.body.is_empty() => stream.poll_write(cx, &self.head[written..]),
            None => {
                let slices = [&self.head[written..], self.body].map(IoSlice::new);
                stream.poll_write_vectored(cx, &slices)
            }
        }
    }
}

/// How a connection was opened.
#[derive(Debug)]
pub(crate) struct Opening {
    /// How long connecting took.
    pub(crate) connecting: Duration,
    /// What followed, over TLS.
    pub(crate) handshake: Option<Handshake>,
}

/// Holds one connection after another, with the buffer and the timer they share.
pub(crate) struct Connection {
    stream: Option<Stream>,
    port: Option<u16>,
    buffer: Vec<u8>,
    filled: usize,
    /// Fires at or before the deadline of the exchange, and is only reset when it fires: a timer
    /// per request would cost more than parsing it.
    watch: Pin<Box<Sleep>>,
    /// Bytes received on all connections so far.
    pub(crate) received_bytes: u64,
    /// Connections over TLS that the peer closed without saying so first.
    pub(crate) unclean_closes: u64,
}

impl Connection {
    /// Without a connection. To be called on a worker.
    pub(crate) fn new() -> Self {
        Self {
            stream: None,
            port: None,
            buffer: vec![0; BUFFER_BYTES],
            filled: 0,
            watch: Box::pin(sleep_until(Instant::now())),
            received_bytes: 0,
            unclean_closes: 0,
        }
    }

    /// The local port of the present or last connection.
    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }

    pub(crate) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Opens a connection before the deadline.
    pub(crate) async fn open(
        &mut self,
        to: &Address,
        tls: Option<ClientHello>,
        deadline: Instant,
    ) -> Result<Opening, Failure> {
        self.close();
        self.port = None;
        let began = Instant::now();
        let socket = Socket::connect(to, deadline).await?;
        let connecting = began.elapsed();
        self.port = socket.port();
        let (stream, handshake) = Stream::open(socket, tls, deadline).await?;
        self.stream = Some(stream);
        Ok(Opening {
            connecting,
            handshake,
        })
    }

    pub(crate) fn close(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.say_close();
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.unclean_closes += u64::from(self.is_unclean());
        self.stream = None;
        self.filled = 0;
    }

    fn is_unclean(&self) -> bool {
        self.stream.as_ref().is_some_and(Stream::is_unclean)
    }

    /// Sends the request and reads its response. After an error, and after a response that ends the
    /// connection, there is no connection.
    pub(crate) async fn exchange(
        &mut self,
        sent: OutgoingRequest<'_>,
    ) -> Result<Response, NoResponse> {
        let mut exchange = Exchange {
            answer: Response::new(sent.is_bodyless),
            received: 0,
            sent,
            write_error: None,
            written: 0,
        };
        let outcome = poll_fn(|cx| self.poll(cx, &mut exchange)).await;
        let outcome = outcome.and_then(|()| match self.filled {
            0 => Ok(()),
            more => Err(Failure::new(
                FailureClass::Malformed,
                format!("{more} bytes after the end of the answer"),
            )),
        });
        if outcome.is_err() || exchange.written < sent.length() {
            self.close();
        }
        match outcome {
            Ok(()) => Ok(exchange.answer),
            Err(failure) => Err(NoResponse {
                failure,
                is_before_answer: exchange.received == 0,
            }),
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &mut Exchange<'_>,
    ) -> Poll<Result<(), Failure>> {
        if let Some(stream) = &mut self.stream {
            exchange.write(cx, stream);
        }
        loop {
            match self.poll_fill(cx) {
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(exchange.end(self.is_unclean()));
                }
                Poll::Ready(Ok(length)) => {
                    exchange.received += length as u64;
                    if let Err(failure) = self.take(exchange) {
                        return Poll::Ready(Err(failure));
                    }
                    if exchange.answer.is_done() {
                        return Poll::Ready(Ok(()));
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(exchange.broken(&error))),
                Poll::Pending => break,
            }
        }
        while self.watch.as_mut().poll(cx).is_ready() {
            if Instant::now() >= exchange.sent.deadline {
                return Poll::Ready(Err(exchange.timeout_failure()));
            }
            self.watch.as_mut().reset(exchange.sent.deadline);
        }
        Poll::Pending
    }

    /// Passes received bytes to the response and keeps the rest.
    fn take(&mut self, exchange: &mut Exchange<'_>) -> Result<(), Failure> {
        let answer = &mut exchange.answer;
        let consumed = answer.advance(&self.buffer[..self.filled], exchange.sent.prefix)?;
        if consumed < self.filled {
            self.buffer.copy_within(consumed..self.filled, 0);
        }
        self.filled -= consumed;
        if self.filled == self.buffer.len() && answer.is_in_head() {
            if self.filled >= HEAD_BYTES_MAX {
                let reason = format!("a head of more than {HEAD_BYTES_MAX} bytes");
                return Err(Failure::new(FailureClass::Malformed, reason));
            }
            self.buffer.resize(self.filled * 2, 0);
        }
        Ok(())
    }

    /// Reads once into the free part of the buffer; zero is the end, or no connection.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Ok(0));
        };
        let mut free = ReadBuf::new(&mut self.buffer[self.filled..]);
        let polled = Pin::new(stream).poll_read(cx, &mut free);
        let length = free.filled().len();
        polled.map_ok(|()| {
            self.filled += length;
            self.received_bytes += length as u64;
            length
        })
    }

    /// Lets the peer close first, as it announced: then the peer has the port in TIME_WAIT, and
    /// thousands of connections a second do not use up our ports.
    pub(crate) async fn await_close(&mut self) -> Result<(), Failure> {
        let wait = poll_fn(|cx| match &mut self.stream {
            Some(stream) => stream.poll_closed(cx),
            None => Poll::Ready(Ok(())),
        });
        let outcome = tokio::time::timeout(CLOSE_WAIT, wait).await;
        // If the peer does not close, we do.
        self.forget();
        let closed = outcome.unwrap_or(Ok(()));
        closed.map_err(|error| Failure::of_connection(&error, "after the TLS handshake"))
    }

    /// Ends a connection on which nothing was asked, and lets the peer close first.
    pub(crate) async fn finish(&mut self) -> Result<(), Failure> {
        if let Some(stream) = &mut self.stream {
            stream.say_close();
        }
        self.await_close().await
    }
}

/// The progress of an exchange.
struct Exchange<'a> {
    answer: Response,
    /// Bytes of the response, interim heads included.
    received: u64,
    sent: OutgoingRequest<'a>,
    write_error: Option<io::Error>,
    written: usize,
}

impl Exchange<'_> {
    /// Writes as much as the socket accepts. An error is kept for later: the peer may have
    /// responded before it closed, and then the response counts.
    fn write(&mut self, cx: &mut Context<'_>, stream: &mut Stream) {
        while self.written < self.sent.length() && self.write_error.is_none() {
            match self.sent.poll_write(cx, stream, self.written) {
                Poll::Ready(Ok(0)) => self.write_error = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(length)) => self.written += length,
                Poll::Ready(Err(error)) => self.write_error = Some(error),
                Poll::Pending => return,
            }
        }
        // What was encrypted may not have left.
        if let Poll::Ready(Err(error)) = Pin::new(stream).poll_flush(cx) {
            self.write_error.get_or_insert(error);
        }
    }

    /// The peer has closed. A failed write means that the connection was reset: that error is
    /// reported only once, and reading then shows just an end.
    fn end(&mut self, is_unclean: bool) -> Result<(), Failure> {
        match self.write_error.take() {
            Some(error) => Err(self.broken(&error)),
            // Whoever is on the way can close a connection; only the server can say that it does.
            None if is_unclean && self.answer.is_until_close() => {
                let reason = self
                    .answer
                    .reason_with_position("a close without close_notify");
                Err(Failure::new(FailureClass::Truncated, reason))
            }
            None => self.answer.end(self.received),
        }
    }

    fn broken(&self, error: &io::Error) -> Failure {
        if self.received == 0 {
            let error = self.write_error.as_ref().unwrap_or(error);
            return Failure::of_connection(error, "before the first byte of the answer");
        }
        let failure = Failure::of_connection(error, "");
        Failure {
            reason: self.answer.reason_with_position(&error.to_string()),
            ..failure
        }
    }

    fn timeout_failure(&self) -> Failure {
        let reason = if self.written < self.sent.length() {
            let (written, all) = (self.written, self.sent.length());
            format!("the request was taken up to byte {written} of {all}")
        } else if self.received == 0 {
            "not one byte of the answer came".to_owned()
        } else {
            self.answer.reason_with_position("silence")
        };
        Failure::new(FailureClass::Timeout, reason)
    }
}
