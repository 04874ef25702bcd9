//! An exchange's share of a connection: where its bytes come from, where they go, and its peer.
//!
//! An HTTP/1 connection belongs to one exchange at a time, and to a TCP session until its end; of
//! a connection with streams an exchange gets one. The rooms above hold a [`Duplex`] and see
//! heads, decoded bodies and their ends: only this room knows how these are framed.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use ballast_h1::{self as h1, HeadParse, HeadScan, leading_line_ends};
use ballast_h2::ErrorCode;
use ballast_message::{
    BodyLength, Fields, Method, NoRoom, Request, Response, Version, is_token_byte,
};
use ballast_worker::{PacketOptions, WorkUnit, take_turns};

use crate::bulk::{Bulk, SpliceMode};
use crate::channel::Channel;
use crate::framing::{AnnouncedBody, Announcement};
use crate::h2::StreamFailure;
use crate::heads::{HeadParser, ResponseHead, receive_response};
use crate::inbound::{BodyPart, Inbound};
use crate::outbound::Outbound;
use crate::{ProtocolViolation, ReadError, WaitLimit, WriteError, framing};

/// An exchange's share of a connection, to the client or to the server.
#[derive(Debug)]
pub struct Duplex<'c> {
    /// What comes from the peer.
    pub source: Source<'c>,
    /// What goes to the peer.
    pub sink: Sink<'c>,
    /// The state of the peer's connection.
    pub peer: Peer<'c>,
}

impl<'c> Duplex<'c> {
    pub(crate) fn new(
        channel: Channel<'c>,
        inbound: &'c mut Inbound,
        outbound: &'c mut Outbound,
        heads: &'c mut HeadParser,
    ) -> Self {
        Self {
            source: Source {
                channel,
                inbound,
                heads,
            },
            sink: Sink { channel, outbound },
            peer: Peer { channel },
        }
    }
}

/// The side of an exchange that bytes come from: the body of a request or of a response.
///
/// Nothing is read before it is asked for: a slow receiver holds back the sender.
#[derive(Debug)]
pub struct Source<'c> {
    pub(crate) channel: Channel<'c>,
    pub(crate) inbound: &'c mut Inbound,
    heads: &'c mut HeadParser,
}

