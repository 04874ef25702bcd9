//! The lines of a section about checks, as they are collected.

use ballast_model::{CheckRule, HttpCheckSend, ProtocolCheck};
use ballast_syntax::Span;

/// The kind of check that an `option ...-check` selects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum CheckKind {
    /// None: a connection that opens is enough.
    #[default]
    Connect,
    /// `option httpchk`, with the request its words describe.
    Http(Box<HttpCheckSend>),
    /// `option tcp-check`: the `tcp-check` rules.
    Tcp,
    /// A check that speaks a few steps of a protocol.
    Protocol(ProtocolCheck),
    /// `option external-check`.
    External,
}

/// Rules of one family.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckRules {
    pub(super) steps: Vec<CheckRule>,
    /// The rules come from defaults: the first own rule replaces them all.
    pub(super) inherited: bool,
    /// The place of the first own rule.
    pub(super) first: Option<Span>,
}

impl CheckRules {
    pub(super) fn push(&mut self, step: CheckRule, span: Span) {
        if self.inherited {
            *self = Self::default();
        }
        self.first.get_or_insert(span);
        self.steps.push(step);
    }

    /// Whether the next rule may be a connect: as the first step, or after others when the first
    /// one was a connect too.
    pub(super) fn may_connect(&self) -> bool {
        let first = self.acting().next();
        first.is_none_or(|rule| matches!(rule, CheckRule::Connect(_)))
    }

    /// The last own rule that connects, sends or expects.
    pub(super) fn last_acting(&self) -> Option<&CheckRule> {
        self.acting().next_back()
    }

    /// The own rules that connect, send or expect.
    fn acting(&self) -> impl DoubleEndedIterator<Item = &CheckRule> {
        let own = self.steps.iter().filter(|_| !self.inherited);
        own.filter(|rule| {
            use CheckRule::{Comment, SetVar, UnsetVar};
            !matches!(rule, Comment(_) | SetVar(_) | UnsetVar(_))
        })
    }
}

/// The lines of a section about checks.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckWords {
    pub(super) kind: CheckKind,
    pub(super) kind_span: Option<Span>,
    pub(super) http: CheckRules,
    pub(super) tcp: CheckRules,
    pub(super) disable_on_404: bool,
    pub(super) send_state: bool,
    pub(super) command: Option<(String, Option<Span>)>,
    pub(super) path: Option<(String, Option<Span>)>,
}

impl CheckWords {
    /// `option httpchk`: nothing of the defaults' rules is left.
    pub(super) fn forget_inherited_rules(&mut self) {
        if self.http.inherited {
            self.http = CheckRules::default();
        }
    }

    /// `http-check send`: the request of an `option httpchk` of the defaults is forgotten.
    pub(super) fn forget_inherited_request(&mut self) {
        if let (CheckKind::Http(request), None) = (&mut self.kind, self.kind_span) {
            **request = HttpCheckSend::default();
        }
    }

    /// Whether the checks are of `option httpchk`.
    pub(super) fn is_http(&self) -> bool {
        matches!(self.kind, CheckKind::Http(_))
    }

    /// Whether an option selects checks of another kind: `disable-on-404` and `send-state` are then as if they
    /// had not been said.
    pub(super) fn ignores_states(&self) -> bool {
        matches!(self.kind, CheckKind::Tcp | CheckKind::Protocol(_))
    }

    /// Whether `http-check disable-on-404` is said, where it is not ignored.
    pub(crate) fn disables_on_404(&self) -> bool {
        self.disable_on_404 && !self.ignores_states()
    }

    /// The initial state of a section that uses these defaults.
    pub(crate) fn begin(&mut self) {
        self.http.inherited = true;
        self.tcp.inherited = true;
        self.http.first = None;
        self.tcp.first = None;
        self.kind_span = None;
        for given in [&mut self.command, &mut self.path].into_iter().flatten() {
            given.1 = None;
        }
    }
}
