//! Prepares the sockets of the next configuration. Everything that can fail happens here.
//!
//! A bind of the new configuration gets its sockets in this order: those that the same frontend
//! listens on already; suitable ones that are left over from a bind or a frontend that is removed;
//! new ones. A bind that keeps its sockets keeps its listener: workers go on accepting, and only
//! the settings behind the listener change.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ballast_engine::{Frontend, GateState, Generation};
use ballast_model::{Bind, Config};
use ballast_net::{Address, SystemCallError, Tuning, UnpublishedSocket};

use crate::effect::SocketEffect;
use crate::identity::SocketIdentity;
use crate::listener::{FrontendCapacity, Listener, ListenerSettings};
use crate::listeners::{
    AssignedSocket, Listeners, OpenFrontend, OpenListener, WorkerSocket, by_name, next_worker,
};
use crate::listening::ListeningAddress;
use crate::open::{ListenError, OpenSettings, RefusedOption, open_beside, shards, tuning};
use crate::socket_defaults::SocketDefaults;
use crate::socket_state::{SocketOrder, SocketState};

/// The prepared sockets of a new configuration. Dropping it closes what was opened, and nothing has
/// changed.
#[derive(Debug)]
#[must_use = "it changes nothing before it is committed"]
pub struct PreparedSockets {
    pub(crate) config: Arc<Config>,
    pub(crate) defaults: SocketDefaults,
    pub(crate) fronts: Vec<Arc<OpenFrontend>>,
    /// `None` when names and indexes are unchanged.
    pub(crate) by_name: Option<HashMap<String, usize>>,
    pub(crate) turn: usize,
    pub(crate) shows: Vec<(Arc<Listener>, Arc<ListenerSettings>)>,
    pub(crate) retunes: Vec<SocketRetune>,
    pub(crate) unpublished: Vec<(UnpublishedSocket, String, Bind)>,
    pub(crate) orders: Vec<(Arc<SocketState>, SocketOrder)>,
    pub(crate) closed: Vec<Arc<Listener>>,
    /// Listeners with sockets that have a new order.
    pub(crate) capacities_to_notify: Vec<Arc<FrontendCapacity>>,
    pub(crate) start: Vec<(usize, WorkerSocket)>,
    pub(crate) effects: Vec<SocketEffect>,
    pub(crate) refused: Vec<RefusedOption>,
}

/// A socket that continues with other options.
#[derive(Debug)]
pub(crate) struct SocketRetune {
    pub(crate) frontend: Arc<Frontend>,
    pub(crate) bind: Bind,
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) address: Address,
    pub(crate) from: Tuning,
    pub(crate) to: Tuning,
}

/// A frontend that listens now and does not stay unchanged, and how its sockets are used further.
struct OldFrontend<'l> {
    front: &'l OpenFrontend,
    used: Vec<SocketUse>,
}

#[derive(Clone, Copy, Default)]
struct SocketUse {
    /// Its listener is kept.
    listener: bool,
    /// Another listener of its frontend, on another socket, listens for the same bind.
    replaced: bool,
    /// The number of its sockets that stay with its listener: none, or all.
    kept: usize,
    /// The number of its sockets, from the first, that move to another listener.
    moved: usize,
}

/// A frontend of the new configuration that is new or changed.
struct ChangedFrontend {
    index: usize,
    frontend: Arc<Frontend>,
    former: Option<usize>,
    wanted_binds: Vec<WantedBind>,
}

/// A bind of the new configuration.
struct WantedBind {
    bind: Bind,
    identity: SocketIdentity,
    /// The index of the listener of the old frontend that it keeps.
    keeps: Option<usize>,
}

struct Preparation<'l> {
    listeners: &'l Listeners,
    settings: OpenSettings,
    formers: Vec<OldFrontend<'l>>,
    /// Sockets that are left over, by their properties; computed when first needed.
    spare: Option<HashMap<SocketIdentity, Vec<(usize, usize)>>>,
    errors: Vec<ListenError>,
    out: PreparedSockets,
}

