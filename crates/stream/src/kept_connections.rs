//! Connections to servers that stay with a client's connection for its next requests: under
//! `http-reuse never`, or because they carry something of the client in them (NTLM).

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll};

use ballast_engine::{Backend, Server};
use ballast_upstream::{ConnectionRequirements, Lease};

/// The connections that stay with one client's connection, idle; the one used last is at the end.
/// All exchanges of the client share them: streams side by side too.
#[derive(Debug, Default)]
pub(crate) struct KeptConnections(RefCell<Vec<KeptConnection>>);

/// One of them.
#[derive(Debug)]
struct KeptConnection {
    server: Arc<Server>,
    lease: Lease,
}

impl KeptConnections {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Takes one that an exchange with this server can use.
    pub(crate) fn take(
        &self,
        backend: &Backend,
        server: &Server,
        wanted: &ConnectionRequirements,
    ) -> Option<Lease> {
        let mut connections = self.0.borrow_mut();
        while let Some(at) = connections
            .iter()
            .rposition(|kept| kept.lease.fits(backend, server, wanted))
        {
            let renewed = connections.remove(at).lease.renew();
            if renewed.is_some() {
                return renewed;
            }
        }
        None
    }

    /// Keeps one, unless there are `count_max` already (`max-session-srv-conns`): then it is closed.
    pub(crate) fn keep(&self, server: &Arc<Server>, lease: Lease, count_max: usize) {
        let mut connections = self.0.borrow_mut();
        if connections.len() >= count_max {
            // Those that their server has closed meanwhile keep no place.
            connections.retain_mut(|kept| !kept.lease.has_ended());
        }
        if connections.len() < count_max {
            let server = Arc::clone(server);
            connections.push(KeptConnection { server, lease });
        }
    }

    /// Closes all.
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// Closes those that their server has ended, or on which it sent something, and waits for the others:
    /// they can carry nothing any more, and are not to look like ones that are in use. Never ready.
    pub(crate) fn poll_unusable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut connections = self.0.borrow_mut();
        connections.retain_mut(|kept| kept.lease.poll_unusable(cx).is_pending());
        Poll::Pending
    }

    /// The first server, of the connection used last on, for which `is_good` holds; that is also told
    /// whether the server has authenticated the client on it.
    pub(crate) fn last_server(
        &self,
        mut is_good: impl FnMut(&Arc<Server>, bool) -> Option<usize>,
    ) -> Option<usize> {
        let connections = self.0.borrow();
        connections
            .iter()
            .rev()
            .find_map(|kept| is_good(&kept.server, kept.lease.is_authenticated_as_client()))
    }
}
