//! The log service of a process.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;

use ballast_wire::syslog::{Level, Origin};

use crate::queue::Queue;
use crate::set::{LogSet, Target};
use crate::sink::{Counters, Sink};
use crate::spec::{Endpoint, SetSpec, TargetSpec};
use crate::thread::{LogThread, Queues, Wakeup};
use crate::worker::WorkerLog;

/// The log service: one thread, and what it knows. Clones are the same service;
/// with the last one dropped the thread sends what it has and ends.
#[derive(Clone, Debug)]
pub struct Logs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    wakeup: Arc<Wakeup>,
    queues: Queues,
    /// What is open, to be shared by who opens it again.
    sinks: Mutex<HashMap<Endpoint, Weak<Sink>>>,
    /// For lines from threads that are not workers.
    events: Mutex<WorkerLog>,
    dropped: Arc<AtomicU64>,
}

/// A target that cannot be opened.
#[derive(Debug)]
pub struct OpenError {
    /// Which.
    pub endpoint: Endpoint,
    /// Why.
    pub source: io::Error,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot log to '{}': {}", self.endpoint, self.source)
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl Logs {
    /// Starts the log thread. A process that goes into the background does so
    /// first: a thread does not survive a fork, and lines carry the process id.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start() -> io::Result<Self> {
        let wakeup = Arc::new(Wakeup::default());
        let queues = Queues::default();
        let thread = LogThread::new(Arc::clone(&wakeup), Arc::clone(&queues));
        // Not joined: its end is awaited on the wakeup, with a deadline.
        Builder::new()
            .name("ballast-log".to_owned())
            .spawn(move || thread.run())?;
        let events = Mutex::new(register(&queues, &wakeup));
        let shared = Shared {
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

    /// Opens the targets of all sets of a configuration, all or none; the
    /// answer is in the order of `sets`. What is open already is shared.
    ///
    /// # Errors
    /// The first target that cannot be opened.
    pub fn open(&self, sets: &[SetSpec]) -> Result<Vec<Arc<LogSet>>, OpenError> {
        let specs = || sets.iter().flat_map(|set| &set.targets);
        let line_bytes_max = specs().map(|spec| spec.line_bytes_max()).max();
        let message_bytes_max = line_bytes_max.unwrap_or_default().saturating_sub(1);
        let mut opened = HashMap::new();
        for spec in specs() {
            if let std::collections::hash_map::Entry::Vacant(place) = opened.entry(key(spec)) {
                place.insert((self.sink(&spec.endpoint)?, Arc::new(AtomicU64::new(0))));
            }
        }
        let process_id = std::process::id();
        let set = |set: &SetSpec| {
            let target = |spec: &Arc<TargetSpec>| {
                let (sink, sampled) = &opened[&key(spec)];
                let (format, facility) = (spec.format, spec.facility);
                let hostname = set.hostname.as_deref();
                let origin = Origin::new(format, facility, hostname, &set.tag, process_id);
                Target::new(
                    Arc::clone(spec),
                    Arc::clone(sink),
                    origin,
                    Arc::clone(sampled),
                )
            };
            let targets = set.targets.iter().map(target).collect();
            Arc::new(LogSet::new(targets, message_bytes_max))
        };
        Ok(sets.iter().map(set).collect())
    }

    fn sink(&self, endpoint: &Endpoint) -> Result<Arc<Sink>, OpenError> {
        let endpoint = endpoint.clone().with_port();
        let mut sinks = lock(&self.shared.sinks);
        if let Some(sink) = sinks.get(&endpoint).and_then(Weak::upgrade) {
            return Ok(sink);
        }
        match Sink::open(&endpoint, &self.shared.dropped) {
            Ok(sink) => {
                let sink = Arc::new(sink);
                sinks.retain(|_, sink| sink.strong_count() > 0);
                sinks.insert(endpoint, Arc::downgrade(&sink));
                Ok(sink)
            }
            Err(source) => Err(OpenError { endpoint, source }),
        }
    }

    /// A worker's end. Each thread that logs often has one.
    pub fn worker(&self) -> WorkerLog {
        register(&self.shared.queues, &self.shared.wakeup)
    }

    /// Writes a line from a thread that has no [`WorkerLog`] of its own: events
    /// such as a server going down. On the same way, with the same promises,
    /// except that several threads that call it wait for each other.
    pub fn emit(&self, set: &LogSet, level: Level, message: &[u8]) {
        lock(&self.shared.events).emit(set, level, message);
    }

    /// What became of the lines, by endpoint that is open.
    pub fn counters(&self) -> Vec<(Endpoint, Counters)> {
        let sinks = lock(&self.shared.sinks);
        let open = |(endpoint, sink): (&Endpoint, &Weak<Sink>)| {
            Some((endpoint.clone(), sink.upgrade()?.counters()))
        };
        sinks.iter().filter_map(open).collect()
    }

    /// How many lines were given up, for endpoints that are closed by now too.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all lines written before this call are sent, for `patience`
    /// at most; true if they are. The caller blocks: not for workers.
    pub fn flush(&self, patience: Duration) -> bool {
        self.shared.wakeup.flush(patience)
    }

    /// Sends what there is, waiting for `patience` at most, and ends the
    /// thread; what could not be sent is counted as dropped. True if all was
    /// sent. Lines written later go nowhere.
    pub fn shutdown(&self, patience: Duration) -> bool {
        let until = std::time::Instant::now() + patience;
        let sent = self.shared.wakeup.flush(patience);
        self.shared.wakeup.stop();
        let left = until.saturating_duration_since(std::time::Instant::now());
        self.shared.wakeup.stopped_within(left.max(LAST_ROUND)) && sent
    }
}

/// What the thread is given for its last round, which waits for nobody.
const LAST_ROUND: Duration = Duration::from_millis(50);

impl Drop for Shared {
    fn drop(&mut self) {
        self.wakeup.stop();
    }
}

fn register(queues: &Queues, wakeup: &Arc<Wakeup>) -> WorkerLog {
    let queue = Arc::new(Queue::default());
    lock(queues).push(Arc::clone(&queue));
    WorkerLog::new(queue, Arc::clone(wakeup))
}

/// Lines of several sets are the same if they are the same value in memory.
fn key(spec: &Arc<TargetSpec>) -> *const TargetSpec {
    Arc::as_ptr(spec)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
