//! A connection to a server, lent to an exchange.
//!
//! A lease covers a whole connection, or a stream of one that carries several. The exchange that
//! holds it begins it, moves bytes and ends it; whether the connection can be reused, and by whom,
//! is decided here and in the [`pool`], by the [`ConnectionKey`] it was opened with.
//!
//! [`pool`]: crate::pool

use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use ballast_engine::{Backend, Server, ServerState, TlsConnectionCount};
use ballast_message::{BodyLength, Request};
use ballast_mux::{
    AskedProtocol, ConnectionBytes, Duplex, ServerConnection, ServerStreams, StreamReference,
};
use ballast_tls::rustls::ClientConfig;
use ballast_transport::TlsFacts;
use ballast_worker::SocketReference;

use crate::key::IdleGroupKey;
use crate::open_connections::{ListedConnection, OpenConnectionEntry};
use crate::place::ConnectionPlace;
use crate::{ConnectionKey, ConnectionRequirements};

/// A connection to a server. The server counts it for as long as it lives: lent, idle, kept for its
/// client, or being dropped with a cancelled task.
#[derive(Debug)]
pub struct Lease {
    // Boxed: it is moved often and lives long.
    leased: Box<LeasedConnection>,
}

#[derive(Debug)]
struct LeasedConnection {
    connection: ServerConnection,
    opened: Opened,
    /// It ends with a FIN, whoever is first.
    closes_in_order: bool,
}

/// How a lease has the connection that it is of.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most connections carry one exchange at a time: they are one allocation, with their lease"
)]
enum Opened {
    /// For itself.
    Alone(OpenedConnection),
    /// With the leases of other streams.
    Shared(Rc<OpenedConnection>),
}

impl Deref for Opened {
    type Target = OpenedConnection;

    fn deref(&self) -> &OpenedConnection {
        match self {
            Self::Alone(opened) => opened,
            Self::Shared(opened) => opened,
        }
    }
}

/// A connection, as it was opened. The leases of its streams share it.
#[derive(Debug)]
pub(crate) struct OpenedConnection {
    key: ConnectionKey,
    /// The client's connection whose exchanges it carries: that it was opened for, or that took it when it
    /// was idle.
    session: Cell<u64>,
    /// `None` on a clear connection.
    tls: Option<OpenedTls>,
    /// The server has authenticated one client on it, so it may serve no other.
    is_authenticated_as_client: Cell<bool>,
    /// Its streams, where it carries several.
    streams: Option<ServerStreams>,
    state: Arc<ServerState>,
    /// Lists it for `show fd`.
    _entry: OpenConnectionEntry,
    /// Counts it among those of its server.
    _place: ConnectionPlace,
}

/// What a connection keeps of its handshake.
pub(crate) struct OpenedTls {
    /// What the handshake was made with.
    pub(crate) config: Arc<ClientConfig>,
    /// What both sides agreed on.
    pub(crate) facts: Arc<TlsFacts>,
    /// The name that the server was sent.
    pub(crate) server_name: Option<Arc<[u8]>>,
    /// Counts it while the connection lives.
    pub(crate) _count: TlsConnectionCount,
}

impl fmt::Debug for OpenedTls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.facts.fmt(out)
    }
}

/// How an exchange left its connection.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeEnd {
    /// Request and response were transferred completely.
    pub is_whole: bool,
    /// The server accepts another request on it.
    pub is_persistent: bool,
    /// The connection is authenticated as this client from now on and must not serve others (NTLM
    /// and Negotiate; configuration manual, "http-reuse").
    pub is_authenticated_as_client: bool,
}

/// Methods for the exchange that holds it.
impl Lease {
    /// Begins an exchange: buffers the request's head; the body follows through [`Self::duplex`].
    /// `asked` says that the client asks for another protocol.
    pub fn begin(&mut self, request: &Request, body: BodyLength, asked: Option<AskedProtocol>) {
        let connection = &mut self.leased.connection;
        connection.begin_request(request, body, asked);
    }

