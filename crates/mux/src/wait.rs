//! How long one wait may last.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use ballast_transport::Transport;
use ballast_worker::{Deadline, Expired};

use crate::{ReadError, WriteError};

/// The patience one direction of an exchange has.
#[derive(Debug)]
pub struct Wait<'a> {
    /// The timer this direction waits on; one wait at a time.
    pub deadline: &'a Deadline,
    /// No wait lasts longer than this moment.
    pub until: Option<Instant>,
    /// No wait lasts longer than this.
    pub each: Option<Duration>,
    /// A moment just past, from which the first wait is counted, to save a look at the clock.
    beginning: Cell<Option<Instant>>,
}

impl<'a> Wait<'a> {
    /// Each wait may last this long; `None` waits for ever.
    pub fn each(deadline: &'a Deadline, each: Option<Duration>) -> Self {
        Self {
            deadline,
            until: None,
            each,
            beginning: Cell::new(None),
        }
    }

    /// All waits together end at this moment; `None` waits for ever.
    pub fn until(deadline: &'a Deadline, until: Option<Instant>) -> Self {
        Self {
            deadline,
            until,
            each: None,
            beginning: Cell::new(None),
        }
    }

    /// Counts the first wait from a moment just past that the caller has at hand.
    #[must_use]
    pub fn beginning(self, moment: Option<Instant>) -> Self {
        self.beginning.set(moment);
        self
    }

    fn limit(&self) -> Option<Instant> {
        let each = self.each.map(|each| {
            self.beginning
                .take()
                .unwrap_or_else(ballast_worker::turn_now)
                + each
        });
        match (self.until, each) {
            (Some(until), Some(each)) => Some(until.min(each)),
            (until, each) => until.or(each),
        }
    }

    /// Waits until there is something to read, or the peer has closed.
    ///
    /// # Errors
    /// [`ReadError::TimedOut`] and [`ReadError::Broken`].
    pub async fn readable(&self, transport: &Transport) -> Result<(), ReadError> {
        if transport.is_readable() {
            return Ok(());
        }
        self.until_readable(transport).await
    }

    /// As [`Self::readable`], where it is known that there is nothing yet.
    pub(crate) async fn until_readable(&self, transport: &Transport) -> Result<(), ReadError> {
        self.arm();
        let mut waits = false;
        poll_fn(|cx| {
            // Most wake-ups of a task that waits are for this.
            if std::mem::replace(&mut waits, true) && transport.is_readable() {
                return Poll::Ready(Ok(()));
            }
            if let Poll::Ready(ready) = transport.poll_readable(cx) {
                return Poll::Ready(ready.map_err(ReadError::from));
            }
            self.deadline
                .poll_expired(cx)
                .map(|()| Err(ReadError::TimedOut))
        })
        .await
    }

    /// Waits until there is room to write, or the connection is broken.
    ///
    /// # Errors
    /// [`WriteError::TimedOut`] and [`WriteError::Broken`].
    pub async fn writable(&self, transport: &Transport) -> Result<(), WriteError> {
        self.arm();
        match self.deadline.guard(transport.writable()).await {
            Ok(ready) => Ok(ready?),
            Err(Expired) => Err(WriteError::TimedOut),
        }
    }

    fn arm(&self) {
        match self.limit() {
            Some(limit) => self.deadline.set(limit),
            None => self.deadline.clear(),
        }
    }
}
