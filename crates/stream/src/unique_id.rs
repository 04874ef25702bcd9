//! The unique id of a request.

use std::cell::{Cell, OnceCell};

/// What `unique-id-format` gives for an exchange: made when it is first asked for, and the same from then on
/// (configuration manual, "unique-id-format").
#[derive(Debug, Default)]
pub(crate) struct UniqueId {
    text: OnceCell<Vec<u8>>,
    is_being_made: Cell<bool>,
}

impl UniqueId {
    /// The id, if it was made and is not empty.
    pub(crate) fn get(&self) -> Option<&[u8]> {
        let text = self.text.get()?;
        (!text.is_empty()).then_some(text)
    }

    /// The same, made by `render` if there is none yet; `None` while it is being made.
    pub(crate) fn get_or_make(&self, render: impl FnOnce(&mut Vec<u8>)) -> Option<&[u8]> {
        if self.text.get().is_none() && !self.is_being_made.replace(true) {
            let mut text = Vec::new();
            render(&mut text);
            self.is_being_made.set(false);
            let _ = self.text.set(text);
        }
        self.get()
    }

    /// Forgets it: another exchange begins.
    pub(crate) fn clear(&mut self) {
        self.text.take();
    }
}
