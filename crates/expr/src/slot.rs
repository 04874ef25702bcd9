//! A cell that linking fills.

use std::fmt;

/// A cell filled when linking; it takes no part in comparisons, so that two parsed expressions
/// are equal whether linked or not.
#[derive(Clone)]
pub struct LinkSlot<T>(Option<T>);

impl<T> LinkSlot<T> {
    /// A slot not filled yet.
    pub const fn empty() -> LinkSlot<T> {
        LinkSlot(None)
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

impl<T> Default for LinkSlot<T> {
    fn default() -> Self {
        LinkSlot::empty()
    }
}

impl<T> From<Option<T>> for LinkSlot<T> {
    fn from(content: Option<T>) -> Self {
        LinkSlot(content)
    }
}

impl<T> PartialEq for LinkSlot<T> {
    fn eq(&self, _other: &LinkSlot<T>) -> bool {
        true
    }
}

impl<T> fmt::Debug for LinkSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "linked"
        } else {
            "unlinked"
        })
    }
}
