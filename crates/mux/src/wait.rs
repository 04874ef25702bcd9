//! How long a wait for a peer may last.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::{Duration, Instant};

use ballast_transport::Transport;
use ballast_worker::{Buffer, Deadline};

use crate::channel::Channel;
use crate::h2::StreamHandle;
use crate::{ReadError, WriteError};

/// How long a message waits for a buffer.
const BUFFER_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long one direction of an exchange may wait for its peer, and the timer it uses.
#[derive(Debug)]
pub struct WaitLimit<'a> {
    /// The timer of this direction; one wait at a time uses it.
    pub deadline: &'a Deadline,
    /// No wait lasts longer than this moment.
    pub until: Option<Instant>,
    /// No wait lasts longer than this.
    pub each: Option<Duration>,
    /// A moment just past from which the first wait counts, so that the clock need not be read.
    start: Cell<Option<Instant>>,
    /// See [`Self::or_since`].
    last_sent: Option<&'a Cell<Option<Instant>>>,
    /// See [`Self::not_while`].
    not_while: Option<&'a Cell<bool>>,
}

impl<'a> WaitLimit<'a> {
    /// Each wait may last this long; without limit if `None`.
    pub fn each(deadline: &'a Deadline, each: Option<Duration>) -> Self {
        Self {
            deadline,
            until: None,
            each,
            start: Cell::new(None),
            last_sent: None,
            not_while: None,
        }
    }

    /// All waits together end at this moment; without limit if `None`.
    pub fn until(deadline: &'a Deadline, until: Option<Instant>) -> Self {
        Self {
            deadline,
            until,
            each: None,
            start: Cell::new(None),
            last_sent: None,
            not_while: None,
        }
    }

    /// Counts the first wait from a moment just past that the caller has at hand.
    #[must_use]
    pub fn starting_at(self, moment: Option<Instant>) -> Self {
        self.start.set(moment);
        self
    }

    /// A peer that takes bytes is not silent. A wait for it to send that [`Self::each`] limits counts anew
    /// from the moment at which it was last sent some. Waits to write are as before.
    #[must_use]
    pub fn or_since(self, last_sent: &'a Cell<Option<Instant>>) -> Self {
        Self {
            last_sent: Some(last_sent),
            ..self
        }
    }

    /// While this is true the peer need not send: no wait for it that [`Self::each`] limits ends. Waits to
    /// write are as before.
    #[must_use]
    pub fn not_while(self, is_busy: &'a Cell<bool>) -> Self {
        Self {
            not_while: Some(is_busy),
            ..self
        }
    }

