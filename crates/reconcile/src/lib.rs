//! What runs is reconciled with what is wanted: what files say, and what operators set beside it.
//!
//! ```text
//!   request ─► target ─► compile ─► prepare ─► commit ─► finish
//!     └──────────┴──────────┴──────────┘  any of these may refuse, and nothing is changed
//! ```
//!
//! - A [`ChangeRequest`] asks for something else to run. The [`Controller`] queues requests, and
//!   one thread, the [`Reconciler`]'s, carries them out one after the other.
//! - `target` makes of a request the configuration that is to be in force.
//! - An [`ObjectKind`] is a row of the table [`kinds::ALL`]: how an object is called, whether it
//!   is there, and its settings that commands override. A [`Setting`] is a row too: how a value
//!   is applied, taken back, and written to a file.
//! - A [`Participant`] holds what a configuration names (sockets, log targets, lists, probes).
//!   All of them prepare what is new, which may refuse; then all of them commit, which cannot.
//! - A [`Host`] is the process: this crate opens no file and no socket, and says nothing itself.
//!
//! To add a kind that changes at run time is to add a row and a participant.

mod commit;
mod console;
mod controller;
mod file_state;
mod history;
mod host;
pub mod kinds;
mod lists;
mod machine_answers;
mod memory;
mod merge;
mod object;
mod participant;
mod pen;
mod plan;
mod read;
mod reading;
mod reconciler;
mod request;
mod section_change;
mod state_files;
mod target;
mod work;
mod write_back;

pub use console::{Severity, console_line, told};
pub use controller::{Controller, RequestQueue};
pub use history::{ConfigHistory, ConfigSource, PastConfig};
pub use host::Host;
pub use machine_answers::{MachineAnswers, OpenAnswers};
pub use memory::{ListOverrides, Memory, StartReader, go_on};
pub use object::{
    NameOf, ObjectKind, ObjectName, Override, OverrideKey, OverrideValue, Scope, Setting, ValueOf,
    WriteBack,
};
pub use participant::{Effects, Participant, Prepared, Transition};
pub use pen::{InFile, Pen, ServerWords, Written};
pub use read::{ReadOptions, has_listener, unserved};
pub use reconciler::Reconciler;
pub use request::{Applied, ChangeRequest, Persist, Source};
pub use state_files::{
    STATE_FILE_BYTES_MAX, SavedState, StateFile, configure_states, forget_states, read_states,
    restore_states,
};

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
