//! `close-spread-time`: how connections are closed when the process stops softly.

use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

use ballast_tests::{Client, Program, Proxy, eventually, free_port};
use rustix::process::Signal;

/// Enough that all of them choose moments in one half of the time once in a billion runs.
const CLIENT_COUNT: usize = 30;

/// How long the closing takes.
const SPREAD: Duration = Duration::from_secs(4);

fn start(program: &Program, spread: &str) -> (Proxy, u16) {
    let port = free_port();
    let text = format!(
        "global\n nbthread 1\n{spread}\n\
         defaults\n mode http\n timeout client 30s\n\
         frontend www\n bind 127.0.0.1:{port}\n http-request return status 200\n"
    );
    (Proxy::start(program, &text, &[port]), port)
}

/// Clients that wait between two requests.
fn idle_clients(port: u16) -> Vec<Client> {
    let clients = (0..CLIENT_COUNT).map(|_| {
        let mut client = Client::connect(port);
        assert_eq!(client.get("/").status, 200);
        client
    });
    clients.collect()
}

/// Stops the proxy softly, and waits until it listens no more.
fn stop(proxy: &Proxy, port: u16) -> Instant {
    let at = Instant::now();
    proxy.signal(Signal::USR1);
    eventually("it listens no more", || {
        let refused = std::net::TcpStream::connect(("127.0.0.1", port));
        refused.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    });
    at
}

/// How many of them are closed by now.
fn closed_count(clients: &[Client]) -> usize {
    let looks = clients.iter().map(|client| {
        let socket = client.socket();
        socket.set_nonblocking(true).expect("a socket");
        let is_closed = match socket.peek(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        socket.set_nonblocking(false).expect("a socket");
        usize::from(is_closed)
    });
    looks.sum()
}

#[test]
fn idle_connections_are_closed_one_after_the_other() {
    for program in Program::both() {
        for waits_before in [Duration::ZERO, Duration::from_millis(2_500)] {
            let (mut proxy, port) = start(&program, " close-spread-time 4s");
            let clients = idle_clients(port);
            // After this they rest.
            thread::sleep(waits_before);
            let begun = stop(&proxy, port);
            // How late it is matters only to what must not have happened yet.
            let early = closed_count(&clients);
            if begun.elapsed() < SPREAD / 2 {
                assert!(early < CLIENT_COUNT, "{}: all at once", program.name());
            }
            thread::sleep((SPREAD / 2).saturating_sub(begun.elapsed()));
            let half = closed_count(&clients);
            assert!(half > 0, "{}: none in the first half", program.name());
            eventually("all are closed", || closed_count(&clients) == CLIENT_COUNT);
            assert!(begun.elapsed() > SPREAD / 2, "{}", program.name());
            assert!(proxy.wait().success());
        }
    }
}

#[test]
fn active_connections_are_closed_by_and_by() {
    for program in Program::both() {
        let (mut proxy, port) = start(&program, " close-spread-time 4s");
        let mut clients = idle_clients(port);
        let begun = stop(&proxy, port);
        let mut kept = 0;
        while !clients.is_empty() {
            clients.retain_mut(|client| {
                // One that is closed as idle at that moment gets no answer.
                let sent = client.try_send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
                let Ok(response) = sent.and_then(|()| client.try_response(false)) else {
                    return false;
                };
                let stays = response.header("connection") != Some("close");
                kept += usize::from(stays);
                stays
            });
            thread::sleep(Duration::from_millis(100));
        }
        assert!(
            kept > 0,
            "{}: all were told to close at once",
            program.name()
        );
        let limit = SPREAD + Duration::from_secs(3);
        assert!(begun.elapsed() < limit, "{}", program.name());
        assert!(proxy.wait().success());
    }
}

#[test]
fn connections_stay_where_nothing_is_to_close_them() {
    for program in Program::both() {
        let (mut proxy, port) = start(&program, " close-spread-time infinite");
        let mut clients = idle_clients(port);
        stop(&proxy, port);
        for client in &mut clients {
            let response = client.get("/");
            assert_eq!(response.status, 200);
            assert_eq!(response.header("connection"), None, "{}", program.name());
        }
        assert_eq!(closed_count(&clients), 0);
        assert!(proxy.is_alive());
        drop(clients);
        assert!(proxy.wait().success());
    }
}
