//! Where lines leave the process. Used by the log thread only, but for the
//! counters.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_net::{Address, Datagram, inherit};

use crate::limits::{FAILURES_IN_A_ROW_MAX, KEPT_BYTES_MAX, PENDING_BYTES_MAX, WRITE_BYTES_MAX};
use crate::spec::Endpoint;

/// What became of the lines for one endpoint.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Lines handed to the system.
    pub sent: u64,
    /// Lines given up: no room, or refused by the system.
    pub dropped: u64,
    /// Times the system refused.
    pub errors: u64,
    /// Why lines were given up last: the system's number, or 0 for want of room.
    pub last_error: i32,
}

/// One opened endpoint.
#[derive(Debug)]
pub(crate) struct Sink {
    exit: Exit,
    pending: Mutex<Pending>,
    sent: AtomicU64,
    dropped: AtomicU64,
    errors: AtomicU64,
    last_error: AtomicI32,
    /// What all sinks of the service gave up, those that are closed by now too.
    dropped_by_all: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Exit {
    Datagram(Datagram),
    /// A pipe, terminal or file.
    File(File),
    /// A connected socket, written to without its flags being touched.
    Socket(OwnedFd),
    /// Nothing yet.
    Ring,
}

/// How much of what it held a sink could send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pumped {
    All,
    Nothing,
    Some,
}

/// Lines on their way out.
#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    /// How much of `bytes` is gone.
    start: usize,
    /// The lines in `bytes[start..]`; the first may have been sent in part.
    lengths: VecDeque<usize>,
}

