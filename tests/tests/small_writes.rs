//! Peers that write a message in small parts without TCP_NODELAY are not kept waiting for our
//! acknowledgement.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use ballast_tests::{Client, Program, Proxy, WAIT_MAX, free_port};

/// The kernel delays an acknowledgement by at least this much.
const DELAYED: Duration = Duration::from_millis(40);
/// The number of requests for the median.
const COUNT: usize = 21;

/// Sends each response in three writes.
fn serve(mut socket: TcpStream) {
    let mut received = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        match socket.read(&mut bytes) {
            Ok(count @ 1..) => received.extend_from_slice(&bytes[..count]),
            _ => return,
        }
        let head = received.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(head) = head.map(|at| at + 4) else {
            continue;
        };
        let body = if received.starts_with(b"POST") { 6 } else { 0 };
        if received.len() < head + body {
            continue;
        }
        received.drain(..head + body);
        for piece in ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hel", "lo"] {
            if socket.write_all(piece.as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn origin() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || serve(socket));
        }
    });
    address.port()
}

fn start(program: &Program, port: u16) -> Proxy {
    let configuration = format!(
        "global\n    nbthread 1\ndefaults\n    mode http\n    timeout connect 5s\n    \
         timeout client 20s\n    timeout server 20s\nfrontend www\n    bind 127.0.0.1:{port}\n    \
         default_backend app\nbackend app\n    server one 127.0.0.1:{}\n",
        origin()
    );
    Proxy::start(program, &configuration, &[port])
}

fn median(mut exchange: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..COUNT)
        .map(|_| {
            let begun = Instant::now();
            exchange();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[COUNT / 2]
}

#[track_caller]
fn is_prompt(program: &Program, times: [(&str, Duration); 2]) {
    for (of, time) in times {
        assert!(time < DELAYED / 2, "{}, {of}: {time:?}", program.name());
    }
}

/// A server's response in three writes, on a new connection to it: HAProxy uses quick
/// acknowledgements there, too. On a reused connection it waits 40 milliseconds, Ballast does not.
#[test]
fn a_server_that_writes_little_by_little() {
    for program in Program::both() {
        let port = free_port();
        let _proxy = start(&program, port);
        // The pool would reuse the connections of earlier requests.
        let mut kept = Vec::new();
        let fresh = median(|| {
            let mut client = Client::connect(port);
            // A client's first request does not use another client's connection (`http-reuse
            // safe`).
            client.send("GET / HTTP/1.0\r\nHost: test\r\n\r\n");
            assert_eq!(client.response().text(), "hello");
            kept.push(client);
        });
        let mut client = Client::connect(port);
        let again = median(|| assert_eq!(client.get("/").text(), "hello"));
        let again = if program.is_ballast() { again } else { fresh };
        is_prompt(&program, [("fresh", fresh), ("again", again)]);
    }
}

/// A client's request in three writes.
#[test]
fn a_client_that_writes_little_by_little() {
    let heads = [
        &["POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 6\r\n\r\n"][..],
        // HAProxy does not acknowledge the first part of a head at once.
        &[
            "POST / HTTP/1.1\r\n",
            "Host: test\r\nContent-Length: 6\r\n\r\n",
        ],
    ];
    for program in Program::both() {
        let port = free_port();
        let _proxy = start(&program, port);
        let request = |client: &mut Client| {
            client.socket().set_nodelay(false).expect("a TCP socket");
            let head = heads[usize::from(program.is_ballast())];
            for piece in head.iter().chain(&["abc", "def"]) {
                client.send(piece);
            }
        };
        // The response is sent in parts, too: the time until the server has the whole request is
        // measured.
        let answered = |client: &mut Client| {
            let mut head = [0; 12];
            client
                .socket()
                .set_read_timeout(Some(WAIT_MAX))
                .expect("a timeout");
            client
                .socket()
                .read_exact(&mut head)
                .expect("an answer comes");
            assert_eq!(&head, b"HTTP/1.1 200");
        };
        let fresh = median(|| {
            let mut client = Client::connect(port);
            request(&mut client);
            answered(&mut client);
        });
        let mut client = Client::connect(port);
        let again = median(|| {
            request(&mut client);
            answered(&mut client);
            let mut rest = Vec::new();
            while !rest.ends_with(b"hello") {
                let mut byte = [0];
                client
                    .socket()
                    .read_exact(&mut byte)
                    .expect("the rest comes");
                rest.push(byte[0]);
            }
        });
        let again = if program.is_ballast() { again } else { fresh };
        is_prompt(&program, [("fresh", fresh), ("again", again)]);
    }
}
