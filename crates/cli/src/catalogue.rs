//! The commands of each process, family by family.

use crate::command::{Command, CommandFamilies};
use crate::commands;
use crate::shared::ProcessRole;

/// The commands of a worker, by family.
pub fn commands_of_worker() -> CommandFamilies {
    static FAMILIES: &[&[Command]] = &[
        commands::session::COMMANDS,
        commands::session::WORKER_COMMANDS,
        commands::process::COMMANDS,
        commands::process::WORKER_COMMANDS,
        commands::statistics::COMMANDS,
        commands::sessions::COMMANDS,
        commands::descriptors::COMMANDS,
        commands::runtime::COMMANDS,
        commands::events::COMMANDS,
        commands::servers::COMMANDS,
        commands::maps::COMMANDS,
        commands::acls::COMMANDS,
        commands::server_conn::COMMANDS,
        commands::server_set::COMMANDS,
        commands::server_switches::COMMANDS,
        commands::frontends::COMMANDS,
        commands::counters::COMMANDS,
        commands::changes::COMMANDS,
        commands::sections::COMMANDS,
        commands::vars::COMMANDS,
        commands::certificates::COMMANDS,
        commands::crt_lists::COMMANDS,
        commands::authorities::COMMANDS,
        commands::ticket_keys::COMMANDS,
        commands::ocsp::COMMANDS,
        commands::tables::COMMANDS,
        commands::not_implemented::COMMANDS,
        commands::anonymous::COMMANDS,
        commands::developer::COMMANDS,
    ];
    FAMILIES
}

/// The commands of the master, by family.
pub fn commands_of_master() -> CommandFamilies {
    static FAMILIES: &[&[Command]] = &[
        commands::session::COMMANDS,
        commands::process::COMMANDS,
        commands::master::COMMANDS,
    ];
    FAMILIES
}

/// The commands of a process, by family.
pub(crate) fn commands_of(role: &ProcessRole) -> CommandFamilies {
    match role {
        ProcessRole::Worker(_) => commands_of_worker(),
        ProcessRole::Master(_) => commands_of_master(),
    }
}

/// The row that the words select: of the rows that fit, the one with the most words.
pub(crate) fn find(commands: CommandFamilies, words: &[String]) -> Option<&'static Command> {
    commands
        .iter()
        .flat_map(|family| family.iter())
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
    use crate::change_record::ChangeScope;

    /// Each new command must say whether it is logged.
    #[test]
    fn each_command_changes_something_or_is_known_not_to() {
        const ASKING: [&str; 17] = [
            "acme",
            "debug",
            "dump",
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
        assert_eq!(kind(&["set", "server"]), Some(ChangeScope::State));
        assert_eq!(kind(&["add", "server"]), Some(ChangeScope::State));
        assert_eq!(kind(&["set", "frontend"]), Some(ChangeScope::Configuration));
        assert_eq!(kind(&["add", "map"]), Some(ChangeScope::State));
        assert_eq!(kind(&["reload"]), Some(ChangeScope::Configuration));
        assert_eq!(kind(&["set", "timeout", "cli"]), None);
        let rows = commands_of_worker().iter().flat_map(|family| family.iter());
        let mut secret = rows.filter(|row| row.has_secrets);
        let secret = secret.next().map(|row| row.words);
        assert_eq!(secret, Some(&["set", "ssl", "tls-key"][..]));
    }
}
