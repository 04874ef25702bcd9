//! A command is a row.

use ballast_model::CliLevel;

use crate::answer::Answer;
use crate::commands;
use crate::session::Session;
use crate::shared::Shared;

/// A command: all its sides.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// The words that select it.
    pub words: &'static [&'static str],
    /// The words and what may follow, as help shows them.
    pub usage: &'static str,
    /// What it does, in a few words.
    pub help: &'static str,
    /// The level of callers that may give it.
    pub level: CliLevel,
    /// What a session must have switched on before.
    pub restriction: Restriction,
    /// What it changes, if anything: the log has a line for it then.
    pub(crate) changes: Option<Changes>,
    /// Help shows it at the end, whatever was asked for.
    pub(crate) always_shown: bool,
    pub(crate) handler: fn(&mut Call<'_>) -> Answer,
}

/// What a session must have switched on before it may give a command.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Restriction {
    /// Nothing.
    #[default]
    Nothing,
    /// `experimental-mode on`.
    Experimental,
    /// `expert-mode on`.
    Expert,
}

/// A command given: what its handler may look at and change.
pub struct Call<'c> {
    /// The words that follow those of the row.
    pub args: &'c [String],
    /// The payload.
    pub payload: Option<Vec<u8>>,
    /// The caller's session.
    pub session: &'c mut Session,
    pub(crate) shared: &'c std::rc::Rc<Shared>,
}

impl Call<'_> {
    /// A word that follows, empty when there is none.
    pub fn arg(&self, place: usize) -> &str {
        self.args.get(place).map_or("", String::as_str)
    }
}

/// What a command changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Changes {
    /// What the files say: whole, by section, by rule. HAProxy has no such commands.
    Configuration,
    /// Servers, states, weights, limits, entries of lists, counters.
    State,
}

impl Command {
    /// A row for everyone.
    pub(crate) const fn new(
        words: &'static [&'static str],
        usage: &'static str,
        help: &'static str,
        handler: fn(&mut Call<'_>) -> Answer,
    ) -> Self {
        Self {
            words,
            usage,
            help,
            level: CliLevel::User,
            restriction: Restriction::Nothing,
            changes: None,
            always_shown: false,
            handler,
        }
    }

    /// It changes something.
    pub(crate) const fn changing(mut self, kind: Changes) -> Self {
        self.changes = Some(kind);
        self
    }

    /// Only for callers of at least this level.
    pub(crate) const fn for_level(mut self, level: CliLevel) -> Self {
        self.level = level;
        self
    }

    /// Only for sessions that have switched something on.
    pub(crate) const fn restricted(mut self, restriction: Restriction) -> Self {
        self.restriction = restriction;
        self
    }

    /// Help shows it at the end, whatever was asked for.
    pub(crate) const fn always_shown(mut self) -> Self {
        self.always_shown = true;
        self
    }
}

/// What may be asked of the process that serves, by family.
pub fn commands_of_worker() -> &'static [&'static [Command]] {
    static FAMILIES: &[&[Command]] = &[
        commands::session::COMMANDS,
        commands::session::WORKER_COMMANDS,
        commands::process::COMMANDS,
        commands::process::WORKER_COMMANDS,
        commands::statistics::COMMANDS,
        commands::sessions::COMMANDS,
        commands::runtime::COMMANDS,
        commands::servers::COMMANDS,
        commands::maps::COMMANDS,
        commands::acls::COMMANDS,
        commands::server_conn::COMMANDS,
        commands::server_set::COMMANDS,
        commands::server_state::COMMANDS,
        commands::frontends::COMMANDS,
        commands::counters::COMMANDS,
        commands::changes::COMMANDS,
        commands::sections::COMMANDS,
        commands::vars::COMMANDS,
        commands::absent::COMMANDS,
        commands::anonymous::COMMANDS,
        commands::developer::COMMANDS,
    ];
    FAMILIES
}

/// What may be asked of the master, by family.
pub fn commands_of_master() -> &'static [&'static [Command]] {
    static FAMILIES: &[&[Command]] = &[
        commands::session::COMMANDS,
        commands::process::COMMANDS,
        commands::master::COMMANDS,
    ];
    FAMILIES
}

/// The row that words select: the one with the most words of those that fit.
pub(crate) fn find(shared: &Shared, words: &[String]) -> Option<&'static Command> {
    shared
        .commands()
        .filter(|row| row.words.len() <= words.len())
        .filter(|row| {
            row.words
                .iter()
                .zip(words)
                .all(|(of_row, given)| of_row == given)
        })
        .max_by_key(|row| row.words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each new command says whether the log has a line for it.
    #[test]
    fn each_command_changes_something_or_is_known_not_to() {
        const ASKING: [&str; 15] = [
            "debug",
            "echo",
            "experimental-mode",
            "expert-mode",
            "get",
            "help",
            "httpclient",
            "operator",
            "prompt",
            "quit",
            "set",
            "show",
            "trace",
            "user",
            "wait",
        ];
        for row in commands_of_worker().iter().flat_map(|family| family.iter()) {
            let asks = ASKING.contains(&row.words[0]);
            assert!(asks || row.changes.is_some(), "{:?}", row.words);
        }
        let kind = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let rows = commands_of_worker().iter().flat_map(|family| family.iter());
            let fits = rows.filter(|row| row.words.iter().zip(&words).all(|(a, b)| a == b));
            fits.max_by_key(|row| row.words.len())
                .and_then(|row| row.changes)
        };
        assert_eq!(kind(&["set", "server"]), Some(Changes::State));
        assert_eq!(kind(&["add", "server"]), Some(Changes::State));
        assert_eq!(kind(&["set", "frontend"]), Some(Changes::Configuration));
        assert_eq!(kind(&["add", "map"]), Some(Changes::State));
        assert_eq!(kind(&["reload"]), Some(Changes::Configuration));
        assert_eq!(kind(&["set", "timeout", "cli"]), None);
    }
}
