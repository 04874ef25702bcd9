//! Connections to peers that the test simulates, over a clear transport and over records.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use ballast_message::{
    BodyLength, Fields, HeadLimits, Method, NameCases, Request, Response, Version,
};
use ballast_worker::{Deadline, block_on, buffer_use, sleep, spawn_local, yield_now};

use self::peer::{Peer, Travel};
use crate::channel::Channel;
use crate::{
    AfterBody, ClientConnection, Limits, ReadError, RelayError, ServerConnection, SpliceMode,
    WaitLimit, relay,
};

mod bulk;
mod peer;
mod records;
mod streams;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(5));

#[test]
fn a_chunked_request_is_received_and_its_body_carried_in_another_framing() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut client_end) = travel.pair();
            let mut client = ClientConnection::new(transport, Limits::default(), b"");
            let (transport, mut server_end) = travel.pair();
            let mut server = ServerConnection::new(transport, Limits::default());
            let (up, down) = (Deadline::new(), Deadline::new());
            let wait = WaitLimit::each(&up, PATIENCE);
            client_end.say(
                "\r\nPOST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            );
            let mut request = Request::new(HeadLimits::default());
            client.first_byte(&wait).await.unwrap();
            let received = client.request(&wait, &mut request).await.unwrap();
            assert_eq!(received.body, BodyLength::Chunked);
            assert!(client.inbound.check_ahead().unwrap(), "all of it is here");

            server.begin_request(&request, BodyLength::Known(5), None);
            let mut carried = 0;
            relay(
                (&mut client.duplex().source, &wait),
                (&mut server.duplex().sink, &WaitLimit::each(&down, PATIENCE)),
                (SpliceMode::Never, AfterBody::Other),
                |piece| carried += piece.bytes,
            )
            .await
            .unwrap();
            assert_eq!(carried, 5);
            let sent = server_end.heard();
            assert!(
                sent.starts_with("POST /a HTTP/1.1\r\n") && sent.ends_with("\r\n\r\nabcde"),
                "{sent}"
            );
        })
        .unwrap();
    }
}

#[test]
fn a_body_is_looked_at_while_it_arrives_and_then_carried() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut client_end) = travel.pair();
            let mut client = ClientConnection::new(transport, Limits::default(), b"");
            let up = Deadline::new();
            let wait = WaitLimit::each(&up, PATIENCE);
            client_end.say(
                "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nd",
            );
            let mut request = Request::new(HeadLimits::default());
            client.first_byte(&wait).await.unwrap();
            client.request(&wait, &mut request).await.unwrap();
            let mut source = client.duplex().source;
            let mut body = b"of a former request".to_vec();
            source.receive_body(&wait, 4).await.unwrap();
            assert!(!source.copy_ahead(&mut body));
            assert_eq!(body, b"abcd");
            client_end.say("e\r\n0\r\n\r\n");
            source.receive_body(&wait, 0).await.unwrap();
            assert!(source.copy_ahead(&mut body), "it is whole");
            assert_eq!((body.as_slice(), source.waiting_bytes()), (b"abcde".as_slice(), 5));
            assert!(source.copy_ahead(&mut body));
            assert_eq!(body, b"abcde", "nothing is copied twice");
            let mut carried = Vec::new();
            while let Some(piece) = source.piece(&wait).await.unwrap() {
                carried.extend_from_slice(piece);
            }
            assert_eq!(carried, b"abcde");
        })
        .unwrap();
    }
}

#[test]
fn what_was_taken_of_a_body_is_not_taken_for_the_next_request() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut client_end) = travel.pair();
            let mut client = ClientConnection::new(transport, Limits::default(), b"");
            let up = Deadline::new();
            let wait = WaitLimit::each(&up, PATIENCE);
            client_end.say(
                "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\
                 GET /b HTTP/1.1\r\nHost: h\r\n\r\n",
            );
            let mut request = Request::new(HeadLimits::default());
            client.first_byte(&wait).await.unwrap();
            client.request(&wait, &mut request).await.unwrap();
            let mut exchange = client.duplex();
            // All of the body, and its end was not asked for.
            let piece = exchange.source.piece(&wait).await.unwrap();
            assert_eq!(piece, Some(&b"abc"[..]));
            assert!(exchange.source.is_done());
            client.drain(&wait).await.unwrap();
            client.request(&wait, &mut request).await.unwrap();
            assert_eq!(request.target(), b"/b");
        })
        .unwrap();
    }
}

