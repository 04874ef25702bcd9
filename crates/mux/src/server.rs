//! A connection to a server: requests out, responses in.

use std::net::SocketAddr;
use std::sync::Arc;

use ballast_message::{BodyLength, NameCases, Request};
use ballast_transport::Transport;
use ballast_worker::SocketReference;

use crate::heads::HeadParser;
use crate::inbound::Inbound;
use crate::outbound::Outbound;
use crate::{Duplex, Limits};

/// A connection that we opened to a server.
#[derive(Debug)]
pub struct ServerConnection {
    pub(crate) transport: Transport,
    pub(crate) inbound: Inbound,
    pub(crate) outbound: Outbound,
    heads: HeadParser,
    /// Exchanges begun on it so far.
    exchange_count: u32,
}

/// How many bytes a connection has carried since it was opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ConnectionBytes {
    /// To the peer.
    pub sent_bytes: u64,
    /// From the peer.
    pub received_bytes: u64,
}

impl ServerConnection {
    /// A connection just opened.
    pub fn new(transport: Transport, limits: Limits) -> Self {
        Self {
            transport,
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            heads: HeadParser::new(limits),
            exchange_count: 0,
        }
    }

    /// From now on requests are written with the names of fields in this case (`h1-case-adjust`),
    /// and without trailers (`option http-drop-request-trailers`).
    pub fn set_output_format(&mut self, cases: Option<&Arc<NameCases>>, drops_trailers: bool) {
        self.outbound.set_format(cases.cloned(), drops_trailers);
    }

    /// What goes to the server before its first request: a PROXY header.
    pub fn preamble(&mut self) -> &mut Vec<u8> {
        self.outbound.head()
    }

    /// Whether an idle connection can carry another exchange: nothing is left over, and the server
    /// has neither sent anything nor closed. A clear connection makes no system call for it.
    pub fn is_reusable(&self) -> bool {
        self.is_clean()
            && !self.inbound.peer_closed()
            && !self.outbound.has_pending()
            && self.transport.is_quiet()
    }

    /// Whether nothing is left over of what the server sent.
    pub fn is_clean(&self) -> bool {
        self.inbound.bytes().is_empty()
    }

    /// Whether the server has closed its side.
    pub fn peer_closed(&self) -> bool {
        self.inbound.peer_closed()
    }

    /// Exchanges begun on it so far.
    pub fn exchange_count(&self) -> u32 {
        self.exchange_count
    }

    /// The bytes sent and received on it so far.
    pub fn traffic(&self) -> ConnectionBytes {
        ConnectionBytes {
            sent_bytes: self.outbound.total_bytes(),
            received_bytes: self.inbound.total_bytes(),
        }
    }

    /// Our address and the server's, asked of the kernel; `None` for what is not an IP address.
    pub fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        let local = self.transport.local_address();
        let peer = self.transport.peer_address();
        (
            local.ok().and_then(|address| address.ip()),
            peer.ok().and_then(|address| address.ip()),
        )
    }

    /// Refers to the socket below, and does not keep it open.
    pub fn socket_reference(&self) -> SocketReference {
        self.transport.socket_reference()
    }

    /// Releases its buffers while it waits for another exchange.
    pub fn release(&mut self) {
        self.inbound.release();
        self.outbound.release();
    }

    /// Makes the close of the connection a reset.
    pub fn reset(&mut self) {
        self.duplex().peer.reset();
    }

    /// Gathers a request's head; its body follows through [`Self::duplex`].
    pub fn begin_request(&mut self, request: &Request, body: BodyLength) {
        self.exchange_count = self.exchange_count.saturating_add(1);
        self.outbound.begin_request(request, body);
    }

    /// All of the connection, for the exchange that was begun, or for a TCP session.
    pub fn duplex(&mut self) -> Duplex<'_> {
        Duplex::new(
            (&self.transport).into(),
            &mut self.inbound,
            &mut self.outbound,
            &mut self.heads,
        )
    }
}
