//! A client's connection, as all exchanges on it know it.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use ballast_listen::{Admission, Arrival, Established, Refusal};
use ballast_transport::Transport;
use ballast_upstream::Path;

use crate::variables::Variables;

/// A client's connection: who it is, and what was learned of it before its first exchange. What
/// belongs to one exchange is in its [`Context`](crate::context::Context).
#[derive(Debug)]
pub(crate) struct Session {
    /// Where the client comes from and was going: what a PROXY header said, else the ends of the
    /// connection itself.
    pub(crate) path: Path,
    /// The other end of the connection itself.
    pub(crate) connection_source: Option<SocketAddr>,
    /// Our end of the connection itself.
    pub(crate) connection_destination: Option<SocketAddr>,
    /// Whether a PROXY header came.
    pub(crate) proxied: bool,
    /// When it was accepted, on the steady clock.
    pub(crate) accepted: Instant,
    /// When it was accepted, on the wall clock.
    pub(crate) accepted_at: SystemTime,
    /// How long handshakes took.
    pub(crate) handshake: Duration,
    /// What counts it.
    pub(crate) admission: Admission,
    /// Why the connection was not served at all.
    pub(crate) refusal: Option<Refusal>,
    /// Variables of the scope `sess`.
    pub(crate) variables: RefCell<Variables>,
}

impl Session {
    /// A session of a connection just let in, and how its bytes travel.
    pub(crate) fn begin(arrival: Arrival) -> (Self, Transport) {
        let session = Self {
            path: Path {
                source: arrival.source,
                destination: arrival.destination,
            },
            connection_source: arrival.source,
            connection_destination: arrival.destination,
            proxied: false,
            accepted: arrival.accepted,
            accepted_at: arrival.accepted_at,
            handshake: Duration::ZERO,
            admission: arrival.admission,
            refusal: None,
            variables: RefCell::default(),
        };
        (session, arrival.transport)
    }

    /// Takes over what the handshakes told. Returns how bytes travel from now on, and those that
    /// came already.
    pub(crate) fn establish(&mut self, connection: Established) -> (Transport, Vec<u8>) {
        let Established {
            transport,
            read_ahead,
            proxied,
        } = connection;
        if let Some((source, destination)) = proxied.and_then(|proxied| proxied.endpoints) {
            self.path.source = Some(source);
            self.path.destination = Some(destination);
        }
        self.proxied = proxied.is_some();
        self.handshake = ballast_worker::now().saturating_duration_since(self.accepted);
        (transport, read_ahead)
    }

    /// When handshakes were over, and the time for the first request began.
    pub(crate) fn established(&self) -> Instant {
        self.accepted + self.handshake
    }
}
