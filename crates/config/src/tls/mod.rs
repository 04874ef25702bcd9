//! What TLS words mean, as values: versions, options, lines of a crt-list. Nothing here reads files
//! or reports; the rows of the words are in `bind/tls.rs`, `server/tls.rs` and `global/tls.rs`.

pub(crate) mod crt_list;
mod errors;
mod options;
mod versions;
pub(crate) mod words;

pub use crt_list::{CrtListText, read as certificate_list};
pub(crate) use errors::parse as verify_errors;
pub(crate) use options::{Options, PLAIN, VALUED, authorities, protocols};
pub(crate) use versions::{Fault, Protocol, VersionRemark, Versions};
