//! What runs is changed while it serves, and nothing that the change does not name notices.
//!
//! Only Ballast is tested here: HAProxy has nothing like it, and what it does instead stands
//! beside ours in the table of `bench/chaos`.

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use ballast_tests::origin::answer;
use ballast_tests::ports::is_listening;
use ballast_tests::{Client, Desk, Load, Origin, Program, Proxy, Request, free_port};
use rustix::process::Signal;

/// A proxy with a command socket, before servers of the test.
struct House {
    proxy: Proxy,
    desk: Desk,
    port: u16,
}

/// What every configuration here begins with. Timeouts are far longer than any test.
const HEAD: &str = "\
global
    stats socket unix@ctl.sock level admin
defaults web
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
";

impl House {
    /// `lines` follow the defaults; `PORT` in them is a free port, listened on.
    fn start(lines: &str) -> Self {
        let port = free_port();
        let proxy = Proxy::start(&Program::ballast(), &configuration(lines, port), &[port]);
        let desk = Desk::at(proxy.directory().join("ctl.sock"));
        Self { proxy, desk, port }
    }

    /// Puts another text in the place of the file.
    fn write(&self, lines: &str) {
        let file = self.proxy.directory().join("haproxy.cfg");
        fs::write(file, configuration(lines, self.port)).expect("the file is written");
    }

    /// Puts another configuration in force.
    fn apply(&self, lines: &str) -> String {
        self.desk.apply(&configuration(lines, self.port))
    }

    /// As [`Self::apply`], where it must succeed.
    fn apply_well(&self, lines: &str) {
        let said = self.apply(lines);
        assert!(said.contains("is in force."), "{said}");
    }

    fn client(&self) -> Client {
        Client::connect(self.port)
    }

    /// The generation in force.
    fn generation(&self) -> u64 {
        let shown = self.desk.ask("show generations");
        let last = shown.lines().last().expect("there is always one");
        let number = last.split(' ').next().map(str::parse);
        number.expect("a word").expect("it begins with a number")
    }
}

fn configuration(lines: &str, port: u16) -> String {
    format!("{HEAD}{}", lines.replace("PORT", &port.to_string()))
}

/// A frontend with these lines before a backend with those.
fn site(front: &str, back: &str) -> String {
    format!(
        "frontend www\n bind 127.0.0.1:PORT\n default_backend app\n{front}\nbackend app\n{back}\n"
    )
}

/// Server lines, one for each origin.
fn servers(origins: &[&Origin]) -> String {
    origins
        .iter()
        .zip(1..)
        .map(|(origin, n)| format!(" server s{n} 127.0.0.1:{}\n", origin.port()))
        .collect()
}

/// An origin whose `/slow` waits for a word, and then answers as all else: with its name.
fn patient(name: &'static str) -> (Origin, Sender<()>) {
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    let origin = Origin::start(move |request: &Request| {
        if request.target() == "/slow" {
            // A test that ends without the word lets it go too.
            let _ = receiver
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
        }
        answer(200, name)
    });
    (origin, sender)
}

/// Waits until the origin has got that many requests.
fn until_requested(origin: &Origin, count: usize) {
    let began = std::time::Instant::now();
    while origin.requests().len() < count {
        assert!(
            began.elapsed() < ballast_tests::WAIT_MAX,
            "the request comes"
        );
        std::thread::yield_now();
    }
}

/// Begins a request whose answer takes its time.
fn ask_slowly(house: &House, origin: &Origin) -> Client {
    let before = house.desk.stat_of("app/BACKEND", "scur");
    let mut client = house.client();
    client.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
    let began = std::time::Instant::now();
    let connections = origin.connections();
    while house.desk.stat_of("app/BACKEND", "scur") == before
        || (connections == 0 && origin.connections() == 0)
    {
        assert!(began.elapsed() < ballast_tests::WAIT_MAX, "it is under way");
    }
    client
}

