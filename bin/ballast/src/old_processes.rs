//! The processes that this one replaces (`-sf`, `-st`).
//!
//! To signal them takes rights that a serving process gives up, and must wait until this process
//! serves. So a process that keeps these rights waits: the process that was called, where the program
//! goes to the background, else a child. It signals the old processes, watches whether they end, and
//! ends this process where they cannot be signalled: there are never two that serve for good, and
//! never none.

use std::time::{Duration, Instant};

use ballast_net::{self as net, Address, ForeignListener, Fork, Signal};

use crate::args::Options;
use crate::ready::{ReadyNotifier, Side, wait_ready};
use crate::say;

/// How long they have to listen no more.
const GOING_PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks at them.
const LOOK_PERIOD: Duration = Duration::from_millis(5);

/// Processes that this one replaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct OldProcesses {
    /// `-sf`: asked to finish what they have.
    finish: Vec<i32>,
    /// `-st`: ended at once.
    terminate: Vec<i32>,
}

impl OldProcesses {
    /// Those of the command line.
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            finish: options.finish.clone(),
            terminate: options.terminate.clone(),
        }
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.finish.is_empty() && self.terminate.is_empty()
    }

    fn pids(&self) -> impl Iterator<Item = i32> + '_ {
        self.finish.iter().chain(&self.terminate).copied()
    }

    /// They and all they have started: a master with its workers.
    pub(crate) fn trees(&self) -> Vec<i32> {
        self.pids().flat_map(net::process_tree).collect()
    }

    /// Tells each of them a signal.
    pub(crate) fn tell(&self, finish: Signal, terminate: Signal) {
        // One that is gone already is what was wanted; what is forbidden was found out before.
        let _ = self.try_tell(finish, terminate);
    }

    fn try_tell(&self, finish: Signal, terminate: Signal) -> Result<(), net::Error> {
        let mut told = Ok(());
        for (pids, signal) in [(&self.finish, finish), (&self.terminate, terminate)] {
            for &pid in pids {
                match net::kill(pid, signal) {
                    Err(error) if error.kind() == net::ErrorClass::Denied => told = Err(error),
                    // Gone already.
                    _ => {}
                }
            }
        }
        told
    }

    /// Checks, before the start, whether they exist and can be signalled. `Err` is the exit code; the
    /// messages are printed.
    pub(crate) fn look(&self) -> Result<(), u8> {
        for pid in self.pids() {
            match net::may_signal(pid) {
                Ok(()) => {}
                Err(error) if error.kind() == net::ErrorClass::Denied => {
                    say::alert(&cannot(&error));
                    return Err(1);
                }
                Err(_) => say::warn(&format!("There is no process {pid} to take over from.")),
            }
        }
        Ok(())
    }

    /// Where there are old processes: has a child with the present rights wait until this process
    /// serves, and signal them.
    pub(crate) fn tell_when_ready(self, notifier: &mut ReadyNotifier) -> Side {
        if self.is_empty() {
            return Side::GoesOn;
        }
        let successor = net::process_id();
        let cannot = |error: &dyn std::fmt::Display| {
            say::alert(&format!("[haproxy.main()] Cannot fork ({error})."));
            Side::Leaves(1)
        };
        let (reader, writer) = match std::io::pipe() {
            Ok(pipe) => pipe,
            Err(error) => return cannot(&error),
        };
        // A child of a child: the serving process has no child to wait for.
        match net::fork() {
            Ok(Fork::Parent(child)) => {
                notifier.add(writer);
                // It ends at once.
                match net::child_end(Some(child), true) {
                    Ok(Some(end)) if end.status == Some(0) => Side::GoesOn,
                    Ok(_) => cannot(&"its child cannot"),
                    Err(error) => cannot(&error),
                }
            }
            Ok(Fork::Child) => {
                drop(writer);
                match net::fork() {
                    Ok(Fork::Parent(_)) => Side::Leaves(0),
                    Ok(Fork::Child) if wait_ready(reader).is_some() => {
                        Side::Leaves(self.retire(successor))
                    }
                    Ok(Fork::Child) => Side::Leaves(0),
                    Err(_) => Side::Leaves(1),
                }
            }
            Err(error) => cannot(&error),
        }
    }

    /// `successor` serves: tells them to go, and looks whether they do. Answers the exit code.
    pub(crate) fn retire(&self, successor: i32) -> u8 {
        if self.is_empty() {
            return 0;
        }
        let trees = self.trees();
        let held = listeners_in_the_way(&trees, successor);
        if let Err(error) = self.try_tell(Signal::Usr1, Signal::Term) {
            say::alert(&cannot(&error));
            // It may be gone by itself.
            let _ = net::kill(successor, Signal::Usr1);
            return 1;
        }
        let until = Instant::now() + GOING_PATIENCE;
        loop {
            let left = trees.iter().copied().find(|&pid| net::process_lives(pid));
            let in_the_way = held
                .as_ref()
                .map(|held| held.iter().find(|one| one.is_held()));
            let (Some(left), Err(_) | Ok(Some(_))) = (left, &in_the_way) else {
                return 0;
            };
            if Instant::now() >= until {
                tell_who_stays(left, in_the_way);
                return 0;
            }
            std::thread::sleep(LOOK_PERIOD);
        }
    }
}

/// Warns that a former process that was told to finish is still there.
fn tell_who_stays(pid: i32, in_the_way: Result<Option<&ForeignListener>, &net::Error>) {
    match in_the_way {
        Ok(listener) => {
            let address = listener.and_then(|one| one.address().ok());
            let address = address.map_or_else(String::new, |address| address.to_string());
            say::warn(&format!(
                "Process {pid} was told to finish, and still listens on {address}: two processes \
                 serve."
            ));
        }
        Err(error) => say::notice(&format!(
            "Process {pid} was told to finish, and is still there; whether it listens cannot be \
             seen ({error})."
        )),
    }
}

/// What the processes listen on that `successor` listens on too, on the network.
fn listeners_in_the_way(pids: &[i32], successor: i32) -> Result<Vec<ForeignListener>, net::Error> {
    let mut ours = Vec::new();
    for pid in net::process_tree(successor) {
        let listeners = net::listening_sockets_of(pid)?;
        ours.extend(listeners.iter().filter_map(|one| one.address().ok()));
    }
    let mut held = Vec::new();
    for &pid in pids {
        held.extend(net::listening_sockets_of(pid)?);
    }
    held.retain(|one| match one.address() {
        Ok(address @ Address::Ip(_)) => ours.contains(&address),
        _ => false,
    });
    Ok(held)
}

fn cannot(error: &net::Error) -> String {
    format!("The former process cannot be told to finish ({error}): it goes on, this one does not.")
}
