//! The connections of a worker, for `show fd`: those of clients, and those to servers.

use std::cell::RefCell;
use std::sync::Arc;

use ballast_engine::Frontend;
use ballast_engine::descriptors::{
    ConnectionCursor, ConnectionDescriptor, ConnectionList, ConnectionPage, ConnectionSide, page,
};
use ballast_upstream::open_connections;
use ballast_worker::SocketReference;
use slab::Slab;

use crate::session::Session;
use crate::{rest, sessions};

thread_local! {
    static HANDSHAKES: RefCell<Slab<Handshaking>> = const { RefCell::new(Slab::new()) };
}

/// A connection whose handshakes go on: it has no session yet that `show sess` could show.
#[derive(Debug)]
struct Handshaking {
    socket: SocketReference,
    frontend: Arc<Frontend>,
    is_tls: bool,
}

/// The place of a connection in the list of handshakes. Its drop removes the connection.
#[derive(Debug)]
pub(crate) struct HandshakeEntry(usize);

impl HandshakeEntry {
    /// Lists a connection whose handshakes begin.
    pub(crate) fn enter(session: &Session, frontend: &Arc<Frontend>) -> Self {
        let handshaking = Handshaking {
            socket: session.socket.clone(),
            frontend: Arc::clone(frontend),
            is_tls: session.admission.listening().bind.tls.is_some(),
        };
        Self(HANDSHAKES.with_borrow_mut(|list| list.insert(handshaking)))
    }
}

impl Drop for HandshakeEntry {
    fn drop(&mut self) {
        // At the end of the thread the list may be gone. Dropped outside the borrow.
        let removed = HANDSHAKES.try_with(|list| list.borrow_mut().try_remove(self.0));
        drop(removed);
    }
}

/// As [`sessions::descriptors`], of connections whose handshakes go on.
fn handshakes(
    worker: usize,
    position: usize,
    count: usize,
) -> (Vec<ConnectionDescriptor>, Option<usize>) {
    HANDSHAKES.with_borrow(|list| {
        page(position, list.capacity(), count, |key| {
            let handshaking = list.get(key)?;
            let socket = handshaking.socket.open_socket()?;
            Some(ConnectionDescriptor {
                descriptor: socket.descriptor,
                socket: socket.number,
                worker,
                local: socket.local,
                peer: socket.peer,
                side: ConnectionSide::Client(Arc::clone(&handshaking.frontend)),
                carries: None,
                is_tls: handshaking.is_tls,
                session: None,
            })
        })
    })
}

/// At most `count` of this worker's connections from `cursor` on, and where to go on, if any are
/// left. Nothing is awaited, and a few system calls are made for each.
pub fn connection_descriptors(
    worker: usize,
    cursor: ConnectionCursor,
    count: usize,
) -> ConnectionPage {
    let ConnectionCursor { list, position } = cursor;
    let (connections, next) = match list {
        ConnectionList::Handshakes => handshakes(worker, position, count),
        ConnectionList::Sessions => sessions::descriptors(worker, position, count),
        ConnectionList::Resting => rest::descriptors(worker, position, count),
        ConnectionList::Servers => open_connections(worker, position, count),
    };
    let next = match next {
        Some(position) => Some(ConnectionCursor { list, position }),
        None => list.next().map(ConnectionCursor::at_start_of),
    };
    ConnectionPage { connections, next }
}
