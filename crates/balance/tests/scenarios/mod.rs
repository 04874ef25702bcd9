//! The scenarios of both test programs: HAProxy runs them in `oracle.rs`, this crate in both.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "shared by two test programs"
)]

use std::collections::BTreeMap;

use ballast_balance::{
    Algorithm, Balancer, BalancerSettings, Choice, HashAffinity, HashFunction, HashKey, HashMethod,
    HashType, NewServer, PickRequest, ServerLoad,
};

pub const KEYS: usize = 10_000;
/// How a choice of no server is written.
pub const NOBODY: u8 = 255;

#[derive(Clone, Copy, Debug)]
pub struct Server {
    pub backup: bool,
    pub id: u32,
    pub maxconn: u32,
    pub weight: u32,
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Disable(usize),
    Enable(usize),
    /// A request that stays open.
    Hold,
    /// This many requests with keys 0, 1, 2 ...
    Keys(usize),
    /// Ends the nth held request still open.
    Release(usize),
    /// This many requests without a key.
    Turns(usize),
    Weight(usize, u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyKind {
    Number,
    Source,
    Text,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub balance: String,
    pub hash: HashType,
    pub kind: KeyKind,
    pub name: String,
    pub servers: Vec<Server>,
    pub settings: BalancerSettings,
    pub steps: Vec<Step>,
}

impl Scenario {
    pub fn holds(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Hold))
    }

    pub fn lines(&self, address: impl Fn(usize) -> String) -> String {
        let mut text = format!("backend {}\n  balance {}\n", self.name, self.balance);
        if matches!(self.settings.algorithm, Algorithm::Hash(_)) {
            text += &format!("  hash-type {}\n", hash_type_words(self.hash));
        }
        if self.settings.balance_factor != 0 {
            text += &format!("  hash-balance-factor {}\n", self.settings.balance_factor);
        }
        if self.settings.all_backups {
            text += "  option allbackups\n";
        }
        text += "  http-after-response set-header x-s %s\n";
        for (index, server) in self.servers.iter().enumerate() {
            text += &format!(
                "  server s{index} {} weight {} id {}{}{}\n",
                address(index),
                server.weight,
                server.id,
                if server.backup { " backup" } else { "" },
                match server.maxconn {
                    0 => String::new(),
                    limit => format!(" maxconn {limit}"),
                }
            );
        }
        text
    }

    pub fn command(&self, step: Step) -> Option<String> {
        let name = &self.name;
        let fixed = !self.settings.algorithm.is_dynamic();
        Some(match step {
            Step::Disable(index) => format!("disable server {name}/s{index}"),
            Step::Enable(index) => format!("enable server {name}/s{index}"),
            Step::Weight(index, 0) => format!("set server {name}/s{index} weight 0%"),
            Step::Weight(index, _) if fixed => format!("set server {name}/s{index} weight 100%"),
            Step::Weight(index, to) => format!("set server {name}/s{index} weight {to}"),
            _ => return None,
        })
    }

    /// Our choices.
    pub fn play(&self) -> Vec<u8> {
        let new_servers: Vec<_> = self.servers.iter().map(new_server).collect();
        let mut balancer = Balancer::new(self.settings, &new_servers);
        let mut active_requests = ActiveRequests {
            active: vec![0; self.servers.len()],
            maxconn: self.servers.iter().map(|server| server.maxconn).collect(),
        };
        let mut held = Vec::new();
        let mut choices = Vec::new();
        for &step in &self.steps {
            match step {
                Step::Disable(index) => balancer.set_usable(index as u32, false),
                Step::Enable(index) => balancer.set_usable(index as u32, true),
                Step::Weight(index, to) => balancer.set_weight(index as u32, to, 16),
                Step::Release(nth) => {
                    let index: u32 = held.remove(nth);
                    active_requests.active[index as usize] -= 1;
                    balancer.remove_request(index);
                }
                Step::Hold => {
                    let choice = balancer.pick(&PickRequest::default(), &active_requests);
                    let index = choice.index().expect("a held request has a server");
                    active_requests.active[index as usize] += 1;
                    balancer.add_request(index);
                    held.push(index);
                    choices.push(index as u8);
                }
                Step::Keys(count) | Step::Turns(count) => {
                    for number in 0..count {
                        let keyed = matches!(step, Step::Keys(_));
                        let hash = keyed.then(|| self.hash_of(number));
                        let ask = PickRequest {
                            hash,
                            ..PickRequest::default()
                        };
                        let choice = balancer.pick(&ask, &active_requests);
                        if let Choice::Server(index) = choice {
                            balancer.add_request(index);
                            balancer.remove_request(index);
                        }
                        choices.push(choice.index().map_or(NOBODY, |index| index as u8));
                    }
                }
            }
            balancer.check_invariants();
        }
        choices
    }

