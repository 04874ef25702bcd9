//! A connection to one peer as plaintext: clear today, through TLS later.
//!
//! The rooms above (`mux`, `listen`, `upstream`, `stream`) send and receive plaintext through a
//! [`Transport`] and do not know what is on the wire. A clear transport is the socket itself, and
//! costs only a comparison. Every other one is a [`Carrier`]: a file of this crate that holds the
//! socket, and turns plaintext into records and back. TLS is such a file.
//!
//! A readable socket does not always have plaintext: a TLS session ticket, half a record and a key
//! update make it readable, too. So there are two questions: [`Transport::is_readable`] (may a
//! read succeed?) and [`Transport::is_quiet`] (is this idle connection still usable: did nothing
//! happen that concerns its user?).

mod carrier;
mod pending;
mod tls;
mod transport;

pub use carrier::Carrier;
pub use pending::PendingHandshake;
pub use tls::{
    Handshake, HandshakeFailure, HelloFilter, HelloRandoms, SecretKeeper, SessionSecrets, TlsFacts,
};
pub use transport::Transport;