impl Source<'_> {
    /// Reborrows it.
    pub fn by_ref(&mut self) -> Source<'_> {
        Source {
            channel: self.channel,
            inbound: self.inbound,
            heads: self.heads,
        }
    }

    /// Receives a response's head into `response`; its body is then ready to be forwarded. After
    /// an interim response, call it again.
    ///
    /// # Errors
    /// [`ReadError::Closed`] also when the server closed before the first byte;
    /// [`Self::received_bytes`] tells whether any byte came. The connection is of no further use.
    pub fn response(
        &mut self,
        wait: &WaitLimit<'_>,
        method: Method,
        response: &mut Response,
    ) -> impl Future<Output = Result<ResponseHead, ReadError>> {
        // No `async fn`, here and below: one around another is a second state machine to poll.
        receive_response(
            self.channel,
            self.inbound,
            self.heads,
            wait,
            method,
            response,
        )
    }

    /// Checks what was received of the body, without consuming it. Returns whether its end is
    /// there. Called again after more was received, it continues where it stopped.
    ///
    /// # Errors
    /// [`ReadError::Malformed`], which reading the body would meet too.
    pub fn check_ahead(&mut self) -> Result<bool, ReadError> {
        self.inbound.check_ahead()
    }

    /// Receives the body, without consuming it, until it is whole, `bytes_min` bytes of it are there
    /// (all of it, if `bytes_min` is 0), or there is no room for more.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::Closed`] when its sender ended before it was whole.
    pub fn receive_body(
        &mut self,
        wait: &WaitLimit<'_>,
        bytes_min: u64,
    ) -> impl Future<Output = Result<(), ReadError>> {
        self.inbound.receive_body(self.channel, wait, bytes_min)
    }

    /// Appends to `body` what was received of the body since the last call, decoded and without
    /// consuming it; the first call clears `body`. Returns whether nothing more will be appended: the
    /// body is whole or malformed, or there is no room for more.
    pub fn copy_ahead(&mut self, body: &mut Vec<u8>) -> bool {
        self.inbound.copy_ahead(body)
    }

    /// How many bytes of the body were received and not consumed, without their framing, as far as
    /// they were checked.
    pub fn waiting_bytes(&self) -> u64 {
        self.inbound.data_bytes_ahead()
    }

    /// Receives nothing more: what is there is all that the peer has said.
    pub fn end(&mut self) {
        self.inbound.end();
    }

    /// Receives what has come of the body, without a wait, as far as there is room.
    pub fn receive_delivered(&mut self) {
        self.inbound.receive_delivered(self.channel);
    }

    /// A copy of the body, if the rest of it was received already and is valid.
    pub fn whole_body(&self) -> Option<Vec<u8>> {
        self.inbound.whole_body()
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// [`ReadError`]; the connection is of no further use.
    pub async fn piece(&mut self, wait: &WaitLimit<'_>) -> Result<Option<&[u8]>, ReadError> {
        loop {
            match self.inbound.piece()? {
                BodyPart::Data(range, consumed) => {
                    return Ok(Some(self.inbound.take(range, consumed)));
                }
                BodyPart::End => return Ok(None),
                BodyPart::More => {
                    self.inbound
                        .receive_rest(self.channel, wait, (None, || {}))
                        .await?;
                }
            }
        }
    }

    /// Reads and drops the rest of the body.
    ///
    /// # Errors
    /// [`ReadError`]; the connection is of no further use.
    pub async fn drain(&mut self, wait: &WaitLimit<'_>) -> Result<(), ReadError> {
        while self.piece(wait).await?.is_some() {
            take_turns(WorkUnit::Piece).await;
        }
        self.inbound.release();
        Ok(())
    }

    /// Drops what was received of the body.
    ///
    /// # Errors
    /// [`ReadError::Malformed`] and [`ReadError::Closed`].
    pub fn skip_received(&mut self) -> Result<(), ReadError> {
        while let BodyPart::Data(_, consumed) = self.inbound.piece()? {
            self.inbound.consume(consumed);
        }
        Ok(())
    }

    /// Trailers that were received after the body.
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

    /// Whether the server has said that it did not process the request of this stream, so that it may be
    /// sent again (RFC 9113, section 8.7).
    pub fn is_unprocessed(&self) -> bool {
        match self.channel {
            Channel::Connection(_) => false,
            Channel::Stream(stream) => stream.failure() == Some(StreamFailure::Unprocessed),
        }
    }

    /// Whether the peer has ended this stream, or broken the protocol: it has seen the message, as one
    /// whose connection is closed may not have.
    pub fn is_ended_by_peer(&self) -> bool {
        use StreamFailure::{Protocol, Reset, Violation};
        match self.channel {
            Channel::Connection(_) => false,
            Channel::Stream(stream) => {
                matches!(stream.failure(), Some(Reset(_) | Violation | Protocol))
            }
        }
    }

    /// Bytes received on the connection so far, heads and framing included.
    pub fn received_bytes(&self) -> u64 {
        self.inbound.total_bytes()
    }

    /// Whether everything that was received is consumed.
    pub fn is_empty(&self) -> bool {
        self.inbound.bytes().is_empty()
    }

    /// The bytes that broke the protocol, after [`ReadError::Malformed`].
    pub fn violation(&self) -> ProtocolViolation<'_> {
        self.inbound.violation()
    }
}

