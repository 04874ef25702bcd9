//! Connections that are answered while they are accepted: one that closes after its answer costs an
//! `accept`, a read, a write and a `close`, and neither a task nor a place in epoll.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use rustix::net::{SocketFlags, accept_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::Server;
use crate::answer::{Behaviour, Response};
use crate::head::{self, Framing, Head};

/// How much is read at once. A longer request goes the usual way.
const REQUEST_BYTES_MAX: usize = 4 << 10;
/// A longer body goes the usual way.
const BODY_BYTES_MAX: u64 = 64 << 10;

/// Watches a socket that listens.
///
/// # Errors
///
/// When it cannot be watched.
#[expect(
    deprecated,
    reason = "deprecated because a type could close its descriptor while it is watched; a listener \
              that is owned here cannot, and the successor is `unsafe`, which stays in one room"
)]
pub(crate) fn watch(listener: TcpListener) -> io::Result<AsyncFd<TcpListener>> {
    AsyncFd::with_interest(listener, Interest::READABLE)
}

/// Accepts a connection.
///
/// # Errors
///
/// Those of `accept(2)`.
pub(crate) async fn accept(listener: &AsyncFd<TcpListener>) -> io::Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let accepted = listener.async_io(Interest::READABLE, |listener| {
        Ok(accept_with(listener, flags)?)
    });
    let socket: OwnedFd = accepted.await?;
    Ok(TcpStream::from(socket))
}

/// What was read of a connection, and what must still be written.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    pub(crate) received: Vec<u8>,
    pub(crate) answers: Vec<u8>,
    /// The connection ends when everything is written.
    pub(crate) is_answered: bool,
}

impl Begun {
    /// Whether nothing is left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.is_answered && self.answers.is_empty()
    }
}

/// Reads what has arrived on a clear connection, and answers it if the connection ends with that.
pub(crate) fn begin(socket: &TcpStream, server: &Server) -> Begun {
    let mut begun = Begun::default();
    let (mut socket, mut buffer) = (socket, [0; REQUEST_BYTES_MAX]);
    // Nothing may have arrived. Errors come back with the next read.
    let Ok(length @ 1..) = socket.read(&mut buffer) else {
        return begun;
    };
    let received = &buffer[..length];
    match head::parse(received) {
        Ok(Some(head)) if is_short(&head) => {
            server.requests.set(server.requests.get() + 1);
            write_answer(&head, server, &mut begun);
        }
        _ => {
            begun.received.extend_from_slice(received);
            return begun;
        }
    }
    if let Ok(written) = socket.write(&begun.answers) {
        begun.answers.drain(..written);
    }
    begun
}

/// Whether a request is answered without a wait, and ends its connection.
fn is_short(head: &Head) -> bool {
    let asked = &head.asked;
    let is_waiting = !(asked.delay.is_zero() && asked.pause.is_zero() && asked.interim == 0);
    let is_short = matches!(
        asked.behaviour,
        Behaviour::Down | Behaviour::Health | Behaviour::Page | Behaviour::Say | Behaviour::Up
    );
    let has_body = !matches!(head.framing, Framing::Length(0)) || head.expects_continue;
    asked.is_closing && is_short && !is_waiting && !has_body && asked.size() <= BODY_BYTES_MAX
}

fn write_answer(head: &Head, server: &Server, begun: &mut Begun) {
    let answer = Response::to(&head.asked, server, Vec::new());
    answer.write_head(&mut begun.answers);
    let mut left = answer.body_bytes();
    while left > 0 {
        left -= answer.write_piece(left, &mut begun.answers);
    }
    answer.write_end(&mut begun.answers);
    begun.is_answered = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_answered_at_once(request: &str) -> bool {
        let head = head::parse(request.as_bytes()).unwrap();
        head.is_some_and(|head| is_short(&head))
    }

    #[test]
    fn what_ends_its_connection_without_a_wait_is_answered_at_once() {
        let close = "Connection: close\r\n\r\n";
        assert!(is_answered_at_once(&format!("GET /x HTTP/1.1\r\n{close}")));
        assert!(is_answered_at_once(
            "GET /x?close=1&size=9 HTTP/1.1\r\n\r\n"
        ));
        for request in [
            "GET /x HTTP/1.1\r\n\r\n".to_owned(),
            "GET /x HTTP/1.1\r\nConnection: cl".to_owned(),
            format!("GET /x?delay=1 HTTP/1.1\r\n{close}"),
            format!("GET /x?pause=1 HTTP/1.1\r\n{close}"),
            format!("GET /x?interim=1 HTTP/1.1\r\n{close}"),
            format!("GET /x?size=1000000 HTTP/1.1\r\n{close}"),
            format!("GET /echo HTTP/1.1\r\n{close}"),
            format!("GET /tls HTTP/1.1\r\n{close}"),
            format!("POST /x HTTP/1.1\r\nContent-Length: 5\r\n{close}hello"),
            format!("POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n{close}0\r\n\r\n"),
        ] {
            assert!(!is_answered_at_once(&request), "{request}");
        }
    }
}
