//! Normalisation: a head that says something twice, or in two ways, is forwarded saying it once, so
//! that the next reader cannot interpret it differently. These cases are rare.

use ballast_message::{
    ConnectionOptions, Fields, HostError, Method, Request, TargetForm, comma_values, default_port,
    is_host, parse_authority, remove_connection_options, remove_http2_upgrades, validate_host,
};

use crate::error::H1Error;
use crate::head::FieldFlags;

/// Checks the `Host` fields and keeps one.
pub(crate) fn host(request: &mut Request, repeated: bool, lenient: bool) -> Result<(), H1Error> {
    if request
        .fields()
        .first(b"host")
        .is_some_and(|host| !is_host(host))
    {
        return Err(HostError::HostInvalid.into());
    }
    if repeated || request.form() != TargetForm::Origin {
        match validate_host(request) {
            Ok(()) => {}
            Err(HostError::HostNotAuthority | HostError::AuthorityInvalid) if lenient => {}
            Err(error) => return Err(error.into()),
        }
    }
    if repeated {
        keep_first(request.fields_mut(), b"host");
    }
    Ok(())
}

/// Gives an absolute target without a path the path `/` (except for OPTIONS, which asks about the
/// server itself then), and removes a port that is empty or the default; `Host` follows when the
/// target changed. For CONNECT, only a default port in `Host` is removed. HAProxy does the same
/// (RFC 3986 sections 6.2.3 and 3.3), and rules match the result.
pub(crate) fn authority(request: &mut Request) {
    match request.form() {
        TargetForm::Absolute => absolute(request),
        TargetForm::Authority if request.method() == Method::Connect => host_of_connect(request),
        _ => {}
    }
}

fn absolute(request: &mut Request) {
    let Some(authority) = request.target_authority() else {
        return;
    };
    let port = parse_authority(authority).and_then(|(_, port)| port);
    let idle = port.filter(|port| port.is_empty() || default_port(request).contains(port));
    let path = match request.path_and_query() {
        [] if request.method() != Method::Options => &b"/"[..],
        path => path,
    };
    if idle.is_none() && path == request.path_and_query() {
        return;
    }
    let bare = authority[..authority.len() - idle.map_or(0, |port| port.len() + 1)].to_vec();
    let mut target = request.scheme().unwrap_or_default().to_vec();
    target.extend_from_slice(b"://");
    target.extend_from_slice(&bare);
    target.extend_from_slice(path);
    // One more slash fits wherever the head did; if it does not, an equivalent head is left.
    let _ = request.set_target(&target);
    let host_start = memchr::memrchr(b'@', &bare).map_or(0, |at| at + 1);
    let host = &bare[host_start..];
    // A lenient parser accepts any authority in a target, but `Host` gets only bytes that are
    // allowed in hosts: the next reader would refuse others.
    if is_host(host) {
        set_host(request, host);
    }
}

fn host_of_connect(request: &mut Request) {
    let host = request.fields().first(b"host").unwrap_or_default();
    let Some((_, Some(port))) = parse_authority(host) else {
        return;
    };
    if default_port(request).contains(&port) {
        let bare = host[..host.len() - port.len() - 1].to_vec();
        set_host(request, &bare);
    }
}

/// Sets the value of `Host`, if there is one.
fn set_host(request: &mut Request, host: &[u8]) {
    let at = request.fields().positions(b"host").next();
    if let Some(at) = at {
        let _ = request.fields_mut().replace_value(at, host);
    }
}

/// Keeps `Upgrade` only together with the option of `Connection` that applies it to this hop, and
/// the option only together with the field. Returns whether another protocol is still requested.
pub(crate) fn upgrade(fields: &mut Fields, asked: bool) -> bool {
    if asked {
        remove_http2_upgrades(fields);
    }
    // A field without a protocol asks for nothing.
    let names_one = || {
        fields
            .values(b"upgrade")
            .any(|protocol| !protocol.is_empty())
    };
    let stays = asked && names_one();
    if !stays {
        fields.remove(b"upgrade");
        let gone = ConnectionOptions {
            upgrade: true,
            ..ConnectionOptions::default()
        };
        // Values only shrink: there is room.
        let _ = remove_connection_options(fields, gone);
    }
    stays
}

/// Keeps one `Content-Length` with one number, without leading zeros, and only `chunked` in one
/// `Transfer-Encoding`. For heads whose length was checked before.
pub(crate) fn length_fields(fields: &mut Fields, seen: FieldFlags) {
    let is_number = |value: &[u8]| {
        value.iter().all(u8::is_ascii_digit) && (value.len() < 2 || value[0] != b'0')
    };
    if !seen.has(FieldFlags::LENGTH_AGAIN | FieldFlags::TRANSFER_ENCODING)
        && fields.first(b"content-length").is_none_or(is_number)
    {
        return;
    }
    keep_first(fields, b"content-length");
    keep_first(fields, b"transfer-encoding");
    let written_oddly = fields
        .first(b"content-length")
        .is_some_and(|value| !is_number(value));
    if written_oddly {
        let value = fields.first(b"content-length").unwrap_or_default();
        let number = comma_values(value).next().unwrap_or_default();
        let zeros = number.iter().take_while(|digit| **digit == b'0').count();
        // Of a value of zeros, one is kept.
        let number = number[zeros.min(number.len().saturating_sub(1))..].to_vec();
        replace_first(fields, b"content-length", &number);
    }
    let odd = fields
        .first(b"transfer-encoding")
        .is_some_and(|value| value != b"chunked");
    if odd {
        replace_first(fields, b"transfer-encoding", b"chunked");
    }
}

fn replace_first(fields: &mut Fields, name: &[u8], value: &[u8]) {
    let at = fields.positions(name).next();
    if let Some(at) = at {
        // The value is never longer than what it replaces, except for a list of empty members
        // before `chunked`; if it does not fit, the field is removed, and the length is announced
        // by whoever writes the body.
        if fields.replace_value(at, value).is_err() {
            fields.remove_at(at);
        }
    }
}

fn keep_first(fields: &mut Fields, name: &[u8]) {
    if fields.count(name) < 2 {
        return;
    }
    let mut met = false;
    fields.remove_matching(|field| {
        let again = field.name == name && met;
        met |= field.name == name;
        again
    });
}
