//! Tunnels and bodies after back-pressure: nothing that is sent later is lost.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use ballast_tests::{Program, Proxy, WAIT_MAX, free_port};

/// After this time without progress a direction counts as full.
const FULL_AFTER: Duration = Duration::from_millis(30);

/// More than any direction between two sockets can hold: a limit for [`fill`].
const WAY_BYTES_MAX: usize = 256 << 20;

/// How a tunnel is opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TunnelKind {
    Tcp,
    Upgrade,
    Connect,
}

/// The side that does not read at first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Slow {
    Client,
    Server,
    Both,
}

/// What happens after everything was read.
#[derive(Clone, Copy, Debug)]
enum Then {
    Ping,
    Close,
    HalfClose,
    Reset,
}

/// A tunnel through a proxy, seen from both ends.
struct Tunnel {
    client: TcpStream,
    server: TcpStream,
    _proxy: Proxy,
}

impl Tunnel {
    fn open(program: &Program, kind: TunnelKind) -> Self {
        Self::open_with(program, kind, "")
    }

    /// With more words in the frontend and in the backend, which ignore what is not theirs.
    fn open_with(program: &Program, kind: TunnelKind, words: &str) -> Self {
        let origin = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free_port();
        let mode = if kind == TunnelKind::Tcp {
            "tcp"
        } else {
            "http"
        };
        let text = configuration(mode, port, &origin) + words;
        let text = text.replace("\nbackend app\n", &format!("\n{words}backend app\n"));
        let proxy = Proxy::start(program, &text, &[port]);
        let mut client = connect(port);
        let head = match kind {
            TunnelKind::Tcp => None,
            TunnelKind::Upgrade => Some((
                "GET / HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n",
                "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n",
            )),
            TunnelKind::Connect => Some((
                "CONNECT test:443 HTTP/1.1\r\nHost: test:443\r\n\r\n",
                "HTTP/1.1 200 Connected\r\n\r\n",
            )),
        };
        if let Some((asks, _)) = head {
            client.write_all(asks.as_bytes()).expect("the proxy reads");
        }
        let mut server = accept(&origin, mode == "tcp");
        if let Some((_, answers)) = head {
            read_head(&mut server);
            server.write_all(answers.as_bytes()).expect("it is read");
            read_head(&mut client);
        }
        Self {
            client,
            server,
            _proxy: proxy,
        }
    }
}

fn configuration(mode: &str, port: u16, origin: &TcpListener) -> String {
    let address = origin.local_addr().expect("a bound socket has an address");
    format!(
        "global\n    nbthread 1\ndefaults\n    mode {mode}\n    timeout connect 5s\n    \
         timeout client 60s\n    timeout server 60s\nfrontend www\n    bind 127.0.0.1:{port}\n    \
         default_backend app\nbackend app\n    server one {address}\n"
    )
}

fn connect(port: u16) -> TcpStream {
    patient(TcpStream::connect(("127.0.0.1", port)).expect("the proxy accepts"))
}

/// The proxy's connection: the last one that arrived, because checking whether the proxy listens
/// may open one too.
fn accept(origin: &TcpListener, may_be_probed: bool) -> TcpStream {
    loop {
        let (socket, _) = origin.accept().expect("the proxy connects");
        let socket = patient(socket);
        if !may_be_probed || !is_over(&socket) {
            return socket;
        }
    }
}

/// Whether the peer has closed without sending anything.
fn is_over(socket: &TcpStream) -> bool {
    socket
        .set_read_timeout(Some(Duration::from_millis(50)))
        .expect("a timeout above zero");
    let over = matches!(socket.peek(&mut [0]), Ok(0));
    socket
        .set_read_timeout(Some(WAIT_MAX))
        .expect("a timeout above zero");
    over
}

fn patient(socket: TcpStream) -> TcpStream {
    for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
        set(&socket, Some(WAIT_MAX)).expect("a timeout above zero");
    }
    socket.set_nodelay(true).expect("a TCP socket");
    socket
}

fn read_head(socket: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).expect("a whole head comes");
        head.push(byte[0]);
    }
}

/// Writes until no more is accepted, and returns how much was written.
fn fill(socket: &mut TcpStream) -> usize {
    socket.set_nonblocking(true).expect("a socket");
    let (mut count, piece) = (0, [b'x'; 1 << 16]);
    let mut moved = Instant::now();
    while moved.elapsed() < FULL_AFTER {
        match socket.write(&piece) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1));
            }
            written => {
                count += written.expect("the proxy takes what it can");
                moved = Instant::now();
            }
        }
        assert!(count < WAY_BYTES_MAX, "a way has an end");
    }
    socket.set_nonblocking(false).expect("a socket");
    count
}

