//! The ends of child processes, and of the master.

use std::time::{Duration, Instant};

use ballast_net::{self as net, ChildEnd, Signal, monotonic_us};

use super::supervisor::tell_supervisor;
use super::{EARLY_DEATH_MAX, MasterPhase, MasterProcess, RESTART_DELAY_MAX, StartReason};
use crate::console;
use crate::process::exit_code_of;
use crate::worker_set::{ChildProcess, Role};

impl MasterProcess<'_> {
    /// Ends the master: passes the signal to all workers, and waits for their ends.
    pub(super) fn end(&mut self, signal: Signal) {
        if self.end_signal.is_none() {
            console::warn("Exiting Master process...");
            tell_supervisor(self.options, "STOPPING=1\nSTATUS=Stopping.");
        }
        self.end_signal = Some(signal);
        // Nothing would accept from the master's copies of the worker's sockets.
        self.sockets.clear();
        // Whoever replaces this master and the one that follows it must not find the file of this one.
        self.secrets = None;
        self.restart_at = None;
        let pids: Vec<i32> = {
            let workers = self.worker_set.workers();
            workers.children.iter().map(|child| child.pid).collect()
        };
        for &pid in &pids {
            let _ = net::kill(pid, signal);
        }
        if pids.is_empty() {
            self.exit_code = Some(0);
        }
    }

    /// Acts on the end of a child process, by its role.
    pub(super) fn child_ended(&mut self, end: &ChildEnd) {
        if matches!(self.phase, MasterPhase::CheckingProgram { pid, .. } if pid == end.pid) {
            return self.program_checked(end);
        }
        let (child, left) = {
            let mut workers = self.worker_set.workers();
            let index = workers.children.iter().position(|one| one.pid == end.pid);
            (
                index.map(|index| workers.children.remove(index)),
                workers.children.len(),
            )
        };
        let Some(child) = child else {
            return;
        };
        let code = exit_code_of(end);
        match child.role {
            Role::Leaving => console::warn(&line_of_end("Former worker", end)),
            Role::Starting => self.start_failed(child, code),
            Role::PrivilegedHelper => self.helper_ended(child, code),
            Role::Current => self.current_ended(&child, end),
        }
        if self.end_signal.is_some() && left == 0 && self.exit_code.is_none() {
            let code = match self.end_signal {
                Some(Signal::Int) => code,
                _ => self.start_exit_code.unwrap_or(0),
            };
            self.exit_code = Some(code);
        }
        // When the first start failed, the worker has printed the reason, and this line is left out.
        if let Some(code) = self.exit_code
            && self.end_signal.is_some()
        {
            console::warn(&format!("All workers exited. Exiting... ({code})"));
        }
    }

    /// Acts on the end of a worker that was not ready yet.
    pub(super) fn start_failed(&mut self, child: ChildProcess, code: u8) {
        let MasterPhase::Starting { pid, reason, .. } = self.phase else {
            return;
        };
        if pid != child.pid {
            return;
        }
        self.phase = MasterPhase::Idle;
        match reason {
            // The worker has printed the reason.
            StartReason::First => self.exit_code = Some(code.max(1)),
            _ if self.end_signal.is_some() => {}
            StartReason::Restart => self.restart_later(),
            StartReason::Reload => {
                let without_reason = || format!("The new worker ({pid}) ended with code {code}.\n");
                self.finish_reload(Err(child.failure.unwrap_or_else(without_reason)));
            }
        }
    }

    /// The privileged helper ended before it sent its answers: the configuration is wrong.
    fn helper_ended(&mut self, child: ChildProcess, code: u8) {
        if matches!(self.phase, MasterPhase::AwaitingHelper { pid, .. } if pid == child.pid) {
            let without_reason = || format!("The privileged helper ended with code {code}.\n");
            self.finish_reload(Err(child.failure.unwrap_or_else(without_reason)));
        }
    }

    /// Reports the end of the worker in HAProxy's words, and starts another one if it died.
    pub(super) fn current_ended(&mut self, child: &ChildProcess, end: &ChildEnd) {
        let text = line_of_end("Current worker", end);
        let code = exit_code_of(end);
        let by_signal = end.signal.and_then(Signal::from_number);
        let orderly = code == 0 || matches!(by_signal, Some(Signal::Term | Signal::Int));
        if code == 0 {
            console::warn(&text);
        } else {
            console::alert(&text);
        }
        if self.end_signal.is_some() {
            return;
        }
        if orderly {
            // Somebody else than the master asked the worker to end: the master ends too.
            return self.end(Signal::Term);
        }
        let lived_us = monotonic_us().saturating_sub(child.started_us);
        if u128::from(lived_us) >= EARLY_DEATH_MAX.as_micros() {
            self.early_deaths = 0;
        }
        tell_supervisor(self.options, "STATUS=The worker died. Starting another.");
        self.last_death = Some(text);
        match self.phase {
            MasterPhase::Idle => self.restart_later(),
            MasterPhase::Applying
            | MasterPhase::AwaitingSnapshot { .. }
            | MasterPhase::AwaitingHelper { .. } => {
                self.restart_later();
                self.finish_reload(Err("The worker died.\n".into()));
            }
            // The worker that is starting takes its place.
            MasterPhase::Starting { .. } => {}
            // The timer starts the worker once the master is idle again.
            MasterPhase::CheckingProgram { .. } | MasterPhase::BeforeExec { .. } => {
                self.restart_later()
            }
        }
    }

    /// Schedules a new worker: at once the first time, then after longer and longer delays.
    pub(super) fn restart_later(&mut self) {
        let delay = match self.early_deaths {
            0 => Duration::ZERO,
            deaths => Duration::from_secs(1 << (deaths - 1).min(5)).min(RESTART_DELAY_MAX),
        };
        self.early_deaths = self.early_deaths.saturating_add(1);
        self.restart_at = Some(Instant::now() + delay);
        if delay.is_zero() {
            console::warn("Starting another worker.");
        } else {
            console::warn(&format!(
                "Starting another worker in {} s.",
                delay.as_secs()
            ));
        }
    }
}

/// Who ended, and how.
pub(super) fn line_of_end(who: &str, end: &ChildEnd) -> String {
    let name = match end.signal {
        None => "Exit",
        Some(1) => "Hangup",
        Some(2) => "Interrupt",
        Some(3) => "Quit",
        Some(6) => "Aborted",
        Some(9) => "Killed",
        Some(11) => "Segmentation fault",
        Some(15) => "Terminated",
        Some(_) => "Signal",
    };
    let code = exit_code_of(end);
    format!("{who} ({}) exited with code {code} ({name})", end.pid)
}
