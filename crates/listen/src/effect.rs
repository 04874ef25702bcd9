//! What a change of the configuration does to listening sockets.

use std::fmt;

/// What a change does to a listening socket. Its `Display` is a line of a plan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SocketEffect {
    /// A socket is opened.
    Opened {
        /// The frontend it serves.
        frontend: String,
        /// Where it listens.
        address: String,
    },
    /// A socket continues for another bind. Connections in its queue stay.
    Moved {
        /// Where it listens.
        address: String,
        /// The frontend it served.
        from: String,
        /// The frontend it serves now.
        to: String,
    },
    /// Options of a socket that continues are changed.
    Tuned {
        /// The frontend it serves.
        frontend: String,
        /// Where it listens.
        address: String,
    },
    /// The sockets of a bind are closed.
    Closed {
        /// The frontend they served.
        frontend: String,
        /// Where they listened.
        address: String,
        /// Open connections when this was planned.
        connections: u32,
    },
}

impl fmt::Display for SocketEffect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { frontend, address } => {
                write!(out, "frontend {frontend}: opens a socket on {address}")
            }
            Self::Moved { address, from, to } => write!(
                out,
                "frontend {to}: takes the socket on {address} from frontend {from}"
            ),
            Self::Tuned { frontend, address } => {
                write!(out, "frontend {frontend}: tunes the socket on {address}")
            }
            Self::Closed {
                frontend,
                address,
                connections,
            } => write!(
                out,
                "frontend {frontend}: closes {address}, drains {connections} connections"
            ),
        }
    }
}
