//! Heads as header blocks (RFC 9113 section 8.3).

use ballast_message::{Fields, Method, Request, Response, TargetForm};

use super::rules::FieldKind;
use crate::hpack::{FieldIndexing, HpackEncoder};

/// What makes a request an extended CONNECT (RFC 8441): the request is a GET with `Upgrade`, as over HTTP/1.
#[derive(Clone, Copy, Debug)]
pub struct ExtendedConnect<'a> {
    /// The protocol that is asked for.
    pub protocol: &'a [u8],
    /// Whether the key of a WebSocket is left out: it was made for a server of HTTP/1, and needs no answer here
    /// (RFC 8441 section 5).
    pub drops_key: bool,
}

/// Appends the header block of a request.
///
/// As HAProxy, `:authority` is what the target says; a target without one leaves `host` as it is, but for
/// extended CONNECT, which must have it. A scheme that is not known is `https`.
pub(crate) fn write_request(
    encoder: &mut HpackEncoder,
    request: &Request,
    extended: Option<ExtendedConnect<'_>>,
    out: &mut Vec<u8>,
) {
    encoder.begin(out);
    let method = match extended {
        Some(_) => b"CONNECT",
        None => request.method_token(),
    };
    encoder.encode(b":method", method, out);
    let host = extended.and_then(|_| request.fields().first(b"host"));
    // What a rule made neither a path nor a URL is a path here, but for CONNECT.
    let is_odd = request.form() == TargetForm::Authority && request.method() != Method::Connect;
    let of_target = request.target_authority().filter(|_| !is_odd);
    let authority = of_target.or(host).map(without_user);
    if request.form() == TargetForm::Authority && !is_odd {
        encoder.encode(b":authority", request.target(), out);
    } else {
        encoder.encode(b":scheme", request.scheme().unwrap_or(b"https"), out);
        if let Some(authority) = authority {
            encoder.encode(b":authority", authority, out);
        }
        // Paths rarely repeat.
        let path = match is_odd {
            true => request.target(),
            false => path_of(request),
        };
        encoder.encode_as(FieldIndexing::Without, b":path", path, out);
    }
    if let Some(ExtendedConnect { protocol, .. }) = extended {
        encoder.encode_as(FieldIndexing::Without, b":protocol", protocol, out);
    }
    let skips_host = authority.is_some();
    let drops_key = extended.is_some_and(|extended| extended.drops_key);
    for field in request.fields() {
        match FieldKind::of(field.name) {
            FieldKind::Connection => {}
            FieldKind::Host if skips_host => {}
            // Only `trailers` has a meaning beyond one hop (section 8.2.2).
            FieldKind::Te if field.value != b"trailers" => {}
            // What follows is no body.
            FieldKind::ContentLength if extended.is_some() => {}
            _ if drops_key && field.name == b"sec-websocket-key" => {}
            _ => encoder.encode(field.name, field.value, out),
        }
    }
}

/// An authority without the name and password before its host, which it must not have here (section 8.3.1):
/// a server refuses it, and they are none of its business.
fn without_user(authority: &[u8]) -> &[u8] {
    let user_end = authority.iter().rposition(|byte| *byte == b'@');
    &authority[user_end.map_or(0, |at| at + 1)..]
}

/// A target without a path asks for `/`, or with OPTIONS for the server itself (section 8.3.1).
fn path_of(request: &Request) -> &[u8] {
    match (request.form(), request.path_and_query()) {
        (TargetForm::Asterisk, _) => b"*",
        (_, []) if request.method_token() == b"OPTIONS" => b"*",
        (_, []) => b"/",
        (_, path) => path,
    }
}

/// Appends the header block of a response. A 101 accepts the protocol of an extended CONNECT: it is
/// sent as 200 (RFC 8441 section 5).
pub(crate) fn write_response(encoder: &mut HpackEncoder, response: &Response, out: &mut Vec<u8>) {
    encoder.begin(out);
    let status = match response.status() {
        101 => 200,
        status => status,
    };
    encoder.encode_status(status, out);
    for field in response.fields() {
        match FieldKind::of(field.name) {
            // Fields that apply to one connection stay here (section 8.2.2).
            FieldKind::Connection => {}
            _ => encoder.encode(field.name, field.value, out),
        }
    }
}

/// Appends the header block of trailers, without what they must not have: the peer would refuse all
/// of them.
pub(crate) fn write_trailers(encoder: &mut HpackEncoder, trailers: &Fields, out: &mut Vec<u8>) {
    encoder.begin(out);
    for field in trailers {
        match FieldKind::of(field.name) {
            FieldKind::Connection | FieldKind::ContentLength | FieldKind::Host | FieldKind::Te => {}
            FieldKind::Cookie | FieldKind::Expect | FieldKind::Other => {
                encoder.encode(field.name, field.value, out);
            }
        }
    }
}
