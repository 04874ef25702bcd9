//! Sends lines out of the process. Used by the log thread only, except for the counters.

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

/// Counters of one endpoint.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SinkCounters {
    /// Lines sent.
    pub sent: u64,
    /// Lines dropped: no room, or refused by the system.
    pub dropped: u64,
    /// How often the system refused.
    pub errors: u64,
    /// Why lines were dropped last: the system's error number, or 0 for lack of room.
    pub last_error: i32,
}

/// One open endpoint.
#[derive(Debug)]
pub(crate) struct LogSink {
    exit: SinkOutput,
    pending: Mutex<UnsentLines>,
    sent: AtomicU64,
    dropped: AtomicU64,
    errors: AtomicU64,
    last_error: AtomicI32,
    /// What all sinks of the service dropped, including closed ones.
    dropped_by_all: Arc<AtomicU64>,
}

#[derive(Debug)]
enum SinkOutput {
    Datagram(Datagram),
    /// A pipe, terminal or file.
    File(File),
    /// A connected socket, written to without changing its flags.
    Socket(OwnedFd),
    /// Not implemented: lines are dropped.
    Ring,
}

/// How much of its lines a sink could send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SendProgress {
    All,
    Nothing,
    Some,
}

/// Lines that are being sent.
#[derive(Debug, Default)]
struct UnsentLines {
    bytes: Vec<u8>,
    /// How much of `bytes` is sent.
    start: usize,
    /// The lines in `bytes[start..]`; the first may have been sent in part.
    lengths: VecDeque<usize>,
}

impl LogSink {
    pub(crate) fn open(endpoint: &Endpoint, dropped_by_all: &Arc<AtomicU64>) -> io::Result<Self> {
        let exit = match endpoint {
            Endpoint::Udp(address) => datagram(Address::Ip(*address))?,
            Endpoint::Unix(path) => datagram(Address::Unix(path.clone()))?,
            Endpoint::Fd(number) => descriptor(*number)?,
            Endpoint::Ring(_) => SinkOutput::Ring,
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

    pub(crate) fn counters(&self) -> SinkCounters {
        SinkCounters {
            sent: self.sent.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            last_error: self.last_error.load(Ordering::Relaxed),
        }
    }

    /// Counts lines that were dropped for lack of room.
    pub(crate) fn drop_lines(&self, lines: usize) {
        self.drop_lines_after(0, lines);
    }

    /// Counts lines that were dropped because of this system error.
    fn drop_lines_after(&self, error: i32, lines: usize) {
        self.last_error.store(error, Ordering::Relaxed);
        self.dropped.fetch_add(lines as u64, Ordering::Relaxed);
        self.dropped_by_all
            .fetch_add(lines as u64, Ordering::Relaxed);
    }

    /// Adds a line to be sent; without room it is dropped.
    pub(crate) fn push(&self, line: &[u8]) {
        let mut pending = self.lock();
        if pending.room() < line.len() {
            self.send_pending_locked(&mut pending);
        }
        if pending.room() < line.len() {
            self.drop_lines(1);
            return;
        }
        pending.bytes.extend_from_slice(line);
        pending.lengths.push_back(line.len());
    }

    /// Sends as much as the system accepts.
    pub(crate) fn send_pending(&self) -> SendProgress {
        let mut pending = self.lock();
        let before = pending.lengths.len();
        self.send_pending_locked(&mut pending);
        match pending.lengths.len() {
            0 => SendProgress::All,
            after if after < before => SendProgress::Some,
            _ => SendProgress::Nothing,
        }
    }

    /// Drops what is left.
    pub(crate) fn abandon(&self) {
        let mut pending = self.lock();
        if !pending.lengths.is_empty() {
            self.drop_lines(pending.lengths.len());
        }
        *pending = UnsentLines::default();
    }

    fn lock(&self) -> MutexGuard<'_, UnsentLines> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_pending_locked(&self, pending: &mut UnsentLines) {
        let mut failures = 0;
        while !pending.lengths.is_empty() {
            match self.send_some(pending) {
                Ok(()) => failures = 0,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => {
                    // Either this line is the cause (too long for a datagram) or it is not (nobody
                    // listens): a few attempts tell, without flooding.
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

    /// One system call, or several as long as they succeed.
    fn send_some(&self, pending: &mut UnsentLines) -> io::Result<()> {
        let lines = match &self.exit {
            SinkOutput::Datagram(datagram) => {
                let lines = datagram.send_many(&pending.lines())?;
                if lines == 0 {
                    return Err(ErrorKind::WouldBlock.into());
                }
                pending.forget_lines(lines);
                lines
            }
            SinkOutput::File(file) => {
                let written = (&*file).write(pending.chunk())?;
                pending.forget_bytes(written)?
            }
            SinkOutput::Socket(socket) => {
                let written = ballast_net::send(socket, pending.chunk())?;
                pending.forget_bytes(written)?
            }
            SinkOutput::Ring => {
                self.drop_lines(pending.lengths.len());
                pending.forget_lines(pending.lengths.len());
                0
            }
        };
        self.sent.fetch_add(lines as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl UnsentLines {
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

    /// As many whole lines as a pipe writes atomically, but at least one.
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

    /// Removes what was written and returns how many lines that completed.
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

fn datagram(address: Address) -> io::Result<SinkOutput> {
    let datagram = Datagram::new(address, None).map_err(io::Error::other)?;
    Ok(SinkOutput::Datagram(datagram))
}

/// The descriptor `number`, made such that writing never blocks. If possible, the flags of the
/// original are not changed, because other owners of the same pipe or terminal would notice:
/// non-blocking output confuses a shell and our own messages alike.
fn descriptor(number: i32) -> io::Result<SinkOutput> {
    let copy = File::from(inherit::duplicate(number).map_err(io::Error::other)?);
    let kind = copy.metadata()?.file_type();
    if kind.is_socket() {
        return Ok(SinkOutput::Socket(OwnedFd::from(copy)));
    }
    if !kind.is_fifo() && !kind.is_char_device() {
        return Ok(SinkOutput::File(copy));
    }
    let again = OpenOptions::new()
        .write(true)
        .custom_flags(O_NONBLOCK | O_NOCTTY)
        .open(format!("/proc/self/fd/{}", copy.as_raw_fd()));
    if let Ok(own) = again {
        return Ok(SinkOutput::File(own));
    }
    // We may not open it (another user's terminal, a pipe without reader): share it and its flags.
    // The wrapper is used only to set the flag.
    let shared = UnixStream::from(OwnedFd::from(copy));
    shared.set_nonblocking(true)?;
    Ok(SinkOutput::File(File::from(OwnedFd::from(shared))))
}

/// The values on all architectures that we build for (fcntl.h, asm-generic).
const O_NONBLOCK: i32 = 0o4000;
const O_NOCTTY: i32 = 0o400;
