//! `set-log-level`, `do-log`: the log line of the exchange.

use std::sync::Arc;

use ballast_expr::{ExpressionError, Needs};

use crate::args::Args;
use crate::log_profile::{LogProfile, LogStep, Profiles};
use crate::perform::{Perform, boxed};
use crate::reference::RuleReference;
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::transaction::LogLevel;

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "set-log-level",
        RuleSetFlags::of(&[
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "{ emerg | alert | crit | err | warning | notice | info | debug | silent }",
        "set the level of the log line",
        |args| boxed(level(args)),
    )
    .examples(
        &["set-log-level silent", "set-log-level err if TRUE"],
        &["set-log-level", "set-log-level loud", "set-log-level ERR"],
    ),
    ActionRow::new(
        "do-log",
        RuleSetFlags::of(&[
            RuleSetKind::QuicInitial,
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "[ profile <name> ]",
        "write a log line now",
        |args| boxed(do_log(args)),
    )
    .examples(
        &["do-log", "do-log if TRUE", "do-log profile short"],
        &["do-log profile", "do-log now"],
    ),
];

/// `do-log`.
#[derive(Clone, Debug, PartialEq)]
struct DoLog {
    step: LogStep,
    profile: Option<NamedProfile>,
}

/// `profile` of a `do-log`: the name, and what the section of that name says once it is known.
#[derive(Clone, Debug, PartialEq)]
struct NamedProfile {
    name: String,
    profile: Option<Arc<LogProfile>>,
}

fn do_log(args: &mut Args<'_, '_, '_>) -> Result<DoLog, ExpressionError> {
    let mut profile = None;
    if args.take("profile") {
        let name = args.text("'profile' expects a log-profile name")?;
        args.refer_to(RuleReference::LogProfile(name.to_owned()));
        profile = Some(NamedProfile {
            name: name.to_owned(),
            profile: None,
        });
    }
    Ok(DoLog {
        step: LogStep::of_rule(args.rule_set),
        profile,
    })
}

impl Perform for DoLog {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let named = self.profile.as_ref();
        let profile = named.and_then(|named| named.profile.as_deref());
        run_state.transaction.write_log(self.step, profile);
        ActionOutcome::Next
    }

    fn link_profile(&mut self, profiles: &mut Profiles<'_>) -> Needs {
        let Some(named) = &mut self.profile else {
            return Needs::NONE;
        };
        named.profile = profiles(&named.name);
        let profile = named.profile.as_ref();
        profile.map_or(Needs::NONE, |profile| profile.needs())
    }
}

/// Severities by number.
const SEVERITIES: [&str; 8] = [
    "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
];

fn level(args: &mut Args<'_, '_, '_>) -> Result<LogLevel, ExpressionError> {
    const USAGE: &str = "expects exactly 1 argument (log level name or 'silent')";
    let word = args.text(USAGE)?;
    if word == "silent" {
        return Ok(LogLevel::Silent);
    }
    let number = SEVERITIES.iter().position(|known| *known == word);
    match number.and_then(|number| u8::try_from(number).ok()) {
        Some(number) => Ok(LogLevel::Severity(number)),
        None => Err(args.unknown("log level", SEVERITIES.into_iter().chain(["silent"]))),
    }
}

impl Perform for LogLevel {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        run_state.transaction.set_log_level(*self);
        ActionOutcome::Next
    }
}
