//! A connection to a server: requests out, responses in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use ballast_message::{BodyLength, NameCases, Request};
use ballast_transport::Transport;
use ballast_worker::SocketReference;

use crate::h2::{PlannedStream, ServerStreams, StreamHandle, StreamReference};
use crate::heads::HeadParser;
use crate::inbound::Inbound;
use crate::outbound::Outbound;
use crate::{AskedProtocol, Duplex, Limits};

/// A connection that we opened to a server.
#[derive(Debug)]
pub struct ServerConnection {
    link: Link,
    pub(crate) inbound: Inbound,
    pub(crate) outbound: Outbound,
    heads: HeadParser,
    /// Exchanges begun on it so far.
    exchange_count: u32,
}

/// What an exchange has of a connection.
#[derive(Debug)]
enum Link {
    /// All of it.
    Whole(Transport),
    /// A stream of it.
    Stream {
        streams: ServerStreams,
        stream: StreamHandle,
        /// The right to open it, until it is opened.
        planned: Option<PlannedStream>,
    },
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
            link: Link::Whole(transport),
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            heads: HeadParser::new(limits),
            exchange_count: 0,
        }
    }

    /// A stream of a connection, to be opened by a request.
    pub fn on_stream(streams: &ServerStreams, limits: Limits) -> Self {
        Self {
            link: Link::Stream {
                streams: streams.clone(),
                stream: streams.unopened(),
                planned: Some(streams.plan()),
            },
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            heads: HeadParser::new(limits),
            exchange_count: 0,
        }
    }

    /// Its connection, if that carries streams.
    pub fn streams(&self) -> Option<&ServerStreams> {
        match &self.link {
            Link::Whole(_) => None,
            Link::Stream { streams, .. } => Some(streams),
        }
    }

    /// Refers to the stream, where it is one.
    pub fn stream(&self) -> Option<StreamReference> {
        match &self.link {
            Link::Whole(_) => None,
            Link::Stream { stream, .. } => Some(stream.reference()),
        }
    }

    /// Counts another exchange, which begins soon, among those of a connection that carries streams.
    pub fn plan_exchange(&mut self) {
        if let Link::Stream {
            streams, planned, ..
        } = &mut self.link
        {
            planned.get_or_insert_with(|| streams.plan());
        }
    }

    /// The exchange is over: a stream that has not ended is reset.
    pub fn end_exchange(&mut self) {
        if let Link::Stream {
            streams,
            stream,
            planned,
        } = &mut self.link
        {
            *stream = streams.unopened();
            *planned = None;
            self.inbound = Inbound::default();
        }
    }

    /// The parts of a connection that carries one exchange, for tests.
    #[cfg(test)]
    pub(crate) fn halves(&mut self) -> (&Transport, &mut Inbound, &mut Outbound) {
        let Link::Whole(transport) = &self.link else {
            unreachable!("tests of halves have whole connections");
        };
        (transport, &mut self.inbound, &mut self.outbound)
    }

    pub(crate) fn transport(&self) -> &Transport {
        match &self.link {
            Link::Whole(transport) => transport,
            Link::Stream { streams, .. } => streams.transport(),
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
        match &self.link {
            Link::Whole(transport) => {
                self.is_clean()
                    && !self.inbound.peer_closed()
                    && !self.outbound.has_pending()
                    && transport.is_quiet()
            }
            Link::Stream { streams, .. } => streams.free_count() > 0,
        }
    }

    /// Ready when an idle connection has become unusable: the server has sent something or closed. Until
    /// then the task is woken by whatever comes. It reads nothing of a clear connection; records that
    /// concern only TLS, such as session tickets, are taken.
    pub fn poll_unusable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.link {
            Link::Whole(transport) => {
                while let Poll::Ready(readable) = transport.poll_readable(cx) {
                    if readable.is_err() || !self.is_reusable() {
                        return Poll::Ready(());
                    }
                }
                Poll::Pending
            }
            Link::Stream {
                streams, stream, ..
            } => match stream.poll_ended(cx) {
                Poll::Pending if streams.free_count() > 0 => Poll::Pending,
                _ => Poll::Ready(()),
            },
        }
    }

    /// Whether nothing is left over of what the server sent.
    pub fn is_clean(&self) -> bool {
        self.inbound.bytes().is_empty()
    }

    /// Whether the server has closed its side.
    pub fn peer_closed(&self) -> bool {
        self.inbound.peer_closed()
    }

    /// Exchanges begun on it so far, on all of its streams.
    pub fn exchange_count(&self) -> u32 {
        match &self.link {
            Link::Whole(_) => self.exchange_count,
            Link::Stream { streams, .. } => {
                u32::try_from(streams.opened_count()).unwrap_or(u32::MAX)
            }
        }
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
        let local = self.transport().local_address();
        let peer = self.transport().peer_address();
        (
            local.ok().and_then(|address| address.ip()),
            peer.ok().and_then(|address| address.ip()),
        )
    }

    /// Refers to the socket below, and does not keep it open.
    pub fn socket_reference(&self) -> SocketReference {
        self.transport().socket_reference()
    }

    /// Releases its buffers, and the task that used it, while it waits for another exchange.
    pub fn release(&mut self) {
        self.inbound.release();
        self.outbound.release();
        self.transport().forget_task();
    }

    /// Makes the close of the connection a reset, or resets the stream.
    pub fn reset(&mut self) {
        self.duplex().peer.reset();
    }

    /// Gathers a request's head; its body follows through [`Self::duplex`]. `asked` says that the
    /// client asks for the protocol of `Upgrade`: a stream then opens with an extended CONNECT (RFC 8441).
    pub fn begin_request(
        &mut self,
        request: &Request,
        body: BodyLength,
        asked: Option<AskedProtocol>,
    ) {
        self.exchange_count = self.exchange_count.saturating_add(1);
        match &mut self.link {
            Link::Whole(_) => self.outbound.begin_request(request, body),
            Link::Stream {
                streams,
                stream,
                planned,
            } => {
                // It is the one that is opened now.
                *planned = None;
                let (opened, head_bytes) = streams.open(request, body, asked);
                *stream = opened;
                self.inbound = Inbound::default();
                self.outbound.begin_stream_request(head_bytes, body);
            }
        }
    }

    /// All of the connection, for the exchange that was begun, or for a TCP session.
    pub fn duplex(&mut self) -> Duplex<'_> {
        let channel = match &self.link {
            Link::Whole(transport) => transport.into(),
            Link::Stream { stream, .. } => stream.into(),
        };
        Duplex::new(
            channel,
            &mut self.inbound,
            &mut self.outbound,
            &mut self.heads,
        )
    }
}
