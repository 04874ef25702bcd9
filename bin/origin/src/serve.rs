//! A connection: bytes in, requests, responses in order.

use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Server;
use crate::answer::{Behaviour, INTERIM, Response};
use crate::at_once::{self, Begun};
use crate::filler;
use crate::h2;
use crate::head::{self, Framing, Head};
use crate::tls::Stream;
use crate::websocket;

/// A longer head is refused with 431.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The maximum body for `/echo`, which holds it; other bodies are read and dropped.
pub(crate) const ECHO_BYTES_MAX: usize = 16 << 20;
/// Responses to pipelined requests are collected up to this size before they are written.
const GATHER_BYTES_MAX: usize = 256 << 10;
/// How many connections are accepted before others get their turn.
const ACCEPT_COUNT_MAX: u64 = 32;
/// The pause after `accept` failed because descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves one listener for ever.
pub(crate) async fn accept(listener: AsyncFd<TcpListener>, server: Rc<Server>) {
    for number in 1u64.. {
        match at_once::accept(&listener).await {
            Ok(socket) => {
                server.connections.set(server.connections.get() + 1);
                let begun = match server.tls {
                    Some(_) => Begun::default(),
                    None => at_once::begin(&socket, &server),
                };
                if !begun.is_over() {
                    let server = Rc::clone(&server);
                    // The peer may leave at any time, or fail in its handshake; that is not reported.
                    tokio::task::spawn_local(serve(socket, begun, server));
                }
            }
            Err(error) => {
                eprintln!("ballast-origin: {}: accept: {error}", server.name);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        if number.is_multiple_of(ACCEPT_COUNT_MAX) {
            tokio::task::yield_now().await;
        }
    }
}

async fn serve(socket: std::net::TcpStream, begun: Begun, server: Rc<Server>) -> io::Result<()> {
    let socket = TcpStream::from_std(socket)?;
    let mut connection = Connection::accept(socket, server).await?;
    connection.received = begun.received;
    connection.answers = begun.answers;
    if begun.is_answered {
        return connection.write().await;
    }
    connection.choose().await
}

/// What was written on a connection. The first write waits for nobody: one that is closed after it
/// needs no option.
#[derive(Clone, Copy, PartialEq)]
enum Written {
    Nothing,
    Something,
    /// Nothing waits: the option is set.
    WithoutDelay,
}

impl Written {
    /// To be called before a write.
    fn before_write(&mut self, stream: &Stream) {
        *self = match self {
            Self::Nothing => Self::Something,
            Self::Something => {
                stream.set_nodelay();
                Self::WithoutDelay
            }
            Self::WithoutDelay => return,
        };
    }
}

struct Connection {
    stream: Stream,
    server: Rc<Server>,
    /// Received, not yet consumed.
    received: Vec<u8>,
    /// How much of `received` is consumed.
    consumed: usize,
    /// Responses not yet written.
    answers: Vec<u8>,
    written: Written,
}

impl Connection {
    async fn accept(socket: TcpStream, server: Rc<Server>) -> io::Result<Self> {
        Ok(Self {
            stream: Stream::accept(socket, server.tls.as_ref()).await?,
            server,
            received: Vec::new(),
            consumed: 0,
            answers: Vec::new(),
            written: Written::Nothing,
        })
    }

    /// HTTP/2 begins with its preface (RFC 9113 section 3.4), whatever ALPN said; else it is HTTP/1.
    async fn choose(mut self) -> io::Result<()> {
        while self.server.h2.is_served() && h2::may_be_preface(&self.received) {
            if self.received.starts_with(h2::PREFACE) {
                self.stream.set_nodelay();
                // In a box: connections of HTTP/1 would have its size, too.
                return Box::pin(h2::serve(self.stream, self.received, self.server)).await;
            }
            if self.receive().await? == 0 {
                return Ok(());
            }
        }
        self.run().await
    }

    async fn run(&mut self) -> io::Result<()> {
        loop {
            let head = match self.head() {
                Ok(Some(head)) => head,
                Ok(None) if self.received.len() - self.consumed > HEAD_BYTES_MAX => {
                    return self.refuse("431 Request Header Fields Too Large").await;
                }
                Ok(None) => {
                    self.write().await?;
                    if self.receive().await? == 0 {
                        return Ok(());
                    }
                    continue;
                }
                Err(httparse::Error::TooManyHeaders) => {
                    return self.refuse("431 Request Header Fields Too Large").await;
                }
                Err(_) => return self.refuse("400 Bad Request").await,
            };
            if !self.answer(head).await? {
                self.write().await?;
                return self.close().await;
            }
        }
    }

    /// Ends the connection. Closing a clear socket is all that it takes.
    async fn close(&mut self) -> io::Result<()> {
        match self.stream.as_clear() {
            Some(_) => Ok(()),
            None => self.stream.shutdown().await,
        }
    }

    /// Parses the next head, when it is complete.
    fn head(&self) -> Result<Option<Head>, httparse::Error> {
        head::parse(&self.received[self.consumed..])
    }

    /// Answers one request; false when the connection ends after it.
    async fn answer(&mut self, head: Head) -> io::Result<bool> {
        let start = self.consumed;
        let is_echo = head.asked.behaviour == Behaviour::Echo;
        let mut text = Vec::new();
        if is_echo {
            text.extend_from_slice(&self.received[start..start + head.length]);
        } else if head.asked.behaviour == Behaviour::Tls {
            text = self.stream.negotiated().into_bytes();
        }
        self.consumed += head.length;
        if head.expects_continue {
            self.answers
                .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            self.write().await?;
        }
        self.body(head.framing, is_echo.then_some(&mut text))
            .await?;
        if !head.asked.delay.is_zero() {
            self.write().await?;
            tokio::time::sleep(head.asked.delay).await;
        }
        for _ in 0..head.asked.interim {
            let (status, name, value) = INTERIM;
            let interim = format!("HTTP/1.1 {status} Early Hints\r\n{name}: {value}\r\n\r\n");
            self.answers.extend_from_slice(interim.as_bytes());
            self.write().await?;
        }
        self.server.requests.set(self.server.requests.get() + 1);
        if head.asked.behaviour == Behaviour::Tunnel {
            match head.key {
                Some(key) => self.websocket(&key).await?,
                None => self.tunnel().await?,
            }
            return Ok(false);
        }
        let answer = Response::to(&head.asked, &self.server, text);
        answer.write_head(&mut self.answers);
        let mut left = answer.body_bytes();
        if left >= filler::BODY_BYTES_MIN
            && answer.is_plain_filler()
            && let (Some(filler), Some(socket)) = (&self.server.filler, self.stream.as_clear())
        {
            // The end of the body is a small write of its own.
            for _ in 0..2 {
                self.written.before_write(&self.stream);
            }
            filler.send(socket, &self.answers, left).await?;
            self.answers.clear();
            left = 0;
        }
        while left > 0 {
            left -= answer.write_piece(left, &mut self.answers);
            if self.answers.len() >= GATHER_BYTES_MAX || !head.asked.pause.is_zero() {
                write(&mut self.stream, &mut self.answers, &mut self.written).await?;
            }
            if left > 0 && !head.asked.pause.is_zero() {
                tokio::time::sleep(head.asked.pause).await;
            }
        }
        answer.write_end(&mut self.answers);
        if self.answers.len() >= GATHER_BYTES_MAX {
            write(&mut self.stream, &mut self.answers, &mut self.written).await?;
        }
        Ok(!head.asked.is_closing)
    }

    /// Reads the body, storing as much as fits in `kept`.
    async fn body(&mut self, framing: Framing, mut kept: Option<&mut Vec<u8>>) -> io::Result<()> {
        match framing {
            Framing::Length(length) => self.pass(length, &mut kept).await,
            Framing::Chunked => loop {
                let line = self.line().await?;
                let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
                let size = std::str::from_utf8(digits)
                    .ok()
                    .and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
                    .ok_or(io::ErrorKind::InvalidData)?;
                if size == 0 {
                    while !self.line().await?.is_empty() {}
                    return Ok(());
                }
                self.pass(size, &mut kept).await?;
                self.line().await?;
            },
        }
    }

    async fn pass(&mut self, mut left: u64, kept: &mut Option<&mut Vec<u8>>) -> io::Result<()> {
        while left > 0 {
            if self.consumed == self.received.len() && self.receive().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let piece = &self.received[self.consumed..];
            let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if let Some(kept) = kept
                && kept.len() + length <= ECHO_BYTES_MAX
            {
                kept.extend_from_slice(&piece[..length]);
            }
            self.consumed += length;
            left -= length as u64;
        }
        Ok(())
    }

    /// The next line of a chunked body, without its CRLF.
    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let rest = &self.received[self.consumed..];
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest[..end]
                    .strip_suffix(b"\r")
                    .unwrap_or(&rest[..end])
                    .to_vec();
                self.consumed += end + 1;
                return Ok(line);
            }
            if rest.len() > HEAD_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if self.receive().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// After 101: sends every byte back, until the peer has closed.
    async fn tunnel(&mut self) -> io::Result<()> {
        self.answers.extend_from_slice(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
        );
        loop {
            self.answers
                .extend_from_slice(&self.received[self.consumed..]);
            self.consumed = self.received.len();
            self.write().await?;
            if self.receive().await? == 0 {
                return Ok(());
            }
        }
    }

    /// After 101: sends every message back, until one side closes.
    async fn websocket(&mut self, key: &str) -> io::Result<()> {
        self.answers
            .extend_from_slice(websocket::head(key).as_bytes());
        loop {
            let mut is_over = false;
            while let Some(step) =
                websocket::step(&self.received[self.consumed..], &mut self.answers)
            {
                self.consumed += step.length;
                is_over = step.is_last;
                if is_over || self.answers.len() >= GATHER_BYTES_MAX {
                    break;
                }
            }
            // Frames that were received but not processed come before new data.
            let is_gathered = self.answers.len() >= GATHER_BYTES_MAX;
            self.write().await?;
            if is_over || (!is_gathered && self.receive().await? == 0) {
                return Ok(());
            }
        }
    }

    async fn refuse(&mut self, status: &str) -> io::Result<()> {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        self.answers.extend_from_slice(head.as_bytes());
        self.write().await?;
        self.close().await
    }

    async fn receive(&mut self) -> io::Result<usize> {
        self.received.drain(..self.consumed);
        self.consumed = 0;
        self.received.reserve(16 << 10);
        self.stream.read_buf(&mut self.received).await
    }

    async fn write(&mut self) -> io::Result<()> {
        write(&mut self.stream, &mut self.answers, &mut self.written).await
    }
}

/// Writes what was collected.
async fn write(
    stream: &mut Stream,
    answers: &mut Vec<u8>,
    written: &mut Written,
) -> io::Result<()> {
    if !answers.is_empty() {
        written.before_write(stream);
        stream.write_all(answers).await?;
        // What was encrypted may not have left.
        stream.flush().await?;
        answers.clear();
    }
    Ok(())
}
