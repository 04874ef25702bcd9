//! Log lines about state changes, equal to HAProxy's to the byte.

use std::fmt::{self, Write as _};

use crate::check::CheckState;
use crate::operational::Operational;
use crate::status::{CheckOutcome, CheckResult, CheckStatus};

/// Syslog severity of a line, by HAProxy's names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LineSeverity {
    /// Down, going into maintenance. (`[WARNING]` on the console.)
    Alert,
    /// A backend without servers. (`[ALERT]` on the console.)
    Emerg,
    /// Everything else. (`[WARNING]` on the console.)
    Notice,
}

/// Why a server changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TransitionCause {
    /// A check or agent found something, or traffic did.
    Check(CheckOutcome),
    /// `set server ... health|agent`.
    Cli,
    /// None (a slow start ended).
    None,
    /// The server it tracks changed.
    Tracked,
}

/// What changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StateChange {
    /// Running to stopped.
    Down,
    /// Begins to drain; tells whether the server was down.
    EntersDrain {
        /// It was down already.
        was_down: bool,
    },
    /// Goes into maintenance; tells whether the server was down.
    EntersMaint {
        /// It was down already.
        was_down: bool,
    },
    /// Leaves drain.
    LeavesDrain {
        /// The drain was forced, not inherited.
        forced: bool,
    },
    /// Leaves maintenance.
    LeavesMaint {
        /// Maintenance was forced, not inherited.
        forced: bool,
    },
    /// A reason to drain was added or removed, or maintenance ended, and the server still drains.
    RemainsDrain {
        /// The drain is forced, not only inherited.
        forced: bool,
    },
    /// No new sessions (404, or forced).
    Stopping,
    /// Stopped or stopping to running; also the end of a slow start.
    Up,
}

/// A change to log and to pass on to the servers that track this one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HealthTransition {
    /// Why.
    pub cause: TransitionCause,
    /// What.
    pub change: StateChange,
    /// Whether it drains afterwards.
    pub drains: bool,
    /// Operating state afterwards.
    pub operational: Operational,
    /// Whether it already took no new sessions before: then its failure is no alert.
    pub was_stopping: bool,
    /// Whether it follows from a change of the tracked server.
    pub via_tracked: bool,
}

/// Figures of the backend after the change took effect.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BackendCounts {
    /// Usable servers that are not backups.
    pub active: u32,
    /// Usable backup servers.
    pub backup: u32,
    /// Requests waiting in the server's or backend's queue.
    pub queued: u32,
    /// Requests moved from its queue to others (down) or to it (up).
    pub requeued: u32,
    /// Sessions the server still has.
    pub sessions: u32,
}

impl HealthTransition {
    /// Severity of the line.
    #[must_use]
    pub const fn level(&self) -> LineSeverity {
        match self.change {
            StateChange::Down | StateChange::EntersMaint { was_down: false }
                if !self.was_stopping =>
            {
                LineSeverity::Alert
            }
            _ => LineSeverity::Notice,
        }
    }

    /// The line.
    ///
    /// `tracked` is `backend/server` of the tracked server, if any. `reasons` is false where
    /// `option log-health-checks` already told the reason in a line of its own.
    #[must_use]
    pub fn line(
        &self,
        backend: &str,
        server: &str,
        is_backup: bool,
        tracked: Option<&str>,
        reasons: bool,
        counts: &BackendCounts,
    ) -> String {
        let mut line = String::with_capacity(192);
        let kind = if is_backup { "Backup " } else { "" };
        // Writing to a String cannot fail, here and below.
        let _ = write!(line, "{kind}Server {backend}/{server} ");
        let via = ViaTracked(if self.via_tracked { tracked } else { None });
        let up = if self.operational == Operational::Stopped {
            "DOWN"
        } else {
            "UP"
        };
        let _ = match self.change {
            StateChange::Down => write!(line, "is DOWN{via}{}", self.reason(reasons)),
            StateChange::Up => write!(line, "is UP{via}{}", self.reason(reasons)),
            StateChange::Stopping => write!(line, "is stopping{via}{}", self.reason(reasons)),
            StateChange::EntersDrain { .. } => write!(line, "enters drain state{via}"),
            StateChange::RemainsDrain { forced: true } => {
                write!(line, "remains in forced drain mode")
            }
            StateChange::RemainsDrain { forced: false } => {
                let via = ViaTracked(tracked);
                write!(line, "remains in drain mode{via}")
            }
            StateChange::LeavesDrain { forced } => {
                let how = if forced { "forced " } else { "" };
                write!(line, "is {up} (leaving {how}drain){via}")
            }
            StateChange::EntersMaint { was_down: true } => {
                write!(line, "was DOWN and now enters maintenance{via}")
            }
            StateChange::EntersMaint { was_down: false } => {
                write!(line, "is going DOWN for maintenance{via}")
            }
            StateChange::LeavesMaint { forced } => {
                let mode = if self.drains { "DRAIN" } else { "READY" };
                let how = if forced { "forced " } else { "" };
                write!(line, "is {up}/{mode} (leaving {how}maintenance)")
            }
        };
        line.push('.');
        self.append_counts(&mut line, counts);
        line
    }