    /// Whether a server's weight changes while servers take turns: HAProxy before 3.2 kept more of
    /// a server's position than 3.2 does.
    pub fn weighs_turns(&self) -> bool {
        let weighs = |step: &Step| matches!(step, Step::Weight(_, 1..));
        self.settings.algorithm == Algorithm::RoundRobin && self.steps.iter().any(weighs)
    }

    /// The choices of a server while another had a lower load per weight. Among equals HAProxy 3.2
    /// chooses at random, so `leastconn` cannot be checked more strictly.
    pub fn busier(&self, choices: &[u8]) -> Vec<String> {
        let mut requests = Requests {
            inflight: vec![0; self.servers.len()],
            usable: vec![true; self.servers.len()],
            weights: self.servers.iter().map(|server| server.weight).collect(),
        };
        let mut held = Vec::new();
        let mut wrong = Vec::new();
        let mut left = choices.iter().enumerate();
        for &step in &self.steps {
            let count = match step {
                Step::Keys(count) | Step::Turns(count) => count,
                Step::Hold => 1,
                Step::Disable(index) | Step::Enable(index) => {
                    requests.usable[index] = matches!(step, Step::Enable(_));
                    0
                }
                Step::Release(nth) => {
                    let index: usize = held.remove(nth);
                    requests.inflight[index] -= 1;
                    0
                }
                Step::Weight(index, to) => {
                    requests.weights[index] = to;
                    0
                }
            };
            for (at, &choice) in left.by_ref().take(count) {
                let best = requests.least(self);
                if !best.contains(&choice) {
                    let name = &self.name;
                    wrong.push(format!("{name}: choice {at} is {choice}, not of {best:?}"));
                }
                if matches!(step, Step::Hold) {
                    held.push(usize::from(choice));
                    requests.inflight[usize::from(choice)] += 1;
                }
            }
        }
        wrong
    }

    fn hash_of(&self, number: usize) -> u32 {
        let key = key_text(number, self.kind);
        match self.kind {
            KeyKind::Text => self.hash.of_bytes(key.as_bytes()),
            KeyKind::Number => self.hash.of_number(key.parse().expect("a number")),
            KeyKind::Source => self.hash.of_source(key.parse().expect("an address")),
        }
    }
}

pub fn new_server(server: &Server) -> NewServer {
    NewServer {
        backup: server.backup,
        hash_key: HashKey::Id,
        id: server.id,
        usable: true,
        weight: server.weight,
    }
}

/// The key of a request, as it travels in a header.
pub fn key_text(number: usize, kind: KeyKind) -> String {
    let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match kind {
        KeyKind::Text => format!("/item/{number}-{:x}", mixed >> 40),
        KeyKind::Number => (mixed >> 33).to_string(),
        KeyKind::Source if number.is_multiple_of(2) => {
            std::net::Ipv4Addr::from((mixed >> 32) as u32).to_string()
        }
        KeyKind::Source => {
            std::net::Ipv6Addr::from((u128::from(mixed) << 64) | number as u128).to_string()
        }
    }
}

pub fn hash_type_words(hash: HashType) -> String {
    let method = match hash.method {
        HashMethod::Consistent => "consistent",
        HashMethod::MapBased => "map-based",
    };
    let function = match hash.function {
        HashFunction::Crc32 => "crc32",
        HashFunction::Djb2 => "djb2",
        HashFunction::None => "none",
        HashFunction::Sdbm => "sdbm",
        HashFunction::Wt6 => "wt6",
    };
    format!(
        "{method} {function}{}",
        if hash.avalanche { " avalanche" } else { "" }
    )
}

