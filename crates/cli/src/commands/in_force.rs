//! The lines in force, and the certificates that they and commands have: what the commands of TLS
//! look at first.

use std::sync::Arc;

use ballast_engine::{Generation, Server};
use ballast_model::{self as model, Bind, Config, Frontend};
use ballast_reconcile::{CertificateChangeLock, NextGeneration};
use ballast_tls::bind::BindCertificates;
use ballast_tls::context::CompiledServer;
use ballast_tls::server_config::OptionError;
use ballast_tls::shared_store::StoreState;
use ballast_tls::store::StoredCertificate;

use crate::answer::{AnswerSeverity, CommandAnswer};
use crate::command::CommandCall;
use crate::control::Control;
use crate::shared::ProcessRole;

/// The configuration in force: the lines whose certificates a command is about.
#[derive(Clone, Default)]
pub(super) struct ConfigInForce {
    config: Arc<Config>,
    generation: Option<Arc<Generation>>,
}

/// A server line that gets other files, once all lines are prepared.
pub(super) struct PreparedServer {
    server: Arc<Server>,
    compiled: CompiledServer,
}

impl PreparedServer {
    /// New connections are opened with it. Those that exist go on; idle ones are not used again.
    pub(super) fn apply(self) {
        if let Some(own) = &self.server.tls {
            own.configure(Arc::clone(self.compiled.config()));
        }
        if let Some(line) = &self.server.model.tls {
            line.context.replace(self.compiled);
        }
    }
}

/// The turn of a command that changes certificates.
pub(super) struct ChangeLock<'c>(Option<CertificateChangeLock<'c>>);

impl ChangeLock<'_> {
    /// Notes what was done to an object, for a generation that is being made. `replay` must find it
    /// right that all is done already.
    pub(super) fn record(
        &mut self,
        object: String,
        replay: impl Fn(&ConfigInForce, NextGeneration<'_>) + Send + Sync + 'static,
    ) {
        if let Some(lock) = &mut self.0 {
            let replay = move |next: NextGeneration<'_>| {
                replay(&ConfigInForce::in_generation(next.generation), next);
            };
            lock.record(object, Arc::new(replay));
        }
    }
}

impl ConfigInForce {
    pub(super) fn of(call: &CommandCall<'_>) -> Self {
        match &call.shared.role {
            ProcessRole::Worker(control) => Self::in_generation(&control.generation()),
            ProcessRole::Master(_) => Self::default(),
        }
    }

    /// The lines in force, for a command that changes them: no others are put in force while the
    /// turn is held.
    pub(super) fn locked_for_change<'c>(call: &CommandCall<'c>) -> (Self, ChangeLock<'c>) {
        let lock = match &call.shared.role {
            ProcessRole::Worker(control) => control.certificate_change_lock(),
            ProcessRole::Master(_) => None,
        };
        (Self::of(call), ChangeLock(lock))
    }

    /// The same for what is done on another thread.
    pub(super) fn locked_for_change_by(control: &dyn Control) -> (Self, ChangeLock<'_>) {
        let lock = control.certificate_change_lock();
        (Self::in_generation(&control.generation()), ChangeLock(lock))
    }

    /// The lines of a generation.
    pub(super) fn in_generation(generation: &Arc<Generation>) -> Self {
        Self {
            config: Arc::clone(&generation.config),
            generation: Some(Arc::clone(generation)),
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The server lines with TLS for which `compile` has something else.
    ///
    /// # Errors
    /// Why a line cannot have it.
    pub(super) fn prepare_servers(
        &self,
        mut compile: impl FnMut(&Server, &CompiledServer) -> Option<Result<CompiledServer, OptionError>>,
    ) -> Result<Vec<PreparedServer>, String> {
        let backends = self.generation.iter().flat_map(|one| &one.backends);
        let mut prepared = Vec::new();
        for server in backends.flat_map(|backend| &backend.servers) {
            let line = server.model.tls.as_ref();
            let Some(now) = line.and_then(|line| line.context.compiled()) else {
                continue;
            };
            if let Some(compiled) = compile(server, &now) {
                prepared.push(PreparedServer {
                    server: Arc::clone(server),
                    compiled: compiled.map_err(|error| error.to_string())?,
                });
            }
        }
        Ok(prepared)
    }

    /// Every bind line with TLS, and its frontend.
    pub(super) fn binds(&self) -> impl Iterator<Item = (&Frontend, &Bind, Arc<BindCertificates>)> {
        self.config.frontends.iter().flat_map(|frontend| {
            frontend.binds.iter().filter_map(|bind| {
                let certificates = bind.tls.as_ref()?.context.certificates()?;
                Some((&**frontend, bind, certificates))
            })
        })
    }

    /// All certificates: those of the store, and those of bind lines.
    pub(super) fn certificates(&self, state: &StoreState) -> Vec<Arc<StoredCertificate>> {
        let mut all: Vec<Arc<StoredCertificate>> = state.store.iter().cloned().collect();
        for (_, _, certificates) in self.binds() {
            let entries = certificates.entries().iter();
            all.extend(entries.map(|entry| Arc::clone(&entry.certificate)));
        }
        all.sort_by(|one, other| {
            let address = |stored: &Arc<StoredCertificate>| Arc::as_ptr(stored).addr();
            (one.name(), address(one)).cmp(&(other.name(), address(other)))
        });
        all.dedup_by(|one, other| Arc::ptr_eq(one, other));
        all
    }

    /// What is known under a name.
    pub(super) fn find(&self, state: &StoreState, name: &str) -> Option<FoundCertificate> {
        let mut found = FoundCertificate::default();
        for (_, _, certificates) in self.binds() {
            for entry in certificates.with_certificate(name) {
                found.add(Some(&entry.certificate));
                found.use_count += 1;
            }
        }
        // What is served comes first: a reload may have read it again.
        found.add(state.store.get(name));
        let backends = self.config.backends.iter();
        let servers = backends.flat_map(|backend| &backend.servers);
        found.server_count = servers
            .filter(|server| uses_certificate(server, name))
            .count();
        let is_known = !found.stored.is_empty() || state.empty.contains(name);
        is_known.then_some(found)
    }
}

/// Whether a server line uses the certificate of this name.
pub(super) fn uses_certificate(line: &model::Server, name: &str) -> bool {
    let file = line.tls.as_ref().and_then(|tls| tls.certificate.as_ref());
    file.is_some_and(|file| file.path == name)
}

/// A certificate that a name stands for.
#[derive(Default)]
pub(super) struct FoundCertificate {
    /// Where it is held: usually once. None for a name without a certificate yet.
    pub(super) stored: Vec<Arc<StoredCertificate>>,
    /// How many entries of bind lines have it.
    pub(super) use_count: usize,
    /// How many server lines show it.
    pub(super) server_count: usize,
}

impl FoundCertificate {
    fn add(&mut self, stored: Option<&Arc<StoredCertificate>>) {
        if let Some(stored) = stored
            && !self.stored.iter().any(|known| Arc::ptr_eq(known, stored))
        {
            self.stored.push(Arc::clone(stored));
        }
    }

    pub(super) fn is_used(&self) -> bool {
        self.use_count + self.server_count > 0
    }
}

/// A message that something was done.
pub(super) fn notice(text: String) -> CommandAnswer {
    CommandAnswer::Message(AnswerSeverity::Notice, text)
}

/// Has what a command changed written to files, where `persist` is on.
pub(super) fn queue_persist(call: &CommandCall<'_>) {
    if let ProcessRole::Worker(control) = &call.shared.role {
        control.queue_persist();
    }
}
