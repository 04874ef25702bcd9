//! The place of a connection among those of its server.

use std::sync::Arc;

use ballast_engine::{Server, ServerState};

/// The place of one connection. The server counts it while it lives.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    state: Arc<ServerState>,
}

impl ConnectionPlace {
    /// A place at a server that has room for any number.
    pub(crate) fn unlimited(server: &Server) -> Self {
        server.state.connections.enter();
        Self {
            state: Arc::clone(&server.state),
        }
    }

    /// A place at a server with `strict-maxconn`, if one is free.
    pub(crate) fn free(server: &Server) -> Option<Self> {
        let state = &server.state;
        let limit = state.connection_count_max(&server.model);
        let entered = state.connections.enter_below((limit > 0).then_some(limit));
        entered.then(|| Self {
            state: Arc::clone(state),
        })
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.state.connections.leave();
    }
}
