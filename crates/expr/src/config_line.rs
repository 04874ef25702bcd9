//! Lines of a configuration.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

/// A line of a configuration, for telling where a list is used.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ConfigLine {
    /// The file's name as given on the command line.
    pub file: FileName,
    /// From 1; 0 when not known.
    pub line: u32,
}

/// The name of a file of the configuration. Each name is kept once and for as long as the process runs:
/// there are few, and workers that note lines for each exchange share no count of references.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct FileName(&'static str);

/// All names so far.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl From<&str> for FileName {
    fn from(name: &str) -> Self {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name) {
            return Self(known);
        }
        let kept: &'static str = Box::leak(name.into());
        names.insert(kept);
        Self(kept)
    }
}

impl Deref for FileName {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, f)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let (one, again) = (FileName::from("one.cfg"), FileName::from("one.cfg"));
        assert_eq!((one, &*one), (again, "one.cfg"));
        assert!(std::ptr::eq(&*one, &*again));
        assert_ne!(one, FileName::from("other.cfg"));
        assert_eq!(FileName::default().len(), 0);
    }
}
