//! Going to the background, and notifying the caller that the start went well.

use std::path::Path;

use ballast_net::{self as net, Fork};

use crate::old_processes::OldProcesses;
use crate::ready::{ReadyNotifier, Side, wait_ready};
use crate::say;

/// Leaves the terminal: the caller goes on in a new process, in its own session, while the old
/// one waits until `notifier` has spoken, and then has `former` go.
pub(crate) fn to_background(notifier: &mut ReadyNotifier, former: &OldProcesses) -> Side {
    let pipe = match std::io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return cannot("pipe", &error),
    };
    let (reader, writer) = pipe;
    match net::fork() {
        Ok(Fork::Child) => {
            drop(reader);
            notifier.add(writer);
            if let Err(error) = net::detach_session() {
                return cannot("setsid", &error);
            }
            Side::GoesOn
        }
        Ok(Fork::Parent(pid)) => {
            drop(writer);
            match wait_ready(reader) {
                Some(0) => Side::Leaves(former.retire(pid)),
                Some(code) => Side::Leaves(code),
                None => Side::Leaves(end_of(pid)),
            }
        }
        Err(error) => cannot("fork", &error),
    }
}

/// The exit code of a child that ended before it was ready.
fn end_of(pid: i32) -> u8 {
    match net::child_end(Some(pid), true) {
        Ok(Some(end)) => code_of(&end).max(1),
        _ => 1,
    }
}

/// The exit code a shell would give to an end: 128 and the number of a signal.
pub(crate) fn code_of(end: &net::ChildEnd) -> u8 {
    let code = end
        .status
        .or(end.signal.map(|signal| 128 + signal))
        .unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Writes the file of the process number. `Err` is the exit code; the message is printed.
pub(crate) fn write_pid(path: &str) -> Result<(), u8> {
    match net::write_pid_file(Path::new(path), &[net::process_id()]) {
        Ok(()) => Ok(()),
        Err(error) => {
            say::alert(&format!(
                "[haproxy.main()] Cannot create pidfile {path} ({error})."
            ));
            Err(1)
        }
    }
}

fn cannot(call: &str, error: &dyn std::fmt::Display) -> Side {
    say::alert(&format!("[haproxy.main()] Cannot fork ({call}: {error})."));
    Side::Leaves(1)
}
