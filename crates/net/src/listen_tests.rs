//! Listening sockets on loopback.

use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;
use crate::passing::SocketQuery;
use crate::{
    ConnectProgress, ErrorClass, KeepAlive, SocketPool, UnixPermissions, connect, offer_sockets,
    withdraw_sockets,
};

fn loopback() -> Address {
    Address::Ip("127.0.0.1:0".parse().unwrap())
}

#[test]
fn a_tcp_listener_has_a_real_port_and_accepts_without_waiting() {
    let bound = listen(&loopback(), &ListenOptions::default()).unwrap();
    let ip = bound.address.ip().unwrap();
    assert_ne!(ip.port(), 0);
    assert!(bound.refused.is_empty(), "{:?}", bound.refused);
    assert_eq!(
        crate::accept(&bound.fd).unwrap_err().kind(),
        io::ErrorKind::WouldBlock
    );
    let mut client = TcpStream::connect(ip).unwrap();
    let (server, peer) = crate::accept(&bound.fd).unwrap();
    assert_eq!(peer.ip().unwrap(), client.local_addr().unwrap());
    assert!(
        sockopt::tcp_nodelay(&server).unwrap(),
        "inherited from the listener"
    );
    assert_eq!(crate::send(&server, b"hello").unwrap(), 5);
    drop(server);
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello");
}

#[test]
fn tuning_options_reach_the_kernel() {
    let options = ListenOptions {
        congestion: Some("reno".into()),
        defer_accept: true,
        fast_open_pending_max: Some(16),
        mss: Some(900),
        user_timeout: Some(Duration::from_millis(1500)),
        ..ListenOptions::default()
    };
    let bound = listen(&loopback(), &options).unwrap();
    assert!(bound.refused.is_empty(), "{:?}", bound.refused);
    assert_eq!(sockopt::tcp_congestion(&bound.fd).unwrap(), "reno");
    assert_eq!(sockopt::tcp_user_timeout(&bound.fd).unwrap(), 1500);
    // Deferred: a connection that has sent nothing cannot be accepted.
    let mut client = TcpStream::connect(bound.address.ip().unwrap()).unwrap();
    assert!(crate::accept(&bound.fd).is_err());
    io::Write::write_all(&mut client, b"x").unwrap();
    let mut byte = [0_u8; 1];
    let accepted = (0..100).find_map(|_| {
        std::thread::yield_now();
        crate::accept(&bound.fd).ok()
    });
    assert_eq!(crate::receive(&accepted.unwrap().0, &mut byte).unwrap(), 1);
}

#[test]
fn a_refused_tuning_option_is_reported_and_the_socket_works() {
    let options = ListenOptions {
        congestion: Some("no-such".into()),
        ..ListenOptions::default()
    };
    let bound = listen(&loopback(), &options).unwrap();
    assert_eq!(bound.refused.len(), 1);
    assert_eq!(bound.refused[0].call(), "setsockopt(TCP_CONGESTION)");
    TcpStream::connect(bound.address.ip().unwrap()).unwrap();
}

#[test]
fn an_address_in_use_is_named() {
    let options = ListenOptions {
        reuse_port: false,
        ..ListenOptions::default()
    };
    let first = listen(&loopback(), &options).unwrap();
    let error = listen(&first.address, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorClass::AddressInUse);
    assert!(
        error.to_string().contains(&first.address.to_string()),
        "{error}"
    );
}

#[test]
fn reuseport_lets_two_share() {
    let first = listen(&loopback(), &ListenOptions::default()).unwrap();
    listen(&first.address, &ListenOptions::default()).unwrap();
}

#[test]
fn v6only_and_v4v6() {
    let any = Address::Ip("[::]:0".parse().unwrap());
    let both = ListenOptions {
        v6_only: Some(false),
        ..ListenOptions::default()
    };
    let Ok(bound) = listen(&any, &both) else {
        eprintln!("SKIPPED: no IPv6 on this machine");
        return;
    };
    let port = bound.address.ip().unwrap().port();
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    let only = ListenOptions {
        v6_only: Some(true),
        ..ListenOptions::default()
    };
    let bound = listen(&any, &only).unwrap();
    let port = bound.address.ip().unwrap().port();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_path_appears_complete_and_replaces_an_older_socket() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("web.sock");
    let options = ListenOptions {
        unix: UnixPermissions {
            mode: Some(0o620),
            ..UnixPermissions::default()
        },
        ..ListenOptions::default()
    };
    let address = Address::Unix(path.clone());
    let _old = listen(&address, &options).unwrap();
    let new = listen(&address, &options).unwrap();
    assert_eq!(new.address, address);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o620);
    let _client = UnixStream::connect(&path).unwrap();
    let (_, peer) = crate::accept(&new.fd).unwrap();
    assert_eq!(peer, Address::Unnamed);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        1,
        "no temporary name left"
    );
}

#[test]
fn a_file_that_is_no_socket_is_not_destroyed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("precious");
    std::fs::write(&path, "data").unwrap();
    let error = listen(&Address::Unix(path.clone()), &ListenOptions::default()).unwrap_err();
    assert_eq!(error.os_code(), libc::ENOTSOCK);
    assert_eq!(std::fs::read(&path).unwrap(), b"data");
    let nowhere = Address::Unix(PathBuf::from("/no-such-directory/x"));
    let error = listen(&nowhere, &ListenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorClass::NotFound);
}

