//! Response heads (RFC 9113 section 8.3.2).

use ballast_message::{BodyLength, Method, Response, Version};

use super::ResponseHead;
use super::rules::{self, DeclaredLength, FieldKind, ListBytes};
use crate::error::{H2Error, HeadError};
use crate::hpack::FieldSink;

/// What a response answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseContext<'a> {
    pub(crate) method: Method,
    /// The protocol that the request asked for by extended CONNECT (RFC 8441).
    pub(crate) protocol: Option<&'a [u8]>,
}

/// Fills a response from the fields of a header block. The first fault is kept; the fields after it
/// are ignored.
pub(crate) struct ResponseBuilder<'a> {
    response: &'a mut Response,
    context: ResponseContext<'a>,
    bytes_max: usize,
    has_status: bool,
    has_fields: bool,
    length: DeclaredLength,
    list_bytes: ListBytes,
    error: Option<HeadError>,
}

impl<'a> ResponseBuilder<'a> {
    /// Begins a head: `response` is cleared.
    pub(crate) fn new(
        response: &'a mut Response,
        context: ResponseContext<'a>,
        bytes_max: usize,
    ) -> ResponseBuilder<'a> {
        response.clear();
        ResponseBuilder {
            response,
            context,
            bytes_max,
            has_status: false,
            has_fields: false,
            length: DeclaredLength::default(),
            list_bytes: ListBytes::default(),
            error: None,
        }
    }

    /// Ends the head.
    ///
    /// # Errors
    /// [`H2Error::Head`] or [`H2Error::LengthMismatch`]: errors of the stream. The response is
    /// cleared.
    pub(crate) fn finish(self, ends_stream: bool) -> Result<ResponseHead, H2Error> {
        let head = match self.error {
            Some(error) => Err(H2Error::Head(error)),
            None if !self.has_status => Err(H2Error::Head(HeadError::PseudoFieldMissing)),
            None => self.head(ends_stream),
        };
        match head {
            Ok(_) => self.response.set_version(Version::Http2),
            Err(_) => self.response.clear(),
        }
        head
    }

    fn head(&self, ends_stream: bool) -> Result<ResponseHead, H2Error> {
        let interim = self.response.is_interim();
        // An interim response is followed by the final one (section 8.1).
        if interim && ends_stream {
            return Err(H2Error::Head(HeadError::StatusInvalid));
        }
        // An extended CONNECT that is answered otherwise than by 200 opens nothing: the response is one
        // to any other request, as in HAProxy, though RFC 8441 (section 4) speaks of all 2xx.
        let is_plain_connect = self.context.protocol.is_none();
        let body = match (self.response.status(), self.context.method) {
            (101, _) => BodyLength::Tunnel,
            (200..=299, Method::Connect) if is_plain_connect => BodyLength::Tunnel,
            (100..=199 | 204 | 304, _) | (_, Method::Head) => BodyLength::None,
            _ => match (self.length.bytes, ends_stream) {
                (Some(1..), true) => return Err(H2Error::LengthMismatch),
                (Some(bytes), _) => BodyLength::Known(bytes),
                (None, true) => BodyLength::None,
                (None, false) => BodyLength::Chunked,
            },
        };
        Ok(ResponseHead { body, interim })
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        self.list_bytes.count(name, value, self.bytes_max)?;
        if name.first() == Some(&b':') {
            return self.pseudo_field(name, value);
        }
        if !self.has_status {
            return Err(HeadError::PseudoFieldMissing);
        }
        self.has_fields = true;
        let value = rules::check_field(name, value)?;
        // A response that nothing follows, or a tunnel, has no length.
        let is_informational = self.response.status() < 200;
        let fields = self.response.fields_mut();
        match FieldKind::of(name) {
            FieldKind::Connection => return Err(HeadError::ConnectionField),
            FieldKind::ContentLength => {
                let is_first = self.length.bytes.is_none();
                self.length.note(value)?;
                return match self.length.bytes {
                    Some(bytes) if is_first && !is_informational => {
                        rules::append_length(fields, self.bytes_max, bytes)
                    }
                    _ => Ok(()),
                };
            }
            _ => {}
        }
        rules::append(fields, self.bytes_max, name, value)
    }

    fn pseudo_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        if name != b":status" {
            return Err(HeadError::PseudoFieldUnknown);
        }
        if self.has_fields {
            return Err(HeadError::PseudoFieldLate);
        }
        if self.has_status {
            return Err(HeadError::PseudoFieldRepeated);
        }
        self.has_status = true;
        let status = parse_status(value).ok_or(HeadError::StatusInvalid)?;
        match self.context.protocol {
            Some(protocol) if status == 200 => self.switch(protocol),
            _ => self.set_status(status),
        }
    }

    /// HTTP/2 has no reason phrases; over HTTP/1 HAProxy gives each status its usual one, and 103 that
    /// of its class.
    fn set_status(&mut self, status: u16) -> Result<(), HeadError> {
        let set = match status {
            103 => self.response.set_status_and_reason(103, b"Informational"),
            _ => self.response.set_status(status),
        };
        set.map_err(|_| HeadError::TooLong)
    }

    /// A protocol that was asked for by extended CONNECT is accepted: over HTTP/1 that is 101.
    fn switch(&mut self, protocol: &[u8]) -> Result<(), HeadError> {
        self.response
            .set_status(101)
            .map_err(|_| HeadError::TooLong)?;
        let fields = self.response.fields_mut();
        rules::append(fields, self.bytes_max, b"connection", b"upgrade")?;
        rules::append(fields, self.bytes_max, b"upgrade", protocol)
    }
}

impl FieldSink for ResponseBuilder<'_> {
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.error.is_none() {
            self.error = self.take(name, value).err();
        }
    }
}

/// Three digits, from 100 on. HTTP/2 has no 101 (section 8.6).
fn parse_status(value: &[u8]) -> Option<u16> {
    let [a, b, c] = value else { return None };
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |byte: &u8| u16::from(byte - b'0');
    let status = digit(a) * 100 + digit(b) * 10 + digit(c);
    (status >= 100 && status != 101).then_some(status)
}
