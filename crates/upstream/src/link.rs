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
}

impl Link {
    /// Has the server count a connection that was just opened.
    pub fn new(server: &Server, connection: ServerConnection) -> Self {
        server.state.connections.enter();
        Self {
            connection: Box::new(connection),
            state: Arc::clone(&server.state),
        }
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
        self.state.connections.leave();
    }
}
