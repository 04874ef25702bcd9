//! `option pgsql-check`: a startup message, to which the server replies with a request for
//! authentication (PostgreSQL frontend/backend protocol, version 3).

use super::{CheckStep, Expectation, ReplyVerdict, invalid, wrong_status};

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
/// Type and length, after which an error is known as one.
const HEAD_BYTES: usize = 5;

/// The kinds of authentication that may be asked for.
const KINDS: &[u8] = &[0, 2, 3, 4, 5, 6, 7, 9, 10];

/// The text for a reply that is no request for authentication, and no error.
const UNKNOWN_ERROR: &[u8] = b"PostgreSQL unknown error";

pub(super) fn parse_reply(received: &[u8]) -> ReplyVerdict<'_> {
    match received {
        [b'E', ..] if received.len() >= HEAD_BYTES => error(received),
        [b'R', 0, 0, 0, _, 0, 0, 0, kind, ..] if KINDS.contains(kind) => ReplyVerdict::Pass {
            bytes: received.len(),
            code: Some(0),
            text: b"PostgreSQL server is ok",
        },
        _ if received.len() < ANSWER_BYTES_MIN => ReplyVerdict::Undecided,
        _ => wrong_status(UNKNOWN_ERROR),
    }
}

/// Judges a reply that ended too early.
pub(super) fn judge_part(received: &[u8]) -> ReplyVerdict<'_> {
    match received {
        [b'E', ..] => error(received),
        _ => wrong_status(UNKNOWN_ERROR),
    }
}

/// The content of the first field of an error, which is the severity.
fn error(received: &[u8]) -> ReplyVerdict<'_> {
    let field = received.get(HEAD_BYTES + 1..).unwrap_or_default();
    let end = field.iter().position(|byte| *byte == 0);
    invalid(&field[..end.unwrap_or(field.len())])
}
