//! What the end of a process of the family means.

use std::time::{Duration, Instant};

use ballast_net::{self as net, ChildEnd, Signal, steady_us};

use super::supervisor::tell_supervisor;
use super::{MasterPhase, RESTART_DELAY_MAX, STEADY_AFTER, StartReason, Watch};
use crate::process::code_of;
use crate::say;
use crate::worker_set::{Member, Role};

impl Watch<'_> {
    pub(super) fn end(&mut self, signal: Signal) {
        if self.asked.is_none() {
            say::warn("Exiting Master process...");
            tell_supervisor(self.options, "STOPPING=1\nSTATUS=Stopping.");
        }
        self.asked = Some(signal);
        // Ours are copies of the worker's: connections must not come to them for nothing.
        self.sockets.clear();
        self.restart_at = None;
        let pids: Vec<i32> = {
            let workers = self.worker_set.workers();
            workers.members.iter().map(|member| member.pid).collect()
        };
        for &pid in &pids {
            let _ = net::kill(pid, signal);
        }
        if pids.is_empty() {
            self.over = Some(0);
        }
    }

    pub(super) fn ended(&mut self, end: &ChildEnd) {
        if matches!(self.stage, MasterPhase::Judging(pid) if pid == end.pid) {
            return self.judged(end);
        }
        let (member, left) = {
            let mut workers = self.worker_set.workers();
            let place = workers.members.iter().position(|one| one.pid == end.pid);
            (
                place.map(|place| workers.members.remove(place)),
                workers.members.len(),
            )
        };
        let Some(member) = member else {
            return;
        };
        let code = code_of(end);
        match member.role {
            Role::Leaving => say::warn(&line_of_end("Former worker", end)),
            Role::Starting => self.start_failed(member, code),
            Role::Scout => self.scout_ended(member, code),
            Role::Current => self.current_ended(&member, end),
        }
        if self.asked.is_some() && left == 0 && self.over.is_none() {
            let code = match self.asked {
                Some(Signal::Int) => code,
                _ => self.failed.unwrap_or(0),
            };
            self.over = Some(code);
        }
        // A first start that failed has printed the reason.
        if let Some(code) = self.over
            && self.asked.is_some()
        {
            say::warn(&format!("All workers exited. Exiting... ({code})"));
        }
    }

    pub(super) fn start_failed(&mut self, member: Member, code: u8) {
        let MasterPhase::Starting(pid, why, _) = self.stage else {
            return;
        };
        if pid != member.pid {
            return;
        }
        self.stage = MasterPhase::Idle;
        match why {
            // The worker has printed the reason.
            StartReason::First => self.over = Some(code.max(1)),
            _ if self.asked.is_some() => {}
            StartReason::Restart => self.restart_later(),
            StartReason::Reload => {
                let unsaid = || format!("The new worker ({pid}) ended with code {code}.\n");
                self.finish(Err(member.failure.unwrap_or_else(unsaid)));
            }
        }
    }

    /// A scout ended before it sent its answers: the configuration is wrong.
    fn scout_ended(&mut self, member: Member, code: u8) {
        if matches!(self.stage, MasterPhase::Scouting(pid, _) if pid == member.pid) {
            let unsaid = || format!("The scout ended with code {code}.\n");
            self.finish(Err(member.failure.unwrap_or_else(unsaid)));
        }
    }

    /// What the end of the worker means, in HAProxy's words. A death is followed by a new worker.
    pub(super) fn current_ended(&mut self, member: &Member, end: &ChildEnd) {
        let text = line_of_end("Current worker", end);
        let code = code_of(end);
        let by_signal = end.signal.and_then(Signal::from_number);
        let orderly = code == 0 || matches!(by_signal, Some(Signal::Term | Signal::Int));
        if code == 0 {
            say::warn(&text);
        } else {
            say::alert(&text);
        }
        if self.asked.is_some() {
            return;
        }
        if orderly {
            // A signal that did not come from its master ended it.
            return self.end(Signal::Term);
        }
        let lived_us = steady_us().saturating_sub(member.started_us);
        if u128::from(lived_us) >= STEADY_AFTER.as_micros() {
            self.deaths = 0;
        }
        tell_supervisor(self.options, "STATUS=The worker died. Starting another.");
        match self.stage {
            MasterPhase::Idle => self.restart_later(),
            MasterPhase::Applying | MasterPhase::Asking(_) | MasterPhase::Scouting(..) => {
                self.restart_later();
                self.finish(Err("The worker died.\n".into()));
            }
            // The one that starts takes over all the same.
            MasterPhase::Starting(..) => {}
            // After that.
            MasterPhase::Judging(_) | MasterPhase::Becoming(_) => self.restart_later(),
        }
    }

    /// The first time at once, then later and later.
    pub(super) fn restart_later(&mut self) {
        let delay = match self.deaths {
            0 => Duration::ZERO,
            deaths => Duration::from_secs(1 << (deaths - 1).min(5)).min(RESTART_DELAY_MAX),
        };
        self.deaths = self.deaths.saturating_add(1);
        self.restart_at = Some(Instant::now() + delay);
        if delay.is_zero() {
            say::warn("Starting another worker.");
        } else {
            say::warn(&format!(
                "Starting another worker in {} s.",
                delay.as_secs()
            ));
        }
    }
}

fn line_of_end(who: &str, end: &ChildEnd) -> String {
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
    let code = code_of(end);
    format!("{who} ({}) exited with code {code} ({name})", end.pid)
}
