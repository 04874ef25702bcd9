//! Error codes, and the rules that a peer can break.

use std::fmt;

use ballast_message::{HostError, LengthError};

/// An error code of RST_STREAM and GOAWAY (RFC 9113 section 7). Unknown codes are kept as they are.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// NO_ERROR: a graceful end.
    pub const NO_ERROR: ErrorCode = ErrorCode(0);
    /// PROTOCOL_ERROR.
    pub const PROTOCOL_ERROR: ErrorCode = ErrorCode(1);
    /// INTERNAL_ERROR.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(2);
    /// FLOW_CONTROL_ERROR.
    pub const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(3);
    /// SETTINGS_TIMEOUT.
    pub const SETTINGS_TIMEOUT: ErrorCode = ErrorCode(4);
    /// STREAM_CLOSED.
    pub const STREAM_CLOSED: ErrorCode = ErrorCode(5);
    /// FRAME_SIZE_ERROR.
    pub const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(6);
    /// REFUSED_STREAM: the request was not processed and may be repeated elsewhere.
    pub const REFUSED_STREAM: ErrorCode = ErrorCode(7);
    /// CANCEL.
    pub const CANCEL: ErrorCode = ErrorCode(8);
    /// COMPRESSION_ERROR.
    pub const COMPRESSION_ERROR: ErrorCode = ErrorCode(9);
    /// CONNECT_ERROR.
    pub const CONNECT_ERROR: ErrorCode = ErrorCode(10);
    /// ENHANCE_YOUR_CALM.
    pub const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(11);
    /// INADEQUATE_SECURITY.
    pub const INADEQUATE_SECURITY: ErrorCode = ErrorCode(12);
    /// HTTP_1_1_REQUIRED.
    pub const HTTP_1_1_REQUIRED: ErrorCode = ErrorCode(13);

    /// The name in RFC 9113 section 7; `None` for other codes.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

/// Why a list of header fields is not the head of a message (RFC 9113 sections 8.1 to 8.5). Each
/// is an error of the stream.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HeadError {
    /// A CONNECT request without an authority, or with a scheme or path but no protocol.
    ConnectInvalid,
    /// A field that applies to one connection (RFC 9113 section 8.2.2).
    ConnectionField,
    /// An empty pseudo-field.
    EmptyPseudoField,
    /// A byte in a field value that ends a line or a string.
    FieldValueInvalid,
    /// A field name that is empty, no token, or in upper case.
    FieldNameInvalid,
    /// `:authority` or `Host` is no host.
    Host(HostError),
    /// It is not clear where the body ends.
    Length(LengthError),
    /// A pseudo-field that is required is missing.
    PseudoFieldMissing,
    /// The same pseudo-field twice.
    PseudoFieldRepeated,
    /// A pseudo-field after other fields, or in trailers.
    PseudoFieldLate,
    /// A pseudo-field that does not belong into this kind of message.
    PseudoFieldUnknown,
    /// `:path` does not begin with a slash, or has a byte that no path has.
    PathInvalid,
    /// `:protocol` in a request that is not CONNECT, or without being offered (RFC 8441).
    ProtocolUnexpected,
    /// `:status` is not three digits from 100 on, or is 101 (RFC 9113 section 8.6).
    StatusInvalid,
    /// `te` with anything but `trailers`.
    TeInvalid,
    /// More fields, or more bytes, than a head may have.
    TooLong,
    /// A field that decides about framing or routing in trailers.
    TrailerForbidden,
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeadError::ConnectInvalid => "invalid CONNECT request",
            HeadError::ConnectionField => "a field of the connection",
            HeadError::EmptyPseudoField => "an empty pseudo-field",
            HeadError::FieldValueInvalid => "invalid byte in a field value",
            HeadError::FieldNameInvalid => "invalid field name",
            HeadError::Host(error) => return error.fmt(f),
            HeadError::Length(error) => return error.fmt(f),
            HeadError::PseudoFieldMissing => "a pseudo-field is missing",
            HeadError::PseudoFieldRepeated => "a pseudo-field is repeated",
            HeadError::PseudoFieldLate => "a pseudo-field after other fields",
            HeadError::PseudoFieldUnknown => "an unknown pseudo-field",
            HeadError::PathInvalid => "invalid :path",
            HeadError::ProtocolUnexpected => "unexpected :protocol",
            HeadError::StatusInvalid => "invalid :status",
            HeadError::TeInvalid => "te other than trailers",
            HeadError::TooLong => "too many or too long fields",
            HeadError::TrailerForbidden => "a field that trailers must not have",
        })
    }
}

