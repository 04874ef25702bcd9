//! Opening what a generation needs, and going over to it: what may refuse, and what cannot fail.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ballast_edit::Refusal;
use ballast_engine::{Eviction, Generation, Server, TakenOver};
use ballast_listen::{OpenError, OpenSettings, WorkerListeners};
use ballast_model::Config;
use ballast_stream::{Local, Running, end_leaving, wake_connections};
use ballast_upstream::probe::Probes;
use ballast_worker::{Mailbox, MailboxRefusal, local, sleep, spawn_service};

use crate::instance::Instance;
use crate::{logs, say};

impl Instance {
    /// Opens what is new. Nothing is in force yet; what was opened is closed on a refusal.
    pub(crate) fn prepare(&self, now: &Generation, next: &Generation) -> Result<Prepared, Refusal> {
        let logs = match self.logs() {
            Some(instance) if !same_logs(&now.config, &next.config) => {
                let opened = logs::open(&instance.logs, &next.config, instance.background);
                Some(opened.map_err(|why| Refusal(say::line_of(say::Severity::Alert, &why)))?)
            }
            _ => None,
        };
        let settings = OpenSettings {
            connection_count_max: self.registry.process().connection_count_max(),
            no_reuseport: self
                .controller
                .get()
                .is_some_and(|controller| controller.options.no_reuseport),
            worker_count: self.mailboxes().len(),
        };
        let listeners = match &*self.listeners() {
            Some(listeners) => Some(listeners.prepare(next, settings).map_err(cannot_listen)?),
            None => None,
        };
        Ok(Prepared { logs, listeners })
    }

    /// Goes over to other listening sockets: what each worker is to start then, and the sockets
    /// that are listened on no more.
    fn commit_listeners(
        &self,
        prepared: Option<ballast_listen::Prepared>,
    ) -> (Vec<WorkerListeners>, Option<Vec<Arc<OwnedFd>>>) {
        let mut listeners = self.listeners();
        let committed = match (&mut *listeners, prepared) {
            (Some(listeners), Some(prepared)) => Some(listeners.commit(prepared)),
            _ => None,
        };
        let Some(commit) = committed else {
            return (Vec::new(), None);
        };
        for refused in &commit.refused {
            say::warn(&refused.to_string());
        }
        let any_gone = !commit.ended.is_empty();
        (commit.start, any_gone.then_some(commit.closing))
    }

    /// Waits until the workers have let in who waited at sockets that are gone, so that nobody is
    /// listening when it is said that nobody is.
    fn close(&self, sockets: &[Arc<OwnedFd>]) {
        let is_ours_alone = |socket: &Arc<OwnedFd>| Arc::strong_count(socket) == 1;
        for _ in 0..CLOSE_ROUND_COUNT_MAX {
            if sockets.iter().all(is_ours_alone) {
                break;
            }
            for mailbox in self.mailboxes() {
                let _ = on_worker(mailbox, || ());
            }
        }
        if self.has_master() {
            // Its copies would go on listening, with nobody to accept.
            for socket in sockets {
                let _ = ballast_net::shutdown_both(socket);
            }
        }
    }

    /// Goes over to another generation everywhere. Cannot fail.
    pub(crate) fn commit(
        &self,
        generation: &Arc<Generation>,
        taken: &TakenOver,
        prepared: Prepared,
    ) {
        if let (Some(instance), Some(opened)) = (self.logs(), prepared.logs) {
            instance.journal.retarget(opened.backends.clone());
            instance.open.store(Arc::new(opened));
        }
        if let Some(probes) = self.probes() {
            probes.succeed(Arc::clone(generation), taken);
        }
        let former = self.generation.swap(Arc::clone(generation));
        let (starts, closing) = self.commit_listeners(prepared.listeners);
        let any_gone = closing.is_some();
        let open_logs = self.open_logs();
        // What is removed may finish as long as a process that ends may.
        let limit = generation.config.global.hard_stop_after;
        let backends: Arc<[String]> = taken.names.as_slice().into();
        // Of servers that go while nobody is with them, which is how most go, nothing is left to end.
        let left = taken
            .removed
            .iter()
            .filter(|one| one.state.sessions.now() > 0);
        let removed: Arc<[Arc<Server>]> = left.cloned().collect();
        for mailbox in self.mailboxes() {
            let (backends, removed) = (Arc::clone(&backends), Arc::clone(&removed));
            let (generation, logs) = (Arc::clone(generation), Arc::clone(&open_logs));
            on_worker(mailbox, move || {
                if let Some(local) = local::<Local>() {
                    let frontends = logs.frontends.clone();
                    local.run(Rc::new(Running::new(Arc::clone(&generation), frontends)));
                }
                if let Some(probes) = local::<RefCell<Probes>>() {
                    probes.borrow_mut().update(&backends);
                }
                if any_gone {
                    // Who idles on a bind that is gone is let go.
                    wake_connections();
                }
                if let Some(limit) = limit.filter(|_| any_gone || !removed.is_empty()) {
                    spawn_service(drain(limit, Arc::clone(&removed)));
                }
            });
        }
        // Only now that all know it may anyone let connections in for what is new: they are
        // handed from one worker to another.
        for (mailbox, start) in self.mailboxes().iter().zip(starts) {
            if start.is_empty() {
                continue;
            }
            let start = Arc::new(Mutex::new(Some(start)));
            let started = on_worker(mailbox, move || {
                let start = start.lock().unwrap_or_else(PoisonError::into_inner).take();
                start.map_or(Ok(()), WorkerListeners::start)
            });
            if let Some(Err(error)) = started {
                say::warn(&format!("a socket cannot be accepted from: {error}."));
            }
        }
        self.close(&closing.unwrap_or_default());
        self.registry.retire(former);
    }

