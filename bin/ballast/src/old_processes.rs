//! The processes that this one replaces (`-sf`, `-st`).
//!
//! They are signalled once this process serves. By then it has given up the rights to signal them, so
//! another process keeps the rights and waits: the process that was started, if the program goes to
//! the background, else a child. That process signals the old processes and watches whether they end.
//! If it may not signal them, it ends the new process: either the old or the new one serves, not both.

use std::time::{Duration, Instant};

use ballast_net::{self as net, Address, ForeignListener, ForkResult, Signal};

use crate::args::Options;
use crate::console;
use crate::ready::{ForkSide, ReadyNotifier, wait_ready};

/// How long old processes have to close their listening sockets.
const STOP_LISTENING_TIMEOUT: Duration = Duration::from_secs(5);

/// The time between two checks.
const POLL_PERIOD: Duration = Duration::from_millis(5);

/// Processes that this one replaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct OldProcesses {
    /// `-sf`: asked to finish what they have.
    finish_pids: Vec<i32>,
    /// `-st`: ended at once.
    terminate_pids: Vec<i32>,
}

impl OldProcesses {
    /// Those of the command line.
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            finish_pids: options.finish.clone(),
            terminate_pids: options.terminate.clone(),
        }
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.finish_pids.is_empty() && self.terminate_pids.is_empty()
    }

    fn pids(&self) -> impl Iterator<Item = i32> + '_ {
        self.finish_pids.iter().chain(&self.terminate_pids).copied()
    }

    /// The processes and all their children: a master with its workers.
    pub(crate) fn pids_with_descendants(&self) -> Vec<i32> {
        self.pids().flat_map(net::process_tree).collect()
    }

    /// Sends each of them a signal: `finish_signal` to those of `-sf`, `terminate_signal` to
    /// those of `-st`.
    pub(crate) fn signal(&self, finish_signal: Signal, terminate_signal: Signal) {
        // A process may be gone already; the right to signal it was checked before.
        let _ = self.try_signal(finish_signal, terminate_signal);
    }

    fn try_signal(
        &self,
        finish_signal: Signal,
        terminate_signal: Signal,
    ) -> Result<(), net::SystemCallError> {
        let mut signalled = Ok(());
        for (pids, signal) in [
            (&self.finish_pids, finish_signal),
            (&self.terminate_pids, terminate_signal),
        ] {
            for &pid in pids {
                match net::kill(pid, signal) {
                    Err(error) if error.kind() == net::ErrorClass::Denied => signalled = Err(error),
                    // Gone already.
                    _ => {}
                }
            }
        }
        signalled
    }

    /// Checks, before the start, whether they exist and can be signalled. `Err` is the exit code; the
    /// messages are printed.
    pub(crate) fn check_signalable(&self) -> Result<(), u8> {
        for pid in self.pids() {
            match net::may_signal(pid) {
                Ok(()) => {}
                Err(error) if error.kind() == net::ErrorClass::Denied => {
                    console::alert(&cannot_signal(&error));
                    return Err(1);
                }
                Err(_) => console::warn(&format!("There is no process {pid} to take over from.")),
            }
        }
        Ok(())
    }

    /// Starts a child with the present rights that waits until this process serves, and then signals
    /// the old processes. Without old processes it does nothing.
    pub(crate) fn retire_when_ready(self, notifier: &mut ReadyNotifier) -> ForkSide {
        if self.is_empty() {
            return ForkSide::Continue;
        }
        let new_pid = net::process_id();
        let report_fork_error = |error: &dyn std::fmt::Display| {
            console::alert(&format!("[haproxy.main()] Cannot fork ({error})."));
            ForkSide::Exit(1)
        };
        let (reader, writer) = match std::io::pipe() {
            Ok(pipe) => pipe,
            Err(error) => return report_fork_error(&error),
        };
        // A child of a child: the serving process has no child to wait for.
        match net::fork() {
            Ok(ForkResult::Parent(child)) => {
                notifier.add(writer);
                // The first child ends at once.
                match net::child_end(Some(child), true) {
                    Ok(Some(end)) if end.status == Some(0) => ForkSide::Continue,
                    Ok(_) => report_fork_error(&"the first child could not fork the second"),
                    Err(error) => report_fork_error(&error),
                }
            }
            Ok(ForkResult::Child) => {
                drop(writer);
                match net::fork() {
                    Ok(ForkResult::Parent(_)) => ForkSide::Exit(0),
                    Ok(ForkResult::Child) if wait_ready(reader).is_some() => {
                        ForkSide::Exit(self.retire(new_pid))
                    }
                    Ok(ForkResult::Child) => ForkSide::Exit(0),
                    Err(_) => ForkSide::Exit(1),
                }
            }
            Err(error) => report_fork_error(&error),
        }
    }

    /// Ends the old processes, now that `successor` serves, and watches whether they end. Returns the
    /// exit code.
    pub(crate) fn retire(&self, new_pid: i32) -> u8 {
        if self.is_empty() {
            return 0;
        }
        let pids = self.pids_with_descendants();
        let shared_listeners = find_shared_listeners(&pids, new_pid);
        if let Err(error) = self.try_signal(Signal::Usr1, Signal::Term) {
            console::alert(&cannot_signal(&error));
            // It may have ended already.
            let _ = net::kill(new_pid, Signal::Usr1);
            return 1;
        }
        let until = Instant::now() + STOP_LISTENING_TIMEOUT;
        loop {
            let remaining_pid = pids.iter().copied().find(|&pid| net::process_lives(pid));
            let still_listening = shared_listeners
                .as_ref()
                .map(|listeners| listeners.iter().find(|one| one.is_held()));
            let (Some(pid), Err(_) | Ok(Some(_))) = (remaining_pid, &still_listening) else {
                return 0;
            };
            if Instant::now() >= until {
                warn_of_remaining(pid, still_listening);
                return 0;
            }
            std::thread::sleep(POLL_PERIOD);
        }
    }
}

/// Warns that an old process has not ended.
fn warn_of_remaining(
    pid: i32,
    still_listening: Result<Option<&ForeignListener>, &net::SystemCallError>,
) {
    match still_listening {
        Ok(listener) => {
            let address = listener.and_then(|one| one.address().ok());
            let address = address.map_or_else(String::new, |address| address.to_string());
            console::warn(&format!(
                "Process {pid} was told to finish, and still listens on {address}: two processes \
                 serve."
            ));
        }
        Err(error) => console::notice(&format!(
            "Process {pid} was told to finish, and is still there; whether it listens cannot be \
             seen ({error})."
        )),
    }
}

/// The network sockets of the processes whose addresses `successor` listens on too.
fn find_shared_listeners(
    pids: &[i32],
    new_pid: i32,
) -> Result<Vec<ForeignListener>, net::SystemCallError> {
    let mut new_addresses = Vec::new();
    for pid in net::process_tree(new_pid) {
        let listeners = net::listening_sockets_of(pid)?;
        new_addresses.extend(listeners.iter().filter_map(|one| one.address().ok()));
    }
    let mut shared = Vec::new();
    for &pid in pids {
        shared.extend(net::listening_sockets_of(pid)?);
    }
    shared.retain(|one| match one.address() {
        Ok(address @ Address::Ip(_)) => new_addresses.contains(&address),
        _ => false,
    });
    Ok(shared)
}

fn cannot_signal(error: &net::SystemCallError) -> String {
    format!(
        "The former process cannot be told to finish ({error}): the old process keeps serving; this one exits."
    )
}
