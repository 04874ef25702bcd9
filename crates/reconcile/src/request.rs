//! Change requests, and the report of a change.

use ballast_edit::{SectionName, SectionOperation};
use ballast_model::Change;

/// A request to change what runs.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeRequest {
    /// `add server`.
    AddServer {
        /// The backend.
        backend: String,
        /// The server's name.
        server: String,
        /// Address and words.
        words: Vec<String>,
    },
    /// `set server name`: the server keeps its counters, health and settings.
    RenameServer {
        /// The backend.
        backend: String,
        /// The server's name.
        server: String,
        /// Its new name.
        name: String,
    },
    /// Changes by command that need no text.
    Change {
        /// In this order.
        changes: Vec<Change>,
        /// The command, for the history.
        command: String,
    },
    /// A section, or a line of it, is edited as in a file.
    Edit {
        /// The section.
        section: SectionName,
        /// The edit.
        edit: SectionOperation,
        /// The command, for the history.
        command: String,
    },
    /// Tells the lines of a section that are in force. Edits name lines by their numbers.
    Section(SectionName),
    /// The files of the start are read again; the process becomes what they say.
    Reload {
        /// Overrides stay where the files did not change.
        keep: bool,
    },
    /// A whole configuration replaces the files.
    Apply(ConfigInput),
    /// Overrides are written to the files.
    Persist(Persist),
    /// Tells what of the changes before this request could not be written to the files (`persist on`).
    PersistOutcome,
    /// A former configuration is put in force again, by its generation.
    Rollback(u64),
    /// Tells what [`ChangeRequest::Apply`] or a reload would do.
    Plan(Option<ConfigInput>),
}

/// When overrides are written to the files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Persist {
    /// Once, at once.
    Now,
    /// After each change by command.
    On,
    /// No more.
    Off,
}

/// Where a configuration comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ConfigInput {
    /// Its text.
    Text(Vec<u8>),
    /// A file of this machine.
    File(String),
}

/// The report of a request that was carried out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ChangeReport {
    /// The generation in force.
    pub generation: u64,
    /// The changes, a line each, as in a plan.
    pub lines: Vec<String>,
    /// Warnings and notes, in lines.
    pub notes: String,
    /// Whether some of it takes effect only in a new process.
    pub needs_process: bool,
    /// Whether an object that is removed still has connections, which may finish.
    pub drains: bool,
}
