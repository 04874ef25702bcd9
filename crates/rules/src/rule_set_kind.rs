//! The rule sets that rules belong to.

use std::fmt;

use ballast_expr::{Phase, Phases};

/// A rule set: the kind of rules, and when they run.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum RuleSetKind {
    /// `quic-initial`: the first datagram of a QUIC connection.
    QuicInitial,
    /// `tcp-request connection`: right after the accept.
    TcpConnection,
    /// `tcp-request session`: after the handshakes.
    TcpSession,
    /// `tcp-request content`: while the request is being buffered.
    TcpContent,
    /// `tcp-response content`: while the response is being buffered.
    TcpResponse,
    /// `http-request`.
    HttpRequest,
    /// `http-response`: responses of servers.
    HttpResponse,
    /// `http-after-response`: every response, including those made here.
    HttpAfterResponse,
    /// The `redirect` keyword: redirections run after the `http-request` rules, and their strings
    /// are literal.
    Redirect,
}

impl RuleSetKind {
    /// Every rule set.
    pub const ALL: [RuleSetKind; 9] = [
        RuleSetKind::QuicInitial,
        RuleSetKind::TcpConnection,
        RuleSetKind::TcpSession,
        RuleSetKind::TcpContent,
        RuleSetKind::TcpResponse,
        RuleSetKind::HttpRequest,
        RuleSetKind::HttpResponse,
        RuleSetKind::HttpAfterResponse,
        RuleSetKind::Redirect,
    ];

    /// The words at the start of its lines.
    pub const fn words(self) -> &'static str {
        match self {
            RuleSetKind::QuicInitial => "quic-initial",
            RuleSetKind::TcpConnection => "tcp-request connection",
            RuleSetKind::TcpSession => "tcp-request session",
            RuleSetKind::TcpContent => "tcp-request content",
            RuleSetKind::TcpResponse => "tcp-response content",
            RuleSetKind::HttpRequest => "http-request",
            RuleSetKind::HttpResponse => "http-response",
            RuleSetKind::HttpAfterResponse => "http-after-response",
            RuleSetKind::Redirect => "redirect",
        }
    }

    /// Whether its rules see HTTP messages.
    pub const fn is_http(self) -> bool {
        matches!(
            self,
            RuleSetKind::HttpRequest
                | RuleSetKind::HttpResponse
                | RuleSetKind::HttpAfterResponse
                | RuleSetKind::Redirect
        )
    }

    /// Whether its rules run on a response.
    pub const fn is_response(self) -> bool {
        matches!(
            self,
            RuleSetKind::TcpResponse | RuleSetKind::HttpResponse | RuleSetKind::HttpAfterResponse
        )
    }

    /// Whether its rules are run. Rules of the others are only checked, and
    /// [`crate::RuleSets::unimplemented`] names the rule set.
    pub const fn is_implemented(self) -> bool {
        !matches!(self, RuleSetKind::QuicInitial)
    }

    /// Where its expressions are evaluated, in a proxy with these capabilities.
    pub fn phases(self, capability: Capability) -> Phases {
        let (front, back) = match self {
            RuleSetKind::QuicInitial | RuleSetKind::TcpConnection => {
                (Phase::FrontendConnection, None)
            }
            RuleSetKind::TcpSession => (Phase::FrontendSession, None),
            RuleSetKind::TcpContent => (Phase::FrontendContent, Some(Phase::BackendContent)),
            RuleSetKind::TcpResponse => (
                Phase::FrontendResponseContent,
                Some(Phase::BackendResponseContent),
            ),
            RuleSetKind::HttpRequest | RuleSetKind::Redirect => {
                (Phase::FrontendRequest, Some(Phase::BackendRequest))
            }
            RuleSetKind::HttpResponse | RuleSetKind::HttpAfterResponse => {
                (Phase::FrontendResponse, Some(Phase::BackendResponse))
            }
        };
        let mut phases = Phases::NONE;
        if capability.frontend || back.is_none() {
            phases = phases | Phases::only(front);
        }
        if let (true, Some(back)) = (capability.backend, back) {
            phases = phases | Phases::only(back);
        }
        phases
    }
}

impl fmt::Display for RuleSetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// The sides that a proxy faces. A `defaults` section faces both.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Capability {
    /// Clients: `frontend` and `listen`.
    pub frontend: bool,
    /// Servers: `backend` and `listen`.
    pub backend: bool,
}

/// A selection of rule sets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RuleSetFlags(u16);

impl RuleSetFlags {
    /// These rule sets.
    pub(crate) const fn of(rule_sets: &[RuleSetKind]) -> RuleSetFlags {
        let mut bits = 0;
        let mut at = 0;
        while at < rule_sets.len() {
            bits |= 1 << rule_sets[at] as u8;
            at += 1;
        }
        RuleSetFlags(bits)
    }

    /// The same rule sets and the `redirect` keyword.
    pub(crate) const fn and_redirect(self) -> RuleSetFlags {
        RuleSetFlags(self.0 | 1 << RuleSetKind::Redirect as u8)
    }

    /// Whether the rule set is selected.
    pub const fn has(self, rule_set: RuleSetKind) -> bool {
        self.0 & (1 << rule_set as u8) != 0
    }

    /// The rule sets that are selected.
    pub fn iter(self) -> impl Iterator<Item = RuleSetKind> {
        RuleSetKind::ALL
            .into_iter()
            .filter(move |rule_set| self.has(*rule_set))
    }
}

impl fmt::Display for RuleSetFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, rule_set) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            write!(f, "'{rule_set}'")?;
        }
        Ok(())
    }
}
