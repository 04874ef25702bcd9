//! Notifying waiting processes that the start went well.

use std::io::{PipeReader, PipeWriter, Read, Write};

/// Tells another process that this one is ready, or with which code its start ended.
#[derive(Debug, Default)]
pub(crate) struct ReadyNotifier {
    waiting: Vec<PipeWriter>,
}

impl ReadyNotifier {
    /// Adds a waiting process.
    pub(crate) fn add(&mut self, writer: PipeWriter) {
        self.waiting.push(writer);
    }

    /// The start went well. A second call does nothing.
    pub(crate) fn ready(&mut self) {
        for mut writer in self.waiting.drain(..) {
            // The waiting process may be gone.
            let _ = writer.write_all(&[0]);
        }
    }
}

/// Whether this is the process that goes on.
#[derive(Debug)]
pub(crate) enum Side {
    /// It goes on.
    GoesOn,
    /// It leaves with this code: the start is decided.
    Leaves(u8),
}

/// Waits for the word of a [`ReadyNotifier`]: 0 when all is well. `None` if it ended without one.
pub(crate) fn wait_ready(mut reader: PipeReader) -> Option<u8> {
    let mut word = [0];
    match reader.read(&mut word) {
        Ok(1) => Some(word[0]),
        _ => None,
    }
}
