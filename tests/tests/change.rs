//! Changes at run time: whatever a change does not name is not affected.
//!
//! Only Ballast is tested here: HAProxy has no equivalent, and the table of `bench/chaos` shows
//! what it does instead.

use std::collections::BTreeMap;
use std::fs;

use ballast_tests::fixture::{
    Fixture, ask_slowly, configuration, one_waits, patient, servers, site, until_requested,
};
use ballast_tests::ports::is_listening;
use ballast_tests::{Client, Load, Origin, Program, Proxy, eventually, free_port};
use rustix::process::Signal;

/// The `n`th change: one of every kind in turn.
fn change(fixture: &Fixture, n: usize, site: &dyn Fn(&str, &str) -> String, spare: u16) -> String {
    let api = &fixture.api;
    let server = format!("app/d{n}");
    match n % 10 {
        0 => api.ask(&format!("set server app/s1 weight {}", 1 + n % 200)),
        1 => api.ask(&format!(
            "add server {server} 127.0.0.1:{spare} weight 3; enable server {server}"
        )),
        2 => {
            let server = format!("app/d{}", n - 1);
            api.ask(&format!(
                "disable server {server}; wait 5s srv-removable {server}; del server {server}"
            ))
        }
        3 => fixture.apply(&site(&format!(" timeout client {}s", 20 + n), "")),
        4 => fixture.apply(&site(
            &format!(" http-request set-header X-Turn {n}\n http-response set-header X-Turn {n}"),
            "",
        )),
        5 => {
            let port = free_port();
            let said = api.ask(&format!(
                "add frontend extra{n} from web <<\n bind 127.0.0.1:{port}\n default_backend app\n"
            ));
            assert_eq!(Client::get_once(port, "/").status, 200, "{said}");
            let gone = api.ask(&format!("del frontend extra{n}"));
            assert!(!is_listening(port), "{gone}");
            format!("{said}\n{gone}")
        }
        6 => api.ask(&format!(
            "add backend extra{n} from web <<\n server x 127.0.0.1:{spare}\n"
        )),
        7 => api.ask(&format!("del backend extra{}", n - 1)),
        8 => {
            let words = ["leastconn", "roundrobin", "source", "random"];
            let balance = format!(" balance {}\n retries {}", words[n / 10 % 4], n % 7);
            fixture.apply(&site("", &balance))
        }
        _ => {
            fixture.write(&site(&format!(" maxconn {}", 500 + n), ""));
            api.ask("reload")
        }
    }
}

/// Texts that no response to a successful change contains.
fn is_refusal(said: &str) -> bool {
    let words = [
        "Success=0",
        "ALERT",
        "No such",
        "Failed",
        "Unknown",
        "Require",
        "cannot",
        "not find",
        "already",
    ];
    words.iter().any(|word| said.contains(word)) || said.is_empty()
}

#[test]
fn a_hundred_changes_of_every_kind_cost_no_request() {
    let origins = [Origin::saying("one"), Origin::saying("two")];
    let lines = servers(&[&origins[0], &origins[1]]);
    let whole = |front: &str, back: &str| site(front, &format!("{back}\n{lines}"));
    let fixture = Fixture::start(&whole("", ""));
    let target = format!("127.0.0.1:{}", fixture.port);
    let words = [
        "--no-retry",
        "--rate",
        "1500",
        "--connections",
        "16",
        "--duration",
        "2m",
    ];
    let kept = Load::start(&[&words[..], &[&target]].concat());
    let words = ["connect", "--rate", "100", "--duration", "2m"];
    let fresh = Load::start(&[&words[..], &[&target]].concat());
    let descriptors = |fixture: &Fixture| fixture.proxy.descriptor_count();
    let mut after_warm_up = 0;
    for n in 0..100 {
        let said = change(&fixture, n, &whole, origins[1].port());
        // `set server` responds with nothing when it succeeds.
        assert!(n % 10 == 0 || !is_refusal(&said), "change {n}: {said}");
        if n == 20 {
            after_warm_up = descriptors(&fixture);
        }
        // The load needs some time between two changes, or it would not overlap with them.
        let _ = fixture.api.ask("wait 20ms");
    }
    assert!(fixture.generation() > 100, "{}", fixture.generation());
    for load in [kept, fresh] {
        let counted = load.finish();
        assert!(counted.ok > 200, "{}", counted.json);
        assert_eq!(counted.failed, 0, "{}", counted.json);
        assert_eq!(counted.retried, 0, "{}", counted.json);
    }
    // How many connections are open at once depends on the machine: compare afterwards.
    eventually("nothing is left behind", || {
        descriptors(&fixture) <= after_warm_up + 24
    });
}

