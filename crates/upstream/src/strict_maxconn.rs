//! `strict-maxconn`: `maxconn` limits connections, in use, idle or being opened, and not exchanges alone.
//! An idle one gives way to a new one, on whichever worker it is.

use std::sync::Arc;

use ballast_engine::Server;
use ballast_worker::{mailbox, worker_count, worker_index};

use crate::place::ConnectionPlace;
use crate::pool;

/// How often a place that an idle connection left may be lost to somebody else, before none is found.
const ATTEMPT_COUNT_MAX: usize = 16;

/// A place for a new connection; `None` when all are taken by connections that carry exchanges, or stay
/// with their clients.
pub(crate) async fn place(server: &Arc<Server>) -> Option<ConnectionPlace> {
    for _ in 0..ATTEMPT_COUNT_MAX {
        if let Some(place) = ConnectionPlace::free(server) {
            return Some(place);
        }
        if !pool::close_one(server) && !close_one_elsewhere(server).await {
            break;
        }
    }
    // A connection may have ended since.
    ConnectionPlace::free(server)
}

/// Closes an idle connection of another worker; returns whether there was one.
async fn close_one_elsewhere(server: &Arc<Server>) -> bool {
    let own = worker_index();
    for worker in (0..worker_count()).filter(|worker| Some(*worker) != own) {
        if server.state.idle.current() == 0 {
            return false;
        }
        let Some(mailbox) = mailbox(worker) else {
            continue;
        };
        let asked = Arc::clone(server);
        // A worker that ends has no idle connections.
        let closed = mailbox.call(move || pool::close_one(&asked)).await;
        if closed.unwrap_or(false) {
            return true;
        }
    }
    false
}
