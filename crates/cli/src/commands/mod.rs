//! The commands, a file for each family.

pub(crate) mod acls;
pub(crate) mod anonymous;
pub(crate) mod changes;
pub(crate) mod counters;
pub(crate) mod developer;
pub(crate) mod frontends;
pub(crate) mod invalid;
pub(crate) mod maps;
pub(crate) mod master;
pub(crate) mod not_implemented;
pub(crate) mod process;
pub(crate) mod runtime;
pub(crate) mod sections;
pub(crate) mod server_conn;
pub(crate) mod server_set;
pub(crate) mod server_state;
pub(crate) mod servers;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod statistics;
pub(crate) mod target;
pub(crate) mod vars;