    /// Both directions of the connection: the source of the response, and the sink for the body of
    /// the request.
    pub fn duplex(&mut self) -> Duplex<'_> {
        self.leased.connection.duplex()
    }

    /// Bytes transferred so far, earlier exchanges included.
    pub fn traffic(&self) -> ConnectionBytes {
        self.leased.connection.traffic()
    }

    /// Our address and the server's address, asked from the kernel; `None` where it is not an IP
    /// address.
    pub fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        self.leased.connection.addresses()
    }

    /// Refers to the socket of the connection, and does not keep it open.
    pub fn socket_reference(&self) -> SocketReference {
        self.leased.connection.socket_reference()
    }

    /// What was agreed on with the server; `None` on a clear connection.
    pub fn tls(&self) -> Option<&Arc<TlsFacts>> {
        self.leased.opened.tls.as_ref().map(|tls| &tls.facts)
    }

    /// The name that the server was sent (SNI).
    pub fn server_name(&self) -> Option<&Arc<[u8]>> {
        self.leased.opened.tls.as_ref()?.server_name.as_ref()
    }

    /// Ends the exchange. `None` when the connection cannot carry another; it is closed then. Of a
    /// connection with streams, only the last one that ends gives it back.
    pub fn end(mut self, end: ExchangeEnd) -> Option<Self> {
        if end.is_authenticated_as_client {
            self.leased.opened.is_authenticated_as_client.set(true);
        }
        if let Some(streams) = &self.leased.opened.streams {
            self.leased.connection.end_exchange();
            return (streams.used_count() == 0 && streams.free_count() > 0).then_some(self);
        }
        let is_clean = self.leased.connection.is_clean();
        (end.is_whole && end.is_persistent && is_clean).then_some(self)
    }

    /// Refers to the stream, where it is one.
    pub fn stream(&self) -> Option<StreamReference> {
        self.leased.connection.stream()
    }

    /// A connection that was idle, for the next exchange. `None`, and it is closed, when it cannot be
    /// used any more.
    pub fn renew(mut self) -> Option<Self> {
        if self.has_ended() {
            return None;
        }
        self.plan_exchange();
        Some(self)
    }

    /// Whether the connection is authenticated as its client ([`ExchangeEnd::is_authenticated_as_client`]).
    pub fn is_authenticated_as_client(&self) -> bool {
        self.leased.opened.is_authenticated_as_client.get()
    }
}

impl Lease {
    /// Counts a connection that was just opened.
    pub(crate) fn new(
        server: &Server,
        connection: ServerConnection,
        key: ConnectionKey,
        (tls, place): (Option<OpenedTls>, Option<ConnectionPlace>),
    ) -> Self {
        let place = place.unwrap_or_else(|| ConnectionPlace::unlimited(server));
        server.state.process.server_connections.enter();
        let entry = OpenConnectionEntry::enter(ListedConnection {
            socket: connection.socket_reference(),
            state: Arc::clone(&server.state),
            line: Arc::clone(&key.line),
            carries_http: key.requirements.streams.is_some(),
            is_tls: tls.is_some(),
            streams: connection.streams().cloned(),
        });
        let opened = OpenedConnection {
            session: Cell::new(key.requirements.session),
            key,
            tls,
            is_authenticated_as_client: Cell::new(false),
            streams: connection.streams().cloned(),
            state: Arc::clone(&server.state),
            _entry: entry,
            _place: place,
        };
        let opened = match opened.streams {
            Some(_) => Opened::Shared(Rc::new(opened)),
            None => Opened::Alone(opened),
        };
        Self::of(connection, opened)
    }

    fn of(connection: ServerConnection, opened: Opened) -> Self {
        Self {
            leased: Box::new(LeasedConnection {
                connection,
                opened,
                closes_in_order: false,
            }),
        }
    }

