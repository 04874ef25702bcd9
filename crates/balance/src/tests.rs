//! Properties that hold for any servers and any changes.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

fn new_server(id: u32, weight: u32) -> NewServer {
    NewServer {
        backup: false,
        hash_key: HashKey::Id,
        id,
        usable: true,
        weight,
    }
}

fn keyed(hash: u32) -> PickRequest<'static> {
    PickRequest {
        hash: Some(hash),
        ..PickRequest::default()
    }
}

fn every_algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        Just(Algorithm::First),
        Just(Algorithm::Hash(HashMethod::Consistent)),
        Just(Algorithm::Hash(HashMethod::MapBased)),
        Just(Algorithm::LeastConn),
        Just(Algorithm::Random { draws: 2 }),
        Just(Algorithm::RoundRobin),
        Just(Algorithm::StaticRr),
    ]
}

#[derive(Clone, Debug)]
enum Change {
    Add(u32, u32, bool),
    Inflight(u32, u32),
    Remove(u32),
    Usable(u32, bool),
    Weight(u32, u32, u32),
}

fn change() -> impl Strategy<Value = Change> {
    let index = 0_u32..8;
    prop_oneof![
        (index.clone(), 0_u32..257, any::<bool>()).prop_map(|(i, w, b)| Change::Add(i, w, b)),
        (index.clone(), 0_u32..9).prop_map(|(i, n)| Change::Inflight(i, n)),
        index.clone().prop_map(Change::Remove),
        (index.clone(), any::<bool>()).prop_map(|(i, up)| Change::Usable(i, up)),
        (index, 0_u32..257, 1_u32..17).prop_map(|(i, w, s)| Change::Weight(i, w, s)),
    ]
}

/// Servers with a limit of two each; requests never end.
#[derive(Default)]
struct Two(Vec<u32>);

