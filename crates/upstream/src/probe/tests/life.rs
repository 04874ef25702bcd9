//! Servers over time: up, down, tracked, observed.

use std::net::UdpSocket;
use std::sync::Mutex;
use std::time::Instant;

use ballast_engine::CancellationReason;
use ballast_health::CheckStatus;
use ballast_log::{Endpoint, LogSetSpec, Logs, TargetSpec};
use ballast_model::{InitState, Observe, OnError, OnMarkedDown};
use ballast_mux::Limits;
use ballast_worker::{StopOrder, WorkerOptions, Workers, block_on};

use super::super::{EventLog, Observation, observe, start};
use super::*;
use crate::{
    ClientAddresses, ConnectionKey, ConnectionRequirements, ExchangeValues, Lease, connect, pool,
};

#[test]
fn a_server_goes_down_and_comes_back() {
    block_on(async {
        let address = closed();
        let mut fixture = Fixture::new(vec![backend("be", vec![server("s1", address)])]);
        let _probes = start(&fixture.controller, 0, 1);
        assert_eq!(
            fixture.line().await,
            (
                LineSeverity::Alert,
                "Server be/s1 is DOWN, reason: Layer4 connection problem, info: \"Connection \
                 refused\", check duration: Nms. 0 active and 0 backup servers left. 0 sessions \
                 active, 0 requeued, 0 remaining in queue."
                    .to_owned()
            )
        );
        let (level, line) = fixture.line().await;
        assert_eq!(
            (level, line.as_str()),
            (LineSeverity::Emerg, "backend be has no server available!")
        );
        assert!(!fixture.server(0, 0).state.is_usable());
        assert!(fixture.backend(0).state.availability().is_down);
        let _listener = TcpListener::bind(address).unwrap();
        assert_eq!(
            fixture.line().await,
            (
                LineSeverity::Notice,
                "Server be/s1 is UP, reason: Layer4 check passed, check duration: Nms. 1 active \
                 and 0 backup servers online. 0 sessions requeued, 0 total in queue."
                    .to_owned()
            )
        );
        assert!(fixture.server(0, 0).state.is_usable());
        assert_eq!(
            fixture
                .server(0, 0)
                .state
                .health()
                .counters()
                .down_transitions,
            1
        );
    })
    .unwrap();
}

#[test]
fn each_change_of_the_count_is_told_when_asked_for() {
    block_on(async {
        let mut one = server("s1", origin(vec![ok, broken, ok, broken, broken, broken]));
        one.checks.fall = 3;
        let mut farm = backend("be", vec![one]);
        farm.check = http(Vec::new());
        farm.options.log_health_checks = true;
        let mut fixture = Fixture::new(vec![farm]);
        let _probes = start(&fixture.controller, 0, 1);
        let expected = [
            "Health check for server be/s1 succeeded, reason: Layer7 check passed, code: 200, \
             check duration: Nms, status: 3/3 UP.",
            "Health check for server be/s1 failed, reason: Layer7 wrong status, code: 500, info: \
             \"Bad thing\", check duration: Nms, status: 2/3 UP.",
            "Health check for server be/s1 succeeded, reason: Layer7 check passed, code: 200, \
             check duration: Nms, status: 3/3 UP.",
            "Health check for server be/s1 failed, reason: Layer7 wrong status, code: 500, info: \
             \"Bad thing\", check duration: Nms, status: 2/3 UP.",
            "Health check for server be/s1 failed, reason: Layer7 wrong status, code: 500, info: \
             \"Bad thing\", check duration: Nms, status: 1/3 UP.",
            "Health check for server be/s1 failed, reason: Layer7 wrong status, code: 500, info: \
             \"Bad thing\", check duration: Nms, status: 0/1 DOWN.",
            "Server be/s1 is DOWN. 0 active and 0 backup servers left. 0 sessions active, 0 \
             requeued, 0 remaining in queue.",
        ];
        for line in expected {
            assert_eq!(fixture.line().await.1, line);
        }
    })
    .unwrap();
}

