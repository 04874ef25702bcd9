//! The process itself: children, session, root directory, pid file, end.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{self, DumpableBehavior, Pid, WaitOptions};

use crate::{Signal, SystemCallError};

/// The two results of a [`fork`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ForkResult {
    /// In the new process.
    Child,
    /// In the old process, with the child's number.
    Parent(i32),
}

/// How a child process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ChildEnd {
    /// Its number.
    pub pid: i32,
    /// Its exit status, if it ended by itself.
    pub status: Option<i32>,
    /// The signal that ended it, otherwise.
    pub signal: Option<i32>,
}

/// Copies this process (`daemon`, `-W`).
///
/// # Errors
/// `EDEADLK` if the process has more than one thread: the copy would have locks held by threads
/// that it does not have.
#[expect(unsafe_code, reason = "fork")]
pub fn fork() -> Result<ForkResult, SystemCallError> {
    if thread_count() != 1 {
        return Err(SystemCallError::new(
            "fork",
            "threads are running",
            rustix::io::Errno::DEADLK,
        ));
    }
    // SAFETY: this is the only thread, so the child has every lock in a known
    // state and may go on as any program does.
    match unsafe { libc::fork() } {
        0 => Ok(ForkResult::Child),
        pid if pid > 0 => Ok(ForkResult::Parent(pid)),
        _ => Err(SystemCallError::new("fork", "", io::Error::last_os_error())),
    }
}

/// How many threads this process has; 1 if the system does not say.
pub fn thread_count() -> usize {
    fs::read_dir("/proc/self/task").map_or(1, |tasks| tasks.count().max(1))
}

/// A process that is waited for.
#[derive(Debug)]
pub struct ProcessEnd(OwnedFd);

impl ProcessEnd {
    /// The end of a process.
    ///
    /// # Errors
    /// `ESRCH` if there is none.
    pub fn of(pid: i32) -> Result<Self, SystemCallError> {
        let opened = process::pidfd_open(one_process(pid)?, process::PidfdFlags::empty());
        opened
            .map(Self)
            .map_err(|e| SystemCallError::new("pidfd_open", pid, e))
    }

    /// Waits until a descriptor is readable (true), or the process has ended (false).
    ///
    /// # Errors
    /// The system's error.
    pub fn or_readable(&self, fd: impl AsFd) -> io::Result<bool> {
        loop {
            let mut fds = [
                PollFd::new(&fd, PollFlags::IN),
                PollFd::new(&self.0, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(!fds[0].revents().is_empty()),
            }
        }
    }
}

/// Whether a descriptor becomes readable, or ends, within this time.
///
/// # Errors
/// The system's error.
pub fn becomes_readable(fd: impl AsFd, timeout: Duration) -> io::Result<bool> {
    let until = Instant::now() + timeout;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = rustix::event::Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&left)) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(count) => return Ok(count > 0),
        }
    }
}

/// Renames this process (`ps`, `/proc/PID/comm`); the system keeps 15 bytes. To be called before
/// threads are started: they have their own names.
pub fn set_process_name(name: &str) {
    if let Ok(name) = CString::new(name) {
        // The name is only informative: the process works without it.
        let _ = rustix::thread::set_name(&name);
    }
}

/// Detaches from the terminal and session that started us (`daemon`).
pub fn detach_session() -> Result<(), SystemCallError> {
    process::setsid()
        .map(|_| ())
        .map_err(|e| SystemCallError::new("setsid", "", e))
}

/// The replacement for standard input, output and error in the background. To be opened while it is
/// visible: a `chroot` hides it.
///
/// # Errors
/// The system's refusal.
pub fn null_device() -> Result<OwnedFd, SystemCallError> {
    let opened = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null");
    let file = opened.map_err(|e| SystemCallError::new("open", "/dev/null", e))?;
    Ok(file.into())
}

/// Redirects standard input, output and error to [`null_device`] (`daemon`), so that neither the
/// terminal nor a pipe of the caller is kept open.
///
/// # Errors
/// The system's refusal.
pub fn redirect_standard_to(null: impl AsFd) -> Result<(), SystemCallError> {
    let fail = |e| SystemCallError::new("dup2", "/dev/null", e);
    rustix::stdio::dup2_stdin(null.as_fd()).map_err(fail)?;
    rustix::stdio::dup2_stdout(null.as_fd()).map_err(fail)?;
    rustix::stdio::dup2_stderr(null.as_fd()).map_err(fail)
}

/// Makes `path` the root directory, and the working directory (`chroot`).
pub fn change_root(path: &Path) -> Result<(), SystemCallError> {
    process::chroot(path).map_err(|e| SystemCallError::new("chroot", path.display(), e))?;
    change_working_directory(Path::new("/"))
}

/// Changes the working directory (`-C`).
pub fn change_working_directory(path: &Path) -> Result<(), SystemCallError> {
    process::chdir(path).map_err(|e| SystemCallError::new("chdir", path.display(), e))
}

/// Allows (or forbids) core files and tracers after privileges were dropped (`set-dumpable`).
pub fn set_dumpable(on: bool) -> Result<(), SystemCallError> {
    let behavior = if on {
        DumpableBehavior::Dumpable
    } else {
        DumpableBehavior::NotDumpable
    };
    process::set_dumpable_behavior(behavior)
        .map_err(|e| SystemCallError::new("prctl(PR_SET_DUMPABLE)", "", e))
}

