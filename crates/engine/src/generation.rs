//! A configuration compiled into what runs, never changed again.
//!
//! Names have become places in tables, so that a request finds its backend and its servers
//! without looking anything up. What is counted and believed is not here but in the states
//! that the [`Registry`] hands out, so a new generation goes on where the last one was.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use ballast_balance::{
    Algorithm, Balancer, Candidate, Function, HashType, Method, Setup,
};
use ballast_health::Health;
use ballast_message::NameCases;
use ballast_model as model;

use crate::backend::Sharing;
use crate::cookies::hash_key;
use crate::{
    Backend, Belief, Frontend, Registry, Route, RouteTarget, Server, SocketBuffers, UseServer,
    UseServerTarget, health_settings, limits,
};

/// Everything that runs, of one configuration.
#[derive(Debug)]
pub struct Generation {
    /// Counted from 1; each change makes the next.
    pub number: u64,
    /// What it was compiled from.
    pub config: Arc<model::Config>,
    /// In the order of the file.
    pub frontends: Vec<Arc<Frontend>>,
    /// In the order of the file.
    pub backends: Vec<Arc<Backend>>,
    backend_by_name: HashMap<String, usize>,
}

impl Generation {
    /// Compiles a configuration, joined to the states of what was there before.
    pub fn compile(number: u64, config: Arc<model::Config>, registry: &Registry) -> Self {
        let process_max = registry.process().connection_count_written();
        let backend_by_name: HashMap<String, usize> = config
            .backends
            .iter()
            .enumerate()
            .map(|(place, backend)| (backend.common.name.clone(), place))
            .collect();
        let cases = name_cases(&config);
        let backends = config
            .backends
            .iter()
            .map(|backend| {
                let adjusts = backend.options.case_adjust;
                let cases = cases.as_ref().filter(|_| adjusts);
                Arc::new(compile_backend(
                    &config,
                    backend,
                    registry,
                    process_max,
                    cases,
                ))
            })
            .collect();
        let frontends = config
            .frontends
            .iter()
            .enumerate()
            .map(|(place, frontend)| {
                Arc::new(compile_frontend(
                    place,
                    frontend,
                    registry,
                    process_max,
                    &backend_by_name,
                    cases.as_ref().filter(|_| frontend.options.case_adjust),
                ))
            })
            .collect();
        Self {
            number,
            config,
            frontends,
            backends,
            backend_by_name,
        }
    }

    /// The place of the backend of that name.
    pub fn backend_named(&self, name: &str) -> Option<usize> {
        self.backend_by_name.get(name).copied()
    }
}

/// `h1-case-adjust`, when there is any: one table for all who ask for it.
fn name_cases(config: &model::Config) -> Option<Arc<NameCases>> {
    let pairs = &config.global.case_adjust;
    let pairs = pairs.iter().map(|(from, to)| (from.as_str(), to.as_str()));
    let cases = NameCases::new(pairs);
    (!cases.is_empty()).then(|| Arc::new(cases))
}

fn compile_frontend(
    place: usize,
    frontend: &Arc<model::Frontend>,
    registry: &Registry,
    process_max: u32,
    backends: &HashMap<String, usize>,
    cases: Option<&Arc<NameCases>>,
) -> Frontend {
    let state = registry.frontend(&frontend.common.name);
    state.limit_connections(frontend.connection_count_max.unwrap_or(process_max));
    let routes = frontend
        .routes
        .iter()
        .filter_map(|route| {
            let target = match &route.target {
                model::RouteTarget::Static(name) => RouteTarget::Backend(*backends.get(name)?),
                model::RouteTarget::Dynamic(format) => RouteTarget::Dynamic(format.clone()),
            };
            Some(Route {
                target,
                condition: route.condition.clone(),
            })
        })
        .collect();
    Frontend {
        place,
        name_cases: cases.cloned(),
        default_backend: frontend
            .default_backend
            .as_ref()
            .and_then(|name| backends.get(name).copied()),
        model: Arc::clone(frontend),
        state,
        routes,
    }
}