#[test]
fn between_states_checks_come_after_fastinter() {
    block_on(async {
        let mut one = server("s1", closed());
        one.init_state = InitState::FullyUp;
        one.checks.fall = 4;
        one.checks.interval = PATIENCE * 100;
        one.checks.fast_interval = Some(BEAT);
        let mut fixture = Fixture::new(vec![backend("be", vec![one])]);
        let _probes = start(&fixture.controller, 0, 1);
        // Waiting for `inter` would exceed the time limit of this test.
        assert!(fixture.line().await.1.contains("is DOWN"));
    })
    .unwrap();
}

#[test]
fn maintenance_pauses_checks_and_its_end_resumes_them_at_once() {
    block_on(async {
        let mut one = server("s1", closed());
        one.disabled = true;
        one.checks.interval = PATIENCE * 100;
        let mut fixture = Fixture::new(vec![backend("be", vec![one])]);
        assert!(fixture.backend(0).state.availability().is_down);
        let _probes = start(&fixture.controller, 0, 1);
        for _ in 0..20 {
            ballast_worker::yield_now().await;
        }
        fixture
            .controller
            .update_health("be", "s1", |health, now_ms| health.set_ready(now_ms));
        let line = fixture.line().await.1;
        assert_eq!(
            line,
            "Server be/s1 is UP/READY (leaving forced maintenance)."
        );
        assert!(fixture.line().await.1.contains("is DOWN, reason: Layer4"));
    })
    .unwrap();
}

#[test]
fn a_404_lets_the_server_go_gently() {
    block_on(async {
        let mut farm = backend("be", vec![server("s1", origin(vec![missing]))]);
        farm.check = CheckMethod::Http {
            rules: vec![],
            disable_on_404: true,
            send_state: false,
        };
        let mut fixture = Fixture::new(vec![farm]);
        let _probes = start(&fixture.controller, 0, 1);
        let (level, line) = fixture.line().await;
        assert_eq!(level, LineSeverity::Notice);
        assert!(
            line.starts_with(
                "Server be/s1 is stopping, reason: Layer7 check conditionally passed, code: 404, \
                 check duration: Nms. 0 active"
            ),
            "{line}"
        );
        assert_eq!(
            fixture.line().await.1,
            "backend be has no server available!"
        );
        let state = &fixture.server(0, 0).state;
        assert!(state.is_usable() && state.is_draining());
    })
    .unwrap();
}

#[test]
fn servers_follow_the_one_they_track_across_backends() {
    block_on(async {
        let mut follower = server("t1", closed());
        follower.checks.enabled = false;
        follower.track = Some(("be".into(), "s1".into()));
        let mut last = follower.clone();
        last.name = "u1".into();
        last.track = Some(("other".into(), "t1".into()));
        last.on_marked_down = OnMarkedDown::ShutdownSessions;
        let mut fixture = Fixture::new(vec![
            backend("be", vec![server("s1", closed())]),
            backend("other", vec![follower, last]),
        ]);
        let end = Arc::clone(&fixture.server(1, 1).state);
        let cancelled = end.cancelled();
        let probes = start(&fixture.controller, 0, 1);
        assert_eq!(probes.count(), 1, "followers are not probed");
        assert!(
            fixture
                .line()
                .await
                .1
                .starts_with("Server be/s1 is DOWN, reason")
        );
        assert_eq!(
            fixture.line().await.1,
            "backend be has no server available!"
        );
        assert_eq!(
            fixture.line().await.1,
            "Server other/t1 is DOWN via be/s1. 1 active and 0 backup servers left. 0 sessions \
             active, 0 requeued, 0 remaining in queue."
        );
        assert!(
            fixture
                .line()
                .await
                .1
                .starts_with("Server other/u1 is DOWN via other/t1. 0")
        );
        assert_eq!(
            timeout(PATIENCE, cancelled).await.unwrap(),
            CancellationReason::MarkedDown
        );
    })
    .unwrap();
}

