//! What an operator reads of a plan.

use std::time::Duration;

use ballast_topology::CpuPolicy;

use super::*;
use crate::change::diff;
use crate::{
    Address, Bind, Facility, Frontend, Global, Level, LogEndpoint, LogTarget, PortSpec, Route,
    RouteTarget, Server,
};

fn config(change: impl FnOnce(&mut Backend, &mut Server)) -> Config {
    let mut backend = Backend::default();
    backend.common.name = "be".into();
    let mut server = Server::new("s1".into(), Address::Unix("/s".into()));
    change(&mut backend, &mut server);
    backend.servers.push(Arc::new(server));
    Config {
        backends: vec![Arc::new(backend)],
        ..Config::default()
    }
}

#[test]
fn a_plan_names_what_changes_in_the_operators_words() {
    let old = config(|_, _| {});
    let new = config(|backend, server| {
        backend.retry_count_max = 7;
        backend.common.id = 4;
        backend.balance = crate::Balance::LeastConnections;
        server.address = Address::Inet("127.0.0.1:80".parse().unwrap());
        (server.weight, server.connection_count_max) = (5, 100);
        server.checks.enabled = true;
    });
    let lines: Vec<String> = lines(&old, &diff(&old, &new))
        .iter()
        .map(PlanLine::to_string)
        .collect();
    assert_eq!(
        lines,
        [
            "~ backend be: balance roundrobin -> leastconn, id 0 -> 4, retries 0 -> 7",
            "~ server be/s1: address /s -> 127.0.0.1:80, checks, maxconn 0 -> 100, weight 1 -> 5",
        ]
    );
    let origin = |line| crate::Origin {
        file: "a.cfg".into(),
        line,
    };
    let bind = |line| Bind {
        origin: origin(line),
        ..Bind::new(Address::Unix("/b".into()))
    };
    let front = |line, max| {
        let mut front = Frontend::default();
        (front.common.name, front.common.origin) = ("fe".into(), origin(line));
        (front.binds, front.connection_count_max) = (vec![bind(line + 1)], max);
        Config {
            frontends: vec![Arc::new(front)],
            ..Config::default()
        }
    };
    let (was, is) = (front(1, None), front(8, Some(5)));
    let moved: Vec<String> = super::lines(&was, &diff(&was, &is))
        .iter()
        .map(PlanLine::to_string)
        .collect();
    assert_eq!(moved, ["~ frontend fe: maxconn unset -> 5"]);
    let gone: Vec<String> = super::lines(&new, &diff(&new, &Config::default()))
        .iter()
        .map(PlanLine::to_string)
        .collect();
    assert_eq!(gone, ["- backend be"]);
}

