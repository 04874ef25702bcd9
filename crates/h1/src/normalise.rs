//! One meaning, one form: what is said twice, or in two ways, goes on said once, so that the
//! next reader cannot pick another meaning than ours. These are rare paths.

use ballast_message::{
    Fields, HostError, Method, Request, TargetForm, comma_values, default_port, parse_authority,
    validate_host,
};

use crate::error::H1Error;
use crate::head::Seen;

/// Checks the `Host` fields and leaves one.
pub(crate) fn host(request: &mut Request, repeated: bool, lenient: bool) -> Result<(), H1Error> {
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

/// Takes a default port out of an absolute target and of `Host` with it; with CONNECT, out of
/// `Host` alone. HAProxy does so (RFC 3986 section 6.2.3), and rules match on it.
pub(crate) fn authority(request: &mut Request) {
    let Some(authority) = request.target_authority() else {
        return;
    };
    let Some((_, Some(port))) = parse_authority(authority) else {
        return;
    };
    if !default_port(request).contains(&port) {
        return;
    }
    let connect = request.method() == Method::Connect;
    let bare = authority[..authority.len() - port.len() - 1].to_vec();
    let host_start = memchr::memrchr(b'@', &bare).map_or(0, |at| at + 1);
    let has_host = request.fields().contains(b"host");
    // Both only shrink, so they fit; a refusal would leave an equivalent head.
    if !connect {
        let mut target = request.scheme().unwrap_or_default().to_vec();
        target.extend_from_slice(b"://");
        target.extend_from_slice(&bare);
        target.extend_from_slice(request.path_and_query());
        let _ = request.set_target(&target);
    }
    if has_host {
        let at = request.fields().positions(b"host").next();
        if let Some(at) = at {
            let _ = request.fields_mut().replace_value(at, &bare[host_start..]);
        }
    }
}

/// Leaves one `Content-Length` with one number, and `chunked` alone in one
/// `Transfer-Encoding`. Only for heads whose length was judged before.
pub(crate) fn length_fields(fields: &mut Fields, seen: Seen) {
    let is_number = |value: &[u8]| value.iter().all(u8::is_ascii_digit);
    if !seen.has(Seen::LENGTH_AGAIN | Seen::TRANSFER_ENCODING)
        && fields.first(b"content-length").is_none_or(is_number)
    {
        return;
    }
    keep_first(fields, b"content-length");
    keep_first(fields, b"transfer-encoding");
    let listed = fields
        .first(b"content-length")
        .is_some_and(|value| value.contains(&b','));
    if listed {
        let value = fields.first(b"content-length").unwrap_or_default();
        let number = comma_values(value).next().unwrap_or_default().to_vec();
        replace_first(fields, b"content-length", &number);
    }
    let odd = fields
        .first(b"transfer-encoding")
        .is_some_and(|value| !value.eq_ignore_ascii_case(b"chunked"));
    if odd {
        replace_first(fields, b"transfer-encoding", b"chunked");
    }
}

fn replace_first(fields: &mut Fields, name: &[u8], value: &[u8]) {
    let at = fields.positions(name).next();
    if let Some(at) = at {
        // The value is never longer than what it replaces, but for a list of empty members
        // before `chunked`; should it not fit, the field goes and the length stays told by
        // whoever writes the body.
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
