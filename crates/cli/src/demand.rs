//! What is asked of the change path, and what comes of it.

use std::future::Future;
use std::pin::Pin;

use ballast_model::Change;

/// Something else is to run.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// A server line for a backend, as an operator writes it: name, address, words.
    AddServer {
        /// The backend.
        backend: String,
        /// The server's name.
        server: String,
        /// Address and words.
        words: Vec<String>,
    },
    /// Changes by hand that need no text.
    Change {
        /// In this order.
        changes: Vec<Change>,
        /// The command, for the history.
        command: String,
    },
    /// Lines of the language, sections of their own, beside what runs.
    Fragment {
        /// The lines.
        text: Vec<u8>,
        /// The command, for the history.
        command: String,
    },
    /// The files of the start, read again. With `reset`, nothing that was set by hand stays.
    Reload {
        /// Drop the hands.
        reset: bool,
    },
    /// A whole configuration, in place of the files.
    Apply(Source),
    /// What hands changed is written back to the files.
    Persist(Persist),
    /// A configuration that was in force before, by its generation.
    Rollback(u64),
    /// Only what [`Demand::Apply`] or a reload would do.
    Plan(Option<Source>),
}

/// When what hands change is written to the files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Persist {
    /// Once, at once.
    Now,
    /// After each change by hand.
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

/// A demand that was met.
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

/// Why nothing was changed, in lines.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused(pub String);

/// The outcome, once it is known.
pub type Outcome = Pin<Box<dyn Future<Output = Result<Applied, Refused>>>>;
