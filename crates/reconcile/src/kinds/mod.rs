//! The kinds of objects that change at run time, a file each.
//!
//! To add one is to add its file and its name in [`ALL`]; what it holds open is a
//! [`crate::Participant`].

mod backend;
mod frontend;
mod list;
mod process;
mod server;
mod variable;

pub use backend::{BACKEND, PUBLISHED};
pub use frontend::FRONTEND;
pub use list::{ACL, MAP};
pub(crate) use process::STAYS;
pub use process::{PERSIST, PROCESS};
pub(crate) use server::line;
pub use server::{ADDED, SERVER};
pub use variable::VARIABLE;

use crate::object::{ObjectKind, ObjectName, OverrideKey};

/// All of them.
pub static ALL: &[&ObjectKind] = &[
    &ACL, &BACKEND, &FRONTEND, &PROCESS, &MAP, &SERVER, &VARIABLE,
];

/// The key of an override as commands and former processes write it.
pub fn key(text: &str) -> Option<OverrideKey> {
    OverrideKey::parse(ALL, text)
}

/// `server BACKEND/NAME added`.
pub(crate) fn server_added(backend: &str, server: &str) -> OverrideKey {
    OverrideKey {
        kind: &SERVER,
        name: ObjectName::Server(backend.to_owned(), server.to_owned()),
        setting: &ADDED,
    }
}

/// `backend NAME published`.
pub(crate) fn backend_published(name: &str) -> OverrideKey {
    OverrideKey {
        kind: &BACKEND,
        name: ObjectName::Named(name.to_owned()),
        setting: &PUBLISHED,
    }
}

/// `global persist`.
pub(crate) fn persist() -> OverrideKey {
    OverrideKey {
        kind: &PROCESS,
        name: ObjectName::One,
        setting: &PERSIST,
    }
}
