//! An exchange's share of a connection: where its bytes come from, where they go, and its peer.
//!
//! Of an HTTP/1 connection one exchange at a time has all there is, and a TCP session all of it to
//! the end; of a connection with streams an exchange has one of them. Rooms above hold a
//! [`Duplex`] and see heads, decoded bodies and ends: how these are framed is known here only.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use ballast_message::{BodyLength, Fields, Method, NoRoom, Response};
use ballast_transport::Transport;
use ballast_worker::{Work, take_turns};

use crate::framing::{Announced, Announcement};
use crate::heads::{Heads, ResponseHead, receive_response};
use crate::inbound::{Inbound, Piece};
use crate::outbound::Outbound;
use crate::{ReadError, Wait, WriteError, framing};

/// An exchange's share of a connection, to the client or to the server.
#[derive(Debug)]
pub struct Duplex<'c> {
    /// What comes from the peer.
    pub source: Source<'c>,
    /// What goes to the peer.
    pub sink: Sink<'c>,
    /// What else is known of the peer.
    pub peer: Peer<'c>,
}

impl<'c> Duplex<'c> {
    pub(crate) fn new(
        transport: &'c Transport,
        inbound: &'c mut Inbound,
        outbound: &'c mut Outbound,
        heads: &'c mut Heads,
    ) -> Self {
        Self {
            source: Source {
                transport,
                inbound,
                heads,
            },
            sink: Sink {
                transport,
                outbound,
            },
            peer: Peer { transport },
        }
    }
}

/// What a peer sent that broke the protocol, as far as it is still there.
#[derive(Clone, Copy, Debug)]
pub struct Offence<'a> {
    /// The bytes as they came.
    pub bytes: &'a [u8],
    /// Where in them the fault was found.
    pub at_byte: usize,
}

/// The side of an exchange that bytes come from: the body of a request or of a response.
///
/// Nothing is read ahead of who asks: a sender is held back by its receiver.
#[derive(Debug)]
pub struct Source<'c> {
    pub(crate) transport: &'c Transport,
    pub(crate) inbound: &'c mut Inbound,
    heads: &'c mut Heads,
}

impl Source<'_> {
    /// The same, for as long as it is borrowed.
    pub fn by_ref(&mut self) -> Source<'_> {
        Source {
            transport: self.transport,
            inbound: self.inbound,
            heads: self.heads,
        }
    }

    /// Receives a response's head into `response`; its body is then ready to be forwarded. After
    /// an interim response it is to be called again.
    ///
    /// # Errors
    /// [`ReadError::Closed`] also when the server closed before the first byte; whether
    /// anything had come is told by [`Self::received_bytes`]. The connection is of no further
    /// use.
    pub async fn response(
        &mut self,
        wait: &Wait<'_>,
        method: Method,
        response: &mut Response,
    ) -> Result<ResponseHead, ReadError> {
        receive_response(
            self.transport,
            self.inbound,
            self.heads,
            wait,
            method,
            response,
        )
        .await
    }

    /// Judges what was received of the body, without consuming it; whether its end is there.
    /// Called again when more was received, it goes on where it stopped.
    ///
    /// # Errors
    /// [`ReadError::Malformed`], which reading the body would meet too.
    pub fn check_ahead(&mut self) -> Result<bool, ReadError> {
        self.inbound.check_ahead()
    }

    /// Receives the body, without consuming it, until it is whole or there is no room for more.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::Closed`] when its sender ended before it was whole.
    pub async fn gather(&mut self, wait: &Wait<'_>) -> Result<(), ReadError> {
        while !self.inbound.check_ahead()? && !self.inbound.is_full() {
            if self.inbound.receive(self.transport, wait).await? == 0 {
                return Err(ReadError::Closed);
            }
        }
        Ok(())
    }

    /// A copy of the body, where the rest of it was received already and is right.
    pub fn whole_body(&self) -> Option<Vec<u8>> {
        self.inbound.whole_body()
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// [`ReadError`]; the connection is of no further use.
    pub async fn piece(&mut self, wait: &Wait<'_>) -> Result<Option<&[u8]>, ReadError> {
        self.inbound.consume_given();
        loop {
            match self.inbound.piece()? {
                Piece::Data(range, consumed) => {
                    return Ok(Some(self.inbound.give(range, consumed)));
                }
                Piece::End => return Ok(None),
                Piece::More => {
                    self.inbound
                        .receive_rest(self.transport, wait, || {})
                        .await?;
                }
            }
        }
    }

    /// Reads past the rest of the body.
    ///
    /// # Errors
    /// [`ReadError`]; the connection is of no further use.
    pub async fn drain(&mut self, wait: &Wait<'_>) -> Result<(), ReadError> {
        while self.piece(wait).await?.is_some() {
            take_turns(Work::Piece).await;
        }
        self.inbound.rest();
        Ok(())
    }

    /// Reads past what was received of the body.
    ///
    /// # Errors
    /// [`ReadError::Malformed`] and [`ReadError::Closed`].
    pub fn skip_received(&mut self) -> Result<(), ReadError> {
        self.inbound.consume_given();
        while let Piece::Data(_, consumed) = self.inbound.piece()? {
            self.inbound.consume(consumed);
        }
        Ok(())
    }

    /// Trailers that came after the body.
    pub fn trailers(&self) -> Option<&Fields> {
        self.inbound.trailers()
    }

    /// Whether the body was read to its end.
    pub fn is_done(&self) -> bool {
        self.inbound.body_is_done()
    }

    /// Whether there is no room for more before something is consumed.
    pub fn is_full(&self) -> bool {
        self.inbound.is_full()
    }

    /// Bytes received on the connection so far, heads and framing included.
    pub fn received_bytes(&self) -> u64 {
        self.inbound.total_bytes()
    }

    /// Whether nothing is received that was not consumed.
    pub fn is_empty(&self) -> bool {
        self.inbound.bytes().is_empty()
    }

    /// What the peer broke the protocol with, after [`ReadError::Malformed`].
    pub fn offence(&self) -> Offence<'_> {
        self.inbound.offence()
    }
}

