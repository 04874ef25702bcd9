//! The lines in force, and the certificates that they and commands have: what the commands of TLS
//! look at first.

use std::sync::Arc;

use ballast_model::{Bind, Config, Frontend};
use ballast_tls::bind::BindCertificates;
use ballast_tls::store::StoredCertificate;
use ballast_tls::store_transaction::StoreState;

use crate::answer::{CommandAnswer, Severity};
use crate::command::CommandCall;
use crate::shared::ProcessRole;

/// The configuration in force: the lines whose certificates a command is about.
#[derive(Clone, Default)]
pub(super) struct InForce(Arc<Config>);

impl InForce {
    pub(super) fn of(call: &CommandCall<'_>) -> Self {
        match &call.shared.role {
            ProcessRole::Worker(control) => Self(Arc::clone(&control.generation().config)),
            ProcessRole::Master(_) => Self::default(),
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.0
    }

    /// Every bind line with TLS, and its frontend.
    pub(super) fn binds(&self) -> impl Iterator<Item = (&Frontend, &Bind, Arc<BindCertificates>)> {
        self.0.frontends.iter().flat_map(|frontend| {
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
            let place = |stored: &Arc<StoredCertificate>| Arc::as_ptr(stored).addr();
            (one.name(), place(one)).cmp(&(other.name(), place(other)))
        });
        all.dedup_by(|one, other| Arc::ptr_eq(one, other));
        all
    }

    /// What is known under a name.
    pub(super) fn find(&self, state: &StoreState, name: &str) -> Option<FoundCertificate> {
        let mut found = FoundCertificate::default();
        for (_, _, certificates) in self.binds() {
            for entry in certificates.entries() {
                if entry.certificate.name() == name {
                    found.add(Some(&entry.certificate));
                    found.use_count += 1;
                }
            }
        }
        // What is served comes first: a reload may have read it again.
        found.add(state.store.get(name));
        let servers = self.0.backends.iter().flat_map(|backend| &backend.servers);
        found.server_count = servers
            .filter(|server| {
                let file = server.tls.as_ref().and_then(|tls| tls.certificate.as_ref());
                file.is_some_and(|file| file.path == name)
            })
            .count();
        let is_known = !found.stored.is_empty() || state.empty.contains(name);
        is_known.then_some(found)
    }
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
    CommandAnswer::Message(Severity::Notice, text)
}
