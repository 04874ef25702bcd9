//! A reload makes the process what its files say, as HAProxy's new process is: overrides are
//! dropped, counters and health stay.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use ballast_tests::fixture::{Fixture, configuration, site};
use ballast_tests::ports::is_listening;
use ballast_tests::{
    Client, Launch, Origin, Program, Proxy, RuntimeApi, WAIT_MAX, eventually, free_port,
};
use rustix::process::Signal;

/// The rows of `show servers state`, only the columns that operators can change: name,
/// administrative state, weight, address and port.
fn servers(api: &RuntimeApi) -> Vec<String> {
    let shown = api.ask("show servers state app");
    let rows = shown.lines().skip(2).map(|row| {
        let words: Vec<&str> = row.split(' ').collect();
        let [name, address, admin, weight, port] = [3, 4, 6, 7, 18].map(|at| words[at]);
        format!("{name} {address}:{port} admin {admin} weight {weight}")
    });
    rows.collect()
}

/// The keys and values of a map or list.
fn entries(api: &RuntimeApi, command: &str) -> Vec<String> {
    let shown = api.ask(command);
    let words = shown.lines().filter_map(|line| line.split_once(' '));
    words.map(|(_, entry)| entry.to_owned()).collect()
}

/// Makes the master reload; returns its response.
fn reload(proxy: &Proxy) -> String {
    let mut answer = String::new();
    let path = proxy.directory().join("master.sock");
    let mut socket = UnixStream::connect(path).expect("the master listens");
    socket.write_all(b"reload\n").expect("the master reads");
    socket.shutdown(Shutdown::Write).expect("it is open");
    socket.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    let _ = socket.read_to_string(&mut answer);
    answer
}

fn info(api: &RuntimeApi, name: &str) -> String {
    let shown = api.ask("show info");
    let mut lines = shown.lines().filter_map(|line| line.split_once(": "));
    let found = lines.find(|(known, _)| *known == name);
    found.map(|(_, value)| value.to_owned()).unwrap_or_default()
}

/// Servers of each kind that a command can change, behind three frontends.
fn shop([front, paused, shut]: [u16; 3], to: u16) -> String {
    format!(
        "global
    stats socket unix@ctl.sock level admin
    maxconn 500
    set-var proc.written str(file)
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend www
    bind 127.0.0.1:{front}
    acl listed path -f paths.acl
    acl spelled path /spelled
    http-request set-header x-to %[path,map(to.map,none)]
    http-request deny if listed spelled
    default_backend app
frontend paused
    bind 127.0.0.1:{paused}
    default_backend app
frontend shut
    bind 127.0.0.1:{shut}
    default_backend app
backend app
    server weight 127.0.0.1:{to} weight 10
    server maint 127.0.0.1:{to}
    server drain 127.0.0.1:{to}
    server moved 127.0.0.1:{to}
    server ready 127.0.0.1:{to} disabled
    server gone 127.0.0.1:{to}
    server limited 127.0.0.1:{to} maxconn 100
    server quiet 127.0.0.1:{to} check inter 60s
"
    )
}

#[test]
fn a_reload_under_a_master_drops_what_operators_set() {
    let origin = Origin::saying("one");
    let to = origin.port();
    for program in Program::both() {
        let [front, paused, shut] = [free_port(), free_port(), free_port()];
        let text = shop([front, paused, shut], to);
        let launch = Launch {
            ports: &[front, paused, shut],
            files: &[("to.map", "/a x\n/b y\n"), ("paths.acl", "/one\n/two\n")],
            words: &["-W", "-S", "unix@master.sock"],
            ..Launch::default()
        };
        let name = program.name();
        let proxy = Proxy::launch(&program, &text, &launch);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        let looks = || {
            let fronts = ["www", "paused", "shut"]
                .map(|front| api.stat_of(&format!("{front}/FRONTEND"), "status"));
            (
                servers(&api),
                entries(&api, "show map to.map"),
                entries(&api, "show acl paths.acl"),
                ["app/limited", "www/FRONTEND"].map(|row| api.stat_of(row, "slim")),
                ["app/quiet", "app/ready"].map(|row| {
                    let status = api.stat_of(row, "status");
                    status.split(' ').next().map(str::to_owned)
                }),
                fronts,
                ["Maxconn", "SessRateLimit"].map(|what| info(&api, what)),
                api.ask("get var proc.written"),
            )
        };
        let before = looks();
        for command in [
            "set server app/weight weight 77",
            "set server app/maint state maint",
            "set server app/drain state drain",
            "set server app/moved addr 127.0.0.9 port 9",
            "set server app/ready state ready",
            "set maxconn server app/limited 7",
            "disable health app/quiet",
            "set map to.map /a other",
            "del map to.map /b",
            "add map to.map /c z",
            "add acl paths.acl /three",
            "del acl paths.acl /one",
            "set maxconn frontend www 7",
            "set maxconn global 70",
            "set rate-limit sessions global 90",
            "disable frontend paused",
            "shutdown frontend shut",
            "experimental-mode on; set var proc.written str(hand)",
            "set server app/gone state maint; del server app/gone",
        ] {
            let said = api.ask(command);
            assert!(!said.contains("nknown"), "{name}: {command}: {said}");
        }
        let added = api.ask(&format!(
            "add server app/added 127.0.0.1:{to}; enable server app/added"
        ));
        assert!(added.contains("New server registered."), "{added}");
        assert_ne!(looks(), before, "{name}: something was set");
        // HAProxy's master holds the sockets open.
        if program.is_ballast() {
            assert!(!is_listening(paused) && !is_listening(shut), "{name}");
        }
        // The file did not change.
        let said = reload(&proxy);
        assert!(said.starts_with("Success=1"), "{name}: {said}");
        eventually("all is as the file says", || looks() == before);
        assert!(is_listening(paused) && is_listening(shut), "{name}");
        assert_eq!(Client::get_once(front, "/").text(), "one", "{name}");
        proxy.signal(Signal::TERM);
    }
}

