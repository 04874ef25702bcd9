//! A server's connection and its count, which live and end together.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use ballast_engine::{Backend, Server, ServerState};
use ballast_mux::ServerConnection;

use crate::key::Ends;
use crate::{Key, Particulars};

/// A connection to a server, which the server counts for as long as it lives: in use, at rest,
/// kept for its client, or on its way out of a task that was cut off.
#[derive(Debug)]
pub struct Link {
    // In a box: it goes from hand to hand for as long as it lives.
    opened: Box<Opened>,
    state: Arc<ServerState>,
}

#[derive(Debug)]
struct Opened {
    connection: ServerConnection,
    key: Key,
}

impl Link {
    /// Has the server count a connection that was just opened.
    pub(crate) fn new(server: &Server, connection: ServerConnection, key: Key) -> Self {
        server.state.connections.enter();
        Self {
            opened: Box::new(Opened { connection, key }),
            state: Arc::clone(&server.state),
        }
    }

    /// Whether it may carry an exchange that asks for `wanted` of this server: it is one of the
    /// server's, in whatever generation, and the exchange would have had it opened as it was.
    pub fn fits(&self, backend: &Backend, server: &Server, wanted: &Particulars) -> bool {
        Arc::ptr_eq(&self.state, &server.state) && self.opened.key.fits(backend, server, wanted)
    }

    /// Whether it bears something of one client, an address or an identity, and serves no other.
    pub fn is_of_one_client(&self) -> bool {
        self.opened.connection.private || self.opened.key.particulars.is_of_one_client()
    }

    /// Between where and where it runs.
    pub(crate) fn ends(&self) -> Ends {
        self.opened.key.particulars.ends()
    }

    /// Which address of the server it was opened to.
    pub(crate) fn epoch(&self) -> u32 {
        self.opened.key.particulars.epoch
    }
}

impl Deref for Link {
    type Target = ServerConnection;

    fn deref(&self) -> &ServerConnection {
        &self.opened.connection
    }
}

impl DerefMut for Link {
    fn deref_mut(&mut self) -> &mut ServerConnection {
        &mut self.opened.connection
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // What is lost by a reset is nobody's any more: an exchange that ended well has all there
        // is. It spares both sides the farewell, and us a port that is taken until the connection
        // is forgotten (TIME_WAIT). And a server that is still at work hears that nobody waits: by
        // an end alone it could take us for one who only listens. HAProxy closes servers'
        // connections so, where it does not know yet that the server closed.
        if !self.opened.connection.inbound.peer_closed() {
            // Where it cannot be arranged a plain close follows.
            let _ = self.opened.connection.transport.reset_on_close();
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

    /// A link, and the server's end of it.
    async fn link(backend: &Backend, listener: &TcpListener) -> (Link, TcpStream) {
        let server = &backend.servers[0];
        let (path, told) = (Path::default(), ExchangeFacts::default());
        let wanted = Particulars::of(backend, server, &path, told, Limits::default());
        let key = Key::new(backend, server, wanted);
        let link = connect(server, key).await.unwrap();
        let (peer, _) = listener.accept().unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        (link, peer)
    }

    #[test]
    fn a_connection_that_its_server_has_not_closed_is_closed_with_a_reset() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let generation = generation(&listener);
        let backend = &generation.backends[0];
        let server = &backend.servers[0];
        block_on(async {
            for closed in [false, true] {
                let (mut link, mut peer) = link(backend, &listener).await;
                assert_eq!(server.state.connections.now(), 1);
                if closed {
                    peer.shutdown(Shutdown::Write).unwrap();
                    let deadline = Deadline::new();
                    let wait = Wait::until(&deadline, None);
                    let connection = &mut *link;
                    let received = connection
                        .inbound
                        .receive(&connection.transport, &wait)
                        .await;
                    assert_eq!(received.unwrap(), 0);
                }
                drop(link);
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
