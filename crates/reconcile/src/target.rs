//! What a request amounts to: the configuration that is to be in force, and how it gets there.

use std::sync::Arc;

use ballast_edit::SectionMap;
use ballast_expr::Store;
use ballast_model::change::diff;
use ballast_model::{Change, Config};

use crate::history::ConfigSource;
use crate::machine_answers::MachineAnswers;
use crate::object::OverrideKey;
use crate::state_files::SavedState;

/// A configuration on its way.
pub(crate) struct Target {
    pub(crate) config: Config,
    /// The way to it from what is in force.
    pub(crate) changes: Vec<Change>,
    /// The command, for the history.
    pub(crate) cause: String,
    /// What the operator is to know, in lines.
    pub(crate) notes: String,
    /// Overrides that hold no longer.
    pub(crate) overruled: Vec<OverrideKey>,
    /// What is written then, where that is another.
    pub(crate) source: Option<NewSource>,
    pub(crate) mode: Mode,
}

/// Text that a configuration was read from.
pub(crate) struct NewSource {
    pub(crate) written: ConfigSource,
    /// The lists and maps that were read with it.
    pub(crate) patterns: Arc<Store>,
    /// Where the sections of the files stand, where other files were read.
    pub(crate) sections: Option<SectionMap>,
    /// What the machine answered, where it was asked anew.
    pub(crate) machine_answers: Option<Arc<MachineAnswers>>,
}

/// What is particular to a way of changing.
pub(crate) enum Mode {
    /// A command changed objects, and no text.
    Change,
    /// `add server`: begins in maintenance and unchecked. Its words as a file would have them.
    AddServer {
        /// The override that says that it was added.
        key: OverrideKey,
        words: String,
    },
    /// A server goes on under another name.
    RenameServer {
        backend: String,
        was: String,
        is: String,
    },
    /// A command edited a section.
    Edit {
        /// A backend that came: no rule leads there before it is published.
        unpublished: Option<OverrideKey>,
    },
    /// What was in force before.
    Rollback,
    /// Files were read. Overrides stay where the file did not change.
    Keep {
        /// They are those of the start.
        is_of_start: bool,
    },
    /// Files were read, and the process is to be what they say.
    Drop {
        /// They are those of the start.
        is_of_start: bool,
        /// What state files say of the servers then.
        states: Vec<SavedState>,
    },
}

impl Target {
    /// What runs `now` is to become `config`.
    pub(crate) fn new(now: &Config, config: Config, cause: String, mode: Mode) -> Self {
        Self {
            changes: diff(now, &config),
            config,
            cause,
            notes: String::new(),
            overruled: Vec::new(),
            source: None,
            mode,
        }
    }

    /// Whether the process is to be what the files say, whatever operators set.
    pub(crate) fn drops_overrides(&self) -> bool {
        matches!(self.mode, Mode::Drop { .. })
    }

    /// What the files say, where files were read: their backends are published.
    pub(crate) fn file_that_was_read(&self) -> Option<&Config> {
        match self.mode {
            Mode::Rollback | Mode::Keep { .. } | Mode::Drop { .. } => {
                Some(&self.source.as_ref()?.written.file)
            }
            _ => None,
        }
    }

    /// Whether the files of the start were read.
    pub(crate) fn is_of_start(&self) -> bool {
        match self.mode {
            Mode::Keep { is_of_start } | Mode::Drop { is_of_start, .. } => is_of_start,
            _ => false,
        }
    }
}
