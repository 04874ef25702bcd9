//! A client's connection: what all exchanges on it share.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use ballast_engine::{ClientProtocol, Frontend};
use ballast_expr::TlsSessionFacts;
use ballast_listen::{
    Admission, Arrival, ClientProxyHeader, EstablishedConnection, ExpectedHeaders, HandshakeError,
    HandshakeRefusal, ProxyHeaderValues,
};
use ballast_model::ProxyProtocol;
use ballast_mux::ReadError;
use ballast_transport::{PendingHandshake, Transport};
use ballast_upstream::{ClientAddresses, ClientTlsValues};
use ballast_worker::SocketReference;

use crate::kept_connections::KeptConnections;
use crate::tls::ClientSession;
use crate::tracked_entries::TrackedEntries;
use ballast_engine::Variables;

thread_local! {
    /// The number of the next connection.
    static NUMBER: Cell<u64> = const { Cell::new(1) };
}

/// A client's connection: its addresses, and what was learned before its first exchange. What
/// belongs to one exchange is in its [`Context`](crate::context::Context).
#[derive(Debug)]
pub(crate) struct Session {
    /// A number that no other connection of this worker has.
    pub(crate) number: u64,
    /// The client's source and destination: those of the PROXY header or of a NetScaler's if one
    /// came, else those of the connection itself.
    pub(crate) addresses: ClientAddresses,
    /// The peer's address of the connection itself.
    pub(crate) connection_source: Option<SocketAddr>,
    /// Our address of the connection itself.
    pub(crate) connection_destination: Option<SocketAddr>,
    /// Whether a PROXY header came.
    pub(crate) has_proxy_header: bool,
    /// The values of that header beside its addresses.
    pub(crate) proxy_values: ProxyHeaderValues,
    /// When it was accepted, on the steady clock.
    pub(crate) accepted: Instant,
    /// When it was accepted, on the wall clock.
    pub(crate) accepted_at: SystemTime,
    /// How long handshakes took.
    pub(crate) handshake: Duration,
    /// Counts the connection in the process, its frontend and its bind while it lives.
    pub(crate) admission: Admission,
    /// Its socket, for questions about it.
    pub(crate) socket: SocketReference,
    /// The TLS session.
    pub(crate) tls: Option<Box<ClientSession>>,
    /// Why a handshake refused the connection.
    pub(crate) refusal: Option<HandshakeError>,
    /// Whether the client has reset the connection.
    pub(crate) was_reset: Cell<bool>,
    /// Variables of the scope `sess`.
    pub(crate) variables: RefCell<Variables>,
    /// What sticky counters track for the connection.
    pub(crate) tracked: TrackedEntries,
    /// Connections to servers that stay with it.
    pub(crate) kept: KeptConnections,
    /// When the wait for the next stream began: the last one was opened then, or ended.
    pub(crate) idle_from: Cell<Instant>,
}

/// What `tcp-request connection` rules set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionSettings {
    /// The addresses of the connection.
    pub(crate) addresses: ClientAddresses,
    /// `expect-netscaler-cip`, `expect-proxy`.
    pub(crate) expected_headers: ExpectedHeaders,
}

impl Session {
    /// The session of a connection just accepted, and its transport.
    pub(crate) fn begin(arrival: Arrival) -> (Self, Transport) {
        let session = Self {
            number: NUMBER.replace(NUMBER.get() + 1),
            addresses: ClientAddresses {
                source: arrival.source,
                destination: arrival.destination,
            },
            connection_source: arrival.source,
            connection_destination: arrival.destination,
            has_proxy_header: false,
            proxy_values: ProxyHeaderValues::default(),
            accepted: arrival.accepted,
            accepted_at: arrival.accepted_at,
            handshake: Duration::ZERO,
            admission: arrival.admission,
            socket: arrival.transport.socket_reference(),
            tls: None,
            refusal: None,
            was_reset: Cell::new(false),
            variables: RefCell::default(),
            tracked: TrackedEntries::default(),
            kept: KeptConnections::default(),
            idle_from: Cell::new(arrival.accepted),
        };
        (session, arrival.transport)
    }

