//! A server's connection and its count, which live and end together.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use ballast_engine::{Server, ServerState};
use ballast_mux::ServerConnection;

/// A connection to a server, which the server counts for as long as it lives: in use, at rest,
/// kept for its client, or on its way out of a task that was cut off.
#[derive(Debug)]
pub struct Link {
    // In a box: it goes from hand to hand for as long as it lives.
    connection: Box<ServerConnection>,
    state: Arc<ServerState>,
    /// Nothing is under way: what was asked on it was answered, and both went whole.
    is_over: bool,
}

impl Link {
    /// Has the server count a connection that was just opened.
    pub fn new(server: &Server, connection: ServerConnection) -> Self {
        server.state.connections.enter();
        Self {
            connection: Box::new(connection),
            state: Arc::clone(&server.state),
            is_over: false,
        }
    }

    /// An exchange begins on it.
    pub fn exchange_begins(&mut self) {
        self.is_over = false;
    }

    /// The exchange is over: request and response went whole.
    pub fn exchange_is_over(&mut self) {
        self.is_over = true;
    }

    /// Whether it is one of this server, in whatever generation.
    pub fn is_to(&self, server: &Server) -> bool {
        Arc::ptr_eq(&self.state, &server.state)
    }
}

impl Deref for Link {
    type Target = ServerConnection;

    fn deref(&self) -> &ServerConnection {
        &self.connection
    }
}

impl DerefMut for Link {
    fn deref_mut(&mut self) -> &mut ServerConnection {
        &mut self.connection
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Nothing can be lost any more: a reset spares both sides the farewell, and whoever closes
        // first a connection to remember (TIME_WAIT). HAProxy closes servers' connections so, where
        // it does not know yet that the server closed.
        if self.is_over && !self.connection.inbound.peer_closed() {
            // Where it cannot be arranged a plain close follows.
            let _ = self.connection.stream.reset_on_close();
        }
        self.state.connections.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use ballast_engine::{Generation, Process, Registry};
    use ballast_model as model;
    use ballast_mux::Limits;
    use ballast_worker::{Address, ConnectOptions, Stream, block_on};

    use super::*;

    fn generation() -> Generation {
        let address = model::Address::Inet("192.0.2.9:80".parse().unwrap());
        let mut config = model::Config::default();
        config.backends.push(Arc::new(model::Backend {
            servers: vec![Arc::new(model::Server::new("s".into(), address))],
            ..model::Backend::default()
        }));
        let registry = Registry::new(1, Arc::new(Process::new(1, 10)));
        Generation::compile(1, Arc::new(config), &registry)
    }

    /// A link, and the server's end of it.
    async fn link(server: &Server) -> (Link, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Address::Ip(listener.local_addr().unwrap());
        let options = ConnectOptions::default();
        let stream = Stream::connect(&target, &options).await.unwrap();
        let (peer, _) = listener.accept().unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let connection = ServerConnection::new(stream, Limits::default());
        (Link::new(server, connection), peer)
    }

    #[test]
    fn only_what_is_over_is_closed_with_a_reset() {
        let generation = generation();
        let server = &generation.backends[0].servers[0];
        block_on(async {
            for (over, begins_again, is_reset) in [
                (false, false, false),
                (true, false, true),
                (true, true, false),
            ] {
                let (mut link, mut peer) = link(server).await;
                assert_eq!(server.state.connections.now(), 1);
                if over {
                    link.exchange_is_over();
                }
                if begins_again {
                    link.exchange_begins();
                }
                drop(link);
                assert_eq!(server.state.connections.now(), 0);
                match peer.read(&mut [0; 8]) {
                    Ok(0) => assert!(!is_reset),
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => assert!(is_reset),
                    other => panic!("{other:?}"),
                }
            }
        })
        .unwrap();
    }
}