impl ServerLoad for Two {
    fn active(&self, index: u32) -> u32 {
        self.0.get(index as usize).copied().unwrap_or(0)
    }
    fn maxconn(&self, _: u32) -> u32 {
        2
    }
    fn maxqueue(&self, _: u32) -> u32 {
        0
    }
    fn queued(&self, _: u32) -> u32 {
        0
    }
    fn total(&self) -> u32 {
        self.0.iter().sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn any_changes_keep_the_books(
        algorithm in every_algorithm(),
        all_backups: bool,
        weights in proptest::collection::vec(0_u32..257, 0..6),
        changes in proptest::collection::vec(change(), 0..30),
    ) {
        let settings = BalancerSettings { algorithm, all_backups, balance_factor: 150, affinity: HashAffinity::Always };
        let mut usable: Vec<Option<(bool, bool, u32)>> =
            weights.iter().map(|&weight| Some((false, true, weight))).collect();
        usable.resize(8, None);
        let new_servers: Vec<_> =
            (1..).zip(&weights).map(|(id, &weight)| new_server(id, weight)).collect();
        let mut balancer = Balancer::new(settings, &new_servers);
        for (round, change) in changes.into_iter().enumerate() {
            match change {
                Change::Add(index, weight, backup) => {
                    balancer.add(index, &NewServer { backup, ..new_server(index + 100, weight) });
                    usable[index as usize] = Some((backup, true, weight));
                }
                Change::Inflight(index, count) => balancer.set_inflight(index, count),
                Change::Remove(index) => {
                    balancer.remove(index);
                    usable[index as usize] = None;
                }
                Change::Usable(index, up) => {
                    balancer.set_usable(index, up);
                    if let Some(server) = &mut usable[index as usize] {
                        server.1 = up;
                    }
                }
                Change::Weight(index, weight, step) => {
                    balancer.set_weight(index, weight, step);
                    if let Some(server) = &mut usable[index as usize] {
                        server.2 = weight;
                    }
                }
            }
            balancer.check_invariants();
            let ready = |backup: bool| -> Vec<u32> {
                let fits = |server: &Option<(bool, bool, u32)>| {
                    server.is_some_and(|(is, up, weight)| is == backup && up && weight > 0)
                };
                (0_u32..).zip(&usable).filter(|(_, server)| fits(server)).map(|(i, _)| i).collect()
            };
            let pool = if ready(false).is_empty() { ready(true) } else { ready(false) };
            for turn in 0..5_u32 {
                let hash = turn.is_multiple_of(2).then_some(turn.wrapping_mul(0x9e37_79b9));
                let ask = PickRequest { hash, random: u64::from(turn) + round as u64, ..PickRequest::default() };
                let choice = balancer.pick(&ask, &NoLoad);
                match choice {
                    Choice::Server(index) => prop_assert!(pool.contains(&index), "{index} {pool:?}"),
                    Choice::NoServer => prop_assert!(pool.is_empty()),
                    Choice::AllFull => prop_assert!(false, "nobody has a limit"),
                }
                balancer.check_invariants();
            }
        }
    }

    #[test]
    fn round_robin_deals_a_lap_by_weight(
        weights in proptest::collection::vec(1_u32..60, 1..9),
        fixed: bool,
    ) {
        let algorithm = if fixed { Algorithm::StaticRr } else { Algorithm::RoundRobin };
        let new_servers: Vec<_> =
            (1..).zip(&weights).map(|(id, &weight)| new_server(id, weight)).collect();
        let settings = BalancerSettings { algorithm, ..BalancerSettings::default() };
        let mut balancer = Balancer::new(settings, &new_servers);
        let total: u32 = weights.iter().sum();
        let laps = 16;
        let mut counts = vec![0_u32; weights.len()];
        for _ in 0..total * laps {
            let index = balancer.pick(&PickRequest::default(), &NoLoad).index().expect("somebody is up");
            counts[index as usize] += 1;
        }
        for (count, weight) in counts.iter().zip(&weights) {
            // Because of rounding, a turn may be early or late at the end of a lap.
            prop_assert!(count.abs_diff(weight * laps) <= 2, "{counts:?} {weights:?}");
        }
    }

    #[test]
    fn a_removed_server_moves_only_its_own_keys(
        weights in proptest::collection::vec(1_u32..30, 2..10),
        gone in 0_usize..10,
    ) {
        let gone = (gone % weights.len()) as u32;
        let new_servers: Vec<_> =
            (1..).zip(&weights).map(|(id, &weight)| new_server(id, weight)).collect();
        let algorithm = Algorithm::Hash(HashMethod::Consistent);
        let mut balancer = Balancer::new(BalancerSettings { algorithm, ..BalancerSettings::default() }, &new_servers);
        let hashes: Vec<_> = (0_u32..2000).map(avalanche).collect();
        let positions = |balancer: &Balancer| -> Vec<Choice> {
            hashes.iter().map(|&hash| balancer.pick_shared(&keyed(hash), &NoLoad)).collect()
        };
        let before = positions(&balancer);
        balancer.set_usable(gone, false);
        for (old, new) in before.iter().zip(positions(&balancer)) {
            prop_assert!(*old == new || *old == Choice::Server(gone));
            prop_assert!(new != Choice::Server(gone));
        }
        balancer.set_usable(gone, true);
        prop_assert_eq!(positions(&balancer), before);
    }

    #[test]
    fn limits_are_never_passed(algorithm in every_algorithm(), count in 1_u32..6) {
        prop_assume!(!matches!(algorithm, Algorithm::Hash(_)));
        let new_servers: Vec<_> = (1..=count).map(|id| new_server(id, id * 7)).collect();
        let mut balancer = Balancer::new(BalancerSettings { algorithm, ..BalancerSettings::default() }, &new_servers);
        let mut load = Two(vec![0; count as usize]);
        let mut served = 0;
        for round in 0..400_u64 {
            match balancer.pick(&PickRequest { random: round, ..PickRequest::default() }, &load) {
                Choice::Server(index) => {
                    load.0[index as usize] += 1;
                    balancer.add_request(index);
                    served += 1;
                }
                Choice::AllFull => {
                    // Only a random draw may give a full server while another is free.
                    let random = matches!(algorithm, Algorithm::Random { .. });
                    prop_assert!(random || served == 2 * count);
                }
                Choice::NoServer => prop_assert!(false, "servers are up"),
            }
            balancer.check_invariants();
        }
        prop_assert!(load.0.iter().all(|&active| active <= 2));
        prop_assert_eq!(served, 2 * count);
    }

    #[test]
    fn extraction_never_leaves_its_text(uri: Vec<u8>, name in "[a-z]{1,3}", len in 0_usize..9, depth in 0_u32..4) {
        for (path_only, whole) in [(false, false), (true, false), (false, true), (true, true)] {
            let options = UriKey { depth_max: depth, len_bytes_max: len, path_only, whole };
            let key = uri_key(&uri, options);
            prop_assert!(len == 0 || key.len() <= len);
            prop_assert!(whole || !key.contains(&b'?'));
        }
        if let Some(value) = url_param(&uri, name.as_bytes()) {
            prop_assert!(!value.contains(&b'&'));
        }
        prop_assert!(domain_only(&uri).len() <= uri.len());
    }
}

#[test]
fn a_consistent_change_moves_about_its_share() {
    let new_servers: Vec<_> = (1..=10).map(|id| new_server(id, 10)).collect();
    let algorithm = Algorithm::Hash(HashMethod::Consistent);
    let mut balancer = Balancer::new(
        BalancerSettings {
            algorithm,
            ..BalancerSettings::default()
        },
        &new_servers,
    );
    let position =
        |balancer: &Balancer, key: u32| balancer.pick_shared(&keyed(avalanche(key)), &NoLoad);
    let before: Vec<_> = (0..10_000).map(|key| position(&balancer, key)).collect();
    balancer.add(10, &new_server(11, 10));
    let moved = (0..)
        .zip(&before)
        .filter(|&(key, old)| position(&balancer, key) != *old)
        .count();
    assert!(
        (600..1300).contains(&moved),
        "an eleventh of 10,000 keys, not {moved}"
    );
}

/// One server has a request, and room for no other.
struct OneFull(u32);

impl ServerLoad for OneFull {
    fn active(&self, index: u32) -> u32 {
        u32::from(index == self.0)
    }
    fn maxconn(&self, index: u32) -> u32 {
        u32::from(index == self.0)
    }
    fn maxqueue(&self, _: u32) -> u32 {
        0
    }
    fn queued(&self, _: u32) -> u32 {
        0
    }
    fn total(&self) -> u32 {
        1
    }
}

#[test]
fn an_avoided_server_is_the_last_resort() {
    for algorithm in [
        Algorithm::First,
        Algorithm::Hash(HashMethod::Consistent),
        Algorithm::LeastConn,
        Algorithm::RoundRobin,
        Algorithm::StaticRr,
    ] {
        let settings = BalancerSettings {
            algorithm,
            ..BalancerSettings::default()
        };
        let mut balancer = Balancer::new(settings, &[new_server(1, 5), new_server(2, 1)]);
        for hash in [None, Some(77), Some(0xffff_ffff)] {
            let ask = PickRequest {
                avoid: &[0],
                hash,
                random: 0,
            };
            for _ in 0..20 {
                assert_eq!(
                    balancer.pick(&ask, &NoLoad),
                    Choice::Server(1),
                    "{algorithm:?}"
                );
                balancer.check_invariants();
            }
        }
        let ask = PickRequest {
            avoid: &[0],
            ..PickRequest::default()
        };
        // What waits gets a slot of the other one, which is only full.
        let full = OneFull(1);
        assert_eq!(balancer.pick(&ask, &full), Choice::AllFull, "{algorithm:?}");
        balancer.set_usable(1, false);
        assert_eq!(
            balancer.pick(&ask, &full),
            Choice::Server(0),
            "{algorithm:?}"
        );
        balancer.check_invariants();
    }
}

#[test]
fn one_backup_serves_even_for_a_static_map() {
    let backup = |id| NewServer {
        backup: true,
        ..new_server(id, id)
    };
    let settings = BalancerSettings {
        algorithm: Algorithm::StaticRr,
        ..BalancerSettings::default()
    };
    let mut balancer = Balancer::new(settings, &[new_server(1, 1), backup(2), backup(9)]);
    balancer.set_usable(0, false);
    for _ in 0..9 {
        assert_eq!(
            balancer.pick(&PickRequest::default(), &NoLoad),
            Choice::Server(1)
        );
    }
    assert_eq!((balancer.used_count(), balancer.backup_count()), (1, 2));
}

#[test]
fn random_follows_weights() {
    let algorithm = Algorithm::Random { draws: 1 };
    let settings = BalancerSettings {
        algorithm,
        ..BalancerSettings::default()
    };
    let balancer = Balancer::new(settings, &[new_server(1, 30), new_server(2, 10)]);
    let heavy = (0..10_000_u64)
        .filter(|&random| {
            let ask = PickRequest {
                random: random.wrapping_mul(0x1234_5678_9abc_def1),
                ..PickRequest::default()
            };
            balancer.pick_shared(&ask, &NoLoad) == Choice::Server(0)
        })
        .count();
    assert!(
        (6_800..8_200).contains(&heavy),
        "about three quarters, not {heavy}"
    );
}

#[test]
fn published_hash_vectors() {
    assert_eq!(
        hash_key(b"123456789", HashFunction::Crc32, false),
        0xcbf4_3926
    );
    assert_eq!(hash_key(b"", HashFunction::Djb2, false), 5381);
    assert_eq!(hash_key(b"a", HashFunction::Sdbm, false), 97);
    assert_eq!(hash_key(b"4294967301", HashFunction::None, false), 5);
    assert_eq!(hash_number(5, HashFunction::None, false), 5);
    let six: IpAddr = "0:1::2:3".parse().expect("an address");
    assert_eq!(hash_source(six, false), 1 ^ (2 << 16) ^ 3);
}
