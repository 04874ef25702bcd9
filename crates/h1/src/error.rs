//! The rules that a message can break.

use std::fmt;

use ballast_message::{HostError, LengthError};

/// A rule of HTTP/1 that a message broke. After that the connection cannot be used for another
/// message, because it is not certain where the next one starts.
///
/// In a request it is the client's fault, and the response is [`H1Error::status`]; in a response it
/// is the server's fault, and the client gets 502.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum H1Error {
    /// A CR that is not part of a line end.
    BareCr,
    /// A LF without CR before it.
    BareLf,
    /// The data of a chunk is not followed by CRLF.
    ChunkEndMissing,
    /// The chunk extensions are too long.
    ChunkExtensionsTooLong,
    /// A chunk size is not a hexadecimal number, or has other characters around it.
    ChunkSizeInvalid,
    /// A chunk size does not fit 63 bits.
    ChunkSizeTooLarge,
    /// A field line without a colon.
    ColonMissing,
    /// A CONNECT request with a body: its bytes could be taken for the tunnel's or for the next
    /// request.
    ConnectWithBody,
    /// A field name with a byte that is not allowed in a token.
    FieldNameInvalid,
    /// A field line with an empty name.
    FieldNameEmpty,
    /// A folded field line (RFC 9112 section 5.2).
    FoldedLine,
    /// The head is too long, and its first line was complete.
    HeadTooLong,
    /// It is not clear which host the request is for.
    Host(HostError),
    /// A request without a version: HTTP/0.9, or a version that was left out.
    Http09,
    /// It is not clear where the body ends.
    Length(LengthError),
    /// The method is not a token.
    MethodInvalid,
    /// A NUL byte.
    Nul,
    /// A body with a method for which old HTTP/1.0 servers do not expect one.
    PayloadUnexpected,
    /// White space between a field name and its colon (RFC 9112 section 5.1).
    SpaceBeforeColon,
    /// The status is not three digits, from 100 on.
    StatusInvalid,
    /// The target has a forbidden byte, or a form that is not allowed for its method.
    TargetInvalid,
    /// The request line is longer than a head may be.
    TargetTooLong,
    /// More fields than allowed.
    TooManyFields,
    /// The trailer section is too long.
    TrailersTooLong,
    /// The version is not of the form `HTTP/1.1`.
    VersionInvalid,
    /// A WebSocket handshake with a body: its bytes could be taken for the tunnel's.
    WebSocketWithBody,
    /// A WebSocket handshake without `Sec-WebSocket-Key`.
    WebSocketKeyMissing,
}

impl H1Error {
    /// The status of the response, as in HAProxy: 400, or one that is more precise. Too many fields
    /// give 400 as well.
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

/// A broken rule and where it was found, for `show errors`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct H1Fault {
    /// The rule.
    pub error: H1Error,
    /// The offset of the offending byte in the parsed buffer; the end of the head when the head as
    /// a whole is invalid.
    pub at_byte: usize,
}

impl fmt::Display for H1Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.error, self.at_byte)
    }
}

impl std::error::Error for H1Fault {}
