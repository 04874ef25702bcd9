//! What parsed expressions are joined to: pattern files and ACLs.

use super::AclSet;
use crate::files::PatternFileReader;
use crate::pattern::Store;

/// What expressions are joined to.
pub struct Linker<'a> {
    /// Lists and maps, shared by every expression that names the same file.
    pub store: &'a Store,
    /// Where files not yet in the store are read.
    pub files: &'a mut dyn PatternFileReader,
    /// The ACLs of the proxy the expression stands in.
    pub acls: &'a AclSet,
}