/// The state that `leastconn` depends on.
struct Requests {
    inflight: Vec<u32>,
    usable: Vec<bool>,
    weights: Vec<u32>,
}

impl Requests {
    /// The servers with the lowest load, or none.
    fn least(&self, scenario: &Scenario) -> Vec<u8> {
        let of = |backup: bool| {
            (0..scenario.servers.len()).filter(move |&index| {
                let is_backup = scenario.servers[index].backup;
                is_backup == backup && self.usable[index] && self.weights[index] > 0
            })
        };
        let backups = if scenario.settings.all_backups {
            usize::MAX
        } else {
            1
        };
        let mut group: Vec<usize> = of(false).collect();
        if group.is_empty() {
            group = of(true).take(backups).collect();
        }
        let work = |index: &usize| match self.inflight[*index] {
            0 => 0,
            busy => (busy + 1) * 4096 / (self.weights[*index] * 16),
        };
        let least = group.iter().map(work).min();
        group.retain(|index| Some(work(index)) == least);
        match group.as_slice() {
            [] => vec![NOBODY],
            group => group.iter().map(|&index| index as u8).collect(),
        }
    }
}

struct ActiveRequests {
    active: Vec<u32>,
    maxconn: Vec<u32>,
}

impl ServerLoad for ActiveRequests {
    fn active(&self, index: u32) -> u32 {
        self.active[index as usize]
    }
    fn maxconn(&self, index: u32) -> u32 {
        self.maxconn[index as usize]
    }
    fn maxqueue(&self, _: u32) -> u32 {
        0
    }
    fn queued(&self, _: u32) -> u32 {
        0
    }
    fn total(&self) -> u32 {
        self.active.iter().sum()
    }
}

fn servers(weights: &[u32]) -> Vec<Server> {
    let one = |(index, &weight): (u32, &u32)| Server {
        backup: false,
        // Every third server has an id that is not its position.
        id: if index % 3 == 2 {
            1000 + 37 * index
        } else {
            index + 1
        },
        maxconn: 0,
        weight,
    };
    (0..).zip(weights).map(one).collect()
}

fn hashed() -> Vec<Scenario> {
    let mut all = Vec::new();
    let functions = [
        ("sdbm", HashFunction::Sdbm),
        ("djb2", HashFunction::Djb2),
        ("wt6", HashFunction::Wt6),
        ("crc32", HashFunction::Crc32),
    ];
    for method in [HashMethod::MapBased, HashMethod::Consistent] {
        for (word, function) in functions {
            for avalanche in [false, true] {
                let hash = HashType {
                    avalanche,
                    function,
                    method,
                };
                let tail = if avalanche { "-avalanche" } else { "" };
                all.push(hashed_one(
                    format!("hash-{}-{word}{tail}", short(method)),
                    hash,
                ));
            }
        }
        for avalanche in [false, true] {
            let hash = HashType {
                avalanche,
                function: HashFunction::Sdbm,
                method,
            };
            let tail = if avalanche { "-avalanche" } else { "" };
            for (word, kind, balance) in [
                ("source", KeyKind::Source, "source"),
                ("number", KeyKind::Number, "hash req.hdr_val(x-k)"),
            ] {
                let name = format!("{word}-{}{tail}", short(method));
                let one = hashed_one(name, hash);
                all.push(Scenario {
                    balance: balance.to_owned(),
                    kind,
                    ..one
                });
            }
        }
    }
    all
}

const fn short(method: HashMethod) -> &'static str {
    match method {
        HashMethod::Consistent => "consistent",
        HashMethod::MapBased => "map",
    }
}

