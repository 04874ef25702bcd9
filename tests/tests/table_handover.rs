//! Stick tables from one process to the next, and what a change of the file leaves of them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ballast_tests::fixture::Fixture;
use ballast_tests::ports::is_listening;
use ballast_tests::{Client, Program, WAIT_MAX, eventually, free_port};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A master, or a process without one, ended with the test.
struct Master(Child);

impl Drop for Master {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
        let until = Instant::now() + Duration::from_secs(2);
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ask(socket: &Path, line: &str) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = UnixStream::connect(socket) {
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
        let _ = stream.write_all(format!("{line}\n").as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_string(&mut answer);
    }
    answer
}

/// The process number of the worker.
fn worker_of(master_socket: &Path) -> i32 {
    let table = ask(master_socket, "show proc");
    let workers = table.split("# old").next().unwrap_or_default();
    let row = workers.lines().find(|line| line.contains(" worker "));
    let pid = row.and_then(|row| row.split_ascii_whitespace().next()?.parse().ok());
    pid.unwrap_or(0)
}

fn write(directory: &Path, port: u16, threads: u32, tables: &str) {
    let text = format!(
        "global\n    nbthread {threads}\n    stats socket {} level admin expose-fd listeners\n\
         defaults\n    mode http\n    timeout connect 5s\n    timeout client 20s\n    \
         timeout server 20s\n\
         frontend www\n    bind 127.0.0.1:{port}\n{tables}",
        directory.join("stats.sock").display()
    );
    fs::write(directory.join("haproxy.cfg"), text).expect("the configuration is written");
}

fn start(directory: &Path, port: u16) -> Master {
    start_program(Program::ballast().path(), directory, port)
}

fn start_program(program: &Path, directory: &Path, port: u16) -> Master {
    let socket = directory.join("master.sock");
    let child = Command::new(program)
        .args([
            "-W",
            "-S",
            &socket.display().to_string(),
            "-f",
            "haproxy.cfg",
        ])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let master = Master(child);
    eventually("the worker serves", || {
        is_listening(port) && worker_of(&socket) > 0
    });
    master
}

/// Starts a process without a master, and waits until it answers at a command socket. A process that
/// it replaces may answer there, too, until it ends.
fn start_alone(directory: &Path, port: u16, words: &[&str]) -> Master {
    start_alone_at(directory, &directory.join("stats.sock"), port, words)
}

fn start_alone_at(directory: &Path, stats: &Path, port: u16, words: &[&str]) -> Master {
    let child = Command::new(Program::ballast().path())
        .args(["-db", "-f", "haproxy.cfg"])
        .args(words)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let process = Master(child);
    eventually("the process serves", || {
        is_listening(port) && serving(stats) == Some(process.0.id())
    });
    process
}

/// The number of the process that answers.
fn serving(stats: &Path) -> Option<u32> {
    let told = ask(stats, "show info");
    let pid = told.lines().find_map(|line| line.strip_prefix("Pid: "));
    pid.and_then(|pid| pid.parse().ok())
}

/// Waits until a process accepts nothing at a command socket any more: until then it may answer there
/// instead of the one that follows it, with what it has itself.
fn await_stop(pid: u32, stats: &Path) {
    let path = stats.display().to_string();
    eventually("the former process accepts no callers", || {
        // Number, references, protocol, flags, type, state, inode, path.
        let sockets = fs::read_to_string("/proc/net/unix").expect("the sockets of the system");
        let sockets = sockets.lines().filter(|line| line.contains(&path));
        let sockets = sockets.map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
        let listening: Vec<_> = sockets
            .filter(|words| words[3] == "00010000")
            .map(|words| format!("socket:[{}]", words[6]))
            .collect();
        assert!(!listening.is_empty(), "one process listens at least");
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
        let mut descriptors = descriptors.into_iter().flatten().flatten();
        !descriptors.any(|entry| {
            fs::read_link(entry.path())
                .is_ok_and(|link| listening.iter().any(|one| link.as_os_str() == one.as_str()))
        })
    });
}

impl Master {
    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process number"), signal).expect("it lives");
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

/// The lines of a table without pointers and times, sorted.
fn entries(stats: &Path, table: &str) -> Vec<String> {
    let mut answer = String::new();
    // A worker that ends may take a caller and say nothing.
    eventually("the table is told", || {
        answer = ask(stats, &format!("show table {table}"));
        answer.starts_with("# table")
    });
    let lines = answer.lines().filter(|line| line.contains(" key="));
    let mut all: Vec<String> = lines
        .map(|line| {
            let words = line.split(' ').skip(1);
            let words = words.filter(|word| !word.starts_with("exp="));
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    all.sort_unstable();
    all
}

const TABLES: &str = "backend four\n    stick-table type ip size 100k expire 1h \
                      store gpc0,bytes_in_cnt,http_req_rate(10m),server_key\n\
                      backend text\n    stick-table type string len 40 size 1k store gpt(2)\n\
                      backend gone\n    stick-table type integer size 10 store gpc0\n";

/// A table of servers, one of who is connected, and what fills them. The server is a frontend.
fn tracking(origin: u16) -> String {
    format!(
        "    tcp-request connection track-sc0 src table live\n    \
         http-request wait-for-body time 60s if METH_POST\n    default_backend sticky\n\
         backend sticky\n    stick-table type ip size 1k expire 1h store server_key\n    \
         stick on src\n    server first 127.0.0.1:{origin}\n\
         backend live\n    stick-table type ip size 1k expire 1h store conn_cnt,conn_cur,http_req_cnt\n\
         frontend origin\n    bind 127.0.0.1:{origin}\n    http-request return status 200\n"
    )
}

/// The name of a server goes along. A connection that is open during the reload stays with the process
/// that has it: the next one counts it as one that was, and is no one's who holds the entry.
#[test]
fn servers_go_along_and_open_connections_stay() {
    let directory = TempDir::new().expect("a directory");
    let (port, origin) = (free_port(), free_port());
    let at = directory.path();
    let (stats, socket) = (at.join("stats.sock"), at.join("master.sock"));
    let tables = tracking(origin);
    write(at, port, 2, &tables);
    let _master = start(at, port);
    let mut held = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    held.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    let answered = |held: &mut TcpStream| {
        let (mut answer, mut byte) = (Vec::new(), [0]);
        while !answer.ends_with(b"\r\n\r\n") {
            held.read_exact(&mut byte).expect("an answer");
            answer.extend(byte);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    };
    let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    held.write_all(request).expect("the request is sent");
    answered(&mut held);
    // `start` has looked whether the port listens, without a connection: this is the only one.
    let live = |held: u32, requests: u32| {
        format!(
            "key=127.0.0.1 use={held} shard=0 conn_cnt=1 conn_cur={held} http_req_cnt={requests}"
        )
    };
    assert_eq!(entries(&stats, "live"), [live(1, 1)]);
    let sticky = entries(&stats, "sticky");
    assert_eq!(sticky.len(), 1);
    assert!(sticky[0].ends_with("server_key=first"), "{sticky:?}");

    // An idle connection would be closed: this one waits for its body.
    let request = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n";
    held.write_all(request).expect("the request is sent");
    eventually("the request is there", || {
        entries(&stats, "live") == [live(1, 2)]
    });
    let worker = worker_of(&socket);
    write(at, port, 1, &tables);
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=1\n"), "{answer}");
    assert_ne!(worker_of(&socket), worker, "{answer}");
    await_stop(worker.unsigned_abs(), &stats);
    assert_eq!(entries(&stats, "live"), [live(0, 2)]);
    assert_eq!(entries(&stats, "sticky"), sticky);
    // The old process has it still. That it ends there changes nothing here.
    held.write_all(b"x").expect("the body is sent");
    answered(&mut held);
    drop(held);
    assert_eq!(entries(&stats, "live"), [live(0, 2)]);
}

/// What a reload that needs another process keeps, and one that does not.
#[test]
fn tables_are_there_after_a_reload_of_each_kind() {
    let (directory, port) = (TempDir::new().expect("a directory"), free_port());
    let at = directory.path();
    let (stats, socket) = (at.join("stats.sock"), at.join("master.sock"));
    write(at, port, 2, TABLES);
    let _master = start(at, port);
    for key in 0..200 {
        let line = format!(
            "set table four key 192.0.2.{key} data.gpc0 {key} data.bytes_in_cnt 5000000000 \
             data.http_req_rate 7"
        );
        assert_eq!(ask(&stats, &line), "\n");
    }
    ask(&stats, "set table text key a\\ b data.gpt[1] 9");
    ask(&stats, "set table gone key 1 data.gpc0 1");
    let (four, text) = (entries(&stats, "four"), entries(&stats, "text"));
    assert_eq!((four.len(), text.len()), (200, 1));
    let worker = worker_of(&socket);

    // Another number of threads needs another process.
    write(at, port, 1, TABLES);
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=1\n"), "{answer}");
    let next = worker_of(&socket);
    assert_ne!(next, worker, "{answer}");
    await_stop(worker.unsigned_abs(), &stats);
    assert_eq!(
        (entries(&stats, "four"), entries(&stats, "text")),
        (four.clone(), text)
    );

    // The same process: a larger table that stores more, and a table less.
    let changed = TABLES
        .replace("size 100k", "size 200k")
        .replace("gpc0,bytes", "gpc0,conn_cnt,bytes");
    let changed = changed.split("backend gone").next().unwrap_or_default();
    write(at, port, 1, changed);
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=1\n"), "{answer}");
    assert_eq!(worker_of(&socket), next, "{answer}");
    let wider = entries(&stats, "four");
    let without: Vec<_> = wider
        .iter()
        .map(|line| line.replace(" conn_cnt=0", ""))
        .collect();
    assert_eq!(without, four);
    assert!(wider.iter().all(|line| line.contains(" conn_cnt=0")));
    assert!(ask(&stats, "show table four").contains("size:204800, used:200"));
    assert!(ask(&stats, "show table gone").starts_with("No such table\n"));

    // A table that comes back begins anew.
    write(at, port, 1, TABLES);
    assert!(ask(&socket, "reload").starts_with("Success=1\n"));
    assert_eq!(entries(&stats, "four"), four);
    assert!(entries(&stats, "gone").is_empty());
}

#[test]
fn counters_that_a_reload_adds_are_released_by_exchanges_that_were_pooled() {
    let lines = |counters: u32, number: u32| {
        format!(
            "global\n    tune.stick-counters {counters}\nfrontend www\n    bind 127.0.0.1:PORT\n    \
             stick-table type string len 20 size 1k store conn_cnt,conn_cur,http_req_cnt\n    \
             http-request track-sc{number} path\n    http-request return status 200\n"
        )
    };
    let fixture = Fixture::start(&lines(3, 2));
    let mut kept = fixture.client();
    assert_eq!(kept.get("/few").status, 200);
    for _ in 0..10 {
        assert_eq!(Client::get_once(fixture.port, "/few").status, 200);
    }
    fixture.apply_well(&lines(5, 4));
    assert_eq!(kept.get("/more").status, 200);
    for _ in 0..10 {
        assert_eq!(Client::get_once(fixture.port, "/more").status, 200);
    }
    let mut said = String::new();
    let expected = "conn_cnt=11 conn_cur=0 http_req_cnt=11";
    eventually("all requests are counted, and none is open", || {
        said = fixture.api.ask("show table www");
        let of_key = |key: &str| said.lines().find(|line| line.contains(key));
        let is_expected = |key| of_key(key).is_some_and(|line| line.ends_with(expected));
        is_expected("key=/few") && is_expected("key=/more")
    });
}

/// Puts so many entries into the table `four`, over a few connections.
fn fill(stats: &Path, entries: u32) {
    let set = |key: u32| {
        let [_, high, middle, low] = key.to_be_bytes();
        format!("set table four key 10.{high}.{middle}.{low} data.gpc0 {key} data.http_req_rate 7")
    };
    let keys: Vec<u32> = (0..entries).collect();
    for keys in keys.chunks(100) {
        let commands: Vec<String> = keys.iter().map(|key| set(*key)).collect();
        let said = ask(stats, &commands.join("; "));
        assert!(said.bytes().all(|byte| byte == b'\n'), "{said}");
    }
}

/// What a process without a master has in its tables goes to the one that replaces it, larger tables
/// in several pieces.
#[test]
fn a_process_that_replaces_another_has_its_tables() {
    let (directory, port) = (TempDir::new().expect("a directory"), free_port());
    let at = directory.path();
    let stats = at.join("stats.sock");
    write(at, port, 2, TABLES);
    let mut former = start_alone(at, port, &[]);
    fill(&stats, 8_000);
    ask(&stats, "set table text key a\\ b data.gpt[1] 9");
    let (four, text) = (entries(&stats, "four"), entries(&stats, "text"));
    assert_eq!((four.len(), text.len()), (8_000, 1));
    for with_socket in [false, true, false] {
        let pid = former.pid();
        let socket = stats.display().to_string();
        let words: &[&str] = match with_socket {
            true => &["-x", &socket, "-sf", &pid],
            false => &["-sf", &pid],
        };
        let next = start_alone(at, port, words);
        eventually("the former process ends", || former.has_ended());
        assert_eq!(entries(&stats, "four"), four, "{words:?}");
        assert_eq!(entries(&stats, "text"), text, "{words:?}");
        former = next;
    }
    // A table that is smaller now keeps what was touched last, one that has other keys nothing.
    ask(&stats, "set table four key 192.0.2.1 data.gpc0 1");
    let smaller = TABLES.replace("size 100k", "size 500");
    write(
        at,
        port,
        2,
        &smaller.replace("type string len 40", "type ipv6"),
    );
    let pid = former.pid();
    let _next = start_alone(at, port, &["-sf", &pid]);
    eventually("the former process ends", || former.has_ended());
    let kept = entries(&stats, "four");
    assert_eq!(kept.len(), 500);
    assert!(
        kept.iter().any(|line| line.starts_with("key=192.0.2.1 ")),
        "{kept:?}"
    );
    assert!(
        kept.iter()
            .all(|line| four.contains(line) || line.starts_with("key=192.0.2.1 "))
    );
    assert!(entries(&stats, "text").is_empty());
}

/// A connection that is open stays with the process that has it: its end releases the entry there, and
/// is not counted here.
#[test]
fn open_connections_stay_with_a_process_that_is_replaced() {
    let directory = TempDir::new().expect("a directory");
    let (port, origin) = (free_port(), free_port());
    let at = directory.path();
    let stats = at.join("stats.sock");
    write(at, port, 2, &tracking(origin));
    let mut former = start_alone(at, port, &[]);
    let live = |held: u32, connections: u32, requests: u32| {
        let line = format!(
            "key=127.0.0.1 use={held} shard=0 conn_cnt={connections} conn_cur={held} \
             http_req_cnt={requests}"
        );
        [line]
    };
    let unfinished = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n";
    let mut held = Client::connect(port);
    held.send(unfinished);
    eventually("the request is there", || {
        entries(&stats, "live") == live(1, 1, 1)
    });
    let next = start_alone(at, port, &["-sf", &former.pid()]);
    await_stop(former.0.id(), &stats);
    assert_eq!(entries(&stats, "live"), live(0, 1, 1));
    // The next process counts its own.
    let mut own = Client::connect(port);
    own.send(unfinished);
    eventually("the request is there", || {
        entries(&stats, "live") == live(1, 2, 2)
    });
    held.send(b"x");
    assert_eq!(held.response().status, 200);
    drop(held);
    eventually("the former process ends", || former.has_ended());
    assert_eq!(entries(&stats, "live"), live(1, 2, 2));
    own.send(b"x");
    assert_eq!(own.response().status, 200);
    drop(own);
    eventually("no connection is open", || {
        entries(&stats, "live") == live(0, 2, 2)
    });
    drop(next);
}

/// What the former process counts after the other one serves, and before it stops listening, comes,
/// too. What was touched here since is left alone.
#[test]
fn what_changes_until_the_former_process_stops_comes_too() {
    let (directory, port) = (TempDir::new().expect("a directory"), free_port());
    let at = directory.path();
    let stats = at.join("stats.sock");
    write(at, port, 2, TABLES);
    let mut former = start_alone(at, port, &[]);
    // This caller stays with the former process.
    let mut caller = UnixStream::connect(&stats).expect("a caller");
    caller.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    let mut told = |command: &str| {
        writeln!(caller, "{command}").expect("the command is sent");
        let (mut answer, mut byte) = (Vec::new(), [0]);
        while !answer.ends_with(b"> ") {
            caller.read_exact(&mut byte).expect("an answer");
            answer.extend(byte);
        }
        String::from_utf8_lossy(&answer).into_owned()
    };
    told("prompt");
    told("set table four key 192.0.2.1 data.gpc0 1");
    told("set table four key 192.0.2.2 data.gpc0 1");
    // The next process has a socket and a port of its own: both listen on those that they share.
    let next_port = free_port();
    let text = fs::read_to_string(at.join("haproxy.cfg")).expect("the configuration");
    let text = text.replace("stats.sock", "next.sock").replace(
        "frontend www\n",
        &format!(
            "frontend www\n    bind 127.0.0.1:{next_port}\n    http-request return status 200\n"
        ),
    );
    fs::write(at.join("haproxy.cfg"), text).expect("a file");
    let (former_stats, stats) = (stats, at.join("next.sock"));
    let words = ["-x", &former_stats.display().to_string()];
    let _next = start_alone_at(at, &stats, port, &words);
    // It serves, and has asked for what changes from now on.
    assert_eq!(Client::get_once(next_port, "/").status, 200);
    assert_eq!(entries(&stats, "four").len(), 2);
    told("set table four key 192.0.2.1 data.gpc0 2");
    told("set table four key 192.0.2.2 data.gpc0 2");
    told("set table four key 192.0.2.3 data.gpc0 2");
    ask(&stats, "set table four key 192.0.2.2 data.gpc0 3");
    former.signal(Signal::USR1);
    let counts = || -> Vec<String> {
        let lines = entries(&stats, "four").into_iter();
        let counts = lines.map(|line| line.split(' ').nth(3).unwrap_or_default().to_owned());
        counts.collect()
    };
    eventually("all is there", || {
        counts() == ["gpc0=2", "gpc0=3", "gpc0=2"]
    });
    eventually("the former process ends", || former.has_ended());
}

/// Of two processes that are replaced together, the one that accepts connections gives its tables.
#[test]
fn a_process_that_has_stopped_gives_no_tables() {
    let (directory, port) = (TempDir::new().expect("a directory"), free_port());
    let at = directory.path();
    let stats = at.join("stats.sock");
    write(at, port, 2, &tracking(free_port()));
    let mut first = start_alone(at, port, &[]);
    ask(&stats, "set table live key 192.0.2.1 data.conn_cnt 1");
    // It stays for this connection.
    let mut held = Client::connect(port);
    held.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n");
    eventually("the request is there", || {
        entries(&stats, "live").len() == 2
    });
    let mut second = start_alone(at, port, &["-sf", &first.pid()]);
    await_stop(first.0.id(), &stats);
    ask(&stats, "set table live key 192.0.2.1 data.conn_cnt 2");
    let third = start_alone(at, port, &["-sf", &first.pid(), &second.pid()]);
    eventually("the second process ends", || second.has_ended());
    assert!(!first.has_ended());
    let set = entries(&stats, "live");
    let set = set.iter().find(|line| line.starts_with("key=192.0.2.1 "));
    assert!(
        set.is_some_and(|line| line.contains(" conn_cnt=2 ")),
        "{set:?}"
    );
    held.send(b"x");
    assert_eq!(held.response().status, 200);
    eventually("the first process ends", || first.has_ended());
    drop(third);
}

#[test]
fn a_file_that_is_read_again_without_a_master_keeps_tables() {
    let (directory, port) = (TempDir::new().expect("a directory"), free_port());
    let at = directory.path();
    let stats = at.join("stats.sock");
    write(at, port, 2, TABLES);
    let process = start_alone(at, port, &[]);
    fill(&stats, 200);
    let four = entries(&stats, "four");
    write(at, port, 2, &TABLES.replace("size 100k", "size 200k"));
    process.signal(Signal::USR2);
    eventually("the table is larger", || {
        ask(&stats, "show table four").contains("size:204800, used:200")
    });
    assert_eq!(entries(&stats, "four"), four);
    assert_eq!(serving(&stats), Some(process.0.id()));
}

#[test]
fn a_new_program_under_a_master_has_the_tables() {
    let (directory, port) = (TempDir::new().expect("a directory"), free_port());
    let at = directory.path();
    let (stats, socket) = (at.join("stats.sock"), at.join("master.sock"));
    let program = at.join("ballast");
    let replace = || Program::ballast().copy_to(&program);
    replace();
    write(at, port, 2, TABLES);
    let _master = start_program(&program, at, port);
    fill(&stats, 200);
    let four = entries(&stats, "four");
    let worker = worker_of(&socket);
    replace();
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=1\n"), "{answer}");
    eventually("another worker serves", || {
        let now = worker_of(&socket);
        now > 0 && now != worker
    });
    await_stop(worker.unsigned_abs(), &stats);
    assert_eq!(entries(&stats, "four"), four);
}
