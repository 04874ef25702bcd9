//! Bodies of megabytes, spliced and copied: every byte arrives, connections go on being used, and
//! pipes are counted and come back.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use ballast_tests::{
    Client, LogSink, Program, Proxy, Response, RuntimeApi, WAIT_MAX, eventually, free_port,
};

/// More than a buffer, a pipe and a socket hold together is not needed: this is more than several
/// pipes hold, and no multiple of anything.
const BODY_BYTES: usize = 3_000_017;

/// Options and lines of `global` under which bodies are carried.
const WAYS: [(&str, &str); 5] = [
    ("", ""),
    ("option splice-auto", ""),
    ("option splice-request\n    option splice-response", ""),
    (
        "option splice-request\n    option splice-response",
        "nosplice",
    ),
    ("option splice-auto", "tune.pipesize 1048576"),
];

/// The bytes of a body: each position has its own, so that none can be lost, doubled or moved.
fn content(seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let word = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..=BODY_BYTES / 4).flat_map(word).collect();
    bytes.truncate(BODY_BYTES);
    bytes
}

/// `left == right`, without a megabyte of output.
fn assert_same(left: &[u8], right: &[u8], what: &str) {
    let differs = left.iter().zip(right).position(|(one, other)| one != other);
    assert_eq!((left.len(), differs), (right.len(), None), "{what}");
}

/// A server whose answers are framed as the path says, and that returns what it was sent.
fn start_origin() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || {
                // A proxy that leaves ends the connection: that is seen by its client.
                let _ = serve(socket);
            });
        }
    });
    port
}

fn serve(mut socket: TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    loop {
        let Some((path, body)) = request(&mut socket)? else {
            return Ok(());
        };
        let answer = if body.is_empty() { content(7) } else { body };
        match path.as_str() {
            "/length" => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                    answer.len()
                );
                socket.write_all(head.as_bytes())?;
                socket.write_all(&answer)?;
            }
            "/cut" => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                    answer.len()
                );
                socket.write_all(head.as_bytes())?;
                socket.write_all(&answer[..answer.len() / 2])?;
                return Ok(());
            }
            "/close" => {
                socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
                socket.write_all(&answer)?;
                return Ok(());
            }
            chunks => {
                let size = chunks.trim_start_matches("/chunks/").parse().unwrap_or(1);
                socket.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                write_chunks(&mut socket, &answer, size)?;
            }
        }
    }
}

fn write_chunks(socket: &mut TcpStream, body: &[u8], size: usize) -> std::io::Result<()> {
    for chunk in body.chunks(size) {
        let mut bytes = format!("{:x}\r\n", chunk.len()).into_bytes();
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
        socket.write_all(&bytes)?;
    }
    socket.write_all(b"0\r\nX-Behind: yes\r\n\r\n")
}

/// Reads a request: its path and its body. `None` at the end of the connection.
fn request(socket: &mut TcpStream) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if socket.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let field = |name: &str| {
        let line = head.lines().find(|line| line.starts_with(name));
        line.map(|line| line[name.len()..].trim().to_owned())
    };
    let mut body = Vec::new();
    if let Some(length) = field("content-length:") {
        body.resize(length.parse().expect("a number"), 0);
        socket.read_exact(&mut body)?;
    } else if field("transfer-encoding:").is_some() {
        loop {
            let size = usize::from_str_radix(&line(socket)?, 16).expect("a size");
            let start = body.len();
            body.resize(start + size, 0);
            socket.read_exact(&mut body[start..])?;
            let end = line(socket)?;
            if size == 0 {
                // What was read instead of the end of a chunk is the trailer.
                assert_eq!(end, "x-behind: yes", "the trailer comes");
                line(socket)?;
                break;
            }
        }
    }
    Ok(Some((path, body)))
}

fn line(socket: &mut TcpStream) -> std::io::Result<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line[..line.len() - 2]).to_ascii_lowercase())
}

