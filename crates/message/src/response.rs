//! Response heads.

use std::ops::Range;

use crate::check::HeadText;
use crate::fields::{Fields, NoRoom, Segment};
use crate::limits::HeadLimits;
use crate::version::Version;

const REASON: usize = 0;

/// A response's head. Create one per connection, and [`Response::clear`] it for each response.
#[derive(Clone, Debug, Default)]
pub struct Response {
    fields: Fields,
    status: u16,
    version: Version,
}

impl Response {
    /// An empty head with these limits; nothing is allocated yet.
    pub fn new(limits: HeadLimits) -> Response {
        Response {
            fields: Fields::new(limits),
            ..Response::default()
        }
    }

    /// Removes everything and keeps the memory.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.status = 0;
        self.version = Version::default();
    }

    /// Removes everything and frees the memory, for a connection that becomes idle.
    pub fn release(&mut self) {
        *self = Response::new(self.fields.limits());
    }

    /// Makes this equal to `other`, in its present memory.
    pub fn copy_from(&mut self, other: &Response) {
        self.fields.copy_from(&other.fields);
        self.status = other.status;
        self.version = other.version;
    }

    /// The status code; 0 while nothing was received or set.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether this is an interim response (1xx) other than 101, which ends the exchange.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }

    /// The reason phrase as received; empty over HTTP/2.
    pub fn reason(&self) -> &[u8] {
        self.fields.line_piece(REASON)
    }

    /// The version of the response as received.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The fields in order.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The fields, mutable.
    pub fn fields_mut(&mut self) -> &mut Fields {
        &mut self.fields
    }

    /// Sets the version.
    pub fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    /// Sets the status and its usual reason phrase: `set-status`.
    pub fn set_status(&mut self, status: u16) -> Result<(), NoRoom> {
        self.set_status_and_reason(status, reason_phrase(status).as_bytes())
    }

    /// Sets status and reason phrase: `set-status N reason R`.
    pub fn set_status_and_reason(&mut self, status: u16, reason: &[u8]) -> Result<(), NoRoom> {
        self.fields
            .set_line(REASON, &[Segment::new(HeadText::FieldValue, reason)])?;
        self.status = status;
        Ok(())
    }

    /// Ends the reception of a head: copies its bytes; `reason` is the range of the reason. The
    /// fields were pushed before with [`Fields::push_received`].
    pub fn finish_received(
        &mut self,
        head: &[u8],
        status: u16,
        reason: Range<usize>,
        version: Version,
        folded: bool,
    ) {
        self.fields.finish_received(head, folded);
        self.fields.set_line_received(REASON, reason);
        self.status = status;
        self.version = version;
    }
}

/// The reason phrase that HAProxy 3.2 gives a status code; that of its class if it has none of its own.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        210 => "Content Different",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        310 => "Too many Redirects",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Time-out",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Requested range unsatisfiable",
        417 => "Expectation failed",
        418 => "I'm a teapot",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Method failure",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        449 => "Retry With",
        450 => "Blocked by Windows Parental Controls",
        451 => "Unavailable For Legal Reasons",
        456 => "Unrecoverable Error",
        499 => "client has closed connection",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway or Proxy Error",
        503 => "Service Unavailable",
        504 => "Gateway Time-out",
        505 => "HTTP Version not supported",
        506 => "Variant also negotiate",
        507 => "Insufficient storage",
        508 => "Loop detected",
        509 => "Bandwidth Limit Exceeded",
        510 => "Not extended",
        511 => "Network authentication required",
        520 => "Web server is returning an unknown error",
        _ => match status / 100 {
            1 => "Informational",
            2 => "Success",
            3 => "Redirection",
            4 => "Client Error",
            5 => "Server Error",
            _ => "Other",
        },
    }
}
