//! Signals as a stream that a thread or a task can wait for.

use std::cell::OnceCell;
use std::time::Duration;

use ballast_net::{Signal, SignalSource, SystemCallError};

use crate::{IoProgress, WatchedFd};

/// A set of signals, in the order of their arrival.
///
/// Open it in `main` before any thread starts (see
/// [`SignalSource::open`]); then use either [`Signals::wait`] or, inside
/// [`crate::block_on`], [`Signals::next`].
#[derive(Debug)]
pub struct Signals {
    source: SignalSource,
    watched: OnceCell<WatchedFd<std::os::fd::OwnedFd>>,
}

impl Signals {
    /// Blocks `signals` and collects them from now on.
    pub fn open(signals: &[Signal]) -> Result<Self, SystemCallError> {
        Ok(Self {
            source: SignalSource::open(signals)?,
            watched: OnceCell::new(),
        })
    }

    /// Blocks the thread until the next signal, at most for `timeout`.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<Signal>, SystemCallError> {
        self.source
            .wait(timeout)
            .map_err(|e| SystemCallError::new("poll", "signalfd", e))
    }

    /// The next signal if one has arrived.
    pub fn try_next(&self) -> Result<Option<Signal>, SystemCallError> {
        self.source
            .try_next()
            .map_err(|e| SystemCallError::new("read", "signalfd", e))
    }

    /// Waits in the calling task. Dropping the future loses no signal.
    pub async fn next(&self) -> Result<Signal, SystemCallError> {
        let watched = match self.watched.get() {
            Some(watched) => watched,
            None => {
                let copy = self
                    .source
                    .duplicate()
                    .map_err(|e| SystemCallError::new("fcntl(F_DUPFD)", "signalfd", e))?;
                let watched = WatchedFd::watching(copy)?;
                watched.assume_readable();
                self.watched.get_or_init(|| watched)
            }
        };
        loop {
            let fail = |e| SystemCallError::new("read", "signalfd", e);
            watched.readable().await.map_err(fail)?;
            let next = watched.try_read_with(|_| {
                let next = self.source.try_next()?;
                let progress = if next.is_some() {
                    IoProgress::Full
                } else {
                    IoProgress::Short
                };
                Ok((next, progress))
            });
            match next {
                Ok(Some(signal)) => return Ok(signal),
                Ok(None) => {}
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(fail(e)),
            }
        }
    }
}