/// What is shown of a change, and the change.
type Row<T> = (&'static str, fn(&mut T));

const OF_SERVERS: &[Row<Server>] = &[
    ("maxconn 0 -> 7", |one| one.connection_count_max = 7),
    ("minconn 0 -> 7", |one| one.connection_count_min = 7),
    ("maxqueue 0 -> 7", |one| one.queue_count_max = 7),
    ("slowstart 0ns -> 7s", |one| one.slow_start = SEVEN_SECONDS),
    ("pool-purge-delay 5s -> 7s", |one| {
        one.idle_purge_delay = SEVEN_SECONDS
    }),
    ("idle-ping unset -> 7s", |one| {
        one.idle_ping = Some(SEVEN_SECONDS)
    }),
    ("pool-max-conn unset -> 7", |one| {
        one.idle_count_max = Some(7)
    }),
    ("pool-conn-name", |one| {
        one.pool_connection_name = Some(ballast_expr::Expr::parse("str(a)").unwrap())
    }),
    ("max-reuse unset -> 7", |one| one.reuse_count_max = Some(7)),
    ("redir unset -> http://a", |one| {
        one.redirect_prefix = Some("http://a".into())
    }),
    ("cc unset -> reno", |one| {
        one.congestion_algorithm = Some("reno".into())
    }),
    ("tfo false -> true", |one| one.tcp_fast_open = true),
    ("strict-maxconn false -> true", |one| {
        one.has_strict_maxconn = true
    }),
    ("tcp-ut unset -> 7s", |one| {
        one.tcp_user_timeout = Some(SEVEN_SECONDS)
    }),
    ("port Fixed -> 7", |one| {
        one.port_mapping = PortSpec::Offset(7)
    }),
];

const OF_BACKENDS: &[Row<Backend>] = &[
    ("fullconn unset -> 7", |one| one.full_connections = Some(7)),
    ("retries 0 -> 7", |one| one.retry_count_max = 7),
    ("log", |one| one.common.log_targets.push(log_target())),
];

const OF_FRONTENDS: &[Row<Frontend>] = &[
    ("bind", |one| {
        one.binds.push(Bind::new(Address::Unix("/b".into())))
    }),
    ("maxconn unset -> 7", |one| {
        one.connection_count_max = Some(7)
    }),
    ("rate-limit sessions unset -> 7", |one| {
        one.session_rate_max = Some(7)
    }),
    ("max-session-srv-conns unset -> 7", |one| {
        one.kept_connection_count_max = Some(7)
    }),
    ("use_backend", |one| one.routes.push(route())),
    ("log", |one| one.common.log_targets.push(log_target())),
];

const OF_GLOBAL: &[Row<Global>] = &[
    ("nbthread unset -> 7", |one| one.cpu.thread_count = Some(7)),
    ("thread-groups unset -> 2", |one| {
        one.cpu.group_count = Some(2)
    }),
    ("cpu-policy first-usable-node -> resource", |one| {
        one.cpu.policy = CpuPolicy::Resource
    }),
    ("max-threads-per-group unset -> 7", |one| {
        one.cpu.group_threads_max = Some(7)
    }),
    ("thread-group", |one| {
        one.cpu.thread_group(&["1", "1-2"]).unwrap();
    }),
    ("cpu-map", |one| one.cpu.cpu_map(&["1", "0"]).unwrap()),
    ("cpu-set", |one| one.cpu.cpu_set(&["reset"]).unwrap()),
    ("numa-cpu-mapping true -> false", |one| {
        one.cpu.numa_mapping = false
    }),
    ("maxconn unset -> 7", |one| {
        one.connection_count_max = Some(7)
    }),
    ("log", |one| one.log_targets.push(log_target())),
];

const SEVEN_SECONDS: Duration = Duration::from_secs(7);

fn route() -> Route {
    Route {
        target: RouteTarget::Static("be".into()),
        condition: None,
    }
}

fn log_target() -> LogTarget {
    LogTarget {
        endpoint: LogEndpoint::Unix("/dev/log".into()),
        line_bytes_max: 1024,
        format: None,
        sample: None,
        profile: None,
        facility: Facility(16),
        level_max: Level::Debug,
        level_min: None,
    }
}

fn with_frontend(change: fn(&mut Frontend)) -> Config {
    let mut frontend = Frontend::default();
    change(&mut frontend);
    Config {
        frontends: vec![Arc::new(frontend)],
        ..Config::default()
    }
}

fn with_global(change: fn(&mut Global)) -> Config {
    let mut global = Global::default();
    change(&mut global);
    Config {
        global: Arc::new(global),
        ..Config::default()
    }
}

/// What the plan says to differ, where it has one line.
fn shown(old: &Config, new: &Config) -> String {
    match &lines(old, &diff(old, new))[..] {
        [line] => line.how.join(", "),
        lines => panic!("not one line: {lines:?}"),
    }
}

/// The names of fields come from debug output: a rename of one must not change what an operator
/// reads.
#[test]
fn each_field_of_the_table_is_shown_by_its_word() {
    let plain = config(|_, _| {});
    for (wanted, change) in OF_SERVERS {
        let new = config(|_, server| change(server));
        assert_eq!(shown(&plain, &new), *wanted);
    }
    for (wanted, change) in OF_BACKENDS {
        let new = config(|backend, _| change(backend));
        assert_eq!(shown(&plain, &new), *wanted);
    }
    for (wanted, change) in OF_FRONTENDS {
        let old = with_frontend(|_| {});
        assert_eq!(shown(&old, &with_frontend(*change)), *wanted);
    }
    for (wanted, change) in OF_GLOBAL {
        assert_eq!(shown(&Config::default(), &with_global(*change)), *wanted);
    }
    let tried = OF_SERVERS.iter().map(|(wanted, _)| *wanted);
    let tried = tried.chain(OF_BACKENDS.iter().map(|(wanted, _)| *wanted));
    let tried = tried.chain(OF_FRONTENDS.iter().map(|(wanted, _)| *wanted));
    let tried = tried.chain(OF_GLOBAL.iter().map(|(wanted, _)| *wanted));
    let tried: Vec<&str> = tried.collect();
    for (field, word) in WORDS {
        let is_tried = tried.iter().any(|shown| {
            let after = shown.strip_prefix(word);
            after.is_some_and(|after| after.is_empty() || after.starts_with(' '))
        });
        assert!(is_tried, "no row sets {field}");
    }
}
