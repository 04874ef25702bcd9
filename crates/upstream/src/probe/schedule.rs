//! When servers are probed: the first checks spread out, the next as the last one went.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_engine::Generation;
use ballast_health::{first_check_delay_ms, spread_interval_ms};
use ballast_worker::{Interval, TaskHandle, now, select, sleep_until, spawn_service};

use super::keeper::{At, Keeper, servers};
use super::program::Program;
use super::{agent, chance, keep_here};

/// The probing tasks of one worker. Dropping this ends them.
#[derive(Debug, Default)]
pub struct Probes {
    tasks: Vec<TaskHandle<()>>,
}

impl Probes {
    /// How many servers and agents are probed here.
    pub fn count(&self) -> usize {
        self.tasks.len()
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.tasks.iter().for_each(TaskHandle::abort);
    }
}

/// Begins to probe the servers that fall to this worker, and makes `keeper` the one that
/// [`observe`](super::observe) tells on it. To be called on each worker when a generation is put
/// in force, after the probes of the last one were dropped.
pub fn start(keeper: &Arc<Keeper>, worker: usize, worker_count: usize) -> Probes {
    keep_here(keeper);
    let rounds = rounds(keeper.generation());
    let count = rounds.len() as u64;
    let shortest_ms = rounds.iter().map(|round| round.inter_ms).min().unwrap_or(0);
    let spread_max = keeper.generation().config.global.spread_checks_max;
    let window_ms = spread_max.map_or(shortest_ms, |max| shortest_ms.min(millis(max)));
    let mut probes = Probes::default();
    for (position, round) in rounds.into_iter().enumerate() {
        if position % worker_count.max(1) != worker {
            continue;
        }
        let delay = first_check_delay_ms(window_ms, position as u64, count);
        let first = now() + Duration::from_millis(delay);
        let keeper = Arc::clone(keeper);
        probes.tasks.push(match round.kind {
            Kind::Agent => spawn_service(ask_agent(keeper, round.at, first)),
            Kind::Check => spawn_service(check(keeper, round.at, first)),
        });
    }
    let warming: Vec<At> = servers(keeper.generation())
        .filter(|(_, _, server)| !server.model.slow_start.is_zero())
        .map(|(at, _, _)| at)
        .skip(worker)
        .step_by(worker_count.max(1))
        .collect();
    if !warming.is_empty() {
        let keeper = Arc::clone(keeper);
        probes.tasks.push(spawn_service(warm_up(keeper, warming)));
    }
    probes
}

/// One server to be probed in one way.
struct Round {
    at: At,
    kind: Kind,
    inter_ms: u64,
}

enum Kind {
    Agent,
    Check,
}

fn rounds(generation: &Generation) -> Vec<Round> {
    let mut rounds = Vec::new();
    for (at, backend, server) in servers(generation) {
        if backend.model.common.disabled {
            continue;
        }
        let checks = &server.model.checks;
        if checks.agent_enabled {
            rounds.push(Round {
                at,
                kind: Kind::Agent,
                inter_ms: millis(checks.agent_interval.unwrap_or(checks.interval)),
            });
        }
        if checks.enabled && server.model.track.is_none() {
            rounds.push(Round {
                at,
                kind: Kind::Check,
                inter_ms: millis(checks.interval),
            });
        }
    }
    rounds
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Probes one server for as long as it is asked to.
async fn check(keeper: Arc<Keeper>, at: At, first: Instant) {
    let (Some((backend, server)), Some(nudge)) = (keeper.at(at), keeper.nudge(at)) else {
        return;
    };
    let program = Program::of(&backend.model.check);
    let mut due = first;
    loop {
        select! {
            biased;
            () = sleep_until(due) => {}
            at_once = nudge.called() => {
                let checks = &server.model.checks;
                let fast = checks.fast_interval.unwrap_or(checks.interval);
                due = if at_once { now() } else { due.min(now() + fast) };
                continue;
            }
        }
        let rests = {
            let mut health = server.state.health();
            let rests = !health.check().enabled || health.admin().is_maint();
            if !rests && server.state.reach().address.is_some() {
                health.check_started();
            }
            rests
        };
        if !rests && (server.state.reach().address.is_some() || program.needs_no_address()) {
            let verdict = program.run(&keeper, backend, server).await;
            keeper.tell(at, |health, now_ms| health.check_done(now_ms, verdict));
        }
        let interval_ms = server.state.health().check().interval_ms();
        due = now() + spread(&keeper, interval_ms);
    }
}

/// Asks one server's agent.
async fn ask_agent(keeper: Arc<Keeper>, at: At, first: Instant) {
    let Some((backend, server)) = keeper.at(at) else {
        return;
    };
    let mut due = first;
    loop {
        sleep_until(due).await;
        let asked = {
            let mut health = server.state.health();
            let asked = health.agent().enabled && server.state.reach().address.is_some();
            if asked {
                health.agent_started();
            }
            asked
        };
        if asked {
            agent::ask(&keeper, at, backend, server).await;
        }
        let interval_ms = server.state.health().agent().interval_ms();
        due = now() + spread(&keeper, interval_ms);
    }
}

fn spread(keeper: &Keeper, interval_ms: u64) -> Duration {
    let percent = u32::from(keeper.generation().config.global.spread_checks_percent);
    let interval_ms = interval_ms.max(1);
    Duration::from_millis(if percent == 0 {
        interval_ms
    } else {
        spread_interval_ms(interval_ms, percent, chance()).max(1)
    })
}

/// Lets slow starts go on. Their steps are counted in whole seconds.
async fn warm_up(keeper: Arc<Keeper>, servers: Vec<At>) {
    let mut beat = Interval::every(Duration::from_secs(1));
    loop {
        beat.tick().await;
        for at in &servers {
            let Some((_, server)) = keeper.at(*at) else {
                continue;
            };
            let warms = server.state.health().tick_delay_ms().is_some();
            if warms {
                keeper.tell(*at, |health, now_ms| health.tick(now_ms));
            }
        }
    }
}
