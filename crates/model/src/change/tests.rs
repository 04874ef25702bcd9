//! Changes between any two configurations; objects that are not named stay untouched.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Change, ChangeError, apply, diff};
use ballast_stick::KeyType;

use crate::{
    Address, Backend, Bind, Config, Frontend, Global, Origin, Server, StickTable, TableSettings,
};

fn server(name: u8, weight: u16) -> Arc<Server> {
    let address = Address::Unix(format!("/s/{name}"));
    let mut server = Server::new(format!("s{name}"), address);
    server.weight = weight;
    Arc::new(server)
}

fn backend(name: u8, retries: u32, servers: Vec<(u8, u16)>) -> Arc<Backend> {
    let mut backend = Backend::default();
    backend.common.name = format!("b{name}");
    backend.retry_count_max = retries;
    backend.servers = servers
        .into_iter()
        .map(|(name, weight)| server(name, weight))
        .collect();
    Arc::new(backend)
}

fn frontend(name: u8, backlog: Option<u32>) -> Arc<Frontend> {
    let mut frontend = Frontend::default();
    frontend.common.name = format!("f{name}");
    frontend.backlog = backlog;
    frontend.binds.push(Bind::new(Address::Unix("/f".into())));
    Arc::new(frontend)
}

/// Pairs of a name and a value, each name once, in any order.
fn named<T: std::fmt::Debug + Clone + 'static>(
    count_max: usize,
    other: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Vec<(u8, T)>> {
    proptest::collection::vec((0..count_max as u8, other), 0..count_max * 2).prop_map(|pairs| {
        let mut seen = std::collections::HashSet::new();
        pairs
            .into_iter()
            .filter(|(name, _)| seen.insert(*name))
            .collect()
    })
}

fn configs() -> impl Strategy<Value = Config> {
    let backends = named(5, (0..3_u32, named(6, 0..3_u16)));
    let frontends = named(5, proptest::option::of(0..2_u32));
    let tables = named(4, 1..3_u32);
    (0..3_u16, frontends, backends, tables).prop_map(|(threads, frontends, backends, tables)| {
        Config {
            tables: tables
                .into_iter()
                .map(|(name, size)| {
                    Arc::new(StickTable {
                        name: format!("t{name}"),
                        settings: TableSettings::new(KeyType::Ipv4, size),
                    })
                })
                .collect(),
            global: Arc::new(Global {
                pipe_count_max: Some(u32::from(threads)),
                ..Global::default()
            }),
            frontends: frontends
                .into_iter()
                .map(|(name, backlog)| frontend(name, backlog))
                .collect(),
            backends: backends
                .into_iter()
                .map(|(name, (retries, servers))| backend(name, retries, servers))
                .collect(),
            ..Config::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_steps_lead_from_one_to_the_other(old in configs(), new in configs()) {
        let changes = diff(&old, &new);
        let reached = apply(&old, &changes).unwrap();
        prop_assert_eq!(&reached, &new);
        prop_assert!(diff(&reached, &new).is_empty());
        // What is equal before and after is the same object.
        for backend in &reached.backends {
            if let Some(before) = old.backend(&backend.common.name) && before == backend {
                prop_assert!(Arc::ptr_eq(before, backend));
            }
            let before = old.backend(&backend.common.name);
            for server in &backend.servers {
                let known = before.and_then(|before| {
                    before.servers.iter().find(|known| known.name == server.name)
                });
                if let Some(known) = known && known == server {
                    prop_assert!(Arc::ptr_eq(known, server));
                }
            }
        }
    }

    #[test]
    fn the_same_again_is_no_change(config in configs()) {
        // Built separately, so that no object is shared.
        let mut again = config.clone();
        for backend in &mut again.backends {
            *backend = Arc::new(Backend::clone(backend));
            let own = Arc::make_mut(backend);
            own.common.origin = Origin { file: "other".into(), line: 7 };
            for server in &mut own.servers {
                *server = Arc::new(Server::clone(server));
            }
        }
        prop_assert!(diff(&config, &again).is_empty());
    }

    #[test]
    fn any_steps_fit_or_are_refused(base in configs(), old in configs(), new in configs()) {
        // Changes computed for another configuration: never a panic, and all or nothing.
        let before = base.clone();
        let _ = apply(&base, &diff(&old, &new));
        prop_assert_eq!(base, before);
    }
}

#[test]
fn a_change_names_what_it_changes_and_nothing_else() {
    let old = Config {
        backends: vec![backend(1, 3, vec![(1, 1), (2, 1)]), backend(2, 3, vec![])],
        ..Config::default()
    };
    let mut new = old.clone();
    new.backends[0] = backend(1, 3, vec![(1, 9), (3, 1)]);
    let changes = diff(&old, &new);
    assert_eq!(
        changes,
        [
            Change::RemoveServer("b1".into(), "s2".into()),
            Change::SetServer("b1".into(), server(1, 9)),
            Change::AddServer("b1".into(), server(3, 1)),
        ]
    );
    let reached = apply(&old, &changes).unwrap();
    assert!(Arc::ptr_eq(&reached.backends[1], &old.backends[1]));
}

#[test]
fn what_does_not_fit_is_refused() {
    let config = Config {
        backends: vec![backend(1, 3, vec![(1, 1)])],
        ..Config::default()
    };
    let twice = [
        Change::AddServer("b1".into(), server(2, 1)),
        Change::AddServer("b1".into(), server(2, 1)),
    ];
    let refused = Err(ChangeError::Exists("server", "s2".into()));
    assert_eq!(apply(&config, &twice), refused);
    let unknown = [Change::RemoveServer("b9".into(), "s1".into())];
    let refused = Err(ChangeError::Unknown("backend", "b9".into()));
    assert_eq!(apply(&config, &unknown), refused);
    let short = [Change::OrderServers("b1".into(), vec![])];
    assert_eq!(apply(&config, &short), Err(ChangeError::Order("server")));
}
