//! Log lines about servers: they go to the backend's log targets and to the console.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use ballast_health::LineSeverity;
use ballast_log::{
    Endpoint, Facility, Format, Level as LogLevel, LogOpenError, LogSet, LogSetSpec, Logs,
    TargetSpec,
};

/// A line about a server or its backend.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServerEvent<'a> {
    /// The backend's name.
    pub backend: &'a str,
    /// Its severity.
    pub level: LineSeverity,
    /// The line for the log.
    pub line: &'a str,
    /// The line for the console, where the text is different.
    pub console: &'a str,
}

/// Takes lines about servers. Called on any thread; must not block.
pub trait ServerEvents: Send + Sync {
    /// Writes one line.
    fn event(&self, event: &ServerEvent<'_>);
}

/// Writes lines to the log targets of each backend and, unless the process is quiet, to the console
/// in HAProxy's form.
#[derive(Debug)]
pub struct EventLog {
    logs: Logs,
    sets: ArcSwap<BackendSets>,
    console: Option<Arc<LogSet>>,
}

/// The open targets of the backends that have any, by name.
pub type BackendSets = HashMap<String, Arc<LogSet>>;

impl EventLog {
    /// `sets` are the open log targets of the backends; `console` says whether lines also go to the
    /// standard error output.
    ///
    /// # Errors
    /// If the standard error output cannot be opened as a log target.
    pub fn new(logs: &Logs, sets: BackendSets, console: bool) -> Result<Self, LogOpenError> {
        let console = if console {
            let facility: Facility = "daemon".parse().expect("a facility of RFC 5424");
            let target = TargetSpec {
                format: Some(Format::Raw),
                line_bytes_max: 4096,
                ..TargetSpec::new(Endpoint::Fd(2), facility)
            };
            let set = LogSetSpec {
                tag: String::new(),
                hostname: None,
                targets: vec![Arc::new(target)],
            };
            logs.open(&[set])?.pop()
        } else {
            None
        };
        Ok(Self {
            logs: logs.clone(),
            sets: ArcSwap::from_pointee(sets),
            console,
        })
    }

    /// Switches to the log targets of another generation.
    pub fn retarget(&self, sets: BackendSets) {
        self.sets.store(Arc::new(sets));
    }
}

impl<J: ServerEvents + ?Sized> ServerEvents for Arc<J> {
    fn event(&self, event: &ServerEvent<'_>) {
        (**self).event(event);
    }
}

impl ServerEvents for EventLog {
    fn event(&self, event: &ServerEvent<'_>) {
        let level = match event.level {
            LineSeverity::Alert => LogLevel::Alert,
            LineSeverity::Emerg => LogLevel::Emerg,
            LineSeverity::Notice => LogLevel::Notice,
        };
        if let Some(set) = self.sets.load().get(event.backend) {
            self.logs.emit(set, level, event.line.as_bytes());
        }
        if let Some(console) = &self.console {
            self.logs
                .emit(console, level, console_line(event).as_bytes());
        }
    }
}

/// In the form of HAProxy's standard error output.
pub(super) fn console_line(event: &ServerEvent<'_>) -> String {
    let label = match event.level {
        LineSeverity::Emerg => "[ALERT]   ",
        LineSeverity::Alert | LineSeverity::Notice => "[WARNING] ",
    };
    format!("{label} ({}) : {}", std::process::id(), event.console)
}
