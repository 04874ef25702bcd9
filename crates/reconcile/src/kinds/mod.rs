//! The kinds of objects that change at run time, a file each.
//!
//! To add a kind is to add its file and its row to [`ALL`]. A [`crate::Participant`] holds what the
//! objects have open.

pub mod backend;
pub mod frontend;
pub mod list;
pub mod process;
pub mod server;
mod server_handover;
mod table;
mod userlists;
pub mod variable;

use ballast_model::Change;

use crate::object::{ObjectKind, ObjectName};
use crate::overrides::OverrideKey;

pub use backend::BACKEND;
pub use frontend::FRONTEND;
pub use list::{ACL, MAP};
pub use process::PROCESS;
pub use server::SERVER;
pub use table::TABLE;
pub use userlists::USERLISTS;
pub use variable::VARIABLE;

/// All kinds.
pub static ALL: &[&ObjectKind] = &[
    &ACL, &BACKEND, &FRONTEND, &MAP, &PROCESS, &SERVER, &TABLE, &USERLISTS, &VARIABLE,
];

/// Reads the key of an override, as a former process wrote it; `None` when no row knows it.
pub fn parse_override_key(text: &str) -> Option<OverrideKey> {
    OverrideKey::parse(ALL, text)
}

/// The object that a change of the configuration is about; `None` when it is about the order of
/// objects.
pub(crate) fn object_of(change: &Change) -> Option<(&'static ObjectKind, ObjectName)> {
    Some(match change {
        Change::SetGlobal(_) => (&PROCESS, ObjectName::None),
        Change::SetUserlists(_) => (&USERLISTS, ObjectName::None),
        Change::AddFrontend(one) | Change::SetFrontend(one) => {
            (&FRONTEND, ObjectName::of(&one.common.name))
        }
        Change::RemoveFrontend(name) => (&FRONTEND, ObjectName::of(name)),
        Change::AddBackend(one) | Change::SetBackend(one) => {
            (&BACKEND, ObjectName::of(&one.common.name))
        }
        Change::RemoveBackend(name) => (&BACKEND, ObjectName::of(name)),
        Change::AddServer(backend, one) | Change::SetServer(backend, one) => {
            (&SERVER, ObjectName::of_server(backend, &one.name))
        }
        Change::RemoveServer(backend, name) => (&SERVER, ObjectName::of_server(backend, name)),
        Change::AddTable(one) | Change::SetTable(one) => (&TABLE, ObjectName::of(&one.name)),
        Change::RemoveTable(name) => (&TABLE, ObjectName::of(name)),
        Change::OrderFrontends(_)
        | Change::OrderBackends(_)
        | Change::OrderServers(..)
        | Change::OrderTables(_) => return None,
    })
}