/// A rule of HTTP/2 that the peer broke. Whether it ends a stream or the connection is said where
/// it is reported.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum H2Error {
    /// Another frame than CONTINUATION within a header block (RFC 9113 section 6.10).
    ContinuationExpected,
    /// CONTINUATION without a header block (section 6.10).
    ContinuationUnexpected,
    /// More CONTINUATION frames than a header block needs.
    ContinuationFlood,
    /// The header block cannot be decoded (section 4.3).
    Compression,
    /// DATA before the head of the message (section 8.1).
    DataBeforeHead,
    /// The length of a frame does not fit its type (section 4.2).
    FrameLengthInvalid,
    /// A frame longer than we announced (section 4.2).
    FrameTooLong,
    /// A list of fields that is no head.
    Head(HeadError),
    /// One head after the other that is longer than we take.
    HeadFlood,
    /// A header block longer than we take.
    HeaderBlockTooLong,
    /// `content-length` and DATA differ (section 8.1.1).
    LengthMismatch,
    /// The connection does not begin with the preface (section 3.4).
    PrefaceInvalid,
    /// PUSH_PROMISE, which we have disabled (section 8.4).
    PushPromise,
    /// Padding as long as the payload, or longer (section 6.1).
    PaddingTooLong,
    /// A stream that depends on itself (RFC 7540 section 5.3.1; HAProxy refuses it still).
    SelfDependency,
    /// A setting has a value that is not allowed (section 6.5.2).
    SettingInvalid,
    /// The first frame is not SETTINGS (section 3.4).
    SettingsMissing,
    /// A frame on a stream that has ended (section 5.1).
    StreamClosed,
    /// A stream identifier that the peer must not use (section 5.1.1).
    StreamIdInvalid,
    /// A frame on a stream that was never opened (section 5.1).
    StreamIdle,
    /// A frame of a stream on stream 0, or a frame of the connection on a stream.
    StreamZero,
    /// More streams at once than we allow (section 5.1.2).
    TooManyStreams,
    /// More streams on this connection than we allow, and we said so before.
    TotalStreamsExceeded,
    /// A second head without END_STREAM (section 8.1).
    TrailersWithoutEnd,
    /// DATA beyond the window (section 6.9.1).
    WindowExceeded,
    /// A window update by zero (section 6.9).
    WindowIncrementZero,
    /// A window beyond 2^31-1 (section 6.9.1), as `SETTINGS_INITIAL_WINDOW_SIZE` too.
    WindowOverflow,
}

impl H2Error {
    /// The code that the peer is told.
    pub fn code(self) -> ErrorCode {
        match self {
            H2Error::Compression => ErrorCode::COMPRESSION_ERROR,
            H2Error::ContinuationFlood | H2Error::HeadFlood | H2Error::TotalStreamsExceeded => {
                ErrorCode::ENHANCE_YOUR_CALM
            }
            H2Error::FrameLengthInvalid | H2Error::FrameTooLong => ErrorCode::FRAME_SIZE_ERROR,
            // As HAProxy.
            H2Error::HeaderBlockTooLong => ErrorCode::INTERNAL_ERROR,
            H2Error::StreamClosed => ErrorCode::STREAM_CLOSED,
            H2Error::TooManyStreams => ErrorCode::REFUSED_STREAM,
            H2Error::WindowExceeded | H2Error::WindowOverflow => ErrorCode::FLOW_CONTROL_ERROR,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }
}

impl fmt::Display for H2Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            H2Error::ContinuationExpected => "another frame within a header block",
            H2Error::ContinuationUnexpected => "CONTINUATION without a header block",
            H2Error::ContinuationFlood => "too many CONTINUATION frames",
            H2Error::Compression => "a header block cannot be decoded",
            H2Error::DataBeforeHead => "DATA before the head",
            H2Error::FrameLengthInvalid => "invalid length of a frame",
            H2Error::FrameTooLong => "a frame is too long",
            H2Error::Head(error) => return error.fmt(f),
            H2Error::HeadFlood => "too many heads that are too long",
            H2Error::HeaderBlockTooLong => "a header block is too long",
            H2Error::LengthMismatch => "content-length and DATA differ",
            H2Error::PrefaceInvalid => "invalid connection preface",
            H2Error::PushPromise => "unexpected PUSH_PROMISE",
            H2Error::PaddingTooLong => "padding is too long",
            H2Error::SelfDependency => "a stream depends on itself",
            H2Error::SettingInvalid => "invalid setting",
            H2Error::SettingsMissing => "the first frame is not SETTINGS",
            H2Error::StreamClosed => "a frame on a closed stream",
            H2Error::StreamIdInvalid => "invalid stream identifier",
            H2Error::StreamIdle => "a frame on an idle stream",
            H2Error::StreamZero => "a frame on the wrong kind of stream",
            H2Error::TooManyStreams => "too many streams at once",
            H2Error::TotalStreamsExceeded => "too many streams on this connection",
            H2Error::TrailersWithoutEnd => "trailers without END_STREAM",
            H2Error::WindowExceeded => "DATA beyond the window",
            H2Error::WindowIncrementZero => "a window update by zero",
            H2Error::WindowOverflow => "a window is too large",
        })
    }
}

impl std::error::Error for H2Error {}

/// How far a broken rule reaches (RFC 9113 section 5.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// The connection ends with GOAWAY.
    Connection(H2Error),
    /// The stream ends with RST_STREAM.
    Stream(H2Error),
}
