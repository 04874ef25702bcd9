//! Clients that leave while their request waits for a server.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ballast_tests::{
    Client, Origin, Program, Proxy, RuntimeApi, WAIT_MAX, eventually, free_port, origin::answer,
};
use rustix::net::sockopt::{Timeout, set_socket_linger, set_socket_timeout};
use rustix::process::Signal;

/// Concurrent exchanges of the full server.
const PLACES: usize = 5;

/// Clients that wait for it.
const WAITING: usize = 300;

/// A proxy in front of a server with a low `maxconn`.
struct Fixture {
    proxy: Proxy,
    api: RuntimeApi,
    port: u16,
    origin: TcpListener,
}

impl Fixture {
    fn start(program: &Program, mode: &str, places: usize, option: &str) -> Self {
        let origin = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let server = origin.local_addr().expect("it is bound").port();
        let (bound, port) = (Timeout::Recv, free_port());
        set_socket_timeout(&origin, bound, Some(WAIT_MAX)).expect("a socket");
        let configuration = format!(
            "global\n nbthread 1\n stats socket unix@ctl.sock level admin\n\
             defaults\n mode {mode}\n timeout connect 20s\n timeout client 20s\n \
             timeout server 20s\n {option}\n\
             frontend www\n bind 127.0.0.1:{port}\n default_backend app\n\
             backend app\n server one 127.0.0.1:{server} maxconn {places}\n"
        );
        let proxy = Proxy::start(program, &configuration, &[port]);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        Self {
            proxy,
            api,
            port,
            origin,
        }
    }

    fn ask(&self, request: &str) -> Client {
        let mut client = Client::connect(self.port);
        client.send(request);
        client
    }

    /// The server's end of the next connection, and the request on it.
    fn accept(&self) -> (TcpStream, Vec<u8>) {
        let (mut server, _) = self.origin.accept().expect("the proxy connects");
        server.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
        let mut asked = vec![0; 1024];
        let count = server.read(&mut asked).unwrap_or(0);
        asked.truncate(count);
        (server, asked)
    }

    fn until_queued(&self, count: usize) {
        let count = count.to_string();
        eventually("they are queued", || {
            self.api.stat_of("app/BACKEND", "qcur") == count
        });
    }
}

const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
const HALF: &str = "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nhalf";
const WHOLE: &str = "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nbody";

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Slots become free, and the waiting clients leave, before the proxy can process either event. No
/// request may take a slot; HAProxy processes the events of 200 connections at a time, and lets
/// some through.
#[test]
fn who_left_the_queue_takes_no_place() {
    for program in Program::both() {
        let fixture = Fixture::start(&program, "http", PLACES, "option abortonclose");
        let firsts: Vec<Client> = (0..PLACES).map(|_| fixture.ask(GET)).collect();
        let mut held: Vec<TcpStream> = firsts.iter().map(|_| fixture.accept().0).collect();
        let waiting: Vec<Client> = (0..WAITING).map(|_| fixture.ask(GET)).collect();
        fixture.until_queued(WAITING);

        fixture.proxy.signal(Signal::STOP);
        for server in &mut held {
            server.write_all(ANSWER).expect("there is room");
        }
        drop(waiting);
        fixture.proxy.signal(Signal::CONT);
        for mut first in firsts {
            assert_eq!(first.response().status, 200, "{}", program.name());
        }
        // Any client that still waits comes before this one.
        let mut last = fixture.ask("GET /last HTTP/1.1\r\nHost: test\r\n\r\n");
        let mut wasted = 0;
        loop {
            let (mut server, asked) = fixture.accept();
            // To a client that left: the proxy may have closed it already.
            let _ = server.write_all(ANSWER);
            if asked.starts_with(b"GET /last ") {
                break;
            }
            wasted += 1;
        }
        assert_eq!(last.response().status, 200, "{}", program.name());
        let most = if program.is_ballast() { 0 } else { WAITING / 3 };
        assert!(wasted <= most, "{}: {wasted} for nobody", program.name());
    }
}

/// How a waiting client leaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Departure {
    /// It ends its sending side, and may still read.
    Ends,
    /// It breaks the connection.
    Resets,
}