/// A proxy in front of a server, with its command socket.
struct Site {
    proxy: Proxy,
    port: u16,
}

impl Site {
    fn start(program: &Program, mode: &str, (options, global): (&str, &str), origin: u16) -> Self {
        let port = free_port();
        let configuration = format!(
            "global\n    nbthread 1\n    maxconn 100\n    stats socket unix@admin.sock level admin\n    \
             {global}\n\
             defaults\n    mode {mode}\n    timeout connect 5s\n    timeout client 20s\n    \
             timeout server 20s\n    {options}\n\
             frontend www\n    bind 127.0.0.1:{port}\n    default_backend app\n\
             backend app\n    server one 127.0.0.1:{origin}\n"
        );
        let proxy = Proxy::start(program, &configuration, &[port]);
        Self { proxy, port }
    }

    fn api(&self) -> RuntimeApi {
        RuntimeApi::at(self.proxy.directory().join("admin.sock"))
    }

    /// A line of `show info`.
    fn number(&self, name: &str) -> u64 {
        let text = self.api().ask("show info");
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|line| line.strip_prefix(": "));
        value.expect("the value is told").parse().expect("a number")
    }

    fn column(&self, row: &str, column: &str) -> u64 {
        let value = self.api().stat_of(row, column);
        value.parse().expect("a number")
    }
}

/// Whether a way splices what is large.
fn splices((options, global): (&str, &str), program: &Program) -> bool {
    global != "nosplice" && (!options.is_empty() || program.is_ballast())
}

fn ask(client: &mut Client, path: &str) -> Response {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
    client.response()
}

#[test]
fn responses_arrive_whole_in_every_framing() {
    for program in Program::both() {
        for way in WAYS {
            let site = Site::start(&program, "http", way, start_origin());
            let mut client = Client::connect(site.port);
            for path in [
                "/length",
                "/chunks/1500",
                "/length",
                "/chunks/70000",
                "/chunks/1000000",
                "/length",
            ] {
                let what = format!("{} {way:?} {path}", program.name());
                let response = ask(&mut client, path);
                assert_eq!(response.status, 200, "{what}");
                assert_same(&response.body, &content(7), &what);
            }
            let what = format!("{} {way:?} until close", program.name());
            assert_same(&ask(&mut client, "/close").body, &content(7), &what);
            let spliced = site.number("TotalSplicedBytesOut");
            assert_eq!(spliced > 0, splices(way, &program), "{what}: {spliced}");
            assert_eq!(
                site.column("www/FRONTEND", "h1_spliced_bytes_out"),
                spliced,
                "{what}"
            );
            assert_eq!(
                site.column("app/BACKEND", "h1_spliced_bytes_in"),
                spliced,
                "{what}"
            );
            let bytes_out = site.column("www/FRONTEND", "bout");
            assert!(bytes_out > 7 * BODY_BYTES as u64, "{what}: {bytes_out}");
            assert!(bytes_out >= spliced, "{what}: {spliced} of {bytes_out}");
            assert_eq!(site.number("PipesUsed"), 0, "{what}");
        }
    }
}

#[test]
fn requests_arrive_whole_in_every_framing() {
    for program in Program::both() {
        for way in WAYS {
            let site = Site::start(&program, "http", way, start_origin());
            let mut client = Client::connect(site.port);
            for size in [0, 1_000, 65_536, BODY_BYTES, 0] {
                let what = format!("{} {way:?} chunks of {size}", program.name());
                let body = content(u32::try_from(size).expect("a few megabytes"));
                let framing = match size {
                    0 => format!("Content-Length: {BODY_BYTES}"),
                    _ => "Transfer-Encoding: chunked".to_owned(),
                };
                // The answer is read meanwhile: it is as long as the request.
                let socket = client.socket().try_clone().expect("a descriptor");
                let sender = thread::spawn({
                    let body = body.clone();
                    move || {
                        let mut socket = socket;
                        let head =
                            format!("POST /length HTTP/1.1\r\nHost: test\r\n{framing}\r\n\r\n");
                        socket.write_all(head.as_bytes()).expect("it is read");
                        match size {
                            0 => socket.write_all(&body).expect("it is read"),
                            size => write_chunks(&mut socket, &body, size).expect("it is read"),
                        }
                    }
                });
                let response = client.response();
                sender.join().expect("all was sent");
                assert_eq!(response.status, 200, "{what}");
                assert_same(&response.body, &body, &what);
            }
            let spliced = site.column("www/FRONTEND", "h1_spliced_bytes_in");
            assert_eq!(spliced > 0, splices(way, &program), "{way:?}: {spliced}");
            assert_eq!(site.column("app/BACKEND", "h1_spliced_bytes_out"), spliced);
            assert_eq!(site.number("PipesUsed"), 0);
        }
    }
}

