//! Moving bytes from one socket to another without copying them to user space.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use crate::SystemCallError;

/// A kernel pipe between two sockets, and how many bytes it holds.
#[derive(Debug)]
pub struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    held: usize,
}

impl Pipe {
    /// A new pipe. `size` asks for a capacity in bytes (`tune.pipesize`); the
    /// system may give less, which is no error.
    pub fn new(size: Option<usize>) -> Result<Self, SystemCallError> {
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (read, write) = pipe_with(flags).map_err(|e| SystemCallError::new("pipe2", "", e))?;
        if let Some(size) = size {
            let _ = fcntl_setpipe_size(&write, size);
        }
        Ok(Self {
            read,
            write,
            held: 0,
        })
    }

    /// Bytes in the pipe.
    pub fn held_bytes(&self) -> usize {
        self.held
    }

    /// Moves up to `bytes_max` from a socket into the pipe; 0 is the peer's end.
    ///
    /// # Errors
    /// `WouldBlock` if the socket has no data, or the pipe no room: if the pipe was empty, it is
    /// the socket.
    pub fn fill(&mut self, from: impl AsFd, bytes_max: usize) -> io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let n = splice(from, None, &self.write, None, bytes_max, flags)?;
        self.held += n;
        Ok(n)
    }

    /// Moves the contents of the pipe into a socket. `more` says that more follows at once.
    pub fn drain(&mut self, to: impl AsFd, more: bool) -> io::Result<usize> {
        if self.held == 0 {
            return Ok(0);
        }
        let mut flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        if more {
            flags |= SpliceFlags::MORE;
        }
        let n = match splice(&self.read, None, to, None, self.held, flags) {
            Ok(n) => n,
            Err(Errno::AGAIN) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(e) => return Err(e.into()),
        };
        self.held -= n;
        Ok(n)
    }

    /// Takes bytes out of the pipe: for a socket that they cannot be moved into.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let n = rustix::io::read(&self.read, bytes)?;
        self.held -= n;
        Ok(n)
    }
}

/// How many pipes a process may have, and how many it has; its workers share one.
#[derive(Debug, Default)]
pub struct PipeCounts {
    open_max: usize,
    open: AtomicUsize,
    in_use: AtomicUsize,
}

impl PipeCounts {
    /// At most `open_max` pipes at once (`maxpipes`), used and unused.
    pub fn new(open_max: usize) -> Self {
        Self {
            open_max,
            ..Self::default()
        }
    }

    /// The limit.
    pub fn open_max(&self) -> usize {
        self.open_max
    }

    /// Pipes between two sockets now.
    pub fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Pipes that wait to be used.
    pub fn free(&self) -> usize {
        self.open
            .load(Ordering::Relaxed)
            .saturating_sub(self.in_use())
    }

    /// Counts one more open pipe, unless there are as many as there may be.
    fn open_one(&self) -> bool {
        let more = |open| (open < self.open_max).then_some(open + 1);
        self.open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }
}

/// The capacity of a pipe, unless the configuration says otherwise: the system's own, 16 pages, was
/// measured to cost some 15 % more processor time a megabyte.
const ENLARGED_PIPE_BYTES: usize = 256 * 1024;

/// No more pipes are enlarged. The system gives a user without privileges 16,384 pages for all pipes,
/// and beyond them pipes of two pages: so many take half.
const ENLARGED_PIPES_MAX: usize = 128;

/// Unused pipes; one pool per worker.
#[derive(Debug)]
pub struct PipePool {
    free: Vec<Pipe>,
    free_max: usize,
    pipe_bytes: Option<usize>,
    counts: Arc<PipeCounts>,
}

impl PipePool {
    /// A pool that keeps `free_max` unused pipes, counted with those of the other workers;
    /// `pipe_bytes` as in [`Pipe::new`], where `None` is a capacity that suits large bodies.
    pub fn new(free_max: usize, counts: Arc<PipeCounts>, pipe_bytes: Option<usize>) -> Self {
        Self {
            free: Vec::new(),
            free_max,
            pipe_bytes,
            counts,
        }
    }

    /// An empty pipe; `None` when the limit is reached or the system has none: the caller copies
    /// instead.
    pub fn take(&mut self) -> Option<Pipe> {
        let pipe = match self.free.pop() {
            Some(pipe) => pipe,
            None => self.open()?,
        };
        self.counts.in_use.fetch_add(1, Ordering::Relaxed);
        Some(pipe)
    }