    /// Takes over what `tcp-request connection` rules have set: the addresses are those of the
    /// connection from now on. Returns the headers that the connection must begin with.
    pub(crate) fn adopt(&mut self, settings: ConnectionSettings) -> ExpectedHeaders {
        let ClientAddresses {
            source,
            destination,
        } = settings.addresses;
        self.addresses = settings.addresses;
        (self.connection_source, self.connection_destination) = (source, destination);
        settings.expected_headers
    }

    /// Takes over the results of the handshakes. Returns the transport to use from now on, and the
    /// bytes that were read behind the handshakes.
    pub(crate) fn establish(&mut self, connection: EstablishedConnection) -> (Transport, Vec<u8>) {
        let EstablishedConnection {
            transport,
            read_ahead,
            proxied,
            inserted,
            tls,
        } = connection;
        let pending = transport.pending_handshake();
        self.tls = tls.map(|tls| ClientSession::new(tls, pending));
        self.take_addresses(inserted);
        self.take_proxy_header(proxied);
        self.handshake = ballast_worker::now().saturating_duration_since(self.accepted);
        (transport, read_ahead)
    }

    /// As [`Self::note_failure`].
    pub(crate) fn note_read_failure(&self, error: &ReadError) {
        if let ReadError::Broken(error) = error {
            self.note_failure(error);
        }
    }

    /// Notes that the connection broke, where the client has reset it.
    pub(crate) fn note_failure(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::ConnectionReset {
            self.was_reset.set(true);
        }
    }

    /// Notes why a handshake refused the connection, and what is known of it by then.
    pub(crate) fn refuse(&mut self, refusal: HandshakeRefusal) {
        let HandshakeRefusal {
            error,
            tls,
            proxied,
            inserted,
        } = refusal;
        self.refusal = Some(error);
        self.tls = tls.map(|tls| ClientSession::new(tls, None));
        self.take_addresses(inserted);
        self.take_proxy_header(proxied);
    }

    /// Takes the client's source and destination from what another proxy tells.
    fn take_addresses(&mut self, told: Option<(SocketAddr, SocketAddr)>) {
        if let Some((source, destination)) = told {
            self.addresses.source = Some(source);
            self.addresses.destination = Some(destination);
        }
    }

    fn take_proxy_header(&mut self, header: Option<ClientProxyHeader>) {
        let Some(header) = header else {
            return;
        };
        self.take_addresses(header.endpoints);
        self.has_proxy_header = true;
        self.proxy_values = header.values;
    }

    /// How the connection begins on this frontend.
    pub(crate) fn protocol(&self, frontend: &Frontend) -> ClientProtocol {
        let negotiated = self.tls.as_ref().and_then(|tls| tls.protocol());
        let bind = &self.admission.listening().bind;
        ClientProtocol::of(bind, &frontend.model.options, negotiated)
    }

    /// The handshake of TLS, while early data are served before its end.
    pub(crate) fn pending_handshake(&self) -> Option<&PendingHandshake> {
        self.tls.as_ref()?.pending_handshake()
    }

    /// What the PROXY header of a server's line tells of the TLS session. A host name that came in a
    /// PROXY header wins over the one that the client sent, as in HAProxy.
    pub(crate) fn tls_values(&self, asked: &ProxyProtocol) -> ClientTlsValues {
        let tls = self.tls.as_deref();
        let own_name = || tls.and_then(TlsSessionFacts::server_name);
        let name = || self.proxy_values.authority().or_else(own_name);
        let session = tls.filter(|_| asked.ssl);
        ClientTlsValues {
            protocol: tls.and_then(TlsSessionFacts::protocol).map(Into::into),
            authority: asked.authority.then(name).flatten().map(Into::into),
            session: session
                .and_then(|tls| tls.proxy_header(asked))
                .map(Box::new),
        }
    }

    /// When handshakes were over, and the time for the first request began.
    pub(crate) fn established(&self) -> Instant {
        self.accepted + self.handshake
    }
}
