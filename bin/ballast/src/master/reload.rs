//! Reloads, by the worker that serves or by the next one.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use ballast_cli::{ChangeRecord, ChangeScope};
use ballast_handover::Message;
use ballast_net::{ChildEnd, monotonic_us};
use ballast_reconcile::{LOADED, console_line};
use ballast_syntax::Severity;

use super::ends::line_of_end;
use super::supervisor::tell_supervisor;
use super::{
    ANSWER_TIMEOUT, MasterPhase, MasterProcess, SNAPSHOT_TIMEOUT, START_TIMEOUT, StartReason,
};
use crate::console;
use crate::reexec::MasterState;
use crate::worker::WorkerKind;
use crate::worker_set::{ReloadRequest, Role, spawn_config_check};

impl MasterProcess<'_> {
    /// Requests a reload; `None` for a signal, which has no caller to answer.
    pub(super) fn request_reload(&mut self, request: Option<ReloadRequest>) {
        self.queued_reload.get_or_insert_default().extend(request);
        self.next_reload();
    }

    /// Begins the next reload, if one is requested and nothing else is under way.
    pub(super) fn next_reload(&mut self) {
        if !matches!(self.phase, MasterPhase::Idle) {
            return;
        }
        let Some(callers) = self.queued_reload.take() else {
            return;
        };
        // Where a worker is to be started later, the reload starts it: perhaps it is the file that is mended.
        self.restart_at = None;
        self.reload_callers = callers;
        self.reload_started_at = Instant::now();
        if self.end_signal.is_some() {
            return self.finish_reload(Err("The process ends.\n".into()));
        }
        console::notice("Reloading the configuration.");
        tell_supervisor(
            self.options,
            &format!(
                "RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=Reloading Configuration.",
                monotonic_us()
            ),
        );
        if self.program.is_replaced() {
            return match spawn_config_check(&self.program) {
                Ok(pid) => {
                    self.phase = MasterPhase::CheckingProgram {
                        pid,
                        deadline: Instant::now() + START_TIMEOUT,
                    }
                }
                Err(error) => {
                    let path = self.program.path.display();
                    let text = format!("The new program {path} does not start: {error}.\n");
                    self.finish_reload(Err(text));
                }
            };
        }
        let sent = {
            let workers = self.worker_set.workers();
            let current = workers.in_role(Role::Current);
            current.map(|current| current.channel.send(&Message::Reload, &[]))
        };
        match sent {
            Some(Ok(())) => self.phase = MasterPhase::Applying,
            // It reads nothing: it hangs, and another one takes its place.
            Some(Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
                self.phase = MasterPhase::Applying;
            }
            Some(Err(error)) => {
                self.finish_reload(Err(format!("The worker is not reached: {error}.\n")))
            }
            None => self.start_worker(StartReason::Reload),
        }
    }

    /// Whether a request asks for a new worker in any case, and for the end of the old one.
    pub(super) fn is_hard(&self) -> bool {
        self.reload_callers.iter().any(|request| request.hard)
    }

    /// A worker that hangs carries out no reload: another one takes its place, with the last snapshot.
    pub(super) fn replace_silent_worker(&mut self) {
        let pid = self.current_pid().unwrap_or(0);
        console::alert(&format!(
            "The worker ({pid}) does not carry out the reload: it is stopped, or hangs. A new one takes its place."
        ));
        self.start_worker(StartReason::Reload);
    }

    /// Has the worker write a snapshot for the next one.
    pub(super) fn ask_for_snapshot(&mut self) {
        self.table_channel = None;
        let sent = {
            let workers = self.worker_set.workers();
            let current = workers.in_role(Role::Current);
            current.is_some_and(|one| one.channel.send(&Message::Handover, &[]).is_ok())
        };
        if sent {
            self.phase = MasterPhase::AwaitingSnapshot {
                deadline: Instant::now() + SNAPSHOT_TIMEOUT,
            };
        } else {
            self.start_worker(StartReason::Reload);
        }
    }

    /// Starts the privileged helper, which asks the machine with rights that the worker has given up.
    pub(super) fn start_helper(&mut self) {
        match self.start_child(WorkerKind::PrivilegedHelper, 0, false) {
            Ok(pid) => {
                self.phase = MasterPhase::AwaitingHelper {
                    pid,
                    deadline: Instant::now() + START_TIMEOUT,
                }
            }
            Err(error) => self.finish_reload(Err(format!(
                "No privileged helper can be started: {error}.\n"
            ))),
        }
    }

    /// Gives the worker the answers and the sockets of the privileged helper.
    pub(super) fn helper_done(&mut self, pid: i32, fds: &[OwnedFd]) {
        if !matches!(self.phase, MasterPhase::AwaitingHelper { pid: helper, .. } if helper == pid) {
            return;
        }
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let sent = {
            let mut workers = self.worker_set.workers();
            let sockets = workers.by_pid(pid).and_then(|helper| helper.sockets.take());
            let current = workers.in_role(Role::Current);
            current.map(|current| {
                current.channel.send_sockets(&sockets.unwrap_or_default())?;
                current.channel.send(&Message::Reload, &fds)
            })
        };
        match sent {
            Some(Ok(())) => self.phase = MasterPhase::Applying,
            Some(Err(error)) => {
                self.finish_reload(Err(format!("The worker is not reached: {error}.\n")))
            }
            None => self.finish_reload(Err("The worker died.\n".into())),
        }
    }

    /// Ends a reload, and answers its callers.
    pub(super) fn finish_reload(&mut self, outcome: Result<String, String>) {
        self.phase = MasterPhase::Idle;
        if outcome.is_err()
            && self.current_pid().is_none()
            && self.end_signal.is_none()
            && self.restart_at.is_none()
        {
            self.restart_later();
        }
        let (severity, text, status) = match outcome {
            Ok(_) => (Severity::Notice, LOADED, "READY=1\nSTATUS=Ready."),
            Err(_) => (
                Severity::Alert,
                "Reload failed: what ran before goes on.",
                "READY=1\nSTATUS=Reload failed!",
            ),
        };
        self.log_reload(&outcome);
        // Callers take an answer without a message for a failure.
        let told = |log: String| log + console_line(severity, text).as_str();
        let outcome = outcome.map(told).map_err(told);
        {
            let mut workers = self.worker_set.workers();
            workers.reloads.all += 1;
            workers.reloads.failed = u32::from(outcome.is_err());
            if outcome.is_ok() {
                // The current worker serves the configuration that was read just now.
                workers.set_up_to_date();
            }
            let (Ok(log) | Err(log)) = &outcome;
            workers.startup_log.clone_from(log);
        }
        console::message(severity, text);
        tell_supervisor(self.options, status);
        self.answer(&outcome);
        self.next_reload();
    }

    /// Logs a reload. The worker that serves writes the line.
    fn log_reload(&self, outcome: &Result<String, String>) {
        let who = if self.reload_callers.is_empty() {
            "a signal to the master"
        } else {
            "the master's socket"
        };
        let record = ChangeRecord {
            changes: ChangeScope::Configuration,
            what: "reload",
            who,
            took: self.reload_started_at.elapsed(),
            refused: outcome.as_ref().err().map(String::as_str),
            unwritten: None,
        };
        let text = record.line();
        let is_refused = outcome.is_err();
        let workers = self.worker_set.workers();
        if let Some(current) = workers.in_role(Role::Current) {
            // A worker that is far behind, or gone, logs nothing.
            let _ = current
                .channel
                .send(&Message::Log { is_refused, text }, &[]);
        }
    }

    /// Answers the callers of the reload.
    pub(super) fn answer(&mut self, outcome: &Result<String, String>) {
        for request in self.reload_callers.drain(..) {
            // The caller may be gone.
            let _ = request.answer.send(outcome.clone());
        }
    }

    /// The new program has checked the configuration.
    pub(super) fn program_checked(&mut self, end: &ChildEnd) {
        if end.status == Some(0) {
            self.answer(&Ok("The new program takes over.\n".into()));
            self.phase = MasterPhase::BeforeExec {
                exec_at: Instant::now() + ANSWER_TIMEOUT,
            };
        } else {
            let path = self.program.path.display();
            let end = line_of_end("its check", end);
            let text = format!(
                "The new program {path} does not start, or refuses the configuration: {end}.\n"
            );
            self.finish_reload(Err(text));
        }
    }

    /// Executes the new program in this process. Returns only when that failed.
    pub(super) fn exec_program(&mut self) {
        let error = {
            let workers = self.worker_set.workers();
            let state = MasterState {
                workers: &workers,
                sockets: &self.sockets,
                cli_binds: &self.cli_binds,
                snapshot: self.snapshot.as_ref(),
                secrets: self.secrets.as_ref(),
                background: self.background,
            };
            state.exec_program(&self.program)
        };
        let text = format!("The new program cannot take over: {error}.\n");
        console::alert(text.trim_end());
        self.finish_reload(Err(text));
    }
}
