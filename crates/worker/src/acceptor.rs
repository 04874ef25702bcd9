//! Taking new connections from a listening socket.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_net::{self as net, Address, Error, ErrorClass};
use tokio::sync::Notify;

use crate::context::count;
use crate::{Progress, Stream, Watched, now, sleep_until};

/// How long accepting rests when descriptors or memory have run out.
const EXHAUSTED_REST: Duration = Duration::from_millis(100);

/// A listening socket as one worker uses it. Several workers may each have one
/// on the same socket.
#[derive(Debug)]
pub struct Acceptor {
    socket: Watched<Arc<OwnedFd>>,
    address: Address,
    paused: Cell<bool>,
    resumed: Notify,
    rest_until: Cell<Option<Instant>>,
}

/// A new connection, not yet of any worker.
#[derive(Debug)]
pub struct Accepted {
    /// The socket: non-blocking, close-on-exec.
    pub fd: OwnedFd,
    /// The client.
    pub peer: Address,
}

/// Why nothing could be accepted.
#[derive(Debug)]
pub enum AcceptError {
    /// The listening socket itself is gone or unusable: stop.
    Broken(Error),
    /// Descriptors or memory have run out. Accepting rests for 100 ms by
    /// itself; count it, tell the operator, and call again.
    Exhausted(Error),
}

impl Accepted {
    /// Makes it a connection of the worker this is called on.
    pub fn into_stream(self) -> Result<(Stream, Address), Error> {
        Ok((Stream::from_fd(self.fd)?, self.peer))
    }
}

impl Acceptor {
    /// Watches a listening socket on this worker, and makes it non-blocking if
    /// it is not.
    pub fn new(socket: Arc<OwnedFd>) -> Result<Self, Error> {
        let address =
            Address::local_of(&socket).map_err(|e| Error::new("getsockname", "listener", e))?;
        // A blocking accept would stop the whole worker.
        net::set_non_blocking(&socket).map_err(|e| Error::new("ioctl(FIONBIO)", &address, e))?;
        Ok(Self {
            socket: Watched::watching(socket)?,
            address,
            paused: Cell::new(false),
            resumed: Notify::new(),
            rest_until: Cell::new(None),
        })
    }

    /// What it listens on.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Waits for connections and appends up to `batch_max` (`tune.maxaccept`)
    /// of them to `into`; answers how many, at least one.
    ///
    /// While paused, or resting after exhaustion, connections wait in the
    /// kernel's queue. Dropping the future loses none.
    ///
    /// # Errors
    /// See [`AcceptError`]: after `Exhausted` call again, after `Broken` stop.
    pub async fn accept_batch(
        &self,
        batch_max: usize,
        into: &mut Vec<Accepted>,
    ) -> Result<usize, AcceptError> {
        loop {
            self.ready().await?;
            match self.accept_waiting(batch_max, into)? {
                0 => {}
                taken => return Ok(taken),
            }
        }
    }

    /// Waits until somebody is known to wait in the kernel's queue, without
    /// taking them: for who must look at a limit first. Paused and resting as
    /// [`Acceptor::accept_batch`].
    ///
    /// # Errors
    /// `Broken` only.
    pub async fn ready(&self) -> Result<(), AcceptError> {
        loop {
            if self.paused.get() {
                self.resumed.notified().await;
                continue;
            }
            if let Some(until) = self.rest_until.get() {
                sleep_until(until).await;
                self.rest_until.set(None);
                continue;
            }
            self.socket.readable().await.map_err(|e| self.broken(e))?;
            if !self.paused.get() {
                return Ok(());
            }
        }
    }

    /// Takes who waits now, without waiting; appends up to `batch_max` to
    /// `into` and answers how many, also none. Without [`Acceptor::ready`]
    /// before it, it finds nobody.
    ///
    /// # Errors
    /// As [`Acceptor::accept_batch`].
    pub fn accept_waiting(
        &self,
        batch_max: usize,
        into: &mut Vec<Accepted>,
    ) -> Result<usize, AcceptError> {
        self.take_waiting(batch_max.max(1), into)
    }

    /// Has the next [`Acceptor::accept_waiting`] ask the kernel, whatever is known here: for who
    /// takes the last before the socket is closed.
    pub fn assume_waiting(&self) {
        self.socket.assume_readable();
    }

    /// Stops accepting until [`Acceptor::resume`]: clients wait in the queue.
    pub fn pause(&self) {
        self.paused.set(true);
    }

    /// Goes on accepting, also when resting after exhaustion.
    pub fn resume(&self) {
        self.paused.set(false);
        self.rest_until.set(None);
        self.resumed.notify_waiters();
    }

    /// True between [`Acceptor::pause`] and [`Acceptor::resume`].
    pub fn is_paused(&self) -> bool {
        self.paused.get()
    }

    /// The socket, for its other users.
    pub fn socket(&self) -> &Arc<OwnedFd> {
        self.socket.inner()
    }

    fn take_waiting(
        &self,
        batch_max: usize,
        into: &mut Vec<Accepted>,
    ) -> Result<usize, AcceptError> {
        let mut taken = 0;
        // Clients that gave up while waiting count as turns: the loop ends.
        for _ in 0..batch_max {
            let answer = self.socket.try_read_with(|fd| {
                let answer = net::accept(fd);
                count(|c| c.note_accept(&answer));
                Ok((answer?, Progress::Full))
            });
            match answer {
                Ok((fd, peer)) => {
                    into.push(Accepted { fd, peer });
                    taken += 1;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if is_clients_fault(&e) => {}
                Err(e)
                    if matches!(
                        ErrorClass::of(&e),
                        ErrorClass::Descriptors | ErrorClass::Memory
                    ) =>
                {
                    self.rest_until.set(Some(now() + EXHAUSTED_REST));
                    if taken == 0 {
                        let error = Error::new("accept4", &self.address, e);
                        return Err(AcceptError::Exhausted(error));
                    }
                    break;
                }
                Err(_) if taken > 0 => break,
                Err(e) => return Err(self.broken(e)),
            }
        }
        Ok(taken)
    }

    fn broken(&self, e: io::Error) -> AcceptError {
        AcceptError::Broken(Error::new("accept4", &self.address, e))
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.inner().as_fd()
    }
}

/// Errors of the connection that was about to be accepted, not of the listener
/// (accept(2), "Error handling").
fn is_clients_fault(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::TimedOut
    ) || ErrorClass::of(error) == ErrorClass::Unreachable
        || error.raw_os_error() == Some(EPROTO)
}

/// The protocol error of accept(2).
const EPROTO: i32 = 71;
