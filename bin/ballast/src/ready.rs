//! Notifying waiting processes that the start succeeded.

use std::io::{PipeReader, PipeWriter, Read, Write};

/// Tells waiting processes that this one is ready.
#[derive(Debug, Default)]
pub(crate) struct ReadyNotifier {
    waiting: Vec<PipeWriter>,
}

impl ReadyNotifier {
    /// Adds a waiting process.
    pub(crate) fn add(&mut self, writer: PipeWriter) {
        self.waiting.push(writer);
    }

    /// Sends that the start succeeded. A second call does nothing.
    pub(crate) fn ready(&mut self) {
        for mut writer in self.waiting.drain(..) {
            // The waiting process may be gone.
            let _ = writer.write_all(&[0]);
        }
    }
}

/// What a process does after a fork.
#[derive(Debug)]
pub(crate) enum ForkSide {
    /// It goes on with the start.
    Continue,
    /// It exits with this code.
    Exit(u8),
}

/// Waits for a [`ReadyNotifier`]: 0 for success. `None` if its process ended before.
pub(crate) fn wait_ready(mut reader: PipeReader) -> Option<u8> {
    let mut word = [0];
    match reader.read(&mut word) {
        Ok(1) => Some(word[0]),
        _ => None,
    }
}
