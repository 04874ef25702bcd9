//! `option ldap-check`: an anonymous simple bind (RFC 4511, section 4.2).

use super::{CheckStep, Expectation, ReplyFailure, ReplyVerdict, invalid};

/// The steps of `option ldap-check`.
pub fn ldap() -> Vec<CheckStep> {
    vec![
        CheckStep::Send(BIND_REQUEST.to_vec()),
        CheckStep::Expect(Expectation::LdapBound),
    ]
}

/// Message 1, bind request: version 3, empty name, empty simple password.
const BIND_REQUEST: [u8; 14] = [
    0x30, 0x0c, 0x02, 0x01, 0x01, 0x60, 0x07, 0x02, 0x01, 0x03, 0x04, 0x00, 0x80, 0x00,
];

/// The text for a reply of another protocol, or none.
pub(super) const NOT_LDAP: &[u8] = b"Not LDAPv3 protocol";

/// The shortest bind response: its texts are empty.
const REPLY_BYTES_MIN: usize = 14;

pub(super) fn parse_reply(received: &[u8]) -> ReplyVerdict<'_> {
    match result_code(received) {
        Ok(Some(_)) if received.len() < REPLY_BYTES_MIN => ReplyVerdict::Undecided,
        Ok(Some(0)) => ReplyVerdict::Pass {
            bytes: received.len(),
            code: Some(0),
            text: b"",
        },
        Ok(Some(code)) => ReplyVerdict::Fail {
            kind: ReplyFailure::WrongStatus,
            code: Some(code),
            text: b"See RFC: http://tools.ietf.org/html/rfc4511#section-4.1.9",
        },
        Ok(None) => ReplyVerdict::Undecided,
        Err(NotLdap) => invalid(NOT_LDAP),
    }
}

struct NotLdap;

/// The result code of the bind response to message 1, once it is complete.
fn result_code(bytes: &[u8]) -> Result<Option<u32>, NotLdap> {
    let Some(rest) = skip_header(bytes, 0x30)? else {
        return Ok(None);
    };
    let Some(rest) = skip_literal(rest, &[0x02, 0x01, 0x01])? else {
        return Ok(None);
    };
    let Some(rest) = skip_header(rest, 0x61)? else {
        return Ok(None);
    };
    let Some(rest) = skip_literal(rest, &[0x0a, 0x01])? else {
        return Ok(None);
    };
    Ok(rest.first().map(|&code| u32::from(code)))
}

/// The content after a tag and a length, which may have the short or the long form (X.690, 8.1.3);
/// `None` when more bytes are needed.
fn skip_header(bytes: &[u8], tag: u8) -> Result<Option<&[u8]>, NotLdap> {
    let Some(rest) = skip_literal(bytes, &[tag])? else {
        return Ok(None);
    };
    let Some((&length, rest)) = rest.split_first() else {
        return Ok(None);
    };
    let more = match length {
        0..=0x7f => 0,
        0x81..=0x84 => usize::from(length & 0x7f),
        _ => return Err(NotLdap),
    };
    Ok(rest.get(more..))
}

/// What follows these bytes; `None` when more bytes are needed.
fn skip_literal<'a>(bytes: &'a [u8], expected: &[u8]) -> Result<Option<&'a [u8]>, NotLdap> {
    let known = bytes.len().min(expected.len());
    if bytes[..known] != expected[..known] {
        return Err(NotLdap);
    }
    Ok(bytes.get(expected.len()..))
}
