//! The target of a request: the configuration that is to be in force, and what else the change does.

use std::sync::Arc;

use ballast_edit::SectionMap;
use ballast_expr::Store;
use ballast_model::change::diff;
use ballast_model::{Change, Config};
use ballast_tls::shared_store::SharedStore;

use crate::history::ConfigSource;
use crate::machine_answers::MachineAnswers;
use crate::merge::MergeOutcome;
use crate::overrides::OverrideKey;
use crate::state_files::SavedState;

/// A configuration that is to be put in force.
pub(crate) struct ChangeTarget {
    pub(crate) config: Config,
    /// The changes from the configuration in force to this one.
    pub(crate) changes: Vec<Change>,
    /// The command, for the history.
    pub(crate) cause: String,
    /// Warnings and notes for the operator, in lines.
    pub(crate) notes: String,
    /// Overrides that end with this change.
    pub(crate) overruled: Vec<OverrideKey>,
    /// The text of the configuration, where it is another.
    pub(crate) source: Option<NewSource>,
    pub(crate) mode: ChangeMode,
}

/// Text that a configuration was read from.
pub(crate) struct NewSource {
    pub(crate) written: ConfigSource,
    /// The lists and maps that were read with it.
    pub(crate) patterns: Arc<Store>,
    /// The certificates and keys that were read with it.
    pub(crate) certificates: SharedStore,
    /// The positions of the sections, where other files were read.
    pub(crate) sections: Option<SectionMap>,
    /// The answers of the machine, where it was asked again.
    pub(crate) machine_answers: Option<Arc<MachineAnswers>>,
}

/// A way of changing, with all that is particular to it. (A start is none: nothing is in force that
/// could be changed. See [`crate::start`].)
pub(crate) enum ChangeMode {
    /// A command changed objects, and no text.
    Change,
    /// `add server`: the server begins in maintenance and unchecked.
    AddServer {
        /// The override that says that the server was added.
        key: OverrideKey,
        /// The words of its line.
        words: String,
    },
    /// `set server name`: the server keeps its counters, its health and its overrides.
    RenameServer {
        backend: String,
        old_name: String,
        new_name: String,
    },
    /// A command edited a section.
    Edit {
        /// The backend that the command added: rules lead to it once it is published.
        unpublished: Option<OverrideKey>,
    },
    /// `rollback`: a configuration that was in force before.
    Rollback,
    /// Files were read, and overrides stay where the files did not change.
    Keep(FileOrigin),
    /// Files were read, and the process becomes what they say.
    Drop(FileOrigin, Vec<SavedState>),
}

/// Where files come from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FileOrigin {
    /// They are the files of the command line, as they are on the disk.
    Disk,
    /// A command or `persist` gave their text.
    Given,
}

impl ChangeTarget {
    /// A target with these changes.
    pub(crate) fn new(
        config: Config,
        changes: Vec<Change>,
        cause: String,
        mode: ChangeMode,
    ) -> Self {
        Self {
            config,
            changes,
            cause,
            notes: String::new(),
            overruled: Vec::new(),
            source: None,
            mode,
        }
    }

    /// A target whose changes are those from `now` to `config`.
    pub(crate) fn from(now: &Config, config: Config, cause: String, mode: ChangeMode) -> Self {
        let changes = diff(now, &config);
        Self::new(config, changes, cause, mode)
    }

    /// The target of files that were merged with overrides.
    pub(crate) fn of_merge(merged: MergeOutcome, cause: String, mode: ChangeMode) -> Self {
        let target = Self::new(merged.config, merged.changes, cause, mode);
        Self {
            overruled: merged.overruled,
            ..target
        }
    }

    /// Whether overrides are dropped.
    pub(crate) fn drops_overrides(&self) -> bool {
        matches!(self.mode, ChangeMode::Drop(..))
    }

    /// The configuration of the files, where files were read: their backends are published.
    pub(crate) fn file_config(&self) -> Option<&Config> {
        match self.mode {
            ChangeMode::Rollback | ChangeMode::Keep(_) | ChangeMode::Drop(..) => {
                Some(&self.source.as_ref()?.written.file)
            }
            _ => None,
        }
    }

    /// Whether the files were read from the disk.
    pub(crate) fn is_of_disk(&self) -> bool {
        matches!(
            self.mode,
            ChangeMode::Keep(FileOrigin::Disk) | ChangeMode::Drop(FileOrigin::Disk, _)
        )
    }
}