/// A change of each kind, the `n`th time.
fn change(house: &House, n: usize, site: &dyn Fn(&str, &str) -> String, spare: u16) -> String {
    let desk = &house.desk;
    let server = format!("app/d{n}");
    match n % 10 {
        0 => desk.ask(&format!("set server app/s1 weight {}", 1 + n % 200)),
        1 => desk.ask(&format!(
            "add server {server} 127.0.0.1:{spare} weight 3; enable server {server}"
        )),
        2 => {
            let server = format!("app/d{}", n - 1);
            desk.ask(&format!(
                "disable server {server}; wait 5s srv-removable {server}; del server {server}"
            ))
        }
        3 => house.apply(&site(&format!(" timeout client {}s", 20 + n), "")),
        4 => house.apply(&site(
            &format!(" http-request set-header X-Turn {n}\n http-response set-header X-Turn {n}"),
            "",
        )),
        5 => {
            let port = free_port();
            let said = desk.ask(&format!(
                "add frontend extra{n} from web <<\n bind 127.0.0.1:{port}\n default_backend app\n"
            ));
            assert_eq!(Client::get_once(port, "/").status, 200, "{said}");
            let gone = desk.ask(&format!("del frontend extra{n}"));
            assert!(!is_listening(port), "{gone}");
            format!("{said}\n{gone}")
        }
        6 => desk.ask(&format!(
            "add backend extra{n} from web <<\n server x 127.0.0.1:{spare}\n"
        )),
        7 => desk.ask(&format!("del backend extra{}", n - 1)),
        8 => {
            let words = ["leastconn", "roundrobin", "source", "random"];
            let balance = format!(" balance {}\n retries {}", words[n / 10 % 4], n % 7);
            house.apply(&site("", &balance))
        }
        _ => {
            house.write(&site(&format!(" maxconn {}", 500 + n), ""));
            desk.ask("reload")
        }
    }
}

/// What no answer to a change that was made contains.
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
    let house = House::start(&whole("", ""));
    let target = format!("127.0.0.1:{}", house.port);
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
    let descriptors = |house: &House| house.proxy.descriptor_count();
    let mut after_warm_up = 0;
    for n in 0..100 {
        let said = change(&house, n, &whole, origins[1].port());
        // `set server` says nothing when it was done.
        assert!(n % 10 == 0 || !is_refusal(&said), "change {n}: {said}");
        if n == 20 {
            after_warm_up = descriptors(&house);
        }
        // The load needs a breath between two changes, or it meets none of them.
        let _ = house.desk.ask("wait 20ms");
    }
    assert!(house.generation() > 100, "{}", house.generation());
    let now = descriptors(&house);
    assert!(now <= after_warm_up + 24, "{after_warm_up} to {now}");
    for load in [kept, fresh] {
        let counted = load.finish();
        assert!(counted.ok > 200, "{}", counted.json);
        assert_eq!(counted.failed, 0, "{}", counted.json);
        assert_eq!(counted.retried, 0, "{}", counted.json);
    }
}

#[test]
fn a_restart_in_the_place_of_a_change_would_be_seen() {
    let origin = Origin::saying("one");
    let lines = site("", &servers(&[&origin]));
    let mut house = House::start(&lines);
    let target = format!("127.0.0.1:{}", house.port);
    let load = Load::start(&["--no-retry", "--duration", "1m", &target]);
    until_requested(&origin, 100);
    house.proxy.signal(Signal::TERM);
    let _ = house.proxy.wait();
    let text = configuration(&lines, house.port);
    let _second = Proxy::start(&Program::ballast(), &text, &[house.port]);
    assert!(load.finish().failed > 0, "nothing fails: it proves nothing");
}

#[test]
fn the_same_file_again_has_no_effect() {
    let origin = Origin::saying("one");
    let lines = site(" maxconn 50", &servers(&[&origin]));
    let house = House::start(&lines);
    let mut client = house.client();
    assert_eq!(client.get("/").text(), "one");
    let before = house.desk.stat();
    assert_eq!(
        house.desk.ask("reload"),
        "Success=1\n--\nNothing to change."
    );
    assert_eq!(house.apply(&lines), "Nothing to change.");
    assert_eq!(
        house.desk.ask("apply file haproxy.cfg"),
        "Nothing to change."
    );
    // Comments, order of words and blank lines say nothing.
    let file = fs::read_to_string(house.proxy.directory().join("haproxy.cfg")).unwrap();
    let file = file.replace("\nbackend app", "\n# a word\n\nbackend app # here");
    assert_eq!(house.desk.apply(&file), "Nothing to change.");
    assert_eq!(house.generation(), 1);
    let after = house.desk.stat();
    let steady = |row: &str, column: &str| assert_eq!(before[row][column], after[row][column]);
    steady("app/s1", "lastchg");
    steady("www/FRONTEND", "stot");
    assert_eq!(client.get("/").text(), "one");
    assert_eq!(origin.connections(), 1, "the idle connection stays");
}

