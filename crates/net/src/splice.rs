//! Moving bytes from one socket to another without copying them to user space.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

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
}

/// Unused pipes; one pool per worker.
#[derive(Debug)]
pub struct PipePool {
    free: Vec<Pipe>,
    free_max: usize,
    pipe_bytes: Option<usize>,
    in_use: usize,
    in_use_max: usize,
}

impl PipePool {
    /// A pool that keeps `free_max` unused pipes and allows `in_use_max` at once (`maxpipes`);
    /// `pipe_bytes` as in [`Pipe::new`].
    pub fn new(free_max: usize, in_use_max: usize, pipe_bytes: Option<usize>) -> Self {
        Self {
            free: Vec::new(),
            free_max,
            pipe_bytes,
            in_use: 0,
            in_use_max,
        }
    }

    /// An empty pipe; `None` when the limit is reached or the system has none: the caller copies
    /// instead.
    pub fn take(&mut self) -> Option<Pipe> {
        if self.in_use >= self.in_use_max {
            return None;
        }
        let pipe = match self.free.pop() {
            Some(pipe) => pipe,
            None => Pipe::new(self.pipe_bytes).ok()?,
        };
        self.in_use += 1;
        Some(pipe)
    }

    /// Returns a pipe. One that still holds bytes is closed, so that no other connection can ever
    /// read them.
    pub fn give_back(&mut self, pipe: Pipe) {
        self.in_use = self.in_use.saturating_sub(1);
        if pipe.held == 0 && self.free.len() < self.free_max {
            self.free.push(pipe);
        }
    }

    /// Pipes in use, and unused ones.
    pub fn counts(&self) -> (usize, usize) {
        (self.in_use, self.free.len())
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
        let mut pool = PipePool::new(1, 2, Some(1 << 16));
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
        pool.give_back(pipe);
        assert_eq!(pool.counts(), (0, 1));
    }

    #[test]
    fn a_pipe_with_bytes_left_is_never_lent_again() {
        let (mut client, here) = UnixStream::pair().unwrap();
        let mut pool = PipePool::new(4, 1, None);
        let mut pipe = pool.take().unwrap();
        assert!(pool.take().is_none(), "one at most");
        client.write_all(b"secret").unwrap();
        pipe.fill(&here, 4096).unwrap();
        pool.give_back(pipe);
        assert_eq!(pool.counts(), (0, 0));
        assert_eq!(pool.take().unwrap().held_bytes(), 0);
    }
}