#[test]
fn a_restart_in_the_place_of_a_change_would_be_seen() {
    let origin = Origin::saying("one");
    let lines = site("", &servers(&[&origin]));
    let mut fixture = Fixture::start(&lines);
    let target = format!("127.0.0.1:{}", fixture.port);
    let load = Load::start(&["--no-retry", "--duration", "1m", &target]);
    until_requested(&origin, 100);
    fixture.proxy.signal(Signal::TERM);
    let _ = fixture.proxy.wait();
    let text = configuration(&lines, fixture.port);
    let _second = Proxy::start(&Program::ballast(), &text, &[fixture.port]);
    assert!(load.finish().failed > 0, "nothing fails: it proves nothing");
}

#[test]
fn the_same_file_again_has_no_effect() {
    let origin = Origin::saying("one");
    let lines = site(" maxconn 50", &servers(&[&origin]));
    let fixture = Fixture::start(&lines);
    let mut client = fixture.client();
    assert_eq!(client.get("/").text(), "one");
    let before = fixture.api.stat();
    assert_eq!(
        fixture.api.ask("reload"),
        "Success=1\n--\nNothing to change."
    );
    assert_eq!(fixture.apply(&lines), "Nothing to change.");
    assert_eq!(
        fixture.api.ask("apply file haproxy.cfg"),
        "Nothing to change."
    );
    // Comments, the order of words and blank lines do not matter.
    let file = fs::read_to_string(fixture.proxy.directory().join("haproxy.cfg")).unwrap();
    let file = file.replace("\nbackend app", "\n# a word\n\nbackend app # here");
    assert_eq!(fixture.api.apply(&file), "Nothing to change.");
    assert_eq!(fixture.generation(), 1);
    let after = fixture.api.stat();
    let steady = |row: &str, column: &str| assert_eq!(before[row][column], after[row][column]);
    steady("app/s1", "lastchg");
    steady("www/FRONTEND", "stot");
    assert_eq!(client.get("/").text(), "one");
    assert_eq!(origin.connections(), 1, "the idle connection stays");
}

#[test]
fn a_bad_file_changes_nothing_and_names_line_and_word() {
    let origin = Origin::saying("one");
    let fixture = Fixture::start(&site("", &servers(&[&origin])));
    let bad = site(" maxcon 50", &servers(&[&origin]));
    fixture.write(&bad);
    let line_number = 1 + configuration(&bad, fixture.port)
        .lines()
        .position(|line| line.contains("maxcon "))
        .expect("the line is there");
    for (command, name) in [
        ("reload", "haproxy.cfg"),
        ("apply file haproxy.cfg", "haproxy.cfg"),
    ] {
        let said = fixture.api.ask(command);
        assert!(said.contains(&format!("[{name}:{line_number}]")), "{said}");
        assert!(said.contains("'maxcon'"), "{said}");
    }
    let said = fixture.apply(&bad);
    assert!(
        said.contains(&format!(":{line_number}]")) && said.contains("'maxcon'"),
        "{said}"
    );
    assert!(fixture.api.ask("reload").starts_with("Success=0"));
    assert_eq!(fixture.generation(), 1);
    // A file that cannot be read, an empty one, one with an address that cannot be listened on.
    assert!(
        fixture
            .api
            .ask("apply file nowhere.cfg")
            .contains("nowhere.cfg")
    );
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let busy = format!(
        "{}frontend more\n bind 127.0.0.1:{port}\n default_backend app\n",
        site(" maxconn 77", &servers(&[&origin]))
    );
    let said = fixture.apply(&busy);
    assert!(is_refusal(&said), "{said}");
    assert_eq!(fixture.generation(), 1);
    assert_eq!(fixture.client().get("/").text(), "one");
}

