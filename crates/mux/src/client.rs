//! A client's connection: requests in, responses out.

use ballast_h1::{self as h1, H1Limits, HeadScan, Parse};
use ballast_message::{BodyLength, ConnectionOptions, Request};
use ballast_transport::Transport;

use crate::{Inbound, Outbound, ReadError, Wait};

/// What a request's head says beyond the request itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Received {
    /// How the end of the body is found.
    pub body: BodyLength,
    /// The options of `Connection`.
    pub options: ConnectionOptions,
    /// Whether the client takes another response on this connection.
    pub persistent: bool,
    /// Whether the client asks for another protocol.
    pub upgrade: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
}

/// A connection that a client opened.
#[derive(Debug)]
pub struct ClientConnection {
    /// How bytes travel.
    pub transport: Transport,
    /// What comes from the client.
    pub inbound: Inbound,
    /// What goes to the client.
    pub outbound: Outbound,
    limits: H1Limits,
    scan: HeadScan,
}

impl ClientConnection {
    /// A connection just accepted.
    pub fn new(transport: Transport, limits: H1Limits) -> Self {
        Self {
            transport,
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            limits,
            scan: HeadScan::default(),
        }
    }

    /// Waits, without a buffer, for the first byte of a request, or of the line ends before one.
    ///
    /// # Errors
    /// [`ReadError::Closed`] when the client left instead, and the other [`ReadError`]s.
    pub async fn first_byte(&mut self, wait: &Wait<'_>) -> Result<(), ReadError> {
        loop {
            if !self.inbound.bytes().is_empty() {
                return Ok(());
            }
            self.inbound.rest();
            self.outbound.rest();
            if self.inbound.receive(&self.transport, wait).await? == 0 {
                return Err(ReadError::Closed);
            }
        }
    }

    /// Receives a request's head into `request`; its body is then ready to be relayed.
    ///
    /// # Errors
    /// [`ReadError`]; the connection takes no further request.
    pub async fn request(
        &mut self,
        wait: &Wait<'_>,
        request: &mut Request,
    ) -> Result<Received, ReadError> {
        self.scan = HeadScan::default();
        loop {
            // Whole line ends before a request are no part of it (RFC 9112, section 2.2).
            while self.inbound.bytes().starts_with(b"\r\n") {
                self.inbound.consume(2);
                self.scan = HeadScan::default();
            }
            let bytes = self.inbound.bytes();
            match h1::parse_request(bytes, &mut self.scan, &self.limits, request) {
                Parse::Complete(head) => {
                    self.inbound.consume(head.head_bytes);
                    self.inbound.begin_body(head.body, &self.limits, true);
                    return Ok(Received {
                        body: head.body,
                        options: head.options,
                        persistent: head.persistent,
                        upgrade: head.upgrade,
                        expect_continue: head.expect_continue,
                    });
                }
                Parse::Incomplete => {
                    let received = self
                        .inbound
                        .receive_rest(&self.transport, wait, || {})
                        .await?;
                    if received == 0 {
                        return Err(ReadError::Closed);
                    }
                }
                Parse::Http2Preface => {
                    self.inbound.note_fault(0);
                    return Err(ReadError::Malformed(h1::H1Error::VersionInvalid));
                }
                Parse::Error(fault) => {
                    self.inbound.note_fault(fault.at_byte);
                    return Err(ReadError::Malformed(fault.error));
                }
            }
        }
    }
}