#[test]
fn a_bad_file_changes_nothing_and_names_line_and_word() {
    let origin = Origin::saying("one");
    let house = House::start(&site("", &servers(&[&origin])));
    let bad = site(" maxcon 50", &servers(&[&origin]));
    house.write(&bad);
    let place = 1 + configuration(&bad, house.port)
        .lines()
        .position(|line| line.contains("maxcon "))
        .expect("the line is there");
    for (command, name) in [
        ("reload", "haproxy.cfg"),
        ("apply file haproxy.cfg", "haproxy.cfg"),
    ] {
        let said = house.desk.ask(command);
        assert!(said.contains(&format!("[{name}:{place}]")), "{said}");
        assert!(said.contains("'maxcon'"), "{said}");
    }
    let said = house.apply(&bad);
    assert!(
        said.contains(&format!(":{place}]")) && said.contains("'maxcon'"),
        "{said}"
    );
    assert!(house.desk.ask("reload").starts_with("Success=0"));
    assert_eq!(house.generation(), 1);
    // A file that cannot be read, an empty one, one that listens nowhere new but cannot.
    assert!(
        house
            .desk
            .ask("apply file nowhere.cfg")
            .contains("nowhere.cfg")
    );
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let busy = format!(
        "{}frontend more\n bind 127.0.0.1:{port}\n default_backend app\n",
        site(" maxconn 77", &servers(&[&origin]))
    );
    let said = house.apply(&busy);
    assert!(is_refusal(&said), "{said}");
    assert_eq!(house.generation(), 1);
    assert_eq!(house.client().get("/").text(), "one");
}

