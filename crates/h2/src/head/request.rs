//! Request heads (RFC 9113 sections 8.3.1 and 8.5, RFC 8441 section 4).

use ballast_message::{
    BodyLength, HostError, ReceivedTarget, Request, Version, is_host, is_http2_protocol,
    is_preface_method, is_token, is_upgrade_protocol, parse_authority,
};

use super::rules::{self, DeclaredLength, FieldKind, ListBytes};
use super::{HeadScratch, RequestHead};
use crate::error::{H2Error, HeadError};
use crate::hpack::FieldSink;

/// A pseudo-field of requests; also its place among those that were received.
#[derive(Clone, Copy)]
enum Pseudo {
    Method,
    Scheme,
    Authority,
    Path,
    Protocol,
}

impl Pseudo {
    const COUNT: usize = 5;

    #[inline]
    fn of(name: &[u8]) -> Option<Pseudo> {
        // By the length first.
        Some(match name.len() {
            5 if name == b":path" => Pseudo::Path,
            7 if name == b":method" => Pseudo::Method,
            7 if name == b":scheme" => Pseudo::Scheme,
            9 if name == b":protocol" => Pseudo::Protocol,
            10 if name == b":authority" => Pseudo::Authority,
            _ => return None,
        })
    }
}

/// Fills a request from the fields of a header block. The first fault is kept; the fields after it
/// are ignored.
pub(crate) struct RequestBuilder<'a> {
    request: &'a mut Request,
    scratch: &'a mut HeadScratch,
    bytes_max: usize,
    /// Whether we offered extended CONNECT (RFC 8441 section 3).
    takes_protocol: bool,
    /// Where the values of pseudo-fields are in the scratch memory.
    pseudo: [Option<(usize, usize)>; Pseudo::COUNT],
    has_line: bool,
    has_host: bool,
    has_cookie: bool,
    kind: RequestKind,
    length: DeclaredLength,
    list_bytes: ListBytes,
    expect_continue: bool,
    is_bad: bool,
    error: Option<HeadError>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum RequestKind {
    Plain,
    Connect,
    ExtendedConnect,
}