/// An agent that reads words of four letters and answers `up`; it stores the last word it read.
fn agent() -> (u16, Arc<Mutex<String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let heard = Arc::new(Mutex::new(String::new()));
    let last = Arc::clone(&heard);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
            let mut word = [0; 4];
            if stream.read_exact(&mut word).is_ok() {
                let _ = stream.write_all(b"up\n");
                *last.lock().expect("no panic under it") =
                    String::from_utf8_lossy(&word).into_owned();
            }
        }
    });
    (port, heard)
}

/// The addresses and strings of checks and agents, and their replacements.
#[test]
fn a_reload_under_a_master_drops_what_checks_were_told() {
    let origin = Origin::saying("one");
    let (to, (agent_port, heard)) = (origin.port(), agent());
    for program in Program::both() {
        let name = program.name();
        let port = free_port();
        let text = format!(
            "global
    stats socket unix@ctl.sock level admin
    max-spread-checks 1ms
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend www
    bind 127.0.0.1:{port}
    default_backend app
backend app
    server checked 127.0.0.1:{to} check inter 60s
    server asked 127.0.0.1:{to} check inter 60s agent-check agent-port {agent_port} agent-inter 60s agent-send file
    server often 127.0.0.1:{to} check inter 60s agent-check agent-port {agent_port} agent-inter 20ms agent-send file
"
        );
        let launch = Launch {
            ports: &[port],
            words: &["-W", "-S", "unix@master.sock"],
            ..Launch::default()
        };
        let proxy = Proxy::launch(&program, &text, &launch);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        let looks = || {
            let shown = api.ask("show servers state app");
            let rows = shown.lines().skip(2).map(|row| {
                let words: Vec<&str> = row.split(' ').collect();
                // Port and address of checks, address and port of agents.
                [words[3], words[21], words[22], words[23], words[24]].join(" ")
            });
            let rows: Vec<String> = rows.collect();
            let status = ["app/checked", "app/asked", "app/often"].map(|row| {
                let status = api.stat_of(row, "status");
                status.split(' ').next().map(str::to_owned)
            });
            (
                rows,
                status,
                heard.lock().expect("no panic under it").clone(),
            )
        };
        eventually("all are up and asked in the words of the file", || {
            let (_, status, word) = looks();
            status.iter().all(|status| status.as_deref() == Some("UP")) && word == "file"
        });
        let before = looks();
        for command in [
            "set server app/checked check-addr 127.0.0.8 check-port 8",
            "set server app/asked agent-addr 127.0.0.7",
            "set server app/asked agent-port 7",
            "set server app/often agent-send hand",
            "set server app/checked health down",
            "set server app/asked agent down",
        ] {
            let said = api.ask(command);
            assert!(!said.contains("nknown"), "{name}: {command}: {said}");
        }
        eventually("what was set shows", || {
            let (rows, status, word) = looks();
            rows != before.0
                && status.map(|status| status.unwrap_or_default()) == ["DOWN", "DOWN", "UP"]
                && word == "hand"
        });
        let said = reload(&proxy);
        assert!(said.starts_with("Success=1"), "{name}: {said}");
        eventually("all is as the file says", || looks() == before);
        proxy.signal(Signal::TERM);
    }
}

