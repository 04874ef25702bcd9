//! Opening the log targets of a configuration.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use ballast_engine::Process;
use ballast_log::{Endpoint, LogSet, LogSetSpec, LogTargetError, Logs, TargetSpec};
use ballast_model::{Config, Global, LogEndpoint, LogTarget};
use ballast_upstream::probe::{BackendSets, EventLog};

use crate::console;
use crate::machine::hostname;
use crate::question::error_text;
use crate::threads;

/// The default of `log-tag`: HAProxy's, because collectors filter by it.
const LOG_TAG_DEFAULT: &str = "haproxy";

/// The shortest time between two warnings about lost lines.
const LOSS_PERIOD: Duration = Duration::from_secs(60);

/// The log targets of all proxies, open.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenTargets {
    /// Of each frontend, by its index.
    pub(crate) frontends: Vec<Option<Arc<LogSet>>>,
    /// Of the backends that have any, by name.
    pub(crate) backends: BackendSets,
    /// Of the process itself: those of the global section.
    pub(crate) process: Option<Arc<LogSet>>,
}

/// The log targets of the process. They are replaced when the configuration changes.
#[derive(Debug)]
pub(crate) struct LogTargets {
    pub(crate) logs: Logs,
    /// The targets in force.
    pub(crate) open: ArcSwap<OpenTargets>,
    /// Logs the events of servers.
    pub(crate) server_events: Arc<EventLog>,
    /// Standard output and error are not read.
    pub(crate) background: bool,
}

/// Opens the log targets of a configuration.
///
/// In the background standard output and error are not read: lines for them are dropped, and a caller
/// that captured them does not wait for their end.
///
/// # Errors
/// What cannot be opened, and why.
pub(crate) fn open(logs: &Logs, config: &Config, background: bool) -> Result<OpenTargets, String> {
    let shared: Vec<(&LogTarget, Arc<TargetSpec>)> = config
        .global
        .log_targets
        .iter()
        .filter_map(|target| Some((target, Arc::new(TargetSpec::try_from(target).ok()?))))
        .collect();
    let fronts = config.frontends.iter().map(|frontend| &frontend.common);
    let backs = config.backends.iter().map(|backend| &backend.common);
    let mut sets = Vec::new();
    for common in fronts.chain(backs) {
        let tag = common.log_tag.as_ref();
        let set = set_spec(
            &common.log_targets,
            tag,
            &config.global,
            &shared,
            background,
        );
        sets.push(set.map_err(|error| format!("proxy '{}': {error}.", common.name))?);
    }
    let global = &config.global;
    let of_process = set_spec(&global.log_targets, None, global, &shared, background);
    sets.push(of_process.map_err(|error| format!("global: {error}."))?);
    let opened = logs.open(&sets).map_err(|error| format!("{error}."))?;
    let mut opened = opened
        .into_iter()
        .zip(&sets)
        .map(|(open, set)| (!set.targets.is_empty()).then_some(open));
    let frontends = opened.by_ref().take(config.frontends.len()).collect();
    Ok(OpenTargets {
        frontends,
        backends: config
            .backends
            .iter()
            .zip(opened.by_ref())
            .filter_map(|(backend, set)| Some((backend.common.name.clone(), set?)))
            .collect(),
        process: opened.flatten().next(),
    })
}

/// Counts log lines that were lost, and prints a warning about them.
#[derive(Debug)]
pub(crate) struct LossReporter {
    logs: Logs,
    counted_losses: u64,
    reported: u64,
    reported_at: Option<Instant>,
    /// The losses of each endpoint at that time.
    reported_losses: Vec<(Endpoint, u64)>,
    /// The last warning is being printed.
    is_printing: Arc<AtomicBool>,
}

impl LossReporter {
    /// A reporter of the losses of `logs`.
    pub(crate) fn new(logs: Logs) -> Self {
        Self {
            logs,
            counted_losses: 0,
            reported: 0,
            reported_at: None,
            reported_losses: Vec::new(),
            is_printing: Arc::default(),
        }
    }

    /// Counts the lines that were lost since the last call, on the first worker. Prints a warning if
    /// the last one is older than a minute.
    pub(crate) fn check(&mut self, process: &Process) {
        let lost = self.logs.dropped();
        let counter = &process.counters.of(0).dropped_logs;
        counter.add(lost.saturating_sub(self.counted_losses));
        self.counted_losses = lost;
        let is_quiet = |at: Instant| at.elapsed() < LOSS_PERIOD;
        if lost == self.reported
            || self.reported_at.is_some_and(is_quiet)
            || self.is_printing.load(Ordering::Relaxed)
        {
            return;
        }
        let counters = self.logs.counters();
        let reasons: String = counters
            .iter()
            .filter(|(endpoint, counters)| counters.dropped > self.reported_loss_of(endpoint))
            .map(|(endpoint, counters)| match counters.last_error {
                0 => format!(", {endpoint} takes no more"),
                number => {
                    let error = std::io::Error::from_raw_os_error(number);
                    format!(", {endpoint}: {}", error_text(&error))
                }
            })
            .collect();
        let new = lost - self.reported;
        let text = format!("{new} log lines were lost{reasons}.");
        (self.reported, self.reported_at) = (lost, Some(Instant::now()));
        let counters = counters.into_iter();
        self.reported_losses = counters.map(|(at, known)| (at, known.dropped)).collect();
        self.print(text);
    }

    /// The losses of an endpoint when they were last reported.
    fn reported_loss_of(&self, endpoint: &Endpoint) -> u64 {
        let mut known = self.reported_losses.iter();
        let known = known.find(|(known, _)| known == endpoint);
        known.map_or(0, |(_, dropped)| *dropped)
    }

    /// Prints from a thread of its own: standard error may be the pipe that nobody reads.
    fn print(&self, text: String) {
        let is_printing = Arc::clone(&self.is_printing);
        is_printing.store(true, Ordering::Relaxed);
        let began = threads::start("ballast-loss", move || {
            console::warn(&text);
            is_printing.store(false, Ordering::Relaxed);
        });
        if began.is_err() {
            // The next call tries again.
            self.is_printing.store(false, Ordering::Relaxed);
        }
    }
}

/// The set of one proxy, or of the process. Lines that come from the global section are the same in
/// each set, so that they are sampled together.
fn set_spec(
    log_targets: &[LogTarget],
    tag: Option<&String>,
    global: &Global,
    shared: &[(&LogTarget, Arc<TargetSpec>)],
    background: bool,
) -> Result<LogSetSpec, LogTargetError> {
    let mut targets = Vec::new();
    for target in log_targets {
        if background && matches!(target.endpoint, LogEndpoint::Fd(1 | 2)) {
            continue;
        }
        if let Some((_, spec)) = shared.iter().find(|(known, _)| *known == target) {
            targets.push(Arc::clone(spec));
            continue;
        }
        targets.push(Arc::new(TargetSpec::try_from(target)?));
    }
    let tag = tag.or(global.log_tag.as_ref());
    Ok(LogSetSpec {
        tag: tag.cloned().unwrap_or_else(|| LOG_TAG_DEFAULT.to_owned()),
        hostname: match global.log_send_hostname.as_deref() {
            Some("") => Some(hostname()),
            named => named.map(str::to_owned),
        },
        targets,
    })
}
