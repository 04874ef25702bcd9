//! Sends work to a worker from any thread: the only access to a worker's own data.

use std::fmt;

use tokio::sync::{mpsc, oneshot};

use crate::context;

/// A message: a function to run on the worker.
pub(crate) type MailboxMessage = Box<dyn FnOnce() + Send>;

/// Sends work to one worker, from any thread.
#[derive(Clone, Debug)]
pub struct Mailbox {
    index: usize,
    sender: mpsc::Sender<MailboxMessage>,
}

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MailboxRefusal {
    /// The worker has ended.
    Ended,
    /// It is full: the worker is far behind.
    Full,
}

impl fmt::Display for MailboxRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "the worker has ended",
            Self::Full => "the worker's mailbox is full",
        })
    }
}

impl std::error::Error for MailboxRefusal {}

impl Mailbox {
    pub(crate) fn new(index: usize, sender: mpsc::Sender<MailboxMessage>) -> Self {
        Self { index, sender }
    }

    /// The worker's number.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Runs `work` on the worker, after everything that was sent before, and wakes it. Never waits.
    /// When it is refused, what `work` holds (a socket) is dropped.
    pub fn send(&self, work: impl FnOnce() + Send + 'static) -> Result<(), MailboxRefusal> {
        self.sender.try_send(Box::new(work)).map_err(|e| match e {
            mpsc::error::TrySendError::Closed(_) => MailboxRefusal::Ended,
            mpsc::error::TrySendError::Full(_) => MailboxRefusal::Full,
        })
    }

    /// As [`Mailbox::send`], but waits for space.
    pub async fn send_when_room(
        &self,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), MailboxRefusal> {
        self.sender
            .send(Box::new(work))
            .await
            .map_err(|_| MailboxRefusal::Ended)
    }

    /// Runs `work` on the worker and returns its result.
    ///
    /// # Errors
    /// `Ended` also if `work` panicked.
    pub async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, MailboxRefusal> {
        let (answer, answered) = oneshot::channel();
        let run = move || {
            let _ = answer.send(work());
        };
        self.send_when_room(run).await?;
        answered.await.map_err(|_| MailboxRefusal::Ended)
    }

    /// As [`Mailbox::call`], for threads without an executor: blocks the whole thread. A worker
    /// must not call this (it could wait for itself) and is refused with `Full`.
    pub fn call_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, MailboxRefusal> {
        self.begin_call(work)?.wait()
    }

    /// As [`Mailbox::call_blocking`], but does not wait yet: several workers can be called at once.
    pub fn begin_call<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<BegunCall<T>, MailboxRefusal> {
        if context::worker_index().is_some() {
            return Err(MailboxRefusal::Full);
        }
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        self.send(move || {
            let _ = answer.send(work());
        })?;
        Ok(BegunCall(answered))
    }
}

/// Work that a worker was given by [`Mailbox::begin_call`].
#[derive(Debug)]
pub struct BegunCall<T>(std::sync::mpsc::Receiver<T>);

impl<T> BegunCall<T> {
    /// Blocks the thread until the work is done, and returns its result.
    ///
    /// # Errors
    /// `Ended` also if the work panicked.
    pub fn wait(self) -> Result<T, MailboxRefusal> {
        self.0.recv().map_err(|_| MailboxRefusal::Ended)
    }
}