    /// The connection, if it carries streams.
    pub(crate) fn shared(&self) -> Option<&Rc<OpenedConnection>> {
        match &self.leased.opened {
            Opened::Alone(_) => None,
            Opened::Shared(opened) => Some(opened),
        }
    }

    /// Another stream of a connection that carries streams.
    pub(crate) fn on_stream(opened: Rc<OpenedConnection>) -> Option<Self> {
        let streams = opened.streams.as_ref()?;
        let limits = opened.key.requirements.limits;
        let connection = ServerConnection::on_stream(streams, limits);
        Some(Self::of(connection, Opened::Shared(opened)))
    }

    /// Whether its connection carries streams.
    pub(crate) fn has_streams(&self) -> bool {
        self.leased.opened.streams.is_some()
    }

    /// See [`OpenedConnection::session`].
    pub(crate) fn session(&self) -> u64 {
        self.leased.opened.session()
    }

    /// Has it carry the exchanges of this client's connection: its streams share it from now on.
    pub(crate) fn pass_to(&self, session: u64) {
        self.leased.opened.session.set(session);
    }

    /// Counts the exchange that begins soon among those of the connection.
    pub(crate) fn plan_exchange(&mut self) {
        self.leased.connection.plan_exchange();
    }

    /// Whether it may carry an exchange that requires `wanted` of this server: it leads to this
    /// server, in any generation, and the exchange would open an equal one.
    pub fn fits(
        &self,
        backend: &Backend,
        server: &Server,
        wanted: &ConnectionRequirements,
    ) -> bool {
        self.leased.opened.fits(backend, server, wanted)
    }

    /// Whether it can carry another exchange: the server sent nothing and did not close.
    pub(crate) fn is_reusable(&self) -> bool {
        self.leased.connection.is_reusable()
    }

    /// Whether an idle connection can carry no other exchange any more. It is to be dropped then, and is not
    /// reset: its server closed it, or will see a reset for what it sent and nobody reads.
    pub fn has_ended(&mut self) -> bool {
        let has_ended = !self.is_reusable();
        if has_ended {
            self.close_in_order();
        }
        has_ended
    }

    /// Ready when it can carry no other exchange any more: the server sent something, or closed. Else the
    /// task is woken when something happens.
    pub fn poll_unusable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let unusable = self.leased.connection.poll_unusable(cx);
        if unusable.is_ready() {
            self.close_in_order();
        }
        unusable
    }

    /// Whether it carries something of one client, an address or an identity, and must not be
    /// shared.
    pub(crate) fn is_of_one_client(&self) -> bool {
        self.leased.opened.is_of_one_client()
    }

    /// What it differs in from others of its server ([`ConnectionRequirements::idle_group_key`]).
    pub(crate) fn idle_group_key(&self) -> Option<IdleGroupKey> {
        self.leased.opened.key.requirements.idle_group_key()
    }

    /// The address epoch of the server when it was opened.
    pub(crate) fn epoch(&self) -> u32 {
        self.leased.opened.key.requirements.epoch
    }

    /// Exchanges begun on it so far.
    pub fn exchange_count(&self) -> u32 {
        self.leased.connection.exchange_count()
    }

    /// Has it closed with a FIN, unless a reset was asked for: as in HAProxy a tunnel ends so, whatever
    /// its reason, and what was sent arrives.
    pub fn close_in_order(&mut self) {
        self.leased.closes_in_order = true;
    }

    /// Returns its buffers: no exchange is running.
    pub(crate) fn release(&mut self) {
        self.leased.connection.release();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Nothing of value is lost by a reset: an exchange that ended well has received everything.
        // It saves both sides the closing handshake, and us a port in TIME_WAIT. And a server that
        // is still working learns that nobody waits for its answer; a plain FIN could mean that we
        // only stopped sending. HAProxy closes connections to servers in this way too, unless it
        // knows already that the server closed.
        let resets = !self.leased.closes_in_order && !self.leased.connection.peer_closed();
        if self.leased.opened.streams.is_none() && resets {
            self.leased.connection.reset();
        }
    }
}

