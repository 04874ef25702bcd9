//! Where private keys sign: on the worker that makes the handshake, or on threads of their own.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use ballast_model as model;
use ballast_tls::certificate::Certificate;
use ballast_tls::names::KeyAlgorithm;
use ballast_worker::ThreadPool;

/// The threads on which slow keys sign, as the configuration in force has them.
#[derive(Debug)]
pub(crate) struct KeyThreads {
    in_force: ArcSwap<KeyThreadsInForce>,
    queue_full_total: Arc<AtomicU64>,
}

#[derive(Debug)]
struct KeyThreadsInForce {
    settings: model::KeyThreads,
    threads: Arc<ThreadPool>,
}

impl KeyThreads {
    /// No thread is started before a key signs there. `queue_full_total` counts handshakes that find
    /// the queue full.
    pub(crate) fn new(settings: model::KeyThreads, queue_full_total: &Arc<AtomicU64>) -> Self {
        Self {
            in_force: ArcSwap::new(in_force(settings, queue_full_total)),
            queue_full_total: Arc::clone(queue_full_total),
        }
    }

    /// Takes the settings of another configuration. Threads that are in use end with their work.
    pub(crate) fn set(&self, settings: model::KeyThreads) {
        if self.in_force.load().settings != settings {
            let fresh = in_force(settings, &self.queue_full_total);
            self.in_force.store(fresh);
        }
    }

    /// The threads on which this certificate's key signs; `None`: it signs on the worker.
    pub(crate) fn of(&self, certificate: &Certificate) -> Option<Arc<ThreadPool>> {
        let in_force = self.in_force.load();
        let is_away = match certificate.algorithm() {
            _ if certificate.key().is_on_device() => true,
            KeyAlgorithm::Rsa => in_force.settings.rsa,
            KeyAlgorithm::Ecdsa => in_force.settings.ecdsa,
            KeyAlgorithm::Other => false,
        };
        is_away.then(|| Arc::clone(&in_force.threads))
    }
}

fn in_force(settings: model::KeyThreads, full_total: &Arc<AtomicU64>) -> Arc<KeyThreadsInForce> {
    let threads = ThreadPool::new(
        "ballast-keys",
        settings.count as usize,
        settings.queue_max as usize,
        Arc::clone(full_total),
    );
    let threads = Arc::new(threads);
    Arc::new(KeyThreadsInForce { settings, threads })
}
