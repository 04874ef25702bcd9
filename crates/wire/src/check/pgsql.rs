//! `option pgsql-check`: a startup message, to which the server replies with a request for
//! authentication (PostgreSQL frontend/backend protocol, version 3).

use super::{CheckStep, Expectation, ReplyVerdict, first_line, invalid, wrong_status};

/// The steps of `option pgsql-check user <user>`.
pub fn pgsql(user: &[u8]) -> Vec<CheckStep> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&[0, 3, 0, 0]);
    bytes.extend_from_slice(b"user\0");
    bytes.extend_from_slice(user);
    // The end of the name, and of the parameters.
    bytes.extend_from_slice(&[0, 0]);
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    vec![
        CheckStep::Send(bytes),
        CheckStep::Expect(Expectation::PgsqlAuthentication),
    ]
}

/// Type, length and the kind of authentication.
const ANSWER_BYTES_MIN: usize = 9;

/// The text for a reply that is no request for authentication, and no error.
pub(super) const UNKNOWN_ERROR: &[u8] = b"PostgreSQL unknown error";

pub(super) fn parse_reply(received: &[u8]) -> ReplyVerdict<'_> {
    let Some(&answer) = received.first() else {
        return ReplyVerdict::Undecided;
    };
    match answer {
        b'R' if received.len() >= ANSWER_BYTES_MIN => ReplyVerdict::Pass {
            bytes: received.len(),
            code: Some(0),
            text: b"PostgreSQL server is ok",
        },
        b'E' => error(received),
        b'R' => ReplyVerdict::Undecided,
        _ if received.len() < 5 => ReplyVerdict::Undecided,
        _ => wrong_status(UNKNOWN_ERROR),
    }
}

/// The severity, the first field of an error.
fn error(received: &[u8]) -> ReplyVerdict<'_> {
    let fields = received.get(5..).unwrap_or_default();
    if !fields.contains(&0) {
        return ReplyVerdict::Undecided;
    }
    invalid(first_line(fields.strip_prefix(b"S").unwrap_or(fields)))
}