impl Listeners {
    /// Opens the sockets that `generation` needs and that are not open now. It must be committed,
    /// if at all, before another preparation is committed.
    ///
    /// An unchanged frontend costs one comparison and no system call. Nothing that runs is touched.
    ///
    /// # Errors
    /// Every bind that cannot be listened on; everything that was opened is closed again.
    pub fn prepare(
        &self,
        generation: &Generation,
        settings: OpenSettings,
    ) -> Result<PreparedSockets, Vec<ListenError>> {
        let config = &generation.config;
        let defaults = SocketDefaults::of(config, settings.connection_count_max);
        let mut preparation = Preparation::new(self, Arc::clone(config), defaults, settings);
        let mut changed_frontends =
            preparation.keep_unchanged(generation, defaults == self.defaults);
        for changed in &mut changed_frontends {
            preparation.find_own(changed);
        }
        for changed in changed_frontends {
            preparation.open_frontend(config, changed);
        }
        if !preparation.errors.is_empty() {
            return Err(preparation.errors);
        }
        preparation.end_the_rest();
        let mut out = preparation.out;
        let same_indexes = out.fronts.len() == self.fronts.len()
            && out
                .fronts
                .iter()
                .enumerate()
                .all(|(index, front)| self.by_name.get(front.frontend.name()) == Some(&index));
        out.by_name = (!same_indexes).then(|| by_name(&out.fronts));
        Ok(out)
    }
}

impl PreparedSockets {
    /// What the commit will do to sockets, except for options that the system will refuse only
    /// then.
    pub fn effects(&self) -> &[SocketEffect] {
        &self.effects
    }
}

impl<'l> Preparation<'l> {
    fn new(
        listeners: &'l Listeners,
        config: Arc<Config>,
        defaults: SocketDefaults,
        settings: OpenSettings,
    ) -> Self {
        let out = PreparedSockets {
            config,
            defaults,
            fronts: Vec::new(),
            by_name: None,
            turn: listeners.turn,
            shows: Vec::new(),
            retunes: Vec::new(),
            unpublished: Vec::new(),
            orders: Vec::new(),
            closed: Vec::new(),
            capacities_to_notify: Vec::new(),
            start: Vec::new(),
            effects: Vec::new(),
            refused: Vec::new(),
        };
        Self {
            listeners,
            settings,
            formers: Vec::new(),
            spare: None,
            errors: Vec::new(),
            out,
        }
    }

    /// Keeps what is unchanged; returns what is new or changed.
    fn keep_unchanged(
        &mut self,
        generation: &Generation,
        same_defaults: bool,
    ) -> Vec<ChangedFrontend> {
        let mut changed = Vec::new();
        let mut met = 0;
        self.out.fronts.reserve(generation.frontends.len());
        for (index, frontend) in generation.frontends.iter().enumerate() {
            let old = self.listeners.front(frontend.name());
            met += usize::from(old.is_some());
            if let Some(old) = old
                && same_defaults
                && Arc::ptr_eq(&old.frontend, frontend)
                && !is_reopened(old)
            {
                self.out.fronts.push(Arc::clone(old));
                continue;
            }
            let former = old.map(|old| self.former_index(old));
            // The listeners are filled in later.
            self.out.fronts.push(Arc::new(OpenFrontend {
                frontend: Arc::clone(frontend),
                frontend_capacity: Arc::default(),
                open_listeners: Vec::new(),
            }));
            changed.push(ChangedFrontend {
                index,
                frontend: Arc::clone(frontend),
                former,
                wanted_binds: wanted_binds(frontend),
            });
        }
        if met < self.listeners.fronts.len() {
            let stay: HashSet<&str> = generation
                .frontends
                .iter()
                .map(|frontend| frontend.name())
                .collect();
            for front in &self.listeners.fronts {
                if !stay.contains(front.frontend.name()) {
                    self.former_index(front);
                }
            }
        }
        changed
    }

    fn former_index(&mut self, front: &'l OpenFrontend) -> usize {
        self.formers.push(OldFrontend {
            front,
            used: vec![SocketUse::default(); front.open_listeners.len()],
        });
        self.formers.len() - 1
    }