#[test]
fn counters_never_decrease_over_fifty_applies() {
    let origin = Origin::saying("one");
    let lines = |n: usize| {
        let extra = format!("backend other\n retries {n}\n");
        site("", &servers(&[&origin])) + &extra
    };
    let house = House::start(&lines(0));
    let mut client = house.client();
    let counted = [
        "stot", "bin", "bout", "hrsp_2xx", "req_tot", "conn_tot", "lbtot", "reuse", "connect",
    ];
    let mut before: BTreeMap<String, u64> = BTreeMap::new();
    for n in 1..=50 {
        assert_eq!(client.get("/").status, 200);
        house.apply_well(&lines(n));
        for (row, values) in house.desk.stat() {
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
    assert_eq!(house.generation(), 51);
    let totals = [
        ("www/FRONTEND", "req_tot", 50),
        ("www/FRONTEND", "stot", 1),
        ("app/s1", "stot", 50),
        ("app/BACKEND", "hrsp_2xx", 50),
    ];
    for (row, column, total) in totals {
        assert_eq!(
            house.desk.stat_of(row, column),
            total.to_string(),
            "{row} {column}"
        );
    }
    assert_eq!(origin.connections(), 1, "idle connections stay");
    // Of a frontend that is changed itself too.
    house.apply_well(&lines(50).replace("frontend www", "frontend www\n maxconn 70"));
    assert_eq!(house.desk.stat_of("www/FRONTEND", "req_tot"), "50");
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
    let house = House::start(&lines(0));
    let _ = house
        .desk
        .ask("disable server app/slow; enable server app/slow");
    let began = std::time::Instant::now();
    while !house.desk.stat_of("app/down", "status").starts_with("DOWN") {
        assert!(began.elapsed() < ballast_tests::WAIT_MAX, "it is seen down");
    }
    let state = |house: &House| {
        let stat = house.desk.stat();
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
    let before = state(&house);
    assert_eq!(before[1], "DOWN");
    assert!(
        !before[4].is_empty() && before[4] != "100",
        "slow start: {before:?}"
    );
    for n in 1..5 {
        house.apply_well(&lines(n));
        assert_eq!(state(&house), before, "apply {n}");
    }
}

#[test]
fn who_waits_in_a_queue_waits_on_and_is_served() {
    let (origin, go_on) = patient("one");
    let back = format!(" server s1 127.0.0.1:{} maxconn 1\n", origin.port());
    let house = House::start(&site("", &back));
    let mut first = ask_slowly(&house, &origin);
    let mut second = house.client();
    second.send("GET /second HTTP/1.1\r\nHost: test\r\n\r\n");
    let began = std::time::Instant::now();
    while house.desk.stat_of("app/BACKEND", "qcur") != "1" {
        assert!(began.elapsed() < ballast_tests::WAIT_MAX, "it is queued");
    }
    house.apply_well(&site(
        " http-response set-header X-New yes",
        &format!(" retries 2\n{back}"),
    ));
    assert_eq!(house.desk.stat_of("app/BACKEND", "qcur"), "1");
    assert_eq!(house.desk.stat_of("app/s1", "scur"), "1");
    go_on.send(()).unwrap();
    assert_eq!(first.response().text(), "one");
    assert_eq!(second.response().text(), "one");
    assert_eq!(house.desk.stat_of("app/BACKEND", "qcur"), "0");
    assert_eq!(house.desk.stat_of("app/s1", "scur"), "0");
}

#[test]
fn a_maxconn_that_is_raised_lets_in_who_waits() {
    let (origin, go_on) = patient("one");
    let back = |max: u32| format!(" server s1 127.0.0.1:{} maxconn {max}\n", origin.port());
    let house = House::start(&site("", &back(1)));
    let mut first = ask_slowly(&house, &origin);
    let mut second = house.client();
    second.send("GET /second HTTP/1.1\r\nHost: test\r\n\r\n");
    let began = std::time::Instant::now();
    while house.desk.stat_of("app/BACKEND", "qcur") != "1" {
        assert!(began.elapsed() < ballast_tests::WAIT_MAX, "it is queued");
    }
    house.apply_well(&site("", &back(2)));
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
    let house = House::start(&lines(1, &[0, 1, 2]));
    let names = ["one", "two", "three"];
    let orders: [&[usize]; 3] = [&[0, 1, 2], &[2, 1, 0], &[1, 2]];
    for (n, order) in orders.iter().enumerate() {
        if n > 0 {
            house.apply_well(&lines(n + 1, order));
        }
        for server in *order {
            let mut client = house.client();
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
    let house = House::start(&lines(1, &servers(&[&origin])));
    let mut slow = ask_slowly(&house, &origin);
    let mut other = house.client();
    assert_eq!(other.get("/").header("x-generation"), Some("1"));
    house.apply_well(&lines(2, &servers(&[&origin])));
    // A connection that is kept goes by the new rules from its next request on.
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
    let house = House::start(&both);
    let mut slow = ask_slowly(&house, &origin);
    // A line of the file goes: the plan says so, the server ends what it has.
    let without = both.replace(&format!(" server s1 127.0.0.1:{}\n", origin.port()), "");
    let plan = house.desk.ask(&format!(
        "show plan <<END\n{}\nEND",
        configuration(&without, house.port)
    ));
    assert!(
        plan.contains("- server app/s1 (1 connections may finish)"),
        "{plan}"
    );
    assert!(plan.ends_with("Plan: changes with drains"), "{plan}");
    house.apply_well(&without);
    assert_eq!(house.client().get("/").text(), "two");
    assert!(!house.desk.stat().contains_key("app/s1"));
    go_on.send(()).unwrap();
    assert_eq!(slow.response().text(), "one");
    // What comes back under its name begins anew.
    assert_eq!(slow.get("/").text(), "two");
    house.apply_well(&both);
    assert_eq!(house.desk.stat_of("app/s1", "stot"), "0");
    assert_eq!(house.desk.stat_of("app/s1", "scur"), "0");
}

#[test]
fn plans_say_nothing_or_changes_and_change_nothing() {
    let origin = Origin::saying("one");
    let lines = site("", &servers(&[&origin]));
    let house = House::start(&lines);
    assert_eq!(house.desk.ask("show plan"), "Plan: nothing");
    house.write(&lines.replace("frontend www", "frontend www\n maxconn 10"));
    let plan = house.desk.ask("show plan");
    assert!(plan.contains("~ frontend www: maxconn"), "{plan}");
    assert!(plan.ends_with("Plan: changes"), "{plan}");
    let plan = house.desk.ask("show plan file haproxy.cfg");
    assert!(plan.ends_with("Plan: changes"), "{plan}");
    assert_eq!(house.generation(), 1);
    assert_ne!(house.desk.stat_of("www/FRONTEND", "slim"), "10");
    house.proxy.signal(Signal::USR2);
    let began = std::time::Instant::now();
    while house.desk.stat_of("www/FRONTEND", "slim") != "10" {
        assert!(
            began.elapsed() < ballast_tests::WAIT_MAX,
            "the signal reloads"
        );
    }
    assert_eq!(house.desk.ask("show plan"), "Plan: nothing");
}

#[test]
fn the_program_asks_for_a_plan_and_its_exit_code_says_how_much_it_is() {
    let (origin, go_on) = patient("one");
    let lines = site("", &servers(&[&origin]));
    let house = House::start(&lines);
    let directory = house.proxy.directory().to_string_lossy().into_owned();
    let [socket, file] = ["ctl.sock", "next.cfg"].map(|name| format!("{directory}/{name}"));
    let plan = |lines: &str| {
        fs::write(&file, configuration(lines, house.port)).expect("the file is written");
        let done = Program::ballast().run(&["plan", "-f", &file, "-s", &socket]);
        (done.status.code().unwrap_or(-1), done.stdout + &done.stderr)
    };
    assert_eq!(plan(&lines), (0, "Plan: nothing\n".to_owned()));
    let (code, said) = plan(&lines.replace("\nbackend app", "\nbackend app\n retries 7"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("~ backend app: retries 3 -> 7"), "{said}");
    let mut slow = ask_slowly(&house, &origin);
    let other = lines.replace(" server s1 ", " server s9 ");
    let (code, said) = plan(&other);
    assert_eq!(code, 2, "{said}");
    let (code, said) = plan(&lines.replace("\nbackend app", "\nbackend app\n retires 7"));
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains(&format!("[{file}:")) && said.contains("'retires'"),
        "{said}"
    );
    let done = Program::ballast().run(&["plan", "-s", "/nowhere/ctl.sock"]);
    assert_eq!(done.status.code(), Some(3), "{}", done.stderr);
    go_on.send(()).unwrap();
    assert_eq!(slow.response().status, 200);
    assert_eq!(house.generation(), 1);
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
    let house = House::start(&lines(1));
    let mut client = house.client();
    let mut now = |n: &str| assert_eq!(client.get("/").header("x-generation"), Some(n));
    house.apply_well(&lines(2));
    house.apply_well(&lines(3));
    now("3");
    let said = house.desk.ask("rollback 1");
    assert!(said.contains("Generation 4 is in force."), "{said}");
    now("1");
    assert!(house.desk.ask("rollback 99").contains("No generation 99."));
    let said = house.desk.ask("rollback 3");
    assert!(said.contains("Generation 5 is in force."), "{said}");
    now("3");
    let shown = house.desk.ask("show generations");
    assert!(
        shown.lines().any(|line| line.ends_with(" rollback 1")),
        "{shown}"
    );
    assert_eq!(shown.lines().count(), 6, "{shown}");
}

#[test]
fn hands_stay_and_the_file_wins_where_it_changed() {
    let origins = [Origin::saying("one"), Origin::saying("two")];
    let lines = |weight: u32, extra: &str| {
        let back = format!(
            " server s1 127.0.0.1:{} weight {weight}\n server s2 127.0.0.1:{} weight 5\n{extra}",
            origins[0].port(),
            origins[1].port()
        );
        site("", &back)
    };
    let house = House::start(&lines(1, ""));
    let desk = &house.desk;
    assert_eq!(desk.ask("set server app/s1 weight 7"), "");
    assert_eq!(desk.ask("set server app/s2 weight 8"), "");
    assert_eq!(desk.ask("set server app/s2 state drain"), "");
    let added = format!(
        "add server app/mine 127.0.0.1:{} weight 9",
        origins[0].port()
    );
    assert_eq!(desk.ask(&added), "New server registered.");
    assert_eq!(desk.ask("enable server app/mine"), "");
    let hands = desk.ask("show hands");
    for word in ["app/s1", "app/s2", "app/mine"] {
        assert!(hands.contains(word), "{word}: {hands}");
    }
    // The file changes s1 and adds a line; s2 and mine are as hands left them.
    house.write(&lines(3, " server s3 127.0.0.1:1 weight 4\n"));
    let said = desk.ask("reload");
    assert!(said.starts_with("Success=1"), "{said}");
    let weight = |name: &str| house.desk.stat_of(&format!("app/{name}"), "weight");
    assert_eq!(
        [weight("s1"), weight("s2"), weight("mine"), weight("s3")],
        ["3", "8", "9", "4"]
    );
    assert!(desk.stat_of("app/s2", "status").contains("DRAIN"));
    // A file that removes what a hand set removes it; `reset` drops what hands added.
    let said = desk.ask("reload reset");
    assert!(said.starts_with("Success=1"), "{said}");
    assert!(!desk.stat().contains_key("app/mine"), "{said}");
    assert_eq!(
        weight("s2"),
        "5",
        "reset drops what was set by hand: {said}"
    );
    assert_eq!(desk.stat_of("app/s2", "status"), "no check");
}

#[test]
fn the_idioms_of_adding_and_deleting_servers_answer_as_recorded() {
    let origin = Origin::saying("one");
    let back = format!(
        " server-template srv 1-4 127.0.0.1:{} check port {} disabled\n server one 127.0.0.1:{}\n",
        origin.port(),
        origin.port(),
        origin.port()
    );
    let house = House::start(&site("", &back));
    let port = origin.port();
    let demo = "app/demo";
    let said: &[(String, &str)] = &[
        (
            format!(
                "add server {demo} 127.0.0.1:{port} check weight 10 maxconn 200 id 123 \
                 init-state down port {port} check"
            ),
            "New server registered.",
        ),
        (
            format!("add server app/x 127.0.0.1:{port} no-ssl"),
            "'no-ssl' option is not accepted for dynamic server",
        ),
        (
            format!("add server app/y 127.0.0.1:{port} resolvers d"),
            "'resolvers' option is not accepted for dynamic server",
        ),
        (
            format!("add server app/z 127.0.0.1:{port} weight 10 id 123"),
            "'id' : custom id 123 already used at (null):0 ('server demo').",
        ),
        (format!("enable health {demo}"), ""),
        (format!("enable server {demo}"), ""),
        (format!("set server {demo} weight 30"), ""),
        (format!("get weight {demo}"), "30 (initial 10)"),
        (
            format!("del server {demo}"),
            "Only servers in maintenance mode can be deleted.",
        ),
        (
            format!("wait 100ms srv-removable {demo}"),
            "Failed. Only servers in maintenance mode can be deleted.",
        ),
        (format!("disable server {demo}"), ""),
        (format!("shutdown sessions server {demo}"), ""),
        (format!("wait 100ms srv-removable {demo}"), "Done."),
        (format!("del server {demo}"), "Server deleted."),
        ("set server app/srv1 state ready".to_owned(), ""),
        (
            "add backend be_new from web mode http".to_owned(),
            "New backend registered.",
        ),
        ("publish backend be_new".to_owned(), "Backend published."),
        (
            "unpublish backend be_new".to_owned(),
            "Backend unpublished.",
        ),
        ("del backend be_new".to_owned(), "Backend deleted."),
    ];
    for (command, answer) in said {
        assert_eq!(house.desk.ask(command), *answer, "{command}");
    }
}

#[test]
fn a_slot_of_a_template_is_filled_and_emptied() {
    let origins = [Origin::saying("one"), Origin::saying("two")];
    let back = " server-template slot 1-3 127.0.0.1:1 disabled\n";
    let house = House::start(&site("", back));
    let desk = &house.desk;
    assert_eq!(house.client().get("/").status, 503);
    for (n, origin) in origins.iter().enumerate() {
        let slot = format!("app/slot{}", n + 1);
        let said = desk.ask(&format!(
            "set server {slot} addr 127.0.0.1 port {}",
            origin.port()
        ));
        assert!(said.contains("changed from"), "{said}");
        assert_eq!(desk.ask(&format!("set server {slot} state ready")), "");
    }
    let mut client = house.client();
    let mut texts = [client.get("/").text(), client.get("/").text()];
    texts.sort();
    assert_eq!(texts, ["one", "two"]);
    // The address was set by hand: a file that says nothing new of it leaves it.
    house.apply_well(&site(" maxconn 44", back));
    let mut texts = [client.get("/").text(), client.get("/").text()];
    texts.sort();
    assert_eq!(texts, ["one", "two"]);
    assert_eq!(desk.ask("set server app/slot1 state maint"), "");
    assert_eq!(client.get("/").text(), "two");
}
