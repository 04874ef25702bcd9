//! Events of listening sockets that operators should know of.

use std::fmt;

use ballast_net::SystemCallError;

/// An event of a listening socket. One of each kind is reported per ten seconds.
#[derive(Debug)]
pub enum SocketEvent<'e> {
    /// The process ran out of descriptors or memory: accepting pauses briefly and tries again,
    /// until there are some.
    Exhausted {
        /// The frontend.
        frontend: &'e str,
        /// What the system said.
        error: &'e SystemCallError,
    },
    /// The socket cannot be used any more: nothing is accepted from it.
    Broken {
        /// The frontend.
        frontend: &'e str,
        /// What the system said.
        error: &'e SystemCallError,
    },
}

impl fmt::Display for SocketEvent<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted { frontend, error } => write!(
                out,
                "Proxy {frontend} cannot accept more connections for now: {error}. Please check \
                 'ulimit-n' and 'maxconn'."
            ),
            Self::Broken { frontend, error } => {
                write!(
                    out,
                    "Proxy {frontend} stopped accepting on a socket: {error}."
                )
            }
        }
    }
}
