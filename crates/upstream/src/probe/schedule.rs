//! When servers are probed: the first checks are spread out, later ones depend on the last result.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_engine::{Backend, Generation, Server};
use ballast_health::{first_check_delay_ms, spread_interval_ms};
use ballast_model::CheckMethod;
use ballast_worker::{Interval, TaskHandle, now, select, sleep_until, spawn_service};

use super::controller::{HealthController, servers};
use super::program::CompiledProbe;
use super::{agent, random_number, set_thread_controller};

/// The probing tasks of one worker. Dropping this ends them.
#[derive(Debug, Default)]
pub struct Probes {
    controller: Option<Arc<HealthController>>,
    worker: usize,
    worker_count: usize,
    /// By backend, so that a change touches only what it changes.
    tasks: HashMap<String, HashMap<ProbeTarget, TaskHandle<()>>>,
    warm_up: Option<TaskHandle<()>>,
}

/// One server and one way of probing it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct ProbeTarget {
    backend: String,
    server: String,
    kind: ProbeKind,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum ProbeKind {
    Agent,
    Check,
}

impl Probes {
    /// How many servers and agents this worker probes.
    pub fn count(&self) -> usize {
        self.tasks.values().map(HashMap::len).sum()
    }

    /// Switches to the generation that the controller has now, which differs from the last one in
    /// these backends only: new servers are probed from now on, removed ones no more, and nothing
    /// changes for the others.
    pub fn update(&mut self, backends: &[String]) {
        let Some(controller) = self.controller.clone() else {
            return;
        };
        let generation = controller.generation();
        let mut needs_slow_start = false;
        for name in backends {
            let mut targets = Vec::new();
            if let Some(backend) = generation.backend(name) {
                targets_of(backend, &mut targets);
                needs_slow_start |= has_slow_start(backend);
            }
            self.update_backend(name, targets);
        }
        if needs_slow_start != self.warm_up.is_some() && !backends.is_empty() {
            self.warm_up_if_needed(&generation);
        }
    }

    fn update_backend(&mut self, name: &str, targets: Vec<(ProbeTarget, u64)>) {
        let targets: HashMap<ProbeTarget, u64> = targets
            .into_iter()
            .filter(|(target, _)| self.is_mine(target))
            .collect();
        if let Some(tasks) = self.tasks.get_mut(name) {
            tasks.retain(|target, task| {
                let stays = targets.contains_key(target) && !task.is_finished();
                if !stays {
                    task.abort();
                }
                stays
            });
            if tasks.is_empty() {
                self.tasks.remove(name);
            }
        }
        for (target, inter_ms) in targets {
            let tasks = self.tasks.get(name);
            if tasks.is_none_or(|tasks| !tasks.contains_key(&target)) {
                // Anywhere within the interval: many servers added at once must not be probed at
                // once.
                let first = now() + Duration::from_millis(random_number() % inter_ms.max(1));
                self.begin(target, first);
            }
        }
    }

    /// Which worker probes a server does not depend on other servers.
    fn is_mine(&self, target: &ProbeTarget) -> bool {
        let mut hasher = DefaultHasher::new();
        target.hash(&mut hasher);
        let worker_count = self.worker_count.max(1) as u64;
        hasher.finish() % worker_count == self.worker as u64
    }

    fn begin(&mut self, target: ProbeTarget, first: Instant) {
        let Some(controller) = self.controller.clone() else {
            return;
        };
        let task = match target.kind {
            ProbeKind::Agent => spawn_service(ask_agent(controller, target.clone(), first)),
            ProbeKind::Check => spawn_service(check(controller, target.clone(), first)),
        };
        let tasks = self.tasks.entry(target.backend.clone()).or_default();
        tasks.insert(target, task);
    }

    fn warm_up_if_needed(&mut self, generation: &Generation) {
        let mut backends = generation.backends.iter();
        let any = self.worker == 0 && backends.any(|backend| has_slow_start(backend));
        let Some(controller) = self.controller.clone().filter(|_| any) else {
            if let Some(task) = self.warm_up.take() {
                task.abort();
            }
            return;
        };
        self.warm_up
            .get_or_insert_with(|| spawn_service(warm_up(controller)));
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        let tasks = self.tasks.values().flat_map(HashMap::values);
        tasks.for_each(TaskHandle::abort);
        self.warm_up.iter().for_each(TaskHandle::abort);
    }
}

/// Begins to probe the servers that belong to this worker, and sets `controller` as the one that
/// [`observe`](super::observe) uses on it. To be called once on each worker; use [`Probes::update`]
/// for another generation.
pub fn start(controller: &Arc<HealthController>, worker: usize, worker_count: usize) -> Probes {
    set_thread_controller(controller);
    let generation = controller.generation();
    let targets = targets(&generation);
    let count = targets.len() as u64;
    let shortest_ms = targets.iter().map(|(_, inter_ms)| *inter_ms).min();
    let shortest_ms = shortest_ms.unwrap_or(0);
    let window_max_ms = generation.config.global.spread_checks_max.map(millis);
    let mut probes = Probes {
        controller: Some(Arc::clone(controller)),
        worker,
        worker_count,
        tasks: HashMap::new(),
        warm_up: None,
    };
    for (position, (target, inter_ms)) in targets.into_iter().enumerate() {
        if probes.is_mine(&target) {
            let window_ms = inter_ms.max(shortest_ms);
            let window_ms = window_max_ms.map_or(window_ms, |max| window_ms.min(max));
            let delay = first_check_delay_ms(window_ms, position as u64, count);
            probes.begin(target, now() + Duration::from_millis(delay));
        }
    }
    probes.warm_up_if_needed(&generation);
    probes
}

