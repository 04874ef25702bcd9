//! Accepting connections from a listening socket.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_net::{self as net, Address, ErrorClass, SystemCallError};
use tokio::sync::Notify;

use crate::context::count;
use crate::{IoProgress, Stream, WatchedFd, now, sleep_until};

/// How long accepting pauses after descriptors or memory ran out.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// A listening socket as one worker uses it. Several workers may each have one
/// on the same socket.
#[derive(Debug)]
pub struct Acceptor {
    socket: WatchedFd<Arc<OwnedFd>>,
    address: Address,
    paused: Cell<bool>,
    resumed: Notify,
    exhausted_until: Cell<Option<Instant>>,
}

/// A new connection, not yet bound to a worker.
#[derive(Debug)]
pub struct AcceptedSocket {
    /// The socket: non-blocking, close-on-exec.
    pub fd: OwnedFd,
    /// The client's address.
    pub peer: Address,
}

/// Why accepting failed.
#[derive(Debug)]
pub enum AcceptError {
    /// The listening socket is closed or unusable: stop.
    Broken(SystemCallError),
    /// Descriptors or memory ran out. Accepting pauses for 100 ms by itself; count it, tell the
    /// operator, and call again.
    Exhausted(SystemCallError),
}

impl AcceptedSocket {
    /// Makes it a stream of the calling worker.
    pub fn into_stream(self) -> Result<(Stream, Address), SystemCallError> {
        Ok((Stream::from_fd(self.fd)?, self.peer))
    }
}

impl Acceptor {
    /// Watches a listening socket on this worker, and makes it non-blocking if necessary.
    pub fn new(socket: Arc<OwnedFd>) -> Result<Self, SystemCallError> {
        let address = Address::local_of(&socket)
            .map_err(|e| SystemCallError::new("getsockname", "listener", e))?;
        // A blocking accept would stop the whole worker.
        net::set_non_blocking(&socket)
            .map_err(|e| SystemCallError::new("ioctl(FIONBIO)", &address, e))?;
        Ok(Self {
            socket: WatchedFd::watching(socket)?,
            address,
            paused: Cell::new(false),
            resumed: Notify::new(),
            exhausted_until: Cell::new(None),
        })
    }

    /// The address it listens on.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Waits for connections and appends up to `batch_max` (`tune.maxaccept`) of them to `into`;
    /// returns how many, at least one.
    ///
    /// While it is paused, also after exhaustion, connections wait in the kernel's queue. Dropping
    /// the future loses none.
    ///
    /// # Errors
    /// See [`AcceptError`]: after `Exhausted` call again, after `Broken` stop.
    pub async fn accept_batch(
        &self,
        batch_max: usize,
        into: &mut Vec<AcceptedSocket>,
    ) -> Result<usize, AcceptError> {
        loop {
            self.ready().await?;
            match self.accept_waiting(batch_max, into)? {
                0 => {}
                taken => return Ok(taken),
            }
        }
    }

    /// Waits until the kernel's queue has a connection, without accepting it, for callers that must
    /// check a limit first. Pauses as [`Acceptor::accept_batch`] does.
    ///
    /// # Errors
    /// `Broken` only.
    pub async fn ready(&self) -> Result<(), AcceptError> {
        loop {
            if self.paused.get() {
                self.resumed.notified().await;
                continue;
            }
            if let Some(until) = self.exhausted_until.get() {
                sleep_until(until).await;
                self.exhausted_until.set(None);
                continue;
            }
            self.socket.readable().await.map_err(|e| self.broken(e))?;
            if !self.paused.get() {
                return Ok(());
            }
        }
    }

    /// Accepts the connections that wait now, without waiting; appends up to `batch_max` to `into`
    /// and returns how many, possibly none. It finds none unless [`Acceptor::ready`] returned
    /// before.
    ///
    /// # Errors
    /// As [`Acceptor::accept_batch`].
    pub fn accept_waiting(
        &self,
        batch_max: usize,
        into: &mut Vec<AcceptedSocket>,
    ) -> Result<usize, AcceptError> {
        self.take_waiting(batch_max.max(1), into)
    }

    /// Makes the next [`Acceptor::accept_waiting`] ask the kernel in any case: to accept the last
    /// connections before the socket is closed.
    pub fn assume_waiting(&self) {
        self.socket.assume_readable();
    }

    /// Stops accepting until [`Acceptor::resume`]: connections wait in the queue.
    pub fn pause(&self) {
        self.paused.set(true);
    }

    /// Continues accepting, also after exhaustion.
    pub fn resume(&self) {
        self.paused.set(false);
        self.exhausted_until.set(None);
        self.resumed.notify_waiters();
    }

    /// True between [`Acceptor::pause`] and [`Acceptor::resume`].
    pub fn is_paused(&self) -> bool {
        self.paused.get()
    }

    /// The socket, for its other owners.
    pub fn socket(&self) -> &Arc<OwnedFd> {
        self.socket.inner()
    }

    fn take_waiting(
        &self,
        batch_max: usize,
        into: &mut Vec<AcceptedSocket>,
    ) -> Result<usize, AcceptError> {
        let mut taken = 0;
        // Connections that were aborted while they waited count as well, so that the loop ends.
        for _ in 0..batch_max {
            let answer = self.socket.try_read_with(|fd| {
                let answer = net::accept(fd);
                count(|c| c.note_accept(&answer));
                Ok((answer?, IoProgress::Full))
            });
            match answer {
                Ok((fd, peer)) => {
                    into.push(AcceptedSocket { fd, peer });
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
                    self.exhausted_until.set(Some(now() + EXHAUSTED_PAUSE));
                    if taken == 0 {
                        let error = SystemCallError::new("accept4", &self.address, e);
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
        AcceptError::Broken(SystemCallError::new("accept4", &self.address, e))
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