fn skip(socket: &mut TcpStream, mut count: usize) {
    let mut bytes = vec![0; 1 << 16];
    while count > 0 {
        let room = bytes.len().min(count);
        let read = socket.read(&mut bytes[..room]).expect("the rest comes");
        assert!(read > 0, "closed {count} bytes too early");
        count -= read;
    }
}

#[track_caller]
fn hears(socket: &mut TcpStream, words: &[u8], of: &str) {
    let mut heard = vec![0; words.len()];
    let read = socket.read_exact(&mut heard);
    assert!(read.is_ok(), "{of}: {read:?}");
    assert_eq!(heard, words, "{of}");
}

#[track_caller]
fn says(from: &mut TcpStream, to: &mut TcpStream, words: &[u8], of: &str) {
    from.write_all(words).expect("the proxy reads");
    hears(to, words, of);
}

/// The end of the stream, or a reset.
#[track_caller]
fn hears_the_end(socket: &mut TcpStream, of: &str) {
    let read = socket.read(&mut [0]);
    let ended = match &read {
        Ok(count) => *count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    };
    assert!(ended, "{of}: {read:?}");
}

fn after_the_flood(then: Then) {
    for program in Program::both() {
        for kind in [TunnelKind::Tcp, TunnelKind::Upgrade, TunnelKind::Connect] {
            for slow in [Slow::Client, Slow::Server, Slow::Both] {
                let of = format!("{}, {kind:?}, slow {slow:?}, {then:?}", program.name());
                let Tunnel {
                    mut client,
                    mut server,
                    _proxy,
                } = Tunnel::open(&program, kind);
                if slow != Slow::Server {
                    let count = fill(&mut server);
                    if slow == Slow::Both {
                        let count = fill(&mut client);
                        skip(&mut server, count);
                    }
                    skip(&mut client, count);
                } else {
                    let count = fill(&mut client);
                    skip(&mut server, count);
                }
                let (near, far) = match slow {
                    Slow::Server => (&mut server, &mut client),
                    Slow::Client | Slow::Both => (&mut client, &mut server),
                };
                match then {
                    Then::Ping => {
                        says(near, far, b"ping", &of);
                        says(far, near, b"pong", &of);
                    }
                    Then::HalfClose => {
                        near.shutdown(Shutdown::Write).expect("it is connected");
                        hears_the_end(far, &of);
                        says(far, near, b"late", &of);
                        far.shutdown(Shutdown::Write).expect("it is connected");
                        hears_the_end(near, &of);
                    }
                    Then::Close | Then::Reset => {
                        let (gone, mut stays) = match slow {
                            Slow::Server => (server, client),
                            Slow::Client | Slow::Both => (client, server),
                        };
                        if matches!(then, Then::Reset) {
                            rustix::net::sockopt::set_socket_linger(&gone, Some(Duration::ZERO))
                                .expect("a socket");
                        }
                        drop(gone);
                        hears_the_end(&mut stays, &of);
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_said_after_a_flood_is_heard() {
    after_the_flood(Then::Ping);
}

#[test]
fn a_close_after_a_flood_is_noticed() {
    after_the_flood(Then::Close);
}

#[test]
fn a_half_close_after_a_flood_is_passed_on() {
    after_the_flood(Then::HalfClose);
}

#[test]
fn a_reset_after_a_flood_is_noticed() {
    after_the_flood(Then::Reset);
}

/// A request's body and its response's flow at the same time, and each in turn has to wait.
#[test]
fn bodies_both_ways_wait_for_each_other() {
    const BODY_BYTES: usize = 24 << 20;
    for program in Program::both() {
        let origin = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free_port();
        let configuration = configuration("http", port, &origin);
        let _proxy = Proxy::start(&program, &configuration, &[port]);
        let mut client = connect(port);
        let head =
            |line: &str| format!("{line}\r\nHost: t\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
        client
            .write_all(head("POST / HTTP/1.1").as_bytes())
            .expect("the proxy reads");
        let mut server = accept(&origin, false);
        read_head(&mut server);
        server
            .write_all(head("HTTP/1.1 200 OK").as_bytes())
            .expect("the proxy reads");
        read_head(&mut client);
        let (sent, answered) = (fill(&mut client), fill(&mut server));
        assert!(sent < BODY_BYTES && answered < BODY_BYTES, "both are full");
        let whole = |from: &TcpStream, begun: usize| {
            let mut from = from.try_clone().expect("a descriptor");
            thread::spawn(move || {
                let rest = vec![b'x'; BODY_BYTES - begun];
                from.write_all(&rest).expect("it is read");
            })
        };
        let writers = [whole(&client, sent), whole(&server, answered)];
        let mut reads = server.try_clone().expect("a descriptor");
        let reader = thread::spawn(move || skip(&mut reads, BODY_BYTES));
        skip(&mut client, BODY_BYTES);
        for done in writers.into_iter().chain([reader]) {
            done.join().expect("both bodies are carried whole");
        }
        // The client's connection can be reused. The server's, too, unless the response was
        // complete before the request was: Ballast uses another one then.
        client
            .write_all(b"GET /again HTTP/1.1\r\nHost: test\r\n\r\n")
            .expect("the proxy reads");
        let mut heard = [0; 10];
        if server.read_exact(&mut heard).is_err() {
            assert!(program.is_ballast(), "{}", program.name());
            server = accept(&origin, false);
            server.read_exact(&mut heard).expect("it is asked there");
        }
        assert_eq!(&heard, b"GET /again", "{}", program.name());
    }
}

fn reset(socket: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::ZERO)).expect("a socket");
    drop(socket);
}

/// A server that received a part of a client's data must not take it for the whole.
#[test]
fn a_clients_reset_reaches_the_server_as_one() {
    for program in Program::both() {
        for kind in [TunnelKind::Tcp, TunnelKind::Upgrade, TunnelKind::Connect] {
            let of = format!("{}, {kind:?}", program.name());
            let Tunnel {
                mut client,
                mut server,
                _proxy,
            } = Tunnel::open(&program, kind);
            says(&mut client, &mut server, b"part", &of);
            reset(client);
            let read = server.read(&mut [0]);
            let kind = read.as_ref().map_err(std::io::Error::kind);
            assert_eq!(
                kind.err(),
                Some(ErrorKind::ConnectionReset),
                "{of}: {read:?}"
            );
        }
    }
}

/// A client that resets its connection wants no response: the proxy does not wait for its server,
/// neither before the head nor in the middle of the body. HAProxy notices when it happens to look:
/// at once (`CD`) in some runs, not before a timeout in others.
#[test]
fn a_server_is_let_go_when_its_client_is_gone() {
    let request = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";
    let origin = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = free_port();
    let configuration = configuration("http", port, &origin);
    let _proxy = Proxy::start(&Program::ballast(), &configuration, &[port]);
    for (answers, first) in [(true, true), (true, false), (false, true), (false, false)] {
        let of = format!("answers {answers}, first {first}");
        let mut client = connect(port);
        client.write_all(request).expect("the proxy reads");
        let mut server = accept(&origin, false);
        read_head(&mut server);
        if !first {
            let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            server.write_all(whole).expect("the proxy reads");
            read_head(&mut client);
            client.write_all(request).expect("the proxy reads");
            read_head(&mut server);
        }
        if answers {
            let part = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n";
            server.write_all(part).expect("the proxy reads");
            read_head(&mut client);
        }
        reset(client);
        hears_the_end(&mut server, &of);
    }
}

/// A reset would discard what is on its way.
#[test]
fn a_tunnel_that_times_out_ends_with_a_fin() {
    for program in Program::both() {
        for kind in [TunnelKind::Tcp, TunnelKind::Upgrade, TunnelKind::Connect] {
            let words = "    timeout tunnel 200ms\n";
            let Tunnel {
                client: _client,
                mut server,
                _proxy,
            } = Tunnel::open_with(&program, kind, words);
            let end = server.read(&mut [0]);
            assert!(matches!(end, Ok(0)), "{} {kind:?} {end:?}", program.name());
        }
    }
}

/// What a client sends after the wait for it is over is not read. To close with it unread would be a
/// reset, which discards what is on its way to the client.
#[test]
fn what_a_silent_client_sends_late_is_no_reset_where_its_server_breaks_off() {
    for program in Program::both() {
        for kind in [TunnelKind::Tcp, TunnelKind::Upgrade, TunnelKind::Connect] {
            let words = "    timeout client 200ms\n";
            let Tunnel {
                mut client,
                mut server,
                _proxy,
            } = Tunnel::open_with(&program, kind, words);
            let end = server.read(&mut [0]);
            assert!(matches!(end, Ok(0)), "{} {kind:?} {end:?}", program.name());
            client.write_all(b"late").expect("the connection is open");
            reset(server);
            let end = client.read(&mut [0]);
            assert!(matches!(end, Ok(0)), "{} {kind:?} {end:?}", program.name());
        }
    }
}