#[test]
fn the_plan_tells_what_a_reload_drops() {
    let origin = Origin::saying("one");
    let to = origin.port();
    let other = free_port();
    let text = site(
        "",
        &format!(" server s1 127.0.0.1:{to} weight 1\n server s2 127.0.0.1:{to}\n"),
    );
    let fixture = Fixture::start(&text);
    let api = &fixture.api;
    assert_eq!(api.ask("show plan"), "Plan: nothing");
    for command in [
        "set server app/s1 weight 77".to_owned(),
        "set server app/s2 state drain".to_owned(),
        format!("add server app/mine 127.0.0.1:{to}"),
        "set server app/mine weight 5".to_owned(),
        "set rate-limit sessions global 9".to_owned(),
        format!("add frontend other <<\n bind 127.0.0.1:{other}\n default_backend app\n"),
        "shutdown frontend www".to_owned(),
    ] {
        let _ = api.ask(&command);
    }
    let plan = api.ask("show plan");
    let mut lines: Vec<&str> = plan.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "- frontend other",
            "- override frontend www state shut down",
            "- override global rate-limit sessions 9",
            "- override server app/s1 weight 77",
            "- override server app/s2 state drain",
            "- server app/mine",
            "Plan: changes",
        ]
    );
    let said = api.ask("reload");
    for line in &lines[..lines.len() - 1] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(api.ask("show plan"), "Plan: nothing");
    assert_eq!(api.ask("show overrides").lines().count(), 1);
    assert_eq!(fixture.client().get("/").text(), "one");
    assert!(!is_listening(other));
    // `apply` is a reload of another text, and a signal is one without a response.
    assert_eq!(api.ask("set server app/s1 weight 77"), "");
    let _ = fixture.apply(&text);
    assert_eq!(api.stat_of("app/s1", "weight"), "1");
    assert_eq!(api.ask("set server app/s1 weight 77"), "");
    fixture.proxy.signal(Signal::USR2);
    eventually("the signal is heard", || {
        api.stat_of("app/s1", "weight") == "1"
    });
}

#[test]
fn overrides_are_kept_where_that_is_asked_for() {
    let origin = Origin::saying("one");
    let lines = format!(" server s1 127.0.0.1:{} weight 1\n", origin.port());
    let fixture = Fixture::start(&site("", &lines));
    let api = &fixture.api;
    assert_eq!(api.ask("set server app/s1 weight 77"), "");
    let said = api.ask("reload keep");
    assert!(said.starts_with("Success=1"), "{said}");
    assert_eq!(api.stat_of("app/s1", "weight"), "77");
    let said = api.ask("reload reset");
    assert!(said.contains("Unknown word 'reset'"), "{said}");
    // By a keyword in the file, for reloads without arguments.
    let asks = format!("global\n reload-keep-overrides\n{}", site("", &lines));
    fixture.write(&asks);
    fixture.proxy.signal(Signal::USR2);
    eventually("the signal is heard", || fixture.generation() == 2);
    assert_eq!(api.stat_of("app/s1", "weight"), "77");
    assert_eq!(api.ask("show plan"), "Plan: nothing");
    fixture.write(&site("", &lines));
    let said = api.ask("reload");
    assert!(
        said.contains("- override server app/s1 weight 77"),
        "{said}"
    );
    assert_eq!(api.stat_of("app/s1", "weight"), "1");
}

/// Health is not an override: a server that is down stays down until it is checked.
#[test]
fn what_is_counted_and_believed_stays() {
    let origin = Origin::saying("one");
    let dead = free_port();
    let back = |inter: &str| {
        format!(
            " server up 127.0.0.1:{}\n server down 127.0.0.1:{dead} check inter {inter} fall 1\n",
            origin.port()
        )
    };
    let fixture = Fixture::start(&site("", &back("20ms")));
    let api = &fixture.api;
    let status = || api.stat_of("app/down", "status");
    eventually("it is down", || status().starts_with("DOWN"));
    let mut client = fixture.client();
    assert_eq!(client.get("/").text(), "one");
    // No check runs soon.
    fixture.write(&site("", &back("60s")));
    let _ = api.ask("set server app/down weight 5");
    for _ in 0..2 {
        let said = api.ask("reload");
        assert!(said.starts_with("Success=1"), "{said}");
        assert!(status().starts_with("DOWN"), "{}", status());
    }
    assert_eq!(api.stat_of("app/down", "weight"), "1");
    assert_eq!(client.get("/").text(), "one", "on the connection it had");
    assert_eq!(api.stat_of("app/up", "stot"), "2");
    // Without checks, only an operator can have forced it down.
    let _ = api.ask("set server app/up health down");
    assert_eq!(api.stat_of("app/up", "status"), "DOWN");
    let _ = api.ask("reload");
    assert_eq!(api.stat_of("app/up", "status"), "no check");
}

