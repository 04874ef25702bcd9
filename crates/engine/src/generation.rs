//! A configuration compiled into what runs. It is never changed afterwards.
//!
//! Names have become indexes, so that a request finds its backend and its servers without looking
//! anything up. Counters and health are not here but in the states that the [`Registry`] hands out:
//! a new generation continues with them.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use ballast_balance::{Algorithm, Balancer};
use ballast_health::Health;
use ballast_message::NameCases;
use ballast_model as model;

use crate::backend::BalancerAccess;
use crate::balancing::{balancer_settings, slots};
use crate::server_index::{IdIndex, NameIndex};
use crate::{
    Backend, BackendState, BalancingState, ConnectSettings, Frontend, Registry, Route, RouteTarget,
    Server, ServerState, ServerTls, ServerTlsCounters, SocketBuffers, Tables, UseServer,
    UseServerTarget, Userlists, health_settings, limits,
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
    /// Stick tables.
    pub tables: Arc<Tables>,
    /// The lists of users, shared with the generation before where they are the same.
    pub userlists: Arc<Userlists>,
    backend_by_name: Arc<HashMap<String, usize>>,
    common: GlobalSettings,
}

impl Generation {
    /// Compiles a configuration that is to replace `previous`. What is equal in both is shared.
    /// Nothing takes effect before [`Self::take_over`]: until then it may be dropped.
    pub fn compile_next(config: Arc<model::Config>, registry: &Registry, previous: &Self) -> Self {
        Self::build(previous.number + 1, config, registry, Some(previous))
    }

    /// Compiles a configuration; what is equal in `previous` is shared.
    pub(crate) fn build(
        number: u64,
        config: Arc<model::Config>,
        registry: &Registry,
        previous: Option<&Self>,
    ) -> Self {
        let process_max = registry.process().configured_connection_max();
        let same_indexes = previous.is_some_and(|previous| same_indexes(&previous.config, &config));
        let backend_by_name = match previous {
            Some(previous) if same_indexes => Arc::clone(&previous.backend_by_name),
            _ => Arc::new(indexes(&config)),
        };
        let fullconn_sums = limits::FullconnSums::of(&config, process_max);
        let common = match previous {
            Some(previous) if previous.common.is_of(&config.global) => previous.common.clone(),
            _ => GlobalSettings::of(&config.global),
        };
        let same_common = previous.is_some_and(|previous| previous.common.is_of(&config.global));
        let backends = config
            .backends
            .iter()
            .map(|backend| {
                let former = previous.and_then(|previous| previous.backend(&backend.common.name));
                let full_connections = fullconn_sums.of_backend(backend);
                match former {
                    Some(former)
                        if same_common
                            && Arc::ptr_eq(&former.model, backend)
                            && former.full_connections == full_connections =>
                    {
                        Arc::clone(former)
                    }
                    _ => {
                        let numbers = (full_connections, &common);
                        Arc::new(compile_backend(backend, registry, numbers, former))
                    }
                }
            })
            .collect();
        let frontends = config
            .frontends
            .iter()
            .enumerate()
            .map(|(index, frontend)| {
                let former = previous.and_then(|previous| previous.frontends.get(index));
                match former {
                    Some(former)
                        if same_common && same_indexes && Arc::ptr_eq(&former.model, frontend) =>
                    {
                        Arc::clone(former)
                    }
                    _ => Arc::new(compile_frontend(
                        index,
                        frontend,
                        registry,
                        &backend_by_name,
                        common.cases_for(frontend.options.case_adjust),
                    )),
                }
            })
            .collect();
        let userlists = match previous {
            Some(previous) if previous.config.userlists == config.userlists => {
                Arc::clone(&previous.userlists)
            }
            _ => Arc::new(Userlists::of(&config.userlists)),
        };
        let former = previous.map(|previous| &previous.tables);
        Self {
            number,
            tables: Tables::compile(&config, registry, former),
            config,
            frontends,
            backends,
            userlists,
            backend_by_name,
            common,
        }
    }

