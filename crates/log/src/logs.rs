//! The log service of a process.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;

use ballast_model::bytes_of_text;
use ballast_wire::syslog::{Format, Level, Origin};

use crate::queue::LineQueue;
use crate::set::{LogSet, OpenTarget};
use crate::sink::{LogSink, SinkCounters};
use crate::spec::{Endpoint, LogSetSpec, TargetSpec};
use crate::thread::{LogThread, Queues, Wakeup};
use crate::worker::WorkerLog;

/// The log service: one thread and its shared state. Clones are the same service; when the last one
/// is dropped the thread sends what it has and ends.
#[derive(Clone, Debug)]
pub struct Logs {
    shared: Arc<LogsShared>,
}

#[derive(Debug)]
struct LogsShared {
    wakeup: Arc<Wakeup>,
    queues: Queues,
    /// The open sinks, so that reopening an endpoint shares its sink.
    sinks: Mutex<HashMap<Endpoint, Weak<LogSink>>>,
    /// For lines from threads that are not workers.
    events: Mutex<WorkerLog>,
    dropped: Arc<AtomicU64>,
}

/// A target that cannot be opened.
#[derive(Debug)]
pub struct LogOpenError {
    /// The target.
    pub endpoint: Endpoint,
    /// The error.
    pub source: io::Error,
}

impl fmt::Display for LogOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot log to '{}': {}", self.endpoint, self.source)
    }
}

impl std::error::Error for LogOpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl Logs {
    /// Starts the log thread. A process that goes into the background must do that first: a thread
    /// does not survive a fork, and lines contain the process number.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start() -> io::Result<Self> {
        let wakeup = Arc::new(Wakeup::default());
        let queues = Queues::default();
        let thread = LogThread::new(Arc::clone(&wakeup), Arc::clone(&queues));
        // Not joined: its end is awaited through the wakeup, with a deadline.
        Builder::new()
            .name("ballast-log".to_owned())
            .spawn(move || thread.run())?;
        let events = Mutex::new(register(&queues, &wakeup));
        let shared = LogsShared {
            wakeup,
            queues,
            sinks: Mutex::default(),
            events,
            dropped: Arc::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Opens the targets of all sets of a configuration, all or none; the result is in the order of
    /// `sets`. Endpoints that are open already are shared.
    ///
    /// # Errors
    /// The first target that cannot be opened.
    pub fn open(&self, sets: &[LogSetSpec]) -> Result<Vec<Arc<LogSet>>, LogOpenError> {
        let specs = || sets.iter().flat_map(|set| &set.targets);
        let line_bytes_max = specs().map(|spec| spec.line_bytes_max()).max();
        let message_bytes_max = line_bytes_max.unwrap_or_default().saturating_sub(1);
        let mut opened = HashMap::new();
        for spec in specs() {
            if let std::collections::hash_map::Entry::Vacant(vacant) = opened.entry(key(spec)) {
                vacant.insert((self.sink(&spec.endpoint)?, Arc::new(AtomicU64::new(0))));
            }
        }
        let process_id = std::process::id();
        let set = |set: &LogSetSpec| {
            let target = |spec: &Arc<TargetSpec>| {
                let (sink, sampled) = &opened[&key(spec)];
                let hostname = set.hostname.as_deref();
                let unsaid = hostname.map_or(Format::Local, |_| Format::Rfc3164);
                let (format, facility) = (spec.format.unwrap_or(unsaid), spec.facility);
                let of_profile = spec
                    .profile
                    .as_ref()
                    .and_then(|profile| profile.tag.as_ref());
                let tag = of_profile.unwrap_or(&set.tag);
                let (hostname, tag) = (hostname.map(bytes_of_text), bytes_of_text(tag));
                let origin = Origin::new(format, facility, hostname.as_deref(), &tag, process_id);
                OpenTarget::new(
                    Arc::clone(spec),
                    Arc::clone(sink),
                    origin,
                    Arc::clone(sampled),
                )
            };
            let targets = set.targets.iter().map(target).collect();
            Arc::new(LogSet::new(targets, &set.tag, message_bytes_max))
        };
        Ok(sets.iter().map(set).collect())
    }

    fn sink(&self, endpoint: &Endpoint) -> Result<Arc<LogSink>, LogOpenError> {
        let endpoint = endpoint.clone().with_default_port();
        let mut sinks = lock(&self.shared.sinks);
        if let Some(sink) = sinks.get(&endpoint).and_then(Weak::upgrade) {
            return Ok(sink);
        }
        match LogSink::open(&endpoint, &self.shared.dropped) {
            Ok(sink) => {
                let sink = Arc::new(sink);
                sinks.retain(|_, sink| sink.strong_count() > 0);
                sinks.insert(endpoint, Arc::downgrade(&sink));
                Ok(sink)
            }
            Err(source) => Err(LogOpenError { endpoint, source }),
        }
    }

    /// The handle of a worker. Each thread that logs often has one.
    pub fn worker(&self) -> WorkerLog {
        register(&self.shared.queues, &self.shared.wakeup)
    }

    /// Writes a line from a thread that has no [`WorkerLog`], for example that a server went down.
    /// It works in the same way with the same guarantees, except that several threads calling it
    /// may wait for each other.
    pub fn emit(&self, set: &LogSet, level: Level, message: &[u8]) {
        lock(&self.shared.events).emit(set, level, message);
    }

    /// Counters of the open endpoints.
    pub fn counters(&self) -> Vec<(Endpoint, SinkCounters)> {
        let sinks = lock(&self.shared.sinks);
        let open = |(endpoint, sink): (&Endpoint, &Weak<LogSink>)| {
            Some((endpoint.clone(), sink.upgrade()?.counters()))
        };
        sinks.iter().filter_map(open).collect()
    }

    /// How many lines were dropped, including those of endpoints that are closed by now.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all lines written before this call are sent, for at most `time_limit`; true if
    /// they are. Blocks the thread: not for workers.
    pub fn flush(&self, time_limit: Duration) -> bool {
        self.shared.wakeup.flush(time_limit)
    }

    /// Sends all waiting lines, for at most `time_limit`, and ends the thread; lines that could not
    /// be sent are counted as dropped. True if all were sent. Lines written later are lost.
    pub fn shutdown(&self, time_limit: Duration) -> bool {
        let until = std::time::Instant::now() + time_limit;
        let sent = self.shared.wakeup.flush(time_limit);
        self.shared.wakeup.stop();
        let left = until.saturating_duration_since(std::time::Instant::now());
        self.shared.wakeup.stopped_within(left.max(LAST_ROUND)) && sent
    }
}

/// The time limit of the thread's last round.
const LAST_ROUND: Duration = Duration::from_millis(50);

impl Drop for LogsShared {
    fn drop(&mut self) {
        self.wakeup.stop();
    }
}

fn register(queues: &Queues, wakeup: &Arc<Wakeup>) -> WorkerLog {
    let queue = Arc::new(LineQueue::default());
    lock(queues).push(Arc::clone(&queue));
    WorkerLog::new(queue, Arc::clone(wakeup))
}

/// Lines of several sets are the same if they are the same object.
fn key(spec: &Arc<TargetSpec>) -> *const TargetSpec {
    Arc::as_ptr(spec)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
