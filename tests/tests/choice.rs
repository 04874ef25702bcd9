//! The server chosen for a key is HAProxy's, for every hash algorithm: caches stay warm when moving
//! from HAProxy to Ballast, or running both side by side.
//!
//! Both programs run one configuration with a port for each combination of options, and get the
//! same 10,000 keys.
//!
//! And a server that refuses connections costs no request that another one can serve.

use std::thread;

use ballast_tests::origin::answer;
use ballast_tests::{Client, Origin, Program, Proxy, free_port};

/// Number of keys for each combination.
const KEYS: usize = 10_000;
/// Pipelined requests on the connection.
const BATCH: usize = 100;
const FUNCTIONS: &[&str] = &["sdbm", "djb2", "wt6", "crc32"];
/// Uneven on purpose: weights and their common divisor affect each choice.
const WEIGHTS: &[u16] = &[10, 20, 30, 7, 1];

/// One combination of options.
struct HashSetup {
    /// Lines of the backend.
    lines: String,
    port: u16,
    /// `disabled` on the third server, other weights: the choice among the rest must be the same
    /// too.
    is_changed: bool,
}

fn ways() -> Vec<HashSetup> {
    let mut ways = Vec::new();
    for kind in ["map-based", "consistent"] {
        for function in FUNCTIONS {
            for avalanche in ["", " avalanche"] {
                let lines =
                    format!("balance hdr(x-key)\n    hash-type {kind} {function}{avalanche}");
                ways.push(HashSetup {
                    lines,
                    port: free_port(),
                    is_changed: false,
                });
            }
        }
        for asked in [
            "balance uri",
            "balance uri whole",
            "balance uri len 12 depth 2",
            "balance url_param k",
            "balance hdr(x-key)",
            "balance source",
        ] {
            for is_changed in [false, true] {
                let lines = format!("{asked}\n    hash-type {kind}");
                ways.push(HashSetup {
                    lines,
                    port: free_port(),
                    is_changed,
                });
            }
        }
    }
    ways
}

fn configuration(ways: &[HashSetup], origins: &[Origin]) -> String {
    let mut text = "\
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
"
    .to_owned();
    for way in ways {
        text += &format!(
            "listen at{0}\n    bind 127.0.0.1:{0}\n    {1}\n",
            way.port, way.lines
        );
        for (number, (origin, weight)) in (1_u16..).zip(origins.iter().zip(WEIGHTS)) {
            let weight = if way.is_changed {
                weight + 3 * number
            } else {
                *weight
            };
            let state = if way.is_changed && number == 3 {
                " disabled"
            } else {
                ""
            };
            let port = origin.port();
            text += &format!("    server s{number} 127.0.0.1:{port} weight {weight}{state}\n");
        }
    }
    text
}

/// The names of the servers that answered, in the order of the keys.
fn choices(way: &HashSetup, keys: &[String]) -> Vec<String> {
    let mut client = Client::connect(way.port);
    let mut chosen = Vec::with_capacity(keys.len());
    for batch in keys.chunks(BATCH) {
        let requests: String = batch
            .iter()
            .map(|key| {
                format!("GET /a/{key}/b?k={key} HTTP/1.1\r\nHost: test\r\nX-Key: {key}\r\n\r\n")
            })
            .collect();
        client.send(requests);
        chosen.extend(batch.iter().map(|_| client.response().text()));
    }
    chosen
}

#[test]
fn every_hash_chooses_what_haproxy_chooses() {
    let origins: Vec<Origin> = ["1", "2", "3", "4", "5"]
        .map(|name| Origin::start(move |_| answer(200, name)))
        .into();
    let ways = ways();
    let configuration = configuration(&ways, &origins);
    let ports: Vec<u16> = ways.iter().map(|way| way.port).collect();
    // Short and long, numbers and words; the generator is the classic one of the C standard.
    let mut seed = 1_u32;
    let keys: Vec<String> = (0..KEYS)
        .map(|number| {
            seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            format!("{:x}", u64::from(seed) << (number % 30))
        })
        .collect();

    let mut told: Vec<Vec<Vec<String>>> = Vec::new();
    for program in Program::both() {
        let _proxy = Proxy::start(&program, &configuration, &ports);
        told.push(ways.iter().map(|way| choices(way, &keys)).collect());
    }
    for ((way, theirs), ours) in ways.iter().zip(&told[0]).zip(&told[1]) {
        let different = theirs
            .iter()
            .zip(ours)
            .filter(|(theirs, ours)| theirs != ours)
            .count();
        let lines = &way.lines;
        assert_eq!(
            different, 0,
            "of {KEYS} keys, {lines}, changed: {}",
            way.is_changed
        );
        let used: std::collections::BTreeSet<&String> = theirs.iter().collect();
        let least = if lines.contains("source") { 1 } else { 3 };
        assert!(
            used.len() >= least,
            "{lines}: the keys reach several servers: {used:?}"
        );
    }
}

/// It is always the one that is free. HAProxy 3.2 fails up to one request in twenty-five of such crowds.
#[test]
fn a_server_that_refuses_costs_nothing_while_others_are_only_full() {
    /// More than the slots of the servers that answer.
    const CLIENTS: usize = 24;
    const REQUESTS: usize = 20;
    for (balance, redispatch) in [("leastconn", ""), ("leastconn", " 1"), ("roundrobin", " 1")] {
        for limit in ["", " maxconn 2"] {
            let origins = [(); 2].map(|()| Origin::start(|_| answer(200, "")));
            let [port, refusing] = [free_port(), free_port()];
            let text = format!(
                "global\n nbthread 1\ndefaults\n mode http\n timeout connect 5s\n timeout client 30s\n \
                 timeout server 30s\n timeout queue 30s\n retries 3\n option redispatch{redispatch}\n\
                 listen crowd\n bind 127.0.0.1:{port}\n balance {balance}\n \
                 server refuses 127.0.0.1:{refusing}{limit}\n \
                 server one 127.0.0.1:{} maxconn 2\n server two 127.0.0.1:{} maxconn 2\n",
                origins[0].port(),
                origins[1].port()
            );
            let _proxy = Proxy::start(&Program::ballast(), &text, &[port]);
            thread::scope(|scope| {
                for _ in 0..CLIENTS {
                    scope.spawn(|| {
                        let mut client = Client::connect(port);
                        for _ in 0..REQUESTS {
                            let status = client.get("/").status;
                            assert_eq!(status, 200, "{balance}, redispatch{redispatch},{limit}");
                        }
                    });
                }
            });
        }
    }
}
