//! The participants of this process: log targets, probes, listening sockets, workers, OCSP responses.
//! Each prepares what is new, and commits it once all have prepared.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ballast_edit::Refusal;
use ballast_engine::{CancellationReason, Generation, Server};
use ballast_listen::{ListenError, OpenSettings, WorkerListeners};
use ballast_model::Config;
use ballast_reconcile::{
    CommitEffects, GenerationSwitch, Participant, PreparedChange, console_line,
};
use ballast_stream::{
    RunningGeneration, WorkerLocal, kill_connections_of_removed_binds, wake_connections,
};
use ballast_syntax::Severity;
use ballast_upstream::probe::Probes;
use ballast_worker::{BegunCall, Mailbox, MailboxRefusal, local, sleep, spawn_service};

use crate::instance::Instance;
use crate::{console, logs, ocsp};

/// All participants, in the order in which they commit. Workers come after log targets, probes and
/// sockets, which their generation uses. OCSP responses come last: they change nothing at the commit, and
/// look at the bind lines when it is over.
pub(crate) fn all(instance: &Arc<Instance>, no_reuseport: bool) -> Vec<Box<dyn Participant>> {
    vec![
        Box::new(ProxyLogs(Arc::clone(instance))),
        Box::new(HealthSwitch(Arc::clone(instance))),
        Box::new(ListeningSockets {
            instance: Arc::clone(instance),
            no_reuseport,
        }),
        Box::new(ServingWorkers(Arc::clone(instance))),
        Box::new(OcspUpdater(Arc::clone(instance))),
    ]
}

type PrepareResult = Result<Option<Box<dyn PreparedChange>>, Refusal>;

/// The log targets.
struct ProxyLogs(Arc<Instance>);

impl Participant for ProxyLogs {
    fn prepare(&self, to: &GenerationSwitch<'_>) -> PrepareResult {
        let (Some(next), Some(targets)) = (to.next, self.0.logs()) else {
            return Ok(None);
        };
        if same_logs(&to.now.config, &next.config) {
            return Ok(None);
        }
        let opened = logs::open(&targets.logs, &next.config, targets.background);
        let opened = opened.map_err(|why| Refusal(console_line(Severity::Alert, &why)))?;
        Ok(Some(Box::new(PreparedLogs(
            Arc::clone(&self.0),
            Some(opened),
        ))))
    }
}

struct PreparedLogs(Arc<Instance>, Option<logs::OpenTargets>);

impl PreparedChange for PreparedLogs {
    fn commit(&mut self, _: &GenerationSwitch<'_>, _: &mut CommitEffects) {
        if let (Some(targets), Some(opened)) = (self.0.logs(), self.1.take()) {
            targets.server_events.retarget(opened.backends.clone());
            targets.open.store(Arc::new(opened));
        }
    }
}

/// The health of servers. Probes are replaced on each worker, by [`ServingWorkers`].
struct HealthSwitch(Arc<Instance>);

impl Participant for HealthSwitch {
    fn prepare(&self, to: &GenerationSwitch<'_>) -> PrepareResult {
        Ok(to.next.map(|_| Box::new(Self(Arc::clone(&self.0))) as _))
    }
}

impl PreparedChange for HealthSwitch {
    fn commit(&mut self, to: &GenerationSwitch<'_>, _: &mut CommitEffects) {
        if let (Some(health_controller), Some(next), Some(changes)) =
            (self.0.health_controller(), to.next, to.changes)
        {
            health_controller.switch_generation(Arc::clone(next), changes);
        }
    }
}

/// The OCSP responses that are kept fresh.
struct OcspUpdater(Arc<Instance>);

impl Participant for OcspUpdater {
    /// Nothing is to be looked at where bind lines stay as they are: servers come and go often.
    fn prepare(&self, to: &GenerationSwitch<'_>) -> PrepareResult {
        let next = to.next.filter(|next| {
            let (was, is) = (&to.now.config, &next.config);
            let mut pairs = was.frontends.iter().zip(&is.frontends);
            !Arc::ptr_eq(&was.global, &is.global)
                || was.frontends.len() != is.frontends.len()
                || pairs.any(|(was, is)| !Arc::ptr_eq(was, is))
        });
        Ok(next.map(|_| Box::new(Self(Arc::clone(&self.0))) as _))
    }
}

