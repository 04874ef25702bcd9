//! Two connections over socket pairs: what one side sends the other gets, in its own framing.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ballast_message::{
    BodyLength, Fields, HeadLimits, Method, NameCases, Request, Response, Version,
};
use ballast_worker::{Deadline, Stream, block_on, spawn_local, yield_now};

use crate::{
    Afterwards, ClientConnection, Limits, ReadError, RelayError, ServerConnection, Wait, relay,
};

/// A socket of ours and its other end, which reads and writes in the test's own time.
fn pair() -> (Stream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    (Stream::from_fd(OwnedFd::from(ours)).unwrap(), theirs)
}

fn say(peer: &mut UnixStream, text: &str) {
    std::io::Write::write_all(peer, text.as_bytes()).unwrap();
}

fn heard(peer: &mut UnixStream) -> String {
    let mut bytes = vec![0; 65_536];
    let count = std::io::Read::read(peer, &mut bytes).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

const PATIENCE: Option<Duration> = Some(Duration::from_secs(5));

#[test]
fn a_chunked_request_is_received_and_its_body_carried_in_another_framing() {
    block_on(async {
        let (stream, mut client_end) = pair();
        let mut client = ClientConnection::new(stream, Limits::default());
        let (stream, mut server_end) = pair();
        let mut server = ServerConnection::new(stream, Limits::default());
        let (up, down) = (Deadline::new(), Deadline::new());
        let wait = Wait::each(&up, PATIENCE);
        say(
            &mut client_end,
            "\r\nPOST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        );
        let mut request = Request::new(HeadLimits::default());
        client.first_byte(&wait).await.unwrap();
        let received = client.request(&wait, &mut request).await.unwrap();
        assert_eq!(received.body, BodyLength::Chunked);
        assert!(client.inbound.check_ahead().unwrap(), "all of it is here");

        server.begin_request(&request, BodyLength::Known(5));
        let mut carried = 0;
        relay(
            (&mut client.inbound, &client.stream, &wait),
            (
                &mut server.outbound,
                &server.stream,
                &Wait::each(&down, PATIENCE),
            ),
            Afterwards::Goes,
            |bytes| carried += bytes,
        )
        .await
        .unwrap();
        assert_eq!(carried, 5);
        let sent = heard(&mut server_end);
        assert!(
            sent.starts_with("POST /a HTTP/1.1\r\n") && sent.ends_with("\r\n\r\nabcde"),
            "{sent}"
        );
    })
    .unwrap();
}

#[test]
fn a_response_that_ends_too_early_is_the_senders_fault() {
    block_on(async {
        let (stream, mut server_end) = pair();
        let mut server = ServerConnection::new(stream, Limits::default());
        let (stream, _client_end) = pair();
        let mut client = ClientConnection::new(stream, Limits::default());
        let deadline = Deadline::new();
        let wait = Wait::each(&deadline, PATIENCE);
        say(
            &mut server_end,
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        );
        drop(server_end);
        let mut response = Response::new(HeadLimits::default());
        let answer = server
            .answer(&wait, Method::Get, &mut response)
            .await
            .unwrap();
        assert_eq!(
            (answer.body, response.status()),
            (BodyLength::Known(10), 200)
        );
        client.outbound.begin_response(&response, answer.body);
        let result = relay(
            (&mut server.inbound, &server.stream, &wait),
            (&mut client.outbound, &client.stream, &wait),
            Afterwards::Goes,
            |_| {},
        )
        .await;
        assert!(
            matches!(result, Err(RelayError::From(ReadError::Closed))),
            "{result:?}"
        );
    })
    .unwrap();
}

#[test]
fn chunks_are_written_and_a_suppressed_body_is_not() {
    block_on(async {
        let (stream, mut peer) = pair();
        let mut connection = ClientConnection::new(stream, Limits::default());
        let deadline = Deadline::new();
        let wait = Wait::each(&deadline, PATIENCE);
        let mut response = Response::new(HeadLimits::default());
        response.set_version(Version::Http11);
        response.set_status(200).unwrap();
        for (length, tail) in [
            (BodyLength::Chunked, "\r\n\r\n2\r\nhi\r\n0\r\n\r\n"),
            (BodyLength::None, "\r\n\r\n"),
            (BodyLength::Known(2), "\r\n\r\nhi"),
        ] {
            connection.outbound.begin_response(&response, length);
            connection
                .outbound
                .body(&connection.stream, &wait, b"hi")
                .await
                .unwrap();
            connection.outbound.end_body(None);
            connection
                .outbound
                .flush(&connection.stream, &wait)
                .await
                .unwrap();
            assert!(!connection.outbound.has_pending());
            let sent = heard(&mut peer);
            assert_eq!(sent, format!("HTTP/1.1 200 OK{tail}"));
        }
    })
    .unwrap();
}

#[test]
fn silence_ends_a_wait_and_an_idle_connection_is_not_reused_once_its_server_spoke() {
    block_on(async {
        let (stream, mut server_end) = pair();
        let mut server = ServerConnection::new(stream, Limits::default());
        let deadline = Deadline::new();
        let wait = Wait::each(&deadline, Some(Duration::from_millis(5)));
        let mut response = Response::new(HeadLimits::default());
        let silent = server.answer(&wait, Method::Get, &mut response).await;
        assert!(matches!(silent, Err(ReadError::TimedOut)), "{silent:?}");
        assert!(server.is_reusable());
        say(&mut server_end, "HTTP/1.1 408 Late\r\n\r\n");
        server.stream.readable().await.unwrap();
        assert!(!server.is_reusable());
    })
    .unwrap();
}

#[test]
fn a_peer_that_insists_is_told_names_in_its_case_and_trailers_can_be_left_out() {
    block_on(async {
        let (stream, mut peer) = pair();
        let mut connection = ClientConnection::new(stream, Limits::default());
        let deadline = Deadline::new();
        let wait = Wait::each(&deadline, PATIENCE);
        let mut response = Response::new(HeadLimits::default());
        response.set_version(Version::Http11);
        response.set_status(200).unwrap();
        response.fields_mut().add(b"x-a", b"1").unwrap();
        response.fields_mut().add(b"x-b", b"2").unwrap();
        let mut trailers = Fields::new(HeadLimits::default());
        trailers.add(b"x-a", b"3").unwrap();
        let cases = Arc::new(NameCases::new([("x-a", "X-A")]));
        let out = &mut connection.outbound;
        let mut written = async |adjust: bool, drop: bool| {
            if adjust {
                out.adjust_names(&cases);
            }
            if drop {
                out.drop_trailers();
            }
            out.begin_response(&response, BodyLength::Chunked);
            out.end_body(Some(&trailers));
            out.flush(&connection.stream, &wait).await.unwrap();
            heard(&mut peer)
        };
        assert_eq!(
            written(false, false).await,
            "HTTP/1.1 200 OK\r\nx-a: 1\r\nx-b: 2\r\n\r\n0\r\nx-a: 3\r\n\r\n"
        );
        assert_eq!(
            written(true, false).await,
            "HTTP/1.1 200 OK\r\nX-A: 1\r\nx-b: 2\r\n\r\n0\r\nX-A: 3\r\n\r\n"
        );
        assert_eq!(
            written(false, true).await,
            "HTTP/1.1 200 OK\r\nX-A: 1\r\nx-b: 2\r\n\r\n0\r\n\r\n"
        );
    })
    .unwrap();
}

#[test]
fn a_look_ahead_goes_on_where_it_stopped() {
    block_on(async {
        let (stream, mut client_end) = pair();
        let mut client = ClientConnection::new(stream, Limits::default());
        let up = Deadline::new();
        let wait = Wait::each(&up, PATIENCE);
        let body = "1\r\na\r\n".repeat(2_500) + "0\r\n\r\n";
        client
            .inbound
            .begin_body(BodyLength::Chunked, &Limits::default(), true);
        for (at, byte) in body.bytes().enumerate() {
            assert!(!client.inbound.check_ahead().unwrap(), "after {at} bytes");
            std::io::Write::write_all(&mut client_end, &[byte]).unwrap();
            client.inbound.receive(&client.stream, &wait).await.unwrap();
        }
        assert!(client.inbound.check_ahead().unwrap());
        // Each byte once, and a line that is not whole once more with each byte of it. From the
        // start at each byte it is a hundred million.
        let looked_at = client.inbound.looked_at_bytes;
        assert!(looked_at <= 4 * body.len(), "{looked_at} bytes");
    })
    .unwrap();
}

#[test]
fn a_full_buffer_is_not_taken_for_the_peers_close() {
    block_on(async {
        let (stream, mut client_end) = pair();
        let mut client = ClientConnection::new(stream, Limits::default());
        let up = Deadline::new();
        let wait = Wait::each(&up, PATIENCE);
        say(&mut client_end, &"x".repeat(20_000));
        let refused = loop {
            match client.inbound.receive(&client.stream, &wait).await {
                Ok(count) => assert!(count > 0, "the peer is there"),
                Err(error) => break error,
            }
        };
        assert!(client.inbound.is_full());
        assert!(matches!(refused, ReadError::Broken(_)), "{refused:?}");
        assert!(!client.inbound.peer_closed());
    })
    .unwrap();
}

#[test]
fn a_body_of_tiny_chunks_leaves_other_tasks_their_turn() {
    block_on(async {
        let (stream, mut client_end) = pair();
        let mut client = ClientConnection::new(stream, Limits::default());
        let (stream, mut server_end) = pair();
        let mut server = ServerConnection::new(stream, Limits::default());
        say(&mut client_end, &("1\r\na\r\n".repeat(2_500) + "0\r\n\r\n"));
        client
            .inbound
            .begin_body(BodyLength::Chunked, &Limits::default(), true);
        server.outbound.begin_body(BodyLength::Known(2_500));
        let turns = Rc::new(Cell::new(0));
        let counted = Rc::clone(&turns);
        let others = spawn_local(async move {
            loop {
                counted.set(counted.get() + 1);
                yield_now().await;
            }
        });
        let carried = spawn_local(async move {
            let (up, down) = (Deadline::new(), Deadline::new());
            let (from_wait, to_wait) = (Wait::each(&up, PATIENCE), Wait::each(&down, PATIENCE));
            relay(
                (&mut client.inbound, &client.stream, &from_wait),
                (&mut server.outbound, &server.stream, &to_wait),
                Afterwards::Goes,
                |_| {},
            )
            .await
            .unwrap();
        });
        carried.join().await.unwrap();
        others.abort();
        assert_eq!(heard(&mut server_end).len(), 2_500);
        assert!(turns.get() > 10, "{} turns", turns.get());
    })
    .unwrap();
}
