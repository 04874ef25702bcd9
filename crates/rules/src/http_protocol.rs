//! Which version of HTTP a connection is made to speak.

/// `proto h1` or `proto h2`: the version of HTTP that a line fixes for its connections, whatever
/// they say themselves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HttpProtocol {
    /// `h1`: HTTP/1.0 and HTTP/1.1.
    Http1,
    /// `h2`: HTTP/2, also on a clear connection.
    Http2,
}