    /// The index of the backend of that name.
    pub fn backend_named(&self, name: &str) -> Option<usize> {
        self.backend_by_name.get(name).copied()
    }

    /// The backend of that name.
    pub fn backend(&self, name: &str) -> Option<&Arc<Backend>> {
        self.backends.get(self.backend_named(name)?)
    }

    /// The frontend of that name.
    pub fn frontend(&self, name: &str) -> Option<&Arc<Frontend>> {
        self.frontends
            .iter()
            .find(|frontend| frontend.name() == name)
    }
}

/// The index of each backend by name.
fn indexes(config: &model::Config) -> HashMap<String, usize> {
    let names = config.backends.iter().map(|one| one.common.name.clone());
    names.zip(0..).collect()
}

/// Whether each backend has the index it had before.
fn same_indexes(was: &model::Config, is: &model::Config) -> bool {
    was.backends.len() == is.backends.len()
        && was
            .backends
            .iter()
            .zip(&is.backends)
            .all(|(was, is)| Arc::ptr_eq(was, is) || was.common.name == is.common.name)
}

/// The settings of the global section that proxies are compiled with.
#[derive(Clone, Debug)]
struct GlobalSettings {
    written: Arc<model::Global>,
    socket_buffers: SocketBuffers,
    /// `h1-case-adjust`, when there is any: one table shared by all proxies that use it.
    cases: Option<Arc<NameCases>>,
}

impl GlobalSettings {
    fn of(global: &Arc<model::Global>) -> Self {
        let pairs = &global.case_adjust;
        let pairs = pairs.iter().map(|(from, to)| (from.as_str(), to.as_str()));
        let cases = NameCases::new(pairs);
        Self {
            written: Arc::clone(global),
            socket_buffers: SocketBuffers {
                receive: global.tune.receive_buffer_server,
                send: global.tune.send_buffer_server,
            },
            cases: (!cases.is_empty()).then(|| Arc::new(cases)),
        }
    }

    /// Whether proxies compiled with another global section would be the same.
    fn is_of(&self, global: &Arc<model::Global>) -> bool {
        let tune = &global.tune;
        Arc::ptr_eq(&self.written, global)
            || (self.written.case_adjust == global.case_adjust
                && self.socket_buffers.receive == tune.receive_buffer_server
                && self.socket_buffers.send == tune.send_buffer_server)
    }

    fn cases_for(&self, adjusts: bool) -> Option<&Arc<NameCases>> {
        self.cases.as_ref().filter(|_| adjusts)
    }
}

fn compile_frontend(
    index: usize,
    frontend: &Arc<model::Frontend>,
    registry: &Registry,
    backends: &HashMap<String, usize>,
    cases: Option<&Arc<NameCases>>,
) -> Frontend {
    let state = registry.frontend(&frontend.common.name);
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
        index,
        name_cases: cases.cloned(),
        default_backend: frontend
            .default_backend
            .as_ref()
            .and_then(|name| backends.get(name).copied()),
        back_half: (backends.get(&frontend.common.name).copied())
            .filter(|_| frontend.common.listen),
        model: Arc::clone(frontend),
        state,
        routes,
    }
}