impl<'a> RequestBuilder<'a> {
    /// Begins a head: `request` and `scratch` are cleared.
    pub(crate) fn new(
        request: &'a mut Request,
        scratch: &'a mut HeadScratch,
        bytes_max: usize,
        takes_protocol: bool,
    ) -> RequestBuilder<'a> {
        request.clear();
        scratch.pseudo.clear();
        scratch.cookies.clear();
        RequestBuilder {
            request,
            scratch,
            bytes_max,
            takes_protocol,
            pseudo: [None; Pseudo::COUNT],
            has_line: false,
            has_host: false,
            has_cookie: false,
            kind: RequestKind::Plain,
            length: DeclaredLength::default(),
            list_bytes: ListBytes::default(),
            expect_continue: false,
            is_bad: false,
            error: None,
        }
    }

    /// Ends the head.
    ///
    /// # Errors
    /// [`H2Error::Head`], or [`H2Error::LengthMismatch`] for a body that was announced and does not
    /// come: errors of the stream (section 8.1.1). The request is cleared.
    pub(crate) fn finish(mut self, ends_stream: bool) -> Result<RequestHead, H2Error> {
        let head = match self.error {
            Some(error) => Err(H2Error::Head(error)),
            None => self.complete(ends_stream),
        };
        if head.is_err() {
            self.request.clear();
        }
        head
    }

    fn complete(&mut self, ends_stream: bool) -> Result<RequestHead, H2Error> {
        self.last_fields().map_err(H2Error::Head)?;
        let body = match (self.kind, self.length.bytes, ends_stream) {
            (RequestKind::Connect | RequestKind::ExtendedConnect, ..) => BodyLength::Tunnel,
            (_, Some(1..), true) => return Err(H2Error::LengthMismatch),
            (_, Some(bytes), _) => BodyLength::Known(bytes),
            (_, None, true) => BodyLength::None,
            (_, None, false) => BodyLength::Chunked,
        };
        self.request.set_version(Version::Http2);
        Ok(RequestHead {
            body,
            upgrade: self.kind == RequestKind::ExtendedConnect,
            expect_continue: self.expect_continue,
            is_bad: self.is_bad,
        })
    }

    /// The fields that are known only at the end.
    fn last_fields(&mut self) -> Result<(), HeadError> {
        if !self.has_line {
            self.line()?;
        }
        if self.kind == RequestKind::ExtendedConnect {
            let RequestBuilder {
                request, scratch, ..
            } = self;
            let protocol = slice(scratch, self.pseudo[Pseudo::Protocol as usize]);
            let fields = request.fields_mut();
            rules::append(
                fields,
                self.bytes_max,
                b"upgrade",
                protocol.unwrap_or_default(),
            )?;
            rules::append(fields, self.bytes_max, b"connection", b"upgrade")?;
        }
        if self.has_cookie {
            // Behind an empty last cookie is a blank, which no value has at its end (section 8.2.1).
            let cookies = self.scratch.cookies.trim_ascii_end();
            rules::append(
                self.request.fields_mut(),
                self.bytes_max,
                b"cookie",
                cookies,
            )?;
        }
        Ok(())
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        self.list_bytes.count(name, value, self.bytes_max)?;
        if name.first() == Some(&b':') {
            return self.pseudo_field(name, value);
        }
        if !self.has_line {
            self.line()?;
        }
        self.plain_field(name, value)
    }

    fn pseudo_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        if self.has_line {
            return Err(HeadError::PseudoFieldLate);
        }
        let pseudo = Pseudo::of(name).ok_or(HeadError::PseudoFieldUnknown)?;
        let place = &mut self.pseudo[pseudo as usize];
        if place.is_some() {
            return Err(HeadError::PseudoFieldRepeated);
        }
        let start = self.scratch.pseudo.len();
        self.scratch.pseudo.extend_from_slice(value);
        *place = Some((start, start + value.len()));
        Ok(())
    }

    /// The pseudo-fields are complete: composes the method and the target, and `host`.
    fn line(&mut self) -> Result<(), HeadError> {
        self.has_line = true;
        let RequestBuilder {
            request, scratch, ..
        } = self;
        let value = |pseudo: Pseudo| slice(scratch, self.pseudo[pseudo as usize]);
        let line = Line {
            method: value(Pseudo::Method).ok_or(HeadError::PseudoFieldMissing)?,
            scheme: value(Pseudo::Scheme),
            authority: value(Pseudo::Authority),
            path: value(Pseudo::Path),
            protocol: value(Pseudo::Protocol),
        };
        self.kind = line.kind(self.takes_protocol)?;
        let authority = match self.kind {
            RequestKind::Connect => line.connect(request)?,
            RequestKind::Plain => line.plain(request, line.method)?,
            // As over HTTP/1: a GET that asks for another protocol.
            RequestKind::ExtendedConnect => line.plain(request, b"GET")?,
        };
        if let Some(authority) = authority {
            self.has_host = true;
            rules::append(request.fields_mut(), self.bytes_max, b"host", authority)?;
        }
        self.is_bad = line.is_bad();
        if request.fields().wire_bytes() > self.bytes_max {
            return Err(HeadError::TooLong);
        }
        Ok(())
    }

    fn plain_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        let received = value;
        let value = rules::check_field(name, received)?;
        let fields = self.request.fields_mut();
        match FieldKind::of(name) {
            FieldKind::Connection => return Err(HeadError::ConnectionField),
            FieldKind::ContentLength => {
                let is_first = self.length.bytes.is_none();
                self.length.note(value)?;
                // What follows a CONNECT is no body: a length would make the next hop read one.
                return match self.length.bytes {
                    Some(bytes) if is_first && self.kind == RequestKind::Plain => {
                        rules::append_length(fields, self.bytes_max, bytes)
                    }
                    _ => Ok(()),
                };
            }
            FieldKind::Cookie => {
                self.scratch.join_cookie(value, !self.has_cookie);
                self.has_cookie = true;
                return Ok(());
            }
            FieldKind::Expect => {
                self.expect_continue |= value.eq_ignore_ascii_case(b"100-continue");
            }
            FieldKind::Host => {
                // The first one counts, or `:authority`, as in HAProxy; others are not looked at.
                if std::mem::replace(&mut self.has_host, true) {
                    return Ok(());
                }
                if !is_host(value) {
                    return Err(HeadError::Host(HostError::HostInvalid));
                }
            }
            FieldKind::Te => rules::check_te(received)?,
            FieldKind::Other => {}
        }
        rules::append(fields, self.bytes_max, name, value)
    }
}

impl FieldSink for RequestBuilder<'_> {
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.error.is_none() {
            self.error = self.take(name, value).err();
        }
    }
}

fn slice(scratch: &HeadScratch, place: Option<(usize, usize)>) -> Option<&[u8]> {
    let (start, end) = place?;
    scratch.pseudo.get(start..end)
}

/// Whether a client may ask for a protocol: for one, and not for HTTP/2 within HTTP/2.
fn may_switch_to(protocol: &[u8]) -> bool {
    is_upgrade_protocol(protocol) && !is_http2_protocol(protocol)
}

/// The pseudo-fields of a request.
struct Line<'a> {
    method: &'a [u8],
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    protocol: Option<&'a [u8]>,
}

