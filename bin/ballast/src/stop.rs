//! The end of a serving process: at once, or when its last connection has ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_cli::{ChangeRecord, ChangeScope};
use ballast_log::{Level, LogSet, Logs};
use ballast_model::ProxyCommon;
use ballast_net::Signal;
use ballast_reconcile::{ChangeRequest, reload_message};
use ballast_stats::StatsHost;
use ballast_worker::{Signals, StopOrder, Workers};

use crate::console;
use crate::instance::Instance;

/// The time between two checks whether the workers have ended.
const POLL_PERIOD: Duration = Duration::from_millis(5);

/// How long sending the last log lines may take.
const LOG_TIMEOUT: Duration = Duration::from_secs(1);

/// How long tasks have to end in a hard stop.
const HARD_STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// How the process ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ProcessExit {
    /// With an exit code.
    Code(u8),
    /// By the signal that ended it.
    Signal(Signal),
}

/// The parts of a process that its end shuts down.
#[derive(Debug)]
pub(crate) struct Shutdown<'h> {
    pub(crate) instance: &'h Instance,
    pub(crate) workers: &'h Workers,
    pub(crate) logs: &'h Logs,
}

impl Shutdown<'_> {
    /// Answers signals until one of them ends the process, and shuts everything down.
    pub(crate) fn wait(&self, signals: &Signals) -> ProcessExit {
        loop {
            match signals.wait(None) {
                Ok(Some(signal @ (Signal::Term | Signal::Int))) => return self.stop_now(signal),
                Ok(Some(Signal::Usr1)) => return self.soft_stop(signals),
                Ok(Some(Signal::Hup)) => self.report_server_states(),
                Ok(Some(Signal::Usr2)) => self.reload(),
                Ok(Some(Signal::Ttou)) => self.instance.pause_all(),
                Ok(Some(Signal::Ttin)) => self.instance.resume_all(),
                Ok(_) => {}
                Err(error) => {
                    console::alert(&format!("signals cannot be waited for: {error}"));
                    return self.stop_now(Signal::Term);
                }
            }
        }
    }

    fn stop_now(&self, signal: Signal) -> ProcessExit {
        self.instance.listeners().take();
        self.workers.stop(StopOrder::now());
        self.instance.stop_handover();
        self.logs.shutdown(LOG_TIMEOUT);
        self.instance.table_donor.finish();
        ProcessExit::Signal(signal)
    }

    /// `SIGUSR1`: accepts no connections; exchanges may finish.
    fn soft_stop(&self, signals: &Signals) -> ProcessExit {
        let process = self.instance.registry.process();
        let generation = self.instance.generation();
        let global = &generation.config.global;
        let closing_from = Instant::now() + global.grace.unwrap_or_default();
        process.begin_stopping(global.close_spread, closing_from);
        if let Some(signal) = global
            .grace
            .and_then(|grace| self.wait_grace(signals, grace))
        {
            return self.stop_now(signal);
        }
        self.instance.listeners().take();
        self.workers.stop(StopOrder::when_done());
        self.instance.stop_handover();
        self.report_stopped_proxies();
        let hard_stop_at = global.hard_stop_after.map(|after| Instant::now() + after);
        let mut gives_up_at: Option<Instant> = None;
        while !self.workers.have_ended() {
            match signals.wait(Some(POLL_PERIOD)) {
                Ok(Some(signal @ (Signal::Term | Signal::Int))) => return self.stop_now(signal),
                Ok(_) => {}
                Err(_) => return self.stop_now(Signal::Term),
            }
            let now = Instant::now();
            if gives_up_at.is_none() && hard_stop_at.is_some_and(|at| at <= now) {
                self.hard_stop();
                gives_up_at = Some(now + HARD_STOP_TIMEOUT);
            }
            if gives_up_at.is_some_and(|at| at <= now) {
                self.warn_and_log_once(
                    Level::Warning,
                    "Some tasks resisted to hard-stop, exiting now.",
                );
                self.workers.stop(StopOrder::now());
                break;
            }
        }
        self.logs.shutdown(LOG_TIMEOUT);
        self.instance.table_donor.finish();
        ProcessExit::Code(0)
    }

    /// Waits for the time of `grace`. Returns the signal that ends the process at once, if one comes.
    fn wait_grace(&self, signals: &Signals, time: Duration) -> Option<Signal> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match signals.wait(Some(left)) {
                Ok(Some(signal @ (Signal::Term | Signal::Int))) => return Some(signal),
                Ok(Some(_)) if !left.is_zero() => {}
                _ => return None,
            }
        }
    }

    fn hard_stop(&self) {
        self.warn_and_log_once(
            Level::Warning,
            "soft-stop running for too long, performing a hard-stop.",
        );
        let (generation, open_logs) =
            (self.instance.generation(), self.instance.open_log_targets());
        for (frontend_index, frontend) in generation.frontends.iter().enumerate() {
            let left = frontend.state.sessions.current();
            if left > 0 {
                self.warn_and_log(
                    open_logs.frontends[frontend_index].as_deref(),
                    &format!(
                        "Proxy {} hard-stopped ({left} remaining conns will be closed).",
                        frontend.name()
                    ),
                );
            }
        }
        // Longer than `soft_stop` waits, so that it decides when the process ends.
        self.workers.stop(StopOrder::within(HARD_STOP_TIMEOUT * 2));
    }

    /// Reports each proxy that has stopped. A `listen` section is one proxy.
    fn report_stopped_proxies(&self) {
        let (generation, open_logs) =
            (self.instance.generation(), self.instance.open_log_targets());
        for (frontend_index, frontend) in generation.frontends.iter().enumerate() {
            let front = frontend.state.counters.sums().connections;
            let back = if frontend.model.common.listen {
                let backend = generation.backend_named(frontend.name());
                backend.map_or(0, |backend_index| {
                    generation.backends[backend_index]
                        .state
                        .counters
                        .sums()
                        .sessions
                })
            } else {
                0
            };
            let set = open_logs.frontends[frontend_index].as_deref();
            self.report_stopped_proxy(&frontend.model.common, set, front, back);
        }
        for backend in &generation.backends {
            if backend.model.common.listen && generation.config.frontend(backend.name()).is_some() {
                continue;
            }
            let back = backend.state.counters.sums().sessions;
            let set = open_logs.backends.get(backend.name()).map(Arc::as_ref);
            self.report_stopped_proxy(&backend.model.common, set, 0, back);
        }
    }

    fn report_stopped_proxy(
        &self,
        common: &ProxyCommon,
        set: Option<&LogSet>,
        front: u64,
        back: u64,
    ) {
        if common.disabled {
            return;
        }
        let name = &common.name;
        self.warn_and_log(
            set,
            &format!("Proxy {name} stopped (cumulated conns: FE: {front}, BE: {back})."),
        );
    }

    /// `SIGUSR2`: reads the files again, and puts them in force.
    fn reload(&self) {
        let began = Instant::now();
        let request = ChangeRequest::Reload { keep: false };
        let outcome = self.instance.change_and_wait(request);
        let (severity, text) = reload_message(&outcome);
        console::message(severity, &text);
        self.instance.log_change_record(&ChangeRecord {
            changes: ChangeScope::Configuration,
            what: "reload",
            who: "SIGUSR2",
            took: began.elapsed(),
            refused: outcome.as_ref().err().map(|refused| refused.0.as_str()),
            unwritten: None,
        });
    }

    /// `SIGHUP`: reports the state of each server, in HAProxy's words.
    fn report_server_states(&self) {
        console::warn("SIGHUP received, dumping servers states.");
        let (generation, open_logs) =
            (self.instance.generation(), self.instance.open_log_targets());
        for backend in &generation.backends {
            let set = open_logs.backends.get(backend.name()).map(Arc::as_ref);
            for server in &backend.servers {
                let state = &server.state;
                let up = if state.is_usable() { "UP" } else { "DOWN" };
                self.warn_and_log(
                    set,
                    &format!(
                        "SIGHUP: Server {}/{} is {up}. Conn: {} act, {} pend, {} tot.",
                        backend.name(),
                        server.name(),
                        state.sessions.current(),
                        state.queue.current(),
                        state.counters.sums().sessions
                    ),
                );
            }
        }
    }

    fn warn_and_log(&self, set: Option<&LogSet>, text: &str) {
        console::warn(text);
        if let Some(set) = set {
            self.logs.emit(set, Level::Warning, text.as_bytes());
        }
    }

    /// Prints a line on the console, and logs it to the targets of the first frontend that has any.
    fn warn_and_log_once(&self, level: Level, text: &str) {
        console::warn(text);
        let open_logs = self.instance.open_log_targets();
        if let Some(set) = open_logs.frontends.iter().flatten().next() {
            self.logs.emit(set, level, text.as_bytes());
        }
    }
}
