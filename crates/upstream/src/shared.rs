//! Connections that carry the streams of several exchanges at once.
//!
//! Each lease of such a connection is a stream. One that carries streams, and may carry more, is found
//! here; one that carries none is idle, and is in the [`pool`](crate::pool) like any other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use ballast_engine::{Backend, Server};
use ballast_model::HttpReuse;

use crate::lease::OpenedConnection;
use crate::{ConnectionRequirements, Lease};

thread_local! {
    /// The connections of this worker, by the address of their server's state.
    static SHARED: RefCell<HashMap<usize, Vec<Weak<OpenedConnection>>>> = RefCell::default();
}

/// Lists a connection that was just opened, if it carries streams.
pub(crate) fn enter(server: &Server, lease: &Lease) {
    let Some(opened) = lease.shared() else {
        return;
    };
    SHARED.with_borrow_mut(|shared| {
        let listed = shared.entry(key(server)).or_default();
        listed.retain(|opened| opened.strong_count() > 0);
        listed.push(Rc::downgrade(opened));
    });
}

/// Forgets connections that are gone. To be called periodically on each worker.
pub(crate) fn purge() {
    SHARED.with_borrow_mut(|shared| {
        shared.retain(|_, listed| {
            listed.retain(|opened| opened.strong_count() > 0);
            !listed.is_empty()
        });
    });
}

/// A stream of a connection that carries others, for an exchange that requires `wanted`. Streams of one
/// client's connection share theirs; under `http-reuse always` all do. In the other modes a stalled client
/// could hold back what the server sends to another: as in HAProxy, clients share no connection then.
pub(crate) fn take(
    backend: &Backend,
    server: &Server,
    wanted: &ConnectionRequirements,
) -> Option<Lease> {
    SHARED.with_borrow(|shared| {
        let listed = shared.get(&key(server))?;
        let may_share = |opened: &Rc<OpenedConnection>| {
            let is_own = opened.session() == wanted.session;
            let is_public = backend.model.http_reuse == HttpReuse::Always
                && !opened.is_of_one_client()
                && !wanted.is_of_one_client();
            (is_own || is_public) && opened.is_under_way() && opened.fits(backend, server, wanted)
        };
        let mut opened = listed.iter().filter_map(Weak::upgrade);
        opened.find(may_share).and_then(Lease::on_stream)
    })
}

/// The address of a server's state, which each connection keeps alive.
fn key(server: &Server) -> usize {
    Arc::as_ptr(&server.state).addr()
}