#[test]
fn counters_never_decrease_over_fifty_applies() {
    let origin = Origin::saying("one");
    let lines = |n: usize| {
        let extra = format!("backend other\n retries {n}\n");
        site("", &servers(&[&origin])) + &extra
    };
    let fixture = Fixture::start(&lines(0));
    let mut client = fixture.client();
    let counted = [
        "stot", "bin", "bout", "hrsp_2xx", "req_tot", "conn_tot", "lbtot", "reuse", "connect",
    ];
    let mut before: BTreeMap<String, u64> = BTreeMap::new();
    for n in 1..=50 {
        assert_eq!(client.get("/").status, 200);
        fixture.apply_well(&lines(n));
        for (row, values) in fixture.api.stat() {
            for column in counted {
                let Ok(now) = values.get(column).map_or("", String::as_str).parse() else {
                    continue;
                };
                let key = format!("{row} {column}");
                let was = before.insert(key.clone(), now).unwrap_or(0);
                assert!(now >= was, "apply {n}: {key} fell from {was} to {now}");
            }
        }
    }
    assert_eq!(fixture.generation(), 51);
    let totals = [
        ("www/FRONTEND", "req_tot", 50),
        ("www/FRONTEND", "stot", 1),
        ("app/s1", "stot", 50),
        ("app/BACKEND", "hrsp_2xx", 50),
    ];
    for (row, column, total) in totals {
        assert_eq!(
            fixture.api.stat_of(row, column),
            total.to_string(),
            "{row} {column}"
        );
    }
    assert_eq!(origin.connections(), 1, "idle connections stay");
    // Of a frontend that is itself changed, too.
    fixture.apply_well(&lines(50).replace("frontend www", "frontend www\n maxconn 70"));
    assert_eq!(fixture.api.stat_of("www/FRONTEND", "req_tot"), "50");
}

#[test]
fn health_and_slow_start_of_unchanged_servers_stay() {
    let origin = Origin::saying("one");
    let port = origin.port();
    let nobody = free_port();
    let lines = |n: usize| {
        let back = format!(
            " retries {n}\n default-server inter 20ms fall 1 rise 1000\n \
             server up 127.0.0.1:{port} check\n server down 127.0.0.1:{nobody} check\n \
             server slow 127.0.0.1:{port} weight 100 slowstart 1h\n"
        );
        site("", &back)
    };
    let fixture = Fixture::start(&lines(0));
    let _ = fixture
        .api
        .ask("disable server app/slow; enable server app/slow");
    let began = std::time::Instant::now();
    while !fixture
        .api
        .stat_of("app/down", "status")
        .starts_with("DOWN")
    {
        assert!(began.elapsed() < ballast_tests::WAIT_MAX, "it is seen down");
    }
    let state = |fixture: &Fixture| {
        let stat = fixture.api.stat();
        let of = |row: &str, column: &str| stat[row][column].clone();
        [
            of("app/up", "status"),
            of("app/down", "status"),
            of("app/down", "chkfail"),
            of("app/down", "chkdown"),
            of("app/slow", "throttle"),
            of("app/slow", "weight"),
        ]
    };
    let before = state(&fixture);
    assert_eq!(before[1], "DOWN");
    assert!(
        !before[4].is_empty() && before[4] != "100",
        "slow start: {before:?}"
    );
    for n in 1..5 {
        fixture.apply_well(&lines(n));
        assert_eq!(state(&fixture), before, "apply {n}");
    }
}

#[test]
fn who_waits_in_a_queue_waits_on_and_is_served() {
    let (origin, go_on) = patient("one");
    let back = format!(" server s1 127.0.0.1:{} maxconn 1\n", origin.port());
    let fixture = Fixture::start(&site("", &back));
    let (mut first, mut second) = one_waits(&fixture, &origin);
    fixture.apply_well(&site(
        " http-response set-header X-New yes",
        &format!(" retries 2\n{back}"),
    ));
    assert_eq!(fixture.api.stat_of("app/BACKEND", "qcur"), "1");
    assert_eq!(fixture.api.stat_of("app/s1", "scur"), "1");
    go_on.send(()).unwrap();
    assert_eq!(first.response().text(), "one");
    assert_eq!(second.response().text(), "one");
    assert_eq!(fixture.api.stat_of("app/BACKEND", "qcur"), "0");
    assert_eq!(fixture.api.stat_of("app/s1", "scur"), "0");
}

#[test]
fn a_maxconn_that_is_raised_lets_in_who_waits() {
    let (origin, go_on) = patient("one");
    let back = |max: u32| format!(" server s1 127.0.0.1:{} maxconn {max}\n", origin.port());
    let fixture = Fixture::start(&site("", &back(1)));
    let (mut first, mut second) = one_waits(&fixture, &origin);
    fixture.apply_well(&site("", &back(2)));
    assert_eq!(second.response().text(), "one");
    go_on.send(()).unwrap();
    assert_eq!(first.response().text(), "one");
}