#[test]
fn a_response_that_ends_too_early_is_the_senders_fault() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut server_end) = travel.pair();
            let mut server = ServerConnection::new(transport, Limits::default());
            let (transport, _client_end) = travel.pair();
            let mut client = ClientConnection::new(transport, Limits::default(), b"");
            let deadline = Deadline::new();
            let wait = WaitLimit::each(&deadline, PATIENCE);
            server_end.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
            server_end.end();
            let mut response = Response::new(HeadLimits::default());
            let answer = server
                .duplex()
                .source
                .response(&wait, Method::Get, &mut response)
                .await
                .unwrap();
            assert_eq!(
                (answer.body, response.status()),
                (BodyLength::Known(10), 200)
            );
            client
                .outbound
                .begin_response((&client.transport).into(), &response, answer.body);
            let result = relay(
                (&mut server.duplex().source, &wait),
                (&mut client.duplex().sink, &wait),
                (SpliceMode::Never, AfterBody::Other),
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
}

#[test]
fn chunks_are_written_and_a_suppressed_body_is_not() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut peer) = travel.pair();
            let mut connection = ClientConnection::new(transport, Limits::default(), b"");
            let deadline = Deadline::new();
            let wait = WaitLimit::each(&deadline, PATIENCE);
            let mut response = Response::new(HeadLimits::default());
            response.set_version(Version::Http11);
            response.set_status(200).unwrap();
            for (length, tail) in [
                (BodyLength::Chunked, "\r\n\r\n2\r\nhi\r\n0\r\n\r\n"),
                (BodyLength::None, "\r\n\r\n"),
                (BodyLength::Known(2), "\r\n\r\nhi"),
            ] {
                connection.outbound.begin_response(
                    (&connection.transport).into(),
                    &response,
                    length,
                );
                connection
                    .outbound
                    .body((&connection.transport).into(), &wait, b"hi")
                    .await
                    .unwrap();
                connection
                    .outbound
                    .end_body((&connection.transport).into(), None);
                connection
                    .outbound
                    .flush((&connection.transport).into(), &wait)
                    .await
                    .unwrap();
                assert!(!connection.outbound.has_pending());
                let sent = peer.heard();
                assert_eq!(sent, format!("HTTP/1.1 200 OK{tail}"));
            }
        })
        .unwrap();
    }
}

#[test]
fn silence_ends_a_wait_and_an_idle_connection_is_not_reused_once_its_server_spoke() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut server_end) = travel.pair();
            let mut server = ServerConnection::new(transport, Limits::default());
            let deadline = Deadline::new();
            let wait = WaitLimit::each(&deadline, Some(Duration::from_millis(5)));
            let mut response = Response::new(HeadLimits::default());
            let silent = server
                .duplex()
                .source
                .response(&wait, Method::Get, &mut response)
                .await;
            assert!(matches!(silent, Err(ReadError::TimedOut)), "{silent:?}");
            assert!(server.is_reusable());
            let watched = poll_fn(|cx| Poll::Ready(server.poll_unusable(cx))).await;
            assert!(watched.is_pending());
            server_end.say("HTTP/1.1 408 Late\r\n\r\n");
            poll_fn(|cx| server.poll_unusable(cx)).await;
            assert!(!server.is_reusable());
        })
        .unwrap();
    }
}

#[test]
fn a_peer_that_insists_is_told_names_in_its_case_and_trailers_can_be_left_out() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut peer) = travel.pair();
            let mut connection = ClientConnection::new(transport, Limits::default(), b"");
            let deadline = Deadline::new();
            let wait = WaitLimit::each(&deadline, PATIENCE);
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
                out.set_format(adjust.then(|| Arc::clone(&cases)), drop);
                out.begin_response(
                    (&connection.transport).into(),
                    &response,
                    BodyLength::Chunked,
                );
                out.end_body((&connection.transport).into(), Some(&trailers));
                out.flush((&connection.transport).into(), &wait)
                    .await
                    .unwrap();
                peer.heard()
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
                "HTTP/1.1 200 OK\r\nx-a: 1\r\nx-b: 2\r\n\r\n0\r\n\r\n"
            );
        })
        .unwrap();
    }
}

