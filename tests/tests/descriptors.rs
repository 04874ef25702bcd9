//! Descriptors: what `show fd` says of connections at rest, during handshakes and over TLS, and what the log
//! says when there are none left.

use std::collections::HashSet;
use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use ballast_tests::origin::answer;
use ballast_tests::{
    Authority, Client, LogSink, Origin, Profile, Program, Proxy, RuntimeApi, SealedClient,
    eventually, free_port,
};

/// After this an idle connection rests: it is called after one to two seconds. Nothing tells from
/// outside that it does.
const UNTIL_REST: Duration = Duration::from_millis(2_500);

/// The lines of `show fd f` with this word.
fn lines_with(api: &RuntimeApi, word: &str) -> Vec<String> {
    let all = api.ask("show fd f");
    let lines = all.lines().filter(|line| line.contains(word));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_rested_connection_is_described() {
    for program in Program::both() {
        let origin = Origin::start(|request| answer(200, request.target()));
        let port = free_port();
        let text = format!(
            "global\n nbthread 1\n stats socket unix@ctl.sock level admin\n\
             defaults\n mode http\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n\
             frontend www\n bind 127.0.0.1:{port}\n default_backend app\n\
             backend app\n server one 127.0.0.1:{}\n",
            origin.port()
        );
        let proxy = Proxy::start(&program, &text, &[port]);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(port)).collect();
        for client in &mut clients {
            assert_eq!(client.get("/first").text(), "/first");
        }
        thread::sleep(UNTIL_REST);
        let listed = lines_with(&api, " fe=www ");
        assert_eq!(listed.len(), 3, "{}: {listed:?}", program.name());
        for line in listed {
            for part in [" back=0 ", " mux=H1 ", " xprt=RAW"] {
                assert!(line.contains(part), "{}: {line}", program.name());
            }
            assert!(!line.contains(".sc.app="), "{}: {line}", program.name());
        }
        drop(clients);
        eventually("all have left", || lines_with(&api, " fe=www ").is_empty());
    }
}

#[test]
fn a_connection_over_tls_is_described_during_its_handshake_and_after() {
    let certificate = Authority::new("descriptors").issue(&Profile::server(&["localhost"]));
    for program in Program::both() {
        let port = free_port();
        let directory = tempfile::tempdir().expect("a directory");
        let bundle = certificate.write(directory.path(), "site.pem");
        let text = format!(
            "global\n nbthread 1\n stats socket unix@ctl.sock level admin\n\
             defaults\n mode http\n timeout client 20s\n\
             frontend www\n bind 127.0.0.1:{port} ssl crt {}\n\
             http-request return status 200 content-type text/plain string hello\n",
            bundle.display()
        );
        let proxy = Proxy::start(&program, &text, &[port]);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        let silent = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        eventually("the handshake is awaited", || {
            let listed = lines_with(&api, " fe=www ");
            let has = |part: &str| listed.iter().all(|line| line.contains(part));
            listed.len() == 1 && has(" nomux ") && has(" xprt=SSL")
        });
        let mut client = SealedClient::connect(port, &rustls::version::TLS13);
        client.get("hello");
        eventually("the request was served", || {
            lines_with(&api, " mux=H1 ").len() == 1 && lines_with(&api, " nomux ").len() == 1
        });
        assert!(lines_with(&api, " mux=H1 ")[0].contains(" xprt=SSL"));
        drop(silent);
        eventually("it has left", || lines_with(&api, " nomux ").is_empty());
    }
}

/// The descriptor that a process opens after `more` others.
fn nth_free_descriptor(pid: u32, more: usize) -> usize {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    let names = open.map(|entry| entry.expect("an entry").file_name());
    let used: HashSet<usize> = names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect();
    let mut free = (0..).filter(|number| !used.contains(number));
    free.nth(more).expect("numbers do not end")
}

/// Lines of exchanges name no reason, and nobody reads the standard error of a process in the background.
#[test]
fn the_log_says_that_there_are_none_left() {
    for program in Program::both() {
        // One more is the client's connection: the socket to the server fails.
        for (more, proxy_name) in [(1, "app"), (0, "www")] {
            let (origin, sink, port) = (
                Origin::start(|_| answer(200, "")),
                LogSink::start(),
                free_port(),
            );
            let text = format!(
                "global\n nbthread 1\n log 127.0.0.1:{} local0\n\
                 defaults\n mode http\n log global\n retries 0\n timeout connect 5s\n timeout client 20s\n \
                 timeout server 20s\n\
                 frontend www\n bind 127.0.0.1:{port}\n http-request return status 200 if {{ path /first }}\n \
                 default_backend app\n\
                 backend app\n server one 127.0.0.1:{}\n",
                sink.port(),
                origin.port()
            );
            let proxy = Proxy::start(&program, &text, &[port]);
            // HAProxy opens the socket to the log with the first line.
            let mut first = Client::connect(port);
            assert_eq!(first.get("/first").status, 200);
            let _ = sink.line();
            let descriptors_max = nth_free_descriptor(proxy.pid(), more);
            let limited = Command::new("prlimit")
                .arg(format!("--pid={}", proxy.pid()))
                .arg(format!("--nofile={descriptors_max}:"))
                .status();
            assert!(limited.expect("prlimit is there").success());
            let mut client = Client::connect(port);
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            let line = sink.line_with(&format!("Proxy {proxy_name} "));
            assert!(line.contains("'ulimit-n'"), "{}: {line}", program.name());
        }
    }
}