fn compile_backend(
    backend: &Arc<model::Backend>,
    registry: &Registry,
    (full_connections, common): (u32, &GlobalSettings),
    former: Option<&Arc<Backend>>,
) -> Backend {
    let same_cookies = former.is_some_and(|former| {
        former.model.cookie == backend.cookie
            && former.model.dynamic_cookie_key == backend.dynamic_cookie_key
    });
    let state = registry.backend(&backend.common.name);
    // How many servers at the beginning are those of before.
    let mut same_count = 0;
    let servers: Vec<Arc<Server>> = backend
        .servers
        .iter()
        .enumerate()
        .map(|(index, server)| {
            let known = former.and_then(|former| {
                let former_index = former.counterpart(index, server)?;
                same_count += usize::from(former_index == index && same_count == index);
                former.servers.get(former_index)
            });
            match known {
                Some(known) if same_cookies && Arc::ptr_eq(&known.model, server) => {
                    Arc::clone(known)
                }
                _ => compile_server(server, &state, registry, known),
            }
        })
        .collect();
    let by_name = match former.filter(|former| former.servers.len() == same_count) {
        Some(former) => former.by_name.with_more(same_count, &servers),
        None => NameIndex::new(&servers),
    };
    let use_servers = backend
        .use_servers
        .iter()
        .filter_map(|rule| {
            let target = match &rule.target {
                model::UseServerTarget::Static(name) => {
                    UseServerTarget::Server(by_name.find(name, &servers)?)
                }
                model::UseServerTarget::Dynamic(format) => UseServerTarget::Dynamic(format.clone()),
            };
            Some(UseServer {
                target,
                condition: rule.condition.clone(),
            })
        })
        .collect();
    let direct = backend.direct.as_ref().map(|server| {
        let former = former.and_then(|former| former.direct.as_ref());
        let former = former.filter(|former| *former.model == **server);
        compile_server(server, &state, registry, former)
    });
    let balancer_settings = balancer_settings(backend);
    let cases = common.cases_for(backend.options.case_adjust);
    let connecting = ConnectSettings::of(backend, cases, common.socket_buffers);
    Backend {
        state,
        full_connections,
        connecting: match former {
            Some(former) if *former.connecting == connecting => Arc::clone(&former.connecting),
            _ => Arc::new(connecting),
        },
        slots: slots(backend, former),
        // Built when the generation takes effect, from the loads counted then.
        balancer: RwLock::new(Balancer::new(balancer_settings, &[])),
        tracks: servers.iter().any(|server| server.model.track.is_some()),
        superseded: AtomicBool::new(false),
        balancer_access: match balancer_settings.algorithm {
            Algorithm::LeastConn => BalancerAccess::ExclusiveWithLoad,
            Algorithm::First | Algorithm::Hash(_) | Algorithm::Random { .. } => {
                BalancerAccess::Shared
            }
            Algorithm::RoundRobin | Algorithm::StaticRr => BalancerAccess::Exclusive,
        },
        model: Arc::clone(backend),
        by_id: IdIndex::new(&servers),
        direct,
        servers,
        use_servers,
        by_name,
        by_address: ArcSwap::default(),
        by_cookie: ArcSwap::default(),
    }
}

/// The server of a line. `former` is the server of that name that it replaces: its state goes on.
fn compile_server(
    server: &Arc<model::Server>,
    backend: &Arc<BackendState>,
    registry: &Registry,
    former: Option<&Arc<Server>>,
) -> Arc<Server> {
    let state = match former {
        Some(former) => Arc::clone(&former.state),
        None => Arc::new(new_state(server, registry)),
    };
    let tls_counters = ServerTlsCounters::new(
        Arc::clone(registry.process()),
        Arc::<BackendState>::clone(backend),
        Arc::<ServerState>::clone(&state),
    );
    let same_tls = former.filter(|former| former.model.tls == server.tls);
    Arc::new(Server {
        model: Arc::clone(server),
        state,
        tls: match same_tls {
            Some(former) => former.tls.clone(),
            None => server.tls.as_deref().map(ServerTls::new).map(Arc::new),
        },
        tls_counters,
        cookie: ArcSwapOption::empty(),
    })
}

/// The state of a server that did not exist before.
fn new_state(server: &model::Server, registry: &Registry) -> ServerState {
    let now_ms = registry.process().age_ms();
    let mut health = Health::new(health_settings(server), server.disabled, now_ms);
    let address = match &server.address {
        model::Address::Name { .. } => {
            // In maintenance until someone resolves the name; nothing is done about it yet. Of a server
            // that a command added only operators decide, as in HAProxy.
            if !server.origin.file.is_empty() {
                let _ = health.set_resolved(now_ms, false);
            }
            None
        }
        known => Some(known.clone()),
    };
    let belief = BalancingState::of(&health);
    let state = ServerState::new(
        (registry.worker_count(), Arc::clone(registry.process())),
        address,
        health,
    );
    state.weigh(belief.weight, belief.throttle_percent);
    state.record_usability(belief.usable, belief.draining);
    state
}