    fn open(&self) -> Option<Pipe> {
        if !self.counts.open_one() {
            return None;
        }
        let is_one_of_few = self.counts.open.load(Ordering::Relaxed) <= ENLARGED_PIPES_MAX;
        let enlarged = is_one_of_few.then_some(ENLARGED_PIPE_BYTES);
        let pipe = Pipe::new(self.pipe_bytes.or(enlarged)).ok();
        if pipe.is_none() {
            self.counts.open.fetch_sub(1, Ordering::Relaxed);
        }
        pipe
    }

    /// Returns a pipe. One that still holds bytes is closed, so that no other connection can ever
    /// read them.
    pub fn give_back(&mut self, pipe: Pipe) {
        self.counts.in_use.fetch_sub(1, Ordering::Relaxed);
        if pipe.held == 0 && self.free.len() < self.free_max {
            self.free.push(pipe);
        } else {
            self.counts.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for PipePool {
    fn drop(&mut self) {
        self.counts
            .open
            .fetch_sub(self.free.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn bytes_go_through_and_counts_hold() {
        let (mut client, here) = UnixStream::pair().unwrap();
        let (there, mut server) = UnixStream::pair().unwrap();
        for socket in [&here, &there] {
            socket.set_nonblocking(true).unwrap();
        }
        let counts = Arc::new(PipeCounts::new(2));
        let mut pool = PipePool::new(1, Arc::clone(&counts), Some(1 << 16));
        let mut pipe = pool.take().unwrap();
        assert_eq!(
            pipe.fill(&here, 4096).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        client.write_all(b"through the kernel").unwrap();
        assert_eq!(pipe.fill(&here, 4096).unwrap(), 18);
        assert_eq!(pipe.held_bytes(), 18);
        assert_eq!(pipe.drain(&there, false).unwrap(), 18);
        assert_eq!(pipe.drain(&there, false).unwrap(), 0);
        let mut bytes = [0; 18];
        server.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"through the kernel");
        drop(client);
        assert_eq!(pipe.fill(&here, 4096).unwrap(), 0, "the peer's end");
        assert_eq!((counts.in_use(), counts.free()), (1, 0));
        pool.give_back(pipe);
        assert_eq!((counts.in_use(), counts.free()), (0, 1));
        drop(pool);
        assert_eq!((counts.in_use(), counts.free()), (0, 0));
    }

    #[test]
    fn bytes_can_be_taken_out() {
        let (mut client, here) = UnixStream::pair().unwrap();
        let mut pipe = Pipe::new(None).unwrap();
        client.write_all(b"one two").unwrap();
        pipe.fill(&here, 4096).unwrap();
        let mut bytes = [0; 4];
        assert_eq!(pipe.read(&mut bytes).unwrap(), 4);
        assert_eq!((&bytes, pipe.held_bytes()), (b"one ", 3));
    }

    #[test]
    fn the_limit_is_that_of_all_workers() {
        let counts = Arc::new(PipeCounts::new(2));
        let pool = || PipePool::new(1, Arc::clone(&counts), None);
        let (mut one, mut other) = (pool(), pool());
        let (first, second) = (one.take().unwrap(), other.take().unwrap());
        assert!(one.take().is_none() && other.take().is_none());
        other.give_back(second);
        assert!(one.take().is_none(), "the other worker keeps it open");
        let second = other.take().unwrap();
        one.give_back(first);
        one.give_back(second);
        assert_eq!((counts.in_use(), counts.free()), (0, 1), "one too many");
    }

    #[test]
    fn a_pipe_with_bytes_left_is_never_lent_again() {
        let (mut client, here) = UnixStream::pair().unwrap();
        let counts = Arc::new(PipeCounts::new(1));
        let mut pool = PipePool::new(4, Arc::clone(&counts), None);
        let mut pipe = pool.take().unwrap();
        assert!(pool.take().is_none(), "one at most");
        client.write_all(b"secret").unwrap();
        pipe.fill(&here, 4096).unwrap();
        pool.give_back(pipe);
        assert_eq!((counts.in_use(), counts.free()), (0, 0));
        assert_eq!(pool.take().unwrap().held_bytes(), 0);
    }
}