#[test]
fn followers_of_a_disabled_server_begin_as_it_does() {
    let mut leader = server("s1", closed());
    leader.disabled = true;
    let mut follower = server("t1", closed());
    follower.track = Some(("be".into(), "s1".into()));
    let mut fixture = Fixture::new(vec![
        backend("other", vec![follower]),
        backend("be", vec![leader]),
    ]);
    assert!(!fixture.server(0, 0).state.is_usable());
    assert!(fixture.lines.try_recv().is_err(), "without a word");
}

#[test]
fn a_chain_is_followed_to_its_end_however_long_it_is() {
    const LENGTH: usize = 3000;
    let mut servers: Vec<_> = (0..LENGTH)
        .map(|n| {
            let mut one = server(&format!("s{n}"), closed());
            one.track = Some(("be".into(), format!("s{}", n + 1)));
            one
        })
        .collect();
    let mut leader = server(&format!("s{LENGTH}"), closed());
    leader.disabled = true;
    servers.push(leader);
    let fixture = Fixture::new(vec![backend("be", servers)]);
    let end = Arc::clone(&fixture.server(0, 0).state);
    assert!(!end.is_usable(), "it begins as its leader does");
    let leader = format!("s{LENGTH}");
    let told = fixture
        .controller
        .update_health("be", &leader, |health, now_ms| {
            health.set_configured_maint(now_ms, false)
        });
    assert!(told && end.is_usable());
}

#[test]
fn agents_are_heard() {
    fn half_full(stream: &mut TcpStream) {
        let _ = stream.write_all(b"up 50% maxconn:30\n");
    }
    fn hot(stream: &mut TcpStream) {
        let _ = stream.write_all(b"down # too hot\r\n");
    }
    fn unfinished(stream: &mut TcpStream) {
        let _ = stream.write_all(b"up");
    }
    block_on(async {
        let mut one = server("s1", closed());
        one.checks.enabled = false;
        one.checks.agent_enabled = true;
        one.checks.agent_port = Some(origin(vec![half_full, unfinished, hot]).port());
        one.weight = 100;
        let mut farm = backend("be", vec![one]);
        farm.options.log_health_checks = true;
        let mut fixture = Fixture::new(vec![farm]);
        let _probes = start(&fixture.controller, 0, 1);
        let expected = [
            "Agent check for server be/s1 succeeded, reason: Layer7 check passed, code: 0, info: \
             \"via agent : up\", check duration: Nms, status: 1/1 UP.",
            "Agent check for server be/s1 failed, reason: Layer7 timeout, info: \"Ignoring \
             incomplete line from agent\", check duration: Nms, status: 1/1 UP.",
            "Agent check for server be/s1 failed, reason: Layer7 wrong status, code: 0, info: \
             \"via agent : down (too hot)\", check duration: Nms, status: 0/1 DOWN.",
            "Server be/s1 is DOWN. 0 active and 0 backup servers left. 0 sessions active, 0 \
             requeued, 0 remaining in queue.",
        ];
        for line in expected {
            assert_eq!(fixture.line().await.1, line);
        }
        let server = fixture.server(0, 0);
        assert_eq!(server.state.weight(), 50);
        assert_eq!(fixture.backend(0).server_limit(0), 30);
    })
    .unwrap();
}

#[test]
fn traffic_is_observed_where_asked_for() {
    block_on(async {
        let mut one = server("s1", origin(vec![silence]));
        one.checks.interval = PATIENCE * 100;
        one.checks.observe = Some(Observe::Layer7);
        one.checks.error_limit = 2;
        one.checks.on_error = OnError::MarkDown;
        let mut two = one.clone();
        two.name = "s2".into();
        two.checks.observe = None;
        let mut fixture = Fixture::new(vec![backend("be", vec![one, two])]);
        let _probes = start(&fixture.controller, 0, 1);
        let farm = Arc::clone(fixture.backend(0));
        let bad = Observation::from_status(500);
        for _ in 0..9 {
            observe(&farm, 1, bad);
        }
        observe(&farm, 0, bad);
        observe(&farm, 0, Observation::Response);
        observe(&farm, 0, bad);
        assert!(
            farm.servers[0].state.is_usable(),
            "a good response begins the count again"
        );
        observe(&farm, 0, bad);
        let (level, line) = fixture.line().await;
        assert_eq!(level, LineSeverity::Alert);
        assert!(
            line.starts_with(
                "Server be/s1 is DOWN, reason: Health analyze, info: \"Detected 2 consecutive \
                 errors, last one was: Wrong http response\". 1 active and 0 backup"
            ),
            "{line}"
        );
        assert!(farm.servers[1].state.is_usable());
    })
    .unwrap();
}

