//! How bytes travel between us and one peer: clear today, sealed next.
//!
//! The rooms above (`mux`, `listen`, `upstream`, `stream`) send and receive plaintext through a
//! [`Transport`] and do not know what is on the wire. A clear transport is the socket itself: it
//! costs a comparison and no more. Every other one is a [`Carrier`]: a file of this crate that
//! holds the socket, and turns plaintext into records and back. TLS is such a file.
//!
//! A socket that is readable has not always something for its reader: a TLS session ticket, half a
//! record and a key update are readable and hold no plaintext. So there are two questions,
//! [`Transport::is_readable`] (is a try to read worth while?) and [`Transport::is_quiet`] (has
//! nothing come that whoever is idle on this connection should know of?).

mod carrier;
mod transport;

pub use carrier::Carrier;
pub use transport::Transport;