/// Bodies without framing: of TCP sessions and tunnels, and of a known length.
impl Source<'_> {
    /// From here on every byte is body, until the peer closes.
    pub fn pass_through(&mut self) {
        self.inbound
            .begin_body(BodyLength::Tunnel, &self.heads.limits, false);
    }

    /// What was received and not consumed of a body without framing; empty for a body with
    /// framing.
    pub fn bytes(&self) -> &[u8] {
        self.inbound.plain_bytes()
    }

    /// Reads [`Self::bytes`] as the head of a request into `request`, without consuming them. Called
    /// again after more was received, it continues where it stopped.
    pub fn peek_request(&mut self, request: &mut Request) -> PeekedHead {
        let HeadParser { limits, scan } = &mut *self.heads;
        let bytes = self.inbound.plain_bytes();
        // Empty lines before a request are skipped (RFC 9112, section 2.2).
        let head = &bytes[leading_line_ends(bytes)..];
        match h1::parse_request(head, scan, limits, request) {
            HeadParse::Complete(_) => {
                *scan = HeadScan::default();
                PeekedHead::Whole
            }
            HeadParse::Incomplete if may_begin_request(head) => PeekedHead::Incomplete,
            HeadParse::Http2Preface => {
                *scan = HeadScan::default();
                // For rules it is a request as any other (RFC 9113, section 3.4).
                request.set_version(Version::Http2);
                let whole = request.set_method(b"PRI").and(request.set_target(b"*"));
                whole.map_or(PeekedHead::None, |()| PeekedHead::Whole)
            }
            HeadParse::Incomplete | HeadParse::Error(_) => {
                *scan = HeadScan::default();
                PeekedHead::None
            }
        }
    }

    /// Takes `count` of [`Self::bytes`] off the front.
    pub fn consume(&mut self, count: usize) {
        self.inbound.consume(count);
    }

    /// Waits for bytes and receives them; 0 when the peer has closed. There must be room.
    ///
    /// # Errors
    /// [`ReadError::TimedOut`] and [`ReadError::Broken`].
    pub fn receive(
        &mut self,
        wait: &WaitLimit<'_>,
    ) -> impl Future<Output = Result<usize, ReadError>> {
        self.inbound.receive(self.channel, wait)
    }

    /// As [`Self::receive`], where bytes that come fast may go into the pipe of `bulk`: then they are
    /// to be sent with [`Sink::spliced`] before more is received.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_bulk(
        &mut self,
        wait: &WaitLimit<'_>,
        bulk: &mut Bulk,
    ) -> impl Future<Output = Result<usize, ReadError>> {
        self.inbound.receive_bulk(self.channel, wait, bulk)
    }

    /// Releases the buffer if it is empty.
    pub fn release(&mut self) {
        self.inbound.release();
    }
}

/// What the first bytes of a TCP session are, read as the head of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PeekedHead {
    /// A whole head.
    Whole,
    /// What may become one.
    Incomplete,
    /// No head, whatever follows.
    None,
}

/// Whether the bytes may be the beginning of a request's first line: a method, which is a token.
fn may_begin_request(head: &[u8]) -> bool {
    let method = head.split(|byte| *byte == b' ').next().unwrap_or_default();
    method.iter().all(|byte| is_token_byte(*byte))
}

/// The side of an exchange that bytes go to: heads, the body that follows them, and its end.
#[derive(Debug)]
pub struct Sink<'c> {
    pub(crate) channel: Channel<'c>,
    pub(crate) outbound: &'c mut Outbound,
}

impl Sink<'_> {
    /// Reborrows it.
    pub fn by_ref(&mut self) -> Sink<'_> {
        Sink {
            channel: self.channel,
            outbound: self.outbound,
        }
    }

    /// Writes into a response how its body is framed and whether the connection closes, and
    /// gathers its head; the body follows.
    ///
    /// # Errors
    /// [`NoRoom`]; nothing was gathered.
    pub fn begin_response(
        &mut self,
        response: &mut Response,
        announcement: Announcement,
    ) -> Result<AnnouncedBody, NoRoom> {
        let announced = framing::announce_response(response, announcement)?;
        self.outbound
            .begin_response(self.channel, response, announced.body);
        Ok(announced)
    }

    /// Gathers an interim response (1xx), or one that ends HTTP on the connection.
    pub fn bodiless_response(&mut self, response: &Response) {
        self.outbound.bodiless_response(self.channel, response);
    }

    /// Takes a piece of the body. It is sent now or by a later [`Self::flush`].
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub fn body(
        &mut self,
        wait: &WaitLimit<'_>,
        piece: &[u8],
    ) -> impl Future<Output = Result<(), WriteError>> {
        self.outbound.body(self.channel, wait, piece)
    }

    /// Ends the body, with its trailers where there are some, and writes everything gathered.
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub fn end_body(
        &mut self,
        wait: &WaitLimit<'_>,
        trailers: Option<&Fields>,
    ) -> impl Future<Output = Result<(), WriteError>> {
        self.outbound.end_body(self.channel, trailers);
        self.flush(wait)
    }

    /// Writes bytes as they are, without a copy.
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub fn raw(
        &mut self,
        wait: &WaitLimit<'_>,
        bytes: &[u8],
    ) -> impl Future<Output = Result<(), WriteError>> {
        self.outbound.raw(self.channel, wait, bytes)
    }

    /// How bytes from another connection are moved to this one.
    pub fn bulk(&self, mode: SpliceMode) -> Bulk {
        Bulk::towards(mode, self.channel)
    }

    /// Sends what [`Source::receive_bulk`] received into a pipe.
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub fn spliced(
        &mut self,
        wait: &WaitLimit<'_>,
        bulk: &mut Bulk,
    ) -> impl Future<Output = Result<(), WriteError>> {
        self.outbound.spliced(self.channel, wait, bulk)
    }

    /// Writes everything gathered.
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub fn flush(&mut self, wait: &WaitLimit<'_>) -> impl Future<Output = Result<(), WriteError>> {
        self.outbound.flush(self.channel, wait)
    }

    /// Whether gathered bytes are not written yet.
    pub fn has_pending(&self) -> bool {
        self.outbound.has_pending()
    }

    /// Bytes written on the connection so far, heads and framing included.
    pub fn sent_bytes(&self) -> u64 {
        self.outbound.total_bytes()
    }

    /// Releases the memory if nothing is left to write.
    pub fn release(&mut self) {
        self.outbound.release();
    }

    /// Closes our side; the peer may still send.
    pub fn end(&mut self) {
        match self.channel {
            Channel::Connection(transport) => {
                // This fails only on a broken connection, and reading reports that.
                let _ = transport.shutdown_write();
            }
            Channel::Stream(stream) => {
                stream.end(None);
            }
        }
    }
}