fn compile_backend(
    config: &model::Config,
    backend: &Arc<model::Backend>,
    registry: &Registry,
    process_max: u32,
    cases: Option<&Arc<NameCases>>,
) -> Backend {
    let servers: Vec<Arc<Server>> = backend
        .servers
        .iter()
        .map(|server| compile_server(backend, server, registry))
        .collect();
    let by_name: HashMap<String, usize> = servers
        .iter()
        .enumerate()
        .map(|(place, server)| (server.name().to_owned(), place))
        .collect();
    let use_servers = backend
        .use_servers
        .iter()
        .filter_map(|rule| {
            let target = match &rule.target {
                model::UseServerTarget::Static(name) => {
                    UseServerTarget::Server(*by_name.get(name)?)
                }
                model::UseServerTarget::Dynamic(format) => UseServerTarget::Dynamic(format.clone()),
            };
            Some(UseServer {
                target,
                condition: rule.condition.clone(),
            })
        })
        .collect();
    let algorithm = algorithm(backend);
    let setup = Setup {
        algorithm,
        all_backups: backend.options.all_backups,
        balance_factor: backend.hash_balance_factor,
    };
    let candidates: Vec<Candidate> = servers.iter().map(|server| candidate(server)).collect();
    let mut balancer = Balancer::new(setup, &candidates);
    balancer.settle();
    let backend = Backend {
        state: registry.backend(&backend.common.name),
        full_connections: limits::full_connections(config, backend, process_max),
        name_cases: cases.cloned(),
        socket_buffers: SocketBuffers {
            receive: config.global.tune.receive_buffer_server,
            send: config.global.tune.send_buffer_server,
        },
        sharing: match algorithm {
            Algorithm::LeastConn => Sharing::Told,
            Algorithm::First | Algorithm::Hash(_) | Algorithm::Random { .. } => Sharing::Shared,
            Algorithm::RoundRobin | Algorithm::StaticRr => Sharing::Exclusive,
        },
        model: Arc::clone(backend),
        servers,
        use_servers,
        balancer: RwLock::new(balancer),
        by_name,
        by_cookie: ArcSwap::default(),
    };
    backend.renew_cookies();
    backend
}

fn compile_server(
    backend: &model::Backend,
    server: &Arc<model::Server>,
    registry: &Registry,
) -> Arc<Server> {
    let (state, new) = registry.server(&backend.common.name, &server.name);
    if new {
        state.set_address(match &server.address {
            model::Address::Name { .. } => None,
            known => Some(known.clone()),
        });
        let now_ms = registry.process().age_ms();
        let mut health = Health::new(health_settings(server), server.disabled, now_ms);
        if matches!(server.address, model::Address::Name { .. }) {
            // In maintenance until someone resolves the name; nothing is done about it yet.
            let _ = health.set_resolved(now_ms, false);
        }
        let belief = Belief::of(&health);
        *state.health() = health;
        state.weigh(belief.weight, belief.throttle_percent);
        state.believe(belief.usable, belief.draining);
    }
    Arc::new(Server {
        model: Arc::clone(server),
        state,
        cookie: ArcSwapOption::empty(),
    })
}

fn candidate(server: &Server) -> Candidate {
    Candidate {
        backup: server.model.backup,
        hash_key: hash_key(server),
        puid: server.model.id,
        usable: server.state.is_usable() && !server.state.is_draining(),
        weight: server.state.weight(),
    }
}

fn algorithm(backend: &model::Backend) -> Algorithm {
    use model::Balance;
    match &backend.balance {
        Balance::RoundRobin => Algorithm::RoundRobin,
        Balance::StaticRoundRobin => Algorithm::StaticRr,
        Balance::LeastConnections => Algorithm::LeastConn,
        Balance::First => Algorithm::First,
        Balance::Random(draws) => Algorithm::Random { draws: *draws },
        Balance::Source
        | Balance::Uri(_)
        | Balance::UrlParam { .. }
        | Balance::Header { .. }
        | Balance::RdpCookie(_)
        | Balance::Hash(_)
        | Balance::Sticky => Algorithm::Hash(if backend.hash_type.consistent {
            Method::Consistent
        } else {
            Method::MapBased
        }),
    }
}

/// How the keys of a backend are hashed.
pub fn hash_type(backend: &model::Backend) -> HashType {
    HashType {
        avalanche: backend.hash_type.avalanche,
        function: match backend.hash_type.function {
            model::HashFunction::Sdbm => Function::Sdbm,
            model::HashFunction::Djb2 => Function::Djb2,
            model::HashFunction::Wt6 => Function::Wt6,
            model::HashFunction::Crc32 => Function::Crc32,
            model::HashFunction::None => Function::None,
        },
        method: if backend.hash_type.consistent {
            Method::Consistent
        } else {
            Method::MapBased
        },
    }
}
