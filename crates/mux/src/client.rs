//! A client's connection: requests in, responses out.

use std::sync::Arc;
use std::time::Duration;

use ballast_h1::{self as h1, H1Error, HeadParse, HeadScan};
use ballast_message::{BodyLength, NameCases, Request, Version};
use ballast_transport::Transport;
use ballast_worker::Deadline;

use crate::heads::HeadParser;
use crate::inbound::Inbound;
use crate::outbound::Outbound;
use crate::{Duplex, Limits, ProtocolViolation, ReadError, WaitLimit, WriteError, hop};

/// How long a closing connection is still read, so that the peer gets what was written instead of
/// a reset.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
/// How many bytes a closing connection is still read.
pub(crate) const LINGER_BYTES_MAX: u64 = 1 << 20;

/// What a request's head says beyond the request itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestHead {
    /// How the end of the body is found.
    pub body: BodyLength,
    /// Whether the client takes another response on this connection.
    pub persistent: bool,
    /// Whether the client asks for another protocol.
    pub upgrade: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
    /// Whether all of the head had been received when it was asked for.
    pub is_prompt: bool,
}

/// A connection that a client opened.
#[derive(Debug)]
pub struct ClientConnection {
    pub(crate) transport: Transport,
    pub(crate) inbound: Inbound,
    pub(crate) outbound: Outbound,
    heads: HeadParser,
    /// Whether the client announced that it sends nothing more.
    is_last_request: bool,
    /// Whether the client began with the preface of HTTP/2.
    has_http2_preface: bool,
}

impl ClientConnection {
    /// A connection just accepted. `read_ahead` are bytes that were read behind its handshakes, at
    /// most as many as a buffer holds.
    pub fn new(transport: Transport, limits: Limits, read_ahead: &[u8]) -> Self {
        let mut inbound = Inbound::default();
        inbound.prepend(read_ahead);
        Self {
            transport,
            inbound,
            outbound: Outbound::default(),
            heads: HeadParser::new(limits),
            is_last_request: false,
            has_http2_preface: false,
        }
    }

    /// From now on responses are written with the names of fields in this case (`h1-case-adjust`),
    /// and without trailers (`option http-drop-response-trailers`).
    pub fn set_output_format(&mut self, cases: Option<&Arc<NameCases>>, drops_trailers: bool) {
        self.outbound.set_format(cases.cloned(), drops_trailers);
    }

    /// Asks the kernel whether the next request has begun to arrive.
    pub fn has_arrived(&self) -> bool {
        !self.inbound.bytes().is_empty() || self.transport.has_arrived()
    }

    /// Whether nothing is half done between two requests: all that came was a request's, and all that
    /// was written is sent.
    pub fn is_at_rest(&self) -> bool {
        self.inbound.bytes().is_empty()
            && self.inbound.body_is_done()
            && !self.inbound.peer_closed()
            && !self.outbound.has_pending()
    }

    /// Waits for the first byte of a request, or of the empty lines before one. It holds no buffer
    /// meanwhile.
    ///
    /// # Errors
    /// [`ReadError::Closed`] when the client left instead, and the other [`ReadError`]s.
    pub async fn first_byte(&mut self, wait: &WaitLimit<'_>) -> Result<(), ReadError> {
        loop {
            if !self.inbound.bytes().is_empty() {
                return Ok(());
            }
            self.inbound.release();
            self.outbound.release();
            if self.inbound.receive((&self.transport).into(), wait).await? == 0 {
                return Err(ReadError::Closed);
            }
        }
    }

