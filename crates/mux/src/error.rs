//! Errors of reading from a peer and writing to it.

use std::fmt;
use std::io;

use ballast_h1::H1Error;

/// Reading from a peer failed.
#[derive(Debug)]
pub enum ReadError {
    /// The peer sent nothing for too long.
    TimedOut,
    /// The peer closed before the message was whole.
    Closed,
    /// The connection broke: reset, or an error of the system.
    Broken(io::Error),
    /// The bytes break the protocol.
    Malformed(H1Error),
}

impl ReadError {
    /// Whether the peer takes no request of this kind: nothing was sent, the peer is not at fault, and
    /// another try there would meet the same.
    pub fn is_not_taken(&self) -> bool {
        matches!(self, Self::Broken(error) if error.kind() == io::ErrorKind::Unsupported)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => out.write_str("nothing came in time"),
            Self::Closed => out.write_str("the connection was closed before the end"),
            Self::Broken(error) => write!(out, "the connection broke: {error}"),
            Self::Malformed(error) => write!(out, "the message is malformed: {error}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// Writing to a peer failed.
#[derive(Debug)]
pub enum WriteError {
    /// The peer took nothing for too long.
    TimedOut,
    /// The connection broke: closed, reset, or an error of the system.
    Broken(io::Error),
}

impl fmt::Display for WriteError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => out.write_str("nothing was taken in time"),
            Self::Broken(error) => write!(out, "the connection broke: {error}"),
        }
    }
}

impl std::error::Error for WriteError {}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}
