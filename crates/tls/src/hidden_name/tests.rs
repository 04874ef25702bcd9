use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::server::Acceptor;
use rustls::{ClientConfig, ClientConnection, Error, PeerMisbehaved, RootCertStore};

use super::*;

/// What a client says first that wants `name`, a name of the same length being put in its place.
fn hello_with(name: &str) -> Vec<u8> {
    let stand_in = "x".repeat(name.len());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let server = ServerName::try_from(stand_in.clone()).expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), server).expect("a client");
    let mut records = Vec::new();
    client.write_tls(&mut records).expect("memory");
    let mut places = records.windows(name.len());
    let at = places.position(|bytes| bytes == stand_in.as_bytes());
    let at = at.expect("the name is in the hello");
    records[at..at + name.len()].copy_from_slice(name.as_bytes());
    records
}

fn message(records: &[u8]) -> Vec<u8> {
    match parse_client_hello(records) {
        HelloOutcome::Complete(hello) => hello.to_message(),
        other => panic!("{other:?}"),
    }
}

/// What rustls says of a hello.
fn accept(records: &[u8]) -> Result<Option<String>, Error> {
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut &*records).expect("memory");
    let accepted = acceptor.accept().map_err(|(error, _)| error)?;
    let accepted = accepted.expect("a whole hello");
    Ok(accepted.client_hello().server_name().map(str::to_owned))
}

/// When this fails rustls has learned to pass over such names: then this module can go.
#[test]
fn rustls_ends_the_handshake_at_a_name_that_is_none() {
    for name in ["app:443", "access-", "a..b"] {
        let error = accept(&hello_with(name)).expect_err(name);
        let expected = PeerMisbehaved::ServerNameMustContainOneHostName;
        assert_eq!(error, expected.into(), "{name}");
        assert!(is_hidden(name.as_bytes()), "{name}");
    }
    for name in ["a.test", "a_b.test", "192.0.2.1"] {
        assert!(accept(&hello_with(name)).is_ok(), "{name}");
        assert!(!is_hidden(name.as_bytes()), "{name}");
    }
}

#[test]
fn a_hidden_name_is_none_to_rustls_and_comes_back_in_the_hash() {
    let sent = hello_with("app:443");
    let mut hidden = sent.clone();
    assert!(hide_server_name(&mut hidden));
    assert_eq!(accept(&hidden), Ok(None));
    assert_ne!(message(&hidden), message(&sent));
    assert_eq!(*restore(&message(&hidden)), *message(&sent));
    // Behind other messages, and without its end.
    let before = [&[254, 0, 0, 2, 9, 9], &*message(&hidden)].concat();
    assert_eq!(restore(&before)[6..], *message(&sent));
    let whole = message(&hidden);
    for end in 0..whole.len() {
        let restored = restore(&whole[..end]);
        let place = extension_at(&whole, HIDDEN_NAME).expect("it is there");
        let is_there = end >= place + 2;
        let expected = if is_there {
            message(&sent)
        } else {
            whole.clone()
        };
        assert_eq!(*restored, expected[..end], "{end}");
    }
}

#[test]
fn a_hello_is_hidden_however_it_is_cut() {
    let sent = message(&hello_with("app:443"));
    let mut records = vec![20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 2, 7, 7];
    let before = records.len();
    for byte in &sent {
        records.extend([22, 3, 1, 0, 1, *byte]);
    }
    let behind = [23, 3, 3, 0, 1, 5];
    for end in 1..records.len() {
        let mut received = records[..end].to_vec();
        if end > before {
            assert!(!hide_server_name(&mut received), "{end}");
        }
        assert_eq!(received, records[..end]);
    }
    records.extend(behind);
    assert!(hide_server_name(&mut records));
    assert_eq!(records[records.len() - behind.len()..], behind);
    assert_eq!(*restore(&message(&records[before..])), *sent);
    let once = records.clone();
    assert!(hide_server_name(&mut records), "nothing is left to hide");
    assert_eq!(records, once);
}

#[test]
fn other_hellos_are_left_alone() {
    let mut named = hello_with("a.test");
    let sent = named.clone();
    assert!(hide_server_name(&mut named));
    assert_eq!(named, sent);
    let mut alert = vec![21, 3, 3, 0, 2, 2, 40];
    assert!(hide_server_name(&mut alert));
    assert_eq!(alert, [21, 3, 3, 0, 2, 2, 40]);
    for name in ["a\0b", &"x".repeat(256), ""] {
        assert!(!is_hidden(name.as_bytes()), "OpenSSL refuses {name:?}");
    }
    // One that has our number: what comes back would not be what was sent.
    let mut own = message(&hello_with("app:443"));
    let at = extension_at(&own, extension::SUPPORTED_GROUPS).expect("it is there");
    own[at..at + 2].copy_from_slice(&HIDDEN_NAME.to_be_bytes());
    let length = u16::try_from(own.len()).expect("short").to_be_bytes();
    let sent = [&[22, 3, 1], &length[..], &own].concat();
    let mut received = sent.clone();
    assert!(hide_server_name(&mut received));
    assert_eq!(received, sent);
}

#[test]
fn every_suite_has_its_like() {
    let all = [default_ciphersuites(), default_ciphers()].concat();
    let restoring = restoring(&all);
    let numbers = |suites: &[SupportedCipherSuite]| -> Vec<_> {
        suites.iter().map(|suite| suite.suite()).collect()
    };
    assert_eq!(numbers(&restoring), numbers(&all));
}
