//! What is asked of the reconciler, and what comes of it.

use ballast_edit::{Edit, SectionAt};
use ballast_model::Change;

/// Something else is to run.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeRequest {
    /// A server line for a backend, as an operator writes it: name, address, words.
    AddServer {
        /// The backend.
        backend: String,
        /// The server's name.
        server: String,
        /// Address and words.
        words: Vec<String>,
    },
    /// A server that nothing leads to gets another name, and stays what it was.
    RenameServer {
        /// The backend.
        backend: String,
        /// The server's name.
        server: String,
        /// Its name from now on.
        name: String,
    },
    /// Changes by command that need no text.
    Change {
        /// In this order.
        changes: Vec<Change>,
        /// The command, for the history.
        command: String,
    },
    /// A section is written, or another line of it, as if somebody had edited the file.
    Edit {
        /// Which.
        section: SectionAt,
        /// What becomes of it.
        edit: Edit,
        /// The command, for the history.
        command: String,
    },
    /// The lines of a section that are in force, numbered: what edits of it go by.
    Section(SectionAt),
    /// The files of the start, read again: the process becomes what they say.
    Reload {
        /// What operators set stays where the files did not change.
        keep: bool,
    },
    /// A whole configuration, in place of the files.
    Apply(Source),
    /// What operators changed is written back to the files.
    Persist(Persist),
    /// A configuration that was in force before, by its generation.
    Rollback(u64),
    /// Only what [`ChangeRequest::Apply`] or a reload would do.
    Plan(Option<Source>),
}

/// When what operators change is written to the files.
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
pub enum Source {
    /// Its text.
    Text(Vec<u8>),
    /// A file of this machine.
    File(String),
}

/// A request that was met.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Applied {
    /// The generation in force.
    pub generation: u64,
    /// What was changed, a line each, as a plan shows it.
    pub lines: Vec<String>,
    /// Warnings and what else is to be known, in lines.
    pub notes: String,
    /// Whether some of it takes effect in a new process alone.
    pub needs_process: bool,
    /// Whether something of what is removed still has connections, which may finish.
    pub drains: bool,
}
