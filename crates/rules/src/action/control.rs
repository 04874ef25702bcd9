//! `allow`, `accept`, `reject`, `strict-mode`: actions that control the evaluation of rules.

use ballast_expr::ExpressionError;

use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::verdict::Verdict;

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "accept",
        RuleSetFlags::of(&[
            RuleSetKind::QuicInitial,
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
        ]),
        "",
        "pass over the rest of the rules of this place",
        |_| boxed(Ok(Allow)),
    )
    .ends_the_set()
    .examples(&["accept", "accept if TRUE"], &["accept now"]),
    ActionRow::new(
        "allow",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "",
        "pass over the rest of the rules of this place",
        |_| boxed(Ok(Allow)),
    )
    .ends_the_set()
    .examples(&["allow", "allow unless FALSE"], &["allow it", "allow if"]),
    ActionRow::new(
        "reject",
        RuleSetFlags::of(&[
            RuleSetKind::QuicInitial,
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
        ]),
        "",
        "close the connection without an answer",
        |_| boxed(Ok(Reject)),
    )
    .ends_the_set()
    .examples(&["reject", "reject if { src 10.0.0.0/8 }"], &["reject 403"]),
    ActionRow::new(
        "strict-mode",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "{ on | off }",
        "whether a failed rewrite ends the exchange",
        |args| boxed(strict_mode(args)),
    )
    .examples(
        &["strict-mode on", "strict-mode off if TRUE"],
        &["strict-mode", "strict-mode maybe"],
    ),
];

/// `allow`, `accept`.
#[derive(Clone, Debug, PartialEq)]
struct Allow;

/// `reject`.
#[derive(Clone, Debug, PartialEq)]
struct Reject;

/// `strict-mode`, and whether it is on.
#[derive(Clone, Debug, PartialEq)]
struct StrictMode(bool);

fn strict_mode(args: &mut Args<'_, '_, '_>) -> Result<StrictMode, ExpressionError> {
    match args.text("expects exactly 1 arguments")? {
        "on" => Ok(StrictMode(true)),
        "off" => Ok(StrictMode(false)),
        _ => Err(args.unknown("value", ["on", "off"])),
    }
}

impl Perform for Allow {
    fn perform(&self, _run_state: &mut RunState<'_>) -> ActionOutcome {
        ActionOutcome::Stop(Verdict::Allow)
    }
}

impl Perform for Reject {
    fn perform(&self, _run_state: &mut RunState<'_>) -> ActionOutcome {
        ActionOutcome::Stop(Verdict::Close)
    }
}

impl Perform for StrictMode {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        run_state.strict = self.0;
        ActionOutcome::Next
    }
}