/// Writes process numbers, one per line (`pidfile`, `-p`).
pub fn write_pid_file(path: &Path, pids: &[i32]) -> Result<(), SystemCallError> {
    let text: String = pids.iter().map(|pid| format!("{pid}\n")).collect();
    fs::write(path, text).map_err(|e| SystemCallError::new("open", path.display(), e))
}

/// Removes a pid file; it is no error if there is none.
pub fn remove_pid_file(path: &Path) {
    let _ = fs::remove_file(path);
}

/// This process's number.
pub fn process_id() -> i32 {
    process::getpid().as_raw_pid()
}

/// The number of the process that started this one.
pub fn parent_process_id() -> Option<i32> {
    process::getppid().map(Pid::as_raw_pid)
}

/// Sends `signal` to a process (`-sf`, `-st`).
///
/// # Errors
/// `ESRCH` if there is none.
pub fn kill(pid: i32, signal: Signal) -> Result<(), SystemCallError> {
    let target = one_process(pid)?;
    let os = process::Signal::from_named_raw(signal.number())
        .expect("every Signal is one of the system's named ones");
    process::kill_process(target, os).map_err(|e| SystemCallError::new("kill", pid, e))
}

/// Kills a process that does not react to signals (SIGKILL).
///
/// # Errors
/// `ESRCH` if there is none.
pub fn kill_outright(pid: i32) -> Result<(), SystemCallError> {
    let target = one_process(pid)?;
    process::kill_process(target, process::Signal::KILL)
        .map_err(|e| SystemCallError::new("kill", pid, e))
}

/// Ends this process by `signal`, as if it were not handled: the parent sees a death by this signal
/// and not an exit status.
#[expect(unsafe_code, reason = "signal sets are filled by libc")]
pub fn end_by(signal: Signal) -> ! {
    // SAFETY: the default disposition installs no handler; `set` is ours and
    // holds one real signal; the mask changed is this thread's.
    unsafe {
        libc::signal(signal.number(), libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal.number());
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
    let _ = raise(signal);
    // Ignored by default (SIGCHLD), or blocked until another thread takes it.
    std::process::exit(128 + signal.number())
}

/// Sends this process a signal.
pub fn raise(signal: Signal) -> Result<(), SystemCallError> {
    kill(process_id(), signal)
}

/// True if a process with this number exists.
pub fn process_exists(pid: i32) -> bool {
    one_process(pid).is_ok_and(|pid| {
        !matches!(
            process::test_kill_process(pid),
            Err(rustix::io::Errno::SRCH)
        )
    })
}

/// Reaps a child that has ended: `pid`, or any child. `Ok(None)` if none has ended, or (without
/// `pid`) there is no child.
///
/// With `wait`, blocks until one ends.
pub fn child_end(pid: Option<i32>, wait: bool) -> Result<Option<ChildEnd>, SystemCallError> {
    let flags = if wait {
        WaitOptions::empty()
    } else {
        WaitOptions::NOHANG
    };
    loop {
        let answer = match pid {
            Some(pid) => process::waitpid(Some(one_process(pid)?), flags),
            None => process::wait(flags),
        };
        return match answer {
            Ok(Some((pid, status))) => Ok(Some(ChildEnd {
                pid: pid.as_raw_pid(),
                status: status.exit_status(),
                signal: status.terminating_signal(),
            })),
            Ok(None) => Ok(None),
            Err(rustix::io::Errno::INTR) => continue,
            Err(rustix::io::Errno::CHILD) if pid.is_none() => Ok(None),
            Err(e) => Err(SystemCallError::new("waitpid", pid.unwrap_or(-1), e)),
        };
    }
}

/// For the kernel 0 and negative numbers mean groups of processes: they are refused.
pub(crate) fn one_process(pid: i32) -> Result<Pid, SystemCallError> {
    if pid > 0
        && let Some(pid) = Pid::from_raw(pid)
    {
        return Ok(pid);
    }
    Err(SystemCallError::new("kill", pid, rustix::io::Errno::INVAL))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    #[expect(clippy::zombie_processes, reason = "waiting for it is what is tested")]
    fn children_are_signalled_and_their_end_is_told() {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert!(process_exists(pid));
        assert_eq!(child_end(Some(pid), false).unwrap(), None);
        kill(pid, Signal::Term).unwrap();
        let end = child_end(Some(pid), true).unwrap().unwrap();
        assert_eq!(
            end,
            ChildEnd {
                pid,
                status: None,
                signal: Some(libc::SIGTERM)
            }
        );
        assert!(!process_exists(pid));
        assert_eq!(kill(pid, Signal::Term).unwrap_err().os_code(), libc::ESRCH);
    }

    #[test]
    fn groups_are_never_killed() {
        for pid in [0, -1] {
            assert_eq!(kill(pid, Signal::Term).unwrap_err().os_code(), libc::EINVAL);
            assert!(!process_exists(pid));
        }
    }

    #[test]
    fn forking_with_threads_is_refused() {
        // The test harness runs this on a thread of its own.
        assert!(thread_count() > 1);
        assert_eq!(fork().unwrap_err().os_code(), libc::EDEADLK);
    }

    #[test]
    fn pid_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        write_pid_file(&path, &[process_id(), 7]).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            format!("{}\n7\n", process_id())
        );
        remove_pid_file(&path);
        remove_pid_file(&path);
        assert!(!path.exists());
        assert!(write_pid_file(Path::new("/no-such/pid"), &[1]).is_err());
    }
}