fn hashed_one(name: String, hash: HashType) -> Scenario {
    let steps = match hash.method {
        HashMethod::MapBased => vec![
            Step::Keys(KEYS),
            Step::Disable(2),
            Step::Keys(KEYS),
            Step::Turns(60),
            Step::Enable(2),
            Step::Weight(4, 0),
            Step::Keys(KEYS),
            Step::Turns(60),
            Step::Weight(4, 100),
            Step::Disable(0),
            Step::Keys(KEYS),
        ],
        HashMethod::Consistent => vec![
            Step::Keys(KEYS),
            Step::Turns(60),
            Step::Disable(2),
            Step::Keys(KEYS),
            Step::Turns(60),
            Step::Enable(2),
            Step::Weight(4, 33),
            Step::Keys(KEYS),
            Step::Weight(1, 90),
            Step::Turns(60),
            Step::Weight(3, 0),
            Step::Keys(KEYS),
        ],
    };
    Scenario {
        balance: "hdr(x-k)".to_owned(),
        hash,
        kind: KeyKind::Text,
        name,
        servers: servers(&[10, 5, 25, 35, 100, 15, 20]),
        settings: BalancerSettings {
            algorithm: Algorithm::Hash(hash.method),
            ..BalancerSettings::default()
        },
        steps,
    }
}

fn turns() -> Vec<Scenario> {
    let mut all = Vec::new();
    let weights: [(&str, &[u32]); 6] = [
        ("even", &[1, 1, 1]),
        ("uneven", &[10, 1, 25, 7, 100, 5, 2]),
        ("common", &[20, 40, 60]),
        ("extreme", &[256, 1, 255, 128]),
        ("one", &[3]),
        (
            "many",
            &[
                3, 9, 27, 81, 243, 2, 8, 32, 128, 1, 7, 49, 5, 25, 125, 11, 121, 13, 169, 17,
            ],
        ),
    ];
    for (shape, weights) in weights {
        for (word, algorithm) in [
            ("roundrobin", Algorithm::RoundRobin),
            ("static-rr", Algorithm::StaticRr),
            ("leastconn", Algorithm::LeastConn),
            ("first", Algorithm::First),
        ] {
            let last = weights.len() - 1;
            let mut steps = vec![Step::Turns(700)];
            if last > 0 {
                steps.extend([Step::Disable(last), Step::Turns(333), Step::Enable(last)]);
                steps.extend([Step::Turns(500), Step::Weight(1, 0), Step::Turns(77)]);
                steps.extend([Step::Weight(1, weights[1]), Step::Turns(400)]);
                if algorithm.is_dynamic() {
                    steps.extend([Step::Weight(0, 77), Step::Turns(123)]);
                    steps.extend([Step::Weight(1, 200), Step::Turns(7), Step::Weight(0, 3)]);
                    steps.extend([Step::Turns(5), Step::Weight(last, 50), Step::Turns(600)]);
                    for round in 0..40 {
                        steps.push(Step::Weight(
                            round % weights.len(),
                            (round as u32 * 37) % 256,
                        ));
                        steps.push(Step::Turns(3 + round * 5 % 29));
                    }
                }
            }
            all.push(Scenario {
                balance: word.to_owned(),
                hash: HashType::default(),
                kind: KeyKind::Text,
                name: format!("{word}-{shape}"),
                servers: servers(weights),
                settings: BalancerSettings {
                    algorithm,
                    ..BalancerSettings::default()
                },
                steps,
            });
        }
    }
    all
}

fn backups() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (word, algorithm) in [
        ("roundrobin", Algorithm::RoundRobin),
        ("static-rr", Algorithm::StaticRr),
        ("leastconn", Algorithm::LeastConn),
        ("first", Algorithm::First),
        ("hdr(x-k)", Algorithm::Hash(HashMethod::MapBased)),
        ("hdr(x-k)", Algorithm::Hash(HashMethod::Consistent)),
    ] {
        for all_backups in [false, true] {
            if algorithm == Algorithm::StaticRr && !all_backups {
                // With several backups HAProxy 2.6 uses all in turn, in a map as long as the first
                // one's weight. The manual says "first backup only", and we do that.
                continue;
            }
            let mut servers = servers(&[4, 8, 2, 6, 10]);
            servers[1].backup = true;
            servers[3].backup = true;
            servers[4].backup = true;
            let (method, plain) = match algorithm {
                Algorithm::Hash(method) => (method, format!("hdr-{}", short(method))),
                _ => (HashMethod::MapBased, word.to_owned()),
            };
            let tail = if all_backups { "all" } else { "first" };
            let ask = |count| match algorithm {
                Algorithm::Hash(_) => Step::Keys(count),
                _ => Step::Turns(count),
            };
            all.push(Scenario {
                balance: word.to_owned(),
                hash: HashType {
                    method,
                    ..HashType::default()
                },
                kind: KeyKind::Text,
                name: format!("backup-{tail}-{plain}"),
                servers,
                settings: BalancerSettings {
                    algorithm,
                    all_backups,
                    balance_factor: 0,
                    affinity: HashAffinity::Always,
                },
                steps: vec![
                    ask(50),
                    Step::Disable(0),
                    ask(50),
                    Step::Disable(2),
                    ask(100),
                    Step::Disable(1),
                    ask(100),
                    Step::Weight(3, 0),
                    ask(50),
                    Step::Enable(1),
                    ask(50),
                    Step::Disable(1),
                    Step::Disable(4),
                    ask(3),
                    Step::Enable(2),
                    ask(30),
                ],
            });
        }
    }
    all
}

