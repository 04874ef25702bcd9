//! The length of a body. Request smuggling is about this.
//!
//! RFC 9112 section 6.3, in its strictest reading for requests: whatever two readers could
//! interpret differently is refused.

use std::fmt;

use crate::fields::Fields;
use crate::method::Method;
use crate::request::Request;
use crate::response::Response;
use crate::values::comma_values;
use crate::version::Version;

/// How the end of a message's body is found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum BodyLength {
    /// There is no body.
    #[default]
    None,
    /// This many bytes (more than 0, or a `Content-Length: 0`).
    Known(u64),
    /// Chunks.
    Chunked,
    /// Until the sender closes; responses only.
    UntilClose,
    /// What follows is not HTTP any more: after 101, or 2xx to CONNECT.
    Tunnel,
}

impl BodyLength {
    /// Whether no byte of a body follows the head.
    #[must_use]
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Known(0))
    }
}

/// Why the length of a body is not certain.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LengthError {
    /// `Content-Length` is not a number below 2^63.
    ContentLengthInvalid,
    /// Several `Content-Length` with different values.
    ContentLengthsDiffer,
    /// Both `Content-Length` and `Transfer-Encoding`.
    ContentLengthAndTransferEncoding,
    /// `Transfer-Encoding` in a version that has none.
    TransferEncodingBeforeHttp11,
    /// `chunked` is present, but not last, or more than once.
    ChunkedNotLast,
    /// Other codings before `chunked`: we cannot decode them, and servers disagree about them.
    CodingBeforeChunked,
    /// A `Transfer-Encoding` without `chunked`: the end of the body cannot be found.
    ChunkedMissing,
}

impl LengthError {
    /// The status of the response, as in HAProxy (400, or 422 for a coding before chunked).
    pub fn status(self) -> u16 {
        match self {
            LengthError::CodingBeforeChunked => 422,
            LengthError::ContentLengthInvalid
            | LengthError::ContentLengthsDiffer
            | LengthError::ContentLengthAndTransferEncoding
            | LengthError::TransferEncodingBeforeHttp11
            | LengthError::ChunkedMissing
            | LengthError::ChunkedNotLast => 400,
        }
    }
}

impl fmt::Display for LengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LengthError::ContentLengthInvalid => "Content-Length is not a number",
            LengthError::ContentLengthsDiffer => "several Content-Length values differ",
            LengthError::ContentLengthAndTransferEncoding => {
                "both Content-Length and Transfer-Encoding"
            }
            LengthError::TransferEncodingBeforeHttp11 => "Transfer-Encoding before HTTP/1.1",
            LengthError::ChunkedNotLast => "chunked is not the last and only chunked coding",
            LengthError::CodingBeforeChunked => "a Transfer-Encoding other than chunked",
            LengthError::ChunkedMissing => "a Transfer-Encoding without chunked",
        })
    }
}

impl std::error::Error for LengthError {}

/// The meaning of all `Transfer-Encoding` fields together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TransferCoding {
    /// No such field.
    Absent,
    /// `chunked` alone.
    Chunked,
    /// Other codings, then `chunked`.
    CodedThenChunked,
    /// Other codings, without `chunked`.
    Unknown,
}

const CODING: &[u8] = b"transfer-encoding";

/// Parses all `Transfer-Encoding` fields as one list.
///
/// # Errors
/// [`LengthError::ChunkedNotLast`] when `chunked` is repeated or followed by anything;
/// [`LengthError::ChunkedMissing`] when a member is empty, as in HAProxy: readers may interpret an
/// empty one differently.
pub fn transfer_coding(fields: &Fields) -> Result<TransferCoding, LengthError> {
    if fields.surely_lacks(CODING) {
        return Ok(TransferCoding::Absent);
    }
    let mut found = TransferCoding::Absent;
    for coding in fields.values(CODING) {
        if coding.is_empty() {
            return Err(LengthError::ChunkedMissing);
        }
        found = match (found, coding.eq_ignore_ascii_case(b"chunked")) {
            (TransferCoding::Chunked | TransferCoding::CodedThenChunked, _) => {
                return Err(LengthError::ChunkedNotLast);
            }
            (TransferCoding::Absent, true) => TransferCoding::Chunked,
            (TransferCoding::Unknown, true) => TransferCoding::CodedThenChunked,
            (TransferCoding::Absent | TransferCoding::Unknown, false) => TransferCoding::Unknown,
        };
    }
    Ok(found)
}