#[test]
fn cookies_lead_to_the_same_server_after_a_change() {
    let origins = [
        Origin::saying("one"),
        Origin::saying("two"),
        Origin::saying("three"),
    ];
    let lines = |retries: usize, order: &[usize]| {
        let mut back = format!(" retries {retries}\n cookie SRV insert indirect\n");
        for n in order {
            back += &format!(
                " server s{n} 127.0.0.1:{} cookie c{n}\n",
                origins[*n].port()
            );
        }
        site("", &back)
    };
    let fixture = Fixture::start(&lines(1, &[0, 1, 2]));
    let names = ["one", "two", "three"];
    let orders: [&[usize]; 3] = [&[0, 1, 2], &[2, 1, 0], &[1, 2]];
    for (n, order) in orders.iter().enumerate() {
        if n > 0 {
            fixture.apply_well(&lines(n + 1, order));
        }
        for server in *order {
            let mut client = fixture.client();
            client.send(format!(
                "GET / HTTP/1.1\r\nHost: test\r\nCookie: SRV=c{server}\r\n\r\n"
            ));
            assert_eq!(client.response().text(), names[*server], "order {order:?}");
        }
    }
}

#[test]
fn an_exchange_finishes_under_the_generation_it_began_with() {
    let (origin, go_on) = patient("one");
    let lines =
        |n: usize, back: &str| site(&format!(" http-response set-header X-Generation {n}"), back);
    let fixture = Fixture::start(&lines(1, &servers(&[&origin])));
    let mut slow = ask_slowly(&fixture, &origin);
    let mut other = fixture.client();
    assert_eq!(other.get("/").header("x-generation"), Some("1"));
    fixture.apply_well(&lines(2, &servers(&[&origin])));
    // A connection that is kept uses the new rules from its next request on.
    assert_eq!(other.get("/").header("x-generation"), Some("2"));
    go_on.send(()).unwrap();
    let answer = slow.response();
    assert_eq!(
        (answer.header("x-generation"), answer.text().as_str()),
        (Some("1"), "one")
    );
    assert_eq!(slow.get("/").header("x-generation"), Some("2"));
}

#[test]
fn exchanges_of_what_is_removed_finish() {
    let (origin, go_on) = patient("one");
    let stays = Origin::saying("two");
    let both = site(
        "",
        &format!(" balance first\n{}", servers(&[&origin, &stays])),
    );
    let fixture = Fixture::start(&both);
    let mut slow = ask_slowly(&fixture, &origin);
    // A line of the file is removed: the plan says so, and the server finishes its requests.
    let without = both.replace(&format!(" server s1 127.0.0.1:{}\n", origin.port()), "");
    let plan = fixture.api.ask(&format!(
        "show plan <<END\n{}\nEND",
        configuration(&without, fixture.port)
    ));
    assert!(
        plan.contains("- server app/s1 (1 connections may finish)"),
        "{plan}"
    );
    assert!(plan.ends_with("Plan: changes with drains"), "{plan}");
    fixture.apply_well(&without);
    assert_eq!(fixture.client().get("/").text(), "two");
    assert!(!fixture.api.stat().contains_key("app/s1"));
    go_on.send(()).unwrap();
    assert_eq!(slow.response().text(), "one");
    // A server that is added again under its name starts with new state.
    assert_eq!(slow.get("/").text(), "two");
    fixture.apply_well(&both);
    assert_eq!(fixture.api.stat_of("app/s1", "stot"), "0");
    assert_eq!(fixture.api.stat_of("app/s1", "scur"), "0");
}

#[test]
fn plans_say_nothing_or_changes_and_change_nothing() {
    let origin = Origin::saying("one");
    let lines = site("", &servers(&[&origin]));
    let fixture = Fixture::start(&lines);
    assert_eq!(fixture.api.ask("show plan"), "Plan: nothing");
    fixture.write(&lines.replace("frontend www", "frontend www\n maxconn 10"));
    let plan = fixture.api.ask("show plan");
    assert!(plan.contains("~ frontend www: maxconn"), "{plan}");
    assert!(plan.ends_with("Plan: changes"), "{plan}");
    let plan = fixture.api.ask("show plan file haproxy.cfg");
    assert!(plan.ends_with("Plan: changes"), "{plan}");
    assert_eq!(fixture.generation(), 1);
    assert_ne!(fixture.api.stat_of("www/FRONTEND", "slim"), "10");
    fixture.proxy.signal(Signal::USR2);
    let began = std::time::Instant::now();
    while fixture.api.stat_of("www/FRONTEND", "slim") != "10" {
        assert!(
            began.elapsed() < ballast_tests::WAIT_MAX,
            "the signal reloads"
        );
    }
    assert_eq!(fixture.api.ask("show plan"), "Plan: nothing");
}

