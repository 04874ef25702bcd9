//! The interface through which commands change the process.
//!
//! Commands read the process through [`StatsHost`] and change it through [`Control`]. A method
//! does all that it should, or nothing and returns the reason.

use std::collections::HashMap;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;

use ballast_edit::Refusal;
use ballast_engine::descriptors::{ConnectionCursor, ConnectionPage, ListeningDescriptor};
use ballast_engine::sessions::SessionPage;
use ballast_engine::{Backend, CancellationReason, GateState, ServerState};
use ballast_expr::Store;
use ballast_health::{Effect, Health};
use ballast_model::{Address, BindTls, CertificateListLine, Global, PortSpec, TlsOptions};
use ballast_net::PassedSocket;
use ballast_reconcile::{
    CertificateChangeLock, ChangeReport, ChangeRequest, ConfigHistory, OverrideKey, OverrideValue,
};
use ballast_stats::StatsHost;
use ballast_tls::certificate_file_changes::CertificateFileChange;
use ballast_tls::ocsp_schedule::UpdateSchedule;
use ballast_tls::server_config::BindTlsSettings;
use ballast_tls::store::StoredCertificate;

use crate::certificate_files::change_certificate_files;
use crate::change_record::ChangeRecord;

/// A change of a server's health, given its time in milliseconds.
pub type HealthChange<'c> = &'c mut dyn FnMut(&mut Health, u64) -> Vec<Effect>;

/// Work that waits for a disk; its text is an answer.
pub type BlockingWork = Box<dyn FnOnce() -> String + Send>;

/// The outcome of a request, once it is known.
pub type ChangeOutcome = Pin<Box<dyn Future<Output = Result<ChangeReport, Refusal>>>>;