    /// Receives a request's head into `request`. The part of the body that came with it is
    /// checked, too, before the request is returned. [`Self::duplex`] gives the body and takes the
    /// response.
    ///
    /// # Errors
    /// [`ReadError`]; the connection takes no further request.
    pub async fn request(
        &mut self,
        wait: &WaitLimit<'_>,
        request: &mut Request,
    ) -> Result<RequestHead, ReadError> {
        let received_bytes = self.inbound.total_bytes();
        self.is_last_request = false;
        self.heads.scan = HeadScan::default();
        let head = loop {
            // Empty lines before a request are skipped (RFC 9112, section 2.2).
            while self.inbound.bytes().starts_with(b"\r\n") {
                self.inbound.consume(2);
                self.heads.scan = HeadScan::default();
            }
            let (bytes, heads) = (self.inbound.bytes(), &mut self.heads);
            match h1::parse_request(bytes, &mut heads.scan, &heads.limits, request) {
                HeadParse::Complete(head) => break head,
                HeadParse::Incomplete => {
                    let rest =
                        self.inbound
                            .receive_rest((&self.transport).into(), wait, (None, || {}));
                    if rest.await? == 0 {
                        return Err(ReadError::Closed);
                    }
                }
                HeadParse::Http2Preface => {
                    self.has_http2_preface = true;
                    self.inbound.note_fault(0);
                    return Err(ReadError::Malformed(H1Error::VersionInvalid));
                }
                HeadParse::Error(fault) => {
                    self.inbound.note_fault(fault.at_byte);
                    return Err(ReadError::Malformed(fault.error));
                }
            }
        };
        self.inbound.consume(head.head_bytes);
        self.inbound.begin_body(head.body, &self.heads.limits, true);
        if let Err(error) = self.inbound.check_ahead() {
            request.clear();
            return Err(error);
        }
        if hop::take_connection_end(request.fields_mut()).is_err() {
            request.clear();
            return Err(ReadError::Malformed(H1Error::HeadTooLong));
        }
        let options = head.options;
        let is_last = options.close || (request.version() < Version::Http11 && !options.keep_alive);
        self.is_last_request = is_last && head.body == BodyLength::None;
        Ok(RequestHead {
            body: head.body,
            persistent: head.persistent,
            upgrade: head.upgrade,
            expect_continue: head.expect_continue,
            is_prompt: self.inbound.total_bytes() == received_bytes,
        })
    }

    /// Whether the request that was refused is the preface of HTTP/2 (RFC 9113, section 3.4).
    pub fn has_http2_preface(&self) -> bool {
        self.has_http2_preface
    }

    /// The transport, and what was received and not consumed.
    pub fn into_parts(self) -> (Transport, Vec<u8>) {
        let received = self.inbound.bytes().to_vec();
        (self.transport, received)
    }

    /// The bytes of a refused request that broke the protocol.
    pub fn violation(&self) -> ProtocolViolation<'_> {
        self.inbound.violation()
    }

    /// All of the connection, for the exchange whose request was received, or for a TCP session.
    pub fn duplex(&mut self) -> Duplex<'_> {
        Duplex::new(
            (&self.transport).into(),
            &mut self.inbound,
            &mut self.outbound,
            &mut self.heads,
        )
    }

    /// Writes what is left of the last response.
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub async fn flush(&mut self, wait: &WaitLimit<'_>) -> Result<(), WriteError> {
        self.outbound.flush((&self.transport).into(), wait).await
    }

    /// Reads and drops the rest of a request's body: the next request follows it.
    ///
    /// # Errors
    /// [`ReadError`]; the connection is of no further use.
    pub async fn drain(&mut self, wait: &WaitLimit<'_>) -> Result<(), ReadError> {
        if self.inbound.body_is_done() {
            return Ok(());
        }
        self.duplex().source.drain(wait).await
    }

    /// Closes the connection so that what was written arrives: closes our side first, then reads
    /// and drops what the client still sends, for a moment.
    ///
    /// This is skipped for a client that announced that it sends nothing more: then there is
    /// nothing to which a close would be answered by a reset (RFC 9112, section 9.6).
    pub async fn close(&mut self, wait: &WaitLimit<'_>, linger: &Deadline) {
        let flushed = self.outbound.flush((&self.transport).into(), wait).await;
        let is_last_word =
            self.is_last_request && self.inbound.bytes().is_empty() && self.transport.is_quiet();
        if flushed.is_err() || is_last_word {
            return;
        }
        if self.transport.shutdown_write().is_err() || self.inbound.peer_closed() {
            return;
        }
        let until = ballast_worker::now() + LINGER;
        let wait = WaitLimit::until(linger, Some(until));
        let start = self.inbound.total_bytes();
        loop {
            let unread = self.inbound.bytes().len();
            self.inbound.consume(unread);
            self.inbound.release();
            match self.inbound.receive((&self.transport).into(), &wait).await {
                Ok(0) | Err(_) => return,
                Ok(_) if self.inbound.total_bytes() - start > LINGER_BYTES_MAX => return,
                Ok(_) => {}
            }
        }
    }

    /// Takes what has arrived and was not read, as far as a buffer holds it: a socket that is closed with
    /// unread bytes is reset, and its client may lose what was written to it.
    pub fn take_unread(&mut self) {
        let unread = self.inbound.bytes().len();
        self.inbound.consume(unread);
        self.inbound.take_arrived((&self.transport).into());
    }

    /// Closes our side, without what was not written.
    pub fn end(&mut self) {
        self.duplex().sink.end();
    }

    /// Makes the close of the connection a reset.
    pub fn reset(&mut self) {
        self.duplex().peer.reset();
    }
}