/// A server that hands its connections to the test.
fn open_origin() -> (u16, Receiver<TcpStream>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let (give, take): (Sender<TcpStream>, _) = mpsc::channel();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            if give.send(socket).is_err() {
                return;
            }
        }
    });
    (port, take)
}

/// A session, from both ends. The first byte of the client has come.
fn session(site: &Site, servers: &Receiver<TcpStream>) -> (TcpStream, TcpStream) {
    let mut client = TcpStream::connect(("127.0.0.1", site.port)).expect("it listens");
    client.set_read_timeout(Some(WAIT_MAX)).expect("a time");
    client.write_all(b"!").expect("it is read");
    // The probe whether the proxy listens is a session too, and says nothing.
    loop {
        let mut server = servers.recv_timeout(WAIT_MAX).expect("the proxy connects");
        server.set_read_timeout(Some(WAIT_MAX)).expect("a time");
        if matches!(server.read(&mut [0]), Ok(1)) {
            return (client, server);
        }
    }
}

#[test]
fn sessions_are_carried_whole_both_ways_at_once() {
    for program in Program::both() {
        for way in WAYS {
            let what = format!("{} {way:?}", program.name());
            let (origin, servers) = open_origin();
            let site = Site::start(&program, "tcp", way, origin);
            let (mut client, mut server) = session(&site, &servers);
            let send = |socket: &TcpStream, seed| {
                let mut socket = socket.try_clone().expect("a descriptor");
                thread::spawn(move || {
                    socket.write_all(&content(seed)).expect("it is read");
                    socket.shutdown(Shutdown::Write).expect("half is closed");
                })
            };
            let senders = [send(&client, 1), send(&server, 2)];
            let up = thread::spawn(move || {
                let mut got = Vec::new();
                server.read_to_end(&mut got).expect("it ends in order");
                got
            });
            let mut down = Vec::new();
            client.read_to_end(&mut down).expect("it ends in order");
            assert_same(&down, &content(2), &what);
            assert_same(&up.join().expect("all was read"), &content(1), &what);
            for sender in senders {
                sender.join().expect("all was sent");
            }
            eventually("the pipes are back", || site.number("PipesUsed") == 0);
            let spliced = site.number("TotalSplicedBytesOut");
            assert_eq!(spliced > 0, splices(way, &program), "{what}: {spliced}");
            assert_eq!(
                site.column("www/FRONTEND", "h1_spliced_bytes_out"),
                0,
                "{what}"
            );
            assert_eq!(
                site.column("www/FRONTEND", "bout"),
                BODY_BYTES as u64,
                "{what}"
            );
        }
    }
}

const FORCED: &str = "option splice-request\n    option splice-response";