    fn append_counts(&self, line: &mut String, counts: &BackendCounts) {
        let leaves = match self.change {
            StateChange::Down | StateChange::EntersMaint { was_down: false } => true,
            StateChange::EntersDrain { was_down } => was_down,
            StateChange::Stopping | StateChange::Up => false,
            StateChange::EntersMaint { was_down: true }
            | StateChange::LeavesDrain { .. }
            | StateChange::LeavesMaint { .. }
            | StateChange::RemainsDrain { .. } => return,
        };
        let BackendCounts {
            active,
            backup,
            queued,
            requeued,
            sessions,
        } = counts;
        let on_backup = if *active == 0 && *backup > 0 {
            " Running on backup."
        } else {
            ""
        };
        let _ = if leaves {
            write!(
                line,
                " {active} active and {backup} backup servers left.{on_backup} {sessions} \
                 sessions active, {requeued} requeued, {queued} remaining in queue."
            )
        } else {
            write!(
                line,
                " {active} active and {backup} backup servers online.{on_backup} {requeued} \
                 sessions requeued, {queued} total in queue."
            )
        };
    }

    fn reason(&self, reasons: bool) -> ReasonText<'_> {
        match &self.cause {
            TransitionCause::Check(verdict) if reasons => ReasonText::Check(verdict),
            TransitionCause::Cli => ReasonText::Cli,
            TransitionCause::Check(_) | TransitionCause::None | TransitionCause::Tracked => {
                ReasonText::None
            }
        }
    }
}

/// A line of `option log-health-checks`: a check whose result or counter changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CheckReport {
    /// Whether it was an agent check.
    pub agent: bool,
    /// Fall limit.
    pub fall: u32,
    /// Health counter afterwards.
    pub health: u32,
    /// Rise limit.
    pub rise: u32,
    /// The result.
    pub verdict: CheckOutcome,
    /// Whether the server's weight is zero.
    pub weightless: bool,
}

impl CheckReport {
    pub(crate) fn new(
        agent: bool,
        check: &CheckState,
        verdict: &CheckOutcome,
        weightless: bool,
    ) -> Self {
        let (fall, rise) = (check.settings.fall, check.settings.rise);
        let verdict = verdict.clone();
        Self {
            agent,
            fall,
            health: check.health,
            rise,
            verdict,
            weightless,
        }
    }

    /// The line (severity notice).
    #[must_use]
    pub fn line(&self, backend: &str, server: &str, is_backup: bool) -> String {
        let who = if self.agent { "Agent" } else { "Health" };
        let kind = if is_backup { "backup " } else { "" };
        let how = match self.verdict.status.result() {
            CheckResult::Conditional => "conditionally succeeded",
            CheckResult::Passed => "succeeded",
            CheckResult::Failed | CheckResult::Neutral | CheckResult::Unknown => "failed",
        };
        let reason = ReasonText::Check(&self.verdict);
        let (step, of, state) = if self.health >= self.rise {
            let state = if self.weightless { "DRAIN" } else { "UP" };
            (self.health - self.rise + 1, self.fall, state)
        } else {
            (self.health, self.rise, "DOWN")
        };
        format!(
            "{who} check for {kind}server {backend}/{server} {how}{reason}, status: {step}/{of} \
             {state}."
        )
    }
}

/// The line for a backend that lost its last usable server (severity emergency). `kind` is the word
/// for it, `proxy` for a `listen` section. On the console the name is quoted.
#[must_use]
pub fn no_server_line(kind: &str, name: &str, console: bool) -> String {
    if console {
        format!("{kind} '{name}' has no server available!")
    } else {
        format!("{kind} {name} has no server available!")
    }
}

struct ViaTracked<'a>(Option<&'a str>);

impl fmt::Display for ViaTracked<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .map_or(Ok(()), |tracked| write!(out, " via {tracked}"))
    }
}

enum ReasonText<'a> {
    Check(&'a CheckOutcome),
    Cli,
    None,
}

impl fmt::Display for ReasonText<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self {
            Self::Check(verdict) => verdict,
            Self::Cli => return out.write_str(", changed from CLI"),
            Self::None => return Ok(()),
        };
        write!(out, ", reason: {}", verdict.status.description())?;
        if verdict.status.has_code() {
            write!(out, ", code: {}", verdict.code.unwrap_or(0).cast_signed())?;
        }
        if !verdict.info.is_empty() {
            write!(out, ", info: \"{}\"", verdict.info)?;
        }
        match verdict.duration_ms {
            Some(duration) if verdict.status != CheckStatus::Observed => {
                write!(out, ", check duration: {duration}ms")
            }
            _ => Ok(()),
        }
    }
}
