//! A connection to a server: requests out, responses in.

use ballast_h1::{self as h1, H1Limits, HeadScan, Parse};
use ballast_message::{BodyLength, ConnectionOptions, Method, Request, Response};
use ballast_transport::Transport;

use crate::{Inbound, Outbound, ReadError, Wait};

/// What a response's head says beyond the response itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResponseFraming {
    /// How the end of the body is found.
    pub body: BodyLength,
    /// The options of `Connection`.
    pub options: ConnectionOptions,
    /// Whether the server takes another request on this connection.
    pub persistent: bool,
    /// Whether the final response is still to come.
    pub interim: bool,
}

/// A connection that we opened to a server.
#[derive(Debug)]
pub struct ServerConnection {
    /// How bytes travel.
    pub transport: Transport,
    /// What comes from the server.
    pub inbound: Inbound,
    /// What goes to the server.
    pub outbound: Outbound,
    /// Whether it carries something of one client, an identity or an address, and may serve no
    /// other.
    pub private: bool,
    /// Exchanges begun on it so far.
    pub exchange_count: u32,
    limits: H1Limits,
    scan: HeadScan,
}

impl ServerConnection {
    /// A connection just opened.
    pub fn new(transport: Transport, limits: H1Limits) -> Self {
        Self {
            transport,
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            private: false,
            exchange_count: 0,
            limits,
            scan: HeadScan::default(),
        }
    }

    /// Whether an idle connection can carry another exchange: nothing is left over and the
    /// server has neither spoken nor closed. A clear connection makes no system call for it.
    pub fn is_reusable(&self) -> bool {
        self.inbound.bytes().is_empty()
            && !self.inbound.peer_closed()
            && !self.outbound.has_pending()
            && self.transport.is_quiet()
    }

    /// Gives its buffers back, to wait for another exchange.
    pub fn rest(&mut self) {
        self.inbound.rest();
        self.outbound.rest();
    }

    /// Gathers a request's head; its body follows through [`Self::outbound`].
    pub fn begin_request(&mut self, request: &Request, body: BodyLength) {
        self.exchange_count = self.exchange_count.saturating_add(1);
        self.scan = HeadScan::default();
        self.outbound.begin_request(request, body);
    }

    /// Receives a response's head into `response`; its body is then ready to be relayed.
    /// After an interim response it is to be called again.
    ///
    /// # Errors
    /// [`ReadError::Closed`] also when the server closed before the first byte; whether
    /// anything had come is told by [`Inbound::total_bytes`]. The connection is of no further
    /// use.
    pub async fn answer(
        &mut self,
        wait: &Wait<'_>,
        method: Method,
        response: &mut Response,
    ) -> Result<ResponseFraming, ReadError> {
        receive_head(
            &self.transport,
            &mut self.inbound,
            &mut self.scan,
            &self.limits,
            wait,
            method,
            response,
        )
        .await
    }

    /// The parts, for a request body and a response that go past each other.
    pub fn split(&mut self) -> (&Transport, Responses<'_>, &mut Outbound) {
        let responses = Responses {
            inbound: &mut self.inbound,
            scan: &mut self.scan,
            limits: &self.limits,
        };
        (&self.transport, responses, &mut self.outbound)
    }
}

/// The half of a server's connection that responses come from.
#[derive(Debug)]
pub struct Responses<'a> {
    /// What comes from the server.
    pub inbound: &'a mut Inbound,
    scan: &'a mut HeadScan,
    limits: &'a H1Limits,
}

impl Responses<'_> {
    /// As [`ServerConnection::answer`].
    ///
    /// # Errors
    /// As [`ServerConnection::answer`].
    pub async fn answer(
        &mut self,
        transport: &Transport,
        wait: &Wait<'_>,
        method: Method,
        response: &mut Response,
    ) -> Result<ResponseFraming, ReadError> {
        receive_head(
            transport,
            self.inbound,
            self.scan,
            self.limits,
            wait,
            method,
            response,
        )
        .await
    }
}

async fn receive_head(
    transport: &Transport,
    inbound: &mut Inbound,
    scan: &mut HeadScan,
    limits: &H1Limits,
    wait: &Wait<'_>,
    method: Method,
    response: &mut Response,
) -> Result<ResponseFraming, ReadError> {
    *scan = HeadScan::default();
    if inbound.bytes().is_empty() && inbound.receive(transport, wait).await? == 0 {
        return Err(ReadError::Closed);
    }
    loop {
        match h1::parse_response(inbound.bytes(), scan, limits, method, response) {
            Parse::Complete(head) => {
                inbound.consume(head.head_bytes);
                if !head.interim {
                    inbound.begin_body(head.body, limits, false);
                }
                return Ok(ResponseFraming {
                    body: head.body,
                    options: head.options,
                    persistent: head.persistent,
                    interim: head.interim,
                });
            }
            Parse::Incomplete => {
                if inbound.receive_rest(transport, wait, || {}).await? == 0 {
                    return Err(ReadError::Closed);
                }
            }
            Parse::Http2Preface => {
                inbound.note_fault(0);
                return Err(ReadError::Malformed(h1::H1Error::VersionInvalid));
            }
            Parse::Error(fault) => {
                inbound.note_fault(fault.at_byte);
                return Err(ReadError::Malformed(fault.error));
            }
        }
    }
}
