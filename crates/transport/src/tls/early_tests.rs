//! Early data: what comes with a client's hello.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use ballast_worker::{Stream, block_on};
use rustls::{ClientConfig, ClientConnection, ServerConfig, StreamOwned};

use super::tests::{configs, name, pair, read_exactly};
use super::{Handshake, HandshakeFailure, TlsFacts};
use crate::Transport;

const EARLY: &[u8] = b"hello";

/// Configurations with early data, and a session to resume.
fn with_session() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let (mut server, mut client) = configs(&rustls::version::TLS13);
    let config = Arc::make_mut(&mut server);
    config.max_early_data_size = 100;
    config.send_half_rtt_data = true;
    Arc::make_mut(&mut client).enable_early_data = true;
    let (ours, theirs) = pair();
    let connection = ClientConnection::new(Arc::clone(&client), name()).unwrap();
    let peer = thread::spawn(move || {
        let mut peer = StreamOwned::new(connection, theirs);
        peer.write_all(b"x").unwrap();
        peer.read_exact(&mut [0]).unwrap();
    });
    block_on(async {
        let (transport, facts) = accept(&server, ours).await.unwrap();
        assert!(!facts.received_early_data && transport.pending_handshake().is_none());
        assert_eq!(read_exactly(&transport, 1).await, b"x");
        transport.write_all(b"y").await.unwrap();
    })
    .unwrap();
    peer.join().unwrap();
    (server, client)
}

async fn accept(
    config: &Arc<ServerConfig>,
    socket: OwnedFd,
) -> Result<(Transport, TlsFacts), HandshakeFailure> {
    let socket = Stream::from_fd(socket).unwrap();
    let handshake = Handshake::server(Arc::clone(config)).unwrap();
    handshake.run(socket, Vec::new()).await
}

/// A client that has sent its hello with early data, and what it has sent.
fn client_with_early_data(
    config: &Arc<ClientConfig>,
    mut socket: &TcpStream,
) -> (ClientConnection, Vec<u8>) {
    let mut connection = ClientConnection::new(Arc::clone(config), name()).unwrap();
    let mut early = connection.early_data().expect("a session allows it");
    early.write_all(EARLY).unwrap();
    let mut flight = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut flight).unwrap();
    }
    socket.write_all(&flight).unwrap();
    (connection, flight)
}

#[test]
fn early_data_are_answered_before_the_handshake_is_over() {
    let (server, client) = with_session();
    let (ours, theirs) = pair();
    let (go, goes_on) = channel();
    let (connection, _) = client_with_early_data(&client, &theirs);
    let peer = thread::spawn(move || {
        goes_on.recv().unwrap();
        let mut peer = StreamOwned::new(connection, theirs);
        let mut answer = [0; 6];
        peer.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"answer");
        assert!(peer.conn.is_early_data_accepted());
        peer.write_all(b"more").unwrap();
        let mut rest = Vec::new();
        peer.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"end");
    });
    block_on(async {
        let (transport, facts) = accept(&server, ours).await.unwrap();
        assert!(facts.received_early_data && facts.is_resumed);
        let pending = transport.pending_handshake().expect("it goes on");
        assert_eq!(read_exactly(&transport, 5).await, EARLY);
        transport.write_all(b"answer").await.unwrap();
        assert!(!pending.is_over(), "the client has not answered");
        go.send(()).unwrap();
        pending.finished().await.unwrap();
        assert!(pending.is_over());
        assert_eq!(read_exactly(&transport, 4).await, b"more");
        transport.write_all(b"end").await.unwrap();
        drop(transport);
        assert!(pending.finished().await.is_err());
    })
    .unwrap();
    peer.join().unwrap();
}

#[test]
fn what_is_waited_for_keeps_what_was_not_read() {
    let (server, client) = with_session();
    let (ours, theirs) = pair();
    let (connection, _) = client_with_early_data(&client, &theirs);
    let peer = thread::spawn(move || {
        let mut peer = StreamOwned::new(connection, theirs);
        peer.write_all(b", and more").unwrap();
        peer.read_exact(&mut [0]).unwrap();
    });
    block_on(async {
        let (transport, _) = accept(&server, ours).await.unwrap();
        let pending = transport.pending_handshake().expect("it goes on");
        pending.finished().await.unwrap();
        assert_eq!(read_exactly(&transport, 15).await, b"hello, and more");
        transport.write_all(b"y").await.unwrap();
    })
    .unwrap();
    peer.join().unwrap();
}

#[test]
fn who_repeats_early_data_is_not_heard() {
    let (server, client) = with_session();
    let (ours, theirs) = pair();
    let (_, flight) = client_with_early_data(&client, &theirs);
    block_on(async {
        let (transport, _) = accept(&server, ours).await.unwrap();
        let pending = transport.pending_handshake().expect("it goes on");
        assert_eq!(read_exactly(&transport, 5).await, EARLY);
        let (ours, mut theirs) = pair();
        theirs.write_all(&flight).unwrap();
        theirs.shutdown(Shutdown::Write).unwrap();
        let again = accept(&server, ours).await;
        assert!(matches!(
            again,
            Err(HandshakeFailure::Closed { had_bytes: true })
        ));
        assert!(!pending.is_over());
    })
    .unwrap();
}

#[test]
fn a_handshake_that_is_not_finished_is_never_over() {
    let (server, client) = with_session();
    let (ours, mut theirs) = pair();
    let (_, _) = client_with_early_data(&client, &theirs);
    block_on(async {
        let (transport, _) = accept(&server, ours).await.unwrap();
        let pending = transport.pending_handshake().expect("it goes on");
        // Neither early data nor a Finished.
        theirs.write_all(&[23, 3, 3, 0, 40]).unwrap();
        theirs.write_all(&[0; 40]).unwrap();
        assert!(pending.finished().await.is_err());
        assert!(!pending.is_over());
    })
    .unwrap();
}
