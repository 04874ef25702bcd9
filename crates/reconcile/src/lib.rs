//! The reconciler: it makes what runs agree with what files say and operators set.
//!
//! ```text
//!   request ─► target ─► compile ─► prepare ─► commit ─► finish
//!     └──────────┴──────────┴──────────┘  each of these may refuse, and nothing is changed
//! ```
//!
//! - A [`ChangeRequest`] asks for a change. The [`Controller`] queues requests; one thread, the
//!   [`Reconciler`]'s, carries them out one after the other.
//! - `target` turns a request into the configuration that is to be in force.
//! - An [`ObjectKind`] is a row of the table [`kinds::ALL`]: the names of its objects, whether a
//!   configuration has one, its settings that commands override, and its tables of a handover. A
//!   [`Setting`] is a row too: how a value is applied, released, and written to a file.
//! - An override is an [`OverrideKey`] (kind, object, setting) and an [`OverrideValue`].
//! - A [`Participant`] holds things that a configuration names (sockets, log targets, lists, probes).
//!   All participants prepare a change, which may fail; then all commit it, which cannot.
//! - A [`ReconcilerHost`] is the process: this crate opens no file and no socket, and prints nothing.
//!
//! To add a kind that changes at run time is to add a row and a participant.

mod certificate_changes;
mod certificates;
mod commit;
mod console;
mod controller;
mod explicit_words;
mod file_editor;
mod file_state;
mod handover;
mod history;
mod host;
pub mod kinds;
mod lists;
mod machine_answers;
mod merge;
mod object;
mod operator_changes;
mod override_value;
mod overrides;
mod participant;
mod plan;
mod read;
mod reading;
mod reconciler;
mod request;
mod section_change;
mod start;
mod state_files;
mod stats_file;
mod target;
mod work;
mod write_back;

pub use certificate_changes::{CertificateChangeLock, CertificateReplay, NextGeneration};
pub use console::{LOADED, console_line, reload_message};
pub use controller::{Controller, RequestQueue};
pub use file_editor::{FileEditor, ServerWords, WriteEffect, WriteResult};
pub use handover::{ConfigChanges, HandoverRows, HandoverTable, ListOverrides, ProcessState};
pub use history::{ConfigHistory, ConfigSource, PastConfig};
pub use host::{ReconcilerHost, StartHost};
pub use machine_answers::{MachineAnswers, OpenAnswers};
pub use object::{NameForm, ObjectKind, ObjectName, Setting, SettingScope, WriteBack};
pub use operator_changes::OperatorChanges;
pub use override_value::{OverrideValue, ValueType};
pub use overrides::{Override, OverrideKey};
pub use participant::{CommitEffects, GenerationSwitch, Participant, PreparedChange};
pub use read::{ReadOptions, has_listener, unimplemented};
pub use reconciler::Reconciler;
pub use request::{ChangeReport, ChangeRequest, ConfigInput, Persist};
pub use start::{StartFiles, StartRecord, StartTarget};
pub use state_files::{STATE_FILE_BYTES_MAX, SavedState, StateFile, read_states, restore_states};
pub use stats_file::{InvalidStatsFile, SavedCounts};

use std::time::{SystemTime, UNIX_EPOCH};

/// The time in seconds since 1970.
pub fn now_unix_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

#[cfg(test)]
mod tests;