    /// Finds the listeners that the binds of a frontend keep: the one with the same socket and
    /// number, else the one with the same socket.
    fn find_own(&mut self, changed: &mut ChangedFrontend) {
        let Some(former) = changed.former.map(|former| &mut self.formers[former]) else {
            return;
        };
        if !Arc::ptr_eq(&former.front.frontend.state, &changed.frontend.state) {
            return;
        }
        let open_listeners = &former.front.open_listeners;
        let mut by_identity: HashMap<&SocketIdentity, Vec<usize>> = HashMap::new();
        for (index, open_listener) in open_listeners.iter().enumerate() {
            by_identity
                .entry(&open_listener.identity)
                .or_default()
                .push(index);
        }
        for same_number in [true, false] {
            for wanted_bind in changed
                .wanted_binds
                .iter_mut()
                .filter(|wanted_bind| wanted_bind.keeps.is_none())
            {
                let found = by_identity.get(&wanted_bind.identity).and_then(|indexes| {
                    indexes.iter().copied().find(|&index| {
                        let settings = open_listeners[index].listener.settings();
                        let same = settings.listening.bind.id == wanted_bind.bind.id;
                        !former.used[index].listener && (same || !same_number)
                    })
                });
                if let Some(index) = found {
                    former.used[index].listener = true;
                    former.used[index].kept = open_listeners[index].sockets.len();
                    wanted_bind.keeps = Some(index);
                }
            }
        }
    }

    /// Gives a frontend its listeners and sockets.
    fn open_frontend(&mut self, config: &Config, changed: ChangedFrontend) {
        let frontend_capacity = self.frontend_capacity(&changed);
        let mut open_listeners = Vec::with_capacity(changed.wanted_binds.len());
        for wanted_bind in &changed.wanted_binds {
            let frontend = &changed.frontend;
            let tuning = tuning(config, &frontend.model, &wanted_bind.bind, self.settings);
            let kept = self.kept_listener(&changed, wanted_bind);
            let wanted = shards(&wanted_bind.bind, self.settings.worker_count);
            // Closing one of several sockets on the same address would reset connections that are
            // being established on it: a bind keeps shards even when it asks for fewer.
            let mut sockets =
                kept.map_or_else(Vec::new, |open_listener| open_listener.sockets.clone());
            if let Some(kept) = kept
                && kept.tuning != tuning
            {
                self.retune(frontend, &wanted_bind.bind, &kept.tuning, &tuning, &sockets);
                self.out.effects.push(SocketEffect::Tuned {
                    frontend: frontend.name().to_owned(),
                    address: wanted_bind.bind.address.to_string(),
                });
            }
            let kept_count = sockets.len();
            let missing = wanted.saturating_sub(kept_count);
            let added = match self.find_sockets(config, frontend, wanted_bind, missing, &tuning) {
                Ok(added) => added,
                Err(error) => {
                    self.errors.push(ListenError {
                        frontend: frontend.name().to_owned(),
                        bind: Box::new(wanted_bind.bind.clone()),
                        error,
                    });
                    continue;
                }
            };
            sockets.extend(added);
            let Some(first) = sockets.first() else {
                continue;
            };
            let address = first.address.clone();
            let (listener, settings) =
                self.listener(&changed, wanted_bind, &frontend_capacity, &address);
            for accepting in sockets.iter_mut().skip(kept_count) {
                accepting.worker = next_worker(&mut self.out.turn, &settings);
                let worker_socket = WorkerSocket {
                    socket: Arc::clone(&accepting.socket),
                    listener: Arc::clone(&listener),
                    socket_state: Arc::clone(&accepting.socket_state),
                };
                self.out.start.push((accepting.worker, worker_socket));
            }
            open_listeners.push(OpenListener {
                listener,
                identity: wanted_bind.identity.clone(),
                tuning,
                sockets,
            });
        }
        self.out.fronts[changed.index] = Arc::new(OpenFrontend {
            frontend: changed.frontend,
            frontend_capacity,
            open_listeners,
        });
    }

    /// The shared capacity of the frontend's listeners: the existing one, as long as it is the same
    /// frontend.
    fn frontend_capacity(&self, changed: &ChangedFrontend) -> Arc<FrontendCapacity> {
        match changed.former.map(|former| self.formers[former].front) {
            Some(front) if Arc::ptr_eq(&front.frontend.state, &changed.frontend.state) => {
                Arc::clone(&front.frontend_capacity)
            }
            _ => Arc::default(),
        }
    }

