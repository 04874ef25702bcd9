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

/// A master, ended with the test.
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
        "global\n    nbthread {threads}\n    stats socket {} level admin\n\
         defaults\n    mode http\n    timeout connect 5s\n    timeout client 20s\n    \
         timeout server 20s\n\
         frontend www\n    bind 127.0.0.1:{port}\n{tables}",
        directory.join("stats.sock").display()
    );
    fs::write(directory.join("haproxy.cfg"), text).expect("the configuration is written");
}

fn start(directory: &Path, port: u16) -> Master {
    let socket = directory.join("master.sock");
    let child = Command::new(Program::ballast().path())
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
    // The old process may take a caller yet.
    eventually("the next process answers", || {
        entries(&stats, "live") == [live(0, 2)]
    });
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
