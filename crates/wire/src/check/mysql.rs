//! `option mysql-check`: reads the greeting and, if a user is given, logs in without a password and
//! quits (MySQL client/server protocol, connection phase).

use super::{CheckStep, Expectation, ReplyFailure, ReplyVerdict};

/// Which login packet is sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MysqlLogin {
    /// `post-41`: clients since 4.1.
    #[default]
    Post41,
    /// `pre-41`: clients before 4.1.
    Pre41,
}

/// The steps of `option mysql-check [user <user> [post-41 | pre-41]]`. A user
/// name longer than 256 bytes is cut.
pub fn mysql(user: Option<(&[u8], MysqlLogin)>) -> Vec<CheckStep> {
    let Some((user, dialect)) = user else {
        return vec![CheckStep::Expect(Expectation::MysqlPacket)];
    };
    let name = &user[..user.len().min(USER_BYTES_MAX)];
    let mut login = match dialect {
        MysqlLogin::Post41 => LOGIN_POST_41.to_vec(),
        MysqlLogin::Pre41 => LOGIN_PRE_41.to_vec(),
    };
    login.extend_from_slice(name);
    // The end of the name, and an empty password.
    login.extend_from_slice(&[0, 0]);
    let mut bytes = packet(1, &login);
    bytes.extend_from_slice(&packet(0, &[COMMAND_QUIT]));
    vec![
        CheckStep::Send(bytes),
        CheckStep::Expect(Expectation::MysqlPacket),
        CheckStep::Expect(Expectation::MysqlPacket),
    ]
}

/// Capabilities PROTOCOL_41 and SECURE_CONNECTION, packets of 16 MB and 32 kB,
/// character set utf8, 23 reserved bytes.
const LOGIN_POST_41: [u8; 32] = {
    let mut head = [0; 32];
    head[1] = 0x82;
    head[5] = 0x80;
    head[7] = 0x01;
    head[8] = 0x21;
    head
};

/// Capability SECURE_CONNECTION, packets of 64 kB.
const LOGIN_PRE_41: [u8; 5] = [0x00, 0x80, 0x00, 0x00, 0x01];

const COMMAND_QUIT: u8 = 1;
const ERROR: u8 = 0xff;
const USER_BYTES_MAX: usize = 256;

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a payload is a name and a constant");
    let mut bytes = length.to_le_bytes();
    bytes[3] = sequence;
    [&bytes, payload].concat()
}

pub(super) fn parse_reply(received: &[u8]) -> ReplyVerdict<'_> {
    let Some((head, rest)) = received.split_first_chunk::<4>() else {
        return ReplyVerdict::Undecided;
    };
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let Some(payload) = rest.get(..length) else {
        return ReplyVerdict::Undecided;
    };
    match payload {
        [ERROR, low, high, text @ ..] => ReplyVerdict::Fail {
            kind: ReplyFailure::WrongStatus,
            code: Some(u32::from(u16::from_le_bytes([*low, *high]))),
            text,
        },
        // An error that ends within its code.
        [ERROR, rest @ ..] => ReplyVerdict::Fail {
            kind: ReplyFailure::WrongStatus,
            code: Some(u32::from(rest.first().copied().unwrap_or(0))),
            text: b"",
        },
        _ => ReplyVerdict::Pass {
            bytes: 4 + length,
            code: Some(0),
            text: b"",
        },
    }
}
