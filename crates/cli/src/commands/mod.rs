//! The commands, a file for each family.

pub(crate) mod master;
pub(crate) mod process;
pub(crate) mod servers;
pub(crate) mod session;
pub(crate) mod statistics;