/// The value of all `Content-Length` fields; equal repetitions count as one.
///
/// # Errors
/// When a value is not a number, or two differ.
pub fn content_length(fields: &Fields) -> Result<Option<u64>, LengthError> {
    let mut found = None;
    let mut note = |length: u64| {
        if found.is_some_and(|known| known != length) {
            return Err(LengthError::ContentLengthsDiffer);
        }
        found = Some(length);
        Ok(())
    };
    for value in fields.find(b"content-length") {
        // The common case is one number and no list.
        if let Some(length) = parse_content_length(value) {
            note(length)?;
            continue;
        }
        for member in comma_values(value) {
            note(parse_content_length(member).ok_or(LengthError::ContentLengthInvalid)?)?;
        }
    }
    Ok(found)
}

/// This many digits are always below 2^63.
const DIGITS_THAT_FIT: usize = 18;

/// One `Content-Length`: digits only, below 2^63 (RFC 9110 section 8.6), so that adding to it
/// cannot overflow.
pub fn parse_content_length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    if digits.len() <= DIGITS_THAT_FIT {
        let mut length = 0;
        for byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            length = length * 10 + u64::from(digit);
        }
        return Some(length);
    }
    digits
        .iter()
        .try_fold(0_u64, |length, byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            length.checked_mul(10)?.checked_add(digit)
        })
        .filter(|length| i64::try_from(*length).is_ok())
}

/// The length of a request's body (RFC 9112 section 6.3, rules 3 to 7 for requests).
///
/// # Errors
/// Any [`LengthError`]: the request must be refused and the connection closed.
pub fn request_body_length(request: &Request) -> Result<BodyLength, LengthError> {
    let fields = request.fields();
    let length = content_length(fields)?;
    match transfer_coding(fields)? {
        TransferCoding::Absent => {}
        // Forwarding a coding that we cannot decode is allowed, but servers handle it badly, and it
        // is the classic way to make two readers disagree.
        TransferCoding::CodedThenChunked => return Err(LengthError::CodingBeforeChunked),
        TransferCoding::Unknown => return Err(LengthError::ChunkedMissing),
        TransferCoding::Chunked if request.version() < Version::Http11 => {
            return Err(LengthError::TransferEncodingBeforeHttp11);
        }
        TransferCoding::Chunked if length.is_some() => {
            return Err(LengthError::ContentLengthAndTransferEncoding);
        }
        TransferCoding::Chunked => return Ok(BodyLength::Chunked),
    }
    Ok(length.map_or(BodyLength::None, BodyLength::Known))
}

/// The length of a response's body, given the method it answers (RFC 9112 section 6.3).
///
/// `Transfer-Encoding` overrides `Content-Length`; the codec must then remove the latter before the
/// response is forwarded. `Transfer-Encoding` in an HTTP/1.0 response is accepted, as in HAProxy
/// (the connection must not be kept afterwards); any coding other than `chunked` alone is refused,
/// as in HAProxy.
///
/// # Errors
/// Any [`LengthError`] but [`LengthError::ContentLengthAndTransferEncoding`] and
/// [`LengthError::TransferEncodingBeforeHttp11`]: the response must not be forwarded.
pub fn response_body_length(
    response: &Response,
    method: Method,
) -> Result<BodyLength, LengthError> {
    let fields = response.fields();
    let length = content_length(fields)?;
    let coding = transfer_coding(fields)?;
    match coding {
        TransferCoding::Absent | TransferCoding::Chunked => {}
        TransferCoding::CodedThenChunked => return Err(LengthError::CodingBeforeChunked),
        TransferCoding::Unknown => return Err(LengthError::ChunkedMissing),
    }
    match (response.status(), method) {
        (101, _) | (200..=299, Method::Connect) => Ok(BodyLength::Tunnel),
        (100..=199 | 204 | 304, _) | (_, Method::Head) => Ok(BodyLength::None),
        _ if coding == TransferCoding::Chunked => Ok(BodyLength::Chunked),
        _ => Ok(length.map_or(BodyLength::UntilClose, BodyLength::Known)),
    }
}
