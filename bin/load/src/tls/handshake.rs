//! What a handshake agreed on.

use std::time::Duration;

use rustls::{ClientConnection, HandshakeKind};

use crate::tls::suites::{group_name, suite_name, version_name};

/// What a handshake agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    /// From the first byte sent to the last byte sent, connecting not included.
    pub(crate) took: Duration,
    /// A session was offered.
    pub(crate) has_offered: bool,
    /// The server resumed it.
    pub(crate) is_resumed: bool,
    /// The server asked for another key share: a round trip more.
    pub(crate) has_hello_retry: bool,
    pub(crate) version: &'static str,
    pub(crate) cipher: &'static str,
    /// None in a resumption without a key exchange.
    pub(crate) group: Option<&'static str>,
    /// The protocol of ALPN.
    pub(crate) protocol: Option<String>,
}

impl Handshake {
    /// The facts of a connection whose handshake is complete.
    pub(crate) fn of(connection: &ClientConnection, has_offered: bool, took: Duration) -> Self {
        let kind = connection.handshake_kind();
        let suite = connection.negotiated_cipher_suite();
        let group = connection.negotiated_key_exchange_group();
        let protocol = connection.alpn_protocol();
        Self {
            took,
            has_offered,
            is_resumed: kind == Some(HandshakeKind::Resumed),
            has_hello_retry: kind == Some(HandshakeKind::FullWithHelloRetryRequest),
            version: connection
                .protocol_version()
                .map_or("unknown", version_name),
            cipher: suite.map_or("unknown", |suite| suite_name(suite.suite())),
            group: group.map(|group| group_name(group.name())),
            protocol: protocol.map(|name| String::from_utf8_lossy(name).into_owned()),
        }
    }
}