/// Which probes a server has, and in how many milliseconds its state asks for the next one.
fn targets(generation: &Generation) -> Vec<(ProbeTarget, u64)> {
    let mut targets = Vec::new();
    for backend in &generation.backends {
        targets_of(backend, &mut targets);
    }
    targets
}

fn targets_of(backend: &Backend, targets: &mut Vec<(ProbeTarget, u64)>) {
    if backend.model.common.disabled {
        return;
    }
    for server in &backend.servers {
        let checks = &server.model.checks;
        let target = |kind| ProbeTarget {
            backend: backend.name().to_owned(),
            server: server.name().to_owned(),
            kind,
        };
        if checks.agent_enabled {
            let inter_ms = server.state.health().agent().interval_ms();
            targets.push((target(ProbeKind::Agent), inter_ms));
        }
        if checks.enabled && server.model.track.is_none() {
            let inter_ms = server.state.health().check().interval_ms();
            targets.push((target(ProbeKind::Check), inter_ms));
        }
    }
}

fn has_slow_start(backend: &Backend) -> bool {
    let mut servers = backend.servers.iter();
    servers.any(|server| !server.model.slow_start.is_zero())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Probes one server until it is stopped. The generation is looked up for each run: the line may
/// have changed.
async fn check(controller: Arc<HealthController>, target: ProbeTarget, first: Instant) {
    let trigger = controller.trigger(&target.backend, &target.server);
    let mut due = first;
    let mut program = None;
    loop {
        select! {
            biased;
            () = sleep_until(due) => {}
            at_once = trigger.triggered() => {
                let Some((_, server)) = controller.find(&target.backend, &target.server) else {
                    return;
                };
                let checks = &server.model.checks;
                let fast = checks.fast_interval.unwrap_or(checks.interval);
                due = if at_once { now() } else { due.min(now() + fast) };
                continue;
            }
        }
        let Some((backend, server)) = controller.find(&target.backend, &target.server) else {
            return;
        };
        let program = CachedProbe::of(&mut program, &backend, &server);
        let is_paused = {
            let mut health = server.state.health();
            let is_paused = !health.check().enabled || health.admin().is_maint();
            if !is_paused && server.state.current_address().address.is_some() {
                health.check_started();
            }
            is_paused
        };
        if !is_paused
            && (server.state.current_address().address.is_some() || program.needs_no_address())
        {
            let verdict = program.run(&controller, &backend, &server).await;
            controller.update_health(&target.backend, &target.server, |health, now_ms| {
                health.check_done(now_ms, verdict)
            });
        }
        let interval_ms = server.state.health().check().interval_ms();
        due = now() + spread(&controller, interval_ms);
    }
}

/// A compiled probe, and the model it was compiled from.
struct CachedProbe {
    check: CheckMethod,
    program: CompiledProbe,
}

impl CachedProbe {
    /// The compiled probe of a server; compiled again only when its model changed.
    fn of<'r>(
        known: &'r mut Option<Self>,
        backend: &Backend,
        server: &Server,
    ) -> &'r CompiledProbe {
        let own = server.model.checks.method.as_deref();
        let check = own.unwrap_or(&backend.model.check);
        if known.as_ref().is_none_or(|ready| ready.check != *check) {
            *known = None;
        }
        let ready = known.get_or_insert_with(|| Self {
            check: check.clone(),
            program: CompiledProbe::of(check),
        });
        &ready.program
    }
}

/// Asks one server's agent.
async fn ask_agent(controller: Arc<HealthController>, target: ProbeTarget, first: Instant) {
    let mut due = first;
    loop {
        sleep_until(due).await;
        let Some((backend, server)) = controller.find(&target.backend, &target.server) else {
            return;
        };
        let is_due = {
            let mut health = server.state.health();
            let is_due = health.agent().enabled && server.state.current_address().address.is_some();
            if is_due {
                health.agent_started();
            }
            is_due
        };
        if is_due {
            agent::ask(&controller, &backend, &server).await;
        }
        let interval_ms = server.state.health().agent().interval_ms();
        due = now() + spread(&controller, interval_ms);
    }
}

fn spread(controller: &HealthController, interval_ms: u64) -> Duration {
    let percent = u32::from(controller.generation().config.global.spread_checks_percent);
    let interval_ms = interval_ms.max(1);
    Duration::from_millis(if percent == 0 {
        interval_ms
    } else {
        spread_interval_ms(interval_ms, percent, random_number()).max(1)
    })
}

/// Advances slow starts. Their steps are whole seconds.
async fn warm_up(controller: Arc<HealthController>) {
    let mut beat = Interval::every(Duration::from_secs(1));
    loop {
        beat.tick().await;
        let generation = controller.generation();
        for (_, backend, server) in servers(&generation) {
            let needs_slow_start = server.state.health().tick_delay_ms().is_some();
            if needs_slow_start {
                controller.update_health(backend.name(), server.name(), |health, now_ms| {
                    health.tick(now_ms)
                });
            }
        }
    }
}
