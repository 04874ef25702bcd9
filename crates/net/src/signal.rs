//! Signals as messages: blocked in all threads, read from a descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::SystemCallError;

/// The signals that this program handles.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Signal {
    /// A child process ended or stopped (SIGCHLD).
    Child,
    /// SIGHUP.
    Hup,
    /// SIGINT (Ctrl-C).
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGTERM.
    Term,
    /// SIGTTIN.
    Ttin,
    /// SIGTTOU.
    Ttou,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Child,
        Self::Hup,
        Self::Int,
        Self::Quit,
        Self::Term,
        Self::Ttin,
        Self::Ttou,
        Self::Usr1,
        Self::Usr2,
    ];

    /// Those by which operators and service managers direct a process.
    pub const OF_OPERATORS: [Self; 8] = [
        Self::Hup,
        Self::Int,
        Self::Quit,
        Self::Term,
        Self::Ttin,
        Self::Ttou,
        Self::Usr1,
        Self::Usr2,
    ];

    /// The system's number.
    pub fn number(self) -> i32 {
        match self {
            Self::Child => libc::SIGCHLD,
            Self::Hup => libc::SIGHUP,
            Self::Int => libc::SIGINT,
            Self::Quit => libc::SIGQUIT,
            Self::Term => libc::SIGTERM,
            Self::Ttin => libc::SIGTTIN,
            Self::Ttou => libc::SIGTTOU,
            Self::Usr1 => libc::SIGUSR1,
            Self::Usr2 => libc::SIGUSR2,
        }
    }

    /// The signal with this number, if this program handles it.
    pub fn from_number(number: i32) -> Option<Self> {
        Signal::ALL
            .into_iter()
            .find(|signal| signal.number() == number)
    }
}

/// Delivers a set of signals one after another.
#[derive(Debug)]
pub struct SignalSource {
    fd: OwnedFd,
}

impl SignalSource {
    /// Blocks `signals` in the calling thread and opens a descriptor to read them.
    ///
    /// Threads started afterwards inherit the blocking: call this in `main` before any is started,
    /// or a signal kills the process on a thread that does not block it. Programs started with
    /// `std::process::Command` begin with nothing blocked.
    #[expect(unsafe_code, reason = "signal sets are filled by libc")]
    pub fn open(signals: &[Signal]) -> Result<Self, SystemCallError> {
        // SAFETY: sigset_t is plain bits; zeroes are a value, and sigemptyset
        // makes it the proper empty one.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is ours and the numbers are of real signals.
        unsafe {
            libc::sigemptyset(&raw mut set);
            for signal in signals {
                libc::sigaddset(&raw mut set, signal.number());
            }
        }
        // SAFETY: reads `set`, changes the mask of this thread only.
        let answer =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        if answer != 0 {
            let source = io::Error::from_raw_os_error(answer);
            return Err(SystemCallError::new("pthread_sigmask", "", source));
        }
        // SAFETY: reads `set`; a new descriptor or -1 comes back.
        let fd =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        if fd < 0 {
            return Err(SystemCallError::new(
                "signalfd",
                "",
                io::Error::last_os_error(),
            ));
        }
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// The next signal that has arrived, without waiting.
    pub fn try_next(&self) -> io::Result<Option<Signal>> {
        // signalfd_siginfo: 128 bytes that begin with the number.
        let mut info = [0_u8; 128];
        loop {
            match rustix::io::read(&self.fd, &mut info) {
                Ok(n) if n == info.len() => {
                    let number = u32::from_ne_bytes([info[0], info[1], info[2], info[3]]);
                    let signal = Signal::from_number(number.cast_signed());
                    if signal.is_some() {
                        return Ok(signal);
                    }
                }
                Ok(_) | Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// A duplicate of the descriptor, for an executor that owns what it watches.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    /// Waits for the next signal, at most `timeout` if there is one.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Option<Signal>> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if let Some(signal) = self.try_next()? {
                return Ok(Some(signal));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], left.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

impl AsFd for SignalSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for SignalSource {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.fd.as_raw_fd()
    }
}

/// Makes writing to a closed pipe or socket an error instead of the end of the process.
#[expect(unsafe_code, reason = "signal dispositions are process-wide")]
pub fn ignore_broken_pipe() {
    // SAFETY: ignoring installs no handler, so nothing runs asynchronously.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_system_s_and_unique() {
        for signal in Signal::ALL {
            assert_eq!(Signal::from_number(signal.number()), Some(signal));
        }
        assert_eq!(Signal::from_number(libc::SIGSEGV), None);
    }

    /// The set is empty: a signal goes to the whole process, and the other threads of the tests do not
    /// block it. That real signals arrive is tested with a process of its own (`ballast-worker`).
    #[test]
    fn without_a_signal_none_is_returned() {
        let source = SignalSource::open(&[]).unwrap();
        assert_eq!(source.try_next().unwrap(), None);
        assert_eq!(source.wait(Some(Duration::from_millis(1))).unwrap(), None);
    }
}
