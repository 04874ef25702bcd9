//! Commands that change the process.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ballast_cli::{
    BlockingWork, ChangeOutcome, ChangeRecord, Control, ControlError, HealthChange, IdleCount,
    IdleCounts,
};
use ballast_config::{KeywordState, Sections};
use ballast_edit::Refusal;
use ballast_engine::descriptors::{ConnectionCursor, ConnectionPage, ListeningDescriptor};
use ballast_engine::sessions::SessionPage;
use ballast_engine::{Backend, CancellationReason, Frontend, ServerState};
use ballast_expr::Store;
use ballast_listen::Listeners;
use ballast_log::Level;
use ballast_model::{Address, BindTls, CertificateListLine, Global, PortSpec, TlsOptions};
use ballast_net::PassedSocket;
use ballast_reconcile::{
    CertificateChangeLock, ChangeRequest, ConfigHistory, OverrideKey, OverrideValue,
};
use ballast_stats::StatsHost;
use ballast_stream::{connection_descriptors, end_session, sessions, wake_connections};
use ballast_tls::certificate_file_changes::CertificateFileChange;
use ballast_tls::ocsp_schedule::UpdateSchedule;
use ballast_tls::server_config::BindTlsSettings;
use ballast_tls::store::StoredCertificate;
use ballast_upstream::pool;
use ballast_worker::sync::oneshot;
use ballast_worker::{Mailbox, MailboxRefusal, spawn_service, timeout};

use crate::instance::Instance;
use crate::machine::LocalMachine;
use crate::{console, file_helper, ocsp, threads};

/// How long a worker has to list its sessions.
const SESSIONS_WAIT: Duration = Duration::from_secs(2);

impl Control for Instance {
    fn request(&self, request: ChangeRequest) -> ChangeOutcome {
        let (sender, receiver) = oneshot::channel();
        let answer = |outcome| {
            // The caller may be gone; the change is made anyway.
            let _ = sender.send(outcome);
        };
        let taken = match self.controller() {
            Some(controller) => controller.submit(request, answer),
            None => Err(Refusal("The process is not ready for changes.".into())),
        };
        Box::pin(async move {
            taken?;
            let given_up = |_| Err(Refusal("The change was given up.".into()));
            receiver.await.unwrap_or_else(given_up)
        })
    }

