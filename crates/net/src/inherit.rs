//! Descriptors this process was started with (`fd@N`).
//!
//! A number in a configuration must never name a descriptor that another part of the process owns.
//! So the inherited descriptors are collected once, before anything else is opened, and can only be
//! taken from this list.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use crate::SystemCallError;

static INHERITED: Mutex<BTreeMap<RawFd, OwnedFd>> = Mutex::new(BTreeMap::new());

/// Collects the descriptors from 3 up that this process was started with, and marks them
/// close-on-exec.
///
/// Must be the first thing that `main` does: every descriptor that is open then is taken as
/// inherited and belongs to this list from now on. Later calls, and calls from a process with
/// several threads, do nothing.
pub fn collect() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if crate::thread_count() != 1 {
            return;
        }
        for number in open_numbers() {
            let fd = own(number);
            // Programs that we start (external checks) must not get them.
            let _ = rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC);
            list().insert(number, fd);
        }
    });
}

/// Takes an inherited descriptor out of the list: the caller owns it.
///
/// # Errors
/// `EBADF` if it was not inherited or is taken already.
pub fn take(number: RawFd) -> Result<OwnedFd, SystemCallError> {
    list().remove(&number).ok_or_else(|| not_inherited(number))
}

/// A duplicate of an inherited descriptor, or of 0, 1 or 2; the original stays on the list.
///
/// # Errors
/// `EBADF` if it was not inherited or is taken already.
pub fn duplicate(number: RawFd) -> Result<OwnedFd, SystemCallError> {
    let copy = match number {
        0 => rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3),
        1 => rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3),
        2 => rustix::io::fcntl_dupfd_cloexec(io::stderr(), 3),
        _ => match list().get(&number) {
            Some(fd) => rustix::io::fcntl_dupfd_cloexec(fd, 3),
            None => return Err(not_inherited(number)),
        },
    };
    copy.map_err(|e| SystemCallError::new("fcntl(F_DUPFD)", format_args!("fd@{number}"), e))
}

/// Sets whether the descriptors on the list stay open in the programs that this process starts
/// next.
///
/// # Errors
/// The system's error.
pub fn pass_on(on: bool) -> io::Result<()> {
    list()
        .values()
        .try_for_each(|fd| crate::set_inheritable(fd, on))
}

/// Adds a descriptor to the list as if it had been inherited, and returns its number.
pub fn register(fd: OwnedFd) -> RawFd {
    let number = fd.as_raw_fd();
    list().insert(number, fd);
    number
}

/// The numbers that are still on the list.
pub fn numbers() -> Vec<RawFd> {
    list().keys().copied().collect()
}

fn list() -> MutexGuard<'static, BTreeMap<RawFd, OwnedFd>> {
    INHERITED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn not_inherited(number: RawFd) -> SystemCallError {
    let source = io::Error::from_raw_os_error(libc::EBADF);
    SystemCallError::new("inherit", format_args!("fd@{number}"), source)
}

/// The open numbers from 3 up, without the one that reads the directory.
fn open_numbers() -> Vec<RawFd> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    let mut numbers: Vec<RawFd> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&number| number > 2)
        .collect();
    // The directory is closed by now: its own number is not open any more.
    numbers.retain(|number| fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok());
    numbers
}

#[expect(unsafe_code, reason = "a number becomes an owned descriptor")]
fn own(number: RawFd) -> OwnedFd {
    // SAFETY: `collect` runs once, first in a process of one thread, and the
    // number was just seen open: nobody in this program owns it yet.
    unsafe { OwnedFd::from_raw_fd(number) }
}