impl PreparedChange for OcspUpdater {
    fn commit(&mut self, _: &GenerationSwitch<'_>, _: &mut CommitEffects) {}

    fn finish(self: Box<Self>) {
        ocsp::request_rescan(&self.0);
    }
}

/// The sockets that clients connect to.
struct ListeningSockets {
    instance: Arc<Instance>,
    no_reuseport: bool,
}

impl Participant for ListeningSockets {
    fn prepare(&self, to: &GenerationSwitch<'_>) -> PrepareResult {
        let Some(next) = to.next else {
            return Ok(None);
        };
        let settings = OpenSettings {
            connection_count_max: self.instance.registry.process().connection_count_max(),
            no_reuseport: self.no_reuseport,
            worker_count: self.instance.mailboxes().len(),
        };
        let opened = match &*self.instance.listeners() {
            Some(listeners) => listeners.prepare(next, settings).map_err(cannot_listen)?,
            None => return Ok(None),
        };
        Ok(Some(Box::new(PreparedSockets {
            instance: Arc::clone(&self.instance),
            opened: Some(opened),
            starts: Vec::new(),
            closing: Vec::new(),
        })))
    }
}

struct PreparedSockets {
    instance: Arc<Instance>,
    opened: Option<ballast_listen::PreparedSockets>,
    /// The new sockets of each worker. It accepts from them once it has the new generation.
    starts: Vec<WorkerListeners>,
    /// Sockets whose `bind` lines are gone.
    closing: Vec<Arc<OwnedFd>>,
}

impl PreparedChange for PreparedSockets {
    fn commit(&mut self, _: &GenerationSwitch<'_>, effects: &mut CommitEffects) {
        let mut listeners = self.instance.listeners();
        let (Some(listeners), Some(opened)) = (&mut *listeners, self.opened.take()) else {
            return;
        };
        let commit = listeners.commit(opened);
        for refused in &commit.refused {
            console::warn(&refused.to_string());
        }
        self.starts = commit.start;
        if !commit.ended.is_empty() {
            effects.listeners_ended = true;
            self.closing = commit.closing;
        }
    }

    /// Starts accepting from new sockets once all workers have the new generation, because a worker
    /// hands connections to others.
    fn finish(self: Box<Self>) {
        for (mailbox, start) in self.instance.mailboxes().iter().zip(self.starts) {
            if start.is_empty() {
                continue;
            }
            let start = Arc::new(Mutex::new(Some(start)));
            let started = on_worker(mailbox, move || {
                let start = start.lock().unwrap_or_else(PoisonError::into_inner).take();
                start.map_or(Ok(()), WorkerListeners::start)
            });
            if let Some(Err(error)) = started {
                console::warn(&format!("a socket cannot be accepted from: {error}."));
            }
        }
        wait_until_closed(&self.instance, &self.closing);
    }
}

/// Runs an empty job on each worker until the workers have accepted what is queued on `sockets` and
/// dropped their references, so that these are closed when the change is reported.
fn wait_until_closed(instance: &Instance, sockets: &[Arc<OwnedFd>]) {
    let is_ours_alone = |socket: &Arc<OwnedFd>| Arc::strong_count(socket) == 1;
    for _ in 0..CLOSE_ROUND_COUNT_MAX {
        if sockets.iter().all(is_ours_alone) {
            break;
        }
        for mailbox in instance.mailboxes() {
            let _ = on_worker(mailbox, || ());
        }
    }
    if instance.has_master() {
        // The master has copies, which would go on listening while nothing accepts from them.
        for socket in sockets {
            let _ = ballast_net::shutdown_both(socket);
        }
    }
}

/// The workers, each of which serves a generation.
struct ServingWorkers(Arc<Instance>);

impl Participant for ServingWorkers {
    fn prepare(&self, to: &GenerationSwitch<'_>) -> PrepareResult {
        Ok(to.next.map(|_| Box::new(Self(Arc::clone(&self.0))) as _))
    }
}

impl PreparedChange for ServingWorkers {
    fn commit(&mut self, to: &GenerationSwitch<'_>, effects: &mut CommitEffects) {
        let (Some(next), Some(changes)) = (to.next, to.changes) else {
            return;
        };
        let listeners_ended = effects.listeners_ended;
        let looks = listeners_ended || has_other_modes(to.now, next);
        let open_logs = self.0.open_log_targets();
        // Exchanges of what is removed may last as long as those of a process that ends.
        let limit = next.config.global.hard_stop_after;
        let backends: Arc<[String]> = changes.backend_names.as_slice().into();
        // Most servers are removed without sessions: there is nothing to end.
        let left = changes.removed.iter();
        let left = left.filter(|one| one.state.sessions.current() > 0);
        let removed: Arc<[Arc<Server>]> = left.cloned().collect();
        let generation = Arc::clone(next);
        on_all_workers(self.0.mailboxes(), move || {
            if let Some(local) = local::<WorkerLocal>() {
                let frontends = open_logs.frontends.clone();
                local.put_in_force(Rc::new(RunningGeneration::new(
                    Arc::clone(&generation),
                    frontends,
                )));
            }
            if let Some(probes) = local::<RefCell<Probes>>() {
                probes.borrow_mut().update(&backends);
            }
            if looks {
                // Idle connections of a bind line that is gone are closed, and those of a frontend
                // whose mode is another.
                wake_connections();
            }
            if let Some(limit) = limit.filter(|_| listeners_ended || !removed.is_empty()) {
                spawn_service(kill_removed_after(limit, Arc::clone(&removed)));
            }
        });
    }
}

/// Whether a frontend has another mode in the next generation.
fn has_other_modes(now: &Generation, next: &Generation) -> bool {
    now.frontends.iter().any(|former| {
        let mut frontends = next.frontends.iter();
        let same = frontends.find(|frontend| frontend.name() == former.name());
        same.is_some_and(|frontend| frontend.is_http() != former.is_http())
    })
}

/// The refusal for sockets that cannot be opened, with the messages of a start.
fn cannot_listen(errors: Vec<ListenError>) -> Refusal {
    let lines = errors
        .iter()
        .map(|error| console_line(Severity::Alert, &error.to_string()));
    Refusal(lines.collect())
}

/// Runs a function on a worker, and waits for it. Where the mailbox is full it waits for room: a
/// worker must not miss a change. `None` when the worker has ended.
fn on_worker<T: Send + 'static>(
    mailbox: &Mailbox,
    work: impl Fn() -> T + Clone + Send + 'static,
) -> Option<T> {
    begin_on_worker(mailbox, work)?.wait().ok()
}

