//! Variables of the process: all workers see them at once, a reload keeps those that rules set, and
//! large maps are replaced while requests are served.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ballast_tests::{Client, Launch, Program, Proxy, RuntimeApi, WAIT_MAX, eventually, free_port};

fn configuration(port: u16) -> String {
    format!(
        "global
    stats socket unix@ctl.sock level admin
    nbthread 4
    set-var proc.written str(file)
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend www
    bind 127.0.0.1:{port}
    http-request set-var(proc.rule) path if {{ path_beg /set }}
    http-request unset-var(proc.rule) if {{ path /unset }}
    http-request return status 200 hdr rule \"%[var(proc.rule)]\" hdr written \"%[var(proc.written)]\" hdr mapped \"%[path,map(many.map)]\"
"
    )
}

fn seen(port: u16) -> (String, String) {
    let response = Client::get_once(port, "/");
    let of = |name| response.header(name).unwrap_or_default().to_owned();
    (of("rule"), of("written"))
}

/// Makes the master reload and waits for its response.
fn reload(proxy: &Proxy) {
    let path = proxy.directory().join("master.sock");
    let mut socket = UnixStream::connect(path).expect("the master listens");
    socket.write_all(b"reload\n").expect("the master reads");
    socket.shutdown(Shutdown::Write).expect("it is open");
    socket.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer);
}

#[test]
fn what_one_worker_sets_all_workers_see_and_a_reload_keeps() {
    for program in Program::both() {
        let port = free_port();
        let proxy = Proxy::launch(
            &program,
            &configuration(port),
            &Launch {
                files: &[("many.map", "")],
                ports: &[port],
                words: &["-W", "-S", "unix@master.sock"],
                ..Launch::default()
            },
        );
        let name = program.name();
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        assert_eq!(seen(port), (String::new(), "file".into()), "{name}");
        for round in 0..20 {
            let path = format!("/set/{round}");
            let _ = Client::get_once(port, &path);
            // Connections go to workers as they are free.
            for _ in 0..8 {
                assert_eq!(seen(port).0, path, "{name}");
            }
        }
        let shown = api.ask("experimental-mode on; set var proc.written str(operator)");
        assert_eq!(shown.trim(), "", "{name}");
        assert_eq!(seen(port), ("/set/19".into(), "operator".into()), "{name}");
        reload(&proxy);
        // The file says what it was at the start. What a rule set belongs to HAProxy's old process.
        let rule = if program.is_ballast() { "/set/19" } else { "" };
        eventually("the reload is done", || {
            seen(port) == (rule.into(), "file".into())
        });
        let _ = Client::get_once(port, "/unset");
        assert_eq!(seen(port).0, "", "{name}");
    }
}

/// Lines of a payload: so many keys from `first` on.
fn payload(first: usize, count: usize, value: &str) -> String {
    let mut text = String::new();
    for key in first..first + count {
        writeln!(text, "/key/{key} {value}").expect("it is a string");
    }
    text
}

/// Ends the reader whatever happens to the test.
struct Over<'f>(&'f AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A map of 100,000 entries is replaced while a client asks without a pause. How long its slowest
/// answer takes is printed: comparing times is for `make bench`.
#[test]
fn a_large_map_is_replaced_while_it_is_read() {
    const ENTRIES: usize = 100_000;
    const ENTRIES_OF_A_PAYLOAD: usize = 500;
    for program in Program::both() {
        let port = free_port();
        let text = configuration(port).replace("nbthread 4", "nbthread 1");
        let proxy = Proxy::launch(
            &program,
            &text,
            &Launch {
                files: &[("many.map", &payload(0, ENTRIES, "old"))],
                ports: &[port],
                ..Launch::default()
            },
        );
        let name = program.name();
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        let (is_over, is_cleared) = (AtomicBool::new(false), AtomicBool::new(false));
        let value_of = |client: &mut Client, key: usize| {
            let response = client.get(&format!("/key/{key}"));
            response.header("mapped").unwrap_or_default().to_owned()
        };
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let (mut client, mut slowest, mut asked) =
                    (Client::connect(port), Duration::ZERO, 0_usize);
                while !is_over.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    let value = value_of(&mut client, asked * 7919 % ENTRIES);
                    slowest = slowest.max(start.elapsed());
                    let is_known = matches!(&value[..], "old" | "new");
                    let may_be_absent = is_cleared.load(Ordering::Relaxed);
                    assert!(is_known || may_be_absent, "{name}: '{value}'");
                    asked += 1;
                }
                (slowest, asked)
            });
            let over = Over(&is_over);
            let prepared = api.ask("prepare map many.map");
            let version: u32 = prepared
                .rsplit(' ')
                .next()
                .and_then(|word| word.trim().parse().ok())
                .expect("a version");
            for first in (0..ENTRIES).step_by(ENTRIES_OF_A_PAYLOAD) {
                let lines = payload(first, ENTRIES_OF_A_PAYLOAD, "new");
                let said = api.ask(&format!("add map @{version} many.map <<\n{lines}"));
                assert_eq!(said.trim(), "", "{name}");
            }
            let said = api.ask(&format!("commit map @{version} many.map"));
            assert_eq!(said.trim(), "", "{name}");
            // What was there goes after the commit, at its own pace.
            for key in [0, ENTRIES / 2, ENTRIES - 1] {
                assert_eq!(value_of(&mut Client::connect(port), key), "new", "{name}");
            }
            eventually("the old entries are gone", || {
                api.ask("show map").contains("entry_cnt=100000")
            });
            is_cleared.store(true, Ordering::Relaxed);
            assert_eq!(api.ask("clear map many.map").trim(), "", "{name}");
            drop(over);
            let (slowest, asked) = reader.join().expect("each answer is as it should be");
            eprintln!("{name}: {asked} answers, the slowest took {slowest:?}");
            assert!(asked > 100, "{name}: {asked} answers");
        });
        if program.is_ballast() {
            // A payload of megabytes, which HAProxy does not take.
            let lines = payload(0, ENTRIES, "once");
            let said = api.ask(&format!("add map many.map <<\n{lines}"));
            assert_eq!(said.trim(), "", "{name}");
            let value = value_of(&mut Client::connect(port), ENTRIES - 1);
            assert_eq!(value, "once", "{name}");
            let said = api.ask(&format!("add map many.map <<\n{lines}/last\n"));
            assert!(said.contains("Missing value for key '/last'"), "{said}");
        }
    }
}