#[test]
fn slow_starts_go_on_by_themselves() {
    block_on(async {
        let mut one = server("s1", origin(vec![silence]));
        one.weight = 100;
        one.init_state = InitState::FullyDown;
        one.slow_start = Duration::from_secs(2);
        let mut fixture = Fixture::new(vec![backend("be", vec![one])]);
        let _probes = start(&fixture.controller, 0, 1);
        assert!(
            fixture
                .line()
                .await
                .1
                .contains("is UP, reason: Layer4 check passed")
        );
        let state = Arc::clone(&fixture.server(0, 0).state);
        assert!(state.throttle_percent() < 100);
        assert!(
            fixture
                .line()
                .await
                .1
                .starts_with("Server be/s1 is UP. 1 active")
        );
        assert_eq!(state.throttle_percent(), 100);
    })
    .unwrap();
}

#[test]
fn probes_end_with_their_handle_and_are_shared_among_workers() {
    block_on(async {
        let count = Arc::new(Mutex::new(0));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            for _ in listener.incoming() {
                *counted.lock().unwrap() += 1;
            }
        });
        let names = ["s1", "s2", "s3"];
        let servers = names.map(|name| server(name, address)).to_vec();
        let fixture = Fixture::new(vec![backend("be", servers)]);
        assert_eq!(start(&fixture.controller, 0, 2).count(), 2);
        assert_eq!(start(&fixture.controller, 1, 2).count(), 1);
        // All of them ended before they could begin.
        ballast_worker::sleep(BEAT * 3).await;
        assert_eq!(*count.lock().unwrap(), 0);
    })
    .unwrap();
}

#[test]
fn the_console_line_is_haproxys() {
    let event = ServerEvent {
        backend: "be",
        level: LineSeverity::Emerg,
        line: "backend be has no server available!",
        console: "backend 'be' has no server available!",
    };
    let id = std::process::id();
    assert_eq!(
        super::super::event_log::console_line(&event),
        format!("[ALERT]    ({id}) : backend 'be' has no server available!")
    );
    let event = ServerEvent {
        level: LineSeverity::Alert,
        console: "Server be/s1 is DOWN.",
        ..event
    };
    assert_eq!(
        super::super::event_log::console_line(&event),
        format!("[WARNING]  ({id}) : Server be/s1 is DOWN.")
    );
}

#[test]
fn lines_reach_the_log_targets_of_their_backend() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let logs = Logs::start().unwrap();
    let endpoint = Endpoint::Udp(socket.local_addr().unwrap());
    let target = TargetSpec::new(endpoint, "local0".parse().unwrap());
    let set = LogSetSpec {
        tag: "ballast".to_owned(),
        hostname: None,
        targets: vec![Arc::new(target)],
    };
    let set = logs.open(&[set]).unwrap().remove(0);
    let sets = [("be".to_owned(), set)].into();
    let events = EventLog::new(&logs, sets, false).unwrap();
    let event = |backend, level, line| ServerEvent {
        backend,
        level,
        line,
        console: line,
    };
    events.event(&event("other", LineSeverity::Alert, "to nobody"));
    events.event(&event("be", LineSeverity::Alert, "Server be/s1 is DOWN."));
    events.event(&event("be", LineSeverity::Notice, "Server be/s1 is UP."));
    let mut received = [0; 512];
    for (priority, line) in [("<129>", "is DOWN."), ("<133>", "is UP.")] {
        let count = socket.recv(&mut received).unwrap();
        let text = String::from_utf8_lossy(&received[..count]);
        assert!(
            text.starts_with(priority) && text.trim_end().ends_with(line),
            "{text}"
        );
    }
}

