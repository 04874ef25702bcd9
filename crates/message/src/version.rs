//! The version of a message, for rules and logs.

use std::fmt;

/// The HTTP version of a received message. Ordered by age.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Version {
    /// A simple request without a version (refused by the codec; it exists for the log).
    Http09,
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1, or a later 1.x.
    #[default]
    Http11,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

impl Version {
    /// Its text in a start line or a log (`HTTP/1.1`, `HTTP/2.0`).
    pub fn as_str(self) -> &'static str {
        match self {
            Version::Http09 => "HTTP/0.9",
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
            Version::Http3 => "HTTP/3.0",
        }
    }

    /// The value of the samples `req.ver` and `res.ver`: `1.1`.
    pub fn number(self) -> &'static str {
        &self.as_str()[5..]
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
