//! The places that rules belong to.

use std::fmt;

use ballast_expr::{Phase, Phases};

/// A place that rules belong to.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum RuleSet {
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

impl RuleSet {
    /// Every place.
    pub const ALL: [RuleSet; 9] = [
        RuleSet::QuicInitial,
        RuleSet::TcpConnection,
        RuleSet::TcpSession,
        RuleSet::TcpContent,
        RuleSet::TcpResponse,
        RuleSet::HttpRequest,
        RuleSet::HttpResponse,
        RuleSet::HttpAfterResponse,
        RuleSet::Redirect,
    ];

    /// The words at the start of its lines.
    pub const fn words(self) -> &'static str {
        match self {
            RuleSet::QuicInitial => "quic-initial",
            RuleSet::TcpConnection => "tcp-request connection",
            RuleSet::TcpSession => "tcp-request session",
            RuleSet::TcpContent => "tcp-request content",
            RuleSet::TcpResponse => "tcp-response content",
            RuleSet::HttpRequest => "http-request",
            RuleSet::HttpResponse => "http-response",
            RuleSet::HttpAfterResponse => "http-after-response",
            RuleSet::Redirect => "redirect",
        }
    }

    /// Whether its rules see HTTP messages.
    pub const fn is_http(self) -> bool {
        matches!(
            self,
            RuleSet::HttpRequest
                | RuleSet::HttpResponse
                | RuleSet::HttpAfterResponse
                | RuleSet::Redirect
        )
    }

    /// Whether its rules run on a response.
    pub const fn is_response(self) -> bool {
        matches!(
            self,
            RuleSet::TcpResponse | RuleSet::HttpResponse | RuleSet::HttpAfterResponse
        )
    }

    /// Whether its rules are run. Rules of the others are only checked, and
    /// [`crate::RuleSets::unimplemented`] names the place.
    pub const fn is_implemented(self) -> bool {
        !matches!(self, RuleSet::QuicInitial)
    }

    /// Where its expressions are evaluated, in a proxy with these capabilities.
    pub fn phases(self, capability: Capability) -> Phases {
        let (front, back) = match self {
            RuleSet::QuicInitial | RuleSet::TcpConnection => (Phase::FrontendConnection, None),
            RuleSet::TcpSession => (Phase::FrontendSession, None),
            RuleSet::TcpContent => (Phase::FrontendContent, Some(Phase::BackendContent)),
            RuleSet::TcpResponse => (
                Phase::FrontendResponseContent,
                Some(Phase::BackendResponseContent),
            ),
            RuleSet::HttpRequest | RuleSet::Redirect => {
                (Phase::FrontendRequest, Some(Phase::BackendRequest))
            }
            RuleSet::HttpResponse | RuleSet::HttpAfterResponse => {
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

impl fmt::Display for RuleSet {
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

/// A set of places.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RuleSetFlags(u16);

impl RuleSetFlags {
    /// These places.
    pub(crate) const fn of(rule_sets: &[RuleSet]) -> RuleSetFlags {
        let mut bits = 0;
        let mut at = 0;
        while at < rule_sets.len() {
            bits |= 1 << rule_sets[at] as u8;
            at += 1;
        }
        RuleSetFlags(bits)
    }

    /// The same places and the `redirect` keyword.
    pub(crate) const fn and_redirect(self) -> RuleSetFlags {
        RuleSetFlags(self.0 | 1 << RuleSet::Redirect as u8)
    }

    /// Whether the place is in the set.
    pub const fn has(self, place: RuleSet) -> bool {
        self.0 & (1 << place as u8) != 0
    }

    /// The places in the set.
    pub fn iter(self) -> impl Iterator<Item = RuleSet> {
        RuleSet::ALL
            .into_iter()
            .filter(move |place| self.has(*place))
    }
}

impl fmt::Display for RuleSetFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, place) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            write!(f, "'{place}'")?;
        }
        Ok(())
    }
}