impl<'a> Line<'a> {
    fn kind(&self, takes_protocol: bool) -> Result<RequestKind, HeadError> {
        if self.method.is_empty() {
            return Err(HeadError::EmptyPseudoField);
        }
        match (self.method, self.protocol) {
            (b"CONNECT", Some(protocol)) if takes_protocol && may_switch_to(protocol) => {
                Ok(RequestKind::ExtendedConnect)
            }
            (_, Some(_)) => Err(HeadError::ProtocolUnexpected),
            (b"CONNECT", None) => Ok(RequestKind::Connect),
            _ => Ok(RequestKind::Plain),
        }
    }

    /// Section 8.5: only `:authority`, which is the target.
    fn connect(&self, request: &mut Request) -> Result<Option<&'a [u8]>, HeadError> {
        let (None, None, Some(authority)) = (self.scheme, self.path, self.authority) else {
            return Err(HeadError::ConnectInvalid);
        };
        let authority = checked_authority(authority, &[])?;
        if authority.is_empty() {
            return Err(HeadError::ConnectInvalid);
        }
        request
            .set_received_line(self.method, ReceivedTarget::Whole(authority), false)
            .map_err(|_| HeadError::TooLong)?;
        Ok(Some(authority))
    }

    /// Section 8.3.1: the target is absolute when there is an authority. Returns what `host` says.
    fn plain(&self, request: &mut Request, method: &[u8]) -> Result<Option<&'a [u8]>, HeadError> {
        let (Some(scheme), Some(path)) = (self.scheme, self.path) else {
            return Err(HeadError::PseudoFieldMissing);
        };
        if self.protocol.is_some() && self.authority.is_none() {
            return Err(HeadError::PseudoFieldMissing);
        }
        check_path(path)?;
        // Only OPTIONS asks about the server itself (section 8.3.1); HAProxy takes it for the root.
        let path = match path {
            b"*" if method != b"OPTIONS" => b"/",
            path => path,
        };
        let default_port: &[u8] = match scheme {
            b"http" => b"80",
            b"https" => b"443",
            scheme if scheme.eq_ignore_ascii_case(b"http") => b"80",
            scheme if scheme.eq_ignore_ascii_case(b"https") => b"443",
            _ => b"",
        };
        let is_known = !default_port.is_empty();
        let authority = match self.authority {
            Some(authority) => Some(checked_authority(authority, default_port)?),
            None => None,
        };
        let target = match authority {
            Some(authority) if is_known || is_scheme(scheme) => ReceivedTarget::Absolute {
                scheme,
                authority,
                // A question about the server itself has no path (RFC 9110, section 7.1).
                path: if path == b"*" { b"" } else { path },
            },
            _ => ReceivedTarget::Whole(path),
        };
        request
            .set_received_line(method, target, is_known)
            .map_err(|_| HeadError::TooLong)?;
        Ok(authority)
    }

    /// Whether HAProxy answers the request with 400 instead of resetting the stream.
    fn is_bad(&self) -> bool {
        let is_delete = |byte: &u8| *byte == 0x7f;
        // The method of the preface is none.
        is_preface_method(self.method)
            || !is_token(self.method)
            || self
                .scheme
                .is_some_and(|scheme| scheme != b"http" && scheme != b"https" && !is_scheme(scheme))
            || self.path.is_some_and(|path| path.iter().any(is_delete))
    }
}

/// RFC 3986 section 3.1.
fn is_scheme(scheme: &[u8]) -> bool {
    let is_valid = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_valid)
}

/// A path begins with a slash, or is `*`; it has no space, control character or fragment.
fn check_path(path: &[u8]) -> Result<(), HeadError> {
    let begins = matches!(path, [b'/', ..] | b"*");
    if begins && path.iter().all(|byte| *byte > b' ' && *byte != b'#') {
        Ok(())
    } else {
        Err(HeadError::PathInvalid)
    }
}

/// An authority without user information (section 8.3.1); a port that is empty or `default_port` is
/// removed, as in HAProxy.
fn checked_authority<'a>(authority: &'a [u8], default_port: &[u8]) -> Result<&'a [u8], HeadError> {
    if !is_host(authority) {
        return Err(HeadError::Host(HostError::AuthorityInvalid));
    }
    let (host, port) = if authority.first() == Some(&b'[') {
        parse_authority(authority).ok_or(HeadError::Host(HostError::AuthorityInvalid))?
    } else {
        // A host without a user, and mostly short.
        match authority.iter().rposition(|byte| *byte == b':') {
            Some(at) => (&authority[..at], Some(&authority[at + 1..])),
            None => (authority, None),
        }
    };
    match port {
        Some(port) if port == default_port || port.is_empty() => Ok(host),
        _ => Ok(authority),
    }
}
