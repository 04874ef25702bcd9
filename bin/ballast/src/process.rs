//! Going to the background, and telling who waits that the start went well.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::path::Path;

use ballast_net::{self as net, Fork, Signal};

use crate::say;

/// Tells another process that this one is ready, or with which code its start ended.
#[derive(Debug, Default)]
pub(crate) struct Herald {
    waiting: Vec<PipeWriter>,
    former: Former,
}

/// Processes that this one replaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Former {
    /// `-sf`: asked to finish what they have.
    pub(crate) finish: Vec<i32>,
    /// `-st`: ended at once.
    pub(crate) terminate: Vec<i32>,
}

impl Former {
    /// Tells each of them a signal.
    pub(crate) fn tell(&self, finish: Signal, terminate: Signal) {
        for (pids, signal) in [(&self.finish, finish), (&self.terminate, terminate)] {
            for &pid in pids {
                // One that is gone already is what was wanted.
                let _ = net::kill(pid, signal);
            }
        }
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.finish.is_empty() && self.terminate.is_empty()
    }
}

impl Herald {
    /// One more who waits.
    pub(crate) fn add(&mut self, writer: PipeWriter) {
        self.waiting.push(writer);
    }

    /// Who may go when this process is ready.
    pub(crate) fn replace(&mut self, former: Former) {
        self.former = former;
    }

    /// All is well. Nobody is told twice.
    pub(crate) fn ready(&mut self) {
        for mut writer in self.waiting.drain(..) {
            // Who does not wait any more need not be told.
            let _ = writer.write_all(&[0]);
        }
        std::mem::take(&mut self.former).tell(Signal::Usr1, Signal::Term);
    }
}

/// Waits for a herald's word: 0 when all is well. `None` if it ended without one.
pub(crate) fn wait_ready(mut reader: PipeReader) -> Option<u8> {
    let mut word = [0];
    match reader.read(&mut word) {
        Ok(1) => Some(word[0]),
        _ => None,
    }
}

/// Whether this is the process that goes on.
#[derive(Debug)]
pub(crate) enum Side {
    /// It goes on, in the background.
    Background,
    /// It leaves with this code: the start is decided.
    Leaves(u8),
}

/// Leaves the terminal: the caller goes on in a new process, in its own session, while the old
/// one waits until `herald` has spoken.
pub(crate) fn to_background(herald: &mut Herald) -> Side {
    let pipe = match std::io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return cannot("pipe", &error),
    };
    let (reader, writer) = pipe;
    match net::fork() {
        Ok(Fork::Child) => {
            drop(reader);
            herald.add(writer);
            if let Err(error) = net::detach_session() {
                return cannot("setsid", &error);
            }
            Side::Background
        }
        Ok(Fork::Parent(pid)) => {
            drop(writer);
            match wait_ready(reader) {
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

/// Writes the file of the process number. `Err` is the exit code, all said.
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