/// The connection to the peer of an exchange, beside the bytes it sends.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'c> {
    channel: Channel<'c>,
}

impl Peer<'_> {
    /// Ready when the peer has closed its side, even if bytes are unread. Reads nothing.
    ///
    /// # Errors
    /// Why the connection broke: a reset, for one.
    pub fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.channel {
            Channel::Connection(transport) => {
                let ended = transport.poll_read_closed(cx);
                ended.map(|ended| ended.and_then(|()| transport.take_error()))
            }
            Channel::Stream(stream) => stream.poll_ended(cx),
        }
    }

    /// As [`Self::poll_ended`]. On a busy worker an end or a reset may be noticed some milliseconds
    /// later, and need not be noticed at all when something is sent to the peer before. Until then nothing
    /// is known of what the peer sends, either.
    ///
    /// # Errors
    /// As [`Self::poll_ended`].
    pub fn poll_ended_late(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.channel {
            Channel::Connection(transport) => {
                let ended = transport.poll_read_closed_late(cx);
                ended.map(|ended| ended.and_then(|()| transport.take_error()))
            }
            Channel::Stream(stream) => stream.poll_ended(cx),
        }
    }

    /// Ready when nothing can reach the peer any more: the connection of a stream is closed, or the stream
    /// was reset. Of a connection that carries no streams this is not known: a peer that has closed its
    /// side may still read.
    pub fn poll_lost(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.channel {
            Channel::Connection(_) => Poll::Pending,
            Channel::Stream(stream) => stream.poll_ended(cx).map(drop),
        }
    }

    /// Whether the peer has closed its side of the connection that carries this stream. Of a connection
    /// that carries no streams, `false`: it may still be of use for what was asked.
    pub fn connection_has_ended(&self) -> bool {
        match self.channel {
            Channel::Connection(_) => false,
            Channel::Stream(stream) => stream.connection_has_ended(),
        }
    }

    /// Waits for [`Self::poll_ended`].
    ///
    /// # Errors
    /// As [`Self::poll_ended`].
    pub async fn ended(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_ended(cx)).await
    }

    /// Whether there is nothing to do in either direction, as far as is known: nothing to read,
    /// and nothing taken that is not sent.
    pub fn is_idle(&self) -> bool {
        match self.channel {
            Channel::Connection(transport) => !transport.is_readable() && !transport.has_unsent(),
            Channel::Stream(stream) => !stream.is_readable(),
        }
    }

    /// Sets options of the packets to the peer.
    pub fn set_packet_options(&self, options: PacketOptions) {
        self.channel.transport().set_packet_options(options);
    }

    /// Makes the close of the connection one that the peer is not told of
    /// ([`Transport::drop_silently_on_close`](ballast_transport::Transport::drop_silently_on_close)).
    pub fn drop_silently(&self, hops: Option<u8>) {
        // If this fails, an orderly close follows.
        let _ = self.channel.transport().drop_silently_on_close(hops);
        if let Channel::Stream(stream) = self.channel {
            stream.abandon_connection();
        }
    }

    /// Makes the close of the connection a reset: what the peer got is not whole.
    pub fn reset(&self) {
        match self.channel {
            Channel::Connection(transport) => {
                // If this fails, an orderly close follows.
                let _ = transport.reset_on_close();
            }
            Channel::Stream(stream) => stream.reset(ErrorCode::CANCEL),
        }
    }
}