#[test]
fn a_state_file_holds_after_a_reload_as_after_a_start() {
    let origin = Origin::saying("one");
    let to = origin.port();
    for program in Program::both() {
        let front = free_port();
        let text = configuration(
            &site(
                "",
                &format!(
                    " load-server-state-from-file local\n server-state-file-name app.state\n \
                     server kept 127.0.0.1:{to} weight 10\n server drained 127.0.0.1:{to}\n \
                     server plain 127.0.0.1:{to} weight 10\n"
                ),
            ),
            front,
        );
        let launch = Launch {
            ports: &[front],
            files: &[("app.state", "1\n# nothing yet\n")],
            words: &["-W", "-S", "unix@master.sock"],
            ..Launch::default()
        };
        let name = program.name();
        let proxy = Proxy::launch(&program, &text, &launch);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        let _ = api.ask("set server app/kept weight 77");
        let _ = api.ask("set server app/drained state drain");
        let saved = api.ask("show servers state app");
        let _ = api.ask("set server app/kept weight 33");
        let _ = api.ask("set server app/plain weight 55");
        let _ = api.ask("set server app/drained state ready");
        let rows = saved.lines().filter(|line| !line.contains(" plain "));
        let file: String = rows.map(|line| format!("{line}\n")).collect();
        fs::write(proxy.directory().join("app.state"), file).expect("it is written");
        let said = reload(&proxy);
        assert!(said.starts_with("Success=1"), "{name}: {said}");
        let wanted = [
            format!("kept 127.0.0.1:{to} admin 0 weight 77"),
            format!("drained 127.0.0.1:{to} admin 8 weight 1"),
            format!("plain 127.0.0.1:{to} admin 0 weight 10"),
        ];
        eventually("the state file holds", || servers(&api) == wanted);
        proxy.signal(Signal::TERM);
    }
}

/// Signed with the private half of `ISSUER_KEY`.
const TOKEN: &str = "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.\
    eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.\
    1jEdy9ovROGA3kY-k0tnf-3vZA4ntIQSHEomR64iN5qSbbChx6fsx6mFkOH4O3vnN2Lk94ySxVCd34VZVLq9-w";

const ISSUER_KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEBDCzValvy8N6LsOzp71Yqet9oN4x
tF4O15am9OW9KoDiZI+iFJJXr217COWQduRLq5BupAdIXfwC2kwwUz/Oug==
-----END PUBLIC KEY-----
";

const OTHER_KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEds69ueDQppxnjS1Vu2SQCvOn32rp
QntRuH7FthedwQcX7NUL/mwDzFpzyug43NM7i3nwfZn0toInhszmUoqnNw==
-----END PUBLIC KEY-----
";

#[test]
fn a_key_that_was_replaced_verifies_tokens_after_a_reload() {
    for program in Program::both() {
        let [direct, by_variable] = [free_port(), free_port()];
        let text = format!(
            "defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend direct
    bind 127.0.0.1:{direct}
    http-request return status 200 content-type text/plain lf-string %[req.hdr(x-token),jwt_verify(ES256,token.pub)]
frontend by_variable
    bind 127.0.0.1:{by_variable}
    http-request set-var(txn.key) str(token.pub)
    http-request return status 200 content-type text/plain lf-string %[req.hdr(x-token),jwt_verify(ES256,txn.key)]
"
        );
        let launch = Launch {
            ports: &[direct, by_variable],
            files: &[("token.pub", OTHER_KEY)],
            words: &["-W", "-S", "unix@master.sock"],
            ..Launch::default()
        };
        let proxy = Proxy::launch(&program, &text, &launch);
        let answers = || {
            [direct, by_variable].map(|port| {
                let mut client = Client::connect(port);
                client.send(format!(
                    "GET / HTTP/1.1\r\nhost: a\r\nx-token: {TOKEN}\r\nconnection: close\r\n\r\n"
                ));
                client.response().text()
            })
        };
        assert_eq!(answers(), ["0", "0"], "{}", program.name());
        for (key, answer) in [(ISSUER_KEY, "1"), (OTHER_KEY, "0"), (ISSUER_KEY, "1")] {
            fs::write(proxy.directory().join("token.pub"), key).expect("the key is written");
            let said = reload(&proxy);
            assert!(said.contains("Success=1"), "{}: {said}", program.name());
            // HAProxy's process before may take a last connection.
            eventually("the key in force is that of the file", || {
                answers() == [answer; 2]
            });
        }
    }
}
