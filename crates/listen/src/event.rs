//! What operators should hear of about listening sockets.

use std::fmt;

use ballast_net::Error;

/// Something happened to a listening socket. Of each kind one in ten seconds is told.
#[derive(Debug)]
pub enum Event<'e> {
    /// Descriptors or memory ran out: accepting rests for a moment, again and again, until
    /// there are some.
    Exhausted {
        /// The frontend.
        frontend: &'e str,
        /// What the system said.
        error: &'e Error,
    },
    /// The socket cannot be used any more: nothing is accepted from it.
    Broken {
        /// The frontend.
        frontend: &'e str,
        /// What the system said.
        error: &'e Error,
    },
}

impl fmt::Display for Event<'_> {
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