    fn server_words(&self) -> Vec<&'static str> {
        let rows = ballast_config::keywords().into_iter();
        let own = rows.filter(|row| {
            row.sections.has(Sections::SERVER)
                && matches!(row.state, KeywordState::Honoured | KeywordState::Ignored(_))
        });
        let mut words: Vec<_> = own.map(|row| row.word).collect();
        words.sort_unstable();
        words
    }

    fn config_history(&self, look: &mut dyn FnMut(&ConfigHistory)) {
        if let Some(controller) = self.controller() {
            look(&controller.config_history());
        }
    }

    fn note_override(&self, key: OverrideKey, value: OverrideValue, command: String) {
        if let Some(controller) = self.controller() {
            controller.note_override(key, value, command);
        }
    }

    fn change_health(&self, backend: &str, server: &str, change: HealthChange<'_>) -> bool {
        let Some(health_controller) = self.health_controller() else {
            return false;
        };
        health_controller.update_health(backend, server, change)
    }

    fn listening_sockets(&self) -> Vec<PassedSocket> {
        let listeners = self.listeners();
        listeners
            .iter()
            .flat_map(Listeners::sockets_to_pass)
            .collect()
    }

    fn table_channel(&self) -> Option<OwnedFd> {
        let has_tables = !self.generation().tables.all().is_empty();
        has_tables.then(|| self.table_donor.channel()).flatten()
    }

    fn patterns(&self) -> Arc<Store> {
        let controller = self.controller();
        controller.map_or_else(Arc::default, |controller| controller.patterns())
    }

    fn persists(&self) -> bool {
        self.controller().is_some_and(|one| one.persists())
    }

    fn queue_persist(&self) {
        if let Some(controller) = self.controller() {
            controller.queue_persist();
        }
    }

    fn run_blocking(&self, work: BlockingWork) -> Pin<Box<dyn Future<Output = Option<String>>>> {
        let (sender, receiver) = oneshot::channel();
        // Where there is no thread, the sender is dropped. The caller may be gone: it is done anyway.
        let _ = threads::start("ballast-disk", move || drop(sender.send(work())));
        Box::pin(async move { receiver.await.ok() })
    }

    fn change_certificate_files(&self, changes: &[CertificateFileChange]) -> Result<(), String> {
        file_helper::change_certificate_files(changes)
    }

    fn certificate_line(&self, text: &str) -> Result<CertificateListLine, String> {
        let bases = &self.generation().config.global.tls.bases;
        let read = ballast_config::certificate_list("CLI", &format!("{text}\n"), bases)?;
        let lines = read.lines.into_iter();
        let none = || "only one line of payload is supported!".to_owned();
        lines.last().ok_or_else(none)
    }

    fn certificate_change_lock(&self) -> Option<CertificateChangeLock<'_>> {
        let controller = self.controller()?;
        Some(controller.certificate_change_lock())
    }

    fn bind_tls_settings(
        &self,
        global: &Global,
        tls: &BindTls,
        options: &TlsOptions,
    ) -> Result<Arc<BindTlsSettings>, String> {
        let machine = LocalMachine::new(&[], None, self.has_master());
        ballast_config::compile_bind_tls_settings(global, tls, options, &machine)
    }

    fn ocsp_schedule(&self, look: &mut dyn FnMut(&UpdateSchedule)) {
        self.ocsp.with_schedule(look);
    }

    fn ocsp_updates_changed(&self) {
        ocsp::request_rescan(self);
    }

    fn update_ocsp(&self, certificates: Vec<Arc<StoredCertificate>>) -> bool {
        ocsp::ask_now(self, certificates)
    }

    fn log_change(&self, record: &ChangeRecord<'_>) {
        self.log_change_record(record);
    }

    fn limits_changed(&self) {
        if let Some(listeners) = &*self.listeners() {
            listeners.limits_changed();
        }
    }

    fn move_server(&self, backend: &Backend, server: usize, to: (Address, Option<PortSpec>)) {
        let Some(known) = backend.servers.get(server) else {
            return;
        };
        known.state.set_current_address(Some(to.0), to.1);
        backend.address_changed(server);
        let Some(health_controller) = self.health_controller() else {
            return;
        };
        health_controller.address_changed(known);
    }

    fn shutdown_sessions(&self, server: &ServerState) {
        server.shutdown_sessions(CancellationReason::ByOperator);
        for mailbox in self.mailboxes() {
            // A worker that has ended has no sessions. If a mailbox is full, the message waits.
            if mailbox.send(wake_connections) == Err(MailboxRefusal::Full) {
                let mailbox = mailbox.clone();
                spawn_service(async move {
                    let _ = mailbox.send_when_room(wake_connections).await;
                });
            }
        }
    }

    fn sessions(
        &self,
        worker: usize,
        position: usize,
        position_count: usize,
    ) -> Pin<Box<dyn Future<Output = SessionPage>>> {
        let found = self.mailboxes().get(worker).cloned();
        Box::pin(async move {
            let Some(mailbox) = found else {
                return SessionPage::default();
            };
            let listed = mailbox.call(move || sessions(worker, position, position_count));
            let listed = timeout(SESSIONS_WAIT, listed).await;
            listed.ok().and_then(Result::ok).unwrap_or_default()
        })
    }

    fn connections(
        &self,
        worker: usize,
        cursor: ConnectionCursor,
        count: usize,
    ) -> Pin<Box<dyn Future<Output = Option<ConnectionPage>>>> {
        let found = self.mailboxes().get(worker).cloned();
        Box::pin(async move {
            let mailbox = found?;
            let listed = mailbox.call(move || connection_descriptors(worker, cursor, count));
            let listed = timeout(SESSIONS_WAIT, listed).await;
            listed.ok().and_then(Result::ok)
        })
    }

    fn listeners(&self) -> Vec<ListeningDescriptor> {
        let listeners = Self::listeners(self);
        listeners.iter().flat_map(Listeners::descriptors).collect()
    }

    fn end_session(&self, id: u64) -> Pin<Box<dyn Future<Output = bool>>> {
        // The upper bits of the id number the worker from 1.
        let worker = usize::try_from(id >> 40).unwrap_or(0).checked_sub(1);
        let found = worker.and_then(|worker| self.mailboxes().get(worker).cloned());
        Box::pin(async move {
            let Some(mailbox) = found else {
                return false;
            };
            let ended = timeout(SESSIONS_WAIT, mailbox.call(move || end_session(id))).await;
            ended.ok().and_then(Result::ok).unwrap_or(false)
        })
    }

    fn pause_frontend(&self, name: &str) -> Result<(), ControlError> {
        let paused = self
            .listeners()
            .as_ref()
            .is_some_and(|listeners| listeners.pause(name));
        if !paused {
            return Err(ControlError);
        }
        self.tell_of_frontend(name, |frontend| {
            format!("Paused {} {}.", kind(frontend), frontend.name())
        });
        Ok(())
    }

    fn resume_frontend(&self, name: &str) -> Result<(), ControlError> {
        let resumed = self
            .listeners()
            .as_ref()
            .map_or(Ok(false), |listeners| listeners.resume(name));
        match resumed {
            Ok(true) => {
                self.tell_of_frontend(name, |frontend| {
                    format!("Resumed {} {}.", kind(frontend), frontend.name())
                });
                Ok(())
            }
            Ok(false) => Err(ControlError),
            Err(error) => {
                self.tell_of_frontend(name, |frontend| {
                    let kind = kind(frontend);
                    format!("Failed to resume {kind} {}: {error}.", frontend.name())
                });
                Err(ControlError)
            }
        }
    }

    fn shut_frontend(&self, name: &str) {
        let shut = self
            .listeners()
            .as_mut()
            .is_some_and(|listeners| listeners.shut(name));
        if shut {
            let generation = self.generation();
            self.tell_of_frontend(name, |frontend| {
                let front = frontend.state.counters.sums().connections;
                let own = generation
                    .backend_named(name)
                    .filter(|_| frontend.model.common.listen);
                let back = own.map_or(0, |backend_index| {
                    generation.backends[backend_index]
                        .state
                        .counters
                        .sums()
                        .sessions
                });
                format!("Proxy {name} stopped (cumulated conns: FE: {front}, BE: {back}).")
            });
        }
    }

    fn idle_connections(&self) -> Pin<Box<dyn Future<Output = Vec<IdleCounts>>>> {
        let mailboxes = self.mailboxes().to_vec();
        Box::pin(async move {
            let mut counts = Vec::with_capacity(mailboxes.len());
            for mailbox in &mailboxes {
                counts.push(count_idle(mailbox).await);
            }
            counts
        })
    }

    fn clear_listeners(&self, counters: bool) {
        let listeners = self.listeners();
        for (_, listening) in listeners.iter().flat_map(Listeners::binds) {
            listening.state.connections.clear_highest();
            if let (true, Some(counted)) = (counters, listening.state.counters()) {
                counted.clear();
            }
        }
    }
}

