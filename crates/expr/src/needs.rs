//! What an expression, a condition or an action needs before it can answer or act.
//!
//! Each row of a catalogue states its needs. They are folded into expressions, log formats,
//! conditions and rules, so that machinery asks a bit and knows no word of the language.

use std::fmt;
use std::ops::{BitAnd, BitOr};

use crate::phase::{Phase, Phases};

macro_rules! needs {
    ($($(#[$doc:meta])* $name:ident = $bit:expr;)*) => {
        /// A set of needs.
        #[derive(Clone, Copy, Default, Eq, Hash, PartialEq)]
        pub struct Needs(u32);

        impl Needs {
            $($(#[$doc])* pub const $name: Needs = Needs(1 << $bit);)*

            const NAMES: &'static [(Needs, &'static str)] =
                &[$((Needs::$name, stringify!($name)),)*];
        }
    };
}

needs! {
    /// The client's connection: addresses, PROXY header, TLS session (`src`, `ssl_c_s_dn`).
    CONNECTION = 0;
    /// The client's first TLS message, read from its raw bytes (`req.ssl_sni`).
    TLS_HELLO = 1;
    /// The client's bytes as they came (`req.len`, `req.payload`).
    REQUEST_BYTES = 2;
    /// The head of the request (`path`, `req.hdr`).
    REQUEST_HEAD = 3;
    /// The body of the request (`req.body`).
    REQUEST_BODY = 4;
    /// The backend or the server that was chosen (`be_name`, `srv_id`).
    SERVER = 5;
    /// Both ends of the connection to the server (`bc_src`, `%si`): the system is asked for them.
    SERVER_ADDRESSES = 6;
    /// The server's bytes as they came (`res.payload`).
    RESPONSE_BYTES = 7;
    /// The head of the response (`status`, `res.hdr`).
    RESPONSE_HEAD = 8;
    /// The body of the response (`res.body`).
    RESPONSE_BODY = 9;
    /// A stick table (`sc_conn_cur`, `track-sc0`).
    TABLE = 10;
    /// The answer of a name server (`do-resolve`).
    RESOLUTION = 11;
    /// The end of content inspection (`wait_end`).
    INSPECTION_END = 12;
    /// Time that an action lets pass (`pause`, `tarpit`).
    TIME = 13;
    /// The end of the handshake with the client, where early data came (`wait-for-handshake`).
    HANDSHAKE = 14;
    /// A body that an action waits for, of either message (`wait-for-body`).
    AWAITED_BODY = 15;
    /// The result of a slow hash of the password that the client sent (`http_auth`).
    PASSWORD = 16;
}

impl Needs {
    /// Nothing at all.
    pub const NONE: Needs = Needs(0);

    /// The bytes as they came, which an HTTP proxy does not keep (manual 7.3.5).
    pub const RAW_BYTES: Needs = Needs::TLS_HELLO
        .and(Needs::REQUEST_BYTES)
        .and(Needs::RESPONSE_BYTES);

    /// What is read from the first bytes of a TCP session.
    pub const FIRST_BYTES: Needs = Needs::TLS_HELLO
        .and(Needs::REQUEST_BYTES)
        .and(Needs::REQUEST_HEAD);

    /// What is read from bodies.
    pub const BODIES: Needs = Needs::REQUEST_BODY.and(Needs::RESPONSE_BODY);

    /// What actions need and no sample does.
    pub const OF_ACTIONS: Needs = Needs::RESOLUTION
        .and(Needs::TIME)
        .and(Needs::HANDSHAKE)
        .and(Needs::AWAITED_BODY);

    /// What a sample needs that may be asked in these phases, unless its row says otherwise.
    pub const fn of(phases: Phases) -> Needs {
        if phases.has(Phase::Cli) {
            Needs::NONE
        } else if phases.has(Phase::FrontendSession) {
            Needs::CONNECTION
        } else if phases.has(Phase::FrontendContent) {
            Needs::REQUEST_HEAD
        } else if phases.has(Phase::ServerConnect) {
            Needs::SERVER
        } else {
            Needs::RESPONSE_HEAD
        }
    }

    /// Both sets; `|` for constants.
    pub const fn and(self, other: Needs) -> Needs {
        Needs(self.0 | other.0)
    }

    /// What is in this set and not in the other.
    pub const fn without(self, other: Needs) -> Needs {
        Needs(self.0 & !other.0)
    }

    /// Whether the sets share a need.
    pub const fn intersects(self, other: Needs) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether nothing is needed.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl BitAnd for Needs {
    type Output = Needs;
    fn bitand(self, other: Needs) -> Needs {
        Needs(self.0 & other.0)
    }
}

impl BitOr for Needs {
    type Output = Needs;
    fn bitor(self, other: Needs) -> Needs {
        self.and(other)
    }
}

impl fmt::Debug for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Needs::NAMES.iter().filter(|(bit, _)| self.intersects(*bit));
        f.debug_set().entries(names.map(|(_, name)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AclSet, Condition, Expr, LogFormat, Usage, fetches};

    /// What a client's session does not have from its beginning.
    const COMES_LATER: Needs = Needs::FIRST_BYTES
        .and(Needs::REQUEST_BODY)
        .and(Needs::SERVER)
        .and(Needs::SERVER_ADDRESSES)
        .and(Needs::RESPONSE_BYTES)
        .and(Needs::RESPONSE_HEAD)
        .and(Needs::RESPONSE_BODY)
        .and(Needs::INSPECTION_END);

    #[test]
    fn what_a_session_does_not_have_is_needed_later() {
        for row in fetches().filter(|row| row.is_implemented()) {
            let later = !row.phases.has(Phase::FrontendSession)
                || row.word == "wait_end"
                || row.needs == Needs::TLS_HELLO;
            assert_eq!(row.needs.intersects(COMES_LATER), later, "{}", row.word);
        }
    }

    #[test]
    fn needs_are_folded() {
        let expr = |text| Expr::parse(text).unwrap().needs();
        assert_eq!(expr("str(a),upper"), Needs::NONE);
        assert_eq!(
            expr("src,table_conn_cnt(t)"),
            Needs::CONNECTION | Needs::TABLE
        );
        assert_eq!(expr("req.ssl_sni"), Needs::TLS_HELLO);
        assert_eq!(expr("be_name"), Needs::SERVER);
        let format = |text| LogFormat::parse(text, Usage::Log).unwrap().needs();
        assert_eq!(format("plain %ci"), Needs::NONE);
        assert_eq!(format("%si"), Needs::SERVER_ADDRESSES);
        assert_eq!(
            format("%[bc_dst] %[req.body]"),
            Needs::SERVER_ADDRESSES | Needs::REQUEST_BODY
        );
        let mut acls = AclSet::new();
        acls.declare(&["late", "wait_end"]).unwrap();
        acls.declare(&["late", "req.len", "gt", "3"]).unwrap();
        let words = ["if", "late", "!{", "src", "::1", "}", "||", "METH_GET"];
        let condition = Condition::parse(&words, &acls).unwrap();
        assert_eq!(
            condition.needs(&acls),
            Needs::INSPECTION_END | Needs::REQUEST_BYTES | Needs::CONNECTION | Needs::REQUEST_HEAD
        );
    }
}