/// Requests that stay open, so that loads and limits count.
fn held() -> Vec<Scenario> {
    let mut all = Vec::new();
    let random = |count: usize, seed: u64| {
        let mut state = seed;
        let mut open = 0_usize;
        let mut steps = Vec::new();
        for _ in 0..count {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695);
            let draw = (state >> 33) as usize;
            if open > 0 && (draw % 5 < 2 || open >= 20) {
                steps.push(Step::Release(draw / 5 % open));
                open -= 1;
            } else {
                steps.push(Step::Hold);
                open += 1;
            }
            if draw.is_multiple_of(11) {
                steps.push(Step::Turns(3));
            }
        }
        steps
    };
    for (word, algorithm) in [
        ("leastconn", Algorithm::LeastConn),
        ("roundrobin", Algorithm::RoundRobin),
        ("static-rr", Algorithm::StaticRr),
        ("first", Algorithm::First),
    ] {
        let mut servers = servers(&[10, 20, 5, 40]);
        for (server, maxconn) in servers.iter_mut().zip([3, 7, 8, 15]) {
            server.maxconn = if algorithm == Algorithm::LeastConn {
                0
            } else {
                maxconn
            };
        }
        all.push(Scenario {
            balance: word.to_owned(),
            hash: HashType::default(),
            kind: KeyKind::Text,
            name: format!("held-{word}"),
            servers,
            settings: BalancerSettings {
                algorithm,
                ..BalancerSettings::default()
            },
            steps: random(160, 42),
        });
    }
    for factor in [110, 150, 200] {
        // Keys come from the hash of a header; load comes from requests that are held in the order
        // of the ring.
        let mut steps = Vec::new();
        for _ in 0..12 {
            steps.extend([Step::Hold, Step::Hold, Step::Keys(40)]);
        }
        let algorithm = Algorithm::Hash(HashMethod::Consistent);
        all.push(Scenario {
            balance: "hdr(x-k)".to_owned(),
            hash: HashType {
                method: HashMethod::Consistent,
                ..HashType::default()
            },
            kind: KeyKind::Text,
            name: format!("bounded-{factor}"),
            servers: servers(&[10, 20, 5, 40, 1]),
            settings: BalancerSettings {
                algorithm,
                all_backups: false,
                balance_factor: factor,
                affinity: HashAffinity::Always,
            },
            steps,
        });
    }
    all
}

pub fn all() -> Vec<Scenario> {
    [hashed(), turns(), backups(), held()].concat()
}

/// `name crc32 first-64` per line.
pub fn golden() -> BTreeMap<String, (u32, String)> {
    let lines = include_str!("../golden.txt").lines();
    let parse = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let crc = u32::from_str_radix(words.next()?, 16).ok()?;
        Some((name, (crc, words.next()?.to_owned())))
    };
    lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(parse)
        .collect()
}

pub fn digest(choices: &[u8]) -> (u32, String) {
    let letter = |&index: &u8| {
        if index == NOBODY {
            '-'
        } else {
            char::from(b'a' + index)
        }
    };
    (
        crc32fast::hash(choices),
        choices.iter().take(64).map(letter).collect(),
    )
}
