//! The session of a caller: its level, its modes and its settings.

use std::time::Duration;

use ballast_model::{CliLevel, SeverityOutput};

use crate::shared::{CliShared, TargetWorker};

/// Whether the connection stays open after an answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SessionMode {
    /// The connection closes when one line was answered, whatever follows it.
    #[default]
    OneShot,
    /// It stays open.
    Interactive,
    /// It stays open, and the answers to each line are followed by a prompt.
    Prompt,
}

/// Which mode a session must have switched on before it may give a command.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RequiredMode {
    /// Nothing.
    #[default]
    Nothing,
    /// `experimental-mode on`.
    Experimental,
    /// `expert-mode on`.
    Expert,
}

/// The session of a caller: its level, its modes and its settings.
#[derive(Clone, Debug)]
pub struct CliSession {
    /// The level of the commands that it may give.
    pub level: CliLevel,
    /// How messages are marked.
    pub severity: SeverityOutput,
    /// Whether the connection stays open after an answer.
    pub mode: SessionMode,
    /// The prompt shows the age of the process.
    pub timed: bool,
    /// How long the caller may be silent.
    pub idle: Duration,
    /// It may ask for the listening sockets (`expose-fd listeners`).
    pub(crate) exposes: bool,
    /// It may give commands that are experimental.
    pub(crate) is_experimental: bool,
    /// It may give commands for developers.
    pub(crate) is_expert: bool,
    /// Answers are JSON objects.
    pub(crate) is_json: bool,
    /// Names in answers are replaced by hashes computed with this key (`set anon on`).
    pub(crate) anonymous: Option<u32>,
    /// The caller has asked to end the session.
    pub(crate) quits: bool,
    /// The session ends after the next answer.
    pub(crate) leaves: bool,
    /// The worker that commands are forwarded to (on the master).
    pub(crate) target: Option<TargetWorker>,
    /// The caller, for the log.
    pub(crate) caller: String,
}

impl CliSession {
    pub(crate) fn new(shared: &CliShared, level: CliLevel, severity: SeverityOutput) -> Self {
        Self {
            level,
            severity,
            mode: if shared.is_master() {
                SessionMode::Interactive
            } else {
                SessionMode::OneShot
            },
            timed: false,
            idle: shared.limits.idle,
            exposes: false,
            is_experimental: false,
            is_expert: false,
            is_json: false,
            anonymous: None,
            quits: false,
            leaves: false,
            target: None,
            caller: String::new(),
        }
    }

    /// Whether the session has switched on the mode that a command requires.
    pub(crate) fn allows(&self, restriction: RequiredMode) -> bool {
        match restriction {
            RequiredMode::Nothing => true,
            RequiredMode::Experimental => self.is_experimental,
            RequiredMode::Expert => self.is_expert,
        }
    }
}