/// Without `option abortonclose` a client that ends its side is served. One whose request can never
/// become complete is not, and neither is one that broke its connection: HAProxy keeps a complete
/// HTTP request of such a client in its queue, and notices while connecting that the client is
/// gone.
#[test]
fn who_can_have_no_answer_leaves_the_queue() {
    use Departure::{Ends, Resets};
    let cases = [
        ("http", GET, Ends, false, true),
        ("http", WHOLE, Ends, false, true),
        ("http", HALF, Ends, true, true),
        ("http", HALF, Resets, true, true),
        ("http", GET, Resets, true, false),
        ("http", WHOLE, Resets, true, false),
        ("tcp", GET, Ends, false, true),
        ("tcp", GET, Resets, true, true),
    ];
    for program in Program::both() {
        for (mode, request, how, leaves, as_haproxy) in cases {
            if !as_haproxy && !program.is_ballast() {
                continue;
            }
            let of = format!("{}, {mode}, {request:?}, {how:?}", program.name());
            let fixture = Fixture::start(&program, mode, 1, "");
            let first = fixture.ask(GET);
            let (mut held, _) = fixture.accept();
            let mut waiting = fixture.ask(request);
            fixture.until_queued(1);
            if leaves {
                if how == Resets {
                    set_socket_linger(waiting.socket(), Some(Duration::ZERO)).expect("a socket");
                }
                drop(waiting);
                fixture.until_queued(0);
                assert_eq!(fixture.api.stat_of("app/BACKEND", "cli_abrt"), "1", "{of}");
            } else {
                waiting.finish();
                held.write_all(ANSWER).expect("the proxy reads");
                drop((first, held));
                let (mut server, _) = fixture.accept();
                server.write_all(ANSWER).expect("the proxy reads");
                assert_eq!(waiting.response().status, 200, "{of}");
            }
        }
    }
}

/// A server that is still working when its exchange is given up gets a reset: a FIN alone could
/// mean that the client only reads.
#[test]
fn a_server_whose_exchange_is_given_up_is_told_by_a_reset() {
    let part = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n".as_slice();
    for program in Program::both() {
        let fixture = Fixture::start(&program, "http", 1, "timeout server 200ms");
        for answers in [b"".as_slice(), part] {
            let client = fixture.ask(GET);
            let (mut server, _) = fixture.accept();
            server.write_all(answers).expect("the proxy reads");
            let ended = server.read(&mut [0]).map_err(|error| error.kind());
            let of = format!("{}, {} bytes", program.name(), answers.len());
            assert_eq!(ended, Err(ErrorKind::ConnectionReset), "{of}");
            drop(client);
        }
    }
}

/// A client says more behind its last request, when nobody watches it: a worker with much to do begins
/// that late. Closing a connection with unread bytes resets it, and the response would be lost.
#[test]
fn a_client_that_says_more_behind_its_last_request_has_the_whole_response() {
    const BUSY: usize = 32;
    const BODY_BYTES: usize = 20_000;
    for program in Program::both() {
        let port = free_port();
        let origin = Origin::start(|request| {
            if request.target() == "/last" {
                // Later than what the client says behind it, sooner than the client is watched.
                thread::sleep(Duration::from_millis(4));
            }
            answer(200, &"x".repeat(BODY_BYTES))
        });
        let configuration = format!(
            "global\n nbthread 1\n\
             defaults\n mode http\n timeout connect 20s\n timeout client 20s\n timeout server 20s\n\
             listen www\n bind 127.0.0.1:{port}\n server one 127.0.0.1:{}\n",
            origin.port()
        );
        let _proxy = Proxy::start(&program, &configuration, &[port]);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..BUSY {
                scope.spawn(|| {
                    let mut client = Client::connect(port);
                    while !is_over.load(Ordering::Relaxed) {
                        assert_eq!(client.get("/").status, 200);
                    }
                });
            }
            let lost = (0..40).filter(|_| {
                let mut client = Client::connect(port);
                client.send("GET /last HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
                thread::sleep(Duration::from_millis(1));
                // The proxy may be done with the connection by now.
                let _ = client.try_send("\r\n");
                let response = client.try_response(false);
                response.map_or(0, |response| response.body.len()) != BODY_BYTES
            });
            let lost = lost.count();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(lost, 0, "{}", program.name());
        });
    }
}