impl Sink {
    pub(crate) fn open(endpoint: &Endpoint, dropped_by_all: &Arc<AtomicU64>) -> io::Result<Self> {
        let exit = match endpoint {
            Endpoint::Udp(address) => datagram(Address::Ip(*address))?,
            Endpoint::Unix(path) => datagram(Address::Unix(path.clone()))?,
            Endpoint::Fd(number) => descriptor(*number)?,
            Endpoint::Ring(_) => Exit::Ring,
        };
        Ok(Self {
            exit,
            pending: Mutex::default(),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            last_error: AtomicI32::new(0),
            dropped_by_all: Arc::clone(dropped_by_all),
        })
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            sent: self.sent.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            last_error: self.last_error.load(Ordering::Relaxed),
        }
    }

    /// Counts lines that were given up for want of room.
    pub(crate) fn drop_lines(&self, lines: usize) {
        self.drop_lines_after(0, lines);
    }

    /// Counts lines that were given up because of the system's refusal of this number.
    fn drop_lines_after(&self, error: i32, lines: usize) {
        self.last_error.store(error, Ordering::Relaxed);
        self.dropped.fetch_add(lines as u64, Ordering::Relaxed);
        self.dropped_by_all
            .fetch_add(lines as u64, Ordering::Relaxed);
    }

    /// Takes a line on its way; with no room it is given up.
    pub(crate) fn push(&self, line: &[u8]) {
        let mut pending = self.lock();
        if pending.room() < line.len() {
            self.pump_locked(&mut pending);
        }
        if pending.room() < line.len() {
            self.drop_lines(1);
            return;
        }
        pending.bytes.extend_from_slice(line);
        pending.lengths.push_back(line.len());
    }

    /// Sends what the system takes.
    pub(crate) fn pump(&self) -> Pumped {
        let mut pending = self.lock();
        let before = pending.lengths.len();
        self.pump_locked(&mut pending);
        match pending.lengths.len() {
            0 => Pumped::All,
            after if after < before => Pumped::Some,
            _ => Pumped::Nothing,
        }
    }

    /// Gives up what is left.
    pub(crate) fn abandon(&self) {
        let mut pending = self.lock();
        if !pending.lengths.is_empty() {
            self.drop_lines(pending.lengths.len());
        }
        *pending = Pending::default();
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pump_locked(&self, pending: &mut Pending) {
        let mut failures = 0;
        while !pending.lengths.is_empty() {
            match self.send_some(pending) {
                Ok(()) => failures = 0,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => {
                    // This line is the reason (too long for a datagram) or not
                    // (nobody listens): a few tries tell, without a storm.
                    failures += 1;
                    self.errors.fetch_add(1, Ordering::Relaxed);
                    let given_up = match failures {
                        FAILURES_IN_A_ROW_MAX.. => pending.lengths.len(),
                        _ => 1,
                    };
                    pending.forget_lines(given_up);
                    self.drop_lines_after(e.raw_os_error().unwrap_or(0), given_up);
                }
            }
        }
        pending.compact();
    }

    /// One call, or a few that all succeed.
    fn send_some(&self, pending: &mut Pending) -> io::Result<()> {
        let lines = match &self.exit {
            Exit::Datagram(datagram) => {
                let lines = datagram.send_many(&pending.lines())?;
                if lines == 0 {
                    return Err(ErrorKind::WouldBlock.into());
                }
                pending.forget_lines(lines);
                lines
            }
            Exit::File(file) => {
                let written = (&*file).write(pending.chunk())?;
                pending.forget_bytes(written)?
            }
            Exit::Socket(socket) => {
                let written = ballast_net::send(socket, pending.chunk())?;
                pending.forget_bytes(written)?
            }
            Exit::Ring => {
                self.drop_lines(pending.lengths.len());
                pending.forget_lines(pending.lengths.len());
                0
            }
        };
        self.sent.fetch_add(lines as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Pending {
    fn room(&self) -> usize {
        PENDING_BYTES_MAX.saturating_sub(self.bytes.len())
    }

    fn lines(&self) -> Vec<&[u8]> {
        let mut at = self.start;
        let line = |length: &usize| {
            at += length;
            &self.bytes[at - length..at]
        };
        self.lengths.iter().map(line).collect()
    }

    /// As many whole lines as a pipe takes at once, but at least one.
    fn chunk(&self) -> &[u8] {
        let mut size = 0;
        for length in &self.lengths {
            if size > 0 && size + length > WRITE_BYTES_MAX {
                break;
            }
            size += length;
        }
        &self.bytes[self.start..self.start + size]
    }

    fn forget_lines(&mut self, count: usize) {
        self.start += self.lengths.drain(..count).sum::<usize>();
    }

    /// Forgets what was written and answers how many lines it ended.
    fn forget_bytes(&mut self, mut written: usize) -> io::Result<usize> {
        if written == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        self.start += written;
        let mut lines = 0;
        while let Some(length) = self.lengths.front_mut() {
            if written < *length {
                *length -= written;
                break;
            }
            written -= *length;
            self.lengths.pop_front();
            lines += 1;
        }
        Ok(lines)
    }

    fn compact(&mut self) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        if self.bytes.is_empty() {
            self.bytes.shrink_to(KEPT_BYTES_MAX);
        }
    }
}

fn datagram(address: Address) -> io::Result<Exit> {
    let datagram = Datagram::new(address, None).map_err(io::Error::other)?;
    Ok(Exit::Datagram(datagram))
}

/// The descriptor `number`, such that writing never waits and, where it can be
/// had, without a flag that other owners of the same pipe or terminal would
/// notice: non-blocking output surprises a shell and our own messages alike.
fn descriptor(number: i32) -> io::Result<Exit> {
    let copy = File::from(inherit::duplicate(number).map_err(io::Error::other)?);
    let kind = copy.metadata()?.file_type();
    if kind.is_socket() {
        return Ok(Exit::Socket(OwnedFd::from(copy)));
    }
    if !kind.is_fifo() && !kind.is_char_device() {
        return Ok(Exit::File(copy));
    }
    let again = OpenOptions::new()
        .write(true)
        .custom_flags(O_NONBLOCK | O_NOCTTY)
        .open(format!("/proc/self/fd/{}", copy.as_raw_fd()));
    if let Ok(own) = again {
        return Ok(Exit::File(own));
    }
    // Not ours to open (another user's terminal, a pipe without reader): share
    // it and its flags. The wrapper asks for the flag only, whatever it wraps.
    let shared = UnixStream::from(OwnedFd::from(copy));
    shared.set_nonblocking(true)?;
    Ok(Exit::File(File::from(OwnedFd::from(shared))))
}

/// Linux's numbers, of all architectures we build for (fcntl.h, asm-generic).
const O_NONBLOCK: i32 = 0o4000;
const O_NOCTTY: i32 = 0o400;