    /// The limit of the process follows the file, as far as the descriptors of its start allow,
    /// and with it that of frontends that set none.
    pub(crate) fn limit_connections(&self, generation: &Generation) {
        let most = self.facts.connection_count_hard_max;
        let target = generation.config.global.connection_count_max;
        let target = target.map_or(most, |target| target.min(most));
        let process = self.registry.process();
        if process.connection_count_written() == target {
            return;
        }
        process.limit_connections(target);
        for frontend in &generation.frontends {
            if frontend.model.connection_count_max.is_none() {
                frontend.state.limit_connections(target);
            }
        }
        if let Some(listeners) = &*self.listeners() {
            listeners.limits_changed();
        }
    }
}

/// All that cannot be listened on, as a start would say it.
fn cannot_listen(errors: Vec<OpenError>) -> Refusal {
    let lines = errors
        .iter()
        .map(|error| say::line_of(say::Severity::Alert, &error.to_string()));
    Refusal(lines.collect())
}

/// Has a worker do something, and waits for it; also for room in a mailbox that is full: a worker
/// that did not hear of a change would serve what is no more. `None` for one that has ended.
fn on_worker<T: Send + 'static>(
    mailbox: &Mailbox,
    work: impl Fn() -> T + Clone + Send + 'static,
) -> Option<T> {
    loop {
        match mailbox.call_blocking(work.clone()) {
            Ok(done) => return Some(done),
            Err(MailboxRefusal::Ended) => return None,
            Err(MailboxRefusal::Full) => std::thread::sleep(ROOM_PERIOD),
        }
    }
}

/// How often the workers are asked whether they have closed what is gone.
const CLOSE_ROUND_COUNT_MAX: usize = 100;

/// Between two looks at a mailbox that is full.
const ROOM_PERIOD: Duration = Duration::from_millis(1);

/// Ends what is left of what was removed, when its time is over.
async fn drain(limit: Duration, removed: Arc<[Arc<Server>]>) {
    sleep(limit).await;
    end_leaving(limit);
    for server in removed.iter() {
        server.state.shutdown_sessions(Eviction::ByOperator);
    }
    wake_connections();
}

/// What was opened for a generation.
pub(crate) struct Prepared {
    logs: Option<logs::Opened>,
    listeners: Option<ballast_listen::Prepared>,
}

/// Whether the log targets of all proxies are the same, place by place.
fn same_logs(now: &Config, next: &Config) -> bool {
    let same_front = now.frontends.len() == next.frontends.len()
        && now.frontends.iter().zip(&next.frontends).all(|(was, is)| {
            Arc::ptr_eq(was, is)
                || (was.common.name == is.common.name
                    && was.common.log_targets == is.common.log_targets
                    && was.common.log_tag == is.common.log_tag)
        });
    let same_back = now.backends.len() == next.backends.len()
        && now.backends.iter().zip(&next.backends).all(|(was, is)| {
            Arc::ptr_eq(was, is)
                || (was.common.name == is.common.name
                    && was.common.log_targets == is.common.log_targets
                    && was.common.log_tag == is.common.log_tag)
        });
    same_front && same_back && Arc::ptr_eq(&now.global, &next.global)
}
