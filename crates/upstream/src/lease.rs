//! A server's connection, lent for an exchange.
//!
//! What a lease holds is below: for HTTP/1 and for TCP all of a connection, for a protocol with
//! streams one of them. The exchange that holds it begins it, moves bytes on it and ends it; whether
//! and for whom the connection serves again is decided here and in the [`pool`], by the [`Key`] it was
//! opened with.
//!
//! [`pool`]: crate::pool

use std::net::SocketAddr;
use std::sync::Arc;

use ballast_engine::{Backend, Server, ServerState};
use ballast_message::{BodyLength, Request};
use ballast_mux::{Duplex, ServerConnection, Traffic};

use crate::key::Ends;
use crate::{Key, Particulars};

/// A server's connection, which the server counts for as long as it lives: lent, idle, kept for its
/// client, or on its way out of a task that was cut off.
#[derive(Debug)]
pub struct Lease {
    // In a box: it is moved often, and lives long.
    opened: Box<Opened>,
    state: Arc<ServerState>,
}

#[derive(Debug)]
struct Opened {
    connection: ServerConnection,
    key: Key,
    /// It bears something of one client, an identity or an address, and may serve no other.
    bears_client: bool,
}

/// How an exchange left the connection that was lent for it.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeEnd {
    /// Request and response went whole.
    pub is_whole: bool,
    /// The server takes another request on it.
    pub is_persistent: bool,
    /// The connection itself may bear the client's identity from now on, and serves no other
    /// (NTLM and Negotiate; configuration manual, "http-reuse").
    pub bears_client: bool,
}

/// For the exchange that holds it.
impl Lease {
    /// Begins an exchange: gathers the request's head, whose body follows through
    /// [`Self::duplex`].
    pub fn begin(&mut self, request: &Request, body: BodyLength) {
        self.opened.connection.begin_request(request, body);
    }

    /// What the exchange has of the connection: where the response comes from, and where the body
    /// of the request goes.
    pub fn duplex(&mut self) -> Duplex<'_> {
        self.opened.connection.duplex()
    }

    /// What went over it so far, former exchanges included.
    pub fn traffic(&self) -> Traffic {
        self.opened.connection.traffic()
    }

    /// Our end and the server's end, asked of the kernel; `None` for what is no IP address.
    pub fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        self.opened.connection.addresses()
    }

    /// Ends the exchange. `None` when the connection can carry no other, and is closed.
    pub fn end(mut self, end: ExchangeEnd) -> Option<Self> {
        self.opened.bears_client |= end.bears_client;
        let is_clean = self.opened.connection.is_clean();
        (end.is_whole && end.is_persistent && is_clean).then_some(self)
    }

    /// The lease of a client that kept its connection, for another exchange with `server`; `None`,
    /// and the connection is closed, when that would have another opened, or this one is of no use
    /// any more.
    pub fn renew(self, backend: &Backend, server: &Server, wanted: &Particulars) -> Option<Self> {
        (self.fits(backend, server, wanted) && self.is_reusable()).then_some(self)
    }

    /// Whether the connection itself bears the client's identity ([`ExchangeEnd::bears_client`]).
    pub fn bears_client(&self) -> bool {
        self.opened.bears_client
    }
}

/// For the pool.
impl Lease {
    /// Has the server count a connection that was just opened.
    pub(crate) fn new(server: &Server, connection: ServerConnection, key: Key) -> Self {
        server.state.connections.enter();
        Self {
            opened: Box::new(Opened {
                connection,
                key,
                bears_client: false,
            }),
            state: Arc::clone(&server.state),
        }
    }

    /// Whether it may carry an exchange that asks for `wanted` of this server: it is one of the
    /// server's, in whatever generation, and the exchange would have had it opened as it was.
    pub(crate) fn fits(&self, backend: &Backend, server: &Server, wanted: &Particulars) -> bool {
        Arc::ptr_eq(&self.state, &server.state) && self.opened.key.fits(backend, server, wanted)
    }

    /// Whether it can carry another exchange: the server has neither spoken nor closed.
    pub(crate) fn is_reusable(&self) -> bool {
        self.opened.connection.is_reusable()
    }

    /// Whether it bears something of one client, an address or an identity, and serves no other.
    pub(crate) fn is_of_one_client(&self) -> bool {
        self.bears_client() || self.opened.key.particulars.is_of_one_client()
    }

    /// Between where and where it runs.
    pub(crate) fn ends(&self) -> Ends {
        self.opened.key.particulars.ends()
    }

    /// Which address of the server it was opened to.
    pub(crate) fn epoch(&self) -> u32 {
        self.opened.key.particulars.epoch
    }

    /// Exchanges begun on it so far.
    pub(crate) fn exchange_count(&self) -> u32 {
        self.opened.connection.exchange_count()
    }

    /// Gives its buffers back: nothing is under way.
    pub(crate) fn rest(&mut self) {
        self.opened.connection.rest();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // What is lost by a reset is nobody's any more: an exchange that ended well has all there
        // is. It spares both sides the farewell, and us a port that is taken until the connection
        // is forgotten (TIME_WAIT). And a server that is still at work hears that nobody waits: by
        // an end alone it could take us for one who only listens. HAProxy closes servers'
        // connections so, where it does not know yet that the server closed.
        if !self.opened.connection.peer_closed() {
            self.opened.connection.reset();
        }
        self.state.connections.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::time::Duration;

    use ballast_engine::{Generation, Process, Registry};
    use ballast_model as model;
    use ballast_mux::{Limits, Wait};
    use ballast_worker::{Deadline, block_on};

    use super::*;
    use crate::{ExchangeFacts, Path, connect};

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

    /// A lease, and the server's end of it.
    async fn lease(backend: &Backend, listener: &TcpListener) -> (Lease, TcpStream) {
        let server = &backend.servers[0];
        let (path, told) = (Path::default(), ExchangeFacts::default());
        let wanted = Particulars::of(backend, server, &path, told, Limits::default());
        let key = Key::new(backend, server, wanted);
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
                assert_eq!(server.state.connections.now(), 1);
                if closed {
                    peer.shutdown(Shutdown::Write).unwrap();
                    let deadline = Deadline::new();
                    let wait = Wait::until(&deadline, None);
                    let received = lease.duplex().source.receive(&wait).await;
                    assert_eq!(received.unwrap(), 0);
                }
                drop(lease);
                assert_eq!(server.state.connections.now(), 0);
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