/// The process that commands change. The program implements it once.
pub trait Control: StatsHost {
    /// Changes the health of a server, and carries out the effects: balancing, queues, log lines,
    /// servers that track it. False when there is no such server.
    fn change_health(&self, backend: &str, server: &str, change: HealthChange<'_>) -> bool;

    /// The sockets that clients are accepted from, for a process that takes over (`_getsocks`).
    fn listening_sockets(&self) -> Vec<PassedSocket> {
        Vec::new()
    }

    /// A channel over which a process that takes over asks for the stick tables (`_gettables`); `None`
    /// where there are none.
    fn table_channel(&self) -> Option<OwnedFd> {
        None
    }

    /// Submits a change request. The outcome comes once the change is in force on every worker.
    fn request(&self, request: ChangeRequest) -> ChangeOutcome {
        let _ = request;
        let refused = Refusal("Changes cannot be made here.".into());
        Box::pin(std::future::ready(Err(refused)))
    }

    /// The words of a `server` line that are carried out, in alphabetic order.
    fn server_words(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Reads the history of the configuration and the overrides.
    fn config_history(&self, look: &mut dyn FnMut(&ConfigHistory)) {
        let _ = look;
    }

    /// Logs a change that a command made, or that was refused.
    fn log_change(&self, change: &ChangeRecord<'_>) {
        let _ = change;
    }

    /// Accepts clients that wait because of a limit that was raised.
    fn limits_changed(&self);

    /// Notes that `command` overrode a setting: `show overrides` lists it, and the next change of the
    /// files goes by it.
    fn note_override(&self, key: OverrideKey, value: OverrideValue, command: String) {
        let _ = (key, value, command);
    }

    /// Whether what commands change is written to files (`persist on`).
    fn persists(&self) -> bool {
        false
    }

    /// Has what commands changed written to files, where `persist` is on.
    fn queue_persist(&self) {}

    /// Runs what waits for a disk on another thread; answers its text. `None`: it was not run.
    fn run_blocking(&self, work: BlockingWork) -> Pin<Box<dyn Future<Output = Option<String>>>> {
        Box::pin(std::future::ready(Some(work())))
    }

    /// Changes files with certificates and keys, each in one step and in their order.
    ///
    /// # Errors
    /// What failed, and what to do.
    fn change_certificate_files(&self, changes: &[CertificateFileChange]) -> Result<(), String> {
        change_certificate_files(changes)
    }

    /// The lists and maps of the configuration in force.
    fn patterns(&self) -> Arc<Store> {
        Arc::default()
    }

    /// The turn of a command that changes certificates: while it is held, no other generation is put
    /// in force. `None`: nobody would.
    fn certificate_change_lock(&self) -> Option<CertificateChangeLock<'_>> {
        None
    }

    /// Reads a line of a crt-list. Names of files in it are as in a file.
    ///
    /// # Errors
    /// In HAProxy's words.
    fn certificate_line(&self, text: &str) -> Result<CertificateListLine, String> {
        let _ = text;
        Err("certificates cannot be added here".to_owned())
    }

    /// The TLS settings of a bind line below this global section for these options, which are its own and those of a line of
    /// a crt-list.
    ///
    /// # Errors
    /// Why the options cannot be carried out.
    fn bind_tls_settings(
        &self,
        global: &Global,
        tls: &BindTls,
        options: &TlsOptions,
    ) -> Result<Arc<BindTlsSettings>, String> {
        let _ = (global, tls, options);
        Err("certificates cannot be added here".to_owned())
    }

    /// Shows which OCSP responses are kept fresh.
    fn ocsp_schedule(&self, look: &mut dyn FnMut(&UpdateSchedule)) {
        let _ = look;
    }

    /// Certificates are kept fresh that were not, or the other way round.
    fn ocsp_updates_changed(&self) {}

    /// Asks for the OCSP response of these certificates, which are one under several lines, without
    /// waiting for it. False where nobody can be asked.
    fn update_ocsp(&self, certificates: Vec<Arc<StoredCertificate>>) -> bool {
        let _ = certificates;
        false
    }

    /// Gives the server with an index in a backend another address: new exchanges go there, and no
    /// connection to the old one is used again.
    fn move_server(&self, backend: &Backend, server: usize, to: (Address, Option<PortSpec>)) {
        if let Some(known) = backend.servers.get(server) {
            known.state.set_current_address(Some(to.0), to.1);
            backend.address_changed(server);
        }
    }

    /// Ends the exchanges that a server has now (`shutdown sessions server`).
    fn shutdown_sessions(&self, server: &ServerState) {
        server.shutdown_sessions(CancellationReason::ByOperator);
    }

    /// Has a frontend refuse clients until it is resumed.
    ///
    /// # Errors
    /// The change failed; the log says why.
    fn pause_frontend(&self, name: &str) -> Result<(), ControlError> {
        self.set_gate(name, GateState::Paused)
    }

    /// Has a paused frontend listen again.
    ///
    /// # Errors
    /// The change failed; the log says why.
    fn resume_frontend(&self, name: &str) -> Result<(), ControlError> {
        self.set_gate(name, GateState::Open)
    }

    /// Closes the sockets of a frontend, until a reload drops what operators set.
    fn shut_frontend(&self, name: &str) {
        let _ = self.set_gate(name, GateState::Shut);
    }

    /// Sets the gate of a frontend that has no sockets.
    ///
    /// # Errors
    /// There is no such frontend, or its gate was in that state already.
    fn set_gate(&self, name: &str, to: GateState) -> Result<(), ControlError> {
        let generation = self.generation();
        let mut frontends = generation.frontends.iter();
        let found = frontends.find(|frontend| frontend.name() == name);
        let changed = found.is_some_and(|frontend| frontend.state.gate.set(to));
        if changed { Ok(()) } else { Err(ControlError) }
    }

    /// The connections of clients in the list of a worker, in at most `position_count` positions from
    /// `position` on (0 for the first); and the next position, if there are more. Empty for a worker that
    /// does not answer in time.
    fn sessions(
        &self,
        worker: usize,
        position: usize,
        position_count: usize,
    ) -> Pin<Box<dyn Future<Output = SessionPage>>> {
        let _ = (worker, position, position_count);
        Box::pin(std::future::ready(SessionPage::default()))
    }

    /// At most `count` connections of a worker from `cursor` on, and where to go on (`show fd`). `None` from a
    /// worker that does not answer in time.
    fn connections(
        &self,
        worker: usize,
        cursor: ConnectionCursor,
        count: usize,
    ) -> Pin<Box<dyn Future<Output = Option<ConnectionPage>>>> {
        let _ = (worker, cursor, count);
        Box::pin(std::future::ready(Some(ConnectionPage::default())))
    }

    /// The sockets of the frontends (`show fd`).
    fn listeners(&self) -> Vec<ListeningDescriptor> {
        Vec::new()
    }

    /// Ends a client's connection; false when there is none of that id.
    fn end_session(&self, id: u64) -> Pin<Box<dyn Future<Output = bool>>> {
        let _ = id;
        Box::pin(std::future::ready(false))
    }

    /// Counts the idle connections on each worker.
    fn idle_connections(&self) -> Pin<Box<dyn Future<Output = Vec<IdleCounts>>>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Clears the highest values of listeners, and with `counters` all their counters.
    fn clear_listeners(&self, counters: bool) {
        let _ = counters;
    }
}

/// The change failed; the log says why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ControlError;

/// The idle connections of one worker, by the address of their server's state.
pub type IdleCounts = HashMap<usize, IdleCount>;

/// The idle connections of one server on one worker.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct IdleCount {
    /// How many there are.
    pub idle_now: u32,
    /// How many are expected to be used at once.
    pub needed: u32,
}
