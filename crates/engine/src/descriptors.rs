//! What `show fd` shows of the descriptors of connections and listening sockets.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

use crate::{Frontend, ServerState};

/// A connection and its descriptor, copied at one moment.
#[derive(Clone, Debug)]
pub struct ConnectionDescriptor {
    /// The number of the descriptor.
    pub descriptor: RawFd,
    /// The number of the socket: the descriptor may be another's by the time it is shown.
    pub socket: u64,
    /// The worker that carries it.
    pub worker: usize,
    /// Our address; `None` where it is not an IP address.
    pub local: Option<SocketAddr>,
    /// The peer's address; `None` where it is not an IP address.
    pub peer: Option<SocketAddr>,
    /// Whom it leads to.
    pub side: ConnectionSide,
    /// How it carries exchanges; `None` before its handshakes are over.
    pub carries: Option<ConnectionKind>,
    /// Whether it is over TLS.
    pub is_tls: bool,
    /// The session in `show sess` whose exchange it carries now; `None` where it waits, or has several.
    pub session: Option<u64>,
}

/// Whom a connection leads to.
#[derive(Clone, Debug)]
pub enum ConnectionSide {
    /// A client of this frontend.
    Client(Arc<Frontend>),
    /// A caller of the Runtime API.
    Caller,
    /// A server: its state, by which its backend is found, and its name.
    Server(Arc<ServerState>, String),
}

/// How a connection carries exchanges.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConnectionKind {
    /// One, of bytes.
    Tcp,
    /// One after the other.
    Http1,
    /// As streams; so many are open.
    Http2 {
        /// How many.
        stream_count: usize,
    },
}

impl ConnectionKind {
    /// HAProxy's name of the multiplexer.
    pub fn mux(self) -> &'static str {
        match self {
            Self::Tcp => "PASS",
            Self::Http1 => "H1",
            Self::Http2 { .. } => "H2",
        }
    }
}

/// A listening socket.
#[derive(Clone, Debug)]
pub struct ListeningDescriptor {
    /// The number of the descriptor.
    pub descriptor: RawFd,
    /// As [`ConnectionDescriptor::socket`]; `None` where the kernel does not tell.
    pub socket: Option<u64>,
    /// The worker that accepts from it.
    pub worker: usize,
    /// HAProxy's word for its state.
    pub state: &'static str,
    /// Its frontend.
    pub frontend: String,
    /// The address; `None` where it is not an IP address.
    pub address: Option<SocketAddr>,
}

/// The lists of a worker in which its connections are found, in the order in which they are walked.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ConnectionList {
    /// Clients whose handshakes go on.
    #[default]
    Handshakes,
    /// Clients that are served.
    Sessions,
    /// Clients that wait for their next request for long.
    Resting,
    /// Servers.
    Servers,
}

impl ConnectionList {
    /// The next list.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Handshakes => Some(Self::Sessions),
            Self::Sessions => Some(Self::Resting),
            Self::Resting => Some(Self::Servers),
            Self::Servers => None,
        }
    }
}

/// Where a walk through the connections of a worker goes on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ConnectionCursor {
    /// The list.
    pub list: ConnectionList,
    /// The position in it.
    pub position: usize,
}

impl ConnectionCursor {
    /// The first position of a list.
    pub fn at_start_of(list: ConnectionList) -> Self {
        Self { list, position: 0 }
    }
}

/// Positions of a list that are looked at for each connection that may be found: a list keeps its length
/// after many connections have ended.
const POSITIONS_PER_CONNECTION: usize = 16;

/// At most `count` connections at positions of a list from `position` on, and where to go on from, if any
/// are left. The list ends at `end`; `find` gives what is at a position.
pub fn page(
    position: usize,
    end: usize,
    count: usize,
    mut find: impl FnMut(usize) -> Option<ConnectionDescriptor>,
) -> (Vec<ConnectionDescriptor>, Option<usize>) {
    let stop = end.min(position.saturating_add(count * POSITIONS_PER_CONNECTION));
    let mut found = Vec::new();
    let mut next = position;
    while next < stop && found.len() < count {
        found.extend(find(next));
        next += 1;
    }
    (found, (next < end).then_some(next))
}

/// Some of a worker's connections, and where to continue.
#[derive(Clone, Debug, Default)]
pub struct ConnectionPage {
    /// The connections.
    pub connections: Vec<ConnectionDescriptor>,
    /// Where to continue; `None` at the end.
    pub next: Option<ConnectionCursor>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(descriptor: RawFd) -> ConnectionDescriptor {
        ConnectionDescriptor {
            descriptor,
            socket: 0,
            worker: 0,
            local: None,
            peer: None,
            side: ConnectionSide::Caller,
            carries: None,
            is_tls: false,
            session: None,
        }
    }

    /// The connections that a walk finds in a list, and how many pages it needs.
    fn walk(list: &[bool], count: usize) -> (Vec<RawFd>, usize) {
        let (mut all, mut pages, mut next) = (Vec::new(), 0, Some(0));
        while let Some(position) = next {
            let mut looks = 0;
            let found;
            (found, next) = page(position, list.len(), count, |position| {
                looks += 1;
                let descriptor = RawFd::try_from(position).unwrap();
                list[position].then(|| connection(descriptor))
            });
            assert!(found.len() <= count && looks <= count * POSITIONS_PER_CONNECTION);
            all.extend(found.into_iter().map(|found| found.descriptor));
            pages += 1;
        }
        (all, pages)
    }

    #[test]
    fn pages_hold_so_many_connections_and_pass_over_empty_positions() {
        assert_eq!(walk(&[], 2), (vec![], 1));
        assert_eq!(walk(&[true; 5], 2), (vec![0, 1, 2, 3, 4], 3));
        let mut sparse = [false; 100];
        (sparse[40], sparse[99]) = (true, true);
        assert_eq!(walk(&sparse, 2), (vec![40, 99], 4));
    }
}