#[test]
fn a_download_without_a_pipe_is_copied() {
    for program in Program::both() {
        // A client that does not read: its bytes wait in the pipe.
        let way = (FORCED, "maxpipes 1\n    tune.sndbuf.client 65536");
        let site = Site::start(&program, "http", way, start_origin());
        let mut first = Client::connect(site.port);
        first.send("GET /length HTTP/1.1\r\nHost: test\r\n\r\n");
        // HAProxy leaves them with the server.
        if program.is_ballast() {
            eventually("a download waits in the pipe", || {
                site.number("PipesUsed") == 1
            });
        }
        assert_eq!(site.number("Maxpipes"), 1);
        let mut other = Client::connect(site.port);
        assert_same(
            &ask(&mut other, "/length").body,
            &content(7),
            program.name(),
        );
        assert!(site.number("PipesUsed") <= 1, "it was copied");
        assert_same(&first.response().body, &content(7), program.name());
        eventually("the pipe is back", || site.number("PipesUsed") == 0);
    }
}

#[test]
fn what_a_client_leaves_in_a_pipe_reaches_nobody() {
    // HAProxy's count of pipes in use was not seen to return to zero here.
    for program in [Program::ballast()] {
        let (origin, servers) = open_origin();
        let site = Site::start(&program, "tcp", (FORCED, ""), origin);
        for round in 0..6 {
            let client = TcpStream::connect(("127.0.0.1", site.port)).expect("it listens");
            let server = servers.recv_timeout(WAIT_MAX).expect("the proxy connects");
            server
                .set_write_timeout(Some(WAIT_MAX / 20))
                .expect("a time");
            // Nobody reads: sockets and pipe fill up, until the write takes too long.
            let filled = (&server).write_all(&vec![b'x'; 64 << 20]);
            assert!(round > 0 || filled.is_err(), "it does not all fit");
            if round % 2 == 0 {
                // Unread bytes make the close a reset.
                drop(client);
            } else {
                let sessions = site.api().ask("show sess");
                let id = sessions
                    .lines()
                    .find(|line| line.contains("fe=www"))
                    .and_then(|line| line.split(':').next())
                    .unwrap_or_default();
                let _ = site.api().ask(&format!("shutdown session {id}"));
            }
            eventually("the session is over", || site.number("PipesUsed") == 0);
        }
        let (mut client, server) = session(&site, &servers);
        let sender = thread::spawn(move || {
            let mut server = server;
            server.write_all(&content(3)).expect("it is read");
        });
        let mut got = Vec::new();
        client.read_to_end(&mut got).expect("it ends in order");
        sender.join().expect("all was sent");
        assert_same(&got, &content(3), program.name());
    }
}

#[test]
fn who_ends_a_spliced_body_is_logged() {
    for program in Program::both() {
        let (sink, port, origin) = (LogSink::start(), free_port(), start_origin());
        let configuration = format!(
            "global\n    nbthread 1\n    tune.sndbuf.client 65536\n    log 127.0.0.1:{} local0\n\
             defaults\n    mode http\n    log global\n    option httplog\n    \
             timeout connect 5s\n    timeout client 20s\n    timeout server 20s\n    {FORCED}\n\
             frontend www\n    bind 127.0.0.1:{port}\n    log-format \"%ST %ts %B\"\n    \
             default_backend app\n\
             backend app\n    server one 127.0.0.1:{origin}\n",
            sink.port()
        );
        let mut proxy = Proxy::start(&program, &configuration, &[port]);
        let mut client = Client::connect(port);
        client.send("GET /cut HTTP/1.1\r\nHost: test\r\n\r\n");
        let got = client.rest();
        assert!(
            got.len() > BODY_BYTES / 2,
            "what came is sent: {}",
            got.len()
        );
        let line = sink.line_with("200 ");
        assert!(line.contains("200 SD"), "{}: {line}", program.name());
        let client = Client::connect(port);
        let mut socket = client.socket();
        socket
            .write_all(b"GET /length HTTP/1.1\r\nHost: test\r\n\r\n")
            .expect("it is read");
        socket.read_exact(&mut [0; 1000]).expect("it begins");
        // Unread bytes make the close a reset.
        drop(client);
        let line = sink.line_with("200 C");
        assert!(line.contains("200 CD"), "{}: {line}", program.name());
        assert!(proxy.is_alive(), "no signal ended it");
    }
}
