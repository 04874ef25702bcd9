//! A process for the tests: a configuration compiled, nothing running.

use std::sync::Arc;

use ballast_engine::{Generation, Process, Registry};
use ballast_model as model;
use model::Address;

use crate::{ProcessInfo, StatsHost};

pub(crate) struct TestProcess {
    pub(crate) registry: Registry,
    pub(crate) generation: Arc<Generation>,
    facts: ProcessInfo,
}

impl TestProcess {
    pub(crate) fn of(config: model::Config) -> Arc<Self> {
        let registry = Registry::new(2, Arc::new(Process::new(2, 100)));
        let generation = Arc::new(Generation::compile(1, Arc::new(config), &registry));
        let facts = ProcessInfo {
            name: "HAProxy".into(),
            version: "0.1".into(),
            release_date: "2026/01/31".into(),
            node: "here".into(),
            process_id: 7,
            thread_count: 2,
            ..ProcessInfo::default()
        };
        Arc::new(Self {
            registry,
            generation,
            facts,
        })
    }
}

impl StatsHost for TestProcess {
    fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.generation)
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn process_info(&self) -> &ProcessInfo {
        &self.facts
    }
}

pub(crate) fn common(name: &str, id: u32, mode: model::Mode) -> model::ProxyCommon {
    model::ProxyCommon {
        id,
        name: name.into(),
        mode,
        ..model::ProxyCommon::default()
    }
}

pub(crate) fn inet(text: &str) -> Address {
    Address::Inet(text.parse().unwrap())
}

pub(crate) fn server(name: &str, id: u32, address: &str) -> model::Server {
    model::Server {
        id,
        ..model::Server::new(name.into(), inet(address))
    }
}

pub(crate) fn bind(name: Option<&str>, id: u32, address: Address) -> model::Bind {
    model::Bind {
        name: name.map(str::to_owned),
        id,
        ..model::Bind::new(address)
    }
}

/// A server of it, to be changed.
pub(crate) fn server_of(
    config: &mut model::Config,
    backend: usize,
    server: usize,
) -> &mut model::Server {
    Arc::make_mut(&mut Arc::make_mut(&mut config.backends[backend]).servers[server])
}

/// The configuration that `oracle` in the tests writes out for HAProxy.
pub(crate) fn config() -> model::Config {
    use model::{Backend, Frontend, Mode};
    let mut fe = Frontend {
        common: common("fe", 2, Mode::Http),
        binds: vec![
            bind(Some("door"), 1, inet("127.0.0.1:18481")),
            bind(None, 2, inet("127.0.0.1:18482")),
        ],
        connection_count_max: Some(50),
        ..Frontend::default()
    };
    fe.options.socket_stats = true;
    let fe2 = Frontend {
        common: common("fe2", 3, Mode::Tcp),
        binds: vec![bind(None, 1, inet("127.0.0.1:18483"))],
        connection_count_max: Some(7),
        session_rate_max: Some(5),
        ..Frontend::default()
    };
    let mut s1 = server("s1", 1, "127.0.0.1:18490");
    (s1.weight, s1.connection_count_max, s1.queue_count_max) = (10, 10, 4);
    s1.cookie = Some("c1".into());
    let mut s2 = server("s2", 2, "127.0.0.1:18491");
    (s2.disabled, s2.backup) = (true, true);
    let be = Backend {
        common: common("be", 4, Mode::Http),
        servers: [s1, s2, server("s3", 3, "[::1]:18492")]
            .map(Arc::new)
            .to_vec(),
        balance: model::Balance::LeastConnections,
        cookie: Some(cookie()),
        full_connections: Some(33),
        ..Backend::default()
    };
    let be2 = Backend {
        common: common("be2", 5, Mode::Tcp),
        servers: vec![Arc::new(server("t1", 1, "127.0.0.1:18490"))],
        full_connections: Some(44),
        ..Backend::default()
    };
    let empty = Backend {
        common: common("none", 6, Mode::Http),
        full_connections: Some(1),
        ..Backend::default()
    };
    model::Config {
        frontends: [fe, fe2].map(Arc::new).to_vec(),
        backends: [be, be2, empty].map(Arc::new).to_vec(),
        ..model::Config::default()
    }
}

fn cookie() -> model::CookiePersistence {
    model::CookiePersistence {
        name: "SRV".into(),
        mode: model::CookieMode::Insert,
        indirect: false,
        nocache: false,
        postonly: false,
        preserve: false,
        httponly: false,
        secure: false,
        domains: Vec::new(),
        idle_max: None,
        life_max: None,
        dynamic: false,
        attributes: Vec::new(),
    }
}