#[test]
fn a_look_ahead_goes_on_where_it_stopped() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut client_end) = travel.pair();
            let mut client = ClientConnection::new(transport, Limits::default(), b"");
            let up = Deadline::new();
            let wait = WaitLimit::each(&up, PATIENCE);
            let body = "1\r\na\r\n".repeat(2_500) + "0\r\n\r\n";
            client
                .inbound
                .begin_body(BodyLength::Chunked, &Limits::default(), true);
            for (at, byte) in body.bytes().enumerate() {
                assert!(!client.inbound.check_ahead().unwrap(), "after {at} bytes");
                client_end.say(char::from(byte).encode_utf8(&mut [0; 1]));
                client
                    .inbound
                    .receive((&client.transport).into(), &wait)
                    .await
                    .unwrap();
            }
            assert!(client.inbound.check_ahead().unwrap());
            // Each byte once, and a line that is not whole once more with each byte of it. From
            // the start at each byte it is a hundred million.
            let looked_at = client.inbound.looked_at_bytes;
            assert!(looked_at <= 4 * body.len(), "{looked_at} bytes");
        })
        .unwrap();
    }
}

#[test]
fn a_full_buffer_is_not_taken_for_the_peers_close() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut client_end) = travel.pair();
            let mut client = ClientConnection::new(transport, Limits::default(), b"");
            let up = Deadline::new();
            let wait = WaitLimit::each(&up, PATIENCE);
            client_end.say(&"x".repeat(20_000));
            let refused = loop {
                match client
                    .inbound
                    .receive((&client.transport).into(), &wait)
                    .await
                {
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
}

#[test]
fn a_body_of_tiny_chunks_leaves_other_tasks_their_turn() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut client_end) = travel.pair();
            let mut client = ClientConnection::new(transport, Limits::default(), b"");
            let (transport, mut server_end) = travel.pair();
            let mut server = ServerConnection::new(transport, Limits::default());
            client_end.say(&("1\r\na\r\n".repeat(2_500) + "0\r\n\r\n"));
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
                let (from_wait, to_wait) = (
                    WaitLimit::each(&up, PATIENCE),
                    WaitLimit::each(&down, PATIENCE),
                );
                relay(
                    (&mut client.duplex().source, &from_wait),
                    (&mut server.duplex().sink, &to_wait),
                    (SpliceMode::Never, AfterBody::Other),
                    |_| {},
                )
                .await
                .unwrap();
            });
            carried.join().await.unwrap();
            others.abort();
            assert_eq!(server_end.heard().len(), 2_500);
            assert!(turns.get() > 10, "{} turns", turns.get());
        })
        .unwrap();
    }
}

#[test]
fn what_carries_no_plaintext_leaves_an_idle_connection_reusable() {
    block_on(async {
        let (transport, mut server_end) = Travel::InRecords.pair();
        let server = ServerConnection::new(transport, Limits::default());
        let carrier_only: [fn(&mut Peer); 2] = [Peer::send_ticket, Peer::begin_record];
        for send in carrier_only {
            send(&mut server_end);
            server.transport().readable().await.unwrap();
            assert!(server.transport().is_readable(), "the socket is");
            assert!(server.is_reusable());
            assert!(!server.transport().is_readable(), "it was taken in");
        }
        let (transport, mut server_end) = Travel::InRecords.pair();
        let server = ServerConnection::new(transport, Limits::default());
        server_end.send_ticket();
        server_end.end();
        server.transport().readable().await.unwrap();
        assert!(!server.is_reusable(), "the end came after the ticket");
    })
    .unwrap();
}

#[test]
fn who_waits_for_a_request_is_not_told_of_what_carries_no_plaintext() {
    block_on(async {
        let (transport, mut client_end) = Travel::InRecords.pair();
        let mut client = ClientConnection::new(transport, Limits::default(), b"");
        let deadline = Deadline::new();
        client_end.send_ticket();
        let wait = WaitLimit::each(&deadline, Some(Duration::from_millis(20)));
        let silent = client.first_byte(&wait).await;
        assert!(matches!(silent, Err(ReadError::TimedOut)), "{silent:?}");
        assert_eq!(buffer_use().in_use, 0);
        client_end.say("G");
        let wait = WaitLimit::each(&deadline, PATIENCE);
        client.first_byte(&wait).await.unwrap();
        assert_eq!(client.inbound.bytes(), b"G");
    })
    .unwrap();
}

