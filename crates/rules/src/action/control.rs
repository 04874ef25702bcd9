//! `allow`, `accept`, `reject`, `strict-mode`: actions that control the evaluation of rules.

use ballast_expr::Error;

use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::ruleset::{RuleSet, RuleSetFlags};
use crate::stage::{ActionOutcome, Stage};
use crate::verdict::Verdict;

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "accept",
        RuleSetFlags::of(&[
            RuleSet::QuicInitial,
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
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
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
            RuleSet::HttpAfterResponse,
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
            RuleSet::QuicInitial,
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
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
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
            RuleSet::HttpAfterResponse,
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

fn strict_mode(args: &mut Args<'_, '_, '_>) -> Result<StrictMode, Error> {
    match args.text("expects exactly 1 arguments")? {
        "on" => Ok(StrictMode(true)),
        "off" => Ok(StrictMode(false)),
        _ => Err(args.unknown("value", ["on", "off"])),
    }
}

impl Perform for Allow {
    fn perform(&self, _stage: &mut Stage<'_>) -> ActionOutcome {
        ActionOutcome::Stop(Verdict::Allow)
    }
}

impl Perform for Reject {
    fn perform(&self, _stage: &mut Stage<'_>) -> ActionOutcome {
        ActionOutcome::Stop(Verdict::Close)
    }
}

impl Perform for StrictMode {
    fn perform(&self, stage: &mut Stage<'_>) -> ActionOutcome {
        stage.strict = self.0;
        ActionOutcome::Next
    }
}