/// Runs a function on all workers at once, and waits for all of them. One that has ended misses it.
fn on_all_workers(mailboxes: &[Mailbox], work: impl Fn() + Clone + Send + 'static) {
    let begin = |mailbox| begin_on_worker(mailbox, work.clone());
    let begun: Vec<_> = mailboxes.iter().filter_map(begin).collect();
    for call in begun {
        let _ = call.wait();
    }
}

fn begin_on_worker<T: Send + 'static>(
    mailbox: &Mailbox,
    work: impl Fn() -> T + Clone + Send + 'static,
) -> Option<BegunCall<T>> {
    loop {
        match mailbox.begin_call(work.clone()) {
            Ok(begun) => return Some(begun),
            Err(MailboxRefusal::Ended) => return None,
            Err(MailboxRefusal::Full) => std::thread::sleep(MAILBOX_RETRY_PERIOD),
        }
    }
}

/// How often `wait_until_closed` asks the workers at most.
const CLOSE_ROUND_COUNT_MAX: usize = 100;

/// The time between two attempts to send to a full mailbox.
const MAILBOX_RETRY_PERIOD: Duration = Duration::from_millis(1);

/// Kills the exchanges of removed bind lines and servers after `limit`.
async fn kill_removed_after(limit: Duration, removed: Arc<[Arc<Server>]>) {
    sleep(limit).await;
    kill_connections_of_removed_binds(limit);
    for server in removed.iter() {
        server
            .state
            .shutdown_sessions(CancellationReason::ByOperator);
    }
    wake_connections();
}

/// Whether all proxies have the same log targets, in the same places.
fn same_logs(current: &Config, next: &Config) -> bool {
    let same_front = current.frontends.len() == next.frontends.len()
        && current
            .frontends
            .iter()
            .zip(&next.frontends)
            .all(|(was, is)| {
                Arc::ptr_eq(was, is)
                    || (was.common.name == is.common.name
                        && was.common.log_targets == is.common.log_targets
                        && was.common.log_tag == is.common.log_tag)
            });
    let same_back = current.backends.len() == next.backends.len()
        && current
            .backends
            .iter()
            .zip(&next.backends)
            .all(|(was, is)| {
                Arc::ptr_eq(was, is)
                    || (was.common.name == is.common.name
                        && was.common.log_targets == is.common.log_targets
                        && was.common.log_tag == is.common.log_tag)
            });
    same_front && same_back && Arc::ptr_eq(&current.global, &next.global)
}
