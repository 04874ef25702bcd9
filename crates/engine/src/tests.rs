//! Random interleavings of traffic, health and changes: counts and health must continue.

use std::sync::Arc;

use ballast_balance::{Choice, PickRequest};
use ballast_model::{self as model, Balance};
use proptest::prelude::*;

use crate::{Backend, Generation, Process, Registry, Server};

/// One step of a run.
#[derive(Clone, Debug)]
enum Step {
    /// An exchange begins under the generation in force.
    Begin,
    /// One of those under way ends.
    End(usize),
    /// Another configuration: which servers, each with a weight.
    Change(Vec<(u8, u8)>),
    /// A server goes up or down.
    Believe(usize, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let servers = proptest::collection::vec((0..8_u8, 1..4_u8), 0..8);
    let step = prop_oneof![
        6 => Just(Step::Begin),
        4 => (0..64_usize).prop_map(Step::End),
        2 => servers.prop_map(Step::Change),
        1 => (0..8_usize, any::<bool>()).prop_map(|(server, up)| Step::Believe(server, up)),
    ];
    proptest::collection::vec(step, 0..80)
}

fn config(balance: &Balance, servers: &[(u8, u8)]) -> Arc<model::Config> {
    let mut backend = model::Backend {
        balance: balance.clone(),
        ..model::Backend::default()
    };
    backend.common.name = "be".into();
    backend.hash_type.consistent = true;
    let mut seen = Vec::new();
    for (name, weight) in servers {
        if seen.contains(name) {
            continue;
        }
        seen.push(*name);
        let address = model::Address::Unix(format!("/s/{name}"));
        let mut server = model::Server::new(format!("s{name}"), address);
        (server.id, server.weight) = (u32::from(*name) + 1, u16::from(*weight));
        backend.servers.push(Arc::new(server));
    }
    Arc::new(model::Config {
        backends: vec![Arc::new(backend)],
        ..model::Config::default()
    })
}

/// As the controller does it: what is equal is shared.
fn follow(now: &Generation, wanted: &model::Config) -> Arc<model::Config> {
    let changes = model::change::diff(&now.config, wanted);
    Arc::new(model::change::apply(&now.config, &changes).unwrap())
}

fn pick(backend: &Arc<Backend>, key: u32) -> Option<(Arc<Backend>, Arc<Server>, usize)> {
    let ask = PickRequest {
        hash: backend.is_keyed().then_some(key),
        ..PickRequest::default()
    };
    let Choice::Server(server_index) = backend.pick(&ask) else {
        return None;
    };
    let server_index = server_index as usize;
    let server = Arc::clone(&backend.servers[server_index]);
    server.state.sessions.enter();
    backend.add_request(server_index);
    Some((Arc::clone(backend), server, server_index))
}

fn run(balance: &Balance, steps: &[Step]) {
    let registry = Registry::new(1, Arc::new(Process::new(1, 1000)));
    let first = config(balance, &[(0, 1), (1, 1)]);
    let mut now = Generation::compile(1, first, &registry);
    let mut under_way = Vec::new();
    let mut begun = 0_u32;
    for step in steps {
        match step {
            Step::Begin => {
                begun += 1;
                under_way.extend(pick(&now.backends[0], begun.wrapping_mul(0x9E37_79B9)));
            }
            Step::End(which) if !under_way.is_empty() => {
                let (backend, server, server_index): (Arc<Backend>, Arc<Server>, usize) =
                    under_way.swap_remove(which % under_way.len());
                server.state.sessions.leave();
                backend.remove_request(server_index);
            }
            Step::End(_) => {}
            Step::Change(servers) => {
                let next = follow(&now, &config(balance, servers));
                let generation = Generation::compile_next(next, &registry, &now);
                generation.take_over(Some(&now), &registry);
                now = generation;
                assert_eq!(now.backends[0].state.current().unwrap().name(), "be");
            }
            Step::Believe(server, up) => {
                let backend = &now.backends[0];
                if !backend.servers.is_empty() {
                    backend.set_usability(server % backend.servers.len(), *up, false);
                }
            }
        }
        check(&now);
    }
    for (backend, server, server_index) in under_way.drain(..) {
        server.state.sessions.leave();
        backend.remove_request(server_index);
    }
    check(&now);
}

/// For every server the load that the balancer knows is the one its state counts, after any
/// history.
fn check(now: &Generation) {
    let backend = &now.backends[0];
    let balancer = backend.balancer.read().unwrap();
    balancer.check_invariants();
    for (server_index, server) in backend.servers.iter().enumerate() {
        let slot = backend.slots.of_server(server_index).unwrap();
        assert_eq!(backend.slots.server_index(slot), Some(server_index));
        if matches!(backend.model.balance, Balance::LeastConnections) {
            assert_eq!(
                balancer.inflight(slot),
                server.state.sessions.current(),
                "{} is thought to be as busy as it is",
                server.name()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn loads_follow_exchanges_over_generations(steps in steps()) {
        run(&Balance::LeastConnections, &steps);
    }

    #[test]
    fn turns_go_on_over_generations(steps in steps()) {
        run(&Balance::RoundRobin, &steps);
    }

    #[test]
    fn a_key_goes_where_a_fresh_start_would_send_it(
        before in proptest::collection::vec((0..8_u8, 1..4_u8), 1..8),
        after in proptest::collection::vec((0..8_u8, 1..4_u8), 1..8),
        keys in proptest::collection::vec(any::<u32>(), 50),
    ) {
        let registry = Registry::new(1, Arc::new(Process::new(1, 1000)));
        let was = Generation::compile(1, config(&Balance::Source, &before), &registry);
        let wanted = config(&Balance::Source, &after);
        let next = Generation::compile_next(follow(&was, &wanted), &registry, &was);
        next.take_over(Some(&was), &registry);
        // The weights of servers that stay are set by the probe controller.
        for (server_index, server) in next.backends[0].servers.iter().enumerate() {
            next.backends[0].set_server_weight(server_index, u32::from(server.model.weight), 100);
        }
        let other = Registry::new(1, Arc::new(Process::new(1, 1000)));
        let fresh = Generation::compile(1, wanted, &other);
        for key in keys {
            let ask = PickRequest { hash: Some(key), ..PickRequest::default() };
            prop_assert_eq!(next.backends[0].pick(&ask), fresh.backends[0].pick(&ask));
        }
    }
}

#[test]
fn what_is_not_named_is_the_same_object() {
    let registry = Registry::new(1, Arc::new(Process::new(1, 1000)));
    let first = config(&Balance::RoundRobin, &[(0, 1), (1, 1)]);
    let was = Generation::compile(1, Arc::clone(&first), &registry);
    let same = Generation::compile_next(follow(&was, &first), &registry, &was);
    assert!(Arc::ptr_eq(&was.backends[0], &same.backends[0]));
    let more = config(&Balance::RoundRobin, &[(0, 1), (1, 1), (2, 1)]);
    let next = Generation::compile_next(follow(&was, &more), &registry, &was);
    assert!(Arc::ptr_eq(
        &was.backends[0].servers[1],
        &next.backends[0].servers[1]
    ));
    let changes = next.take_over(Some(&was), &registry);
    assert_eq!(changes.servers.len(), 1);
    assert_eq!(changes.servers[0].server.name(), "s2");
}

#[test]
fn a_name_that_comes_back_begins_anew() {
    let registry = Registry::new(1, Arc::new(Process::new(1, 1000)));
    let both = config(&Balance::RoundRobin, &[(0, 1), (1, 1)]);
    let was = Generation::compile(1, Arc::clone(&both), &registry);
    let old = Arc::clone(&was.backends[0].servers[1].state);
    old.counters.of(0).bytes_in.add(7);
    let one = config(&Balance::RoundRobin, &[(0, 1)]);
    let less = Generation::compile_next(follow(&was, &one), &registry, &was);
    let changes = less.take_over(Some(&was), &registry);
    assert_eq!(changes.removed.len(), 1);
    let again = Generation::compile_next(follow(&less, &both), &registry, &less);
    again.take_over(Some(&less), &registry);
    assert!(!Arc::ptr_eq(&old, &again.backends[0].servers[1].state));
    assert!(Arc::ptr_eq(
        &was.backends[0].servers[0].state,
        &again.backends[0].servers[0].state
    ));
}
