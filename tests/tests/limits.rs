//! What clients cannot do: occupy buffers, cause busy loops, or lock others out.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use ballast_tests::origin::answer;
use ballast_tests::{Client, LogSink, Origin, Program, Proxy, WAIT_MAX, eventually, free_port};

/// A body that does not fit into the socket buffers on the way.
const LARGE_BYTES: usize = 64 << 20;

fn configuration(port: u16, origin: &Origin, global: &str, timeouts: &str) -> String {
    format!(
        "global\n    nbthread 1\n    {global}\ndefaults\n    mode http\n    timeout connect 5s\n    \
         {timeouts}\nfrontend www\n    bind 127.0.0.1:{port}\n    default_backend app\n\
         backend app\n    server one 127.0.0.1:{}\n",
        origin.port()
    )
}

const PATIENT: &str = "timeout client 20s\n    timeout server 20s";

#[test]
fn beyond_maxconn_clients_wait_and_nothing_spins() {
    for program in Program::both() {
        let (origin, port) = (Origin::saying("hello"), free_port());
        let proxy = Proxy::start(
            &program,
            &configuration(port, &origin, "maxconn 10", PATIENT),
            &[port],
        );
        let mut holders: Vec<Client> = (0..10).map(|_| Client::connect(port)).collect();
        for holder in &mut holders {
            assert_eq!(holder.get("/").status, 200);
        }
        // The kernel accepts these connections; the proxy must not, and must not poll for them
        // either.
        let mut waiting: Vec<Client> = (0..10).map(|_| Client::connect(port)).collect();
        for client in &mut waiting {
            client.send("GET /later HTTP/1.1\r\nHost: test\r\n\r\n");
        }
        let (served, before) = (origin.requests().len(), proxy.processor_time());
        std::thread::sleep(Duration::from_millis(300));
        let spent = proxy.processor_time().saturating_sub(before);
        assert!(
            spent <= Duration::from_millis(60),
            "{}: {spent:?} for nothing",
            program.name()
        );
        assert_eq!(
            origin.requests().len(),
            served,
            "{}: nobody came in",
            program.name()
        );

        drop(holders);
        for client in &mut waiting {
            assert_eq!(client.response().text(), "hello", "{}", program.name());
        }
    }
}

#[test]
fn a_client_that_does_not_read_is_cut_and_costs_no_memory() {
    for program in Program::both() {
        let origin = Origin::start(|request| {
            if request.target() == "/small" {
                return answer(200, "hello");
            }
            let mut bytes =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE_BYTES}\r\n\r\n").into_bytes();
            bytes.resize(bytes.len() + LARGE_BYTES, b'x');
            bytes
        });
        let port = free_port();
        let impatient = "timeout client 1s\n    timeout server 20s";
        let proxy = Proxy::start(
            &program,
            &configuration(port, &origin, "", impatient),
            &[port],
        );
        // What a process opens and touches once is opened and touched after this.
        assert_eq!(Client::get_once(port, "/small").status, 200);
        let (descriptors, memory) = (proxy.descriptor_count(), proxy.resident_bytes());
        let mut deaf: Vec<Client> = (0..5).map(|_| Client::connect(port)).collect();
        for client in &mut deaf {
            client.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
        }
        eventually("all five are being answered", || {
            origin.requests().len() > 5
        });
        eventually("all five are cut", || {
            proxy.descriptor_count() <= descriptors
        });
        let grown = proxy.resident_bytes().saturating_sub(memory);
        assert!(
            grown < 16 << 20,
            "{}: grown by {grown} bytes",
            program.name()
        );
        for client in &mut deaf {
            assert!(
                client.rest().len() < LARGE_BYTES,
                "{}: cut short",
                program.name()
            );
        }
    }
}

/// By `timeout client` after the head was forwarded (400), and by `timeout http-request` while the
/// request is buffered (408).
#[test]
fn a_body_that_stops_coming_is_cut() {
    let impatient = "timeout client 300ms\n    timeout server 600ms";
    let buffering = "timeout client 1s\n    timeout server 20s\n    timeout http-request 300ms\n    \
                     option http-buffer-request";
    for program in Program::both() {
        for (timeouts, expected) in [(impatient, 400), (buffering, 408)] {
            let (origin, port) = (Origin::saying("hello"), free_port());
            let _proxy = Proxy::start(
                &program,
                &configuration(port, &origin, "", timeouts),
                &[port],
            );
            let mut client = Client::connect(port);
            client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\npart");
            let status = client.response().status;
            assert_eq!(status, expected, "{}", program.name());
            assert!(client.is_closed(), "{}", program.name());
        }
    }
}

