//! Joining parsed expressions to what they name: pattern files and ACLs.

use std::fmt;

use crate::acl::AclSet;
use crate::pattern::Store;

/// Reads the files that expressions name. Expressions themselves do no I/O.
pub trait Files {
    /// The contents of the file at `path`.
    ///
    /// # Errors
    /// A sentence why it cannot be had.
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String>;
}

impl<F: FnMut(&str) -> Result<Vec<u8>, String>> Files for F {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        self(path)
    }
}

/// What expressions are joined to.
pub struct Linker<'a> {
    /// Lists and maps, shared by every expression that names the same file.
    pub store: &'a Store,
    /// Where files not yet in the store are read.
    pub files: &'a mut dyn Files,
    /// The ACLs of the proxy the expression stands in.
    pub acls: &'a AclSet,
}

/// A place filled when linking; it takes no part in comparisons, so that two parsed expressions
/// are equal whether linked or not.
#[derive(Clone)]
pub struct Slot<T>(Option<T>);

impl<T> Slot<T> {
    /// A slot not filled yet.
    pub const fn empty() -> Slot<T> {
        Slot(None)
    }

    /// What was filled in.
    pub const fn filled(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// Fills it, whatever was in it.
    pub fn fill(&mut self, content: T) {
        self.0 = Some(content);
    }
}

impl<T> PartialEq for Slot<T> {
    fn eq(&self, _other: &Slot<T>) -> bool {
        true
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "linked"
        } else {
            "unlinked"
        })
    }
}
