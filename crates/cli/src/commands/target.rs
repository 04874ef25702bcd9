//! The server, backend or frontend that the words of a command name.

use std::sync::Arc;

use ballast_engine::{Backend, Frontend, Generation, Server};
use ballast_reconcile::kinds::server;
use ballast_reconcile::{OverrideValue, Setting};

use crate::answer::CommandAnswer;
use crate::command::CommandCall;
use crate::control::Control;
use crate::shared::ProcessRole;

/// The worker process. The master does not have these commands.
pub(crate) fn control(call: &CommandCall<'_>) -> Result<Arc<dyn Control>, CommandAnswer> {
    match &call.shared.role {
        ProcessRole::Worker(control) => Ok(Arc::clone(control)),
        ProcessRole::Master(_) => Err(CommandAnswer::Done),
    }
}

/// The generation in force.
pub(crate) fn generation(call: &CommandCall<'_>) -> Result<Arc<Generation>, CommandAnswer> {
    Ok(control(call)?.generation())
}

/// A server that a command names.
pub(crate) struct TargetServer {
    pub(crate) control: Arc<dyn Control>,
    pub(crate) backend: Arc<Backend>,
    pub(crate) server: Arc<Server>,
    /// Its index in the backend.
    pub(crate) server_index: usize,
}

impl TargetServer {
    /// The server that the first word, `backend/server`, names.
    pub(crate) fn of(call: &CommandCall<'_>) -> Result<Self, CommandAnswer> {
        Self::of_word(call, 0)
    }

    /// The server that a word names.
    pub(crate) fn of_word(call: &CommandCall<'_>, word: usize) -> Result<Self, CommandAnswer> {
        let named = call.arg(word).split_once('/');
        let Some((backend, server)) = named.filter(|(_, server)| !server.is_empty()) else {
            return Err(CommandAnswer::error("Require 'backend/server'."));
        };
        let control = control(call)?;
        let generation = control.generation();
        let Some(index) = backend_index(&generation, backend) else {
            return Err(CommandAnswer::error("No such backend."));
        };
        let backend = Arc::clone(&generation.backends[index]);
        let Some(server_index) = server_index(&backend, server) else {
            return Err(CommandAnswer::error("No such server."));
        };
        let server = Arc::clone(&backend.servers[server_index]);
        Ok(Self {
            control,
            backend,
            server,
            server_index,
        })
    }

    /// Changes the health of the server.
    pub(crate) fn change_health(
        &self,
        mut change: impl FnMut(&mut ballast_health::Health, u64) -> Vec<ballast_health::Effect>,
    ) {
        self.control
            .change_health(self.backend.name(), self.server.name(), &mut change);
    }

    /// Notes an override of a setting of the server. The answer says that the command is done.
    pub(crate) fn note_override(
        &self,
        setting: &'static Setting,
        value: OverrideValue,
        command: String,
    ) -> CommandAnswer {
        let key = server::override_key(self.backend.name(), self.server.name(), setting);
        self.control.note_override(key, value, command);
        CommandAnswer::Done
    }
}

/// Whether a word is the name of something, or its number behind a `#` (management manual,
/// section 9.3: "specified either by their name or by their numeric ID").
pub(crate) fn is_called(name: &str, id: u32, word: &str) -> bool {
    match word.strip_prefix('#') {
        Some(number) => number.parse() == Ok(id),
        None => name == word,
    }
}

/// The index of the backend that a word names.
pub(crate) fn backend_index(generation: &Generation, word: &str) -> Option<usize> {
    if !word.starts_with('#') {
        return generation.backend_named(word);
    }
    let mut backends = generation.backends.iter();
    backends.position(|backend| is_called(backend.name(), backend.model.common.id, word))
}

/// The index of the server of a backend that a word names.
fn server_index(backend: &Backend, word: &str) -> Option<usize> {
    if !word.starts_with('#') {
        return backend.server_named(word);
    }
    let mut servers = backend.servers.iter();
    servers.position(|server| is_called(server.name(), server.model.id, word))
}

/// The backend that the first word names.
pub(crate) fn backend(call: &CommandCall<'_>) -> Result<Arc<Backend>, CommandAnswer> {
    if call.arg(0).is_empty() {
        return Err(CommandAnswer::error("A backend name is expected."));
    }
    let generation = generation(call)?;
    match backend_index(&generation, call.arg(0)) {
        Some(index) => Ok(Arc::clone(&generation.backends[index])),
        None => Err(CommandAnswer::error("No such backend.")),
    }
}

/// The frontend that the first word names.
pub(crate) fn frontend(call: &CommandCall<'_>) -> Result<Arc<Frontend>, CommandAnswer> {
    if call.arg(0).is_empty() {
        return Err(CommandAnswer::error("A frontend name is expected."));
    }
    let generation = generation(call)?;
    generation
        .frontends
        .iter()
        .find(|frontend| is_called(frontend.name(), frontend.model.common.id, call.arg(0)))
        .map(Arc::clone)
        .ok_or_else(|| CommandAnswer::error("No such frontend."))
}

/// The command as it was given.
pub(crate) fn command_text(words: &str, call: &CommandCall<'_>) -> String {
    format!("{words} {}", call.args.join(" "))
}

/// The answer: of a command that is done, or of one that is refused.
pub(crate) fn answer(outcome: Result<CommandAnswer, CommandAnswer>) -> CommandAnswer {
    outcome.unwrap_or_else(|refused| refused)
}

/// The number at the beginning of a text and what follows it; `None` without a digit there.
/// A number out of range is replaced by the nearest one in it.
pub(crate) fn leading_number(text: &str) -> Option<(i64, &str)> {
    let sign = text.len() - text.trim_start_matches(['+', '-']).len();
    if sign > 1 {
        return None;
    }
    let digits = text[sign..]
        .find(|letter: char| !letter.is_ascii_digit())
        .map_or(text.len(), |at| sign + at);
    if digits == sign {
        return None;
    }
    let negative = text.starts_with('-');
    let size: i64 = text[sign..digits].parse().unwrap_or(i64::MAX);
    Some((if negative { -size } else { size }, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::leading_number;

    #[test]
    fn numbers_end_where_their_digits_end() {
        for (text, expected) in [
            ("", None),
            ("x", None),
            ("-", None),
            ("--1", None),
            ("12", Some((12, ""))),
            ("+3", Some((3, ""))),
            ("-5%", Some((-5, "%"))),
            ("2.5", Some((2, ".5"))),
            ("99999999999999999999", Some((i64::MAX, ""))),
        ] {
            assert_eq!(leading_number(text), expected, "{text}");
        }
    }
}