    /// The listener that a bind keeps from the former frontend.
    fn kept_listener(
        &self,
        changed: &ChangedFrontend,
        wanted_bind: &WantedBind,
    ) -> Option<&'l OpenListener> {
        let front = self.formers[changed.former?].front;
        Some(&front.open_listeners[wanted_bind.keeps?])
    }

    /// The listener of a bind, kept or new, and its new settings.
    fn listener(
        &mut self,
        changed: &ChangedFrontend,
        wanted_bind: &WantedBind,
        frontend_capacity: &Arc<FrontendCapacity>,
        address: &Address,
    ) -> (Arc<Listener>, Arc<ListenerSettings>) {
        let shared = &self.listeners.shared;
        let workers = shared.spread.worker_count();
        let settings = |state| {
            let frontend = &changed.frontend;
            let settings =
                ListenerSettings::new(frontend, &wanted_bind.bind, address, state, workers);
            Arc::new(settings)
        };
        if let Some(kept) = self.kept_listener(changed, wanted_bind) {
            let settings = settings(Arc::clone(&kept.listener.settings().listening.state));
            let shown = (Arc::clone(&kept.listener), Arc::clone(&settings));
            self.out.shows.push(shown);
            return (Arc::clone(&kept.listener), settings);
        }
        let (state, capacity) = match self.take_over_listener(changed, wanted_bind) {
            Some((listening, listener)) => {
                (Arc::clone(&listening.state), Arc::clone(&listener.capacity))
            }
            None => Default::default(),
        };
        let settings = settings(state);
        let (shared, frontend_capacity) = (Arc::clone(shared), Arc::clone(frontend_capacity));
        let listener = Listener::new(shared, frontend_capacity, capacity, Arc::clone(&settings));
        (Arc::new(listener), settings)
    }

    /// The listener of the same bind number and address on another socket: its connections stay,
    /// and count for the new listener.
    fn take_over_listener(
        &mut self,
        changed: &ChangedFrontend,
        wanted_bind: &WantedBind,
    ) -> Option<(Arc<ListeningAddress>, &'l Listener)> {
        let former = &mut self.formers[changed.former?];
        if !Arc::ptr_eq(&former.front.frontend.state, &changed.frontend.state) {
            return None;
        }
        for (open_listener, used) in former.front.open_listeners.iter().zip(&mut former.used) {
            let listening = Arc::clone(&open_listener.listener.settings().listening);
            let same = listening.bind.id == wanted_bind.bind.id
                && listening.bind.address == wanted_bind.bind.address;
            if same && !used.listener && !used.replaced {
                used.replaced = true;
                return Some((listening, &open_listener.listener));
            }
        }
        None
    }

    /// Sockets for a bind that has none: left-over ones, else new ones.
    fn find_sockets(
        &mut self,
        config: &Config,
        frontend: &Arc<Frontend>,
        wanted_bind: &WantedBind,
        count: usize,
        tuning: &Tuning,
    ) -> Result<Vec<AssignedSocket>, SystemCallError> {
        let mut found = Vec::with_capacity(count);
        for _ in 0..count {
            let (socket, address) = match self.take_unused_socket(&wanted_bind.identity) {
                Some((open_listener, accepting)) => {
                    let copy = accepting.socket.try_clone().map_err(|e| {
                        SystemCallError::new("fcntl(F_DUPFD)", &accepting.address, e)
                    })?;
                    self.out.effects.push(SocketEffect::Moved {
                        address: wanted_bind.bind.address.to_string(),
                        from: open_listener.listener.name.to_string(),
                        to: frontend.name().to_owned(),
                    });
                    let socket = Arc::new(copy);
                    if open_listener.tuning != *tuning {
                        self.out.retunes.push(SocketRetune {
                            frontend: Arc::clone(frontend),
                            bind: wanted_bind.bind.clone(),
                            socket: Arc::clone(&socket),
                            address: accepting.address.clone(),
                            from: open_listener.tuning.clone(),
                            to: tuning.clone(),
                        });
                    }
                    (socket, accepting.address.clone())
                }
                None => self.open(config, frontend, &wanted_bind.bind)?,
            };
            found.push(AssignedSocket {
                worker: 0,
                socket,
                address,
                socket_state: Arc::default(),
            });
        }
        Ok(found)
    }

    fn open(
        &mut self,
        config: &Config,
        frontend: &Frontend,
        bind: &Bind,
    ) -> Result<(Arc<OwnedFd>, Address), SystemCallError> {
        let model = &frontend.model;
        let (bound, unpublished) = open_beside(config, model, bind, self.settings)?;
        let refusals = bound.refused;
        if matches!(bound.address, Address::Ip(_)) {
            let name = frontend.name();
            let refused = refusals.into_iter();
            self.out
                .refused
                .extend(refused.map(|error| RefusedOption::new(name, bind, error)));
        }
        if let Some(unpublished) = unpublished {
            let name = frontend.name().to_owned();
            self.out.unpublished.push((unpublished, name, bind.clone()));
        }
        self.out.effects.push(SocketEffect::Opened {
            frontend: frontend.name().to_owned(),
            address: bind.address.to_string(),
        });
        Ok((Arc::new(bound.fd), bound.address))
    }

    fn retune(
        &mut self,
        frontend: &Arc<Frontend>,
        bind: &Bind,
        from: &Tuning,
        to: &Tuning,
        sockets: &[AssignedSocket],
    ) {
        for accepting in sockets {
            self.out.retunes.push(SocketRetune {
                frontend: Arc::clone(frontend),
                bind: bind.clone(),
                socket: Arc::clone(&accepting.socket),
                address: accepting.address.clone(),
                from: from.clone(),
                to: to.clone(),
            });
        }
    }

    /// A socket with these properties that nobody keeps.
    fn take_unused_socket(
        &mut self,
        identity: &SocketIdentity,
    ) -> Option<(&'l OpenListener, &'l AssignedSocket)> {
        let formers = &mut self.formers;
        let spare = self.spare.get_or_insert_with(|| {
            let mut spare: HashMap<SocketIdentity, Vec<(usize, usize)>> = HashMap::new();
            for (former, OldFrontend { front, .. }) in formers.iter().enumerate() {
                // A paused socket does not listen, and it is unknown whether it can again.
                if front.frontend.state.gate.state() != GateState::Open {
                    continue;
                }
                for (index, open_listener) in front.open_listeners.iter().enumerate() {
                    let identity = open_listener.identity.clone();
                    spare.entry(identity).or_default().push((former, index));
                }
            }
            spare
        });
        for &(former, index) in spare.get(identity)? {
            let OldFrontend { front, used } = &mut formers[former];
            let (open_listener, used) = (&front.open_listeners[index], &mut used[index]);
            if let Some(accepting) = open_listener.sockets.get(used.kept + used.moved) {
                used.moved += 1;
                return Some((open_listener, accepting));
            }
        }
        None
    }

    /// Removes what is not used further.
    fn end_the_rest(&mut self) {
        for former in &self.formers {
            let mut has_new_order = false;
            for (open_listener, used) in former.front.open_listeners.iter().zip(&former.used) {
                let staying = used.kept + used.moved;
                for (index, accepting) in open_listener.sockets.iter().enumerate().skip(used.kept) {
                    let order = if index < staying {
                        SocketOrder::Close
                    } else {
                        SocketOrder::Drain
                    };
                    self.out
                        .orders
                        .push((Arc::clone(&accepting.socket_state), order));
                    has_new_order = true;
                }
                if used.listener || used.replaced {
                    continue;
                }
                self.out.closed.push(Arc::clone(&open_listener.listener));
                if used.moved == 0 {
                    let settings = open_listener.listener.settings();
                    self.out.effects.push(SocketEffect::Closed {
                        frontend: open_listener.listener.name.to_string(),
                        address: settings.listening.bind.address.to_string(),
                        connections: settings.listening.state.connections.current(),
                    });
                }
            }
            if has_new_order {
                self.out
                    .capacities_to_notify
                    .push(Arc::clone(&former.front.frontend_capacity));
            }
        }
    }
}

/// Whether it was shut and may listen again: it has no sockets, but should.
fn is_reopened(front: &OpenFrontend) -> bool {
    front.open_listeners.is_empty() && !wanted_binds(&front.frontend).is_empty()
}

/// The binds of a frontend that listens.
fn wanted_binds(frontend: &Frontend) -> Vec<WantedBind> {
    // A gate is opened again only by a reload that drops overrides, before this is called.
    let is_shut = frontend.state.gate.state() == GateState::Shut;
    if frontend.model.common.disabled || is_shut {
        return Vec::new();
    }
    let binds = frontend.model.binds.iter();
    binds
        .map(|bind| WantedBind {
            bind: bind.clone(),
            identity: SocketIdentity::of(bind),
            keeps: None,
        })
        .collect()
}
