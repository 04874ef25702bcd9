//! `set-log-level`, `do-log`: the log line of the exchange.

use std::sync::Arc;

use ballast_expr::{Error, Needs};

use crate::args::Args;
use crate::log_profile::{LogProfile, LogStep, Profiles};
use crate::perform::{Perform, boxed};
use crate::reference::Reference;
use crate::row::ActionRow;
use crate::ruleset::{RuleSet, RuleSetFlags};
use crate::stage::{ActionOutcome, Stage};
use crate::transaction::LogLevel;

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "set-log-level",
        RuleSetFlags::of(&[
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
            RuleSet::HttpAfterResponse,
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
            RuleSet::QuicInitial,
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
            RuleSet::HttpAfterResponse,
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

fn do_log(args: &mut Args<'_, '_, '_>) -> Result<DoLog, Error> {
    let mut profile = None;
    if args.take("profile") {
        let name = args.text("'profile' expects a log-profile name")?;
        args.refer_to(Reference::LogProfile(name.to_owned()));
        profile = Some(NamedProfile {
            name: name.to_owned(),
            profile: None,
        });
    }
    Ok(DoLog {
        step: LogStep::of_rule(args.place),
        profile,
    })
}

impl Perform for DoLog {
    fn perform(&self, stage: &mut Stage<'_>) -> ActionOutcome {
        let named = self.profile.as_ref();
        let profile = named.and_then(|named| named.profile.as_deref());
        stage.transaction.write_log(self.step, profile);
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

fn level(args: &mut Args<'_, '_, '_>) -> Result<LogLevel, Error> {
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
    fn perform(&self, stage: &mut Stage<'_>) -> ActionOutcome {
        stage.transaction.set_log_level(*self);
        ActionOutcome::Next
    }
}
