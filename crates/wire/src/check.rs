//! Health checks that speak a little of a server's protocol: what to send, and
//! what to make of the reply. One file per protocol.
//!
//! A check is a list of [`Step`]s, run in order on one connection. Sends are
//! not answered one by one: a send followed by a send goes out at once. Codes
//! and texts are those HAProxy 2.6 shows in `last_chk`; a reply that can no
//! longer become good fails at once, where HAProxy waits for its timeout.

mod ldap;
mod mysql;
mod pgsql;
mod redis;
mod smtp;
mod ssl_hello;

pub use ldap::ldap;
pub use mysql::{Dialect, mysql};
pub use pgsql::pgsql;
pub use redis::redis;
pub use smtp::smtp;
pub use ssl_hello::ssl_hello;

/// Replies longer than this are refused, in bytes; a checker's buffer needs no
/// more.
pub const REPLY_BYTES_MAX: usize = 16384;

/// One step of a check.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Receive until [`Expectation::judge`] has made up its mind.
    Expect(Expectation),
}

/// What a reply must be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expectation {
    /// A bind response of LDAP version 3 that says success.
    LdapBound,
    /// A packet of MySQL that is not an error.
    MysqlPacket,
    /// A request for authentication of PostgreSQL.
    PgsqlAuthentication,
    /// `+PONG`.
    RedisPong,
    /// An SMTP reply with a code of 200 to 299.
    SmtpSuccess,
    /// A TLS handshake or alert.
    SslHello,
}

/// What a reply amounts to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict<'a> {
    /// More must arrive.
    Undecided,
    /// As expected: go on with the next step after `bytes` of the reply.
    Pass {
        /// How much of what was received is used up.
        bytes: usize,
        /// The status code, if the protocol has one.
        code: Option<u32>,
        /// What to show.
        text: &'a [u8],
    },
    /// The server is not well.
    Fail {
        /// Whether the reply was understood.
        kind: Failure,
        /// The status code, if the reply has one.
        code: Option<u32>,
        /// What to show.
        text: &'a [u8],
    },
}

/// How a reply disappoints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// Not a reply of this protocol: L7RSP, and L6RSP for TLS.
    InvalidResponse,
    /// A reply that says no: L7STS.
    WrongStatus,
}

impl Expectation {
    /// Judges what was received since the last step that passed; `ended` says
    /// that the server has closed its side, and then the answer is never
    /// [`Verdict::Undecided`].
    pub fn judge(self, received: &[u8], ended: bool) -> Verdict<'_> {
        let verdict = match self {
            Self::LdapBound => ldap::judge(received),
            Self::MysqlPacket => mysql::judge(received),
            Self::PgsqlAuthentication => pgsql::judge(received),
            Self::RedisPong => redis::judge(received),
            Self::SmtpSuccess => smtp::judge(received, ended),
            Self::SslHello => ssl_hello::judge(received),
        };
        match verdict {
            Verdict::Undecided if ended || received.len() >= REPLY_BYTES_MAX => {
                invalid(first_line(received))
            }
            verdict => verdict,
        }
    }
}

fn invalid(text: &[u8]) -> Verdict<'_> {
    Verdict::Fail {
        kind: Failure::InvalidResponse,
        code: None,
        text,
    }
}

fn first_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|b| matches!(b, b'\r' | b'\n' | 0));
    &bytes[..end.unwrap_or(bytes.len()).min(TEXT_BYTES_MAX)]
}

/// What is shown of a strange reply at most, in bytes.
const TEXT_BYTES_MAX: usize = 128;

#[cfg(test)]
mod tests;
