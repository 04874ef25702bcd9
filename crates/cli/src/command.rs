//! The commands of the Runtime API, as rows of a catalogue.

use std::rc::Rc;

use ballast_model::CliLevel;

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::session::{CliSession, RequiredMode};
use crate::shared::CliShared;

/// The commands of a process, by family.
pub type CommandFamilies = &'static [&'static [Command]];

/// A command: its words, its help, who may give it, and its handler.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// The words that select it.
    pub words: &'static [&'static str],
    /// The words and the arguments, as help shows them.
    pub usage: &'static str,
    /// What it does, in a few words.
    pub help: &'static str,
    /// The level of callers that may give it.
    pub level: CliLevel,
    /// Which mode the session must have switched on.
    pub restriction: RequiredMode,
    /// Which part of the process it changes, if any: then it is logged.
    pub(crate) changes: Option<ChangeScope>,
    /// Its arguments are secret: logs show its words only.
    pub(crate) has_secrets: bool,
    /// Help shows it at the end, whatever words it was asked for.
    pub(crate) always_shown: bool,
    pub(crate) handler: fn(&mut CommandCall<'_>) -> CommandAnswer,
}

/// A command that was given: what its handler may read and change.
pub struct CommandCall<'c> {
    /// The words that follow those of the row.
    pub args: &'c [String],
    /// The payload.
    pub payload: Option<Vec<u8>>,
    /// The caller's session.
    pub session: &'c mut CliSession,
    pub(crate) shared: &'c Rc<CliShared>,
    /// The commands of this process.
    pub(crate) commands: CommandFamilies,
}

impl CommandCall<'_> {
    /// An argument; empty when there is none.
    pub fn arg(&self, index: usize) -> &str {
        self.args.get(index).map_or("", String::as_str)
    }
}

impl Command {
    /// Whether it makes the process larger for good.
    pub(crate) fn adds(&self) -> bool {
        matches!(self.words.first(), Some(&("add" | "new")))
    }

    /// A row for callers of any level.
    pub(crate) const fn new(
        words: &'static [&'static str],
        usage: &'static str,
        help: &'static str,
        handler: fn(&mut CommandCall<'_>) -> CommandAnswer,
    ) -> Self {
        Self {
            words,
            usage,
            help,
            level: CliLevel::User,
            restriction: RequiredMode::Nothing,
            changes: None,
            has_secrets: false,
            always_shown: false,
            handler,
        }
    }

    /// The command changes this part of the process, and is logged.
    pub(crate) const fn changing(mut self, kind: ChangeScope) -> Self {
        self.changes = Some(kind);
        self
    }

    /// Its arguments are secret: logs show its words only.
    pub(crate) const fn with_secrets(mut self) -> Self {
        self.has_secrets = true;
        self
    }

    /// Only for callers of at least this level.
    pub(crate) const fn for_level(mut self, level: CliLevel) -> Self {
        self.level = level;
        self
    }

    /// Only for sessions that have switched on this mode.
    pub(crate) const fn restricted(mut self, restriction: RequiredMode) -> Self {
        self.restriction = restriction;
        self
    }

    /// Help shows it at the end, whatever words it was asked for.
    pub(crate) const fn always_shown(mut self) -> Self {
        self.always_shown = true;
        self
    }
}