/// A connection to the first server.
async fn open(fixture: &Fixture) -> Lease {
    let (backend, server) = (fixture.backend(0), fixture.server(0, 0));
    let (client, told) = (ClientAddresses::default(), ExchangeValues::default());
    let wanted = ConnectionRequirements::of(backend, server, &client, told, Limits::default());
    let key = ConnectionKey::new(backend, server, wanted);
    connect(server, key).await.unwrap()
}

#[test]
fn a_server_that_goes_down_keeps_no_idle_connection() {
    block_on(async {
        let address = origin(vec![silence]);
        let fixture = Fixture::new(vec![backend("be", vec![server("s1", address)])]);
        let server = fixture.server(0, 0);
        let lease = open(&fixture).await;
        assert_eq!(server.state.connections.current(), 1);
        pool::give(server, lease, Instant::now());
        assert_eq!(server.state.idle.current(), 1);
        fixture
            .controller
            .update_health("be", "s1", |health, now_ms| {
                health.check_done(now_ms, CheckOutcome::new(CheckStatus::L4Timeout, 1))
            });
        assert_eq!(
            (
                server.state.idle.current(),
                server.state.connections.current()
            ),
            (0, 0)
        );
    })
    .unwrap();
}

#[test]
fn what_nobody_would_use_does_not_rest() {
    block_on(async {
        let address = origin(vec![silence]);
        let fixture = Fixture::new(vec![backend("be", vec![server("s1", address)])]);
        let server = fixture.server(0, 0);
        let open = async || open(&fixture).await;
        let now = Instant::now();
        for _ in 0..3 {
            // One after the other: one is enough.
            pool::give(server, open().await, now);
            assert_eq!(server.state.idle.current(), 1);
            assert_eq!(server.state.connections.current(), 1);
        }
        let used = [open().await, open().await];
        // Two were in use at once: two may stay idle.
        for connection in used {
            pool::give(server, connection, now);
        }
        assert_eq!(server.state.idle.current(), 2);
        pool::clear(server);
        assert_eq!(server.state.connections.current(), 0);
    })
    .unwrap();
}

#[test]
fn workers_probe_their_shares_and_hear_of_each_other() {
    let names = ["s1", "s2", "s3", "s4"];
    let servers = names.map(|name| server(name, closed())).to_vec();
    let mut fixture = Fixture::new(vec![backend("be", servers)]);
    let options = WorkerOptions {
        count: 2,
        ..WorkerOptions::default()
    };
    let probes = Arc::new(Mutex::new(Vec::new()));
    let workers = Workers::start(&options, |index| {
        let (controller, counts) = (Arc::clone(&fixture.controller), Arc::clone(&probes));
        move || {
            let probes = start(&controller, index, 2);
            counts.lock().unwrap().push(probes.count());
            // The tasks outlive the scope of their handle here: they end with the worker.
            std::mem::forget(probes);
        }
    })
    .unwrap();
    let mut down = Vec::new();
    let begun = Instant::now();
    while down.len() < 4 && begun.elapsed() < PATIENCE {
        match fixture.lines.try_recv() {
            Ok((LineSeverity::Alert, line)) => down.push(line),
            Ok(_) => {}
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    workers.stop(StopOrder::now());
    workers.join();
    let shares = probes.lock().unwrap().clone();
    assert_eq!(shares.iter().sum::<usize>(), 4);
    assert!(shares.iter().all(|&share| share > 0), "{shares:?}");
    down.sort();
    for (line, name) in down.iter().zip(names) {
        assert!(
            line.starts_with(&format!("Server be/{name} is DOWN, reason: Layer4")),
            "{line}"
        );
    }
    assert_eq!(down.len(), 4);
    assert_eq!(fixture.backend(0).usable_servers(), (0, 0));
}
