//! Going to the background, and notifying the caller that the start succeeded.

use std::path::Path;

use ballast_net::{self as net, ForkResult};

use crate::console;
use crate::old_processes::OldProcesses;
use crate::ready::{ForkSide, ReadyNotifier, wait_ready};

/// Forks into the background: the child goes on in a session of its own. The parent waits until the
/// child is ready, ends the `former` processes, and exits.
pub(crate) fn to_background(notifier: &mut ReadyNotifier, former: &OldProcesses) -> ForkSide {
    let pipe = match std::io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return forking_failed("pipe", &error),
    };
    let (reader, writer) = pipe;
    match net::fork() {
        Ok(ForkResult::Child) => {
            drop(reader);
            notifier.add(writer);
            if let Err(error) = net::detach_session() {
                return forking_failed("setsid", &error);
            }
            ForkSide::Continue
        }
        Ok(ForkResult::Parent(pid)) => {
            drop(writer);
            match wait_ready(reader) {
                Some(0) => ForkSide::Exit(former.retire(pid)),
                Some(code) => ForkSide::Exit(code),
                None => ForkSide::Exit(exit_code_of_child(pid)),
            }
        }
        Err(error) => forking_failed("fork", &error),
    }
}

/// The exit code of a child that ended before it was ready.
fn exit_code_of_child(pid: i32) -> u8 {
    match net::child_end(Some(pid), true) {
        Ok(Some(end)) => exit_code_of(&end).max(1),
        _ => 1,
    }
}

/// The exit code a shell would give to an end: 128 and the number of a signal.
pub(crate) fn exit_code_of(end: &net::ChildEnd) -> u8 {
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
            console::alert(&format!(
                "[haproxy.main()] Cannot create pidfile {path} ({error})."
            ));
            Err(1)
        }
    }
}

fn forking_failed(call: &str, error: &dyn std::fmt::Display) -> ForkSide {
    console::alert(&format!("[haproxy.main()] Cannot fork ({call}: {error})."));
    ForkSide::Exit(1)
}