#[test]
fn a_server_that_does_not_answer_is_a_504() {
    for program in Program::both() {
        let (has_answer, client_has_answer) = mpsc::channel::<()>();
        let client_has_answer = Mutex::new(client_has_answer);
        let origin = Origin::start(move |_| {
            let over = client_has_answer.lock().expect("no panic under it");
            // It ends with the sender, when the client has its response.
            let _ = over.recv_timeout(WAIT_MAX);
            answer(200, "too late")
        });
        let port = free_port();
        let impatient = "timeout client 20s\n    timeout server 300ms";
        let _proxy = Proxy::start(
            &program,
            &configuration(port, &origin, "", impatient),
            &[port],
        );
        assert_eq!(
            Client::get_once(port, "/").status,
            504,
            "{}",
            program.name()
        );
        drop(has_answer);
    }
}

#[test]
fn a_head_that_does_not_fit_is_refused() {
    for program in Program::both() {
        let (origin, port) = (Origin::saying("hello"), free_port());
        let proxy = Proxy::start(
            &program,
            &configuration(port, &origin, "", PATIENT),
            &[port],
        );
        let mut client = Client::connect(port);
        client.send(format!(
            "GET / HTTP/1.1\r\nHost: t\r\nX: {}",
            "x".repeat(20_000)
        ));
        let response = client
            .try_response(false)
            .expect("an answer comes before the head ends");
        assert_eq!(response.status, 431, "{}", program.name());

        let many: String = (0..300).map(|n| format!("X-{n}: y\r\n")).collect();
        let mut client = Client::connect(port);
        client.send(format!("GET / HTTP/1.1\r\nHost: t\r\n{many}\r\n"));
        let response = client.try_response(false).expect("an answer comes");
        assert_eq!(response.status, 400, "{}", program.name());
        assert!(origin.requests().is_empty(), "{}", program.name());
        eventually("both are closed", || {
            drop(Client::connect(port));
            proxy.descriptor_count() < 60
        });
    }
}

/// Idle connections hold no buffer: 2,000 of them cost less than their buffers would.
#[test]
fn idle_connections_hold_no_buffer() {
    const IDLE: usize = 2_000;
    for program in Program::both() {
        let (origin, port) = (Origin::saying("hello"), free_port());
        let proxy = Proxy::start(
            &program,
            &configuration(port, &origin, "maxconn 5000", PATIENT),
            &[port],
        );
        let mut clients: Vec<Client> = (0..IDLE / 10).map(|_| Client::connect(port)).collect();
        clients
            .iter_mut()
            .for_each(|client| assert_eq!(client.get("/").status, 200));
        let before = proxy.resident_bytes();
        let mut more: Vec<Client> = (0..IDLE).map(|_| Client::connect(port)).collect();
        for client in &mut more {
            assert_eq!(client.get("/").status, 200, "{}", program.name());
        }
        let each = (proxy.resident_bytes().saturating_sub(before)) / IDLE;
        assert!(
            each < 8 << 10,
            "{}: {each} bytes for each idle connection",
            program.name()
        );
    }
}

/// A chunk line or trailer line must fit the buffer. If it does not, that is the client's fault,
/// and not an aborted connection.
#[test]
fn a_chunk_line_larger_than_the_buffer_is_refused() {
    let long = "x".repeat(3_000);
    // HAProxy 3.2 waits for its `timeout client` if the origin was faster than the line.
    for program in [Program::ballast()] {
        let (origin, sink, port) = (Origin::saying("hello"), LogSink::start(), free_port());
        let log = format!(
            "tune.bufsize 2048\n    tune.maxrewrite 512\n    log 127.0.0.1:{} local0",
            sink.port()
        );
        let logged = format!("{PATIENT}\n    log global\n    option httplog");
        let configuration = configuration(port, &origin, &log, &logged);
        let _proxy = Proxy::start(&program, &configuration, &[port]);
        for body in [
            format!("3;{long}\r\nabc\r\n0\r\n\r\n"),
            format!("3\r\nabc\r\n0\r\nX: {long}\r\n\r\n"),
        ] {
            let mut client = Client::connect(port);
            let before = origin.connections();
            client.send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
            eventually("the head goes on", || origin.connections() > before);
            client.send(body);
            let line = sink.line_with("POST");
            assert!(line.contains(" 400 "), "{}: {line}", program.name());
            assert!(line.contains(" - - P"), "{}: {line}", program.name());
        }
    }
}