    fn limit(&self) -> Option<Instant> {
        let each = self.each.map(|each| {
            self.start
                .take()
                .unwrap_or_else(ballast_worker::approximate_now)
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
    pub(crate) async fn until_readable(&self, channel: Channel<'_>) -> Result<(), ReadError> {
        self.arm();
        let mut waits = false;
        poll_fn(|cx| {
            // Checked first: most wake-ups of a waiting task are for this.
            if std::mem::replace(&mut waits, true) && channel.is_readable() {
                return Poll::Ready(Ok(()));
            }
            if let Poll::Ready(ready) = channel.poll_readable(cx) {
                return Poll::Ready(ready.map_err(ReadError::from));
            }
            // Polled again after it was moved, so that it wakes this task.
            while self.deadline.poll_expired(cx).is_ready() {
                if !self.extend() {
                    return Poll::Ready(Err(ReadError::TimedOut));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Waits for a buffer, which there is none of while memory is short.
    ///
    /// # Errors
    /// [`ReadError::TimedOut`], and [`ReadError::Broken`] after [`BUFFER_WAIT_MAX`]: those that hold
    /// buffers may wait for more themselves.
    pub(crate) async fn until_buffer(&self) -> Result<Buffer, ReadError> {
        self.arm();
        let until = ballast_worker::now() + BUFFER_WAIT_MAX;
        poll_fn(|cx| {
            if let Poll::Ready(buffer) = Buffer::poll_take(cx) {
                return Poll::Ready(Ok(buffer));
            }
            if ballast_worker::now() >= until {
                let error = io::Error::from(io::ErrorKind::OutOfMemory);
                return Poll::Ready(Err(error.into()));
            }
            let expired = self.deadline.poll_expired(cx);
            expired.map(|()| Err(ReadError::TimedOut))
        })
        .await
    }

    /// Whether a wait that has reached its deadline goes on, with a later one.
    fn extend(&self) -> bool {
        let is_held = self.not_while.is_some_and(Cell::get);
        let last_sent = self.last_sent.and_then(Cell::get);
        let Some(each) = self.each.filter(|_| is_held || last_sent.is_some()) else {
            return false;
        };
        let now = ballast_worker::now();
        let from = match is_held {
            true => now,
            false => last_sent.unwrap_or(now),
        };
        let limit = self
            .until
            .map_or(from + each, |until| until.min(from + each));
        let goes_on = limit > now;
        if goes_on {
            self.deadline.set(limit);
        }
        goes_on
    }

    /// Waits until there is room to write, or the connection is broken.
    ///
    /// # Errors
    /// [`WriteError::TimedOut`] and [`WriteError::Broken`].
    pub fn writable(&self, transport: &Transport) -> impl Future<Output = Result<(), WriteError>> {
        // No `async fn`: each wait for a peer is a part of the futures of both directions.
        self.arm();
        poll_fn(|cx| match transport.poll_writable(cx) {
            Poll::Ready(ready) => Poll::Ready(ready.map_err(WriteError::from)),
            Poll::Pending => self
                .deadline
                .poll_expired(cx)
                .map(|()| Err(WriteError::TimedOut)),
        })
    }

    /// Waits until a part of `wanted` bytes of a body may be sent on a stream. Returns how much.
    ///
    /// # Errors
    /// [`WriteError::TimedOut`] and [`WriteError::Broken`].
    pub(crate) fn capacity(
        &self,
        stream: &StreamHandle,
        wanted: usize,
    ) -> impl Future<Output = Result<usize, WriteError>> {
        self.arm();
        poll_fn(move |cx| match stream.poll_capacity(wanted, cx) {
            Poll::Ready(room) => Poll::Ready(room.map_err(WriteError::from)),
            Poll::Pending => self
                .deadline
                .poll_expired(cx)
                .map(|()| Err(WriteError::TimedOut)),
        })
    }

    /// Waits until the socket has taken most of what was appended to the connection of a stream.
    ///
    /// # Errors
    /// [`WriteError::TimedOut`] and [`WriteError::Broken`].
    pub(crate) fn room(
        &self,
        stream: &StreamHandle,
    ) -> impl Future<Output = Result<(), WriteError>> {
        self.arm();
        poll_fn(move |cx| match stream.poll_room(cx) {
            Poll::Ready(room) => Poll::Ready(room.map_err(WriteError::from)),
            Poll::Pending => self
                .deadline
                .poll_expired(cx)
                .map(|()| Err(WriteError::TimedOut)),
        })
    }

    fn arm(&self) {
        match self.limit() {
            Some(limit) => self.deadline.set(limit),
            None => self.deadline.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: Duration = Duration::from_secs(10);

    #[test]
    fn a_wait_that_has_reached_its_deadline_goes_on_as_long_as_the_peer_is_not_silent() {
        let deadline = Deadline::new();
        let ago = |time: Duration| Cell::new(ballast_worker::now().checked_sub(time));
        let extends = |last_sent: &Cell<Option<Instant>>, is_busy: bool| {
            let is_busy = Cell::new(is_busy);
            let wait = WaitLimit::each(&deadline, Some(EACH)).or_since(last_sent);
            wait.not_while(&is_busy).extend()
        };
        assert!(!extends(&Cell::new(None), false));
        assert!(!extends(&ago(EACH * 2), false));
        assert!(extends(&ago(EACH / 2), false));
        let left = deadline.current().unwrap() - ballast_worker::now();
        assert!(left <= EACH / 2, "from the last bytes on: {left:?}");
        assert!(extends(&ago(EACH * 2), true));
    }

    #[test]
    fn no_wait_goes_on_beyond_its_end_or_without_a_limit_of_its_own() {
        let (deadline, now) = (Deadline::new(), ballast_worker::now());
        let (last_sent, is_busy) = (Cell::new(Some(now)), Cell::new(true));
        let whole = WaitLimit::until(&deadline, Some(now)).or_since(&last_sent);
        assert!(!whole.not_while(&is_busy).extend());
        let mut both = WaitLimit::each(&deadline, Some(EACH)).not_while(&is_busy);
        both.until = Some(now);
        assert!(!both.extend());
        both.until = Some(now + EACH / 2);
        assert!(both.extend());
        assert_eq!(deadline.current(), Some(now + EACH / 2));
    }
}