#[test]
fn the_program_asks_for_a_plan_and_its_exit_code_says_how_much_it_is() {
    let (origin, go_on) = patient("one");
    let lines = site("", &servers(&[&origin]));
    let fixture = Fixture::start(&lines);
    let directory = fixture.proxy.directory().to_string_lossy().into_owned();
    let [socket, file] = ["ctl.sock", "next.cfg"].map(|name| format!("{directory}/{name}"));
    let plan = |lines: &str| {
        fs::write(&file, configuration(lines, fixture.port)).expect("the file is written");
        let done = Program::ballast().run(&["plan", "-f", &file, "-s", &socket]);
        (done.status.code().unwrap_or(-1), done.stdout + &done.stderr)
    };
    assert_eq!(plan(&lines), (0, "Plan: nothing\n".to_owned()));
    let (code, said) = plan(&lines.replace("\nbackend app", "\nbackend app\n retries 7"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("~ backend app: retries 3 -> 7"), "{said}");
    let mut slow = ask_slowly(&fixture, &origin);
    let other = lines.replace(" server s1 ", " server s9 ");
    let (code, said) = plan(&other);
    assert_eq!(code, 3, "{said}");
    let (code, said) = plan(&lines.replace("\nbackend app", "\nbackend app\n retires 7"));
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains(&format!("[{file}:")) && said.contains("'retires'"),
        "{said}"
    );
    let done = Program::ballast().run(&["plan", "-s", "/nowhere/ctl.sock"]);
    assert_eq!(done.status.code(), Some(2), "{}", done.stderr);
    go_on.send(()).unwrap();
    assert_eq!(slow.response().status, 200);
    assert_eq!(fixture.generation(), 1);
}

#[test]
fn a_rollback_puts_the_former_configuration_in_force() {
    let origin = Origin::saying("one");
    let lines = |n: usize| {
        site(
            &format!(" http-response set-header X-Generation {n}"),
            &servers(&[&origin]),
        )
    };
    let fixture = Fixture::start(&lines(1));
    let mut client = fixture.client();
    let mut now = |n: &str| assert_eq!(client.get("/").header("x-generation"), Some(n));
    fixture.apply_well(&lines(2));
    fixture.apply_well(&lines(3));
    now("3");
    let said = fixture.api.ask("rollback 1");
    assert!(said.contains("Generation 4 is in force."), "{said}");
    now("1");
    assert!(fixture.api.ask("rollback 99").contains("No generation 99."));
    let said = fixture.api.ask("rollback 3");
    assert!(said.contains("Generation 5 is in force."), "{said}");
    now("3");
    let shown = fixture.api.ask("show generations");
    assert!(
        shown.lines().any(|line| line.ends_with(" rollback 1")),
        "{shown}"
    );
    assert_eq!(shown.lines().count(), 6, "{shown}");
}

#[test]
fn a_connection_that_left_from_elsewhere_is_used_no_more() {
    let inner = free_port();
    let lines = |server: &str| {
        format!(
            "frontend in\n bind 127.0.0.1:{inner}\n \
             http-request return status 200 content-type text/plain lf-string %[src]\n{}",
            site(
                "",
                &format!(" http-reuse always\n server s 127.0.0.1:{inner} {server}")
            )
        )
    };
    let fixture = Fixture::start(&lines("source 127.0.0.70"));
    let asked = || Client::get_once(fixture.port, "/").text();
    let connects = || {
        let rows = fixture.api.ask("show stat");
        let row = rows.lines().find(|row| row.starts_with("app,s,"));
        let cells: Vec<&str> = row.expect("its row").split(',').collect();
        let titles = rows.lines().next().expect("the titles").split(',');
        let line_number = titles.into_iter().position(|title| title == "connect");
        cells[line_number.expect("a column")].to_owned()
    };
    assert_eq!(
        (asked(), asked()),
        ("127.0.0.70".into(), "127.0.0.70".into())
    );
    assert_eq!(connects(), "1");
    // Options that do not affect connections leave them in use.
    fixture.apply_well(&lines("source 127.0.0.70 weight 7 maxconn 5"));
    assert_eq!(asked(), "127.0.0.70");
    assert_eq!(connects(), "1");
    fixture.apply_well(&lines("source 127.0.0.71"));
    assert_eq!(asked(), "127.0.0.71");
    fixture.apply_well(&lines("source 0.0.0.0 interface lo"));
    assert_eq!(asked(), "127.0.0.1");
    assert_eq!(connects(), "3");
    fixture.apply_well(&lines("tcp-ut 5s"));
    assert_eq!(asked(), "127.0.0.1");
    assert_eq!(connects(), "4");
}