/// Bodies without framing: of TCP sessions and tunnels, and of a known length.
impl Source<'_> {
    /// From here on every byte is passed on as it is, until the peer ends.
    pub fn pass_through(&mut self) {
        self.inbound
            .begin_body(BodyLength::Tunnel, &self.heads.limits, false);
    }

    /// What was received and not consumed of a body without framing; nothing of another.
    pub fn bytes(&self) -> &[u8] {
        self.inbound.plain_bytes()
    }

    /// Takes `count` of [`Self::bytes`] off the front.
    pub fn consume(&mut self, count: usize) {
        self.inbound.consume(count);
    }

    /// Waits for bytes and receives them; 0 when the peer has ended. There must be room.
    ///
    /// # Errors
    /// [`ReadError::TimedOut`] and [`ReadError::Broken`].
    pub async fn receive(&mut self, wait: &Wait<'_>) -> Result<usize, ReadError> {
        self.inbound.receive(self.transport, wait).await
    }

    /// Gives an empty buffer back.
    pub fn rest(&mut self) {
        self.inbound.rest();
    }
}

/// The side of an exchange that bytes go to: heads, the body that follows them, and its end.
#[derive(Debug)]
pub struct Sink<'c> {
    pub(crate) transport: &'c Transport,
    pub(crate) outbound: &'c mut Outbound,
}

impl Sink<'_> {
    /// The same, for as long as it is borrowed.
    pub fn by_ref(&mut self) -> Sink<'_> {
        Sink {
            transport: self.transport,
            outbound: self.outbound,
        }
    }

    /// Has a response say how its body is framed and what becomes of the connection, and gathers
    /// its head; the body follows.
    ///
    /// # Errors
    /// [`NoRoom`]; nothing was gathered.
    pub fn begin_response(
        &mut self,
        response: &mut Response,
        announcement: Announcement,
    ) -> Result<Announced, NoRoom> {
        let announced = framing::announce_response(response, announcement)?;
        self.outbound.begin_response(response, announced.body);
        Ok(announced)
    }

    /// Gathers an interim response (1xx), or one that ends HTTP on the connection.
    pub fn bodiless_response(&mut self, response: &Response) {
        self.outbound.bodiless_response(response);
    }

    /// Takes a piece of the body. It may leave now or with a later [`Self::flush`].
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub async fn body(&mut self, wait: &Wait<'_>, piece: &[u8]) -> Result<(), WriteError> {
        self.outbound.body(self.transport, wait, piece).await
    }

    /// Ends the body, with its trailers where there are some, and writes everything gathered.
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub async fn end_body(
        &mut self,
        wait: &Wait<'_>,
        trailers: Option<&Fields>,
    ) -> Result<(), WriteError> {
        self.outbound.end_body(trailers);
        self.flush(wait).await
    }

    /// Writes bytes as they are, from where they lie.
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub async fn raw(&mut self, wait: &Wait<'_>, bytes: &[u8]) -> Result<(), WriteError> {
        self.outbound.raw(self.transport, wait, bytes).await
    }

    /// Writes everything gathered.
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub async fn flush(&mut self, wait: &Wait<'_>) -> Result<(), WriteError> {
        self.outbound.flush(self.transport, wait).await
    }

    /// Whether gathered bytes are waiting.
    pub fn has_pending(&self) -> bool {
        self.outbound.has_pending()
    }

    /// Bytes that have left on the connection so far, heads and framing included.
    pub fn sent_bytes(&self) -> u64 {
        self.outbound.total_bytes()
    }

    /// Gives the memory back; only when nothing is waiting.
    pub fn rest(&mut self) {
        self.outbound.rest();
    }

    /// Ends our side; the peer may still speak.
    pub fn end(&mut self) {
        // Where it cannot be ended it is broken, and reading tells so.
        let _ = self.transport.shutdown_write();
    }
}

/// What is known of the peer of an exchange, beside what it sends.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'c> {
    transport: &'c Transport,
}

impl Peer<'_> {
    /// Ready when the peer has ended its side, also while unread bytes wait. Reads nothing.
    ///
    /// # Errors
    /// Why the connection broke: a reset, for one.
    pub fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = self.transport.poll_read_closed(cx);
        ended.map(|ended| ended.and_then(|()| self.transport.take_error()))
    }

    /// Waits for [`Self::poll_ended`].
    ///
    /// # Errors
    /// As [`Self::poll_ended`].
    pub async fn ended(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_ended(cx)).await
    }

    /// Whether nothing is known to wait in either direction: nothing to be read, and nothing
    /// written that is not sent.
    pub fn is_idle(&self) -> bool {
        !self.transport.is_readable() && !self.transport.owes()
    }

    /// Has the connection end with a reset: what the peer got is not whole.
    pub fn reset(&self) {
        // Where a reset cannot be arranged a plain close follows.
        let _ = self.transport.reset_on_close();
    }
}
