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
    if received.len() < REPLY_BYTES_MIN {
        return ReplyVerdict::Undecided;
    }
    match result_code(received) {
        Some(BindResult::Code(0)) => ReplyVerdict::Pass {
            bytes: received.len(),
            code: Some(0),
            text: b"",
        },
        Some(BindResult::Code(code)) => ReplyVerdict::Fail {
            kind: ReplyFailure::WrongStatus,
            code: Some(u32::from(code)),
            text: b"See RFC: http://tools.ietf.org/html/rfc4511#section-4.1.9",
        },
        Some(BindResult::Incomplete) => ReplyVerdict::Undecided,
        None => invalid(NOT_LDAP),
    }
}

enum BindResult {
    /// The result code.
    Code(u8),
    /// The message is longer than what was received.
    Incomplete,
}

/// The result of the bind response to message 1; `None` for anything else.
fn result_code(bytes: &[u8]) -> Option<BindResult> {
    let (length, message) = match bytes.strip_prefix(&[0x30])? {
        [length @ ..0x80, rest @ ..] => (usize::from(*length), rest),
        // Of the longer forms (X.690, 8.1.3) those of two and of four bytes are known.
        [0x82, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        [0x84, a, b, c, d, rest @ ..] => {
            let length = u32::from_be_bytes([*a, *b, *c, *d]);
            (usize::try_from(length).unwrap_or(usize::MAX), rest)
        }
        _ => return None,
    };
    if message.len() < length {
        return Some(BindResult::Incomplete);
    }
    let response = message.strip_prefix(&[0x02, 0x01, 0x01, 0x61])?;
    // Its length says nothing new, whatever its form is.
    let (form, response) = response.split_first()?;
    let more = match form & 0x80 {
        0 => 0,
        _ => usize::from(form & 0x7f),
    };
    let result = response.get(more..)?.strip_prefix(&[0x0a, 0x01])?;
    result.first().map(|code| BindResult::Code(*code))
}