impl Instance {
    /// `SIGTTOU`: closes no connection, but pauses listening, so that another process can listen on
    /// the same addresses.
    pub(crate) fn pause_all(&self) {
        for name in self.frontend_names() {
            // It may be paused already.
            let _ = self.pause_frontend(&name);
        }
    }

    /// `SIGTTIN`: listens again.
    pub(crate) fn resume_all(&self) {
        for name in self.frontend_names() {
            // The error was logged.
            let _ = self.resume_frontend(&name);
        }
    }

    fn frontend_names(&self) -> Vec<String> {
        let generation = self.generation();
        let names = generation.frontends.iter();
        names.map(|frontend| frontend.name().to_owned()).collect()
    }

    fn tell_of_frontend(&self, name: &str, line: impl FnOnce(&Frontend) -> String) {
        let generation = self.generation();
        let mut frontends = generation.frontends.iter();
        if let Some(frontend) = frontends.find(|frontend| frontend.name() == name) {
            let line = line(frontend);
            console::warn(&line);
            self.log_of_frontend(frontend.index, Level::Warning, &line);
        }
    }
}

/// The kind of a section in log lines.
fn kind(frontend: &Frontend) -> &'static str {
    if frontend.model.common.listen {
        "proxy"
    } else {
        "frontend"
    }
}

async fn count_idle(mailbox: &Mailbox) -> IdleCounts {
    let counts = mailbox
        .call(pool::idle_connection_counts)
        .await
        .unwrap_or_default();
    counts
        .into_iter()
        .map(|(server, (idle_now, needed))| (server, IdleCount { idle_now, needed }))
        .collect()
}
