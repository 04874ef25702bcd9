//! What can be wrong with a message, by rule.

use std::fmt;

use ballast_message::{HostError, LengthError};

/// A rule of HTTP/1 that a message broke. After any of them the connection cannot be used
/// for another message: where the next one starts is no longer sure.
///
/// Met in a request it is the client's fault and the answer is [`H1Error::status`]; met in a
/// response it is the server's and the answer is 502.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum H1Error {
    /// A CR that ends no line.
    BareCr,
    /// A LF without CR before it.
    BareLf,
    /// The data of a chunk is not followed by CRLF.
    ChunkEndMissing,
    /// The chunk extensions pass their bound.
    ChunkExtensionsTooLong,
    /// A chunk size is no hexadecimal number, or has something around it.
    ChunkSizeInvalid,
    /// A chunk size does not fit 63 bits.
    ChunkSizeTooLarge,
    /// A field line without a colon.
    ColonMissing,
    /// A body announced with CONNECT: its bytes could be read as the tunnel's or as the next
    /// request's.
    ConnectWithBody,
    /// A field name with a byte that no token has.
    FieldNameInvalid,
    /// A field line that starts with its colon.
    FieldNameEmpty,
    /// A line folded onto the one before (RFC 9112 section 5.2).
    FoldedLine,
    /// The head passes its bound, and its first line was whole.
    HeadTooLong,
    /// Whom the request is for is not clear.
    Host(HostError),
    /// A request without a version: HTTP/0.9, or a version left out.
    Http09,
    /// Where the body ends is not clear.
    Length(LengthError),
    /// The method is no token.
    MethodInvalid,
    /// A NUL byte.
    Nul,
    /// A body with a method of HTTP/1.0 that old servers expect none with.
    PayloadUnexpected,
    /// White space between a field name and its colon (RFC 9112 section 5.1).
    SpaceBeforeColon,
    /// The status is not three digits from 100 on.
    StatusInvalid,
    /// The target has a forbidden byte, or a form that its method does not take.
    TargetInvalid,
    /// The request line passes the bound of the head.
    TargetTooLong,
    /// More fields than allowed.
    TooManyFields,
    /// The trailer section passes its bound.
    TrailersTooLong,
    /// The version is not of the form `HTTP/1.1`.
    VersionInvalid,
    /// A WebSocket handshake with a body: its bytes could be read as the tunnel's.
    WebSocketWithBody,
    /// A WebSocket handshake without `Sec-WebSocket-Key`.
    WebSocketKeyMissing,
}

impl H1Error {
    /// The status a client gets for it, as HAProxy gives it: 400, or what says more. Too many
    /// fields are 400 as well.
    pub fn status(self) -> u16 {
        match self {
            H1Error::Length(error) => error.status(),
            H1Error::PayloadUnexpected => 413,
            H1Error::TargetTooLong => 414,
            H1Error::HeadTooLong => 431,
            _ => 400,
        }
    }
}

impl fmt::Display for H1Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            H1Error::BareCr => "a CR that ends no line",
            H1Error::BareLf => "a line ended by LF alone",
            H1Error::ChunkEndMissing => "chunk data not followed by CRLF",
            H1Error::ChunkExtensionsTooLong => "chunk extensions too long",
            H1Error::ChunkSizeInvalid => "invalid chunk size",
            H1Error::ChunkSizeTooLarge => "chunk size too large",
            H1Error::ColonMissing => "a field line without colon",
            H1Error::ConnectWithBody => "CONNECT with a body",
            H1Error::FieldNameInvalid => "invalid byte in a field name",
            H1Error::FieldNameEmpty => "empty field name",
            H1Error::FoldedLine => "folded field line",
            H1Error::HeadTooLong => "message head too long",
            H1Error::Host(error) => return error.fmt(f),
            H1Error::Http09 => "HTTP/0.9 request",
            H1Error::Length(error) => return error.fmt(f),
            H1Error::MethodInvalid => "invalid method",
            H1Error::Nul => "NUL byte",
            H1Error::PayloadUnexpected => "body with a method of HTTP/1.0 that has none",
            H1Error::SpaceBeforeColon => "space before the colon of a field",
            H1Error::StatusInvalid => "invalid status",
            H1Error::TargetInvalid => "invalid request target",
            H1Error::TargetTooLong => "request line too long",
            H1Error::TooManyFields => "too many fields",
            H1Error::TrailersTooLong => "trailers too long",
            H1Error::VersionInvalid => "invalid version",
            H1Error::WebSocketWithBody => "WebSocket handshake with a body",
            H1Error::WebSocketKeyMissing => "WebSocket handshake without Sec-WebSocket-Key",
        })
    }
}

impl std::error::Error for H1Error {}

impl From<LengthError> for H1Error {
    fn from(error: LengthError) -> H1Error {
        H1Error::Length(error)
    }
}

impl From<HostError> for H1Error {
    fn from(error: HostError) -> H1Error {
        H1Error::Host(error)
    }
}

/// A broken rule and where it was met: what `show errors` prints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct H1Fault {
    /// The rule.
    pub error: H1Error,
    /// The offset of the offending byte in the buffer parsed; the end of the head where the
    /// head is wrong as a whole.
    pub at_byte: usize,
}

impl fmt::Display for H1Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.error, self.at_byte)
    }
}

impl std::error::Error for H1Fault {}