#[test]
fn abstract_names_listen_and_connect() {
    let name = format!("ballast-test-{}", std::process::id());
    for padded in [true, false] {
        let address = Address::Abstract {
            name: name.as_bytes().into(),
            padded,
        };
        let bound = listen(&address, &ListenOptions::default()).unwrap();
        assert_eq!(bound.address, address);
        let (_client, progress) = connect(&address, &crate::ConnectOptions::default()).unwrap();
        assert_eq!(progress, ConnectProgress::Done);
        crate::accept(&bound.fd).unwrap();
    }
}

#[test]
fn an_inherited_listener_is_verified_and_can_be_named_again() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ip = listener.local_addr().unwrap();
    let number = inherit::register(listener.into());
    let bound = listen(&Address::Inherited(number), &ListenOptions::default()).unwrap();
    assert_eq!(bound.address, Address::Ip(ip));
    assert_eq!(
        crate::accept(&bound.fd).unwrap_err().kind(),
        io::ErrorKind::WouldBlock
    );
    drop(bound);
    let again = listen(&Address::Inherited(number), &ListenOptions::default()).unwrap();
    let _client = TcpStream::connect(ip).unwrap();
    crate::accept(&again.fd).unwrap();
    let nobody = Address::Inherited(i32::MAX);
    let error = listen(&nobody, &ListenOptions::default()).unwrap_err();
    assert_eq!(error.os_code(), libc::EBADF);

    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let number = inherit::register(udp.into());
    let error = listen(&Address::Inherited(number), &ListenOptions::default()).unwrap_err();
    assert_eq!(error.os_code(), libc::ESOCKTNOSUPPORT);
}

#[test]
fn a_path_is_replaced_when_that_is_said_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("web.sock");
    let address = Address::Unix(path.clone());
    let options = ListenOptions::default();
    let old = listen(&address, &options).unwrap();
    let reaches = |bound: &ListeningSocket| {
        let _client = UnixStream::connect(&path).unwrap();
        crate::accept(&bound.fd).is_ok()
    };
    let (_given_up, beside) = listen_unpublished(&address, &options).unwrap();
    assert!(reaches(&old));
    drop(beside);
    assert!(reaches(&old));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let (new, beside) = listen_unpublished(&address, &options).unwrap();
    beside.unwrap().publish().unwrap();
    assert!(reaches(&new));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_socket_that_listens_is_tuned_and_tuned_back() {
    use rustix::net::sockopt;
    let any = Address::Ip("127.0.0.1:0".parse().unwrap());
    let bound = listen(&any, &ListenOptions::default()).unwrap();
    let plain = Tuning::of(&ListenOptions::default());
    let tuned = Tuning {
        backlog: 7,
        defer_accept: true,
        fast_open_pending_max: Some(16),
        keepalive: Some(KeepAlive {
            count: Some(3),
            idle: Some(Duration::from_secs(77)),
            interval: None,
        }),
        mss: Some(1000),
        user_timeout: Some(Duration::from_millis(1234)),
        ..plain.clone()
    };
    let refused = retune(bound.fd.as_fd(), &bound.address, Some(&plain), &tuned);
    assert!(refused.is_empty(), "{refused:?}");
    let see = || {
        (
            sockopt::tcp_user_timeout(&bound.fd).unwrap(),
            sockopt::socket_keepalive(&bound.fd).unwrap(),
            sockopt::tcp_keepidle(&bound.fd).unwrap(),
        )
    };
    let before = see();
    assert_eq!(before, (1234, true, Duration::from_secs(77)));
    let refused = retune(bound.fd.as_fd(), &bound.address, Some(&tuned), &plain);
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!((see().0, see().1), (0, false));
    TcpStream::connect(bound.address.ip().unwrap()).unwrap();
}

#[test]
fn a_path_is_found_by_its_lasting_name_while_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("web.sock");
    let options = ListenOptions::default();
    let address = Address::Unix(path.clone());
    let bound = listen(&address, &options).unwrap();
    let query = SocketQuery {
        address: &address,
        interface: "",
        namespace: "",
        v6_only: None,
    };
    let mut pool = SocketPool::new();
    pool.add(bound.fd.try_clone().unwrap(), String::new(), String::new());
    pool.add(bound.fd, String::new(), String::new());
    let taken = pool.take(&query).unwrap();
    let again = listen_on(taken, &address, &options).unwrap();
    UnixStream::connect(&path).unwrap();
    crate::accept(&again.fd).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(pool.take(&query).is_none());
    pool.mark_paths_checked();
    assert!(pool.take(&query).is_some());
}

#[test]
fn what_is_offered_is_listened_on_and_the_rest_is_withdrawn() {
    let dir = tempfile::tempdir().unwrap();
    let options = ListenOptions::default();
    let offer = |name: &str| {
        let address = Address::Unix(dir.path().join(name));
        (listen(&address, &options).unwrap().fd, address)
    };
    let ((used, address), (unused, _)) = (offer("used"), offer("unused"));
    let client = UnixStream::connect(dir.path().join("used")).unwrap();
    let mut pool = SocketPool::new();
    for fd in [used, unused] {
        pool.add(fd, String::new(), String::new());
    }
    offer_sockets(pool);
    let bound = listen(&address, &options).unwrap();
    // A connection in the queue of the original socket is in the queue of the copy.
    crate::accept(&bound.fd).unwrap();
    drop(client);
    assert_eq!((withdraw_sockets(), withdraw_sockets()), (1, 0));
    // The child of another test has a copy until it has executed its program.
    let until = Instant::now() + Duration::from_secs(10);
    while UnixStream::connect(dir.path().join("unused")).is_ok() {
        assert!(Instant::now() < until, "it still listens");
        std::thread::yield_now();
    }
}
