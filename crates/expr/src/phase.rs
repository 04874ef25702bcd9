//! Where in the life of a connection an expression is evaluated, and where a sample may be asked.
//!
//! The 22 phases are HAProxy's (`haproxy -dKsmp` prints them as its matrix's columns).

use std::fmt;
use std::ops::{BitAnd, BitOr};

macro_rules! phases {
    ($($(#[$doc:meta])* $name:ident = $bit:expr, $text:expr;)*) => {
        /// A phase: when, in the life of a connection, an expression is evaluated.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[repr(u8)]
        pub enum Phase { $($(#[$doc])* $name = $bit,)* }

        impl Phase {
            /// Every phase, in the order a connection meets them.
            pub const ALL: &'static [Phase] = &[$(Phase::$name),*];

            /// The phase in HAProxy's words, as its messages name it.
            pub const fn text(self) -> &'static str {
                match self { $(Phase::$name => $text,)* }
            }
        }
    };
}

phases! {
    /// `tcp-request connection` of a frontend.
    FrontendConnection = 0, "frontend tcp-request connection rule";
    /// `tcp-request session` of a frontend.
    FrontendSession = 1, "frontend tcp-request session rule";
    /// `tcp-request content` of a frontend.
    FrontendContent = 2, "frontend tcp-request content rule";
    /// `http-request` of a frontend.
    FrontendRequest = 3, "frontend http-request header rule";
    /// Request body of a frontend.
    FrontendRequestBody = 4, "frontend http-request body rule";
    /// `use_backend`.
    UseBackend = 5, "frontend use-backend rule";
    /// `tcp-request content` of a backend.
    BackendContent = 6, "backend tcp-request content rule";
    /// `http-request` of a backend.
    BackendRequest = 7, "backend http-request header rule";
    /// Request body of a backend.
    BackendRequestBody = 8, "backend http-request body rule";
    /// `use-server`, `balance`, `stick match`.
    SelectServer = 9, "backend use-server, balance or stick-match rule";
    /// `source`, `sni` and other settings of the connection to the server.
    ServerConnect = 10, "server source selection";
    /// `tcp-response content` of a backend.
    BackendResponseContent = 11, "backend tcp-response content rule";
    /// `http-response` of a backend.
    BackendResponse = 12, "backend http-response header rule";
    /// Response body of a backend.
    BackendResponseBody = 13, "backend http-response body rule";
    /// `stick store-response`.
    StickStore = 14, "backend stick-store rule";
    /// `tcp-response content` seen from the frontend.
    FrontendResponseContent = 15, "frontend tcp-response content rule";
    /// `http-response` of a frontend.
    FrontendResponse = 16, "frontend http-response header rule";
    /// Response body of a frontend.
    FrontendResponseBody = 17, "frontend http-response body rule";
    /// `log-format` and the other log lines.
    Log = 18, "logs";
    /// `tcp-check` and `http-check`.
    Check = 19, "backend tcp-check rule";
    /// `set-var` in the global section, `.if`.
    Config = 20, "configuration parser";
    /// The Runtime API.
    Cli = 21, "CLI parser";
}

/// A set of phases.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Phases(pub u32);

impl Phases {
    /// No phase at all.
    pub const NONE: Phases = Phases(0);
    /// Everywhere.
    pub const ALWAYS: Phases = Phases::span(0, 21);
    /// Everywhere but in the configuration parser.
    pub const RUNNING: Phases = Phases(Phases::ALWAYS.0 & !(1 << 20));
    /// As long as the client's connection is there, checks included.
    pub const CONNECTION: Phases = Phases::span(0, 19);
    /// As long as the client's connection is there, checks excluded.
    pub const CLIENT: Phases = Phases::span(0, 18);
    /// From the client's session to the log.
    pub const SESSION: Phases = Phases::span(1, 18);
    /// While the request is in the buffer.
    pub const REQUEST: Phases = Phases::span(2, 10);
    /// From the request to the log.
    pub const TRANSACTION: Phases = Phases::span(2, 18);
    /// While a request or a response is in the buffer.
    pub const BUFFER: Phases = Phases(Phases::span(2, 17).0 | 1 << 19);
    /// From the choice of the backend on.
    pub const BACKEND: Phases = Phases::span(6, 19);
    /// From the choice of the server to the log.
    pub const ROUTED: Phases = Phases::span(9, 18);
    /// Once the server is known.
    pub const SERVER: Phases = Phases::span(10, 19);
    /// Once the server has answered.
    pub const SERVER_SIDE: Phases = Phases::span(11, 19);
    /// While the response is in the buffer.
    pub const RESPONSE: Phases = Phases(Phases::span(11, 17).0 | 1 << 19);

    /// The set of one phase.
    pub const fn only(phase: Phase) -> Phases {
        Phases(1 << phase as u8)
    }

    /// The phases `first..=last` by number.
    pub const fn span(first: u8, last: u8) -> Phases {
        Phases((1 << (last + 1)) - (1 << first))
    }

    /// Whether `phase` is in the set.
    pub const fn has(self, phase: Phase) -> bool {
        self.0 & (1 << phase as u8) != 0
    }

    /// Whether the sets share a phase.
    pub const fn intersects(self, other: Phases) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitAnd for Phases {
    type Output = Phases;
    fn bitand(self, other: Phases) -> Phases {
        Phases(self.0 & other.0)
    }
}

impl BitOr for Phases {
    type Output = Phases;
    fn bitor(self, other: Phases) -> Phases {
        Phases(self.0 | other.0)
    }
}

impl From<Phase> for Phases {
    fn from(phase: Phase) -> Phases {
        Phases::only(phase)
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = false;
        for phase in Phase::ALL.iter().filter(|phase| self.has(**phase)) {
            if rest {
                f.write_str(", ")?;
            }
            rest = true;
            f.write_str(phase.text())?;
        }
        Ok(())
    }
}