#[test]
fn each_side_ends_by_itself() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut server_end) = travel.pair();
            let mut server = ServerConnection::new(transport, Limits::default());
            let deadline = Deadline::new();
            let wait = WaitLimit::each(&deadline, PATIENCE);
            server.outbound.head().extend_from_slice(b"last words");
            let (transport, inbound, outbound) = server.halves();
            let channel = Channel::Connection(transport);
            outbound.flush_before_close(channel, &wait).await.unwrap();
            transport.shutdown_write().unwrap();
            assert_eq!(server_end.heard(), "last words");
            assert!(server_end.has_ended);
            // The other side has not.
            server_end.say("answer");
            inbound
                .receive(Channel::Connection(transport), &wait)
                .await
                .unwrap();
            assert_eq!(inbound.bytes(), b"answer");
            inbound.consume(6);
            server_end.end();
            assert_eq!(
                inbound
                    .receive(Channel::Connection(transport), &wait)
                    .await
                    .unwrap(),
                0
            );
            assert!(inbound.peer_closed());
            assert!(!server.is_reusable());
        })
        .unwrap();
    }
}

#[test]
fn what_a_full_socket_does_not_take_is_sent_before_the_sender_is_waited_for() {
    // More bytes than the sockets and buffers between the two ends hold.
    const ROUND_BYTES: usize = 150_000;
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut client_end) = travel.pair();
            let mut client = ClientConnection::new(transport, Limits::default(), b"");
            let (transport, mut server_end) = travel.pair();
            let mut server = ServerConnection::new(transport, Limits::default());
            server
                .inbound
                .begin_body(BodyLength::UntilClose, &Limits::default(), false);
            client.outbound.begin_body(BodyLength::UntilClose);
            let carried = spawn_local(async move {
                let (up, down) = (Deadline::new(), Deadline::new());
                let (from_wait, to_wait) = (
                    WaitLimit::each(&up, PATIENCE),
                    WaitLimit::each(&down, PATIENCE),
                );
                relay(
                    (&mut server.duplex().source, &from_wait),
                    (&mut client.duplex().sink, &to_wait),
                    (SpliceMode::Never, AfterBody::Other),
                    |_| {},
                )
                .await
                .unwrap();
                assert!(!client.transport.has_unsent());
            });
            for _ in 0..2 {
                server_end.say(&"x".repeat(ROUND_BYTES));
                sleep(Duration::from_millis(20)).await;
            }
            // The server sends nothing more for now, and has not closed.
            let begun = Instant::now();
            let mut heard = 0;
            while heard < 2 * ROUND_BYTES {
                assert!(begun.elapsed() < Duration::from_secs(5), "{heard} came");
                heard += client_end.heard().len();
                sleep(Duration::from_millis(1)).await;
            }
            server_end.end();
            carried.join().await.unwrap();
        })
        .unwrap();
    }
}

#[test]
fn bytes_that_are_no_http_are_written_whole_and_read_as_they_come() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, mut peer) = travel.pair();
            let words = "x".repeat(100_000);
            transport.write_all(words.as_bytes()).await.unwrap();
            assert!(!transport.has_unsent());
            assert_eq!(peer.heard(), words);
            peer.say("yes");
            let mut bytes = [0; 2];
            assert_eq!(transport.read(&mut bytes).await.unwrap(), 2);
            assert_eq!(transport.read(&mut bytes).await.unwrap(), 1);
            peer.end();
            assert_eq!(transport.read(&mut bytes).await.unwrap(), 0);
        })
        .unwrap();
    }
}

#[test]
fn only_a_clear_transport_shows_its_socket() {
    block_on(async {
        assert!(Travel::Clear.pair().0.as_clear().is_some());
        assert!(Travel::InRecords.pair().0.as_clear().is_none());
    })
    .unwrap();
}
