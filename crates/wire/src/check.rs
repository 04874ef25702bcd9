//! Health checks that speak a few steps of a server's protocol: what to send, and how to judge the
//! reply. One file per protocol.
//!
//! A check is a list of [`CheckStep`]s, performed in order on one connection. Not every send has a
//! reply: two sends in a row are sent at once. Codes and texts are those that HAProxy 3.2 shows in
//! `last_chk`. So is when a reply is judged: some that can no longer become valid wait for more bytes,
//! until the server closes or the check times out.

mod ldap;
mod mysql;
mod pgsql;
mod redis;
mod smtp;
mod spop;
mod ssl_hello;

pub use ldap::ldap;
pub use mysql::{MysqlLogin, mysql};
pub use pgsql::pgsql;
pub use redis::redis;
pub use smtp::smtp;
pub use spop::spop;
pub use ssl_hello::ssl_hello;

/// The maximum length of a reply, in bytes; a checker's buffer need not be larger.
pub const REPLY_BYTES_MAX: usize = 16384;

/// One step of a check.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CheckStep {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Receive until [`Expectation::parse_reply`] decides.
    Expect(Expectation),
}

/// The reply that is expected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expectation {
    /// A bind response of LDAP version 3 with the result success.
    LdapBound,
    /// A MySQL packet that is not an error.
    MysqlPacket,
    /// PostgreSQL's request for authentication.
    PgsqlAuthentication,
    /// `+PONG`.
    RedisPong,
    /// The greeting of SMTP, with a code of 200 to 299.
    SmtpGreeting,
    /// The SMTP reply to HELO, with a code of 200 to 299.
    SmtpHello,
    /// The SMTP reply to QUIT, with a code of 200 to 299.
    SmtpQuit,
    /// The HELLO of an agent of SPOP.
    SpopHello {
        /// The longest frame that it may offer to take.
        frame_bytes_max: u32,
    },
    /// A TLS handshake or alert.
    SslHello,
}

/// The verdict on a reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReplyVerdict<'a> {
    /// More bytes are needed.
    Undecided,
    /// As expected: continue with the next step after `bytes` of the reply.
    Pass {
        /// How much of the received bytes belongs to the reply.
        bytes: usize,
        /// The status code, if the protocol has one.
        code: Option<u32>,
        /// The text to show.
        text: &'a [u8],
    },
    /// The server is not healthy.
    Fail {
        /// Whether the reply could be parsed.
        kind: ReplyFailure,
        /// The status code, if the reply has one.
        code: Option<u32>,
        /// The text to show.
        text: &'a [u8],
    },
}

/// How a reply fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReplyFailure {
    /// It is not a reply of this protocol: L7RSP, or L6RSP for TLS.
    InvalidResponse,
    /// It reports an error: L7STS.
    WrongStatus,
}

impl Expectation {
    /// Judges the bytes received since the last step that passed. `ended` says that the server has
    /// closed its side; then the result is never [`ReplyVerdict::Undecided`].
    pub fn parse_reply(self, received: &[u8], ended: bool) -> ReplyVerdict<'_> {
        let verdict = match self {
            Self::LdapBound => ldap::parse_reply(received),
            Self::MysqlPacket => mysql::parse_reply(received),
            Self::PgsqlAuthentication => pgsql::parse_reply(received),
            Self::RedisPong => redis::parse_reply(received),
            Self::SmtpGreeting => smtp::parse_greeting(received),
            Self::SmtpHello => smtp::parse_hello(received),
            Self::SmtpQuit => smtp::parse_quit(received),
            Self::SpopHello { frame_bytes_max } => spop::parse_reply(received, frame_bytes_max),
            Self::SslHello => ssl_hello::parse_reply(received),
        };
        match verdict {
            ReplyVerdict::Undecided if ended || received.len() >= REPLY_BYTES_MAX => {
                self.judge_part(received)
            }
            verdict => verdict,
        }
    }

    /// Judges a reply that ended before it was whole; it may be empty.
    fn judge_part(self, received: &[u8]) -> ReplyVerdict<'_> {
        match self {
            Self::LdapBound if received.is_empty() => invalid(ldap::NOT_LDAP),
            Self::PgsqlAuthentication => pgsql::judge_part(received),
            Self::RedisPong => wrong_status(first_line(received)),
            Self::SmtpGreeting => invalid(first_line(received)),
            Self::SmtpHello | Self::SmtpQuit => smtp::not_positive(received),
            Self::SpopHello { .. } => spop::judge_part(received),
            Self::SslHello if !received.is_empty() => ssl_hello::pass(received),
            Self::LdapBound | Self::MysqlPacket | Self::SslHello => invalid(b""),
        }
    }
}

fn invalid(text: &[u8]) -> ReplyVerdict<'_> {
    ReplyVerdict::Fail {
        kind: ReplyFailure::InvalidResponse,
        code: None,
        text,
    }
}

/// A failure that the reply gives no code for.
fn wrong_status(text: &[u8]) -> ReplyVerdict<'_> {
    ReplyVerdict::Fail {
        kind: ReplyFailure::WrongStatus,
        code: Some(0),
        text,
    }
}

fn first_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|b| matches!(b, b'\r' | b'\n' | 0));
    &bytes[..end.unwrap_or(bytes.len())]
}

#[cfg(test)]
mod tests;