impl OpenedConnection {
    /// See [`Lease::fits`].
    pub(crate) fn fits(
        &self,
        backend: &Backend,
        server: &Server,
        wanted: &ConnectionRequirements,
    ) -> bool {
        Arc::ptr_eq(&self.state, &server.state)
            && self.has_tls_settings_of(server)
            && self.key.fits(backend, server, wanted)
    }

    /// Whether a connection opened now would be clear too, or make the same handshake.
    fn has_tls_settings_of(&self, server: &Server) -> bool {
        match (&self.tls, server.traffic_tls()) {
            (None, None) => true,
            (Some(opened), Some(tls)) => tls.is_configured_as(&opened.config),
            _ => false,
        }
    }

    /// See [`Lease::is_of_one_client`].
    pub(crate) fn is_of_one_client(&self) -> bool {
        self.is_authenticated_as_client.get() || self.key.requirements.is_of_one_client()
    }

    /// The client's connection whose exchanges it carries.
    pub(crate) fn session(&self) -> u64 {
        self.session.get()
    }

    /// Whether it carries streams, and may carry one more: also by the server's `max-reuse`.
    pub(crate) fn is_under_way(&self) -> bool {
        let Some(streams) = &self.streams else {
            return false;
        };
        let count_max = self.key.line.reuse_count_max;
        let is_worn = count_max.is_some_and(|max| streams.opened_count() > u64::from(max));
        !is_worn && streams.used_count() > 0 && streams.free_count() > 0
    }
}

impl Drop for OpenedConnection {
    fn drop(&mut self) {
        if let Some(streams) = &self.streams {
            streams.end();
        }
        self.state.process.server_connections.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::time::Duration;

    use ballast_engine::{Generation, Process, Registry};
    use ballast_model as model;
    use ballast_mux::{Limits, WaitLimit};
    use ballast_worker::{Deadline, block_on};

    use super::*;
    use crate::{ClientAddresses, ExchangeValues, connect};

    fn generation(listener: &TcpListener) -> Generation {
        let address = model::Address::Inet(listener.local_addr().unwrap());
        let mut config = model::Config::default();
        config.backends.push(Arc::new(model::Backend {
            servers: vec![Arc::new(model::Server::new("s".into(), address))],
            ..model::Backend::default()
        }));
        let registry = Registry::new(1, Arc::new(Process::new(1, 10)));
        Generation::compile(1, Arc::new(config), &registry)
    }

    /// A lease, and the server's end of the connection.
    async fn lease(backend: &Backend, listener: &TcpListener) -> (Lease, TcpStream) {
        let server = &backend.servers[0];
        let (client, told) = (ClientAddresses::default(), ExchangeValues::default());
        let wanted = ConnectionRequirements::of(backend, server, &client, told, Limits::default());
        let key = ConnectionKey::new(backend, server, wanted);
        let lease = connect(server, key).await.unwrap();
        let (peer, _) = listener.accept().unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        (lease, peer)
    }

    #[test]
    fn a_connection_that_its_server_has_not_closed_is_closed_with_a_reset() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let generation = generation(&listener);
        let backend = &generation.backends[0];
        let server = &backend.servers[0];
        block_on(async {
            for closed in [false, true] {
                let (mut lease, mut peer) = lease(backend, &listener).await;
                assert_eq!(server.state.connections.current(), 1);
                if closed {
                    peer.shutdown(Shutdown::Write).unwrap();
                    let deadline = Deadline::new();
                    let wait = WaitLimit::until(&deadline, None);
                    let received = lease.duplex().source.receive(&wait).await;
                    assert_eq!(received.unwrap(), 0);
                }
                drop(lease);
                assert_eq!(server.state.connections.current(), 0);
                match peer.read(&mut [0; 8]) {
                    Ok(0) => assert!(closed),
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => assert!(!closed),
                    other => panic!("{other:?}"),
                }
            }
        })
        .unwrap();
    }
}
