//! Clients that are idle between two requests for so long that their connections rest.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use ballast_tests::origin::answer;
use ballast_tests::{
    Authority, Client, LogSink, Origin, Profile, Program, Proxy, RuntimeApi, SealedClient,
    eventually, free_port,
};
use rustix::process::Signal;

/// After this an idle connection rests: it is called after one to two seconds. Nothing tells from
/// outside that it does.
const UNTIL_REST: Duration = Duration::from_millis(2_500);

/// A proxy in front of one server.
struct Site {
    proxy: Proxy,
    api: RuntimeApi,
    port: u16,
    origin: Origin,
}

fn configuration(front: &str, back: &str, port: u16, server: u16) -> String {
    format!(
        "global\n nbthread 1\n stats socket unix@ctl.sock level admin\n\
         defaults\n mode http\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n\
         frontend www\n bind 127.0.0.1:{port}\n default_backend app\n{front}\n\
         backend app\n server one 127.0.0.1:{server}\n{back}\n"
    )
}

impl Site {
    fn start(program: &Program, front: &str, back: &str) -> Self {
        let origin = Origin::start(|request| answer(200, request.target()));
        let port = free_port();
        let text = configuration(front, back, port, origin.port());
        let proxy = Proxy::start(program, &text, &[port]);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        Self {
            proxy,
            api,
            port,
            origin,
        }
    }

    /// A client whose connection rests after one request.
    fn rested(&self) -> Client {
        let mut client = Client::connect(self.port);
        assert_eq!(client.get("/first").text(), "/first");
        thread::sleep(UNTIL_REST);
        client
    }
}

#[test]
fn a_rested_connection_goes_on() {
    let logs = LogSink::start();
    let front = format!(
        " log 127.0.0.1:{} local0\n log-format \"%HU %[var(sess.x)] %[fc_http_major]\"\n \
         http-request set-var(sess.x) str(set) if {{ path /first }}\n \
         http-request set-header x-seen %[var(sess.x)]\n \
         http-request track-sc0 src table app if {{ path /first }}\n \
         http-response set-header x-current %[src_conn_cur(app)]",
        logs.port()
    );
    let table = " stick-table type ip size 10 store conn_cur";
    for program in Program::both() {
        let site = Site::start(&program, &front, table);
        let mut clients: Vec<Client> = (0..20).map(|_| Client::connect(site.port)).collect();
        for client in &mut clients {
            assert_eq!(client.get("/first").status, 200);
            let _ = logs.line_with("/first");
        }
        // The last one rests twice; pieces of a request come while it rests.
        thread::sleep(UNTIL_REST);
        assert_eq!(clients[19].get("/again").status, 200);
        let _ = logs.line_with("/again set 1");
        thread::sleep(UNTIL_REST);
        for client in &mut clients {
            client.send("GET /sec");
            client.send("ond HTTP/1.1\r\nHost: t\r\n\r\n");
            let second = client.response();
            assert_eq!((second.status, second.text().as_str()), (200, "/second"));
            let line = logs.line_with("/second");
            assert!(line.contains("/second set 1"), "{}: {line}", program.name());
        }
        let requests = site.origin.requests();
        let seen = requests
            .iter()
            .filter(|request| request.target() == "/second");
        assert!(seen.clone().count() == 20);
        assert!(
            seen.into_iter()
                .all(|request| request.header("x-seen") == Some("set"))
        );
        drop(clients);
        eventually("all have left", || {
            site.api.stat_of("www/FRONTEND", "scur") == "0"
        });
        let table = site.api.ask("show table app");
        assert!(table.contains("conn_cur=0"), "{}: {table}", program.name());
    }
}

#[test]
fn the_timeout_counts_from_the_last_response() {
    for program in Program::both() {
        let site = Site::start(&program, " timeout http-keep-alive 4s", "");
        let mut client = Client::connect(site.port);
        assert_eq!(client.get("/first").status, 200);
        let begun = Instant::now();
        assert!(client.is_closed());
        let idle = begun.elapsed();
        assert!(
            idle >= Duration::from_millis(3_900),
            "{}: {idle:?}",
            program.name()
        );
        assert!(
            idle < Duration::from_secs(8),
            "{}: {idle:?}",
            program.name()
        );
    }
}

#[test]
fn resting_connections_end_with_the_process() {
    for program in Program::both() {
        let mut site = Site::start(&program, "", "");
        let mut client = site.rested();
        site.proxy.signal(Signal::USR1);
        assert!(client.is_closed(), "{}", program.name());
        site.proxy.wait();
    }
}

