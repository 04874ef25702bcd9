//! Reading the configuration again, by the worker or by the one that follows it.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use ballast_cli::{ChangeRecord, Changes};
use ballast_handover::Message;
use ballast_net::{ChildEnd, steady_us};

use super::supervisor::tell_supervisor;
use super::{ANSWER_PATIENCE, MasterPhase, SNAPSHOT_PATIENCE, START_PATIENCE, StartReason, Watch};
use crate::renewal::MasterState;
use crate::say;
use crate::worker::WorkerKind;
use crate::worker_set::{ReloadRequest, Role, spawn_judge};

impl Watch<'_> {
    /// Requests a reload; `None` for a signal, which has no caller to answer.
    pub(super) fn request_reload(&mut self, request: Option<ReloadRequest>) {
        self.next.get_or_insert_default().extend(request);
        self.next_reload();
    }

    /// Begins the next reload, if one is requested and nothing else is under way.
    pub(super) fn next_reload(&mut self) {
        if !matches!(self.stage, MasterPhase::Idle) || self.restart_at.is_some() {
            return;
        }
        let Some(asking) = self.next.take() else {
            return;
        };
        self.asking = asking;
        self.reload_began = Instant::now();
        if self.asked.is_some() {
            return self.finish(Err("The process ends.\n".into()));
        }
        say::notice("Reloading the configuration.");
        tell_supervisor(
            self.options,
            &format!(
                "RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=Reloading Configuration.",
                steady_us()
            ),
        );
        if self.program.is_renewed() {
            return match spawn_judge(&self.program) {
                Ok(pid) => self.stage = MasterPhase::Judging(pid),
                Err(error) => {
                    self.finish(Err(format!("The new program does not start: {error}.\n")));
                }
            };
        }
        let sent = {
            let workers = self.worker_set.workers();
            let current = workers.in_role(Role::Current);
            current.map(|current| current.line.send(&Message::Reload, &[]))
        };
        match sent {
            Some(Ok(())) => self.stage = MasterPhase::Applying,
            Some(Err(error)) => self.finish(Err(format!("The worker is not reached: {error}.\n"))),
            None => self.start_worker(StartReason::Reload),
        }
    }

    /// Whether a request wants a new worker whatever changed, and the end of the old one.
    pub(super) fn is_hard(&self) -> bool {
        self.asking.iter().any(|request| request.hard)
    }

    /// Has the worker write a snapshot for the next one.
    pub(super) fn ask_for_snapshot(&mut self) {
        let sent = {
            let workers = self.worker_set.workers();
            let current = workers.in_role(Role::Current);
            current.is_some_and(|one| one.line.send(&Message::Handover, &[]).is_ok())
        };
        if sent {
            self.stage = MasterPhase::Asking(Instant::now() + SNAPSHOT_PATIENCE);
        } else {
            self.start_worker(StartReason::Reload);
        }
    }

    /// Starts a scout: a process with all rights that asks the machine for the worker.
    pub(super) fn send_scout(&mut self) {
        match self.start_member(WorkerKind::Scout, 0, false) {
            Ok(pid) => self.stage = MasterPhase::Scouting(pid, Instant::now() + START_PATIENCE),
            Err(error) => self.finish(Err(format!("No scout can be sent: {error}.\n"))),
        }
    }

    /// Gives the worker the answers and the sockets of the scout.
    pub(super) fn scouted(&mut self, pid: i32, sheet: &[OwnedFd]) {
        if !matches!(self.stage, MasterPhase::Scouting(scout, _) if scout == pid) {
            return;
        }
        let sheet: Vec<_> = sheet.iter().map(AsFd::as_fd).collect();
        let sent = {
            let mut workers = self.worker_set.workers();
            let sockets = workers.of(pid).and_then(|scout| scout.sockets.take());
            let current = workers.in_role(Role::Current);
            current.map(|current| {
                current.line.send_sockets(&sockets.unwrap_or_default())?;
                current.line.send(&Message::Reload, &sheet)
            })
        };
        match sent {
            Some(Ok(())) => self.stage = MasterPhase::Applying,
            Some(Err(error)) => self.finish(Err(format!("The worker is not reached: {error}.\n"))),
            None => self.finish(Err("The worker died.\n".into())),
        }
    }

    /// Ends a reload, and answers its callers.
    pub(super) fn finish(&mut self, outcome: Result<String, String>) {
        self.stage = MasterPhase::Idle;
        {
            let mut workers = self.worker_set.workers();
            workers.reloads.all += 1;
            let log = match &outcome {
                Ok(log) => {
                    workers.reloads.failed = 0;
                    // It serves what was read just now.
                    workers.is_up_to_date();
                    log
                }
                Err(log) => {
                    workers.reloads.failed = 1;
                    log
                }
            };
            workers.startup_log.clone_from(log);
        }
        if outcome.is_ok() {
            say::notice("Loading success.");
            tell_supervisor(self.options, "READY=1\nSTATUS=Ready.");
        } else {
            say::alert("Reload failed: what ran before goes on.");
            tell_supervisor(self.options, "READY=1\nSTATUS=Reload failed!");
        }
        self.log(&outcome);
        self.answer(&outcome);
        self.next_reload();
    }

    /// Logs a reload. The worker that serves writes the line.
    fn log(&self, outcome: &Result<String, String>) {
        let who = if self.asking.is_empty() {
            "a signal to the master"
        } else {
            "the master's socket"
        };
        let record = ChangeRecord {
            changes: Changes::Configuration,
            what: "reload",
            who,
            took: self.reload_began.elapsed(),
            refused: outcome.as_ref().err().map(String::as_str),
        };
        let text = record.line();
        let is_refused = outcome.is_err();
        let workers = self.worker_set.workers();
        if let Some(current) = workers.in_role(Role::Current) {
            // A worker that is far behind, or gone, logs nothing.
            let _ = current.line.send(&Message::Log { is_refused, text }, &[]);
        }
    }

    pub(super) fn answer(&mut self, outcome: &Result<String, String>) {
        for request in self.asking.drain(..) {
            // The caller may be gone.
            let _ = request.answer.send(outcome.clone());
        }
    }

    /// The new program has checked the configuration.
    pub(super) fn judged(&mut self, end: &ChildEnd) {
        if end.status == Some(0) {
            self.answer(&Ok("The new program takes over.\n".into()));
            self.stage = MasterPhase::Becoming(Instant::now() + ANSWER_PATIENCE);
        } else {
            let text = "The new program does not start, or refuses the configuration.\n";
            self.finish(Err(text.into()));
        }
    }

    pub(super) fn become_program(&mut self) {
        let error = {
            let workers = self.worker_set.workers();
            let state = MasterState {
                workers: &workers,
                sockets: &self.sockets,
                cli_binds: &self.cli_binds,
                snapshot: self.snapshot.as_ref(),
                background: self.background,
            };
            state.become_program(&self.program)
        };
        let text = format!("The new program cannot take over: {error}.\n");
        say::alert(text.trim_end());
        self.finish(Err(text));
    }
}
