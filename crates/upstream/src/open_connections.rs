//! The connections to servers that this worker has open, for `show fd`.

use std::cell::RefCell;
use std::sync::Arc;

use ballast_engine::ServerState;
use ballast_engine::descriptors::{ConnectionDescriptor, ConnectionKind, ConnectionSide, page};
use ballast_model as model;
use ballast_mux::ServerStreams;
use ballast_worker::SocketReference;
use slab::Slab;

thread_local! {
    static OPEN: RefCell<Slab<ListedConnection>> = const { RefCell::new(Slab::new()) };
}

/// A connection to a server, as it was opened.
#[derive(Debug)]
pub(crate) struct ListedConnection {
    pub(crate) socket: SocketReference,
    pub(crate) state: Arc<ServerState>,
    pub(crate) line: Arc<model::Server>,
    pub(crate) carries_http: bool,
    pub(crate) is_tls: bool,
    /// Its streams, where it carries several.
    pub(crate) streams: Option<ServerStreams>,
}

/// The place of a connection in the list. Its drop removes the connection.
#[derive(Debug)]
pub(crate) struct OpenConnectionEntry(usize);

impl OpenConnectionEntry {
    /// Lists a connection that was just opened.
    pub(crate) fn enter(connection: ListedConnection) -> Self {
        Self(OPEN.with_borrow_mut(|open| open.insert(connection)))
    }
}

impl Drop for OpenConnectionEntry {
    fn drop(&mut self) {
        // At the end of the thread the list may be gone. Dropped outside the borrow.
        let removed = OPEN.try_with(|open| open.borrow_mut().try_remove(self.0));
        drop(removed);
    }
}

impl ListedConnection {
    fn descriptor(&self, worker: usize) -> Option<ConnectionDescriptor> {
        let socket = self.socket.open_socket()?;
        Some(ConnectionDescriptor {
            descriptor: socket.descriptor,
            socket: socket.number,
            worker,
            local: socket.local,
            peer: socket.peer,
            side: ConnectionSide::Server(Arc::clone(&self.state), self.line.name.clone()),
            carries: Some(match &self.streams {
                Some(streams) => ConnectionKind::Http2 {
                    stream_count: streams.used_count(),
                },
                None if self.carries_http => ConnectionKind::Http1,
                None => ConnectionKind::Tcp,
            }),
            is_tls: self.is_tls,
            session: None,
        })
    }
}

/// At most `count` of this worker's connections to servers from `position` of the list on, idle ones
/// included; and the position to go on from, if any are left.
pub fn open_connections(
    worker: usize,
    position: usize,
    count: usize,
) -> (Vec<ConnectionDescriptor>, Option<usize>) {
    OPEN.with_borrow(|open| {
        page(position, open.capacity(), count, |key| {
            open.get(key)?.descriptor(worker)
        })
    })
}