/// The process is stopped while requests and the order arrive, so that it finds both when it continues.
#[test]
fn requests_that_have_arrived_are_served_before_the_end() {
    for (idle, program) in [Duration::from_millis(300), UNTIL_REST]
        .into_iter()
        .flat_map(|idle| Program::both().map(|program| (idle, program)))
    {
        let mut site = Site::start(&program, "", "");
        let mut clients: Vec<Client> = (0..20).map(|_| Client::connect(site.port)).collect();
        for client in &mut clients {
            assert_eq!(client.get("/first").status, 200);
        }
        thread::sleep(idle);
        site.proxy.signal(Signal::STOP);
        for client in &mut clients {
            client.send("GET /last HTTP/1.1\r\nHost: t\r\n\r\n");
        }
        site.proxy.signal(Signal::USR1);
        site.proxy.signal(Signal::CONT);
        for client in &mut clients {
            let response = client.try_response(false);
            let response = response.unwrap_or_else(|error| {
                let name = program.name();
                unreachable!("{name}, idle for {idle:?}: {error}")
            });
            assert_eq!(response.text(), "/last", "{}", program.name());
        }
        drop(clients);
        site.proxy.wait();
    }
}

/// A server that ends a connection which stays with an idle client leaves no descriptor behind.
#[test]
fn kept_connections_end_with_their_servers() {
    for program in Program::both() {
        let origin = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free_port();
        let server = origin.local_addr().expect("it is bound").port();
        let text = configuration("", " http-reuse never", port, server);
        let proxy = Proxy::start(&program, &text, &[port]);
        let mut client = Client::connect(port);
        client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
        let (mut socket, _) = origin.accept().expect("the proxy connects");
        let mut request = [0; 1024];
        assert!(socket.read(&mut request).expect("it asks") > 0);
        socket.write_all(&answer(200, "one")).expect("it reads");
        assert_eq!(client.response().text(), "one");
        let held = proxy.descriptor_count();
        drop(socket);
        eventually("the connection is closed", || {
            proxy.descriptor_count() < held
        });
    }
}

#[test]
fn resting_connections_meet_the_configuration_in_force() {
    let site = Site::start(&Program::ballast(), "", "");
    let (mut first, mut second) = (site.rested(), site.rested());
    let marked = " http-response set-header x-new yes";
    let text = configuration(marked, "", site.port, site.origin.port());
    let said = site.api.apply(&text);
    assert!(said.contains("is in force."), "{said}");
    assert_eq!(first.get("/x").header("x-new"), Some("yes"));
    // Without its bind a connection ends, whether it rests or not.
    let other = configuration("", "", free_port(), site.origin.port());
    let said = site.api.apply(&other);
    assert!(said.contains("is in force."), "{said}");
    assert!(first.is_closed());
    assert!(second.is_closed());
}

#[test]
fn a_rested_tls_connection_goes_on() {
    let certificate = Authority::new("resting").issue(&Profile::server(&["localhost"]));
    for program in Program::both() {
        let origin = Origin::saying("hello");
        let port = free_port();
        let directory = tempfile::tempdir().expect("a directory");
        let bundle = certificate.write(directory.path(), "site.pem");
        let text = configuration("", "", free_port(), origin.port())
            + &format!(
                "frontend tls\n bind 127.0.0.1:{port} ssl crt {} alpn http/1.1\n default_backend app\n",
                bundle.display()
            );
        let _proxy = Proxy::start(&program, &text, &[port]);
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let mut client = SealedClient::connect(port, version);
            client.get("hello");
            thread::sleep(UNTIL_REST);
            client.get("hello");
        }
    }
}

/// Without its task a connection takes about as much as in HAProxy or less: 640 bytes in a release build.
#[test]
fn a_resting_connection_takes_little_memory() {
    // More than the tasks that a worker keeps for its next connections.
    const BATCH: usize = 1_200;
    // The first clients are idle for as long as this test takes.
    let site = Site::start(&Program::ballast(), " timeout http-keep-alive 5m", "");
    let mut clients = Vec::new();
    let mut held = Vec::new();
    // The tasks of a batch are used by the next.
    for _ in 0..4 {
        for _ in 0..BATCH {
            let mut client = Client::connect(site.port);
            assert_eq!(client.get("/first").status, 200);
            clients.push(client);
        }
        thread::sleep(UNTIL_REST);
        held.push(site.proxy.resident_bytes());
    }
    let each = held[3].saturating_sub(held[0]) / (3 * BATCH);
    assert!(each < 2_000, "{each} bytes for each resting connection");
    for client in clients.iter_mut().step_by(100) {
        assert_eq!(client.get("/again").text(), "/again");
    }
}
